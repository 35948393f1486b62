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
    const struct retain_kind *kind = retain_kind(step->look->kind);
    const struct retain_sql *sql = &kind->sql;
    int64_t cut, first, began_us = (int64_t)(weir_mono_ns() / 1000);
    WEIR_TRY(weir_txn_query_int(txn, sql->first, WEIR_NO_BINDS, 0, &first, err));
    WEIR_TRY(weir_txn_query_int(
        txn, sql->cut_old,
        WEIR_BINDS(WEIR_BIND_INT("n", step->n), WEIR_BIND_INT("before", step->before)), first - 1,
        &cut, err));
    if (step->excess > 0) {
        int64_t n = WEIR_MIN(step->n, step->excess), cut_n;
        WEIR_TRY(weir_txn_query_int(txn, sql->cut_n, WEIR_BINDS(WEIR_BIND_INT("n", n)), first - 1,
                                    &cut_n, err));
        cut = WEIR_MAX(cut, cut_n);
    }
    step->n_removed = 0;
    if (cut >= first && kind->rule->trail != WEIR_TRAIL_NONE) {
        WEIR_TRY(weir_chain_cut(txn, kind->rule->trail, cut, err));
    }
    if (cut >= first) {
        WEIR_TRY(weir_txn_exec(txn, sql->remove[0], WEIR_BINDS(WEIR_BIND_INT("cut", cut)),
                               &step->n_removed, err));
    }
    step->took_us = (int64_t)(weir_mono_ns() / 1000) - began_us;
    return WEIR_OK;
}

static weir_status remove_key(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct step *step = context;
    int64_t began_us = (int64_t)(weir_mono_ns() / 1000);
    struct weir_bind binds[3] = {WEIR_BIND_TEXT("key", step->key)};
    size_t n_binds = 1;
    if (strstr(step->sql, ":n)") != NULL) {
        binds[n_binds++] = WEIR_BIND_INT("n", step->n);
    }
    if (strstr(step->sql, ":before") != NULL) {
        binds[n_binds++] = WEIR_BIND_INT("before", step->before);
    }
    WEIR_TRY(weir_txn_exec(txn, step->sql, binds, n_binds, &step->n_removed, err));
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

struct query {
    const char *sql;
    const struct weir_bind *binds;
    size_t n_binds;
    struct weir_arena *arena;
    int64_t value;
    char **texts;
    size_t n;
};

static weir_status query_int_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct query *query = context;
    return weir_txn_query_int(txn, query->sql, query->binds, query->n_binds, 0, &query->value, err);
}

static weir_status query_texts_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct query *query = context;
    return weir_txn_query_texts(txn, query->sql, query->binds, query->n_binds, query->arena,
                                &query->texts, &query->n, err);
}

weir_status retain_query_int(const struct retain_look *look, const char *sql,
                             const struct weir_bind *binds, size_t n_binds, int64_t *out,
                             struct weir_error *err)
{
    struct query query = {.sql = sql, .binds = binds, .n_binds = n_binds};
    WEIR_TRY(weir_store_read(look->retainer->config.store, query_int_in, &query, err));
    *out = query.value;
    return WEIR_OK;
}

weir_status retain_query_texts(const struct retain_look *look, const char *sql,
                               const struct weir_bind *binds, size_t n_binds, char ***out,
                               size_t *out_n, struct weir_error *err)
{
    struct query query = {.sql = sql, .binds = binds, .n_binds = n_binds, .arena = look->arena};
    WEIR_TRY(weir_store_read(look->retainer->config.store, query_texts_in, &query, err));
    *out = query.texts;
    *out_n = query.n;
    return WEIR_OK;
}

/* Where rows of projects have gone from between others, numbers say nothing. */
static weir_status count_rows(const struct retain_look *look, int64_t *out, struct weir_error *err)
{
    const struct retain_sql *sql = &retain_kind(look->kind)->sql;
    bool has_gaps = look->projects->has_gaps[look->kind] && sql->count_all != NULL;
    return retain_query_int(look, has_gaps ? sql->count_all : sql->count, WEIR_NO_BINDS, out, err);
}

/* By the platform's age; where projects have their own, retain_own_sweep has done it. */
static int64_t too_old_ms(const struct retain_look *look)
{
    return look->has_own ? INT64_MIN : retain_before(look, look->limit.keep_ms);
}

/* How many rows there are beyond the bound. */
static int64_t excess_of(const struct retain_look *look, int64_t count)
{
    if (look->limit.max_bytes < 0) {
        return 0;
    }
    return WEIR_MAX((int64_t)0,
                    count - look->limit.max_bytes / weir_retain_rule(look->kind)->row_bytes);
}

/* ---- sweeps ---------------------------------------------------------------------------------- */

static weir_status sweep_numbered(const struct retain_look *look, int64_t *n_removed,
                                  struct weir_error *err)
{
    int64_t n;
    WEIR_TRY(count_rows(look, &n, err));
    struct step step = {.look = look,
                        .i_pace = look->kind,
                        .before = too_old_ms(look),
                        .excess = excess_of(look, n)};
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

weir_status retain_rows_remove(const struct retain_look *look, const char *const *sql, size_t n,
                               const char *key, int64_t before, int64_t *n_removed,
                               struct weir_error *err)
{
    for (size_t i = 0; i < n && sql[i] != NULL; i++) {
        bool is_last = i + 1 == n || sql[i + 1] == NULL;
        struct step step = {
            .look = look, .i_pace = look->kind, .sql = sql[i], .key = key, .before = before};
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
    const struct retain_sql *sql = &retain_kind(look->kind)->sql;
    int64_t n_before = *n_removed;
    char **keys;
    size_t n;
    WEIR_TRY(
        retain_query_texts(look, sql->keys,
                           WEIR_BINDS(WEIR_BIND_INT("before", before),
                                      WEIR_BIND_INT("n", WEIR_MIN(n_wanted, (int64_t)KEYS_MAX))),
                           &keys, &n, err));
    for (size_t i = 0;
         i < n && *n_removed - n_before < n_wanted && !retain_is_stopping(look->retainer); i++) {
        WEIR_TRY(retain_rows_remove(look, sql->remove, RETAIN_REMOVE_MAX, keys[i], INT64_MIN,
                                    n_removed, err));
    }
    return WEIR_OK;
}

static weir_status sweep_keyed(const struct retain_look *look, int64_t *n_removed,
                               struct weir_error *err)
{
    int64_t n;
    WEIR_TRY(sweep_keys(look, too_old_ms(look), INT64_MAX, n_removed, err));
    WEIR_TRY(count_rows(look, &n, err));
    int64_t excess = excess_of(look, n);
    return excess > 0 ? sweep_keys(look, INT64_MAX, excess, n_removed, err) : WEIR_OK;
}

static weir_status sweep_rows(const struct retain_look *look, struct weir_error *err)
{
    int64_t n_removed = 0;
    if (look->has_own) {
        WEIR_TRY(retain_own_sweep(look, &n_removed, err));
    }
    weir_status status = weir_retain_rule(look->kind)->by == WEIR_ROWS_NUMBERED
                             ? sweep_numbered(look, &n_removed, err)
                             : sweep_keyed(look, &n_removed, err);
    if (n_removed > 0) {
        weir_log(WEIR_LOG_INFO, "retention_removed",
                 WEIR_KV_STR("kind", weir_retain_rule(look->kind)->name),
                 WEIR_KV_INT("rows", n_removed));
    }
    return status;
}

static weir_status measure_rows(const struct retain_look *look, struct retain_size *out,
                                struct weir_error *err)
{
    int64_t n, oldest;
    WEIR_TRY(count_rows(look, &n, err));
    WEIR_TRY(
        retain_query_int(look, retain_kind(look->kind)->sql.oldest, WEIR_NO_BINDS, &oldest, err));
    int64_t n_old = n > 0 && oldest <= too_old_ms(look);
    if (look->has_own) {
        WEIR_TRY(retain_own_count(look, &n_old, err));
    }
    *out = (struct retain_size){.n = n,
                                .bytes = n * weir_retain_rule(look->kind)->row_bytes,
                                .oldest_ms = n > 0 ? oldest : 0,
                                .n_going = WEIR_MAX(excess_of(look, n), n_old)};
    return WEIR_OK;
}

const struct retain_ops retain_rows_ops = {sweep_rows, measure_rows, retain_own_preview,
                                           RETAIN_MINUTE_MS};

/* ---- one job, because somebody says so ----------------------------------------------------------- */

#define JOB_STEP_ROWS 1000

weir_status weir_retain_job_remove(struct weir_store *store, const char *id, struct weir_error *err)
{
    const char *const *remove = retain_kind(weir_retain_kind_from_text(RETAIN_JOBS))->sql.remove;
    for (size_t i = 0; i < RETAIN_REMOVE_MAX && remove[i] != NULL; i++) {
        struct step step = {.sql = remove[i], .key = id, .n = JOB_STEP_ROWS};
        do {
            WEIR_TRY(weir_store_write(store, remove_key, &step, err));
        } while (step.n_removed > 0 && strstr(step.sql, ":n)") != NULL);
    }
    return WEIR_OK;
}
