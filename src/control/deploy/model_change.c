#include "control/model_change.h"

#include "control/uses.h"
#include "deploy/deploy.h"
#include "ion/ion.h"
#include "store/row_scope.h"
#include "store/stmt.h"
#include "track/registry.h"

#include <string.h>

weir_status control_model_create(struct control *control, struct weir_txn *txn,
                                 const struct weir_model *model, struct weir_error *err)
{
    WEIR_TRY(weir_model_create(txn, model, err));
    control_publish(control, "models", json_pack("{s:s}", "name", model->name));
    return control_log(
        control, txn, "models", "model_created",
        weir_arena_printf(control->arena, "model/%s", model->name),
        weir_arena_printf(control->arena, "Model %s is made, without a version", model->name), err);
}

/* Who names the model, of what is not its own. */
static const struct {
    const char *sql;
    const struct weir_resource *noun;
} uses[] = {
    {"SELECT name FROM deployments WHERE model = :model", &weir_deployment_resource},
    {"SELECT DISTINCT ion FROM ion_candidates WHERE model = :model AND ion IN"
     " (SELECT name FROM ions WHERE state = 'ACTIVE')",
     &weir_ion_resource},
};

static bool is_same(const char *a, const char *b)
{
    return a != NULL && strcmp(a, b) == 0;
}

static bool doc_names(const struct weir_ion_doc *doc, const char *model)
{
    bool names = false;
    for (size_t i = 0; i < doc->n_links; i++) {
        names = names || is_same(doc->links[i].model, model) ||
                is_same(doc->links[i].default_model, model);
    }
    for (size_t i = 0; i < doc->n_feeds; i++) {
        names = names || is_same(doc->feeds[i].model, model);
    }
    for (size_t i = 0; i < doc->n_pipelines; i++) {
        names = names || is_same(doc->pipelines[i].registers, model) ||
                is_same(doc->pipelines[i].detector, model);
    }
    return names;
}

/** A model that is to be renamed. */
struct renaming {
    struct control *control;
    struct weir_txn *txn;
    const char *model;
};

static weir_status refuse(const struct renaming *renaming, const struct weir_resource *noun,
                          const char *name, struct weir_error *err)
{
    return weir_error_set(err, WEIR_ERR_CONFLICT, "model \"%s\" is not renamed: %s names it",
                          renaming->model,
                          control_user_of(renaming->control, renaming->txn, noun, name));
}

static weir_status check_doc(void *context, const char *ion, const struct weir_ion_doc *doc,
                             struct weir_error *err)
{
    const struct renaming *renaming = context;
    return doc_names(doc, renaming->model) ? refuse(renaming, &weir_ion_resource, ion, err)
                                           : WEIR_OK;
}

static weir_status check_uses(struct control *control, struct weir_txn *txn, const char *model,
                              struct weir_error *err)
{
    char **names;
    size_t n;
    struct renaming renaming = {control, txn, model};
    for (size_t i = 0; i < WEIR_ARRAY_LEN(uses); i++) {
        WEIR_TRY(weir_txn_query_texts_of_all(txn, uses[i].sql,
                                             WEIR_BINDS(WEIR_BIND_TEXT("model", model)),
                                             control->arena, &names, &n, err));
        if (n > 0) {
            return refuse(&renaming, uses[i].noun, names[0], err);
        }
    }
    return control_each_doc(control, txn, check_doc, &renaming, err);
}

weir_status control_model_rename(struct control *control, struct weir_txn *txn, const char *name,
                                 const char *new_name, struct weir_error *err)
{
    WEIR_TRY(check_uses(control, txn, name, err));
    WEIR_TRY(weir_model_rename(txn, name, new_name, control->now_ms, control->arena, err));
    control_publish(control, "models", json_pack("{s:s,s:s}", "name", new_name, "old_name", name));
    return control_log(
        control, txn, "models", "model_renamed",
        weir_arena_printf(control->arena, "model/%s", new_name),
        weir_arena_printf(control->arena, "Model %s is called %s now", name, new_name), err);
}
