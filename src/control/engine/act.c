/* The actions of alert rules (notify/action.h), by the events that people's commands send. */
#include "control/engine/alerter.h"
#include "track/registry.h"

#include "notify/action.h"
#include "notify/notify.h"
#include "store/row_scope.h"

#include <string.h>

typedef weir_status (*act_fn)(struct control *control, struct weir_txn *txn, const char *ion,
                              const void *options, struct weir_error *err);

/* The link that is meant: of that name, or the only one with a default. */
static weir_status find_default(const struct weir_ion_state *state, const char *id,
                                const struct weir_ion_doc_link **out, struct weir_error *err)
{
    const struct weir_ion_doc_link *found = NULL;
    size_t n = 0;
    for (size_t i = 0; i < state->doc.n_links; i++) {
        const struct weir_ion_doc_link *link = &state->doc.links[i];
        if (link->default_model != NULL && (id == NULL || strcmp(link->id, id) == 0)) {
            found = link;
            n++;
        }
    }
    if (n != 1) {
        return weir_error_set(err, n == 0 ? WEIR_ERR_NOT_FOUND : WEIR_ERR_CONFLICT,
                              n == 0 ? "no such link of ION \"%s\" has a default model"
                                     : "several links of ION \"%s\" have a default model: name one",
                              state->ion.name);
    }
    *out = found;
    return WEIR_OK;
}

static weir_status act_default_model(struct control *control, struct weir_txn *txn, const char *ion,
                                     const void *options, struct weir_error *err)
{
    const struct weir_alert_action_default_model *action = options;
    const struct weir_ion_doc_link *link = NULL;
    struct weir_ion_state state;
    struct weir_model_version version;
    WEIR_TRY(weir_ion_load(txn, ion, control->arena, &state, err));
    WEIR_TRY(find_default(&state, action->link, &link, err));
    WEIR_TRY(weir_model_version_get(txn, link->default_model, link->default_version, control->arena,
                                    &version, err));
    WEIR_TRY(weir_version_check_servable(&version, err));
    const struct weir_ion_model model = control_ion_model(&version, control->arena);
    const struct weir_ion_event event = {.type = WEIR_ION_EVENT_SET,
                                         .actor = control->actor,
                                         .link = link->id,
                                         .version = version.version,
                                         .models = &model,
                                         .n_models = 1};
    return control_ion_event(control, txn, ion, &event, err);
}

static weir_status act_roll_back(struct control *control, struct weir_txn *txn, const char *ion,
                                 const void *options, struct weir_error *err)
{
    const struct weir_alert_action_roll_back *action = options;
    const struct weir_ion_event event = {
        .type = WEIR_ION_EVENT_ROLLBACK, .actor = control->actor, .link = action->link};
    return control_ion_event(control, txn, ion, &event, err);
}

static weir_status act_pause(struct control *control, struct weir_txn *txn, const char *ion,
                             const void *options, struct weir_error *err)
{
    const struct weir_alert_action_pause *action = options;
    const struct weir_ion_event event = {
        .type = WEIR_ION_EVENT_PAUSE, .actor = control->actor, .pipeline = action->pipeline};
    return control_ion_event(control, txn, ion, &event, err);
}

/* The training that is meant: of that name, or the only one. */
static weir_status act_retrain(struct control *control, struct weir_txn *txn, const char *ion,
                               const void *options, struct weir_error *err)
{
    const struct weir_alert_action_retrain *action = options;
    struct weir_ion_event event = {
        .type = WEIR_ION_EVENT_TRIGGER, .actor = control->actor, .pipeline = action->pipeline};
    struct weir_ion_state state;
    size_t n = 0;
    WEIR_TRY(weir_ion_load(txn, ion, control->arena, &state, err));
    for (size_t i = 0; i < state.doc.n_pipelines && action->pipeline == NULL; i++) {
        if (state.doc.pipelines[i].type == WEIR_PIPELINE_TRAINING) {
            event.pipeline = state.doc.pipelines[i].name;
            n++;
        }
    }
    if (action->pipeline == NULL && n != 1) {
        return weir_error_set(err, WEIR_ERR_CONFLICT,
                              "ION \"%s\" has %zu trainings: name one in the action", ion, n);
    }
    return control_ion_event(control, txn, ion, &event, err);
}

static const struct {
    const struct weir_kind *kind;
    act_fn fn;
} acts[] = {

#define WEIR_KIND(name) {&weir_alert_action_##name, act_##name},
#include "notify/actions.def"
#undef WEIR_KIND
};

/* Who set the rule may have lost the right since, or be gone: then the rule has lost it, too. */
static weir_status check_maker(struct control *control, struct weir_txn *txn, const json_t *payload,
                               const struct weir_kind *action, struct weir_error *err)
{
    const char *subject = json_string_value(json_object_get(payload, "subject"));
    const char *maker = json_string_value(json_object_get(payload, "maker"));
    enum weir_right right = ((const struct weir_alert_action_ops *)action->ops)->right;
    struct weir_identity identity;
    struct weir_error gone;
    char *project = NULL;
    WEIR_TRY(weir_subject_project(txn, subject, control->arena, &project, err));
    weir_status status = maker != NULL
                             ? weir_user_identify(txn, maker, control->arena, &identity, &gone)
                             : WEIR_ERR_UNAUTH;
    if (status != WEIR_OK && status != WEIR_ERR_UNAUTH) {
        return weir_error_set(err, status, "%s", gone.message);
    }
    if (status == WEIR_OK && weir_identity_may(&identity, right, project)) {
        return WEIR_OK;
    }
    return weir_error_set(err, WEIR_ERR_DENIED,
                          "its maker \"%.63s\" may not %s %s in project %.63s (any more): somebody "
                          "who may has to set the rule",
                          maker != NULL ? maker : "", weir_right_verb(right),
                          weir_right_noun(right), project != NULL ? project : "");
}

static weir_status act(struct control *control, struct weir_txn *txn, const json_t *payload,
                       struct weir_error *err)
{
    const char *subject = json_string_value(json_object_get(payload, "subject"));
    const char *text = json_string_value(json_object_get(payload, "action"));
    struct weir_configured action;
    if (subject == NULL || text == NULL || strncmp(subject, "ion/", 4) != 0) {
        return weir_error_set(err, WEIR_ERR_INVALID, "the action is not about an ION");
    }
    WEIR_AUTO(weir_json_auto_free) json_t *object = NULL;
    WEIR_TRY(weir_json_parse(text, strlen(text), "action", &object, err));
    WEIR_TRY(weir_registry_read(&weir_alert_actions, object, "$", control->arena, &action, err));
    WEIR_TRY(check_maker(control, txn, payload, action.kind, err));
    for (size_t i = 0; i < WEIR_ARRAY_LEN(acts); i++) {
        if (acts[i].kind == action.kind) {
            return acts[i].fn(control, txn, weir_arena_strdup(control->arena, subject + 4),
                              action.options, err);
        }
    }
    return weir_error_set(err, WEIR_ERR_INTERNAL, "action \"%s\" has no code", action.kind->name);
}

/* What the ION says no to is an answer, and not tried again. */
static bool is_refusal(weir_status status)
{
    return status == WEIR_ERR_INVALID || status == WEIR_ERR_NOT_FOUND ||
           status == WEIR_ERR_CONFLICT || status == WEIR_ERR_DENIED ||
           status == WEIR_ERR_UNSUPPORTED;
}

weir_status control_alert_action(struct control *control, struct weir_txn *txn,
                                 const json_t *payload, struct weir_error *err)
{
    const char *rule = json_string_value(json_object_get(payload, "rule"));
    const char *subject = json_string_value(json_object_get(payload, "subject"));
    const char *alert = json_string_value(json_object_get(payload, "alert"));
    const char *firing = json_string_value(json_object_get(payload, "firing"));
    const char *action = json_string_value(json_object_get(payload, "action"));
    const char *actor = control->actor;
    struct weir_error refusal = {0};
    if (rule == NULL || subject == NULL || alert == NULL || firing == NULL || action == NULL) {
        return weir_error_set(err, WEIR_ERR_INTERNAL, "outbox action alert_action without a rule");
    }
    control->actor = weir_arena_printf(control->arena, "rule/%s", rule);
    weir_status status = act(control, txn, payload, &refusal);
    if (status != WEIR_OK && !is_refusal(status)) {
        control->actor = actor;
        return weir_error_set(err, status, "%s", refusal.message);
    }
    bool is_done = status == WEIR_OK;
    status = control_log(
        control, txn, "alerts", is_done ? "alert_acted" : "alert_action_refused", subject,
        weir_arena_printf(control->arena, "Rule %s %s because of the alert %s: %s%s%s", rule,
                          is_done ? "acted" : "could not act", alert, action, is_done ? "" : ": ",
                          refusal.message),
        err);
    control->actor = actor;
    WEIR_TRY(status);
    return weir_notify_action_done(
        txn, firing, json_integer_value(json_object_get(payload, "number")),
        is_done ? "done" : "refused", is_done ? NULL : refusal.message, control->arena, err);
}
