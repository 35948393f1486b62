#include "control/observe.h"

#include "control/rollout.h"
#include "ion/decision.h"
#include "ion/feedback.h"
#include "ion/kpi.h"
#include "store/stmt.h"
#include "store/table.h"
#include "track/track.h"

#include <math.h>
#include <string.h>

struct observing {
    struct control *control;
    struct weir_txn *txn;
    const struct weir_ion_state *state;
    const struct weir_ion_trigger *row;
    const struct weir_trigger *trigger;
    struct weir_trigger_inputs *inputs;
    struct weir_error *err;
};

/* ---- drift ----------------------------------------------------------------------------------- */

static bool is_series(const json_t *series, const struct weir_health_report *report)
{
    return strcmp(json_string_value(json_object_get(series, "signal")), report->signal) == 0 &&
           strcmp(json_string_value(json_object_get(series, "pipeline")), report->pipeline) == 0;
}

/** The series' windows so far; made if there is none. */
static json_t *windows_of(json_t *all, const struct weir_health_report *report)
{
    size_t i;
    json_t *series;
    json_array_foreach(all, i, series)
    {
        if (is_series(series, report)) {
            return json_object_get(series, "drifted");
        }
    }
    series = json_pack("{s:s,s:s,s:[]}", "signal", report->signal, "pipeline", report->pipeline,
                       "drifted");
    json_array_append_new(all, series);
    return json_object_get(series, "drifted");
}

static weir_status see_windows(struct observing *observing)
{
    const struct weir_trigger_drift *drift = observing->trigger->options;
    struct weir_arena *arena = observing->control->arena;
    int64_t since_ms = weir_trigger_since_ms(observing->inputs);
    const struct weir_query query = {
        WEIR_FILTERS(WEIR_FILTER_TEXT("ion", EQ, observing->state->ion.name),
                     WEIR_FILTER_INT("time_ms", GT, since_ms)),
        .order_by = "seq", .is_descending = true, .limit = OBSERVE_WINDOWS_MAX};
    void *items;
    size_t n;
    WEIR_TRY(weir_txn_list(observing->txn, &weir_health_report_resource, &query, arena, &items, &n,
                           NULL, observing->err));
    const struct weir_health_report *reports = items;
    json_t *all = json_array();
    for (size_t i = 0; i < n; i++) {
        bool is_meant =
            (drift->signal == NULL || strcmp(drift->signal, reports[i].signal) == 0) &&
            (drift->pipeline == NULL || strcmp(drift->pipeline, reports[i].pipeline) == 0);
        json_t *windows = is_meant ? windows_of(all, &reports[i]) : NULL;
        if (windows != NULL && (int64_t)json_array_size(windows) < drift->n) {
            json_array_append_new(windows, json_boolean(reports[i].drifted));
        }
    }
    observing->inputs->windows = json_array_size(all) > 0 ? weir_json_text(all, arena) : NULL;
    json_decref(all);
    return WEIR_OK;
}

/* ---- figures --------------------------------------------------------------------------------- */

static void see_value(struct observing *observing, double value, int64_t time_ms, int64_t n)
{
    observing->inputs->has_value = true;
    observing->inputs->value = value;
    observing->inputs->value_ms = time_ms;
    observing->inputs->n_values = n;
}

static weir_status see_kpi(struct observing *observing, const char *name)
{
    struct weir_kpi kpi;
    weir_status status = weir_kpi_latest(observing->txn, observing->state->ion.name, name,
                                         observing->control->arena, &kpi, observing->err);
    if (status == WEIR_OK) {
        see_value(observing, kpi.value, kpi.time_ms, 1);
    }
    return status == WEIR_ERR_NOT_FOUND ? WEIR_OK : status;
}

static weir_status see_accuracy(struct observing *observing,
                                const struct weir_trigger_metric *metric)
{
    struct weir_accuracy accuracy;
    int64_t since_ms = WEIR_MAX(weir_trigger_since_ms(observing->inputs),
                                observing->control->now_ms - metric->window_s * 1000);
    WEIR_TRY(weir_feedback_accuracy(observing->txn, observing->state->ion.name, metric->pipeline,
                                    since_ms, &accuracy, observing->err));
    if (accuracy.n > 0) {
        see_value(observing, accuracy.accuracy, observing->control->now_ms, accuracy.n);
    }
    return WEIR_OK;
}

/** The last value of a metric of the pipeline's last run that ended well. */
static weir_status see_run(struct observing *observing, const char *name)
{
    static const char sql_run[] =
        "SELECT id FROM runs WHERE ion = :ion AND pipeline = :pipeline AND status = 'FINISHED' "
        "ORDER BY finished_ms DESC, id DESC LIMIT 1";
    struct weir_run run;
    struct weir_metric *metrics;
    char **ids;
    size_t n;
    struct weir_arena *arena = observing->control->arena;
    WEIR_TRY(weir_txn_query_texts(observing->txn, sql_run,
                                  WEIR_BINDS(WEIR_BIND_TEXT("ion", observing->state->ion.name),
                                             WEIR_BIND_TEXT("pipeline", observing->row->pipeline)),
                                  arena, &ids, &n, observing->err));
    if (n == 0) {
        return WEIR_OK;
    }
    WEIR_TRY(weir_txn_get(observing->txn, &weir_run_resource, ids[0], arena, &run, observing->err));
    WEIR_TRY(weir_metrics_latest(observing->txn, run.id, arena, &metrics, &n, observing->err));
    for (size_t i = 0; i < n; i++) {
        if (strcmp(metrics[i].key, name) == 0 && isfinite(metrics[i].value)) {
            see_value(observing, metrics[i].value, run.finished_ms, 1);
        }
    }
    return WEIR_OK;
}

static weir_status see_figure(struct observing *observing)
{
    const struct weir_trigger_metric *metric = observing->trigger->options;
    return strcmp(metric->of, "kpi") == 0   ? see_kpi(observing, metric->name)
           : strcmp(metric->of, "run") == 0 ? see_run(observing, metric->name)
                                            : see_accuracy(observing, metric);
}

/* ---- alerts and models ----------------------------------------------------------------------- */

static weir_status see_alert(struct observing *observing)
{
    const struct weir_trigger_alert *wanted = observing->trigger->options;
    struct weir_arena *arena = observing->control->arena;
    char *subject = weir_arena_printf(arena, "ion/%s", observing->state->ion.name);
    const struct weir_query query = {WEIR_FILTERS(WEIR_FILTER_TEXT("kind", EQ, wanted->alert),
                                                  WEIR_FILTER_TEXT("subject", EQ, subject),
                                                  WEIR_FILTER_TEXT("state", NE, "resolved")),
                                     .order_by = "last_ms", .is_descending = true, .limit = 1};
    void *items;
    size_t n;
    WEIR_TRY(weir_txn_list(observing->txn, &weir_alert_resource, &query, arena, &items, &n, NULL,
                           observing->err));
    if (n > 0) {
        const struct weir_alert *alert = items;
        observing->inputs->alert = alert->message;
        observing->inputs->alert_ms = alert->last_ms;
    }
    return WEIR_OK;
}

static weir_status see_model(struct observing *observing)
{
    struct weir_arena *arena = observing->control->arena;
    char *model =
        weir_arena_printf(arena, "%s.%s", observing->state->ion.name, observing->row->pipeline);
    const struct weir_query query = {WEIR_FILTERS(WEIR_FILTER_TEXT("model", EQ, model)),
                                     .order_by = "version", .is_descending = true, .limit = 1};
    void *items;
    size_t n;
    WEIR_TRY(weir_txn_list(observing->txn, &weir_model_version_resource, &query, arena, &items, &n,
                           NULL, observing->err));
    if (n > 0) {
        observing->inputs->model_ms = ((const struct weir_model_version *)items)->created_ms;
    }
    return WEIR_OK;
}

static weir_status see(struct observing *observing)
{
    switch (weir_trigger_ops(observing->trigger)->sees) {
    case WEIR_TRIGGER_SEES_WINDOWS:
        return see_windows(observing);
    case WEIR_TRIGGER_SEES_VALUE:
        return see_figure(observing);
    case WEIR_TRIGGER_SEES_ALERT:
        return see_alert(observing);
    case WEIR_TRIGGER_SEES_MODEL:
        return see_model(observing);
    case WEIR_TRIGGER_SEES_OWN:
        break;
    }
    return WEIR_OK;
}

/** Is there somebody who would listen? A trigger within its least interval is not asked either. */
static bool is_asked(const struct weir_ion_state *state, const struct weir_ion_trigger *row,
                     const struct weir_trigger *trigger, const struct weir_trigger_inputs *inputs)
{
    if (trigger == NULL || weir_trigger_ops(trigger)->sees == WEIR_TRIGGER_SEES_OWN) {
        return false;
    }
    const struct weir_trigger_common *common = trigger->options;
    int64_t started_ms = weir_trigger_past_ms(inputs, inputs->started_ms);
    int64_t until_ms = started_ms + common->least_interval_s * 1000;
    bool is_early = started_ms > 0 && until_ms > inputs->now_ms;
    bool is_idle = false;
    for (size_t i = 0; i < state->n_pipelines; i++) {
        is_idle = is_idle || (strcmp(state->pipelines[i].name, row->pipeline) == 0 &&
                              strcmp(state->pipelines[i].state, "IDLE") == 0);
    }
    return is_idle && !is_early;
}

weir_status control_observe(struct control *control, struct weir_txn *txn,
                            const struct weir_ion_state *state, struct weir_ion_observed **out,
                            size_t *out_n, struct weir_error *err)
{
    struct weir_ion_observed *observed =
        WEIR_ARENA_ARRAY(control->arena, state->n_triggers + 1, struct weir_ion_observed);
    size_t n = 0;
    for (size_t i = 0; i < state->n_triggers; i++) {
        const struct weir_ion_trigger *row = &state->triggers[i];
        const struct weir_trigger *trigger = weir_ion_trigger_of(state, row);
        observed[n] = (struct weir_ion_observed){
            row->id, weir_ion_trigger_inputs(state, row, control->now_ms)};
        struct observing observing = {control, txn, state, row, trigger, &observed[n].inputs, err};
        if (is_asked(state, row, trigger, &observed[n].inputs)) {
            WEIR_TRY(see(&observing));
            n++;
        }
    }
    *out = observed;
    *out_n = n;
    return WEIR_OK;
}

weir_status control_observe_is_due(struct control *control, struct weir_txn *txn,
                                   const struct weir_ion_state *state, bool *out_is_due,
                                   struct weir_error *err)
{
    struct weir_ion_observed *observed;
    size_t n;
    bool is_due = false;
    WEIR_TRY(control_observe(control, txn, state, &observed, &n, err));
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < state->n_triggers; k++) {
            const struct weir_trigger *trigger =
                strcmp(state->triggers[k].id, observed[i].trigger) == 0
                    ? weir_ion_trigger_of(state, &state->triggers[k])
                    : NULL;
            is_due =
                is_due || (trigger != NULL &&
                           weir_trigger_decide(trigger, &observed[i].inputs, control->arena).fires);
        }
    }
    *out_is_due = is_due;
    return WEIR_OK;
}

weir_status control_ion_tick(struct control *control, struct weir_txn *txn, const char *ion,
                             struct weir_error *err)
{
    struct weir_ion_state state;
    struct weir_ion_observed *observed;
    size_t n;
    WEIR_TRY(weir_ion_load(txn, ion, control->arena, &state, err));
    WEIR_TRY(control_observe(control, txn, &state, &observed, &n, err));
    struct weir_ion_event tick = {
        .type = WEIR_ION_EVENT_TICK, .actor = "system", .observed = observed, .n_observed = n};
    WEIR_TRY(control_rollout_gather(control, txn, &state, &tick, err));
    return control_ion_event(control, txn, ion, &tick, err);
}
