#include "control/model_delete.h"

#include "control/uses.h"
#include "deploy/deploy.h"
#include "ion/ion.h"
#include "store/noun.h"
#include "store/row_scope.h"
#include "store/stmt.h"
#include "store/table.h"
#include "track/track.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Each query gives who uses the version, perhaps a line with more about it, or no row. */
static const struct {
    const char *sql, *before, *after;
    const struct weir_resource *noun; /* NULL: a text */
} uses[] = {
    {"SELECT alias FROM model_aliases WHERE model = :model AND version = :version", "its alias ",
     " names it: take that away (`weir model alias`), or give it to another version, first", NULL},
    {"SELECT deployment FROM deployment_versions WHERE model = :model AND version = :version"
     " UNION SELECT name FROM deployments WHERE model = :model AND mirror = :version",
     "",
     " serves it, or keeps it loaded for a way back: deploy another version, or `weir undeploy`, "
     "first",
     &weir_deployment_resource},
    {"SELECT c.ion || '\n, link ' || c.link || ' (' || c.state || ')' FROM "
     "ion_candidates c"
     " JOIN ions i ON i.name = c.ion WHERE c.model = :model AND c.version = :version"
     " AND i.state = 'ACTIVE' AND c." WEIR_CANDIDATE_IN_USE_SQL,
     "it is in use in ", "", &weir_ion_resource},
    {"SELECT p.ion || '\n, pipeline ' || p.name FROM ion_pipelines p JOIN ions i ON i.name = p.ion"
     " WHERE p.detector_model = :model AND p.detector_version = :version AND i.state = 'ACTIVE'"
     " AND p.state <> 'REMOVED'",
     "it is the detector of ", "", &weir_ion_resource},
    {"SELECT c.ion || '\n, link ' || c.link FROM ion_candidates c JOIN ions i ON i.name "
     "= c.ion"
     " WHERE c.model = :model AND c.version = :version AND i.state = 'ACTIVE'"
     " AND c.state = 'RETIRED' AND c.served_seq = (SELECT max(served_seq) FROM ion_candidates o"
     " WHERE o.ion = c.ion AND o.link = c.link AND o.state = 'RETIRED')",
     "a roll back of ", " leads to it", &weir_ion_resource},
};

/* With what is said of it, unless that is another project's. */
static const char *user_of(struct control *control, struct weir_txn *txn, size_t i_use, char *text)
{
    char *more = strchr(text, '\n');
    if (uses[i_use].noun == NULL) {
        return text;
    }
    if (more != NULL) {
        *more++ = '\0';
    }
    const char *user = control_user_of(control, txn, uses[i_use].noun, text);
    bool is_seen = strstr(user, text) != NULL;
    return weir_arena_printf(control->arena, "%s%s", user, is_seen && more != NULL ? more : "");
}

static weir_status check_uses(struct control *control, struct weir_txn *txn, const char *model,
                              int64_t version, struct weir_error *err)
{
    for (size_t i = 0; i < WEIR_ARRAY_LEN(uses); i++) {
        char **texts;
        size_t n;
        WEIR_TRY(weir_txn_query_texts_of_all(
            txn, uses[i].sql,
            WEIR_BINDS(WEIR_BIND_TEXT("model", model), WEIR_BIND_INT("version", version)),
            control->arena, &texts, &n, err));
        if (n > 0) {
            return weir_error_set(
                err, WEIR_ERR_CONFLICT, "version %" PRId64 " of %s is not deleted: %s%s%s", version,
                model, uses[i].before, user_of(control, txn, i, texts[0]), uses[i].after);
        }
    }
    return WEIR_OK;
}

static bool is_among(int64_t version, const int64_t *versions, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (versions[i] == version) {
            return true;
        }
    }
    return false;
}

/* The link whose default is one of the versions; NULL: none. */
static const struct weir_ion_doc_link *
find_default(const struct weir_ion_doc *doc, const char *model, const int64_t *versions, size_t n)
{
    for (size_t i = 0; i < doc->n_links; i++) {
        const struct weir_ion_doc_link *link = &doc->links[i];
        if (link->default_model != NULL && strcmp(link->default_model, model) == 0 &&
            is_among(link->default_version, versions, n)) {
            return link;
        }
    }
    return NULL;
}

/** Versions of a model that are to be deleted. */
struct deleting {
    struct control *control;
    struct weir_txn *txn;
    const char *model;
    const int64_t *versions;
    size_t n;
};

static weir_status check_default(void *context, const char *ion, const struct weir_ion_doc *doc,
                                 struct weir_error *err)
{
    const struct deleting *deleting = context;
    const struct weir_ion_doc_link *link =
        find_default(doc, deleting->model, deleting->versions, deleting->n);
    return link == NULL
               ? WEIR_OK
               : weir_error_set(
                     err, WEIR_ERR_CONFLICT,
                     "version %" PRId64 " of %s is not deleted: it is the default of a link of %s",
                     link->default_version, deleting->model,
                     control_user_of(deleting->control, deleting->txn, &weir_ion_resource, ion));
}

/* No default of an ION may be among the versions. */
static weir_status check_defaults(struct control *control, struct weir_txn *txn, const char *model,
                                  const int64_t *versions, size_t n, struct weir_error *err)
{
    struct deleting deleting = {control, txn, model, versions, n};
    return control_each_doc(control, txn, check_default, &deleting, err);
}

/* Candidates keep their row; without a file none can serve again (ion_policy.c, ion_review.c). */
static weir_status delete_one(struct control *control, struct weir_txn *txn,
                              const struct weir_model_version *version, struct weir_error *err)
{
    WEIR_TRY(check_uses(control, txn, version->model, version->version, err));
    WEIR_TRY(weir_model_version_delete(txn, version->id, control->actor, control->now_ms, err));
    WEIR_TRY(weir_txn_exec(txn, "UPDATE ion_candidates SET blob = '' WHERE model_version = :id",
                           WEIR_BINDS(WEIR_BIND_TEXT("id", version->id)), NULL, err));
    control_publish(control, "models",
                    json_pack("{s:s,s:I,s:b}", "name", version->model, "version",
                              (json_int_t)version->version, "deleted", 1));
    return control_log(
        control, txn, "models", "model_deleted",
        weir_arena_printf(control->arena, "model/%s/%" PRId64, version->model, version->version),
        weir_arena_printf(control->arena, "Model %s version %" PRId64 " is deleted", version->model,
                          version->version),
        err);
}

weir_status control_model_version_delete(struct control *control, struct weir_txn *txn,
                                         const char *model, int64_t version, struct weir_error *err)
{
    struct weir_model_version found;
    WEIR_TRY(weir_model_version_get(txn, model, version, control->arena, &found, err));
    WEIR_TRY(check_defaults(control, txn, model, &version, 1, err));
    return delete_one(control, txn, &found, err);
}

weir_status control_model_delete(struct control *control, struct weir_txn *txn, const char *name,
                                 struct weir_error *err)
{
    struct weir_model model;
    char **numbers;
    size_t n;
    WEIR_TRY(weir_model_get(txn, name, control->arena, &model, err));
    WEIR_TRY(weir_txn_query_texts(
        txn, "SELECT version FROM model_versions WHERE model = :model AND deleted_ms = 0",
        WEIR_BINDS(WEIR_BIND_TEXT("model", name)), control->arena, &numbers, &n, err));
    int64_t *versions = WEIR_ARENA_ARRAY(control->arena, n + 1, int64_t);
    for (size_t i = 0; i < n; i++) {
        versions[i] = strtoll(numbers[i], NULL, 10);
    }
    WEIR_TRY(check_defaults(control, txn, name, versions, n, err));
    for (size_t i = 0; i < n; i++) {
        struct weir_model_version found;
        WEIR_TRY(weir_model_version_get(txn, name, versions[i], control->arena, &found, err));
        WEIR_TRY(delete_one(control, txn, &found, err));
    }
    model.deleted_ms = control->now_ms;
    WEIR_TRY(weir_txn_update(txn, &weir_model_resource, &model, WEIR_FIELDS("deleted_ms"), err));
    return control_log(control, txn, "models", "model_deleted",
                       weir_arena_printf(control->arena, "model/%s", name),
                       weir_arena_printf(control->arena, "Model %s is deleted", name), err);
}
