#include "ion/trigger.h"

#include <inttypes.h>
#include <string.h>

static weir_status check(const void *options, const char *where, struct weir_error *err)
{
    const struct weir_trigger_drift *drift = options;
    return drift->k <= drift->n
               ? WEIR_OK
               : weir_error_set(err, WEIR_ERR_INVALID, "%s.k: %" PRId64 " is more than n, %" PRId64,
                                where, drift->k, drift->n);
}

/** Of the newest n of a series. */
static int64_t n_drifted(const json_t *drifted, int64_t n)
{
    int64_t sum = 0;
    for (size_t i = 0; i < json_array_size(drifted) && (int64_t)i < n; i++) {
        sum += json_is_true(json_array_get(drifted, i));
    }
    return sum;
}

static const char *text_of(const json_t *series, const char *key)
{
    const char *text = json_string_value(json_object_get(series, key));
    return text != NULL ? text : "";
}

/** Does the trigger look at this series of windows? */
static bool is_meant(const struct weir_trigger_drift *drift, const json_t *series)
{
    return (drift->signal == NULL || strcmp(drift->signal, text_of(series, "signal")) == 0) &&
           (drift->pipeline == NULL || strcmp(drift->pipeline, text_of(series, "pipeline")) == 0);
}

static struct weir_trigger_verdict decide(const struct weir_trigger_inputs *inputs,
                                          const void *options, struct weir_arena *arena)
{
    const struct weir_trigger_drift *drift = options;
    json_t *all = inputs->windows != NULL ? json_loads(inputs->windows, 0, NULL) : NULL;
    struct weir_trigger_verdict told = {false, "no signal drifts", INT64_MAX};
    int64_t most = 0;
    size_t i;
    json_t *series;
    json_array_foreach(all, i, series)
    {
        int64_t n =
            is_meant(drift, series) ? n_drifted(json_object_get(series, "drifted"), drift->n) : 0;
        if (n > most) {
            most = n;
            told.fires = n >= drift->k;
            told.reason = weir_arena_printf(
                arena, "drift: %" PRId64 " of the last %" PRId64 " windows of %s at %s", n,
                drift->n, text_of(series, "signal"), text_of(series, "pipeline"));
        }
    }
    json_decref(all);
    return told;
}

static const struct weir_option options_of[] = {
    WEIR_OPT_JSON(
        weir_trigger_drift, signal, "signal", TEXT, 0, NULL, 0, 0,
        "Signal whose windows count (score, brightness, feature:NAME …); any if it is left "
        "out"),
    WEIR_OPT_JSON(weir_trigger_drift, pipeline, "pipeline", TEXT, 0, NULL, 0, 0,
                  "Prediction pipeline whose windows count; any if it is left out"),
    WEIR_OPT_JSON(weir_trigger_drift, k, "k", INT, 0, "3", 1, 100,
                  "So many windows of a series have drifted"),
    WEIR_OPT_JSON(weir_trigger_drift, n, "n", INT, 0, "5", 1, 100, "Of so many, the newest"),
    WEIR_TRIGGER_LEAST(weir_trigger_drift, "3600"),
};

static const struct weir_trigger_ops ops = {
    .sees = WEIR_TRIGGER_SEES_WINDOWS, .check = check, .decide = decide};

const struct weir_kind weir_trigger_kind_drift = {
    .name = "drift",
    .doc = "k of the newest n health windows of one signal of one pipeline have drifted; only "
           "windows since the beginning of the last run count.",
    WEIR_KIND_OPTIONS(weir_trigger_drift, options_of),
    .ops = &ops,
};
