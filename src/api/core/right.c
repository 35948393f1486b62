/** Rights: who may call a route, and whose rows the call sees. */
#include "api/core/dispatch.h"

#include "capture/snapshot.h"
#include "deploy/deploy.h"
#include "ion/ion.h"
#include "job/attempt.h"
#include "job/job.h"
#include "job/service.h"
#include "notify/notify.h"
#include "store/table.h"
#include "track/experiment.h"
#include "track/track.h"

#include <string.h>

/* Tasks and agents reach what is their own (scope.h), in whatever project. */
static bool sees_all(const struct weir_identity *identity, enum weir_right right)
{
    return (identity->rights & WEIR_RIGHTS_OF(right)) != 0;
}

struct weir_row_scope api_projects_with(const struct api_call *call, enum weir_right right)
{
    const struct weir_identity *identity = &call->identity;
    struct weir_row_scope scope = {.is_all = sees_all(identity, right)};
    const char **projects = WEIR_ARENA_ARRAY(call->arena, identity->n_grants + 1, const char *);
    for (size_t i = 0; i < identity->n_grants; i++) {
        if (identity->grants[i].rights & WEIR_RIGHTS_OF(right)) {
            projects[scope.n_projects++] = identity->grants[i].project;
        }
    }
    scope.projects = projects;
    return scope;
}

/* A path has "-" where a table's name has "_". */
static bool is_plural(const char *path, const char *plural, size_t len)
{
    size_t i = 0;
    while (i < len && (path[i] == plural[i] || (path[i] == '-' && plural[i] == '_'))) {
        i++;
    }
    return i == len;
}

/* Nouns of projects that paths begin with. */
static const struct weir_resource *noun_of(const char *pattern)
{
    static const struct weir_resource *const nouns[] = {
        &weir_project_resource,    &weir_dataset_resource,    &weir_job_resource,
        &weir_task_resource,       &weir_run_resource,        &weir_model_resource,
        &weir_experiment_resource, &weir_ion_resource,        &weir_deployment_resource,
        &weir_snapshot_resource,   &weir_alert_rule_resource, &weir_service_resource};
    static const char prefix[] = "/api/v1/";
    for (size_t i = 0; i < WEIR_ARRAY_LEN(nouns); i++) {
        size_t len = strlen(nouns[i]->plural);
        if (strncmp(pattern, prefix, sizeof prefix - 1) == 0 &&
            is_plural(pattern + sizeof prefix - 1, nouns[i]->plural, len) &&
            strncmp(pattern + sizeof prefix - 1 + len, "/{", 2) == 0) {
            return nouns[i];
        }
    }
    return NULL;
}

static weir_status load_noun(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct api_call *call = context;
    const struct weir_resource *noun = noun_of(call->route->pattern);
    void *record = weir_arena_alloc(call->arena, noun->size);
    return weir_txn_get(txn, noun, call->params[0], call->arena, record, err);
}

/* A name that is nobody's may be made; one that another project has is refused, and nothing of it
 * told. */
static weir_status check_name(struct api_call *call, struct weir_error *err)
{
    struct weir_error ignored;
    if (weir_store_read(call->api->store, load_noun, call, &ignored) != WEIR_OK) {
        return WEIR_OK;
    }
    return weir_error_set(
        err, WEIR_ERR_DENIED,
        "the name \"%.60s\" is taken by a %s of a project that is not yours: take "
        "another one",
        call->params[0], noun_of(call->route->pattern)->name);
}

/* What the path begins with must be there for the caller, whatever the route does with it. */
static weir_status check_noun(struct api_call *call, struct weir_error *err)
{
    struct weir_error missing;
    if (call->rows.is_all || noun_of(call->route->pattern) == NULL) {
        return WEIR_OK;
    }
    if ((call->route->flags & ROUTE_MAKES) == 0) {
        return api_read(call, load_noun, call, err);
    }
    return api_read(call, load_noun, call, &missing) == WEIR_OK ? WEIR_OK : check_name(call, err);
}

/* " (its role x in project p is gone: it gives nothing)", or "". */
static const char *gone_role(const struct api_call *call)
{
    for (size_t i = 0; i < call->identity.n_grants; i++) {
        const struct weir_grant *grant = &call->identity.grants[i];
        if (grant->gone_role != NULL) {
            return weir_arena_printf(
                call->arena, " (the role \"%.63s\" in project %.63s is gone: it gives no rights)",
                grant->gone_role, grant->project);
        }
    }
    return "";
}

/* What a task changes beyond its own runs is of its job's project. All else is its own (scope.h), or was
 * looked up for it, perhaps in another project. */
static void narrow_to_job(struct api_call *call)
{
    const char **one = WEIR_ARENA_NEW(call->arena, const char *);
    *one = call->attempt->project;
    call->rows = (struct weir_row_scope){.projects = one, .n_projects = *one != NULL};
}

/* The one place that decides who may call what, and whose rows the call sees. */
weir_status api_check_right(struct api_call *call, struct weir_error *err)
{
    enum weir_right right = call->route->right;
    call->rows = (struct weir_row_scope){.is_all = sees_all(&call->identity, right)};
    if (!call->rows.is_all && weir_right_scope(right) == WEIR_RIGHT_IS_OF_PROJECT) {
        call->rows = api_projects_with(call, right);
    }
    if (call->attempt != NULL && call->rows.is_all && (call->route->flags & ROUTE_BEYOND) != 0) {
        narrow_to_job(call);
    }
    if (call->rows.is_all || call->rows.n_projects > 0) {
        WEIR_TRY(check_noun(call, err));
        call->rows.is_all = call->rows.is_all || (call->route->flags & ROUTE_WHOLE) != 0;
        return WEIR_OK;
    }
    return weir_error_set(err, WEIR_ERR_DENIED,
                          "%s %s needs the right to %s %s%s; this %s of \"%s\" has the role "
                          "\"%s\", which does not give it%s: "
                          "use another one, or ask an admin",
                          call->route->method, call->route->pattern, weir_right_verb(right),
                          weir_right_noun(right),
                          weir_right_scope(right) == WEIR_RIGHT_IS_OF_PROJECT ? " in some project"
                                                                              : " on the platform",
                          call->identity.session != NULL ? "session" : "token", call->actor,
                          call->identity.role_name, gone_role(call));
}
