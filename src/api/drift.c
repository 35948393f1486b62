/** Drift of an ION as people look at it: a table of signals by p-value, the histograms behind it, and
 *  how each signal's p-value went over time. All of it from the reports that are stored. */
#include "api/answer.h"
#include "api/farthest.h"
#include "api/functions.h"
#include "api/ion.h"
#include "api/query.h"
#include "store/table.h"

#include "base/clock.h"
#include "ion/decision.h"
#include "stats/drift.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define REPORTS_MAX     5000 /* the newest; is_cut says that there are more */
#define SIGNALS_MAX     256
#define SPAN_DEFAULT_MS ((int64_t)6 * 3600 * 1000)
#define WATCH_RATE      0.05 /* of false discoveries among the signals: worth a look */

/** One signal of one pipeline, its newest report first. */
struct signal {
    const struct weir_health_report *last;
    json_t *detail; /**< Of the last report; an object. */
    json_t *counts; /**< Live counts, summed over the reports with the same edges and model. */
    struct api_farthest farthest;
    double *cells; /**< Smallest p-value of each part of the time; NaN: no report. */
    int64_t n_windows, n_drifted, n_samples;
    int64_t began_ms; /**< Of the drift that lasts; 0: none does. */
    bool has_ended;   /**< A report without drift was met, going back. */
    bool is_watched;
};

struct table {
    struct api_call *call;
    int64_t since_ms, until_ms, n_points;
    struct signal *signals;
    size_t n;
    bool is_cut;
};

static json_t *object_of(const char *text)
{
    json_t *value = text != NULL ? json_loads(text, 0, NULL) : NULL;
    if (!json_is_object(value)) {
        json_decref(value);
        return json_object();
    }
    return value;
}

static struct signal *signal_of(struct table *table, const struct weir_health_report *report)
{
    for (size_t i = 0; i < table->n; i++) {
        const struct weir_health_report *last = table->signals[i].last;
        if (strcmp(last->signal, report->signal) == 0 &&
            strcmp(last->pipeline, report->pipeline) == 0) {
            return &table->signals[i];
        }
    }
    if (table->n == SIGNALS_MAX) {
        table->is_cut = true;
        return NULL;
    }
    struct signal *made = &table->signals[table->n++];
    *made = (struct signal){
        .last = report,
        .cells = WEIR_ARENA_ARRAY(table->call->arena, (size_t)table->n_points, double)};
    for (int64_t i = 0; i < table->n_points; i++) {
        made->cells[i] = NAN;
    }
    return made;
}

/* Counts of the same bins are added; others belong to another baseline. */
static void add_counts(struct signal *signal, const struct weir_health_report *report,
                       const json_t *detail)
{
    const json_t *live = json_object_get(detail, "live"), *counts = json_object_get(live, "counts");
    const json_t *first = json_object_get(signal->detail, "live");
    if (!json_is_array(counts) || report->model_version != signal->last->model_version ||
        !json_equal(json_object_get(live, "edges"), json_object_get(first, "edges"))) {
        return;
    }
    if (signal->counts == NULL) {
        signal->counts = json_deep_copy(counts);
        return;
    }
    for (size_t i = 0; i < json_array_size(signal->counts); i++) {
        json_int_t sum;
        if (__builtin_add_overflow(json_integer_value(json_array_get(signal->counts, i)),
                                   json_integer_value(json_array_get(counts, i)), &sum)) {
            sum = INT64_MAX; /* a replica may say anything */
        }
        json_array_set_new(signal->counts, i, json_integer(sum));
    }
}

static void add_report(struct table *table, const struct weir_health_report *report)
{
    struct signal *signal = signal_of(table, report);
    if (signal == NULL) {
        return;
    }
    json_t *detail = object_of(report->detail);
    if (signal->last == report) {
        signal->detail = json_incref(detail);
    }
    add_counts(signal, report, detail);
    api_farthest_add(&signal->farthest, detail, table->call->arena);
    json_decref(detail);
    signal->n_windows++;
    signal->n_drifted += report->drifted;
    if (__builtin_add_overflow(signal->n_samples, report->n_samples, &signal->n_samples)) {
        signal->n_samples = INT64_MAX;
    }
    signal->has_ended = signal->has_ended || !report->drifted;
    signal->began_ms = signal->has_ended ? signal->began_ms : report->time_ms;
    int64_t place = (report->time_ms - table->since_ms) * table->n_points /
                    WEIR_MAX(table->until_ms - table->since_ms, (int64_t)1);
    if (place >= 0 && place < table->n_points) {
        signal->cells[place] =
            fmin(signal->cells[place], report->p_value); /* fmin passes over NaN */
    }
}

static int compare_p(const void *a, const void *b)
{
    const struct weir_health_report *x = ((const struct signal *)a)->last;
    const struct weir_health_report *y = ((const struct signal *)b)->last;
    double p = isnan(x->p_value) ? 1 : x->p_value, q = isnan(y->p_value) ? 1 : y->p_value;
    if (x->drifted != y->drifted) {
        return x->drifted ? -1 : 1;
    }
    return p != q ? (p > q) - (p < q) : strcmp(x->signal, y->signal);
}

/* Sorted, and among so many signals those that are worth a look: Benjamini and Hochberg. */
static void judge(struct table *table)
{
    double p_values[SIGNALS_MAX];
    size_t order[SIGNALS_MAX];
    bool is_rejected[SIGNALS_MAX];
    qsort(table->signals, table->n, sizeof *table->signals, compare_p);
    for (size_t i = 0; i < table->n; i++) {
        double p = table->signals[i].last->p_value;
        p_values[i] = isnan(p) ? 1 : p;
    }
    (void)weir_drift_select(p_values, table->n, WATCH_RATE, order, is_rejected);
    for (size_t i = 0; i < table->n; i++) {
        table->signals[i].is_watched = is_rejected[i];
    }
}

/* A member of the last report's detail; null where an older replica said nothing. */
static json_t *detail_of(const struct signal *signal, const char *name)
{
    json_t *value = json_object_get(signal->detail, name);
    return value != NULL ? json_incref(value) : json_null();
}

static json_t *live_view(const struct signal *signal)
{
    json_t *view = detail_of(signal, "live");
    if (json_is_object(view) && signal->counts != NULL) {
        json_t *summed = json_copy(view);
        json_decref(view);
        json_object_set(summed, "counts", signal->counts);
        return summed;
    }
    return view;
}

static struct api_drift_signal signal_view(const struct table *table, const struct signal *signal)
{
    const struct weir_health_report *last = signal->last;
    json_t *cells = json_array();
    for (int64_t i = 0; i < table->n_points; i++) {
        json_array_append_new(cells, weir_json_real(signal->cells[i]));
    }
    return (struct api_drift_signal){.pipeline = last->pipeline,
                                     .signal = last->signal,
                                     .replica = last->replica,
                                     .model_version = last->model_version,
                                     .statistic = last->statistic,
                                     .value = last->value,
                                     .p_value = last->p_value,
                                     .drifted = last->drifted,
                                     .state = last->drifted        ? "drifts"
                                              : signal->is_watched ? "watch"
                                                                   : "none",
                                     .n_samples = signal->n_samples,
                                     .n_windows = signal->n_windows,
                                     .n_drifted = signal->n_drifted,
                                     .time_ms = last->time_ms,
                                     .began_ms = last->drifted ? signal->began_ms : 0,
                                     .effect = detail_of(signal, "effect"),
                                     .live_mean = detail_of(signal, "live_mean"),
                                     .live_stddev = detail_of(signal, "live_stddev"),
                                     .baseline_mean = detail_of(signal, "baseline_mean"),
                                     .baseline_stddev = detail_of(signal, "baseline_stddev"),
                                     .distances = detail_of(signal, "distances"),
                                     .baseline = detail_of(signal, "baseline"),
                                     .cameras = detail_of(signal, "cameras"),
                                     .live = live_view(signal),
                                     .cells = cells,
                                     .farthest = signal->farthest.items,
                                     .n_farthest = signal->farthest.n};
}

static void answer_table(struct api_call *call, const struct table *table)
{
    struct api_drift_signal *signals =
        WEIR_ARENA_ARRAY(call->arena, table->n, struct api_drift_signal);
    char **times = WEIR_ARENA_ARRAY(call->arena, (size_t)table->n_points, char *);
    for (size_t i = 0; i < table->n; i++) {
        signals[i] = signal_view(table, &table->signals[i]);
    }
    for (int64_t i = 0; i < table->n_points; i++) {
        times[i] = weir_arena_alloc(call->arena, WEIR_TIME_TEXT_BYTES);
        weir_time_format(
            table->since_ms + (table->until_ms - table->since_ms) * i / table->n_points, times[i]);
    }
    API_ANSWER(call, api_ion_drift, .ion = call->params[0], .since_ms = table->since_ms,
               .until_ms = table->until_ms, .times = times, .n_times = (size_t)table->n_points,
               .signals = signals, .n_signals = table->n, .is_cut = table->is_cut);
}

static weir_status read_reports(struct table *table, struct weir_txn *txn, const char *pipeline,
                                struct weir_error *err)
{
    struct weir_filter filters[4] = {WEIR_FILTER_TEXT("ion", EQ, table->call->params[0]),
                                     WEIR_FILTER_INT("time_ms", GE, table->since_ms),
                                     WEIR_FILTER_INT("time_ms", LT, table->until_ms)};
    struct weir_query query = {.filters = filters,
                               .n_filters = 3,
                               .order_by = "seq",
                               .is_descending = true,
                               .limit = REPORTS_MAX,
                               .max_bytes = API_ANSWER_MAX_BYTES};
    void *items;
    size_t n;
    char *next;
    if (pipeline != NULL) {
        filters[query.n_filters++] = WEIR_FILTER_TEXT("pipeline", EQ, pipeline);
    }
    WEIR_TRY(weir_txn_list(txn, &weir_health_report_resource, &query, table->call->arena, &items,
                           &n, &next, err));
    const struct weir_health_report *reports = items;
    table->is_cut = next != NULL;
    for (size_t i = 0; i < n; i++) {
        add_report(table, &reports[i]);
    }
    return WEIR_OK;
}

weir_status api_ion_drift(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    struct table table = {.call = call,
                          .signals = WEIR_ARENA_ARRAY(call->arena, SIGNALS_MAX, struct signal)};
    struct weir_ion_state state;
    WEIR_TRY(api_ion_load(call, txn, &state, err));
    table.until_ms = api_query_time(call, "until", call->now_ms + 1);
    table.since_ms = api_query_time(call, "since", table.until_ms - SPAN_DEFAULT_MS);
    table.n_points = api_query_int(call, "points");
    if (table.since_ms >= table.until_ms || table.since_ms <= 0) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "query parameter since: expected a time before until");
    }
    weir_status status = read_reports(&table, txn, api_query_text(call, "pipeline"), err);
    if (status == WEIR_OK) {
        judge(&table);
    }
    for (size_t i = 0; status == WEIR_OK && i < table.n; i++) {
        status = api_farthest_find(&table.signals[i].farthest, call, txn, call->params[0], err);
    }
    if (status == WEIR_OK) {
        answer_table(call, &table);
    }
    for (size_t i = 0; i < table.n; i++) {
        json_decref(table.signals[i].detail);
        json_decref(table.signals[i].counts);
    }
    return status;
}
