#include "ion/arms.h"

#include "ion/outcome.h"
#include "stats/ab.h"
#include "store/stmt.h"
#include "store/table.h"

#include <inttypes.h>
#include <string.h>

// clang-format off
static const struct weir_field arm_fields[] = {
    WEIR_FIELD(weir_ion_arm, id,         TEXT, WEIR_FIELD_KEY, "", "CANDIDATE/VERSION"),
    WEIR_FIELD(weir_ion_arm, ion,        TEXT, 0, "", "ION"),
    WEIR_FIELD(weir_ion_arm, candidate,  TEXT, 0, "", "Candidate"),
    WEIR_FIELD(weir_ion_arm, deployment, TEXT, 0, "", "Deployment"),
    WEIR_FIELD(weir_ion_arm, model,      TEXT, 0, "", "Model"),
    WEIR_FIELD(weir_ion_arm, version,    INT,  0, "", "Version"),
    WEIR_FIELD(weir_ion_arm, metric,     TEXT, 0, "", "What is counted: success, or a KPI"),
    WEIR_FIELD(weir_ion_arm, since_ms,   INT,  0, "ms", "Since when"),
    WEIR_FIELD(weir_ion_arm, n,          INT,  0, "", "Samples"),
    WEIR_FIELD(weir_ion_arm, origin,     F64,  0, "", "What is subtracted from each value"),
    WEIR_FIELD(weir_ion_arm, total,      F64,  0, "", "Their sum"),
    WEIR_FIELD(weir_ion_arm, total2,     F64,  0, "", "The sum of their squares"),
};
// clang-format on

const struct weir_resource weir_ion_arm_resource =
    WEIR_RESOURCE("arm", "ion_arms", weir_ion_arm, arm_fields);

static const char sql_of_deployment[] =
    "SELECT id FROM ion_arms WHERE deployment = :deployment AND version = :version AND"
    " metric = :metric AND since_ms <= :time";
static const char sql_of_ion[] =
    "SELECT id FROM ion_arms WHERE ion = :ion AND model = :model AND version = :version AND"
    " metric = :metric AND since_ms <= :time";
static const char sql_forget[] =
    "DELETE FROM ion_arms WHERE ion = :ion AND candidate NOT IN (SELECT id FROM ion_candidates"
    " WHERE ion = :ion AND begun_ms > 0)";
static const char sql_outcomes[] =
    "SELECT value FROM outcomes WHERE deployment = :deployment AND version = :version AND"
    " name = :metric AND answered_ms >= :since";
static const char sql_kpis[] =
    "SELECT value FROM kpis WHERE ion = :ion AND model = :model AND model_version = :version AND"
    " name = :metric AND time_ms >= :since";

/* ---- sums ---------------------------------------------------------------------------------------- */

/** Count a value, or one less if sign is -1. Pure. */
static void arm_add(struct weir_ion_arm *arm, double value, int sign)
{
    if (arm->n == 0) {
        /* Yes and no stay whole numbers, whose sums are exact. */
        arm->origin = value == 1 ? 0 : value;
        arm->total = arm->total2 = 0;
    }
    double from = value - arm->origin;
    arm->n += sign;
    arm->total += sign * from;
    arm->total2 += sign * from * from;
}

/** Pure. */
static struct weir_ab_arm arm_figures(const struct weir_ion_arm *arm)
{
    if (arm->n <= 0) {
        return (struct weir_ab_arm){0};
    }
    double n = (double)arm->n, m2 = arm->total2 - arm->total * arm->total / n;
    return (struct weir_ab_arm){
        .n = arm->n, .mean = arm->origin + arm->total / n, .m2 = WEIR_MAX(m2, 0.0)};
}

/* ---- counting ------------------------------------------------------------------------------------ */

static weir_status count_in(struct weir_txn *txn, const char *id, const double *value,
                            const double *old, struct weir_arena *arena, struct weir_error *err)
{
    struct weir_ion_arm arm;
    WEIR_TRY(weir_txn_get(txn, &weir_ion_arm_resource, id, arena, &arm, err));
    if (value != NULL) { /* first: with n of 0 the origin would be chosen anew */
        arm_add(&arm, *value, 1);
    }
    if (old != NULL) {
        arm_add(&arm, *old, -1);
    }
    return weir_txn_update(txn, &weir_ion_arm_resource, &arm,
                           WEIR_FIELDS("n", "origin", "total", "total2"), err);
}

weir_status weir_ion_arms_count(struct weir_txn *txn, const struct weir_ion_sample *sample,
                                const double *value, const double *old, struct weir_arena *arena,
                                struct weir_error *err)
{
    char **ids;
    size_t n;
    if (sample->deployment != NULL) {
        WEIR_TRY(weir_txn_query_texts(txn, sql_of_deployment,
                                      WEIR_BINDS(WEIR_BIND_TEXT("deployment", sample->deployment),
                                                 WEIR_BIND_INT("version", sample->version),
                                                 WEIR_BIND_TEXT("metric", sample->metric),
                                                 WEIR_BIND_INT("time", sample->time_ms)),
                                      arena, &ids, &n, err));
    } else {
        WEIR_TRY(weir_txn_query_texts(txn, sql_of_ion,
                                      WEIR_BINDS(WEIR_BIND_TEXT("ion", sample->ion),
                                                 WEIR_BIND_TEXT("model", sample->model),
                                                 WEIR_BIND_INT("version", sample->version),
                                                 WEIR_BIND_TEXT("metric", sample->metric),
                                                 WEIR_BIND_INT("time", sample->time_ms)),
                                      arena, &ids, &n, err));
    }
    for (size_t i = 0; i < n; i++) {
        WEIR_TRY(count_in(txn, ids[i], value, old, arena, err));
    }
    return WEIR_OK;
}

/* ---- coming and going ---------------------------------------------------------------------------- */

/** What an arm is of. */
struct place {
    const struct weir_ion_candidate *candidate;
    const char *deployment, *metric;
    int64_t live_version;
};

/** @return false: the candidate is not being compared. */
static bool find_place(const struct weir_ion_state *state,
                       const struct weir_ion_candidate *candidate, struct place *out)
{
    bool is_compared = candidate->begun_ms > 0;
    const struct weir_policy *policy = is_compared ? weir_ion_watching(state, candidate) : NULL;
    const struct weir_ion_candidate *serving = weir_ion_serving(state, candidate->link);
    if (policy == NULL || weir_policy_ops(policy)->metric == NULL || serving == NULL ||
        strcmp(serving->model, candidate->model) != 0) {
        return false;
    }
    *out = (struct place){candidate, weir_ion_doc_link(&state->doc, candidate->link)->deployment,
                          weir_policy_ops(policy)->metric(policy->options), serving->version};
    return out->deployment != NULL;
}

static char *id_of(const struct weir_ion_candidate *candidate, int64_t version,
                   struct weir_arena *arena)
{
    return weir_arena_printf(arena, "%s/%" PRId64, candidate->id, version);
}

static weir_status add_rows(struct weir_txn *txn, const char *sql, struct weir_ion_arm *arm,
                            struct weir_error *err)
{
    struct weir_stmt *stmt;
    bool has_row;
    bool is_kpi = sql == sql_kpis;
    const struct weir_bind binds[] = {
        WEIR_BIND_TEXT("metric", arm->metric), WEIR_BIND_INT("version", arm->version),
        WEIR_BIND_INT("since", arm->since_ms),
        is_kpi ? WEIR_BIND_TEXT("ion", arm->ion) : WEIR_BIND_TEXT("deployment", arm->deployment),
        WEIR_BIND_TEXT("model", arm->model)};
    WEIR_TRY(weir_stmt_open(txn, sql, binds, is_kpi ? 5 : 4, &stmt, err));
    weir_status status;
    while ((status = weir_stmt_step(stmt, &has_row, err)) == WEIR_OK && has_row) {
        arm_add(arm, weir_stmt_f64(stmt, 0), 1);
    }
    weir_stmt_close(stmt);
    return status;
}

static weir_status ensure(struct weir_txn *txn, const struct place *place, int64_t version,
                          struct weir_arena *arena, struct weir_error *err)
{
    struct weir_error missing;
    struct weir_ion_arm arm = {.id = id_of(place->candidate, version, arena),
                               .ion = place->candidate->ion,
                               .candidate = place->candidate->id,
                               .deployment = (char *)place->deployment,
                               .model = place->candidate->model,
                               .version = version,
                               .metric = (char *)place->metric,
                               .since_ms = place->candidate->begun_ms};
    struct weir_ion_arm found;
    weir_status status = weir_txn_get(txn, &weir_ion_arm_resource, arm.id, arena, &found, &missing);
    if (status != WEIR_ERR_NOT_FOUND) {
        return status == WEIR_OK ? WEIR_OK : weir_error_set(err, status, "%s", missing.message);
    }
    WEIR_TRY(add_rows(txn, sql_outcomes, &arm, err));
    if (strcmp(arm.metric, WEIR_OUTCOME_SUCCESS) != 0) {
        WEIR_TRY(add_rows(txn, sql_kpis, &arm, err));
    }
    return weir_txn_insert(txn, &weir_ion_arm_resource, &arm, err);
}

weir_status weir_ion_arms_follow(struct weir_txn *txn, const struct weir_ion_state *state,
                                 struct weir_arena *arena, struct weir_error *err)
{
    WEIR_TRY(weir_txn_exec(txn, sql_forget, WEIR_BINDS(WEIR_BIND_TEXT("ion", state->ion.name)),
                           NULL, err));
    for (size_t i = 0; i < state->n_candidates; i++) {
        struct place place;
        if (find_place(state, &state->candidates[i], &place)) {
            WEIR_TRY(ensure(txn, &place, place.candidate->version, arena, err));
            WEIR_TRY(ensure(txn, &place, place.live_version, arena, err));
        }
    }
    return WEIR_OK;
}

static weir_status read(struct weir_txn *txn, const char *id, struct weir_arena *arena,
                        struct weir_ab_arm *out, struct weir_error *err)
{
    struct weir_ion_arm arm = {0};
    struct weir_error missing;
    weir_status status = weir_txn_get(txn, &weir_ion_arm_resource, id, arena, &arm, &missing);
    if (status != WEIR_OK && status != WEIR_ERR_NOT_FOUND) {
        return weir_error_set(err, status, "%s", missing.message);
    }
    *out = status == WEIR_OK ? arm_figures(&arm) : (struct weir_ab_arm){0};
    return WEIR_OK;
}

weir_status weir_ion_arms_read(struct weir_txn *txn, const struct weir_ion_state *state,
                               const struct weir_ion_candidate *candidate, struct weir_arena *arena,
                               struct weir_policy_arms *out, struct weir_error *err)
{
    struct place place;
    struct weir_ab_arm arm, live;
    if (!find_place(state, candidate, &place)) {
        *out = (struct weir_policy_arms){0};
        return WEIR_OK;
    }
    WEIR_TRY(read(txn, id_of(candidate, candidate->version, arena), arena, &arm, err));
    WEIR_TRY(read(txn, id_of(candidate, place.live_version, arena), arena, &live, err));
    *out = (struct weir_policy_arms){.live_version = place.live_version,
                                     .n = arm.n,
                                     .mean = arm.mean,
                                     .m2 = arm.m2,
                                     .live_n = live.n,
                                     .live_mean = live.mean,
                                     .live_m2 = live.m2};
    return WEIR_OK;
}
