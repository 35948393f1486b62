/** The tables of rows that go, in SQL. */
#include "retain/retain_private.h"

#include "store/chain.h"

#define PART(table, where, count_sql, trail_of)                                                    \
    {                                                                                              \
        .count = (count_sql), .first = "SELECT min(seq) FROM " table " WHERE " where,              \
        .oldest = "SELECT time_ms FROM " table " WHERE " where " ORDER BY seq LIMIT 1",            \
        .cut_old = "SELECT max(seq) FROM (SELECT seq, time_ms FROM " table " WHERE " where         \
                   " ORDER BY seq LIMIT :n) AS first WHERE time_ms <= :before",                    \
        .cut_n = "SELECT max(seq) FROM (SELECT seq FROM " table " WHERE " where                    \
                 " ORDER BY seq LIMIT :n) AS first",                                               \
        .remove = "DELETE FROM " table " WHERE " where " AND seq <= :cut", .trail = (trail_of)     \
    }

/* Its numbers have no gaps worth speaking of: nobody counts millions of rows. */
#define NUMBERED(table)                                                                            \
    PART(table, "1 = 1",                                                                           \
         "SELECT coalesce((SELECT max(seq) FROM " table ") - (SELECT min(seq) FROM " table         \
         ") + 1, 0)",                                                                              \
         WEIR_TRAIL_NONE)

/* The index events_by_trail: what happens, what admins do, what anybody can have written. */
#define EVENTS(trail, trail_of)                                                                    \
    PART("events", WEIR_TRAIL_SQL " = " trail,                                                     \
         "SELECT count(*) FROM events WHERE " WEIR_TRAIL_SQL " = " trail, trail_of)

static const struct retain_numbered decisions = NUMBERED("decisions");
static const struct retain_numbered events = EVENTS("0", WEIR_TRAIL_NONE);
static const struct retain_numbered audit = EVENTS("1", WEIR_TRAIL_ACTS);
static const struct retain_numbered accesses = EVENTS("2", WEIR_TRAIL_ACCESSES);
static const struct retain_numbered health = NUMBERED("health_reports");
static const struct retain_numbered kpis = NUMBERED("kpis");
static const struct retain_numbered feedback = NUMBERED("feedback");
static const struct retain_numbered statistics = NUMBERED("statistics");

#define OF_IONS    "ion IN (SELECT name FROM ions WHERE project = :project)"
#define OF_PROJECT " AND project = :project"
#define OVER       "state IN ('SUCCEEDED', 'FAILED', 'CANCELLED')"
#define IN_USE                                                                                     \
    "state IN ('PENDING_REVIEW', 'WAITING', 'APPROVED', 'SHADOW', 'CANARY', 'AB', 'SERVING')"

static const struct retain_keyed alerts = {
    .count = "SELECT count(*) FROM alerts WHERE state = 'resolved'",
    .oldest = "SELECT min(resolved_ms) FROM alerts WHERE state = 'resolved'",
    .keys = "SELECT id FROM alerts WHERE state = 'resolved' AND resolved_ms <= :before"
            " ORDER BY resolved_ms, id LIMIT :n",
    .remove = {"DELETE FROM alert_firings WHERE alert IN (SELECT id FROM alerts WHERE id = :key"
               " AND state = 'resolved')",
               "DELETE FROM alerts WHERE id = :key AND state = 'resolved'"},
};
static const struct retain_keyed deliveries = {
    .count = "SELECT count(*) FROM alert_deliveries WHERE state <> 'pending'",
    .oldest = "SELECT min(done_ms) FROM alert_deliveries WHERE state <> 'pending'",
    .keys = "SELECT id FROM alert_deliveries WHERE state <> 'pending' AND done_ms <= :before"
            " ORDER BY done_ms, seq LIMIT :n",
    .remove = {"DELETE FROM alert_deliveries WHERE id = :key AND state <> 'pending'"},
};
static const struct retain_keyed silences = {
    .count = "SELECT count(*) FROM alert_silences WHERE ended_ms > 0",
    .oldest = "SELECT min(ended_ms) FROM alert_silences WHERE ended_ms > 0",
    .keys = "SELECT id FROM alert_silences WHERE ended_ms > 0 AND ended_ms <= :before"
            " ORDER BY ended_ms, id LIMIT :n",
    .remove = {"DELETE FROM alert_silences WHERE id = :key AND ended_ms > 0"},
};
#define POLICY_KEYS(of)                                                                            \
    "SELECT id FROM policy_decisions WHERE time_ms <= :before AND candidate NOT IN"                \
    " (SELECT id FROM ion_candidates WHERE " IN_USE ")" of " ORDER BY time_ms, id LIMIT :n"
static const struct retain_keyed policy_decisions = {
    .count = "SELECT count(*) FROM policy_decisions",
    .oldest = "SELECT min(time_ms) FROM policy_decisions",
    .keys = POLICY_KEYS(""),
    .remove = {"DELETE FROM policy_decisions WHERE id = :key AND candidate NOT IN"
               " (SELECT id FROM ion_candidates WHERE " IN_USE ")"},
};
#define METRIC_KEYS(of)                                                                            \
    "SELECT id FROM runs WHERE finished_ms > 0 AND finished_ms <= :before AND"                     \
    " EXISTS (SELECT 1 FROM metrics WHERE run = runs.number) AND id NOT IN"                        \
    " (SELECT v.run FROM model_versions v JOIN ion_candidates c ON c.model_version = v.id"         \
    " WHERE c." IN_USE " AND v.run IS NOT NULL) AND id NOT IN"                                     \
    " (SELECT v.run FROM model_versions v JOIN deployment_versions d ON d.model = v.model"         \
    " AND d.version = v.version WHERE v.run IS NOT NULL) AND id NOT IN"                            \
    " (SELECT v.run FROM model_versions v JOIN model_aliases a ON a.model = v.model"               \
    " AND a.version = v.version WHERE v.run IS NOT NULL)" of " ORDER BY finished_ms, id LIMIT :n"
static const struct retain_keyed metrics = {
    .count = "SELECT count(*) FROM metrics",
    .oldest = "SELECT finished_ms FROM runs WHERE finished_ms > 0 AND EXISTS"
              " (SELECT 1 FROM metrics WHERE run = runs.number) ORDER BY finished_ms LIMIT 1",
    .keys = METRIC_KEYS(""),
    /* The last of each key stays with the run. */
    .remove = {"DELETE FROM metrics WHERE (run, key, step, time_ms, value, is_nan) IN (SELECT run,"
               " key, step, time_ms, value, is_nan FROM metrics WHERE run ="
               " (SELECT number FROM runs WHERE id = :key) LIMIT :n)"},
};
/* What belongs to the runs of a job that is over, a few rows at a time. */
#define OF_RUNS(table, column)                                                                     \
    "DELETE FROM " table " WHERE (run, " column ") IN (SELECT x.run, x." column                    \
    " FROM jobs j JOIN runs r ON r.job = j.id JOIN " table " x ON x.run = r.number"                \
    " WHERE j.id = :key AND j." OVER " LIMIT :n)"
/* Its index by name: that of states looks as good to the planner, and then all have to be sorted. */
#define JOB_KEYS(of)                                                                               \
    "SELECT id FROM jobs INDEXED BY jobs_over WHERE " OVER                                         \
    " AND finished_ms <= :before AND id NOT IN"                                                    \
                                                                                                   \
    " (SELECT job FROM ion_pipelines WHERE job IS NOT NULL) AND id NOT IN"                         \
    " (SELECT r.job FROM runs r JOIN model_versions v ON v.run = r.id"                             \
    " WHERE r.job IS NOT NULL) AND id NOT IN (SELECT r.job FROM runs r JOIN"                       \
    " dataset_versions d ON d.run = r.id WHERE r.job IS NOT NULL)" of                              \
    " ORDER BY finished_ms, id LIMIT :n"
static const struct retain_keyed jobs = {
    .count = "SELECT count(*) FROM jobs WHERE " OVER,
    .oldest = "SELECT finished_ms FROM jobs INDEXED BY jobs_over WHERE " OVER
              " ORDER BY finished_ms LIMIT 1",
    .keys = JOB_KEYS(""),
    .remove =
        {
            "DELETE FROM metrics WHERE (run, key, step, time_ms, value, is_nan) IN (SELECT m.run,"
            " m.key, m.step, m.time_ms, m.value, m.is_nan FROM jobs j JOIN runs r ON r.job = j.id"
            " JOIN metrics m ON m.run = r.number WHERE j.id = :key AND j." OVER " LIMIT :n)",
            OF_RUNS("latest_metrics", "key"),
            OF_RUNS("run_parameters", "key"),
            OF_RUNS("run_tags", "key"),
            OF_RUNS("run_inputs", "dataset"),
            "DELETE FROM runs WHERE id IN (SELECT r.id FROM runs r JOIN jobs j ON j.id = r.job"
            " WHERE j.id = :key AND j." OVER " LIMIT :n)",
            "DELETE FROM tasks WHERE id IN (SELECT t.id FROM tasks t JOIN jobs j ON j.id = t.job"
            " WHERE j.id = :key AND j." OVER " LIMIT :n)",
            "DELETE FROM jobs WHERE id = :key AND " OVER,
        },
};
/* Of each task all that is left, a few at a time. */
static const struct retain_keyed attempts = {
    .count = "SELECT count(*) FROM attempts WHERE task IN (SELECT t.id FROM tasks t JOIN jobs j"
             " ON j.id = t.job WHERE j." OVER ")",
    .oldest =
        "SELECT finished_ms FROM jobs INDEXED BY jobs_over WHERE " OVER
        " AND EXISTS (SELECT 1 FROM tasks t"
        " JOIN attempts a ON a.task = t.id WHERE t.job = jobs.id) ORDER BY finished_ms LIMIT 1",
    .keys =
        "SELECT t.id FROM jobs j INDEXED BY jobs_over JOIN tasks t ON t.job = j.id WHERE j." OVER
        " AND j.finished_ms <= :before AND EXISTS (SELECT 1 FROM attempts WHERE task = t.id)"
        " ORDER BY j.finished_ms, t.id LIMIT :n",
    .remove = {"DELETE FROM attempts WHERE (task, number) IN (SELECT a.task, a.number"
               " FROM attempts a JOIN tasks t ON t.id = a.task JOIN jobs j ON j.id = t.job"
               " WHERE a.task = :key AND j." OVER " LIMIT :n)"},
};
#define OF_NO_JOB                                                                                  \
    "NOT EXISTS (SELECT 1 FROM ion_pipelines p WHERE p.ion = ion_replicas.ion"                     \
    " AND p.name = ion_replicas.pipeline AND"                                                      \
    " substr(ion_replicas.replica, 1, length(p.job) + 1) = p.job || '-')"
static const struct retain_keyed replica_reports = {
    .count = "SELECT count(*) FROM ion_replicas WHERE " OF_NO_JOB,
    .oldest = "SELECT min(time_ms) FROM ion_replicas WHERE " OF_NO_JOB,
    .keys = "SELECT id FROM ion_replicas WHERE time_ms <= :before AND " OF_NO_JOB
            " ORDER BY time_ms, id LIMIT :n",
    .remove = {"DELETE FROM ion_replicas WHERE id = :key AND " OF_NO_JOB},
};
/* What can be told again stays: ion/outcome.h, by the database's clock. */
#define TOLD_OUT "answered_ms <= (CAST(strftime('%s', 'now') AS BIGINT) - 7 * 86400) * 1000"
static const struct retain_keyed outcomes = {
    .count = "SELECT count(*) FROM outcomes",
    .oldest = "SELECT min(answered_ms) FROM outcomes",
    .keys = "SELECT id FROM outcomes WHERE answered_ms <= :before AND " TOLD_OUT
            " ORDER BY answered_ms, id LIMIT :n",
    .remove = {"DELETE FROM outcomes WHERE id = :key"},
};
static const struct retain_keyed actions = {
    .count = "SELECT count(*) FROM outbox WHERE state <> 'pending'",
    .oldest = "SELECT min(done_ms) FROM outbox WHERE state <> 'pending'",
    .keys = "SELECT key FROM outbox WHERE state <> 'pending' AND done_ms <= :before"
            " ORDER BY done_ms, seq LIMIT :n",
    .remove = {"DELETE FROM outbox WHERE key = :key AND state <> 'pending'"},
};

/* By their time: of one a few at a time. What an hour had goes into its day with the row (migration
 * 0022), so nothing is lost if that is cut short. */
#define USAGE(span)                                                                                \
    {                                                                                              \
        .count = "SELECT count(*) FROM usage WHERE span_ms = " span,                               \
        .oldest = "SELECT min(time_ms) FROM usage WHERE span_ms = " span,                          \
        .keys = "SELECT DISTINCT CAST(time_ms AS TEXT) FROM usage WHERE span_ms = " span           \
                " AND time_ms <= :before ORDER BY time_ms LIMIT :n",                               \
        .remove = {                                                                                \
            "DELETE FROM usage WHERE rowid IN (SELECT rowid FROM usage WHERE span_ms = " span      \
            " AND time_ms = CAST(:key AS BIGINT) LIMIT :n)"                                        \
        }                                                                                          \
    }
static const struct retain_keyed usage = USAGE("3600000");
static const struct retain_keyed usage_days = USAGE("86400000");
static const struct retain_keyed queue_history = {
    .count = "SELECT count(*) FROM queue_history WHERE time_ms > 0",
    .oldest = "SELECT min(time_ms) FROM queue_history WHERE time_ms > 0",
    .keys = "SELECT DISTINCT CAST(time_ms AS TEXT) FROM queue_history WHERE time_ms > 0"
            " AND time_ms <= :before ORDER BY time_ms LIMIT :n",
    .remove = {"DELETE FROM queue_history WHERE rowid IN (SELECT rowid FROM queue_history"
               " WHERE time_ms = CAST(:key AS BIGINT) AND time_ms > 0 LIMIT :n)"},
};
static const struct retain_keyed sent_blobs = {
    .count = "SELECT count(*) FROM sent_blobs",
    .oldest = "SELECT min(hour_ms) FROM sent_blobs",
    .keys = "SELECT DISTINCT CAST(hour_ms AS TEXT) FROM sent_blobs WHERE hour_ms <= :before"
            " ORDER BY hour_ms LIMIT :n",
    .remove = {"DELETE FROM sent_blobs WHERE (project, sha256) IN (SELECT project, sha256"
               " FROM sent_blobs WHERE hour_ms = CAST(:key AS BIGINT) LIMIT :n)"},
};

#define SWEEP_KEYS(of)                                                                             \
    "SELECT id FROM sweeps WHERE " OVER " AND ended_ms <= :before" of                              \
    " ORDER BY ended_ms, id LIMIT :n"
static const struct retain_keyed sweeps = {
    .count = "SELECT count(*) FROM sweeps WHERE " OVER,
    .oldest = "SELECT min(ended_ms) FROM sweeps WHERE " OVER,
    .keys = SWEEP_KEYS(""),
    .remove = {"DELETE FROM sweep_trials WHERE id IN (SELECT t.id FROM sweep_trials t"
               " JOIN sweeps s ON s.id = t.sweep WHERE s.id = :key AND s." OVER " LIMIT :n)",
               "DELETE FROM sweeps WHERE id = :key AND " OVER},
};

/* ---- of a project ---------------------------------------------------------------------------- */

#define OF_ION_ROWS(table)                                                                         \
    {                                                                                              \
        .keys = "SELECT name FROM ions WHERE project = :project AND EXISTS (SELECT 1 FROM " table  \
                " WHERE ion = ions.name AND time_ms <= :before) ORDER BY name LIMIT :n",           \
        .remove = {"DELETE FROM " table " WHERE seq IN (SELECT seq FROM " table                    \
                   " WHERE ion = :key AND time_ms <= :before LIMIT :n)"},                          \
        .count = "SELECT count(*) FROM " table " WHERE " OF_IONS " AND time_ms <= :before",        \
        .count_all = "SELECT count(*) FROM " table                                                 \
    }

static const struct retain_own own_decisions = OF_ION_ROWS("decisions");
static const struct retain_own own_health = OF_ION_ROWS("health_reports");
static const struct retain_own own_kpis = OF_ION_ROWS("kpis");
static const struct retain_own own_feedback = OF_ION_ROWS("feedback");
static const struct retain_own own_statistics = OF_ION_ROWS("statistics");

#define COUNTED(keys) "SELECT count(*) FROM (" keys ")"
static const struct retain_own own_policy_decisions = {
    .keys = POLICY_KEYS(" AND " OF_IONS), .count = COUNTED(POLICY_KEYS(" AND " OF_IONS))};
static const struct retain_own own_metrics = {
    .keys = METRIC_KEYS(OF_PROJECT),
    .count = "SELECT count(*) FROM metrics WHERE run IN (SELECT number FROM runs WHERE id IN"
             " (" METRIC_KEYS(OF_PROJECT) "))"};
static const struct retain_own own_jobs = {.keys = JOB_KEYS(OF_PROJECT),
                                           .count = COUNTED(JOB_KEYS(OF_PROJECT))};
static const struct retain_own own_sweeps = {.keys = SWEEP_KEYS(OF_PROJECT),
                                             .count = COUNTED(SWEEP_KEYS(OF_PROJECT))};

const struct retain_table retain_tables[WEIR_RETAIN_N] = {
    [WEIR_RETAIN_DECISIONS] = {.numbered = &decisions, .own = &own_decisions, .n_entries = 16},
    [WEIR_RETAIN_EVENTS] = {.numbered = &events, .n_entries = 8},
    [WEIR_RETAIN_AUDIT] = {.numbered = &audit, .n_entries = 8},
    [WEIR_RETAIN_ACCESSES] = {.numbered = &accesses, .n_entries = 8},
    [WEIR_RETAIN_HEALTH] = {.numbered = &health, .own = &own_health, .n_entries = 7},
    [WEIR_RETAIN_KPIS] = {.numbered = &kpis, .own = &own_kpis, .n_entries = 4},
    [WEIR_RETAIN_FEEDBACK] = {.numbered = &feedback, .own = &own_feedback, .n_entries = 5},
    [WEIR_RETAIN_OUTCOMES] = {.keyed = &outcomes, .n_entries = 6},
    [WEIR_RETAIN_STATISTICS] = {.numbered = &statistics, .own = &own_statistics, .n_entries = 5},
    [WEIR_RETAIN_ALERTS] = {.keyed = &alerts, .n_entries = 10},
    [WEIR_RETAIN_DELIVERIES] = {.keyed = &deliveries, .n_entries = 7},
    [WEIR_RETAIN_SILENCES] = {.keyed = &silences, .n_entries = 3},
    [WEIR_RETAIN_POLICY_DECISIONS] = {.keyed = &policy_decisions,
                                      .own = &own_policy_decisions,
                                      .n_entries = 5},
    [WEIR_RETAIN_METRICS] = {.keyed = &metrics, .own = &own_metrics, .n_entries = 2},
    [WEIR_RETAIN_JOBS] = {.keyed = &jobs, .own = &own_jobs, .n_entries = 12},
    [WEIR_RETAIN_SWEEPS] = {.keyed = &sweeps, .own = &own_sweeps, .n_entries = 4},
    [WEIR_RETAIN_ATTEMPTS] = {.keyed = &attempts, .n_entries = 2},
    [WEIR_RETAIN_REPLICA_REPORTS] = {.keyed = &replica_reports, .n_entries = 3},
    [WEIR_RETAIN_ACTIONS] = {.keyed = &actions, .n_entries = 5},
    [WEIR_RETAIN_USAGE] = {.keyed = &usage, .n_entries = 4},
    [WEIR_RETAIN_USAGE_DAYS] = {.keyed = &usage_days, .n_entries = 4},
    [WEIR_RETAIN_QUEUE_HISTORY] = {.keyed = &queue_history, .n_entries = 3},
    [WEIR_RETAIN_SENT_BLOBS] = {.keyed = &sent_blobs, .n_entries = 3},
};
