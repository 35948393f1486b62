#include "control/uses.h"

#include "deploy/deploy.h"
#include "ion/ion.h"
#include "job/secret.h"
#include "store/row_scope.h"
#include "store/stmt.h"
#include "store/table.h"

#include <string.h>

const char *control_user_of(struct control *control, struct weir_txn *txn,
                            const struct weir_resource *noun, const char *name)
{
    struct weir_error hidden;
    bool is_ion = noun == &weir_ion_resource;
    void *record = weir_arena_alloc(control->arena, noun->size);
    return weir_txn_get(txn, noun, name, control->arena, record, &hidden) == WEIR_OK
               ? weir_arena_printf(control->arena, "%s %s", is_ion ? "ION" : noun->name, name)
               : weir_arena_printf(control->arena, "%s %s of another project", is_ion ? "an" : "a",
                                   is_ion ? "ION" : noun->name);
}

/** The document of one ION, whosever it is. */
struct reading {
    const char *ion;
    struct weir_arena *arena;
    struct weir_ion_doc doc;
};

static weir_status load_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct reading *reading = context;
    struct weir_ion row;
    return weir_ion_load_doc(txn, reading->ion, reading->arena, &row, &reading->doc, err);
}

/** The names of all that are active. */
struct listing {
    struct weir_arena *arena;
    char **ions;
    size_t n;
};

static weir_status list_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct listing *listing = context;
    return weir_ion_list_active(txn, listing->arena, &listing->ions, &listing->n, err);
}

weir_status control_each_doc(struct control *control, struct weir_txn *txn, control_doc_fn fn,
                             void *context, struct weir_error *err)
{
    struct listing all = {.arena = control->arena};
    WEIR_TRY(weir_txn_as(txn, NULL, list_in, &all, err));
    for (size_t i = 0; i < all.n; i++) {
        struct weir_arena one;
        struct weir_error reason;
        struct reading reading = {.ion = all.ions[i], .arena = &one};
        weir_arena_init(&one, 0);
        weir_status status = weir_txn_as(txn, NULL, load_in, &reading, &reason);
        if (status == WEIR_OK) {
            status = fn(context, all.ions[i], &reading.doc, err);
        } else {
            status = status == WEIR_ERR_CORRUPT ? WEIR_OK
                                                : weir_error_set(err, status, "%s", reason.message);
        }
        weir_arena_fini(&one);
        WEIR_TRY(status);
    }
    return WEIR_OK;
}

/* ---- deployments and aliases ----------------------------------------------------------------- */

struct wanted {
    struct control *control;
    struct weir_txn *txn;
    const char *deployment;
    const char *model, *alias;
};

static weir_status refuse_deployment(void *context, const char *ion, const struct weir_ion_doc *doc,
                                     struct weir_error *err)
{
    const struct wanted *wanted = context;
    for (size_t i = 0; i < doc->n_links; i++) {
        const struct weir_ion_doc_link *link = &doc->links[i];
        if (link->deployment != NULL && strcmp(link->deployment, wanted->deployment) == 0) {
            return weir_error_set(
                err, WEIR_ERR_CONFLICT,
                "deployment %s is not deleted: link %s of %s leads to it, and "
                "would serve nobody; take the link out (`weir apply`), or delete "
                "the ION, first; --force deletes it all the same",
                wanted->deployment, link->id,
                control_user_of(wanted->control, wanted->txn, &weir_ion_resource, ion));
        }
    }
    return WEIR_OK;
}

weir_status control_check_deployment_unused(struct control *control, struct weir_txn *txn,
                                            const char *deployment, struct weir_error *err)
{
    struct wanted wanted = {.control = control, .txn = txn, .deployment = deployment};
    return control_each_doc(control, txn, refuse_deployment, &wanted, err);
}

static weir_status refuse_alias(void *context, const char *ion, const struct weir_ion_doc *doc,
                                struct weir_error *err)
{
    const struct wanted *wanted = context;
    for (size_t i = 0; i < doc->n_links; i++) {
        const struct weir_ion_doc_link *link = &doc->links[i];
        if (link->alias != NULL && strcmp(link->alias, wanted->alias) == 0 &&
            strcmp(link->model, wanted->model) == 0) {
            return weir_error_set(
                err, WEIR_ERR_CONFLICT,
                "alias %s of %s is not deleted: link %s of %s begins at it, "
                "and no version would come any more; take the link out (`weir "
                "apply`) first; --force deletes it all the same",
                wanted->alias, wanted->model, link->id,
                control_user_of(wanted->control, wanted->txn, &weir_ion_resource, ion));
        }
    }
    for (size_t i = 0; i < doc->n_pipelines; i++) {
        if (weir_ion_doc_detects_by(&doc->pipelines[i], wanted->model, wanted->alias)) {
            return weir_error_set(
                err, WEIR_ERR_CONFLICT,
                "alias %s of %s is not deleted: pipeline %s of %s finds with what it names; name a "
                "version there (`weir apply`) first; --force deletes it all the same",
                wanted->alias, wanted->model, doc->pipelines[i].name,
                control_user_of(wanted->control, wanted->txn, &weir_ion_resource, ion));
        }
    }
    return WEIR_OK;
}

weir_status control_check_alias_unused(struct control *control, struct weir_txn *txn,
                                       const char *model, const char *alias, struct weir_error *err)
{
    static const char sql[] =
        "SELECT name FROM deployments WHERE model = :model AND follows = :alias"
        " ORDER BY name LIMIT 1";
    struct wanted wanted = {.control = control, .txn = txn, .model = model, .alias = alias};
    char **names;
    size_t n;
    WEIR_TRY(weir_txn_query_texts_of_all(
        txn, sql, WEIR_BINDS(WEIR_BIND_TEXT("model", model), WEIR_BIND_TEXT("alias", alias)),
        control->arena, &names, &n, err));
    if (n > 0) {
        return weir_error_set(
            err, WEIR_ERR_CONFLICT,
            "alias %s of %s is not deleted: %s follows it; deploy a version by its "
            "number (`weir deploy %s@vN`) first; --force deletes it all the same",
            alias, model, control_user_of(control, txn, &weir_deployment_resource, names[0]),
            model);
    }
    return control_each_doc(control, txn, refuse_alias, &wanted, err);
}

/* ---- secrets --------------------------------------------------------------------------------- */

void control_each_secret(const json_t *json, control_secret_fn fn, void *context)
{
    const char *key, *text;
    json_t *member;
    size_t i, k;
    json_object_foreach((json_t *)json, key, member)
    {
        for (k = 0; strcmp(key, "secrets") == 0 && k < json_array_size(member); k++) {
            text = json_string_value(json_array_get(member, k));
            if (text != NULL) {
                fn(context, strchr(text, '=') != NULL ? strchr(text, '=') + 1 : text);
            }
        }
        control_each_secret(member, fn, context);
    }
    json_array_foreach(json, i, member)
    {
        control_each_secret(member, fn, context);
    }
}

/** Is one of them the secret? */
struct sought {
    const char *secret;
    bool is_named;
};

static void compare(void *context, const char *name)
{
    struct sought *sought = context;
    sought->is_named = sought->is_named || strcmp(name, sought->secret) == 0;
}

/* Who may name it: "noun name", and the document in which. */
static const struct {
    const char *noun, *sql;
} namers[] = {
    {"ION", "SELECT name, document FROM ions WHERE state = 'ACTIVE' AND project = :project"
            " AND document LIKE '%\"secrets\"%'"},
    {"sweep", "SELECT name || ' (' || id || ')', document FROM sweeps WHERE project = :project"
              " AND state IN ('RUNNING', 'PAUSED') AND document LIKE '%\"secrets\"%'"},
    {"job", "SELECT name || ' (' || id || ')', spec FROM jobs WHERE project = :project"
            " AND state NOT IN ('SUCCEEDED', 'FAILED', 'CANCELLED')"
            " AND spec LIKE '%\"secrets\"%'"},
};

/* The first of a kind that names it; NULL: none does. */
static weir_status find_namer(struct weir_txn *txn, const char *sql, const char *project,
                              const char *secret, struct weir_arena *arena, char **out,
                              struct weir_error *err)
{
    struct weir_stmt *stmt;
    bool has_row;
    *out = NULL;
    WEIR_TRY(weir_stmt_open(txn, sql, WEIR_BINDS(WEIR_BIND_TEXT("project", project)), &stmt, err));
    weir_status status;
    while ((status = weir_stmt_step(stmt, &has_row, err)) == WEIR_OK && has_row && *out == NULL) {
        json_t *document = weir_stmt_json(stmt, 1);
        struct sought sought = {.secret = secret};
        control_each_secret(document, compare, &sought);
        if (sought.is_named) {
            *out = weir_stmt_text(stmt, 0, arena);
        }
        json_decref(document);
    }
    weir_stmt_close(stmt);
    return status;
}

weir_status control_check_secret_unused(struct control *control, struct weir_txn *txn,
                                        const char *project, const char *secret,
                                        struct weir_error *err)
{
    for (size_t i = 0; i < WEIR_ARRAY_LEN(namers); i++) {
        char *name;
        WEIR_TRY(find_namer(txn, namers[i].sql, project, secret, control->arena, &name, err));
        if (name != NULL) {
            return weir_error_set(
                err, WEIR_ERR_CONFLICT,
                "secret %s of project %s is not deleted: %s %s names it, and what "
                "it starts would fail; --force deletes it all the same",
                secret, project, namers[i].noun, name);
        }
    }
    return WEIR_OK;
}
