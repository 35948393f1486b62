/** Who had how much of the cluster, and what queues had over time: job/usage.h, job/queue_history.h. */
#include "api/core/answer.h"
#include "api/core/functions.h"
#include "api/core/query.h"
#include "api/core/views.h"

#include "base/buf.h"
#include "base/clock.h"
#include "job/queue_history.h"
#include "job/usage.h"
#include "job/usage_report.h"

#include <math.h>
#include <string.h>

#define CSV_MAX_BYTES ((size_t)8 << 20)

static struct api_usage_figures figures_of(const struct weir_usage_figures *is,
                                           enum weir_usage_by by)
{
    return (struct api_usage_figures){
        .asked_device_s = is->waited + is->given,
        .given_device_s = is->given,
        /* Devices that say nothing have no use, not a use of 0. */
        .used_device_s = is->given > 0 && is->unknown >= is->given ? NAN : is->used,
        .unknown_device_s = is->unknown,
        .idle_device_s = is->idle,
        .borrowed_device_s = is->borrowed,
        .asked_cpu_s = is->cpu_waited + is->cpu_given,
        .given_cpu_s = is->cpu_given,
        .borrowed_cpu_s = is->cpu_borrowed,
        .node_s = by == WEIR_USAGE_BY_CLUSTER ? is->node : NAN};
}

/* ---- what is asked ---------------------------------------------------------------------------- */

static int64_t query_hour(const struct api_call *call, const char *name, int64_t fallback)
{
    int64_t time_ms = WEIR_MAX(api_query_time(call, name, fallback), (int64_t)0);
    return time_ms - time_ms % WEIR_USAGE_HOUR_MS;
}

static int64_t next_hour(int64_t now_ms)
{
    return now_ms - now_ms % WEIR_USAGE_HOUR_MS + WEIR_USAGE_HOUR_MS;
}

#define USUAL_MS (30 * WEIR_USAGE_DAY_MS)

static weir_status query_span(const struct api_call *call, int64_t *out_from, int64_t *out_to,
                              struct weir_error *err)
{
    *out_to = query_hour(call, "to", next_hour(call->now_ms));
    *out_from = query_hour(call, "from", *out_to - USUAL_MS);
    return *out_from < *out_to ? WEIR_OK
                               : weir_error_set(err, WEIR_ERR_INVALID,
                                                "query parameters from and to: from comes first");
}

static weir_status read_query(const struct api_call *call, struct weir_usage_query *out,
                              struct weir_error *err)
{
    const char *by = api_query_text(call, "by");
    *out = (struct weir_usage_query){
        .by = (enum weir_usage_by)weir_usage_by_from_text(by != NULL ? by : "project"),
        .project = api_query_text(call, "project"),
        .user = api_query_text(call, "user"),
        .job = api_query_text(call, "job"),
        .model = api_query_text(call, "model"),
        .now_ms = call->now_ms};
    if (out->by == WEIR_USAGE_BY_CLUSTER &&
        (out->user != NULL || out->job != NULL || out->model != NULL)) {
        return weir_error_set(
            err, WEIR_ERR_INVALID,
            "query parameter by: an allocation of a cluster is shared: by cluster "
            "takes project, from and to, and neither user, job nor model");
    }
    return query_span(call, &out->from_ms, &out->to_ms, err);
}

/* ---- JSON ------------------------------------------------------------------------------------- */

/* NULL for what has none. */
static const char *text_or_null(const char *text)
{
    return text != NULL && text[0] != '\0' ? text : NULL;
}

static void add_up(struct weir_usage_figures *sum, const struct weir_usage_figures *is)
{
    sum->waited += is->waited;
    sum->given += is->given;
    sum->used += is->used;
    sum->unknown += is->unknown;
    sum->idle += is->idle;
    sum->borrowed += is->borrowed;
    sum->cpu_waited += is->cpu_waited;
    sum->cpu_given += is->cpu_given;
    sum->cpu_borrowed += is->cpu_borrowed;
    sum->node += is->node;
}

static const char *key_of(const struct weir_usage_row *row, struct weir_arena *arena)
{
    if (row->key != NULL) {
        return row->key;
    }
    char *text = weir_arena_alloc(arena, WEIR_TIME_TEXT_BYTES);
    weir_time_format(row->time_ms, text);
    return text;
}

static void answer_json(struct api_call *call, const struct weir_usage_query *query,
                        const struct weir_usage_row *rows, size_t n)
{
    struct weir_usage_figures sum = {0};
    struct api_usage_row *items = WEIR_ARENA_ARRAY(call->arena, n, struct api_usage_row);
    for (size_t i = 0; i < n; i++) {
        const struct weir_usage_row *row = &rows[i];
        items[i] = (struct api_usage_row){
            .key = text_or_null(key_of(row, call->arena)),
            .name = text_or_null(row->name),
            .project = text_or_null(query->by == WEIR_USAGE_BY_PROJECT ? row->key : row->project),
            .is = figures_of(&row->is, query->by)};
        add_up(&sum, &row->is);
    }
    API_ANSWER(call, api_cluster_usage, .by = weir_usage_by_text(query->by), .from = query->from_ms,
               .to = query->to_ms, .items = items, .n_items = n,
               .total = figures_of(&sum, query->by));
}

/* ---- CSV (RFC 4180) --------------------------------------------------------------------------- */

/* In quotes, and never as what a spreadsheet would compute. */
static void put_text(struct weir_buf *buf, const char *text)
{
    (void)weir_buf_puts(buf, "\"");
    if (text[0] != '\0' && strchr("=+-@\t\r", text[0]) != NULL) {
        (void)weir_buf_puts(buf, "'");
    }
    for (; *text != '\0'; text++) {
        (void)weir_buf_printf(buf, *text == '"' ? "\"\"" : "%c", *text);
    }
    (void)weir_buf_puts(buf, "\"");
}

static void put_row(struct weir_buf *buf, const struct weir_usage_query *query,
                    const struct weir_usage_row *row, struct weir_arena *arena)
{
    const struct weir_view_table *view = api_usage_figures_view();
    struct api_usage_figures figures = figures_of(&row->is, query->by);
    put_text(buf, key_of(row, arena));
    if (query->by == WEIR_USAGE_BY_JOB) {
        (void)weir_buf_puts(buf, ",");
        put_text(buf, row->name != NULL ? row->name : "");
        (void)weir_buf_puts(buf, ",");
        put_text(buf, row->project != NULL ? row->project : "");
    }
    for (size_t i = 0; i < view->n_members; i++) { /* all are F64 */
        double value =
            *(const double *)(const void *)((const char *)&figures + view->members[i].offset);
        (void)(isnan(value) ? weir_buf_puts(buf, ",") : weir_buf_printf(buf, ",%.3f", value));
    }
    (void)weir_buf_puts(buf, "\r\n");
}

static weir_status answer_csv(struct api_call *call, const struct weir_usage_query *query,
                              const struct weir_usage_row *rows, size_t n, struct weir_error *err)
{
    struct weir_buf buf;
    weir_buf_init(&buf, CSV_MAX_BYTES);
    (void)weir_buf_puts(&buf, weir_usage_by_text(query->by));
    (void)weir_buf_puts(&buf, query->by == WEIR_USAGE_BY_JOB ? ",name,project" : "");
    for (size_t i = 0; i < api_usage_figures_view()->n_members; i++) {
        (void)weir_buf_printf(&buf, ",%s", api_usage_figures_view()->members[i].name);
    }
    (void)weir_buf_puts(&buf, "\r\n");
    for (size_t i = 0; i < n; i++) {
        put_row(&buf, query, &rows[i], call->arena);
    }
    if (buf.status != WEIR_OK) {
        weir_buf_fini(&buf);
        return weir_error_set(err, WEIR_ERR_LIMIT, "the table is larger than %zu bytes",
                              CSV_MAX_BYTES);
    }
    weir_http_response_buf(call->response, 200, "text/csv; charset=utf-8", &buf);
    return WEIR_OK;
}

static bool wants_csv(const struct api_call *call)
{
    const char *format = api_query_text(call, "format");
    const char *accept = weir_http_request_header(call->request, "Accept");
    return format != NULL ? strcmp(format, "csv") == 0
                          : accept != NULL && strncmp(accept, "text/csv", 8) == 0;
}

weir_status api_usage(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    struct weir_usage_query query;
    struct weir_usage_row *rows;
    size_t n;
    WEIR_TRY(read_query(call, &query, err));
    WEIR_TRY(weir_usage_report(txn, &query, call->arena, &rows, &n, err));
    if (wants_csv(call)) {
        return answer_csv(call, &query, rows, n, err);
    }
    answer_json(call, &query, rows, n);
    return WEIR_OK;
}

/* ---- queues over time ------------------------------------------------------------------------- */

static struct api_queue_amounts pair(int64_t devices_milli, int64_t cpus_milli)
{
    return (struct api_queue_amounts){(double)devices_milli / 1000, (double)cpus_milli / 1000};
}

static struct api_queue_point point_of(const struct weir_queue_point *point)
{
    const struct weir_queue_amounts *devices = &point->mean.devices, *cpus = &point->mean.cpus;
    return (struct api_queue_point){
        .time = point->time_ms,
        .queue = point->mean.queue,
        .project = point->mean.project,
        .asked = pair(devices->used + devices->waiting, cpus->used + cpus->waiting),
        .guarantee = pair(devices->guarantee, cpus->guarantee),
        .used = pair(devices->used, cpus->used),
        .borrowed = pair(devices->borrowed, cpus->borrowed),
        .waiting = pair(devices->waiting, cpus->waiting)};
}

weir_status api_usage_queues(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    struct weir_queue_point *points;
    int64_t from_ms, to_ms;
    size_t n;
    WEIR_TRY(query_span(call, &from_ms, &to_ms, err));
    int64_t step_s = api_query_int(call, "step_s");
    if (step_s * 1000 % WEIR_QUEUE_BUCKET_MS != 0) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "query parameter step_s: expected a multiple of %d",
                              (int)(WEIR_QUEUE_BUCKET_MS / 1000));
    }
    WEIR_TRY(weir_queue_history_read(txn, api_query_text(call, "queue"),
                                     api_query_text(call, "project"), from_ms, to_ms, step_s * 1000,
                                     call->arena, &points, &n, err));
    struct api_queue_point *items = WEIR_ARENA_ARRAY(call->arena, n, struct api_queue_point);
    for (size_t i = 0; i < n; i++) {
        items[i] = point_of(&points[i]);
    }
    API_ANSWER(call, api_queue_series, .from = from_ms, .to = to_ms, .step_s = step_s,
               .items = items, .n_items = n);
    return WEIR_OK;
}
