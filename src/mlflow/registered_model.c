/** Registered models: Weir's models, as MLflow's clients see them. */
#include "mlflow/registry.h"

#include "control/alias.h"
#include "control/model_change.h"
#include "control/model_delete.h"
#include "deploy/deploy.h"
#include "store/table.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define ALIASES_MAX 1000
#define PROMPT_TAG  "mlflow.prompt.is_prompt" /* of what its client registers as a prompt */

struct control mlflow_control(const struct weir_mlflow_call *call)
{
    return (struct control){.arena = call->arena,
                            .now_ms = call->now_ms,
                            .actor = call->acting,
                            .state_dir = call->state_dir,
                            .server_url = call->server_url,
                            .publish = call->publish};
}

/* ---- names ----------------------------------------------------------------------------------- */

static weir_status read_name(const struct weir_mlflow_call *call, const char *argument,
                             const char **out, struct weir_error *err)
{
    WEIR_TRY(mlflow_text(call, argument, out, err));
    if (*out == NULL || (*out)[0] == '\0') {
        return mlflow_missing(argument, err);
    }
    return weir_model_name_is_valid(*out)
               ? WEIR_OK
               : weir_error_set(err, WEIR_ERR_INVALID,
                                "Invalid registered model name: '%.200s'. Registered model name "
                                "cannot contain '/' or ':', nor be longer than %d bytes.",
                                *out, WEIR_MODEL_NAME_MAX_BYTES);
}

weir_status mlflow_find_model(const struct weir_mlflow_call *call, struct weir_txn *txn,
                              const char *name, struct weir_model *out, struct weir_error *err)
{
    struct weir_error missing;
    weir_status status = weir_model_get(txn, name, call->arena, out, &missing);
    if (status == WEIR_ERR_NOT_FOUND ||
        (status == WEIR_OK && !weir_row_scope_sees(&call->rows, out->project))) {
        return weir_error_set(err, WEIR_ERR_NOT_FOUND,
                              "Registered Model with name=%.256s not found", name);
    }
    return status == WEIR_OK ? WEIR_OK : weir_error_set(err, status, "%s", missing.message);
}

/* The one that the call names. */
weir_status mlflow_named_model(const struct weir_mlflow_call *call, struct weir_txn *txn,
                               struct weir_model *out, struct weir_error *err)
{
    const char *name;
    WEIR_TRY(read_name(call, "name", &name, err));
    return mlflow_find_model(call, txn, name, out, err);
}

weir_status mlflow_check_own_model(const struct weir_mlflow_call *call, const char *name,
                                   struct weir_error *err)
{
    return call->own_model == NULL || strcmp(call->own_model, name) == 0
               ? WEIR_OK
               : weir_error_set(err, WEIR_ERR_DENIED,
                                "this task's token registers models as \"%.256s\" only, the name "
                                "in its ION's document: who applied that has no right to more now",
                                call->own_model);
}

/* ---- telling --------------------------------------------------------------------------------- */

static void put_time(struct weir_buf *buf, const char *name, int64_t time_ms)
{
    (void)weir_buf_printf(buf, ",\"%s\":", name);
    mlflow_put_int(buf, time_ms);
}

void mlflow_put_times(struct weir_buf *buf, int64_t created_ms, int64_t updated_ms)
{
    put_time(buf, "creation_timestamp", created_ms);
    put_time(buf, "last_updated_timestamp", updated_ms != 0 ? updated_ms : created_ms);
}

weir_status mlflow_list_aliases(const struct weir_mlflow_call *call, struct weir_txn *txn,
                                const char *model, struct weir_model_alias **out, size_t *out_n,
                                struct weir_error *err)
{
    void *items;
    const struct weir_query query = {WEIR_FILTERS(WEIR_FILTER_TEXT("model", EQ, model)),
                                     .order_by = "alias", .limit = ALIASES_MAX};
    WEIR_TRY(weir_txn_list(txn, &weir_model_alias_resource, &query, call->arena, &items, out_n,
                           NULL, err));
    *out = items;
    return WEIR_OK;
}

static weir_status put_latest(struct weir_mlflow_call *call, struct weir_txn *txn,
                              struct weir_buf *buf, const char *model, struct weir_error *err)
{
    struct weir_model_version *versions;
    size_t n;
    WEIR_TRY(weir_model_latest(txn, model, NULL, call->arena, &versions, &n, err));
    (void)weir_buf_puts(buf, ",\"latest_versions\":[");
    for (size_t i = 0; i < n; i++) {
        (void)weir_buf_puts(buf, i > 0 ? "," : "");
        WEIR_TRY(mlflow_put_version(call, txn, buf, &versions[i], err));
    }
    (void)weir_buf_append(buf, "]", 1);
    return WEIR_OK;
}

weir_status mlflow_put_model(struct weir_mlflow_call *call, struct weir_txn *txn,
                             struct weir_buf *buf, const struct weir_model *model,
                             struct weir_error *err)
{
    struct weir_model_alias *aliases;
    struct weir_tag *tags;
    size_t n;
    (void)weir_buf_append(buf, "{", 1);
    mlflow_put_member(buf, "name", model->name);
    mlflow_put_times(buf, model->created_ms, model->updated_ms);
    mlflow_put_member(buf, "user_id", model->created_by);
    mlflow_put_member(buf, "description", model->description);
    WEIR_TRY(put_latest(call, txn, buf, model->name, err));
    WEIR_TRY(weir_model_tags(txn, model->name, call->arena, &tags, &n, err));
    mlflow_put_pairs(buf, ",\"tags\":", tags, n);
    WEIR_TRY(mlflow_list_aliases(call, txn, model->name, &aliases, &n, err));
    (void)weir_buf_puts(buf, ",\"aliases\":[");
    for (size_t i = 0; i < n; i++) {
        (void)weir_buf_puts(buf, i > 0 ? ",{" : "{");
        mlflow_put_member(buf, "alias", aliases[i].alias);
        (void)weir_buf_printf(buf, ",\"version\":\"%" PRId64 "\"}", aliases[i].version);
    }
    (void)weir_buf_puts(buf, "]}");
    return WEIR_OK;
}

static weir_status answer_model(struct weir_mlflow_call *call, struct weir_txn *txn,
                                const char *name, struct weir_error *err)
{
    struct weir_model model;
    struct weir_buf buf;
    WEIR_TRY(mlflow_find_model(call, txn, name, &model, err));
    weir_buf_init(&buf, MLFLOW_ANSWER_MAX_BYTES);
    (void)weir_buf_puts(&buf, "{\"registered_model\":");
    weir_status status = mlflow_put_model(call, txn, &buf, &model, err);
    return mlflow_answer_made(call, status, &buf);
}

/* ---- operations ------------------------------------------------------------------------------ */

weir_status mlflow_model_create(struct weir_mlflow_call *call, struct weir_txn *txn,
                                struct weir_error *err)
{
    struct control control = mlflow_control(call);
    const char *name, *description;
    struct weir_tag *tags;
    size_t n_tags;
    WEIR_TRY(read_name(call, "name", &name, err));
    WEIR_TRY(mlflow_text(call, "description", &description, err));
    WEIR_TRY(mlflow_tags(call, "tags", &tags, &n_tags, err));
    for (size_t i = 0; i < n_tags; i++) {
        if (strcmp(tags[i].key, PROMPT_TAG) == 0) {
            return weir_error_set(err, WEIR_ERR_UNSUPPORTED,
                                  "prompts are not supported: \"%.200s\" would be one. Keep its "
                                  "text as an artifact of a run",
                                  name);
        }
    }
    WEIR_TRY(mlflow_check_own_model(call, name, err));
    const struct weir_model model = {.name = (char *)name,
                                     .project = (char *)call->project,
                                     .description = (char *)description,
                                     .created_by = (char *)call->actor,
                                     .created_ms = call->now_ms};
    weir_status status = control_model_create(&control, txn, &model, err);
    if (status == WEIR_ERR_EXISTS) {
        return weir_error_set(err, status,
                              "Registered Model (name=%.256s) already exists. Error: the name is "
                              "taken",
                              name);
    }
    WEIR_TRY(status);
    for (size_t i = 0; i < n_tags; i++) {
        WEIR_TRY(weir_model_tag(txn, name, &tags[i], err));
    }
    return answer_model(call, txn, name, err);
}

weir_status mlflow_model_get(struct weir_mlflow_call *call, struct weir_txn *txn,
                             struct weir_error *err)
{
    const char *name;
    WEIR_TRY(read_name(call, "name", &name, err));
    return answer_model(call, txn, name, err);
}

weir_status mlflow_model_rename(struct weir_mlflow_call *call, struct weir_txn *txn,
                                struct weir_error *err)
{
    struct control control = mlflow_control(call);
    struct weir_model model;
    const char *new_name;
    WEIR_TRY(mlflow_named_model(call, txn, &model, err));
    WEIR_TRY(read_name(call, "new_name", &new_name, err));
    if (strcmp(model.name, new_name) != 0) {
        weir_status status = control_model_rename(&control, txn, model.name, new_name, err);
        if (status == WEIR_ERR_EXISTS) {
            return weir_error_set(err, status, "Registered Model (name=%.256s) already exists.",
                                  new_name);
        }
        WEIR_TRY(status);
    }
    return answer_model(call, txn, new_name, err);
}

weir_status mlflow_model_update(struct weir_mlflow_call *call, struct weir_txn *txn,
                                struct weir_error *err)
{
    struct weir_model model;
    const char *description;
    WEIR_TRY(mlflow_named_model(call, txn, &model, err));
    WEIR_TRY(mlflow_text(call, "description", &description, err));
    WEIR_TRY(weir_model_describe(txn, model.name, description, call->now_ms, err));
    return answer_model(call, txn, model.name, err);
}

/* MLflow's delete takes aliases with it; what serves still refuses. */
weir_status mlflow_drop_aliases(struct weir_mlflow_call *call, struct weir_txn *txn,
                                const char *model, int64_t version, struct weir_error *err)
{
    struct control control = mlflow_control(call);
    struct weir_model_alias *aliases;
    size_t n;
    WEIR_TRY(mlflow_list_aliases(call, txn, model, &aliases, &n, err));
    for (size_t i = 0; i < n; i++) {
        if (version == 0 || aliases[i].version == version) {
            WEIR_TRY(control_alias_set(&control, txn, model, aliases[i].alias, 0, err));
        }
    }
    return WEIR_OK;
}

weir_status mlflow_model_delete(struct weir_mlflow_call *call, struct weir_txn *txn,
                                struct weir_error *err)
{
    struct control control = mlflow_control(call);
    struct weir_model model;
    WEIR_TRY(mlflow_named_model(call, txn, &model, err));
    WEIR_TRY(mlflow_drop_aliases(call, txn, model.name, 0, err));
    WEIR_TRY(control_model_delete(&control, txn, model.name, err));
    mlflow_answer_nothing(call);
    return WEIR_OK;
}

weir_status mlflow_read_tag(const struct weir_mlflow_call *call, struct weir_tag *out,
                            struct weir_error *err)
{
    const char *key, *value;
    WEIR_TRY(mlflow_text_required(call, "key", &key, err));
    WEIR_TRY(mlflow_text(call, "value", &value, err));
    *out = (struct weir_tag){(char *)key, (char *)value};
    return WEIR_OK;
}

weir_status mlflow_model_set_tag(struct weir_mlflow_call *call, struct weir_txn *txn,
                                 struct weir_error *err)
{
    struct weir_model model;
    struct weir_tag tag;
    WEIR_TRY(mlflow_named_model(call, txn, &model, err));
    WEIR_TRY(mlflow_read_tag(call, &tag, err));
    WEIR_TRY(weir_model_tag(txn, model.name, &tag, err));
    mlflow_answer_nothing(call);
    return WEIR_OK;
}

weir_status mlflow_model_delete_tag(struct weir_mlflow_call *call, struct weir_txn *txn,
                                    struct weir_error *err)
{
    struct weir_model model;
    struct weir_tag tag;
    WEIR_TRY(mlflow_named_model(call, txn, &model, err));
    WEIR_TRY(mlflow_read_tag(call, &tag, err));
    WEIR_TRY(weir_model_untag(txn, model.name, tag.key, err));
    mlflow_answer_nothing(call);
    return WEIR_OK;
}

/* ---- aliases --------------------------------------------------------------------------------- */

static bool is_alias(const char *text)
{
    const char *c = text;
    while (isalnum((unsigned char)*c) || *c == '_' || *c == '-') {
        c++;
    }
    return *c == '\0' && control_alias_is_valid(text) && strcasecmp(text, "latest") != 0;
}

static weir_status read_alias(const struct weir_mlflow_call *call, const char **out,
                              struct weir_error *err)
{
    WEIR_TRY(mlflow_text(call, "alias", out, err));
    if (*out == NULL || (*out)[0] == '\0') {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "Registered model alias name cannot be empty.");
    }
    return is_alias(*out)
               ? WEIR_OK
               : weir_error_set(err, WEIR_ERR_INVALID,
                                "Invalid alias name: '%.100s'. Names may only contain "
                                "alphanumerics, underscores (_) and dashes (-), at most %d, and "
                                "\"latest\", \"none\" and version numbers are reserved.",
                                *out, CONTROL_ALIAS_MAX_BYTES);
}

weir_status mlflow_alias_set(struct weir_mlflow_call *call, struct weir_txn *txn,
                             struct weir_error *err)
{
    struct control control = mlflow_control(call);
    struct weir_model_version version;
    const char *alias;
    WEIR_TRY(read_alias(call, &alias, err));
    WEIR_TRY(mlflow_named_version(call, txn, &version, err));
    WEIR_TRY(control_alias_set(&control, txn, version.model, alias, version.version, err));
    mlflow_answer_nothing(call);
    return WEIR_OK;
}

weir_status mlflow_alias_delete(struct weir_mlflow_call *call, struct weir_txn *txn,
                                struct weir_error *err)
{
    struct control control = mlflow_control(call);
    struct weir_model model;
    const char *alias;
    struct weir_error missing;
    WEIR_TRY(read_alias(call, &alias, err));
    WEIR_TRY(mlflow_named_model(call, txn, &model, err));
    weir_status status = control_alias_set(&control, txn, model.name, alias, 0, &missing);
    if (status != WEIR_OK && status != WEIR_ERR_NOT_FOUND) {
        return weir_error_set(err, status, "%s", missing.message);
    }
    mlflow_answer_nothing(call);
    return WEIR_OK;
}

weir_status mlflow_alias_get(struct weir_mlflow_call *call, struct weir_txn *txn,
                             struct weir_error *err)
{
    struct weir_model model;
    struct weir_model_alias found;
    struct weir_model_version version;
    struct weir_error missing;
    const char *alias;
    WEIR_TRY(read_alias(call, &alias, err));
    WEIR_TRY(mlflow_named_model(call, txn, &model, err));
    weir_status status = weir_txn_get(txn, &weir_model_alias_resource,
                                      weir_arena_printf(call->arena, "%s:%s", model.name, alias),
                                      call->arena, &found, &missing);
    if (status == WEIR_ERR_NOT_FOUND) {
        return weir_error_set(err, WEIR_ERR_INVALID, "Registered model alias %s not found.", alias);
    }
    WEIR_TRY(status == WEIR_OK ? WEIR_OK : weir_error_set(err, status, "%s", missing.message));
    WEIR_TRY(weir_model_version_get(txn, model.name, found.version, call->arena, &version, err));
    return mlflow_answer_version(call, txn, &version, err);
}
