/** Applying an ION document. What cannot work is refused with a sentence that says what to change;
 *  what looks wrong from here, but may be right on another node, is a warning in the answer. */
#include "api/ion/ion_apply.h"

#include "api/core/functions.h"
#include "api/core/query.h"
#include "api/ion/ion.h"
#include "base/secret.h"
#include "control/control.h"
#include "ion/old_words.h"
#include "ion/revision.h"
#include "store/table.h"

#include <string.h>

void ion_apply_warn(struct ion_apply *apply, const char *sentence)
{
    json_t *text = json_string(sentence);
    if (text != NULL) {
        json_array_append_new(apply->warnings, text);
    }
}

/** Of a sandbox nothing real is touched: a preparation makes versions of a real dataset, and a training
 *  that names its model, of a real model. */
static weir_status check_sandbox(const struct ion_apply *apply, const char *mode,
                                 struct weir_error *err)
{
    for (size_t i = 0; i < apply->doc.n_pipelines && strcmp(mode, WEIR_ION_SANDBOX) == 0; i++) {
        const struct weir_ion_doc_pipeline *pipeline = &apply->doc.pipelines[i];
        if (pipeline->type == WEIR_PIPELINE_PREPARATION) {
            return weir_error_set(
                err, WEIR_ERR_UNSUPPORTED,
                "$.pipelines[%zu]: \"%s\" makes versions of dataset \"%s\", which "
                "is real: an ION with a preparation cannot be a sandbox; try it "
                "without, on a version that is there",
                i, pipeline->name, pipeline->output);
        }
        const char *own =
            weir_arena_printf(apply->call->arena, "%s.%s", apply->doc.name, pipeline->name);
        if (pipeline->registers != NULL && strcmp(pipeline->registers, own) != 0) {
            return weir_error_set(err, WEIR_ERR_UNSUPPORTED,
                                  "$.pipelines[%zu].registers: model \"%s\" is real: an ION that "
                                  "makes versions of it cannot be a sandbox; leave it out to try, "
                                  "and the versions are of \"%s\"",
                                  i, pipeline->registers, own);
        }
    }
    return WEIR_OK;
}

/** An ION does what it does by itself, so who applies a document needs the right to all of it: to run
 *  jobs, to register what they train, to make versions of the dataset that they prepare. */
static weir_status check_rights(const struct ion_apply *apply, struct weir_error *err)
{
    for (size_t i = 0; i < apply->doc.n_pipelines; i++) {
        const struct weir_ion_doc_pipeline *pipeline = &apply->doc.pipelines[i];

        enum weir_right needed[2] = {[0] = WEIR_RIGHT_JOBS_SUBMIT};

        needed[1] = pipeline->type == WEIR_PIPELINE_TRAINING      ? WEIR_RIGHT_MODELS_REGISTER
                    : pipeline->type == WEIR_PIPELINE_PREPARATION ? WEIR_RIGHT_DATASETS_CHANGE
                                                                  : needed[0];
        for (size_t j = 0; j < WEIR_ARRAY_LEN(needed); j++) {
            if (!weir_identity_may(&apply->call->identity, needed[j], apply->doc.project)) {
                return weir_error_set(
                    err, WEIR_ERR_DENIED,
                    "$.pipelines[%zu]: an ION does no more than who applies it: the %s \"%.63s\" "
                    "needs the right to %s %s in project %.63s; ask somebody who has it",
                    i, weir_pipeline_type_name(pipeline->type), pipeline->name,
                    weir_right_verb(needed[j]), weir_right_noun(needed[j]), apply->doc.project);
            }
        }
    }
    return WEIR_OK;
}

/** An ION that lives changes its mode by being promoted, and in no other way. */
static weir_status check_mode(const struct ion_apply *apply, const struct weir_ion *ion,
                              struct weir_error *err)
{
    if (apply->mode == NULL || strcmp(ion->state, "ACTIVE") != 0 ||
        strcmp(apply->mode, ion->mode) == 0) {
        return WEIR_OK;
    }
    return strcmp(ion->mode, WEIR_ION_SANDBOX) == 0
               ? weir_error_set(err, WEIR_ERR_CONFLICT,
                                "ION \"%s\" is a sandbox: `weir ion promote %s` takes it into "
                                "production",
                                ion->name, ion->name)
               : weir_error_set(err, WEIR_ERR_CONFLICT,
                                "ION \"%s\" is in production: apply what is to be tried under "
                                "another name",
                                ion->name);
}

static weir_status apply_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct ion_apply *apply = context;
    struct api_call *call = apply->call;
    struct weir_ion_state state;
    struct weir_ion_actions actions = {0};
    struct weir_error missing;
    json_array_clear(call->publish);
    while (json_array_size(apply->warnings) > apply->n_of_doc) {
        json_array_remove(apply->warnings, apply->n_of_doc);
    }
    WEIR_TRY(ion_apply_find(apply, txn, err));
    weir_status status = weir_ion_load(txn, apply->doc.name, call->arena, &state, &missing);
    if (status == WEIR_ERR_NOT_FOUND) {
        weir_ion_state_new(apply->doc.name, call->arena, &state);
    } else if (status != WEIR_OK) {
        return weir_error_set(err, status, "%s", missing.message);
    } else {
        WEIR_TRY(check_mode(apply, &state.ion, err));
    }
    bool lives = status == WEIR_OK && strcmp(state.ion.state, "ACTIVE") == 0;
    const char *mode = lives                 ? state.ion.mode
                       : apply->mode != NULL ? apply->mode
                                             : WEIR_ION_PRODUCTION;
    WEIR_TRY(check_sandbox(apply, mode, err));
    struct weir_ion_event event = {.type = WEIR_ION_EVENT_APPLIED,
                                   .actor = call->actor,
                                   .document = weir_json_text(call->body, call->arena),
                                   .mode = apply->mode,
                                   .doc = &apply->doc,
                                   .datasets = apply->datasets,
                                   .n_datasets = apply->n_datasets,
                                   .models = apply->models,
                                   .n_models = apply->n_models,
                                   .detectors = apply->detectors,
                                   .n_detectors = apply->n_detectors,
                                   .aliases = apply->aliases,
                                   .defaults = apply->defaults,
                                   .n_defaults = apply->n_defaults};
    WEIR_TRY(weir_ion_step(&state, &event, call->now_ms, call->arena, &actions, err));
    WEIR_TRY(weir_ion_save(txn, &state, &actions, call->now_ms, err));
    WEIR_TRY(weir_ion_revision_limit(txn, state.ion.name, state.ion.revision,
                                     call->identity.limited_to, err));
    if (call->is_trial) {
        return api_ion_plan(call, txn, apply->doc.name, &actions, apply->warnings, err);
    }
    struct control control = api_control(call);
    control_publish(&control, "ions", json_pack("{s:s}", "name", apply->doc.name));
    return api_ion_answer(call, txn, apply->doc.name, apply->warnings, err);
}

static weir_status restore_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct ion_apply *apply = context;
    struct weir_ion ion = {0};
    json_t *body = apply->call->body, *stored = NULL;
    const char *name = json_string_value(json_object_get(body, "name"));
    if (name != NULL &&
        weir_txn_get(txn, &weir_ion_resource, name, apply->call->arena, &ion, NULL) == WEIR_OK) {
        stored = json_loads(ion.document != NULL ? ion.document : "", 0, NULL);
    }
    weir_status status = weir_secrets_restore(body, stored, WEIR_ION_SECRETS, "$", err);
    json_decref(stored);
    return status;
}

/** A document that was fetched has masks for its secrets: they keep their values. */
static weir_status restore_secrets(struct ion_apply *apply, struct weir_error *err)
{
    return weir_secrets_are_masked(apply->call->body, WEIR_ION_SECRETS)
               ? api_read(apply->call, restore_in, apply, err)
               : WEIR_OK;
}

/** Check all that needs no transaction, then store. */
static weir_status check_and_store(struct ion_apply *apply, struct weir_error *err)
{
    weir_ion_replace_old_words(apply->call->body, apply->warnings);
    WEIR_TRY(restore_secrets(apply, err));
    WEIR_TRY(weir_ion_doc_parse(apply->call->body, apply->call->arena, &apply->doc, err));
    WEIR_TRY(check_rights(apply, err));
    WEIR_TRY(ion_apply_check(apply, err));
    apply->n_of_doc = json_array_size(apply->warnings);
    return api_write(apply->call, apply_in, apply, err);
}

weir_status api_ion_apply(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    struct ion_apply apply = {
        .call = call, .mode = api_query_text(call, "mode"), .warnings = json_array()};
    (void)txn;
    weir_status status = check_and_store(&apply, err);
    json_decref(apply.warnings);
    return status;
}
