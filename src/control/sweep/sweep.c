#include "control/sweep.h"

#include "framework/framework.h"
#include "store/table.h"
#include "track/run.h"

#include <ctype.h>
#include <inttypes.h>
#include <string.h>

/* ---- the job of a trial ---------------------------------------------------------------------- */

/* Set a variable of the job's program, unless the user does. */
static void add_variable(json_t *env, const char *name, const char *value)
{
    if (json_object_get(env, name) == NULL) {
        json_object_set_new(env, name, json_string(value));
    }
}

/* WEIR_PARAM_LR=0.1 … for kinds of jobs that have an environment. */
static void add_environment(struct control *control, const struct weir_sweep_state *state,
                            const struct weir_sweep_trial *trial, const json_t *values,
                            json_t *spec)
{
    const struct weir_kind *kind = weir_registry_get(&weir_job_kinds, state->doc.job_kind);
    const char *name;
    json_t *value;
    if (kind == NULL || weir_options_find(kind->options, kind->n_options, "env") == NULL) {
        return;
    }
    json_t *env = json_object_get(spec, "env");
    if (!json_is_object(env)) {
        env = json_object();
        json_object_set_new(spec, "env", env);
    }
    json_object_foreach((json_t *)values, name, value)
    {
        char *variable = weir_arena_printf(control->arena, "WEIR_PARAM_%s", name);
        for (char *p = variable; *p != '\0'; p++) {
            *p = (char)toupper((unsigned char)*p);
        }
        add_variable(env, variable, weir_sweep_value_text(value, control->arena));
    }
    add_variable(env, "WEIR_SWEEP", state->sweep.name);
    add_variable(env, "WEIR_TRIAL", weir_arena_printf(control->arena, "%" PRId64, trial->number));
}

/* A number where a text is wanted: "{{lr}}" among the arguments of a program. */
static json_t *as_text(struct control *control, json_t *value)
{
    return json_is_number(value) || json_is_boolean(value)
               ? json_string(weir_sweep_value_text(value, control->arena))
               : json_incref(value);
}

static void make_texts(struct control *control, const char *job_kind, json_t *spec)
{
    const struct weir_kind *kind = weir_registry_get(&weir_job_kinds, job_kind);
    for (size_t i = 0; kind != NULL && i < kind->n_options; i++) {
        const struct weir_option *option = &kind->options[i];
        const char *key = weir_option_key(option, control->arena), *name;
        json_t *member = json_object_get(spec, key), *value;
        if (option->type == WEIR_OPTION_TEXT && member != NULL) {
            json_object_set_new(spec, key, as_text(control, member));
        } else if (option->type == WEIR_OPTION_TEXTS) {
            for (size_t k = 0; k < json_array_size(member); k++) {
                json_array_set_new(member, k, as_text(control, json_array_get(member, k)));
            }
        } else if (option->type == WEIR_OPTION_MAP) {
            json_object_foreach(member, name, value)
            {
                json_object_set_new(member, name, as_text(control, value));
            }
        }
    }
}

static weir_status fill_spec(struct control *control, const struct weir_sweep_state *state,
                             const struct weir_sweep_trial *trial, json_t **out,
                             struct weir_error *err)
{
    const struct weir_sweep_given given = {.sweep = state->sweep.name,
                                           .trial = trial->number,
                                           .max_resource = state->doc.rungs.max_resource};
    WEIR_AUTO(weir_json_auto_free) json_t *values = json_loads(trial->parameters, 0, NULL);
    WEIR_TRY(weir_sweep_fill(state->doc.job_spec, values, &given, control->arena, out, err));
    make_texts(control, state->doc.job_kind, *out);
    add_environment(control, state, trial, values, *out);
    return WEIR_OK;
}

static weir_status make_job(struct control *control, struct weir_txn *txn,
                            const struct weir_sweep_state *state,
                            const struct weir_sweep_trial *trial, struct weir_job *out,
                            struct weir_error *err)
{
    WEIR_AUTO(weir_json_auto_free) json_t *spec = NULL;
    const struct weir_job_ops *ops = weir_job_ops_of(state->doc.job_kind);
    char *id = weir_arena_alloc(control->arena, WEIR_UUID_BYTES);
    char *run = weir_arena_alloc(control->arena, WEIR_UUID_BYTES);
    weir_sweep_trial_id(trial, "job", id);
    weir_sweep_trial_id(trial, "run", run);
    WEIR_TRY(fill_spec(control, state, trial, &spec, err));
    struct control own = *control;
    own.limited_to = state->sweep.limited_to;
    own.actor = state->sweep.created_by != NULL ? state->sweep.created_by : control->actor;
    const struct control_job wanted = {
        .name = weir_arena_printf(control->arena, "%s.%" PRId64, state->sweep.name, trial->number),
        .project = state->sweep.project,
        .kind = state->doc.job_kind,
        .spec = spec,
        .max_restarts = state->doc.max_restarts >= 0 ? state->doc.max_restarts
                        : ops != NULL                ? ops->max_restarts
                                                     : 0,
        .id = id,
        .run = run,
        .experiment = state->sweep.name,
        .cause = weir_arena_printf(control->arena, "trial %" PRId64 " of sweep %s", trial->number,
                                   state->sweep.name),
        .is_tracked = ops != NULL && !ops->is_training && !ops->pins_model};
    return control_job_create(&own, txn, &wanted, out, err);
}

static bool has_parameter(const struct weir_tag *parameters, size_t n, const char *key)
{
    for (size_t i = 0; i < n; i++) {
        if (strcmp(parameters[i].key, key) == 0) {
            return true;
        }
    }
    return false;
}

/* What the trial tries is what people compare runs by. A name that the job's specification has too is
 * there already, with what it was given. */
static weir_status describe_run(struct control *control, struct weir_txn *txn,
                                const struct weir_sweep_state *state,
                                const struct weir_sweep_trial *trial, const char *run,
                                struct weir_error *err)
{
    int64_t number;
    struct weir_tag *there;
    size_t n_there, n = 0;
    const char *name;
    json_t *value;
    WEIR_AUTO(weir_json_auto_free) json_t *values = json_loads(trial->parameters, 0, NULL);
    WEIR_TRY(weir_run_number(txn, run, &number, err));
    WEIR_TRY(weir_run_parameters(txn, number, control->arena, &there, &n_there, err));
    struct weir_tag *added =
        WEIR_ARENA_ARRAY(control->arena, json_object_size(values) + 1, struct weir_tag);
    json_object_foreach(values, name, value)
    {
        if (!has_parameter(there, n_there, name)) {
            added[n].key = weir_arena_strdup(control->arena, name);
            added[n++].value = weir_sweep_value_text(value, control->arena);
        }
    }
    WEIR_TRY(weir_run_parameters_put(txn, number, added, n, err));
    const struct weir_tag tags[] = {
        {.key = "weir.sweep", .value = state->sweep.id},
        {.key = "weir.trial",
         .value = weir_arena_printf(control->arena, "%" PRId64, trial->number)}};
    return weir_run_tags_put(txn, number, tags, WEIR_ARRAY_LEN(tags), err);
}

/* ---- events ---------------------------------------------------------------------------------- */

static const char *const action_names[] = {
    [WEIR_SWEEP_ACTION_START] = "start_trial",
    [WEIR_SWEEP_ACTION_STOP] = "stop_trial",
    [WEIR_SWEEP_ACTION_HOLD] = "hold_trial",
    [WEIR_SWEEP_ACTION_GO_ON] = "go_on_trial",
};

bool control_sweep_is_action(const char *kind)
{
    for (size_t i = 0; i < WEIR_ARRAY_LEN(action_names); i++) {
        if (strcmp(action_names[i], kind) == 0) {
            return true;
        }
    }
    return false;
}

static weir_status add_outbox(struct control *control, struct weir_txn *txn,
                              const struct weir_sweep_state *state,
                              const struct weir_sweep_action *action, struct weir_error *err)
{
    const char *kind = action_names[action->type];
    /* A trial is started and stopped once; it waits and goes on once at each rung. */
    char *key =
        weir_arena_printf(control->arena, "%s:%s:%" PRId64, kind, state->sweep.id, action->trial);
    if (action->type == WEIR_SWEEP_ACTION_HOLD || action->type == WEIR_SWEEP_ACTION_GO_ON) {
        key = weir_arena_printf(control->arena, "%s:%zu", key,
                                state->trials[action->trial - 1].n_rungs);
    }
    WEIR_AUTO(weir_json_auto_free)
    json_t *payload = json_pack("{s:s,s:I,s:s?}", "sweep", state->sweep.id, "trial",
                                (json_int_t)action->trial, "why", action->message);
    return weir_outbox_add(txn, key, kind, weir_json_text(payload, control->arena), control->now_ms,
                           control->now_ms, err);
}

/* A trial that was stopped early has not failed, and neither has its run; its job was cancelled. */
static weir_status end_run(struct control *control, struct weir_txn *txn,
                           const struct weir_sweep_trial *trial, struct weir_error *err)
{
    struct weir_run run;
    bool is_good = strcmp(trial->state, "STOPPED") == 0 || strcmp(trial->state, "SUCCEEDED") == 0;
    if (!is_good || trial->run == NULL ||
        weir_txn_get(txn, &weir_run_resource, trial->run, control->arena, &run, NULL) != WEIR_OK ||
        strcmp(run.status, "KILLED") != 0) {
        return WEIR_OK;
    }
    run.status = weir_arena_strdup(control->arena, "FINISHED");
    WEIR_TRY(weir_txn_update(txn, &weir_run_resource, &run, WEIR_FIELDS("status"), err));
    control_publish(control, "runs", json_pack("{s:s,s:s}", "id", run.id, "status", run.status));
    return WEIR_OK;
}

static weir_status end_runs(struct control *control, struct weir_txn *txn,
                            const struct weir_sweep_state *state, struct weir_error *err)
{
    for (size_t i = 0; i < state->n_trials; i++) {
        const struct weir_sweep_trial_state *trial = &state->trials[i];
        if (trial->is_changed && !weir_sweep_trial_is_open(&trial->row)) {
            WEIR_TRY(end_run(control, txn, &trial->row, err));
        }
    }
    return WEIR_OK;
}

weir_status control_sweep_apply(struct control *control, struct weir_txn *txn,
                                struct weir_sweep_state *state,
                                const struct weir_sweep_event *event, struct weir_error *err)
{
    struct weir_sweep_actions actions = {0};
    WEIR_TRY(weir_sweep_step(state, event, control->now_ms, control->arena, &actions, err));
    WEIR_TRY(end_runs(control, txn, state, err));
    WEIR_TRY(weir_sweep_save(txn, state, control->arena, err));
    for (size_t i = 0; i < actions.n; i++) {
        const struct weir_sweep_action *action = &actions.items[i];
        WEIR_TRY(action->type == WEIR_SWEEP_ACTION_EVENT
                     ? control_log(control, txn, "sweeps", action->kind,
                                   weir_arena_printf(control->arena, "sweep/%s", state->sweep.id),
                                   action->message, err)
                     : add_outbox(control, txn, state, action, err));
    }
    control_publish(control, "sweeps",
                    json_pack("{s:s,s:s,s:s}", "id", state->sweep.id, "name", state->sweep.name,
                              "state", state->sweep.state));
    return WEIR_OK;
}

weir_status control_sweep_event(struct control *control, struct weir_txn *txn, const char *id,
                                const struct weir_sweep_event *event, struct weir_error *err)
{
    WEIR_AUTO(weir_sweep_state_fini) struct weir_sweep_state state = {0};
    WEIR_TRY(weir_sweep_load(txn, id, control->arena, &state, err));
    return control_sweep_apply(control, txn, &state, event, err);
}

/* ---- making one ------------------------------------------------------------------------------ */

/* The first trial's job as it will be: what is wrong with it is wrong with all. */
static weir_status check_job(struct control *control, const struct weir_sweep_state *state,
                             struct weir_error *err)
{
    const struct weir_kind *kind;
    double *point = WEIR_ARENA_ARRAY(control->arena, state->doc.space.n, double);
    WEIR_TRY(weir_registry_find(&weir_job_kinds, state->doc.job_kind, "$.job.kind", &kind, err));
    const struct weir_job_ops *ops = kind->ops;
    if (ops->is_service) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "$.job.kind: a trial ends, and a job of kind %s does not",
                              kind->name);
    }
    weir_sweep_space_draw(&state->doc.space, (uint64_t)state->doc.seed, 1, point);
    WEIR_AUTO(weir_json_auto_free)
    json_t *values = weir_sweep_space_values(&state->doc.space, point);
    const struct weir_sweep_trial trial = {.number = 1,
                                           .parameters = weir_json_text(values, control->arena)};
    WEIR_AUTO(weir_json_auto_free) json_t *spec = NULL;
    WEIR_TRY(fill_spec(control, state, &trial, &spec, err));
    weir_status status = weir_framework_check(kind->name, spec, control->arena, err);
    return status == WEIR_OK ? WEIR_OK : weir_error_prefix(err, "$.job of trial 1: ");
}

weir_status control_sweep_create(struct control *control, struct weir_txn *txn, json_t *document,
                                 struct weir_sweep *out, struct weir_error *err)
{
    WEIR_AUTO(weir_sweep_state_fini) struct weir_sweep_state state = {0};
    const struct weir_sweep_event first = {.type = WEIR_SWEEP_EVENT_TICK};
    WEIR_TRY(
        weir_sweep_begin(document, control->actor, control->now_ms, control->arena, &state, err));
    state.sweep.limited_to = weir_arena_strdup(control->arena, control->limited_to);
    WEIR_TRY(check_job(control, &state, err));
    WEIR_TRY(control_sweep_apply(control, txn, &state, &first, err));
    *out = state.sweep;
    return control_log(control, txn, "sweeps", "sweep_started",
                       weir_arena_printf(control->arena, "sweep/%s", out->id),
                       weir_arena_printf(control->arena,
                                         "Sweep %s has begun: %" PRId64
                                         " trials at most, chosen by method %s, for %s.",
                                         out->name, out->n_trials, out->method, out->metric),
                       err);
}

/* ---- the outbox ------------------------------------------------------------------------------ */

static weir_status start_trial(struct control *control, struct weir_txn *txn,
                               struct weir_sweep_state *state, int64_t number,
                               struct weir_error *err)
{
    const struct weir_sweep_trial *trial = &state->trials[number - 1].row;
    struct weir_error reason = {0};
    struct weir_job job = {0};
    struct weir_sweep_event event = {.type = WEIR_SWEEP_EVENT_STARTED, .trial = number};
    if (strcmp(trial->state, "WANTED") != 0) {
        return WEIR_OK; /* started before, or not wanted any more */
    }
    weir_status status = make_job(control, txn, state, trial, &job, &reason);
    switch (status) {
    case WEIR_OK:
        event.job = job.id;
        event.run = job.run;
        WEIR_TRY(describe_run(control, txn, state, trial, job.run, err));
        break;
    case WEIR_ERR_INVALID:
    case WEIR_ERR_NOT_FOUND:
    case WEIR_ERR_LIMIT:
    case WEIR_ERR_UNSUPPORTED:
        event.type = WEIR_SWEEP_EVENT_NOT_STARTED;
        event.note = weir_arena_strdup(control->arena, reason.message);
        break;
    default:
        return weir_error_set(err, status, "%s", reason.message);
    }
    return control_sweep_apply(control, txn, state, &event, err);
}

/* What becomes of a trial's job. */
static struct weir_job_event job_event_of(struct control *control, const char *kind,
                                          const char *why)
{
    if (strcmp(kind, action_names[WEIR_SWEEP_ACTION_HOLD]) == 0) {
        return (struct weir_job_event){
            .type = WEIR_JOB_EVENT_HOLD,
            .text = weir_arena_printf(control->arena, "held by its sweep: %s",
                                      why != NULL ? why : "it waits at a rung")};
    }
    if (strcmp(kind, action_names[WEIR_SWEEP_ACTION_GO_ON]) == 0) {
        return (struct weir_job_event){.type = WEIR_JOB_EVENT_RELEASE,
                                       .text = "its sweep lets it go on"};
    }
    return (struct weir_job_event){
        .type = WEIR_JOB_EVENT_CANCEL,
        .text = weir_arena_printf(control->arena, "its sweep has stopped it: %s",
                                  why != NULL ? why : "it is not wanted any more")};
}

static weir_status tell_job(struct control *control, struct weir_txn *txn,
                            const struct weir_sweep_trial *trial, const char *kind, const char *why,
                            struct weir_error *err)
{
    struct weir_error reason;
    const struct weir_job_event event = job_event_of(control, kind, why);
    if (trial->job == NULL) {
        return WEIR_OK;
    }
    weir_status status = control_job_event(control, txn, trial->job, &event, &reason);
    return status == WEIR_OK || status == WEIR_ERR_CONFLICT || status == WEIR_ERR_NOT_FOUND
               ? WEIR_OK /* it is over already */
               : weir_error_set(err, status, "%s", reason.message);
}

weir_status control_sweep_execute(struct control *control, struct weir_txn *txn, const char *kind,
                                  const json_t *payload, struct weir_error *err)
{
    WEIR_AUTO(weir_sweep_state_fini) struct weir_sweep_state state = {0};
    const char *id = json_string_value(json_object_get(payload, "sweep"));
    const char *why = json_string_value(json_object_get(payload, "why"));
    int64_t number = json_integer_value(json_object_get(payload, "trial"));
    weir_status status = weir_sweep_load(txn, id != NULL ? id : "", control->arena, &state, err);
    if (status == WEIR_ERR_NOT_FOUND) {
        return WEIR_OK; /* deleted since */
    }
    WEIR_TRY(status);
    if (number < 1 || number > (int64_t)state.n_trials) {
        return weir_error_set(err, WEIR_ERR_INTERNAL, "outbox action %s without a trial", kind);
    }
    return strcmp(kind, "start_trial") == 0
               ? start_trial(control, txn, &state, number, err)
               : tell_job(control, txn, &state.trials[number - 1].row, kind, why, err);
}
