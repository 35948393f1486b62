/** Histories of metrics. */
#include "mlflow/call.h"

#include "base/base64.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HISTORY_MAX       1000000
#define HISTORY_PAGE      25000 /* without max_results: read in pieces, answered whole */
#define BULK_MAX          25000
#define BULK_RUNS_MAX     100
#define INTERVAL_MAX      2500
#define INTERVAL_READ_MAX ((size_t)200000) /* points of all runs from which a sample is chosen */

static struct weir_metric_place place_of(const struct weir_metric *metric)
{
    bool is_nan = isnan(metric->value);
    return (struct weir_metric_place){metric->step, metric->time_ms, is_nan ? 0 : metric->value,
                                      is_nan};
}

/* A token is the place of the last point: base64 of its four numbers. */
static char *make_token(const struct weir_metric *last, struct weir_arena *arena)
{
    const struct weir_metric_place place = place_of(last);
    char *text = weir_arena_printf(arena, "%" PRId64 " %" PRId64 " %a %d", place.step,
                                   place.time_ms, place.value, place.is_nan);
    char *token = weir_arena_alloc(arena, WEIR_BASE64_TEXT_BYTES(strlen(text)));
    return weir_base64_encode(text, strlen(text), token);
}

static weir_status read_token(const char *token, struct weir_metric_place *out,
                              struct weir_error *err)
{
    char text[160];
    size_t n = 0;
    if (weir_base64_decode(token, text, sizeof text - 1, &n) == WEIR_OK) {
        char *end;
        text[n] = '\0';
        out->step = strtoll(text, &end, 10);
        out->time_ms = strtoll(end, &end, 10);
        out->value = strtod(end, &end);
        out->is_nan = strtol(end, &end, 10) != 0;
        if (n > 0 && *end == '\0' && isfinite(out->value)) {
            return WEIR_OK;
        }
    }
    return weir_error_set(err, WEIR_ERR_INVALID,
                          "Invalid page token: it is not one that this history gave");
}

/** What is written, over several pages and runs. */
struct writing {
    struct weir_buf buf;
    size_t n;
};

static void put_points(struct writing *writing, const struct weir_metric *metrics, size_t n,
                       const char *run_id)
{
    for (size_t i = 0; i < n; i++) {
        (void)weir_buf_append(&writing->buf, ",", writing->n++ > 0 ? 1 : 0);
        mlflow_put_metric(&writing->buf, &metrics[i], run_id);
    }
}

static weir_status finish(struct weir_mlflow_call *call, struct writing *writing, const char *next,
                          weir_status status, const struct weir_error *why, struct weir_error *err)
{
    if (status == WEIR_OK) {
        (void)weir_buf_puts(&writing->buf, "]");
        mlflow_put_member(&writing->buf, "next_page_token", next);
        (void)weir_buf_puts(&writing->buf, "}");
    }
    if (status == WEIR_OK && writing->buf.status != WEIR_OK) {
        weir_buf_fini(&writing->buf);
        return weir_error_set(err, WEIR_ERR_LIMIT,
                              "the history is more than %zu MiB: ask for it in pages with "
                              "max_results",
                              MLFLOW_ANSWER_MAX_BYTES >> 20);
    }
    if (status != WEIR_OK) {
        weir_buf_fini(&writing->buf);
        return weir_error_set(err, status, "%s", why->message);
    }
    mlflow_answer_buf(call, &writing->buf);
    return WEIR_OK;
}

static void begin(struct writing *writing)
{
    writing->n = 0;
    weir_buf_init(&writing->buf, MLFLOW_ANSWER_MAX_BYTES);
    (void)weir_buf_puts(&writing->buf, "{\"metrics\":[");
}

/* Up to `limit` points from a place on, in pieces whose memory is given back. */
static weir_status put_history(struct writing *writing, struct weir_txn *txn, int64_t run,
                               const char *run_id, const char *key, struct weir_metric_place *after,
                               size_t limit, struct weir_arena *arena, char **out_next,
                               struct weir_error *err)
{
    bool has_more = true;
    *out_next = NULL;
    while (limit > 0 && has_more && writing->buf.status == WEIR_OK) {
        struct weir_arena piece;
        struct weir_metric *metrics;
        size_t n, wanted = WEIR_MIN(limit, (size_t)HISTORY_PAGE);
        weir_arena_init(&piece, 0);
        weir_status status =
            weir_metrics_page(txn, run, key, after, wanted, &piece, &metrics, &n, err);
        if (status == WEIR_OK && n > 0) {
            put_points(writing, metrics, n, run_id);
            *after = place_of(&metrics[n - 1]);
            limit -= n;
            *out_next = n == wanted && limit == 0 ? make_token(&metrics[n - 1], arena) : NULL;
        }
        has_more = status == WEIR_OK && n == wanted;
        weir_arena_fini(&piece);
        WEIR_TRY(status);
    }
    return WEIR_OK;
}

/* The first place of all. */
static const struct weir_metric_place first_place = {INT64_MIN, INT64_MIN, -INFINITY, false};

weir_status mlflow_history(struct weir_mlflow_call *call, struct weir_txn *txn,
                           struct weir_error *err)
{
    struct mlflow_run run;
    struct writing writing;
    struct weir_metric_place place = first_place;
    struct weir_error why = {0};
    const char *id, *key, *token;
    int64_t limit;
    char *next;
    WEIR_TRY(mlflow_run_id(call, &id, err));
    WEIR_TRY(mlflow_text_required(call, "metric_key", &key, err));
    WEIR_TRY(mlflow_text(call, "page_token", &token, err));
    WEIR_TRY(mlflow_max_results(call, HISTORY_MAX, INT32_MAX, &limit, err));
    WEIR_TRY(mlflow_find_run(call, txn, id, &run, err));
    if (token != NULL && *token != '\0') {
        WEIR_TRY(read_token(token, &place, err));
    }
    begin(&writing);
    weir_status status = put_history(&writing, txn, run.number, NULL, key, &place, (size_t)limit,
                                     call->arena, &next, &why);
    return finish(call, &writing, next, status, &why, err);
}

/* ---- of several runs ----------------------------------------------------------------------------- */

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

weir_status mlflow_history_bulk(struct weir_mlflow_call *call, struct weir_txn *txn,
                                struct weir_error *err)
{
    const char **ids, *key;
    struct writing writing;
    struct weir_error why = {0};
    size_t n_ids;
    int64_t limit;
    WEIR_TRY(mlflow_texts(call, "run_id", &ids, &n_ids, err));
    WEIR_TRY(mlflow_text(call, "metric_key", &key, err));
    WEIR_TRY(mlflow_int(call, "max_results", BULK_MAX, &limit, err));
    if (n_ids == 0) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "GetMetricHistoryBulk request must specify at least one run_id.");
    }
    if (n_ids > BULK_RUNS_MAX) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "GetMetricHistoryBulk request cannot specify more than %d run_ids. "
                              "Received %zu run_ids.",
                              BULK_RUNS_MAX, n_ids);
    }
    if (key == NULL || *key == '\0') {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "GetMetricHistoryBulk request must specify a metric_key.");
    }
    limit = WEIR_MAX((int64_t)0, WEIR_MIN(limit, (int64_t)BULK_MAX));
    qsort(ids, n_ids, sizeof *ids, by_text);
    begin(&writing);
    weir_status status = WEIR_OK;
    for (size_t i = 0; i < n_ids && status == WEIR_OK && writing.n < (size_t)limit; i++) {
        struct mlflow_run run;
        struct weir_metric_place place = first_place;
        char *next;
        status = mlflow_find_run(call, txn, ids[i], &run, &why);
        if (status == WEIR_OK) {
            status = put_history(&writing, txn, run.number, ids[i], key, &place,
                                 (size_t)limit - writing.n, call->arena, &next, &why);
        }
    }
    return finish(call, &writing, NULL, status, &why, err);
}

/* ---- a sample of steps --------------------------------------------------------------------------- */

/** The histories of all runs asked for, and the steps that are answered of them. */
struct interval {
    struct weir_metric **metrics; /**< By run. */
    size_t *n_metrics;
    const char **ids;
    size_t n_ids;
    int64_t *steps; /**< Sorted, each once. */
    size_t n_steps;
    int64_t first, last;
};

static int by_number(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static size_t keep_each_once(int64_t *steps, size_t n)
{
    size_t n_kept = 0;
    qsort(steps, n, sizeof *steps, by_number);
    for (size_t i = 0; i < n; i++) {
        if (n_kept == 0 || steps[n_kept - 1] != steps[i]) {
            steps[n_kept++] = steps[i];
        }
    }
    return n_kept;
}

/* At most n_max of the steps inside of the range, evenly, with the first and the last of each run. */
static void choose_steps(struct interval *interval, size_t n_max, struct weir_arena *arena)
{
    size_t n_all = 0, n = 0, n_kept = 0;
    for (size_t i = 0; i < interval->n_ids; i++) {
        n_all += interval->n_metrics[i];
    }
    int64_t *all = WEIR_ARENA_ARRAY(arena, n_all + 1, int64_t);
    int64_t *kept = WEIR_ARENA_ARRAY(arena, n_max + 1 + 2 * interval->n_ids, int64_t);
    for (size_t i = 0; i < interval->n_ids; i++) {
        const struct weir_metric *metrics = interval->metrics[i];
        for (size_t k = 0; k < interval->n_metrics[i]; k++) {
            bool is_end = k == 0 || k + 1 == interval->n_metrics[i];
            if (metrics[k].step >= interval->first && metrics[k].step <= interval->last) {
                all[n++] = metrics[k].step;
                if (is_end) {
                    kept[n_kept++] = metrics[k].step;
                }
            }
        }
    }
    n = keep_each_once(all, n);
    if (n <= n_max) {
        interval->steps = all;
        interval->n_steps = n;
        return;
    }
    for (size_t i = 0; i < n_max; i++) {
        kept[n_kept++] = all[(size_t)((double)i * (double)n / (double)n_max)];
    }
    kept[n_kept++] = all[n - 1];
    interval->steps = kept;
    interval->n_steps = keep_each_once(kept, n_kept);
}

static weir_status read_range(const struct weir_mlflow_call *call, struct interval *interval,
                              struct weir_error *err)
{
    bool has_first = mlflow_has(call, "start_step"), has_last = mlflow_has(call, "end_step");
    WEIR_TRY(mlflow_int(call, "start_step", INT64_MIN, &interval->first, err));
    WEIR_TRY(mlflow_int(call, "end_step", INT64_MAX, &interval->last, err));
    if (has_first != has_last) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "If either start step or end step are specified, both must be "
                              "specified.");
    }
    return interval->first <= interval->last
               ? WEIR_OK
               : weir_error_set(err, WEIR_ERR_INVALID,
                                "end_step must be greater than start_step. Found start_step=%lld "
                                "and end_step=%lld.",
                                (long long)interval->first, (long long)interval->last);
}

static weir_status read_interval(struct weir_mlflow_call *call, struct weir_txn *txn,
                                 const char *key, struct interval *interval, struct weir_error *err)
{
    size_t left = INTERVAL_READ_MAX;
    interval->metrics = WEIR_ARENA_ARRAY(call->arena, interval->n_ids, struct weir_metric *);
    interval->n_metrics = WEIR_ARENA_ARRAY(call->arena, interval->n_ids, size_t);
    for (size_t i = 0; i < interval->n_ids; i++) {
        struct mlflow_run run;
        size_t n_max = left / (interval->n_ids - i);
        n_max = WEIR_MAX((size_t)2, WEIR_MIN(n_max, (size_t)10000));
        WEIR_TRY(mlflow_find_run(call, txn, interval->ids[i], &run, err));
        WEIR_TRY(weir_metrics_sample(txn, run.number, key, n_max, call->arena,
                                     &interval->metrics[i], &interval->n_metrics[i], err));
        left -= WEIR_MIN(left, interval->n_metrics[i]);
    }
    return WEIR_OK;
}

weir_status mlflow_history_interval(struct weir_mlflow_call *call, struct weir_txn *txn,
                                    struct weir_error *err)
{
    struct interval interval = {0};
    struct writing writing;
    const char *key;
    int64_t n_max;
    WEIR_TRY(mlflow_texts(call, "run_ids", &interval.ids, &interval.n_ids, err));
    if (interval.n_ids == 0) {
        return mlflow_missing("run_ids", err);
    }
    if (interval.n_ids > BULK_RUNS_MAX) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "GetMetricHistoryBulkInterval request must specify at most %d "
                              "run_ids. Received %zu run_ids.",
                              BULK_RUNS_MAX, interval.n_ids);
    }
    WEIR_TRY(mlflow_text_required(call, "metric_key", &key, err));
    WEIR_TRY(mlflow_int(call, "max_results", INTERVAL_MAX, &n_max, err));
    if (n_max < 1 || n_max > INTERVAL_MAX) {
        return weir_error_set(err, WEIR_ERR_INVALID, "max_results must be between 1 and %d.",
                              INTERVAL_MAX);
    }
    WEIR_TRY(read_range(call, &interval, err));
    WEIR_TRY(read_interval(call, txn, key, &interval, err));
    choose_steps(&interval, (size_t)n_max, call->arena);
    begin(&writing);
    for (size_t i = 0; i < interval.n_ids; i++) {
        for (size_t k = 0; k < interval.n_metrics[i]; k++) {
            const struct weir_metric *metric = &interval.metrics[i][k];
            if (bsearch(&metric->step, interval.steps, interval.n_steps, sizeof(int64_t),
                        by_number) != NULL) {
                put_points(&writing, metric, 1, interval.ids[i]);
            }
        }
    }
    return finish(call, &writing, NULL, WEIR_OK, NULL, err);
}
