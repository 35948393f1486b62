#include "ion/drift_table.h"

#include "base/json.h"
#include "base/macros.h"
#include "ion/decision.h"
#include "stats/drift.h"
#include "store/table.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define REPORTS_MAX   5000 /* the newest; is_cut says that there are more */
#define REPORTS_BYTES ((size_t)32 << 20)
#define SIGNALS_MAX   256
#define WATCH_RATE    0.05 /* false discoveries among the signals that are worth a look */
#define TIME_MAX_MS   INT64_C(253402300799999) /* the last of the year 9999 */

/** A row in the making. */
struct row {
    const struct weir_health_report *last; /**< The newest report. */
    json_t *detail;                        /**< What it says; an object. */
    json_t *counts;                        /**< Live counts, summed; NULL: none were said. */
    double *cells;                         /**< NaN: no report. */
    int64_t n_windows, n_drifted, n_samples;
    int64_t began_ms; /**< When the drift that lasts began; 0: none does. */
    bool has_ended;   /**< A report without drift was met, going back. */
    bool is_watched;
    struct weir_far_frame farthest[WEIR_FAR_FRAMES_MAX];
    size_t n_farthest;
};

struct making {
    struct weir_drift_table *table;
    struct weir_arena *arena;
    struct row *rows;
    size_t n;
};

/* ---- frames that lie far from training --------------------------------------------------------- */

static bool has_frame(const struct row *row, const char *camera, int64_t number)
{
    for (size_t i = 0; i < row->n_farthest; i++) {
        if (row->farthest[i].frame == number && strcmp(row->farthest[i].camera, camera) == 0) {
            return true;
        }
    }
    return false;
}

/* What is no frame is passed over: a replica may say anything. */
static void add_frame(struct row *row, const json_t *item, struct weir_arena *arena)
{
    const char *camera = json_string_value(json_object_get(item, "camera"));
    const json_t *number = json_object_get(item, "frame"), *time = json_object_get(item, "time_ms");
    double value = json_number_value(json_object_get(item, "value"));
    double sigmas = json_number_value(json_object_get(item, "sigmas"));
    int64_t time_ms = json_integer_value(time);
    struct weir_far_frame *frames = row->farthest;
    bool is_full = row->n_farthest == WEIR_FAR_FRAMES_MAX;
    if (camera == NULL || !json_is_integer(number) || time_ms <= 0 || time_ms > TIME_MAX_MS ||
        !isfinite(value) || !isfinite(sigmas) ||
        (is_full && frames[row->n_farthest - 1].sigmas >= sigmas) ||
        has_frame(row, camera, json_integer_value(number))) {
        return;
    }
    size_t i = is_full ? row->n_farthest - 1 : row->n_farthest++;
    for (; i > 0 && frames[i - 1].sigmas < sigmas; i--) {
        frames[i] = frames[i - 1];
    }
    frames[i] = (struct weir_far_frame){.camera = weir_arena_strdup(arena, camera),
                                        .frame = json_integer_value(number),
                                        .time_ms = time_ms,
                                        .value = value,
                                        .sigmas = sigmas};
}

/* The decision of a frame, if one is kept. */
static weir_status find_decision(struct weir_txn *txn, const char *ion,
                                 struct weir_far_frame *frame, struct weir_arena *arena,
                                 struct weir_error *err)
{
    const struct weir_query query = {WEIR_FILTERS(WEIR_FILTER_TEXT("ion", EQ, ion),
                                                  WEIR_FILTER_TEXT("camera", EQ, frame->camera),
                                                  WEIR_FILTER_INT("frame", EQ, frame->frame)),
                                     .order_by = "seq", .limit = 1, .max_bytes = REPORTS_BYTES};
    void *items;
    size_t n;
    WEIR_TRY(weir_txn_list(txn, &weir_decision_resource, &query, arena, &items, &n, NULL, err));
    const struct weir_decision *decision = n > 0 ? items : NULL;
    frame->decision = decision != NULL ? decision->id : NULL;
    frame->has_picture = decision != NULL && decision->image != NULL;
    return WEIR_OK;
}

/* ---- reports, the newest first ----------------------------------------------------------------- */

static json_t *object_of(const char *text)
{
    json_t *value = text != NULL ? json_loads(text, 0, NULL) : NULL;
    if (!json_is_object(value)) {
        json_decref(value);
        return json_object();
    }
    return value;
}

static struct row *row_of(struct making *making, const struct weir_health_report *report)
{
    int64_t n_points = making->table->n_points;
    for (size_t i = 0; i < making->n; i++) {
        const struct weir_health_report *last = making->rows[i].last;
        if (strcmp(last->signal, report->signal) == 0 &&
            strcmp(last->pipeline, report->pipeline) == 0) {
            return &making->rows[i];
        }
    }
    if (making->n == SIGNALS_MAX) {
        making->table->is_cut = true;
        return NULL;
    }
    struct row *made = &making->rows[making->n++];
    *made = (struct row){.last = report,
                         .cells = WEIR_ARENA_ARRAY(making->arena, (size_t)n_points, double)};
    for (int64_t i = 0; i < n_points; i++) {
        made->cells[i] = NAN;
    }
    return made;
}

/* Counts of the same bins are added; others belong to another baseline. */
static void add_counts(struct row *row, const struct weir_health_report *report,
                       const json_t *detail)
{
    const json_t *live = json_object_get(detail, "live"), *counts = json_object_get(live, "counts");
    const json_t *first = json_object_get(row->detail, "live");
    if (!json_is_array(counts) || report->model_version != row->last->model_version ||
        !json_equal(json_object_get(live, "edges"), json_object_get(first, "edges"))) {
        return;
    }
    if (row->counts == NULL) {
        row->counts = json_deep_copy(counts);
        return;
    }
    for (size_t i = 0; i < json_array_size(row->counts); i++) {
        json_int_t sum;
        if (__builtin_add_overflow(json_integer_value(json_array_get(row->counts, i)),
                                   json_integer_value(json_array_get(counts, i)), &sum)) {
            sum = INT64_MAX; /* a replica may say anything */
        }
        json_array_set_new(row->counts, i, json_integer(sum));
    }
}

static void add_detail(struct making *making, struct row *row,
                       const struct weir_health_report *report)
{
    WEIR_AUTO(weir_json_auto_free) json_t *detail = object_of(report->detail);
    size_t i;
    json_t *item;
    if (row->last == report) {
        row->detail = json_incref(detail);
    }
    add_counts(row, report, detail);
    json_array_foreach(json_object_get(detail, "farthest"), i, item)
    {
        add_frame(row, item, making->arena);
    }
}

static void add_report(struct making *making, const struct weir_health_report *report)
{
    const struct weir_drift_table *table = making->table;
    struct row *row = row_of(making, report);
    if (row == NULL) {
        return;
    }
    add_detail(making, row, report);
    row->n_windows++;
    row->n_drifted += report->drifted;
    if (__builtin_add_overflow(row->n_samples, report->n_samples, &row->n_samples)) {
        row->n_samples = INT64_MAX;
    }
    row->has_ended = row->has_ended || !report->drifted;
    row->began_ms = row->has_ended ? row->began_ms : report->time_ms;
    int64_t place = (report->time_ms - table->since_ms) * table->n_points /
                    WEIR_MAX(table->until_ms - table->since_ms, (int64_t)1);
    if (place >= 0 && place < table->n_points) {
        row->cells[place] = fmin(row->cells[place], report->p_value); /* fmin passes over NaN */
    }
}

/* ---- rows ---------------------------------------------------------------------------------------- */

static int compare_p(const void *a, const void *b)
{
    const struct weir_health_report *x = ((const struct row *)a)->last;
    const struct weir_health_report *y = ((const struct row *)b)->last;
    double p = isnan(x->p_value) ? 1 : x->p_value, q = isnan(y->p_value) ? 1 : y->p_value;
    if (x->drifted != y->drifted) {
        return x->drifted ? -1 : 1;
    }
    return p != q ? (p > q) - (p < q) : strcmp(x->signal, y->signal);
}

/* Sorted, and among so many signals those that are worth a look: Benjamini and Hochberg. */
static void judge(struct making *making)
{
    double p_values[SIGNALS_MAX];
    size_t order[SIGNALS_MAX];
    bool is_rejected[SIGNALS_MAX];
    qsort(making->rows, making->n, sizeof *making->rows, compare_p);
    for (size_t i = 0; i < making->n; i++) {
        double p = making->rows[i].last->p_value;
        p_values[i] = isnan(p) ? 1 : p;
    }
    (void)weir_drift_select(p_values, making->n, WATCH_RATE, order, is_rejected);
    for (size_t i = 0; i < making->n; i++) {
        making->rows[i].is_watched = is_rejected[i];
    }
}

/* A member of the newest report's detail. */
static json_t *detail_of(const struct row *row, const char *name)
{
    return json_incref(json_object_get(row->detail, name));
}

static json_t *live_of(const struct row *row)
{
    json_t *live = detail_of(row, "live");
    if (json_is_object(live) && row->counts != NULL) {
        json_t *summed = json_copy(live);
        json_decref(live);
        json_object_set(summed, "counts", row->counts);
        return summed;
    }
    return live;
}

static struct weir_drift_signal signal_of(const struct making *making, struct row *row)
{
    const struct weir_health_report *last = row->last;
    json_t *cells = json_array();
    for (int64_t i = 0; i < making->table->n_points; i++) {
        json_array_append_new(cells, weir_json_real(row->cells[i]));
    }
    return (struct weir_drift_signal){.pipeline = last->pipeline,
                                      .signal = last->signal,
                                      .replica = last->replica,
                                      .model_version = last->model_version,
                                      .statistic = last->statistic,
                                      .value = last->value,
                                      .p_value = last->p_value,
                                      .drifted = last->drifted,
                                      .state = last->drifted     ? "drifts"
                                               : row->is_watched ? "watch"
                                                                 : "none",
                                      .n_samples = row->n_samples,
                                      .n_windows = row->n_windows,
                                      .n_drifted = row->n_drifted,
                                      .time_ms = last->time_ms,
                                      .began_ms = last->drifted ? row->began_ms : 0,
                                      .effect = detail_of(row, "effect"),
                                      .live_mean = detail_of(row, "live_mean"),
                                      .live_stddev = detail_of(row, "live_stddev"),
                                      .baseline_mean = detail_of(row, "baseline_mean"),
                                      .baseline_stddev = detail_of(row, "baseline_stddev"),
                                      .distances = detail_of(row, "distances"),
                                      .baseline = detail_of(row, "baseline"),
                                      .cameras = detail_of(row, "cameras"),
                                      .live = live_of(row),
                                      .cells = cells,
                                      .farthest = row->farthest,
                                      .n_farthest = row->n_farthest};
}

static weir_status read_reports(struct making *making, struct weir_txn *txn, const char *ion,
                                const char *pipeline, struct weir_error *err)
{
    struct weir_filter filters[4] = {WEIR_FILTER_TEXT("ion", EQ, ion),
                                     WEIR_FILTER_INT("time_ms", GE, making->table->since_ms),
                                     WEIR_FILTER_INT("time_ms", LT, making->table->until_ms),
                                     WEIR_FILTER_TEXT("pipeline", EQ, pipeline)};
    const struct weir_query query = {.filters = filters,
                                     .n_filters = pipeline != NULL ? 4 : 3,
                                     .order_by = "seq",
                                     .is_descending = true,
                                     .limit = REPORTS_MAX,
                                     .max_bytes = REPORTS_BYTES};
    void *items;
    size_t n;
    char *next;
    WEIR_TRY(weir_txn_list(txn, &weir_health_report_resource, &query, making->arena, &items, &n,
                           &next, err));
    const struct weir_health_report *reports = items;
    making->table->is_cut = next != NULL;
    for (size_t i = 0; i < n; i++) {
        add_report(making, &reports[i]);
    }
    return WEIR_OK;
}

static weir_status find_decisions(const struct making *making, struct weir_txn *txn,
                                  const char *ion, struct weir_error *err)
{
    for (size_t i = 0; i < making->n; i++) {
        struct row *row = &making->rows[i];
        for (size_t k = 0; k < row->n_farthest; k++) {
            WEIR_TRY(find_decision(txn, ion, &row->farthest[k], making->arena, err));
        }
    }
    return WEIR_OK;
}

static void making_auto_fini(struct making *making)
{
    for (size_t i = 0; i < making->n; i++) {
        json_decref(making->rows[i].detail);
        json_decref(making->rows[i].counts);
    }
}

weir_status weir_drift_table_read(struct weir_txn *txn, const char *ion, const char *pipeline,
                                  struct weir_arena *arena, struct weir_drift_table *inout_table,
                                  struct weir_error *err)
{
    WEIR_AUTO(making_auto_fini)
    struct making making = {.table = inout_table,
                            .arena = arena,
                            .rows = WEIR_ARENA_ARRAY(arena, SIGNALS_MAX, struct row)};
    WEIR_TRY(read_reports(&making, txn, ion, pipeline, err));
    judge(&making);
    WEIR_TRY(find_decisions(&making, txn, ion, err));
    inout_table->signals = WEIR_ARENA_ARRAY(arena, making.n, struct weir_drift_signal);
    inout_table->n = making.n;
    for (size_t i = 0; i < making.n; i++) {
        inout_table->signals[i] = signal_of(&making, &making.rows[i]);
    }
    return WEIR_OK;
}
