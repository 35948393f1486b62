#include "control/engine/observe.h"

#include "control/deploy/evaluation.h"
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
    struct weir_filter filters[4] = {
        WEIR_FILTER_TEXT("ion", EQ, observing->state->ion.name),
        WEIR_FILTER_INT("time_ms", GT, weir_trigger_since_ms(observing->inputs))};
    size_t n, n_filters = 2;
    if (drift->signal != NULL) {
        filters[n_filters++] = WEIR_FILTER_TEXT("signal", EQ, drift->signal);
    }
    if (drift->pipeline != NULL) {
        filters[n_filters++] = WEIR_FILTER_TEXT("pipeline", EQ, drift->pipeline);
    }
    /* By their time, as health_reports_by_time has them: nothing older is read. */
    const struct weir_query query = {.filters = filters,
                                     .n_filters = n_filters,
                                     .order_by = "time_ms",
                                     .is_descending = true,
                                     .limit = OBSERVE_WINDOWS_MAX};
    void *items;
    WEIR_TRY(weir_txn_list(observing->txn, &weir_health_report_resource, &query, arena, &items, &n,
                           NULL, observing->err));
    const struct weir_health_report *reports = items;
    json_t *all = json_array();
    for (size_t i = 0; i < n; i++) {
        json_t *windows = windows_of(all, &reports[i]);
        if ((int64_t)json_array_size(windows) < drift->n) {
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

/** The pipeline's last run that ended well; NULL: none did. */
static weir_status find_run(struct observing *observing, const char *pipeline, char **out_id,
                            int64_t *out_finished_ms)
{
    static const char sql[] =
        "SELECT id, finished_ms FROM runs WHERE ion = :ion AND pipeline = :pipeline AND status = "
        "'FINISHED' ORDER BY finished_ms DESC, id DESC LIMIT 1";
    WEIR_AUTO(weir_stmt_auto_close) struct weir_stmt *stmt = NULL;
    bool has_row;
    *out_id = NULL;
    WEIR_TRY(weir_stmt_open(observing->txn, sql,
                            WEIR_BINDS(WEIR_BIND_TEXT("ion", observing->state->ion.name),
                                       WEIR_BIND_TEXT("pipeline", pipeline)),
                            &stmt, observing->err));
    WEIR_TRY(weir_stmt_step(stmt, &has_row, observing->err));
    if (has_row) {
        *out_id = weir_stmt_text(stmt, 0, observing->control->arena);
        *out_finished_ms = weir_stmt_int(stmt, 1);
    }
    return WEIR_OK;
}

/** The last value of a metric of that run. */
static weir_status see_run(struct observing *observing, const struct weir_trigger_metric *metric)
{
    const char *name = metric->name;
    const char *pipeline = metric->pipeline != NULL ? metric->pipeline : observing->row->pipeline;
    char *run;
    int64_t finished_ms;
    double value;
    WEIR_TRY(find_run(observing, pipeline, &run, &finished_ms));
    if (run == NULL) {
        return WEIR_OK;
    }
    WEIR_TRY(weir_metric_last(observing->txn, run, name, &value, observing->err));
    if (isfinite(value)) {
        see_value(observing, value, finished_ms, 1);
    }
    return WEIR_OK;
}

static weir_status see_figure(struct observing *observing)
{
    const struct weir_trigger_metric *metric = observing->trigger->options;
    return strcmp(metric->of, "kpi") == 0   ? see_kpi(observing, metric->name)
           : strcmp(metric->of, "run") == 0 ? see_run(observing, metric)
                                            : see_accuracy(observing, metric);
}

/* ---- alerts and models ----------------------------------------------------------------------- */

static weir_status see_alert(struct observing *observing)
{
    static const char sql[] =
        "SELECT message, last_ms FROM alerts WHERE subject = :subject AND state <> 'resolved'"
        " AND kind = :kind ORDER BY last_ms DESC, id DESC LIMIT 1";
    const struct weir_trigger_alert *wanted = observing->trigger->options;
    struct weir_arena *arena = observing->control->arena;
    char *subject = weir_arena_printf(arena, "ion/%s", observing->state->ion.name);
    WEIR_AUTO(weir_stmt_auto_close) struct weir_stmt *stmt = NULL;
    bool has_row;
    WEIR_TRY(weir_stmt_open(
        observing->txn, sql,
        WEIR_BINDS(WEIR_BIND_TEXT("subject", subject), WEIR_BIND_TEXT("kind", wanted->alert)),
        &stmt, observing->err));
    WEIR_TRY(weir_stmt_step(stmt, &has_row, observing->err));
    if (has_row) {
        observing->inputs->alert = weir_stmt_text(stmt, 0, arena);
        observing->inputs->alert_ms = weir_stmt_int(stmt, 1);
    }
    return WEIR_OK;
}

/** Its time alone: a version's record can weigh megabytes. */
static weir_status see_model(struct observing *observing)
{
    static const char sql[] = "SELECT created_ms FROM model_versions WHERE model = :model"
                              " AND deleted_ms = 0 ORDER BY version DESC LIMIT 1";
    const char *model = weir_ion_doc_model(&observing->state->doc, observing->row->pipeline);
    return weir_txn_query_int(observing->txn, sql, WEIR_BINDS(WEIR_BIND_TEXT("model", model)), 0,
                              &observing->inputs->model_ms, observing->err);
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
    const struct weir_ion_pipeline *pipeline = weir_ion_pipeline_of(state, row->pipeline);
    return pipeline != NULL && strcmp(pipeline->state, "IDLE") == 0 &&
           weir_trigger_until_ms(trigger, inputs) == 0;
}

/** What the ION's triggers look at now; in the control's arena. Cost: a query for each such trigger. */
static weir_status observe_triggers(struct control *control, struct weir_txn *txn,
                                    const struct weir_ion_state *state,
                                    struct weir_ion_observed **out, size_t *out_n,
                                    struct weir_error *err)
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
    WEIR_TRY(observe_triggers(control, txn, state, &observed, &n, err));
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
    WEIR_TRY(observe_triggers(control, txn, &state, &observed, &n, err));
    struct weir_ion_event tick = {
        .type = WEIR_ION_EVENT_TICK, .actor = "system", .observed = observed, .n_observed = n};
    WEIR_TRY(control_rollout_gather(control, txn, &state, &tick, err));
    WEIR_TRY(control_evaluation_gather(control, txn, &state, &tick, err));
    return control_ion_step(control, txn, &state, &tick, err);
}
