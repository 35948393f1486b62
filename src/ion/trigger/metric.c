#include "ion/trigger.h"

#include <inttypes.h>
#include <string.h>

static weir_status check_words(const struct weir_trigger_metric *metric, const char *where,
                               struct weir_error *err)
{
    if (strcmp(metric->of, "kpi") != 0 && strcmp(metric->of, "accuracy") != 0 &&
        strcmp(metric->of, "run") != 0) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "%s.of: \"%.40s\" is none of kpi, accuracy, run", where, metric->of);
    }
    return strcmp(metric->when, "above") == 0 || strcmp(metric->when, "below") == 0
               ? WEIR_OK
               : weir_error_set(err, WEIR_ERR_INVALID,
                                "%s.when: \"%.40s\" is neither above nor below", where,
                                metric->when);
}

static weir_status check(const void *options, const char *where, struct weir_error *err)
{
    const struct weir_trigger_metric *metric = options;
    bool is_accuracy = strcmp(metric->of, "accuracy") == 0;
    WEIR_TRY(check_words(metric, where, err));
    if (is_accuracy && metric->name != NULL) {
        return weir_error_set(err, WEIR_ERR_INVALID, "%s.name: accuracy has no name", where);
    }
    if (!is_accuracy && metric->name == NULL) {
        return weir_error_set(err, WEIR_ERR_INVALID, "%s.name: missing (which %s)", where,
                              strcmp(metric->of, "kpi") == 0 ? "KPI" : "metric of the run");
    }
    if (strcmp(metric->of, "kpi") == 0 && metric->pipeline != NULL) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "%s.pipeline: a KPI is the ION's, and of no pipeline", where);
    }
    return WEIR_OK;
}

static struct weir_trigger_verdict decide(const struct weir_trigger_inputs *inputs,
                                          const void *options, struct weir_arena *arena)
{
    const struct weir_trigger_metric *metric = options;
    bool is_accuracy = strcmp(metric->of, "accuracy") == 0;
    const char *name =
        is_accuracy ? "live accuracy" : weir_arena_printf(arena, "%s %s", metric->of, metric->name);
    if (!inputs->has_value || inputs->value_ms <= weir_trigger_since_ms(inputs)) {
        return (struct weir_trigger_verdict){
            false, weir_arena_printf(arena, "%s: nothing new is known", name), INT64_MAX};
    }
    if (is_accuracy && inputs->n_values < metric->min_samples) {
        return (struct weir_trigger_verdict){
            false,
            weir_arena_printf(arena, "%s: %" PRId64 " of %" PRId64 " samples", name,
                              inputs->n_values, metric->min_samples),
            INT64_MAX};
    }
    bool is_above = strcmp(metric->when, "above") == 0;
    bool fires = is_above ? inputs->value > metric->threshold : inputs->value < metric->threshold;
    return (struct weir_trigger_verdict){fires,
                                         weir_arena_printf(arena, "%s %.6g is %s%s %.6g", name,
                                                           inputs->value, fires ? "" : "not ",
                                                           metric->when, metric->threshold),
                                         INT64_MAX};
}

static const struct weir_option options_of[] = {
    WEIR_OPT_JSON(weir_trigger_metric, of, "of", TEXT, WEIR_OPTION_REQUIRED, NULL, 0, 0,
                  "kpi: business figure of the ION; accuracy: by feedback; run: metric of the "
                  "last run of a pipeline"),
    WEIR_OPT_JSON(weir_trigger_metric, name, "name", TEXT, 0, NULL, 0, 0,
                  "Name of the KPI or of the run's metric"),
    WEIR_OPT_JSON(
        weir_trigger_metric, pipeline, "pipeline", TEXT, 0, NULL, 0, 0,
        "Of accuracy: the prediction pipeline; any if it is left out. Of run: the pipeline "
        "whose last run it is, such as an evaluation; its own if it is left out"),
    WEIR_OPT_JSON(weir_trigger_metric, when, "when", TEXT, WEIR_OPTION_REQUIRED, NULL, 0, 0,
                  "above or below: on which side of the threshold it fires"),
    WEIR_OPT_JSON(weir_trigger_metric, threshold, "threshold", F64, WEIR_OPTION_REQUIRED, NULL, 0,
                  0, "Figure it is compared with"),
    WEIR_OPT_JSON(weir_trigger_metric, window_s, "window-s", INT, 0, "86400", 1, 31536000,
                  "Of accuracy: over decisions of so long"),
    WEIR_OPT_JSON(weir_trigger_metric, min_samples, "min-samples", INT, 0, "30", 1, 1e9,
                  "Of accuracy: least decisions whose truth is known"),
    WEIR_TRIGGER_LEAST(weir_trigger_metric, "3600"),
};

static const struct weir_trigger_ops ops = {
    .sees = WEIR_TRIGGER_SEES_VALUE, .check = check, .decide = decide};

const struct weir_kind weir_trigger_kind_metric = {
    .name = "metric",
    .doc = "A figure is above or below a threshold: the newest value of a KPI, the accuracy of "
           "decisions whose truth was told, or the last value of a metric of the last run. Only "
           "what is "
           "younger than the beginning of the last run counts.",
    WEIR_KIND_OPTIONS(weir_trigger_metric, options_of),
    .ops = &ops,
};
