#include "stats/monitor.h"

#include "base/macros.h"
#include "stats/above.h"

#include <math.h>
#include <string.h>

#define LOOK_EFFECT 0.3
#define FAR_OUT     2.0

const struct weir_signal weir_signals[] = {
    {"score", 0, 0},
    {"brightness", 0, 0},
    {"contrast", LOOK_EFFECT, 0},
    {"sharpness", LOOK_EFFECT, 0},
    {"entropy", LOOK_EFFECT, 0},
    {"embedding", 0, FAR_OUT},
};
const size_t weir_n_signals = WEIR_ARRAY_LEN(weir_signals);

const struct weir_signal *weir_signal_find(const char *name)
{
    for (size_t i = 0; i < weir_n_signals; i++) {
        if (strcmp(weir_signals[i].name, name) == 0) {
            return &weir_signals[i];
        }
    }
    return NULL;
}

weir_status weir_monitor_init(struct weir_monitor *monitor, const struct weir_signal *signal,
                              const struct weir_histogram *baseline, double threshold,
                              const struct weir_drift_config *config, struct weir_error *err)
{
    struct weir_drift_config asked = *config;
    struct weir_histogram kept;
    *monitor = (struct weir_monitor){.signal = signal, .cut = -INFINITY};
    if (baseline != NULL && !isnan(threshold)) {
        baseline =
            weir_histogram_above(baseline, threshold, WEIR_DRIFT_MIN_VALUES, &kept, &monitor->cut)
                ? &kept
                : NULL;
    }
    if (baseline == NULL || baseline->n < WEIR_DRIFT_MIN_VALUES) {
        return WEIR_OK;
    }
    asked.min_effect = config->min_effect == 0 ? signal->min_effect : config->min_effect;
    WEIR_TRY(weir_drift_init(&monitor->drift, baseline, &asked, err));
    WEIR_TRY(
        weir_sequence_init(&monitor->sequence, baseline, monitor->drift.config.min_effect, 0, err));
    monitor->is_watched = true;
    return WEIR_OK;
}

bool weir_monitor_wants(const struct weir_monitor *monitor, double value)
{
    return monitor->is_watched && value > monitor->cut;
}

bool weir_monitor_add(struct weir_monitor *monitor, double value, struct weir_monitor_report *out)
{
    struct weir_drift_report window;
    if (!weir_monitor_wants(monitor, value)) {
        return false;
    }
    bool is_added_up = weir_sequence_add(&monitor->sequence, value);
    if (!weir_drift_add(&monitor->drift, value, &window)) {
        return false;
    }
    bool is_far =
        monitor->signal->far_out == 0 ||
        window.live_mean - window.baseline_mean > monitor->signal->far_out * window.baseline_stddev;
    bool is_drifted = (window.is_confirmed || is_added_up) && is_far;
    bool is_slow = is_drifted && !window.is_confirmed;
    double level = weir_sequence_level(&monitor->sequence);
    *out = (struct weir_monitor_report){
        .window = window,
        .level = level,
        .is_drifted = is_drifted,
        .is_change = is_drifted != monitor->is_drifted,
        .statistic = is_slow ? "slow" : weir_drift_kind_name(window.kind),
        .value = is_slow ? level : window.statistic,
        .p_value = is_slow ? weir_sequence_p(&monitor->sequence, window.n_values) : window.p_value};
    monitor->is_drifted = is_drifted;
    return true;
}

bool weir_monitor_is_due(int64_t last_ms, int64_t now_ms, int64_t interval_ms)
{
    return now_ms < last_ms || now_ms - last_ms >= interval_ms;
}
