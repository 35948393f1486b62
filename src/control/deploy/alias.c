#include "control/alias.h"

#include "control/deploy.h"
#include "ion/ion.h"
#include "store/row_scope.h"
#include "store/stmt.h"
#include "store/table.h"
#include "track/registry.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define SHOWN_MAX 60

static const char sql_followers[] =
    "SELECT name FROM deployments WHERE model = :model AND follows = :alias ORDER BY name";

/* A name that is a version's would be taken for one. */
static bool is_version_word(const char *text)
{
    size_t at = text[0] == 'v' || text[0] == 'V' ? 1 : 0;
    return text[at] != '\0' && text[at + strspn(text + at, "0123456789")] == '\0';
}

bool control_alias_is_valid(const char *text)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                  "0123456789._-";
    size_t len = strlen(text);
    return len > 0 && len <= CONTROL_ALIAS_MAX_BYTES && strspn(text, letters) == len &&
           !is_version_word(text) && strcmp(text, "none") != 0;
}

/* One that cannot serve the version says so, and does not hinder the others. */
static weir_status move_follower(struct control *control, struct weir_txn *txn, const char *name,
                                 const char *alias, int64_t version, struct weir_error *err)
{
    struct weir_error reason;
    weir_status status = control_deploy_follow(control, txn, name, version, &reason);
    char *subject = weir_arena_printf(control->arena, "deployment/%s", name);
    if (status == WEIR_OK) {
        return control_log(control, txn, "deployments", "deployment_asked", subject,
                           weir_arena_printf(control->arena,
                                             "Deployment %s follows alias %s to version %" PRId64,
                                             name, alias, version),
                           err);
    }
    if (status != WEIR_ERR_CONFLICT && status != WEIR_ERR_LIMIT) {
        return weir_error_set(err, status, "%s", reason.message);
    }
    return control_log(control, txn, "deployments", "deployment_stays", subject,
                       weir_arena_printf(control->arena,
                                         "Deployment %s does not follow alias %s to version "
                                         "%" PRId64 ": %s",
                                         name, alias, version, reason.message),
                       err);
}

static weir_status move_followers(struct control *control, struct weir_txn *txn, const char *model,
                                  const char *alias, int64_t version, struct weir_error *err)
{
    char **names;
    size_t n;
    WEIR_TRY(weir_txn_query_texts(
        txn, sql_followers,
        WEIR_BINDS(WEIR_BIND_TEXT("model", model), WEIR_BIND_TEXT("alias", alias)), control->arena,
        &names, &n, err));
    for (size_t i = 0; i < n; i++) {
        WEIR_TRY(move_follower(control, txn, names[i], alias, version, err));
    }
    return WEIR_OK;
}

static bool doc_follows(const struct weir_ion_doc *doc, const char *model, const char *alias)
{
    for (size_t i = 0; i < doc->n_links; i++) {
        const struct weir_ion_doc_link *link = &doc->links[i];
        if (link->alias != NULL && strcmp(link->alias, alias) == 0 &&
            strcmp(link->model, model) == 0) {
            return true;
        }
    }
    for (size_t i = 0; i < doc->n_pipelines; i++) {
        if (weir_ion_doc_detects_by(&doc->pipelines[i], model, alias)) {
            return true;
        }
    }
    return false;
}

/* Links of IONs that take what the alias names. One that cannot be read has its alert, and hinders no other. */
static weir_status offer_to_links(struct control *control, struct weir_txn *txn,
                                  const struct weir_model_version *version, const char *alias,
                                  struct weir_error *err)
{
    char **ions;
    size_t n;
    struct weir_error ignored;
    if (weir_version_check_servable(version, &ignored) != WEIR_OK) {
        return WEIR_OK;
    }
    const struct weir_ion_model model = control_ion_model(version, control->arena);
    const struct weir_ion_event event = {.type = WEIR_ION_EVENT_MODEL,
                                         .actor = control->actor,
                                         .models = &model,
                                         .n_models = 1,
                                         .aliases = &alias};
    WEIR_TRY(weir_ion_list_active(txn, control->arena, &ions, &n, err));
    for (size_t i = 0; i < n; i++) {
        struct weir_ion row;
        struct weir_ion_doc doc;
        bool follows =
            weir_ion_load_doc(txn, ions[i], control->arena, &row, &doc, &ignored) == WEIR_OK &&
            doc_follows(&doc, version->model, alias);
        WEIR_TRY(follows ? control_ion_event(control, txn, ions[i], &event, err) : WEIR_OK);
    }
    return WEIR_OK;
}

/** An alias that names a version now. */
struct naming {
    struct control *control;
    const char *alias;
    const struct weir_model_version *version;
};

static weir_status follow_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    const struct naming *naming = context;
    WEIR_TRY(move_followers(naming->control, txn, naming->version->model, naming->alias,
                            naming->version->version, err));
    return offer_to_links(naming->control, txn, naming->version, naming->alias, err);
}

static weir_status put_alias(struct control *control, struct weir_txn *txn, const char *id,
                             const struct weir_share_model *model, const char *alias,
                             int64_t version, struct weir_error *err)
{
    char word[32];
    (void)snprintf(word, sizeof word, "%" PRId64, version);
    WEIR_TRY(weir_share_version_read(model, word, strlen(word), "$.version", &version, err));
    const struct weir_model_alias row = {.id = (char *)id,
                                         .model = (char *)model->name,
                                         .alias = (char *)alias,
                                         .version = version,
                                         .actor = (char *)control->actor,
                                         .updated_ms = control->now_ms};
    struct weir_model_version named;
    WEIR_TRY(weir_txn_upsert(txn, &weir_model_alias_resource, &row, err));
    WEIR_TRY(weir_model_version_get(txn, model->name, version, control->arena, &named, err));
    /* What follows may be of another project, whose people let it follow. */
    struct naming naming = {control, alias, &named};
    return weir_txn_as(txn, NULL, follow_in, &naming, err);
}

weir_status control_alias_set(struct control *control, struct weir_txn *txn, const char *model,
                              const char *alias, int64_t version, struct weir_error *err)
{
    struct weir_model found;
    struct weir_share_model shares;
    struct weir_arena *arena = control->arena;
    char *id = weir_arena_printf(arena, "%s:%s", model, alias);
    WEIR_TRY(control_share_model(txn, model, arena, &found, &shares, err));
    if (!control_alias_is_valid(alias)) {
        return weir_error_set(
            err, WEIR_ERR_INVALID,
            "alias \"%.*s\": expected a name (1 to 255 of A-Z a-z 0-9 . _ -) that is no version's",
            SHOWN_MAX, alias);
    }
    WEIR_TRY(version == 0 ? weir_txn_delete(txn, &weir_model_alias_resource, id, err)
                          : put_alias(control, txn, id, &shares, alias, version, err));
    control_publish(control, "models", json_pack("{s:s,s:s}", "name", model, "alias", alias));
    char *message =
        version == 0 ? weir_arena_printf(arena, "Model %s has no alias %s any more", model, alias)
                     : weir_arena_printf(arena, "Alias %s of model %s is version %" PRId64, alias,
                                         model, version);
    return control_log(control, txn, "models", "alias_changed",
                       weir_arena_printf(arena, "model/%s", model), message, err);
}
