#include "job/past_use.h"

#include "base/grow.h"
#include "base/json.h"
#include "job/usage.h"
#include "store/event.h"
#include "store/stmt.h"

#include <math.h>
#include <string.h>

#define SETTING   "past_use"
#define REVISIONS "past_use_revisions"

/** The row of what there was to be had. */
#define CLUSTER ""

/** Meters of tasks that run are rolled so late at most: what is counted in a span may be of before it. */
#define ACCOUNT_LAG_MS (WEIR_USAGE_ROLL_MAX_MS + 2 * WEIR_USAGE_FRESH_MS)

// clang-format off
static const struct weir_field rule_fields[] = {
    WEIR_FIELD(weir_past_rule, half_life_ms, INT, WEIR_FIELD_REQUIRED, "ms", "After so long what was used counts half"),
    WEIR_FIELD(weir_past_rule, weight,       F64, WEIR_FIELD_REQUIRED, "", "How much past use counts against a queue's share of what is left over; 0: not at all"),
};
// clang-format on

const struct weir_resource weir_past_rule_resource =
    WEIR_RESOURCE("past use rule", "past use rules", weir_past_rule, rule_fields);

static const char sql_forget[] = "DELETE FROM past_use WHERE project <> '' AND project NOT IN"
                                 " (SELECT project FROM usage_totals)";
static const char sql_cluster[] =
    "SELECT time_ms, devices, cpus, memory FROM past_use WHERE project = ''";
static const char sql_account[] =
    "SELECT t.project, t.given, t.cpu_given, p.time_ms, p.devices, p.cpus, p.memory,"
    " p.devices_seen, p.cpus_seen FROM (SELECT project, sum(given) AS given,"
    " sum(cpu_given) AS cpu_given FROM usage_totals GROUP BY project) t"
    " LEFT JOIN past_use p ON p.project = t.project";
static const char sql_put[] =
    "INSERT INTO past_use VALUES (:project, :time, :devices, :cpus, :memory, :devices_seen,"
    " :cpus_seen) ON CONFLICT (project) DO UPDATE SET time_ms = excluded.time_ms,"
    " devices = excluded.devices, cpus = excluded.cpus, memory = excluded.memory,"
    " devices_seen = excluded.devices_seen, cpus_seen = excluded.cpus_seen";
static const char sql_read[] =
    "SELECT project, time_ms, devices, cpus, memory FROM past_use WHERE project <> ''"
    " ORDER BY project";

/** Amounts times milliseconds, as they stood at a time. */
struct sums {
    int64_t time_ms; /* 0: there is no row yet. */
    double devices, cpus, memory;
};

struct account {
    char *project;
    double devices, cpus, devices_seen, cpus_seen; /* All that was ever counted, and taken in. */
    struct sums sums;
};

double weir_past_left(int64_t half_life_ms, int64_t elapsed_ms)
{
    return elapsed_ms > 0 ? exp2(-(double)elapsed_ms / (double)half_life_ms) : 1;
}

double weir_past_span_ms(int64_t half_life_ms, int64_t elapsed_ms)
{
    return elapsed_ms > 0 ? -expm1(-(double)elapsed_ms / (double)half_life_ms * M_LN2) *
                                (double)half_life_ms / M_LN2
                          : 0;
}

/* ---- the rule -------------------------------------------------------------------------------- */

weir_status weir_past_rule_get(struct weir_txn *txn, struct weir_past_rule *out,
                               struct weir_error *err)
{
    WEIR_AUTO(weir_json_auto_free) json_t *json = NULL;
    struct weir_arena arena;
    struct weir_error missing;
    char *text;
    *out = (struct weir_past_rule){.half_life_ms = WEIR_PAST_HALF_LIFE_MS};
    weir_arena_init(&arena, 0);
    weir_status status = weir_setting_get(txn, SETTING, &arena, &text, &missing);
    json = status != WEIR_OK ? NULL : json_loads(text, 0, NULL);
    weir_arena_fini(&arena);
    if (json != NULL) {
        out->half_life_ms = json_integer_value(json_object_get(json, "half_life_ms"));
        out->weight = json_number_value(json_object_get(json, "weight"));
    }
    return status == WEIR_OK || status == WEIR_ERR_NOT_FOUND
               ? WEIR_OK
               : weir_error_set(err, status, "%s", missing.message);
}

weir_status weir_past_rule_set(struct weir_txn *txn, const struct weir_past_rule *rule,
                               int64_t now_ms, struct weir_error *err)
{
    struct weir_arena arena;
    int64_t n_changes;
    if (rule->half_life_ms < WEIR_PAST_HALF_LIFE_LEAST_MS ||
        rule->half_life_ms > WEIR_PAST_HALF_LIFE_MOST_MS) {
        return weir_error_set(
            err, WEIR_ERR_INVALID, "$.half_life_ms: expected %lld (a minute) to %lld (366 days)",
            (long long)WEIR_PAST_HALF_LIFE_LEAST_MS, (long long)WEIR_PAST_HALF_LIFE_MOST_MS);
    }
    if (!(rule->weight >= 0 && rule->weight <= WEIR_PAST_WEIGHT_MOST)) {
        return weir_error_set(err, WEIR_ERR_INVALID, "$.weight: expected a number from 0 to %d",
                              WEIR_PAST_WEIGHT_MOST);
    }
    WEIR_TRY(weir_txn_next(txn, REVISIONS, &n_changes, err));
    weir_arena_init(&arena, 0);
    WEIR_AUTO(weir_json_auto_free)
    json_t *json = json_pack("{s:I,s:f}", "half_life_ms", (json_int_t)rule->half_life_ms, "weight",
                             rule->weight);
    weir_status status = weir_setting_put(txn, SETTING, weir_json_text(json, &arena), now_ms, err);
    weir_arena_fini(&arena);
    return status;
}

/* ---- summing up ------------------------------------------------------------------------------ */

static void decay(struct sums *sums, int64_t half_life_ms, int64_t now_ms)
{
    double left = weir_past_left(half_life_ms, now_ms - sums->time_ms);
    *sums = (struct sums){now_ms, sums->devices * left, sums->cpus * left, sums->memory * left};
}

static weir_status read_cluster(struct weir_txn *txn, struct sums *out, struct weir_error *err)
{
    WEIR_AUTO(weir_stmt_auto_close) struct weir_stmt *row = NULL;
    bool has_row;
    *out = (struct sums){0};
    WEIR_TRY(weir_stmt_open(txn, sql_cluster, WEIR_NO_BINDS, &row, err));
    WEIR_TRY(weir_stmt_step(row, &has_row, err));
    if (has_row) {
        *out = (struct sums){weir_stmt_int(row, 0), weir_stmt_f64(row, 1), weir_stmt_f64(row, 2),
                             weir_stmt_f64(row, 3)};
    }
    return WEIR_OK;
}

static weir_status put(struct weir_txn *txn, const struct account *account, struct weir_error *err)
{
    const struct sums *sums = &account->sums;
    return weir_txn_exec(
        txn, sql_put,
        WEIR_BINDS(WEIR_BIND_TEXT("project", account->project),
                   WEIR_BIND_INT("time", sums->time_ms), WEIR_BIND_F64("devices", sums->devices),
                   WEIR_BIND_F64("cpus", sums->cpus), WEIR_BIND_F64("memory", sums->memory),
                   WEIR_BIND_F64("devices_seen", account->devices),
                   WEIR_BIND_F64("cpus_seen", account->cpus)),
        NULL, err);
}

static double f64_or_0(const struct weir_stmt *row, int i_column)
{
    double value = weir_stmt_f64(row, i_column);
    return isnan(value) ? 0 : value;
}

static weir_status read_account(struct weir_txn *txn, struct weir_arena *arena,
                                struct account **out, size_t *out_n, struct weir_error *err)
{
    WEIR_AUTO(weir_stmt_auto_close) struct weir_stmt *row = NULL;
    struct account *list = NULL;
    size_t n = 0, cap = 0;
    bool has_row;
    WEIR_TRY(weir_stmt_open(txn, sql_account, WEIR_NO_BINDS, &row, err));
    WEIR_TRY(weir_stmt_step(row, &has_row, err));
    while (has_row) {
        weir_arena_grow(arena, &list, sizeof *list, n, &cap);
        list[n++] = (struct account){
            .project = weir_stmt_text(row, 0, arena),
            .devices = weir_stmt_f64(row, 1),
            .cpus = weir_stmt_f64(row, 2),
            .sums = {weir_stmt_int(row, 3), f64_or_0(row, 4), f64_or_0(row, 5), f64_or_0(row, 6)},
            .devices_seen = f64_or_0(row, 7),
            .cpus_seen = f64_or_0(row, 8)};
        WEIR_TRY(weir_stmt_step(row, &has_row, err));
    }
    *out = list;
    *out_n = n;
    return WEIR_OK;
}

static double memory_of(const struct weir_past_now *now, const char *project)
{
    for (size_t i = 0; i < now->n_levels; i++) {
        if (strcmp(now->levels[i].project, project) == 0) {
            return now->levels[i].memory_bytes;
        }
    }
    return 0;
}

/* What was counted since, but no more than there was to be had: a meter that was rolled late is right, and a
 * clock that was set forward is not. */
static double within(double counted, double seen, double milli, int64_t elapsed_ms)
{
    double most = milli * (double)(elapsed_ms + ACCOUNT_LAG_MS);
    return WEIR_MAX(WEIR_MIN(counted - seen, most), 0.0);
}

/* One round over the projects; what has had nothing since is left as it stood. */
static weir_status roll_projects(struct weir_txn *txn, const struct weir_past_now *now,
                                 int64_t half_life_ms, int64_t since_ms, int64_t now_ms,
                                 struct weir_arena *arena, struct weir_error *err)
{
    struct account *list;
    size_t n;
    int64_t elapsed_ms = since_ms > 0 ? WEIR_MAX(now_ms - since_ms, (int64_t)0) : 0;
    double span_ms = weir_past_span_ms(half_life_ms, elapsed_ms);
    double kept =
        elapsed_ms > 0 ? span_ms / (double)elapsed_ms : 1; /* Use was even, as far as is known. */
    WEIR_TRY(read_account(txn, arena, &list, &n, err));
    for (size_t i = 0; i < n; i++) {
        struct account *account = &list[i];
        double memory = memory_of(now, account->project) * span_ms;
        bool is_first = since_ms == 0; /* What was before anybody summed up is left out. */
        double devices = is_first ? 0
                                  : within(account->devices, account->devices_seen,
                                           now->device_milli, elapsed_ms);
        double cpus =
            is_first ? 0 : within(account->cpus, account->cpus_seen, now->cpu_milli, elapsed_ms);
        if (!is_first && devices == 0 && cpus == 0 && memory == 0 &&
            account->devices == account->devices_seen && account->cpus == account->cpus_seen) {
            continue;
        }
        decay(&account->sums, half_life_ms, now_ms);
        account->sums.devices += devices * kept;
        account->sums.cpus += cpus * kept;
        account->sums.memory += memory;
        WEIR_TRY(put(txn, account, err));
    }
    return WEIR_OK;
}

weir_status weir_past_use_roll(struct weir_txn *txn, const struct weir_past_now *now,
                               int64_t now_ms, struct weir_error *err)
{
    struct weir_past_rule rule;
    struct account cluster = {.project = (char *)CLUSTER};
    struct weir_arena arena;
    int64_t n_changes;
    WEIR_TRY(weir_past_rule_get(txn, &rule, err));
    WEIR_TRY(read_cluster(txn, &cluster.sums, err));
    WEIR_TRY(weir_txn_exec(txn, sql_forget, WEIR_NO_BINDS, NULL, err));
    int64_t since_ms = cluster.sums.time_ms;
    weir_arena_init(&arena, 0);
    weir_status status = roll_projects(txn, now, rule.half_life_ms, since_ms, now_ms, &arena, err);
    weir_arena_fini(&arena);
    WEIR_TRY(status);
    double span_ms = since_ms > 0 ? weir_past_span_ms(rule.half_life_ms, now_ms - since_ms) : 0;
    decay(&cluster.sums, rule.half_life_ms, now_ms);
    cluster.sums.devices += now->device_milli * span_ms;
    cluster.sums.cpus += now->cpu_milli * span_ms;
    cluster.sums.memory += now->memory_bytes * span_ms;
    WEIR_TRY(put(txn, &cluster, err));
    return weir_txn_next(txn, REVISIONS, &n_changes, err);
}

/* ---- reading --------------------------------------------------------------------------------- */

weir_status weir_past_use_revision(struct weir_txn *txn, int64_t *out, struct weir_error *err)
{
    static const char sql[] = "SELECT coalesce(max(value), 0) FROM counters WHERE name = "
                              "'" REVISIONS "'";
    return weir_txn_query_int(txn, sql, WEIR_NO_BINDS, 0, out, err);
}

static double part_of(double use, double capacity)
{
    return capacity > 0 ? WEIR_MIN(use / capacity, 1.0) : 0;
}

weir_status weir_past_use_read(struct weir_txn *txn, struct weir_arena *arena,
                               struct weir_past_rule *out_rule, struct weir_past_use **out,
                               size_t *out_n, struct weir_error *err)
{
    WEIR_AUTO(weir_stmt_auto_close) struct weir_stmt *row = NULL;
    struct weir_past_use *list = NULL;
    struct sums cluster;
    size_t n = 0, cap = 0;
    bool has_row;
    WEIR_TRY(weir_past_rule_get(txn, out_rule, err));
    WEIR_TRY(read_cluster(txn, &cluster, err));
    WEIR_TRY(weir_stmt_open(txn, sql_read, WEIR_NO_BINDS, &row, err));
    WEIR_TRY(weir_stmt_step(row, &has_row, err));
    while (has_row) {
        struct sums sums = {weir_stmt_int(row, 1), weir_stmt_f64(row, 2), weir_stmt_f64(row, 3),
                            weir_stmt_f64(row, 4)};
        decay(&sums, out_rule->half_life_ms, cluster.time_ms);
        weir_arena_grow(arena, &list, sizeof *list, n, &cap);
        list[n++] = (struct weir_past_use){.project = weir_stmt_text(row, 0, arena),
                                           .devices = part_of(sums.devices, cluster.devices),
                                           .cpus = part_of(sums.cpus, cluster.cpus),
                                           .memory = part_of(sums.memory, cluster.memory)};
        WEIR_TRY(weir_stmt_step(row, &has_row, err));
    }
    *out = list;
    *out_n = n;
    return WEIR_OK;
}
