/** What people say of models, versions, experiments and runs: descriptions, tags, stages. */

#include "api/data/label.h"

#include "api/core/answer.h"
#include "api/core/args.h"
#include "api/core/functions.h"
#include "api/core/views.h"
#include "api/model/model.h"
#include "control/control.h"
#include "track/registry.h"

#include <stdlib.h>
#include <string.h>

#define NOTE_TAG "mlflow.note.content" /* where MLflow's page has the description of a run */

weir_status api_body_note(struct api_call *call, struct weir_error *err)
{
    json_t *note = json_object_get(call->body, "description");
    json_t *tags = json_object_get(call->body, "tags");
    if (note == NULL) {
        return WEIR_OK;
    }
    if (!json_is_string(note) && !json_is_null(note)) {
        return weir_error_set(err, WEIR_ERR_INVALID, "$.description: expected text or null");
    }
    if (tags == NULL) {
        tags = json_object();
        json_object_set_new(call->body, "tags", tags);
    }
    if (json_is_object(tags)) { /* what is none is refused where tags are read */
        json_object_set(tags, NOTE_TAG, note);
    }
    return WEIR_OK;
}

/* ---- tags: of a model by its name, of a version by its identifier ----------------------------- */

/** Functions of the registry that are alike. */
struct owner {
    weir_status (*tag)(struct weir_txn *, const char *, const struct weir_tag *,
                       struct weir_error *);
    weir_status (*untag)(struct weir_txn *, const char *, const char *, struct weir_error *);
    weir_status (*tags)(struct weir_txn *, const char *, struct weir_arena *, struct weir_tag **,
                        size_t *, struct weir_error *);
};

static const struct owner models = {weir_model_tag, weir_model_untag, weir_model_tags};
static const struct owner versions = {weir_version_tag, weir_version_untag, weir_version_tags};

/* {"key": "text"}; null takes a tag away. */
static weir_status put_tags(struct api_call *call, struct weir_txn *txn, const struct owner *owner,
                            const char *of, struct weir_error *err)
{
    json_t *tags = json_object_get(call->body, "tags"), *value;
    const char *key;
    if (tags != NULL && (!json_is_object(tags) || json_object_size(tags) > WEIR_MODEL_TAGS_MAX)) {
        return weir_error_set(err, WEIR_ERR_INVALID, "$.tags: expected an object of at most %d",
                              WEIR_MODEL_TAGS_MAX);
    }
    json_object_foreach(tags, key, value)
    {
        if (!json_is_string(value) && !json_is_null(value)) {
            return weir_error_set(err, WEIR_ERR_INVALID, "$.tags.%.80s: expected text or null",
                                  key);
        }
        WEIR_TRY(json_is_null(value)
                     ? owner->untag(txn, of, key, err)
                     : owner->tag(txn, of,
                                  &(struct weir_tag){(char *)key, (char *)json_string_value(value)},
                                  err));
    }
    return WEIR_OK;
}

/* ---- models ---------------------------------------------------------------------------------- */

static weir_status answer_model(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    struct weir_model model;
    struct weir_tag *tags;
    size_t n;
    WEIR_TRY(weir_model_get(txn, call->params[0], call->arena, &model, err));
    WEIR_TRY(weir_model_tags(txn, model.name, call->arena, &tags, &n, err));
    API_ANSWER(call, api_model, .row = &model, .tags = &(struct api_tags){tags, n});
    return WEIR_OK;
}

weir_status api_model_get(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    return answer_model(call, txn, err);
}

static void tell(struct api_call *call)
{
    struct control control = api_control(call);
    control_publish(&control, "models", json_pack("{s:s}", "name", call->params[0]));
}

weir_status api_model_update(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    static const char *const fields[] = {"description", "tags", NULL};
    struct weir_model model;
    const char *description;
    WEIR_TRY(api_body_only(call, fields, err));
    WEIR_TRY(api_body_text(call, "description", &description, err));
    WEIR_TRY(weir_model_get(txn, call->params[0], call->arena, &model, err));
    if (json_object_get(call->body, "description") != NULL) {
        WEIR_TRY(weir_model_describe(txn, model.name, description, call->now_ms, err));
    }
    WEIR_TRY(put_tags(call, txn, &models, model.name, err));
    tell(call);
    return answer_model(call, txn, err);
}

/* ---- versions -------------------------------------------------------------------------------- */

/* $.stage, and with $.archive_others what becomes of the others in it. */
static weir_status set_stage(struct api_call *call, struct weir_txn *txn,
                             struct weir_model_version *version, struct weir_error *err)
{
    const json_t *archives = json_object_get(call->body, "archive_others");
    const char *text;
    WEIR_TRY(api_body_text(call, "stage", &text, err));
    if (archives != NULL && !json_is_boolean(archives)) {
        return weir_error_set(err, WEIR_ERR_INVALID, "$.archive_others: expected true or false");
    }
    if (text == NULL) {
        return json_is_true(archives)
                   ? weir_error_set(err, WEIR_ERR_INVALID, "$.archive_others: say the $.stage, too")
                   : WEIR_OK;
    }
    const char *stage = weir_stage_of(text);
    if (stage == NULL) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "$.stage: expected None, Staging, Production or Archived");
    }
    bool is_active =
        strcmp(stage, WEIR_STAGE_STAGING) == 0 || strcmp(stage, WEIR_STAGE_PRODUCTION) == 0;
    if (json_is_true(archives) && !is_active) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "$.archive_others: only for the stages Staging and Production");
    }
    return weir_version_set_stage(txn, version, stage, json_is_true(archives), call->now_ms, err);
}

weir_status api_model_version_update(struct api_call *call, struct weir_txn *txn,
                                     struct weir_error *err)
{
    static const char *const fields[] = {"description", "tags", "stage", "archive_others", NULL};
    struct weir_model_version version;
    const char *description;
    int64_t number = 0;
    json_t *view;
    WEIR_TRY(api_body_only(call, fields, err));
    WEIR_TRY(api_body_text(call, "description", &description, err));
    WEIR_TRY(api_read_version(call->params[1], &number, err));
    WEIR_TRY(weir_model_version_get(txn, call->params[0], number, call->arena, &version, err));
    if (json_object_get(call->body, "description") != NULL) {
        WEIR_TRY(weir_version_describe(txn, &version, description, call->now_ms, err));
    }
    WEIR_TRY(put_tags(call, txn, &versions, version.id, err));
    WEIR_TRY(set_stage(call, txn, &version, err));
    tell(call);
    WEIR_TRY(weir_model_version_get(txn, call->params[0], number, call->arena, &version, err));
    WEIR_TRY(api_version_view(call, txn, &version, &view, err));
    api_answer(call, view);
    return WEIR_OK;
}
