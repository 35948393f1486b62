/**
 * Rows that go: the oldest first, a few at a time.
 *
 * Decisions, events and health reports are numbered in the order of arrival, and many: a step is
 * one range of numbers, and their count follows from the first and the last; of events, which are
 * three kinds, an index knows it. Of the other tables
 * the keys of what goes are read first, and each step deletes by key, with the condition asked
 * again, since a job may have been started again meanwhile.
 */
#include "retain/retain_private.h"

#include "base/log.h"
#include "store/chain.h"
#include "store/space.h"
#include "store/stmt.h"

#include <stdlib.h>
#include <string.h>

#define STEPS_MAX 256 /* of one kind at a time: the others have their turn */
#define KEYS_MAX  500

/** Less that is free is left in the file, to be used again. */
#define SHRINK_MIN_BYTES ((int64_t)16 << 20)

/** A numbered table, or part of one. cut_old: the last number of the first :n rows that is older
 * than :before; cut_n: of the first :n. */
struct numbered {
    const char *count, *first, *oldest, *cut_old, *cut_n, *remove;
    enum weir_trail trail; /**< Of the audit: what goes leaves a mark in its chain. */
};

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

static const struct numbered decisions = NUMBERED("decisions");
static const struct numbered events = EVENTS("0", WEIR_TRAIL_NONE);
static const struct numbered audit = EVENTS("1", WEIR_TRAIL_ACTS);
static const struct numbered accesses = EVENTS("2", WEIR_TRAIL_ACCESSES);
static const struct numbered health = NUMBERED("health_reports");
static const struct numbered kpis = NUMBERED("kpis");
static const struct numbered feedback = NUMBERED("feedback");
static const struct numbered statistics = NUMBERED("statistics");

/**
 * A table whose rows go by key. keys: those that may go, ended at :before or earlier, oldest
 * first, at most :n. remove: statements with :key, in order; each says how many rows of it go at
 * once by :n, and is repeated until none is left.
 */
struct keyed {
    const char *count, *oldest, *keys;
    const char *remove[10];
};

#define OVER "state IN ('SUCCEEDED', 'FAILED', 'CANCELLED')"
#define IN_USE                                                                                     \
    "state IN ('PENDING_REVIEW', 'WAITING', 'APPROVED', 'SHADOW', 'CANARY', 'AB', 'SERVING')"

static const struct keyed alerts = {
    .count = "SELECT count(*) FROM alerts WHERE state = 'resolved'",
    .oldest = "SELECT min(resolved_ms) FROM alerts WHERE state = 'resolved'",
    .keys = "SELECT id FROM alerts WHERE state = 'resolved' AND resolved_ms <= :before"
            " ORDER BY resolved_ms, id LIMIT :n",
    .remove = {"DELETE FROM alert_firings WHERE alert IN (SELECT id FROM alerts WHERE id = :key"
               " AND state = 'resolved')",
               "DELETE FROM alerts WHERE id = :key AND state = 'resolved'"},
};
static const struct keyed deliveries = {
    .count = "SELECT count(*) FROM alert_deliveries WHERE state <> 'pending'",
    .oldest = "SELECT min(done_ms) FROM alert_deliveries WHERE state <> 'pending'",
    .keys = "SELECT id FROM alert_deliveries WHERE state <> 'pending' AND done_ms <= :before"
            " ORDER BY done_ms, seq LIMIT :n",
    .remove = {"DELETE FROM alert_deliveries WHERE id = :key AND state <> 'pending'"},
};
static const struct keyed silences = {
    .count = "SELECT count(*) FROM alert_silences WHERE ended_ms > 0",
    .oldest = "SELECT min(ended_ms) FROM alert_silences WHERE ended_ms > 0",
    .keys = "SELECT id FROM alert_silences WHERE ended_ms > 0 AND ended_ms <= :before"
            " ORDER BY ended_ms, id LIMIT :n",
    .remove = {"DELETE FROM alert_silences WHERE id = :key AND ended_ms > 0"},
};
static const struct keyed policy_decisions = {
    .count = "SELECT count(*) FROM policy_decisions",
    .oldest = "SELECT min(time_ms) FROM policy_decisions",
    .keys = "SELECT id FROM policy_decisions WHERE time_ms <= :before AND candidate NOT IN"
            " (SELECT id FROM ion_candidates WHERE " IN_USE ") ORDER BY time_ms, id LIMIT :n",
    .remove = {"DELETE FROM policy_decisions WHERE id = :key AND candidate NOT IN"
               " (SELECT id FROM ion_candidates WHERE " IN_USE ")"},
};
static const struct keyed metrics = {
    .count = "SELECT count(*) FROM metrics",
    .oldest = "SELECT min(finished_ms) FROM runs WHERE finished_ms > 0 AND EXISTS"
              " (SELECT 1 FROM metrics WHERE run = runs.number)",
    .keys = "SELECT id FROM runs WHERE finished_ms > 0 AND finished_ms <= :before AND"
            " EXISTS (SELECT 1 FROM metrics WHERE run = runs.number) AND id NOT IN"
            " (SELECT v.run FROM model_versions v JOIN ion_candidates c ON c.model_version = v.id"
            " WHERE c." IN_USE " AND v.run IS NOT NULL) AND id NOT IN"
            " (SELECT v.run FROM model_versions v JOIN deployment_versions d ON d.model = v.model"
            " AND d.version = v.version WHERE v.run IS NOT NULL) AND id NOT IN"
            " (SELECT v.run FROM model_versions v JOIN model_aliases a ON a.model = v.model"
            " AND a.version = v.version WHERE v.run IS NOT NULL) ORDER BY finished_ms, id LIMIT :n",
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
static const struct keyed jobs = {
    .count = "SELECT count(*) FROM jobs WHERE " OVER,
    .oldest = "SELECT min(finished_ms) FROM jobs WHERE " OVER,
    .keys = "SELECT id FROM jobs WHERE " OVER " AND finished_ms <= :before AND id NOT IN"
            " (SELECT job FROM ion_pipelines WHERE job IS NOT NULL) AND id NOT IN"
            " (SELECT r.job FROM runs r JOIN model_versions v ON v.run = r.id"
            " WHERE r.job IS NOT NULL) ORDER BY finished_ms, id LIMIT :n",
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
static const struct keyed attempts = {
    .count = "SELECT count(*) FROM attempts WHERE task IN (SELECT t.id FROM tasks t JOIN jobs j"
             " ON j.id = t.job WHERE j." OVER ")",
    .oldest = "SELECT min(finished_ms) FROM jobs WHERE " OVER " AND EXISTS (SELECT 1 FROM tasks t"
              " JOIN attempts a ON a.task = t.id WHERE t.job = jobs.id)",
    .keys = "SELECT t.id FROM jobs j JOIN tasks t ON t.job = j.id WHERE j." OVER
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
static const struct keyed replica_reports = {
    .count = "SELECT count(*) FROM ion_replicas WHERE " OF_NO_JOB,
    .oldest = "SELECT min(time_ms) FROM ion_replicas WHERE " OF_NO_JOB,
    .keys = "SELECT id FROM ion_replicas WHERE time_ms <= :before AND " OF_NO_JOB
            " ORDER BY time_ms, id LIMIT :n",
    .remove = {"DELETE FROM ion_replicas WHERE id = :key AND " OF_NO_JOB},
};
/* What can be told again stays: ion/outcome.h, by the database's clock. */
#define TOLD_OUT "answered_ms <= (CAST(strftime('%s', 'now') AS BIGINT) - 7 * 86400) * 1000"
static const struct keyed outcomes = {
    .count = "SELECT count(*) FROM outcomes",
    .oldest = "SELECT min(answered_ms) FROM outcomes",
    .keys = "SELECT id FROM outcomes WHERE answered_ms <= :before AND " TOLD_OUT
            " ORDER BY answered_ms, id LIMIT :n",
    .remove = {"DELETE FROM outcomes WHERE id = :key"},
};
static const struct keyed actions = {
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
static const struct keyed usage = USAGE("3600000");
static const struct keyed usage_days = USAGE("86400000");
static const struct keyed queue_history = {
    .count = "SELECT count(*) FROM queue_history WHERE time_ms > 0",
    .oldest = "SELECT min(time_ms) FROM queue_history WHERE time_ms > 0",
    .keys = "SELECT DISTINCT CAST(time_ms AS TEXT) FROM queue_history WHERE time_ms > 0"
            " AND time_ms <= :before ORDER BY time_ms LIMIT :n",
    .remove = {"DELETE FROM queue_history WHERE rowid IN (SELECT rowid FROM queue_history"
               " WHERE time_ms = CAST(:key AS BIGINT) AND time_ms > 0 LIMIT :n)"},
};
static const struct keyed sent_blobs = {
    .count = "SELECT count(*) FROM sent_blobs",
    .oldest = "SELECT min(hour_ms) FROM sent_blobs",
    .keys = "SELECT DISTINCT CAST(hour_ms AS TEXT) FROM sent_blobs WHERE hour_ms <= :before"
            " ORDER BY hour_ms LIMIT :n",
    .remove = {"DELETE FROM sent_blobs WHERE (project, sha256) IN (SELECT project, sha256"
               " FROM sent_blobs WHERE hour_ms = CAST(:key AS BIGINT) LIMIT :n)"},
};

static const struct keyed sweeps = {
    .count = "SELECT count(*) FROM sweeps WHERE " OVER,
    .oldest = "SELECT min(ended_ms) FROM sweeps WHERE " OVER,
    .keys = "SELECT id FROM sweeps WHERE " OVER
            " AND ended_ms <= :before ORDER BY ended_ms, id LIMIT :n",
    .remove = {"DELETE FROM sweep_trials WHERE id IN (SELECT t.id FROM sweep_trials t"
               " JOIN sweeps s ON s.id = t.sweep WHERE s.id = :key AND s." OVER " LIMIT :n)",
               "DELETE FROM sweeps WHERE id = :key AND " OVER},
};

static const struct rows {
    const struct numbered *numbered; /**< One of the two. */
    const struct keyed *keyed;
    int64_t n_entries; /**< Of a row: itself and its indexes; of several tables the most. */
} rows[WEIR_RETAIN_N] = {
    [WEIR_RETAIN_DECISIONS] = {.numbered = &decisions, .n_entries = 10},
    [WEIR_RETAIN_EVENTS] = {.numbered = &events, .n_entries = 4},
    [WEIR_RETAIN_AUDIT] = {.numbered = &audit, .n_entries = 4},
    [WEIR_RETAIN_ACCESSES] = {.numbered = &accesses, .n_entries = 4},
    [WEIR_RETAIN_HEALTH] = {.numbered = &health, .n_entries = 7},
    [WEIR_RETAIN_KPIS] = {.numbered = &kpis, .n_entries = 3},
    [WEIR_RETAIN_FEEDBACK] = {.numbered = &feedback, .n_entries = 4},
    [WEIR_RETAIN_OUTCOMES] = {.keyed = &outcomes, .n_entries = 5},
    [WEIR_RETAIN_STATISTICS] = {.numbered = &statistics, .n_entries = 4},
    [WEIR_RETAIN_ALERTS] = {.keyed = &alerts, .n_entries = 7},
    [WEIR_RETAIN_DELIVERIES] = {.keyed = &deliveries, .n_entries = 6},
    [WEIR_RETAIN_SILENCES] = {.keyed = &silences, .n_entries = 3},
    [WEIR_RETAIN_POLICY_DECISIONS] = {.keyed = &policy_decisions, .n_entries = 3},
    [WEIR_RETAIN_METRICS] = {.keyed = &metrics, .n_entries = 2},
    [WEIR_RETAIN_JOBS] = {.keyed = &jobs, .n_entries = 7},
    [WEIR_RETAIN_SWEEPS] = {.keyed = &sweeps, .n_entries = 4},
    [WEIR_RETAIN_ATTEMPTS] = {.keyed = &attempts, .n_entries = 2},
    [WEIR_RETAIN_REPLICA_REPORTS] = {.keyed = &replica_reports, .n_entries = 3},
    [WEIR_RETAIN_ACTIONS] = {.keyed = &actions, .n_entries = 4},
    [WEIR_RETAIN_USAGE] = {.keyed = &usage, .n_entries = 4},
    [WEIR_RETAIN_USAGE_DAYS] = {.keyed = &usage_days, .n_entries = 4},
    [WEIR_RETAIN_QUEUE_HISTORY] = {.keyed = &queue_history, .n_entries = 3},
    [WEIR_RETAIN_SENT_BLOBS] = {.keyed = &sent_blobs, .n_entries = 3},
};

int64_t retain_rows_entries(enum weir_retain_kind kind)
{
    return WEIR_MAX((int64_t)1, rows[kind].n_entries);
}

/* ---- steps ----------------------------------------------------------------------------------- */

/** One transaction that deletes. */
struct step {
    const struct retain_look *look;
    int i_pace;     /**< Of retainer->paces. */
    int64_t n;      /**< Rows at most. */
    int64_t before; /**< What is not later goes. */
    int64_t excess; /**< So many go whatever their age. */
    const char *sql, *key;
    int64_t n_removed; /**< Out. */
    int64_t took_us;   /**< Out. */
};

static void count(struct weir_retainer *retainer, int64_t took_us)
{
    pthread_mutex_lock(&retainer->lock);
    retainer->n_steps++;
    retainer->n_long_steps += took_us > PACE_STEP_MAX_US;
    retainer->longest_step_us = WEIR_MAX(retainer->longest_step_us, took_us);
    pthread_mutex_unlock(&retainer->lock);
}

/* Its time is how long the writer is held; the fsync behind it is shared with whoever waits. */
static weir_status take_step(struct step *step, weir_txn_fn fn, struct weir_error *err)
{
    struct weir_retainer *retainer = step->look->retainer;
    struct retain_pace *pace = &retainer->paces[step->i_pace];
    step->n = retain_pace_rows(pace);
    step->n_removed = 0;
    WEIR_TRY(weir_store_write(retainer->config.store, fn, step, err));
    if (step->n_removed > 0) {
        retain_pace_note(pace, step->n_removed, step->took_us);
        count(retainer, step->took_us);
        retain_pause(retainer, step->took_us * 4 / 1000 + 1);
    }
    return WEIR_OK;
}

static weir_status remove_range(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct step *step = context;
    const struct numbered *table = rows[step->look->kind].numbered;
    int64_t cut, first, began_us = (int64_t)(weir_mono_ns() / 1000);
    WEIR_TRY(weir_txn_query_int(txn, table->first, WEIR_NO_BINDS, 0, &first, err));
    WEIR_TRY(weir_txn_query_int(
        txn, table->cut_old,
        WEIR_BINDS(WEIR_BIND_INT("n", step->n), WEIR_BIND_INT("before", step->before)), first - 1,
        &cut, err));
    if (step->excess > 0) {
        int64_t n = WEIR_MIN(step->n, step->excess), cut_n;
        WEIR_TRY(weir_txn_query_int(txn, table->cut_n, WEIR_BINDS(WEIR_BIND_INT("n", n)), first - 1,
                                    &cut_n, err));
        cut = WEIR_MAX(cut, cut_n);
    }
    step->n_removed = 0;
    if (cut >= first && table->trail != WEIR_TRAIL_NONE) {
        WEIR_TRY(weir_chain_cut(txn, table->trail, cut, err));
    }
    if (cut >= first) {
        WEIR_TRY(weir_txn_exec(txn, table->remove, WEIR_BINDS(WEIR_BIND_INT("cut", cut)),
                               &step->n_removed, err));
    }
    step->took_us = (int64_t)(weir_mono_ns() / 1000) - began_us;
    return WEIR_OK;
}

static weir_status remove_key(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct step *step = context;
    int64_t began_us = (int64_t)(weir_mono_ns() / 1000);
    bool has_n = strstr(step->sql, ":n") != NULL;
    struct weir_bind binds[] = {WEIR_BIND_TEXT("key", step->key), WEIR_BIND_INT("n", step->n)};
    WEIR_TRY(weir_txn_exec(txn, step->sql, binds, has_n ? 2 : 1, &step->n_removed, err));
    step->took_us = (int64_t)(weir_mono_ns() / 1000) - began_us;
    return WEIR_OK;
}

/* ---- the file ----------------------------------------------------------------------------------
 */

static weir_status look_at_space(struct weir_txn *txn, void *context, struct weir_error *err)
{
    return weir_txn_space(txn, context, err);
}

static weir_status shrink(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct step *step = context;
    int64_t began_us = (int64_t)(weir_mono_ns() / 1000);
    WEIR_TRY(weir_txn_shrink(txn, step->n, err));
    step->n_removed = step->n;
    step->took_us = (int64_t)(weir_mono_ns() / 1000) - began_us;
    return WEIR_OK;
}

/* After a limit was lowered; what comes and goes leaves far less free. */
weir_status retain_shrink(struct weir_retainer *retainer, struct weir_error *err)
{
    struct weir_store_space space;
    struct retain_look look = {.retainer = retainer};
    struct step step = {.look = &look, .i_pace = RETAIN_PACE_SHRINK};
    for (int i = 0; i < STEPS_MAX && !retain_is_stopping(retainer); i++) {
        WEIR_TRY(weir_store_read(retainer->config.store, look_at_space, &space, err));
        if (!space.can_shrink || space.free_bytes < SHRINK_MIN_BYTES ||
            space.free_bytes < space.bytes / 4) {
            break;
        }
        WEIR_TRY(take_step(&step, shrink, err));
    }
    return WEIR_OK;
}

/* ---- what there is --------------------------------------------------------------------------- */

struct reading {
    const struct retain_look *look;
    int64_t before, n;
    int64_t count, oldest;
    char **keys;
    size_t n_keys;
};

static weir_status read_counts(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct reading *reading = context;
    const struct rows *table = &rows[reading->look->kind];
    const char *count = table->keyed != NULL ? table->keyed->count : table->numbered->count;
    const char *oldest = table->keyed != NULL ? table->keyed->oldest : table->numbered->oldest;
    WEIR_TRY(weir_txn_query_int(txn, count, WEIR_NO_BINDS, 0, &reading->count, err));
    return weir_txn_query_int(txn, oldest, WEIR_NO_BINDS, 0, &reading->oldest, err);
}

static weir_status read_keys(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct reading *reading = context;
    return weir_txn_query_texts(
        txn, rows[reading->look->kind].keyed->keys,
        WEIR_BINDS(WEIR_BIND_INT("before", reading->before), WEIR_BIND_INT("n", reading->n)),
        reading->look->arena, &reading->keys, &reading->n_keys, err);
}

/* What ended at that time or before is too old; INT64_MIN: nothing is. */
static int64_t too_old_ms(const struct retain_look *look)
{
    return look->limit.keep_ms < 0 ? INT64_MIN : look->now_ms - look->limit.keep_ms;
}

/* How many rows there are beyond the bound. */
static int64_t excess_of(const struct retain_look *look, int64_t count)
{
    if (look->limit.max_bytes < 0) {
        return 0;
    }
    return WEIR_MAX((int64_t)0,
                    count - look->limit.max_bytes / weir_retain_rules[look->kind].row_bytes);
}

/* ---- sweeps ---------------------------------------------------------------------------------- */

static weir_status sweep_numbered(const struct retain_look *look, int64_t *n_removed,
                                  struct weir_error *err)
{
    struct reading reading = {.look = look};
    WEIR_TRY(weir_store_read(look->retainer->config.store, read_counts, &reading, err));
    struct step step = {.look = look,
                        .i_pace = look->kind,
                        .before = too_old_ms(look),
                        .excess = excess_of(look, reading.count)};
    look->retainer->has_more = true;
    for (int i = 0; i < STEPS_MAX && !retain_is_stopping(look->retainer); i++) {
        WEIR_TRY(take_step(&step, remove_range, err));
        *n_removed += step.n_removed;
        step.excess = WEIR_MAX((int64_t)0, step.excess - step.n_removed);
        if (step.n_removed == 0) {
            look->retainer->has_more = false;
            break;
        }
    }
    return WEIR_OK;
}

/* Everything of one key: each statement until it finds nothing. What the last one takes counts. */
static weir_status remove_all_of(const struct retain_look *look, const char *key,
                                 int64_t *n_removed, struct weir_error *err)
{
    const struct keyed *table = rows[look->kind].keyed;
    for (size_t i = 0; i < WEIR_ARRAY_LEN(table->remove) && table->remove[i] != NULL; i++) {
        bool is_last = i + 1 == WEIR_ARRAY_LEN(table->remove) || table->remove[i + 1] == NULL;
        struct step step = {
            .look = look, .i_pace = look->kind, .sql = table->remove[i], .key = key};
        do {
            WEIR_TRY(take_step(&step, remove_key, err));
            *n_removed += is_last ? step.n_removed : 0;
        } while (step.n_removed > 0 && strstr(step.sql, ":n") != NULL &&
                 !retain_is_stopping(look->retainer));
    }
    return WEIR_OK;
}

/* Metrics are counted in rows and go by runs: one run at a time then, until enough have gone. */
static weir_status sweep_keys(const struct retain_look *look, int64_t before, int64_t n_wanted,
                              int64_t *n_removed, struct weir_error *err)
{
    struct reading reading = {
        .look = look, .before = before, .n = WEIR_MIN(n_wanted, (int64_t)KEYS_MAX)};
    int64_t n_before = *n_removed;
    WEIR_TRY(weir_store_read(look->retainer->config.store, read_keys, &reading, err));
    for (size_t i = 0; i < reading.n_keys && *n_removed - n_before < n_wanted &&
                       !retain_is_stopping(look->retainer);
         i++) {
        WEIR_TRY(remove_all_of(look, reading.keys[i], n_removed, err));
    }
    return WEIR_OK;
}

static weir_status sweep_keyed(const struct retain_look *look, int64_t *n_removed,
                               struct weir_error *err)
{
    struct reading reading = {.look = look};
    WEIR_TRY(sweep_keys(look, too_old_ms(look), INT64_MAX, n_removed, err));
    WEIR_TRY(weir_store_read(look->retainer->config.store, read_counts, &reading, err));
    int64_t excess = excess_of(look, reading.count);
    return excess > 0 ? sweep_keys(look, INT64_MAX, excess, n_removed, err) : WEIR_OK;
}

weir_status retain_rows_sweep(const struct retain_look *look, struct weir_error *err)
{
    int64_t n_removed = 0;
    weir_status status = rows[look->kind].keyed != NULL ? sweep_keyed(look, &n_removed, err)
                                                        : sweep_numbered(look, &n_removed, err);
    if (n_removed > 0) {
        weir_log(WEIR_LOG_INFO, "retention_removed",
                 WEIR_KV_STR("kind", weir_retain_rules[look->kind].name),
                 WEIR_KV_INT("rows", n_removed));
    }
    return status;
}

weir_status retain_rows_measure(const struct retain_look *look, struct retain_size *out,
                                struct weir_error *err)
{
    struct reading reading = {.look = look};
    WEIR_TRY(weir_store_read(look->retainer->config.store, read_counts, &reading, err));
    bool is_old = reading.count > 0 && reading.oldest <= too_old_ms(look);
    int64_t excess = excess_of(look, reading.count);
    *out = (struct retain_size){.n = reading.count,
                                .bytes = reading.count * weir_retain_rules[look->kind].row_bytes,
                                .oldest_ms = reading.count > 0 ? reading.oldest : 0,
                                .n_going = WEIR_MAX(excess, (int64_t)is_old)};
    return WEIR_OK;
}
