#include "ion/window.h"

#include "base/json.h"
#include "base/uuid.h"
#include "store/table.h"

#define BEFORE_MAX       2 /* two of the last 3 windows must differ: this one and those before it */
#define BEFORE_MAX_BYTES ((size_t)32 << 20)

/** The windows of a signal before this one. */
struct before {
    bool was_drifted;        /**< By the last. */
    bool has_differed;       /**< One did. */
    bool has_differed_alike; /**< One of this version did. */
};

static bool says_differs(const struct weir_health_report *report)
{
    WEIR_AUTO(weir_json_auto_free)
    json_t *detail = report->detail != NULL ? json_loads(report->detail, 0, NULL) : NULL;
    return json_is_true(json_object_get(detail, "differs"));
}

/* In an arena of its own: details are long, and a window has many features. */
static weir_status load_before(struct weir_txn *txn, const struct weir_window *window,
                               const char *signal, struct before *out, struct weir_error *err)
{
    const struct weir_query query = {
        WEIR_FILTERS(WEIR_FILTER_TEXT("ion", EQ, window->ion),
                     WEIR_FILTER_TEXT("pipeline", EQ, window->pipeline),
                     WEIR_FILTER_TEXT("signal", EQ, signal)),
        .order_by = "seq", .is_descending = true, .limit = BEFORE_MAX};
    struct weir_arena arena;
    void *items = NULL;
    size_t n = 0;
    weir_arena_init(&arena, BEFORE_MAX_BYTES);
    weir_status status =
        weir_txn_list(txn, &weir_health_report_resource, &query, &arena, &items, &n, NULL, err);
    const struct weir_health_report *reports = items;
    *out = (struct before){.was_drifted = n > 0 && reports[0].drifted};
    for (size_t i = 0; i < n; i++) {
        bool differs = says_differs(&reports[i]);
        out->has_differed = out->has_differed || differs;
        out->has_differed_alike =
            out->has_differed_alike || (differs && reports[i].model_version == window->version);
    }
    weir_arena_fini(&arena);
    return status;
}

static void say_moments(json_t *detail, const char *which, const struct weir_histogram *of,
                        struct weir_arena *arena)
{
    json_object_set_new(detail, weir_arena_printf(arena, "%s_mean", which), json_real(of->mean));
    json_object_set_new(detail, weir_arena_printf(arena, "%s_stddev", which),
                        json_real(weir_histogram_stddev(of)));
}

static char *detail_of(const struct weir_finding *finding, struct weir_arena *arena)
{
    const struct weir_feature *feature = finding->feature;
    WEIR_AUTO(weir_json_auto_free) json_t *detail = json_object();
    json_object_set_new(detail, "differs", json_boolean(finding->is_drifted));
    if (finding->kind != WEIR_FINDING_FEATURE) {
        return weir_json_text(detail, arena);
    }
    json_object_set_new(detail, "effect", json_real(finding->effect));
    json_object_set_new(detail, "live", weir_histogram_counts_json(&finding->live));
    json_object_set_new(detail, "baseline", weir_histogram_counts_json(&feature->baseline));
    if (feature->is_category) { /* codes have no mean */
        json_t *names = json_array();
        for (size_t i = 0; i < feature->n_categories; i++) {
            json_array_append_new(names, json_string(feature->categories[i]));
        }
        json_object_set_new(detail, "categories", names);
    } else {
        say_moments(detail, "live", &finding->live, arena);
        say_moments(detail, "baseline", &feature->baseline, arena);
    }
    return weir_json_text(detail, arena);
}

weir_status weir_window_report(struct weir_txn *txn, const struct weir_window *window,
                               const struct weir_finding *finding, struct weir_arena *arena,
                               struct weir_health_report *out, bool *out_is_worth,
                               struct weir_error *err)
{
    struct before before;
    char *id = weir_arena_alloc(arena, WEIR_UUID_BYTES);
    char *signal = weir_arena_printf(arena, "%s:%s", weir_finding_kind_name(finding->kind),
                                     finding->feature->name);
    WEIR_TRY(load_before(txn, window, signal, &before, err));
    weir_uuid_make(id);
    *out_is_worth = finding->kind == WEIR_FINDING_FEATURE || finding->value != 0 ||
                    before.was_drifted || before.has_differed;
    *out = (struct weir_health_report){.id = id,
                                       .ion = (char *)window->ion,
                                       .pipeline = (char *)window->pipeline,
                                       .signal = signal,
                                       .statistic = (char *)finding->statistic,
                                       .value = finding->value,
                                       .p_value = finding->p_value,
                                       .drifted = before.has_differed_alike && finding->is_drifted,
                                       .n_samples = (int64_t)finding->n_values,
                                       .model_version = window->version,
                                       .detail = detail_of(finding, arena),
                                       .time_ms = window->time_ms};
    return WEIR_OK;
}
