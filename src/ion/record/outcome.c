#include "ion/outcome.h"

#include "ion/arms.h"
#include "ion/feedback.h"
#include "store/noun.h"
#include "store/stmt.h"
#include "store/table.h"

#include <math.h>

// clang-format off
static const struct weir_field outcome_fields[] = {
    WEIR_FIELD(weir_outcome, id,          TEXT, WEIR_FIELD_KEY, "", "REQUEST:NAME"),
    WEIR_FIELD(weir_outcome, seq,         INT,  WEIR_FIELD_READ_ONLY, "", "Order of arrival"),
    WEIR_FIELD(weir_outcome, request,     TEXT, 0, "", "Identifier of the request"),
    WEIR_FIELD(weir_outcome, deployment,  TEXT, WEIR_FIELD_COLUMN, "", "Deployment that answered it"),
    WEIR_FIELD(weir_outcome, version,     INT,  WEIR_FIELD_COLUMN, "", "Version that answered it"),
    WEIR_FIELD(weir_outcome, name,        TEXT, WEIR_FIELD_COLUMN, "", "success, or what the value is of"),
    WEIR_FIELD(weir_outcome, value,       F64,  WEIR_FIELD_COLUMN, "", "Of success 1 or 0"),
    WEIR_FIELD_SIZED(weir_outcome, decided, TEXT, 0, 256, "", "What the answer said, if the truth was told"),
    WEIR_FIELD_SIZED(weir_outcome, truth, TEXT, 0, 256, "", "What it should have said"),
    WEIR_FIELD(weir_outcome, answered_ms, TIME, WEIR_FIELD_COLUMN, "ms", "When it was answered"),
    WEIR_FIELD(weir_outcome, actor,       TEXT, WEIR_FIELD_COLUMN, "", "Who told it"),
    WEIR_FIELD(weir_outcome, time_ms,     TIME, WEIR_FIELD_COLUMN, "ms", "When it was told"),
};
// clang-format on

const struct weir_resource weir_outcome_resource =
    WEIR_RESOURCE("outcome", "outcomes", weir_outcome, outcome_fields);

/* What can be told again stays: ion/outcome.h, by the database's clock. */
const struct weir_noun weir_noun_outcome = {
    "outcomes", WEIR_OF(deployment, deployments, name),
    .rules = {WEIR_RULE(
        "outcomes", "What came of requests of deployments",
        "Those of the requests answered longest ago go first; those of the last 7 days stay, so "
        "that what is told "
        "again is counted once.",
        110, {WEIR_DAYS(90), WEIR_MB(40)}, 600, 6, .time = "answered_ms",
        .may = "answered_ms <= weir_now_ms() - 7 * 86400000")},
    .forgets = WEIR_FORGETS(.key = "id", .renamed = {"truth", "decided"})};

/** As much of a deployment as is asked here: by record access, which sees what the caller may. */
struct deployment {
    char *name;
};

static const struct weir_field deployment_fields[] = {
    WEIR_FIELD(deployment, name, TEXT, WEIR_FIELD_KEY, "", "Name"),
};
static const struct weir_resource deployment_resource =
    WEIR_RESOURCE("deployment", "deployments", deployment, deployment_fields);

static weir_status check(struct weir_txn *txn, const struct weir_outcome *told,
                         struct weir_arena *arena, struct weir_error *err)
{
    struct deployment found;
    if (!weir_name_is_valid(told->name) || !isfinite(told->value)) {
        return weir_error_set(err, WEIR_ERR_INVALID, "$: expected a number with the name of a KPI");
    }
    if ((told->decided != NULL && !weir_feedback_is_plain(told->decided)) ||
        (told->truth != NULL && !weir_feedback_is_plain(told->truth))) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "$: expected decided and truth of 1 to %d bytes without control "
                              "characters",
                              WEIR_FEEDBACK_TRUTH_MAX_BYTES);
    }
    if (told->answered_ms < told->time_ms - WEIR_OUTCOME_MAX_MS) {
        return weir_error_set(err, WEIR_ERR_CONFLICT,
                              "the request was answered more than %d days ago: what came of it is "
                              "not counted any more",
                              WEIR_OUTCOME_DAYS);
    }
    return weir_txn_get(txn, &deployment_resource, told->deployment, arena, &found, err);
}

weir_status weir_outcome_store(struct weir_txn *txn, struct weir_outcome *told,
                               struct weir_arena *arena, struct weir_error *err)
{
    struct weir_outcome before;
    struct weir_error missing;
    WEIR_TRY(check(txn, told, arena, err));
    told->id = weir_arena_printf(arena, "%s:%s", told->request, told->name);
    weir_status status =
        weir_txn_get(txn, &weir_outcome_resource, told->id, arena, &before, &missing);
    if (status != WEIR_OK && status != WEIR_ERR_NOT_FOUND) {
        return weir_error_set(err, status, "%s", missing.message);
    }
    const struct weir_ion_sample sample = {.deployment = told->deployment,
                                           .version = told->version,
                                           .metric = told->name,
                                           .time_ms = told->answered_ms};
    WEIR_TRY(weir_txn_next(txn, "outcomes", &told->seq, err));
    WEIR_TRY(weir_txn_upsert(txn, &weir_outcome_resource, told, err));
    return weir_ion_arms_count(txn, &sample, &told->value, status == WEIR_OK ? &before.value : NULL,
                               arena, err);
}
