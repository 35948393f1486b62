#include "api/core/scope.h"

#include "api/core/args.h"
#include "api/core/query.h"
#include "api/core/sender.h"
#include "base/uuid.h"
#include "deploy/deploy.h"
#include "job/former.h"
#include "store/table.h"

#include <string.h>

static bool is_same(const char *own, const char *given)
{
    return own != NULL && given != NULL && strcmp(own, given) == 0;
}

static weir_status refuse(const struct api_call *call, const char *what, struct weir_error *err)
{
    return weir_error_set(err, WEIR_ERR_DENIED, "%s %s: this token is for %s only",
                          call->route->method, call->route->pattern, what);
}

static weir_status for_tasks(struct api_call *call, struct weir_error *err)
{
    (void)call;
    (void)err;
    return WEIR_OK;
}

struct shown {
    const struct api_call *call;
    bool is_named;
};

/* The specification's "service" is control's alone: nobody names runs there but who may see them. */
static weir_status find_shown(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct shown *shown = context;
    const struct api_call *call = shown->call;
    struct weir_job job;
    WEIR_TRY(weir_txn_get(txn, &weir_job_resource, call->attempt->job, call->arena, &job, err));
    json_t *spec = job.spec != NULL ? json_loads(job.spec, 0, NULL) : NULL;
    const char *runs = json_string_value(json_object_get(json_object_get(spec, "service"), "runs"));
    size_t len = strlen(call->params[0]);
    while (runs != NULL && *runs != '\0') {
        size_t n = strcspn(runs, " ");
        shown->is_named = shown->is_named || (n == len && strncmp(runs, call->params[0], len) == 0);
        runs += n + (runs[n] == ' ');
    }
    json_decref(spec);
    return WEIR_OK;
}

/* Its own; and of TensorBoard the runs that it shows, to look at. */
static weir_status own_run(struct api_call *call, struct weir_error *err)
{
    struct shown shown = {.call = call};
    if (is_same(call->attempt->run, call->params[0])) {
        return WEIR_OK;
    }
    if (strcmp(call->request->method, "GET") == 0 && is_same(call->attempt->kind, "command")) {
        WEIR_TRY(weir_store_read(call->api->store, find_shown, &shown, err));
    }
    return shown.is_named ? WEIR_OK : refuse(call, "its task's own run", err);
}

/* The version is of its own run; that the name is the one the job was given, the route checks. That name is
 * in an ION's document, so what the ION starts may register it, whoever applied it is still there or not. */
static weir_status own_model(struct api_call *call, struct weir_error *err)
{
    const char *run = json_string_value(json_object_get(call->body, "run"));
    const json_t *alias = json_object_get(call->body, "alias");
    if (!is_same(call->attempt->run, run)) {
        return refuse(call, "models of its task's own run ($.run)", err);
    }
    if (call->attempt->ion == NULL) {
        WEIR_TRY(api_sender_check(call, WEIR_RIGHT_MODELS_REGISTER, err));
    }
    return alias == NULL || json_is_null(alias)
               ? WEIR_OK
               : api_sender_check(call, WEIR_RIGHT_MODELS_LABEL, err);
}

static bool is_own_pipeline(const struct weir_attempt *attempt, const char *ion,
                            const char *pipeline)
{
    return attempt->is_service && is_same(attempt->ion, ion) &&
           is_same(attempt->pipeline, pipeline);
}

/* A replica speaks for itself, not for another of its job. One that is not named is nobody's. */
static bool is_own_replica(const struct weir_attempt *attempt, const char *replica)
{
    char own[WEIR_UUID_BYTES + 24];
    (void)snprintf(own, sizeof own, "%s-%lld", attempt->job, (long long)attempt->rank);
    return replica == NULL || strcmp(replica, own) == 0;
}

static const char *named_replica(const json_t *object)
{
    return json_string_value(json_object_get(object, "replica"));
}

static weir_status own_pipeline(struct api_call *call, struct weir_error *err)
{
    if (!is_own_pipeline(call->attempt, call->params[0], call->params[1])) {
        return refuse(call, "the pipeline its replica serves", err);
    }
    return is_own_replica(call->attempt, call->params[2]) &&
                   is_own_replica(call->attempt, named_replica(call->body))
               ? WEIR_OK
               : refuse(call, "its own replica, not for another of the pipeline", err);
}

static bool names_own_pipeline(const struct api_call *call, const json_t *object)
{
    return is_own_pipeline(call->attempt, json_string_value(json_object_get(object, "ion")),
                           json_string_value(json_object_get(object, "pipeline"))) &&
           is_own_replica(call->attempt, named_replica(object));
}

static weir_status own_report(struct api_call *call, struct weir_error *err)
{
    return names_own_pipeline(call, call->body)
               ? WEIR_OK
               : refuse(call, "reports of its own replica ($.ion, $.pipeline, $.replica)", err);
}

struct left_by {
    const struct api_call *call;
    const char *replica;
    bool is_over;
};

/* "JOB-RANK" of a job of the same pipeline that is over: what it left is brought by the next (predict/left.h). An
 * ION may be of another project now than it was; what was the one's is not handed to the other. */
static weir_status find_over(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct left_by *by = context;
    const struct weir_attempt *attempt = by->call->attempt;
    const char *dash = strrchr(by->replica, '-');
    struct weir_job job;
    char *id = weir_arena_printf(by->call->arena, "%.*s",
                                 (int)(dash != NULL ? dash - by->replica : 0), by->replica);
    weir_status status = weir_txn_get(txn, &weir_job_resource, id, by->call->arena, &job, err);
    by->is_over = status == WEIR_OK && is_same(job.kind, attempt->kind) &&
                  is_same(job.project, attempt->project) && is_same(job.ion, attempt->ion) &&
                  is_same(job.pipeline, attempt->pipeline) &&
                  weir_job_phase_is_final((enum weir_job_phase)weir_job_phase_from_text(job.state));
    return status == WEIR_ERR_NOT_FOUND ? WEIR_OK : status;
}

/* Its own, or what a replica before it has left. They come in rows of one replica. */
static weir_status may_bring(const struct api_call *call, const json_t *decision,
                             struct left_by *by, struct weir_error *err)
{
    const char *replica = named_replica(decision);
    if (is_own_replica(call->attempt, replica) ||
        (by->replica != NULL && strcmp(by->replica, replica) == 0)) {
        return WEIR_OK;
    }
    by->replica = replica;
    by->is_over = false;
    return weir_store_read(call->api->store, find_over, by, err);
}

struct former {
    const struct api_call *call;
    const char *replica;
    struct weir_attempt *attempt;
};

static weir_status find_former(struct weir_txn *txn, void *context, struct weir_error *err)
{
    const struct former *former = context;
    return weir_former_attempt(txn, former->call->former, former->replica, former->call->arena,
                               former->attempt, err);
}

/* Who shows the token of many is the one whose first decision it is; the rest must be its own too. */
static weir_status choose_former(struct api_call *call, struct weir_error *err)
{
    const json_t *first = json_array_get(json_object_get(call->body, "decisions"), 0);
    struct former former = {call, named_replica(first),
                            WEIR_ARENA_ARRAY(call->arena, 1, struct weir_attempt)};
    if (former.replica == NULL ||
        weir_store_read(call->api->store, find_former, &former, NULL) != WEIR_OK) {
        return refuse(call, "decisions of replicas that were begun with it", err);
    }
    call->attempt = former.attempt;
    call->actor = weir_arena_printf(call->arena, "task/%s", former.attempt->task);
    return WEIR_OK;
}

static weir_status own_decisions(struct api_call *call, struct weir_error *err)
{
    size_t i;
    json_t *item;
    struct left_by by = {.call = call};
    WEIR_TRY(call->former != NULL ? choose_former(call, err) : WEIR_OK);
    json_array_foreach(json_object_get(call->body, "decisions"), i, item)
    {
        bool is_own =
            is_own_pipeline(call->attempt, json_string_value(json_object_get(item, "ion")),
                            json_string_value(json_object_get(item, "pipeline")));
        if (is_own && call->former == NULL) {
            WEIR_TRY(may_bring(call, item, &by, err));
        }
        if (!is_own || !(is_own_replica(call->attempt, named_replica(item)) || by.is_over)) {
            return refuse(
                call, "decisions of its own replica ($.decisions[].ion, pipeline, replica)", err);
        }
    }
    return WEIR_OK;
}

static weir_status own_job(struct api_call *call, struct weir_error *err)
{
    return is_same(call->attempt->job, call->params[0]) ? WEIR_OK
                                                        : refuse(call, "its task's own job", err);
}

static weir_status own_ion(struct api_call *call, struct weir_error *err)
{
    return is_same(call->attempt->ion, call->params[0]) ? WEIR_OK
                                                        : refuse(call, "its task's own ION", err);
}

struct deployed {
    const struct api_call *call;
    char *deployment, *replica;
};

static weir_status find_deployed(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct deployed *deployed = context;
    return weir_deploy_of_job(txn, deployed->call->attempt->job, deployed->call->arena,
                              &deployed->deployment, &deployed->replica, err);
}

static weir_status own_deployed(struct api_call *call, struct weir_error *err)
{
    struct deployed deployed = {.call = call};
    WEIR_TRY(weir_store_read(call->api->store, find_deployed, &deployed, err));
    bool is_own = is_same(deployed.deployment, call->params[0]) &&
                  (call->params[1] == NULL || is_same(deployed.replica, call->params[1]));
    return is_own ? WEIR_OK : refuse(call, "its own replica of the deployment it serves", err);
}

/* A token from before tokens were bound is bound when its agent registers. */
static weir_status own_node(struct api_call *call, struct weir_error *err)
{
    bool may_bind = call->identity.node == NULL && strcmp(call->route->method, "PUT") == 0;
    if (may_bind || is_same(call->identity.node, call->params[0])) {
        return WEIR_OK;
    }
    return call->identity.node == NULL
               ? weir_error_set(err, WEIR_ERR_DENIED,
                                "this agent's token is bound to no node yet: register one first")
               : weir_error_set(err, WEIR_ERR_DENIED,
                                "this agent's token is bound to node \"%s\"; node \"%.60s\" needs "
                                "one of its own (weir token create NAME --role agent --node NAME)",
                                call->identity.node, call->params[0]);
}

struct placed {
    const struct api_call *call;
    int64_t attempt;
};

static weir_status check_placed(struct weir_txn *txn, void *context, struct weir_error *err)
{
    const struct placed *placed = context;
    return weir_attempt_check_node(txn, placed->call->params[0], placed->attempt,
                                   placed->call->identity.node, err);
}

static weir_status own_task(struct api_call *call, struct weir_error *err)
{
    struct placed placed = {.call = call};
    if (call->identity.node == NULL) {
        return own_node(call, err);
    }
    if (call->body != NULL) {
        WEIR_TRY(api_body_int(call, "attempt", 0, &placed.attempt, err));
    } else {
        placed.attempt = api_query_int(call, "attempt");
    }
    return weir_store_read(call->api->store, check_placed, &placed, err);
}

/* What is checked, by what of the request must be the caller's own. */
static const struct scope {
    bool is_agents; /* else tasks' */
    weir_status (*check)(struct api_call *call, struct weir_error *err);
} scopes[ROUTE_N_OWNS] = {
    [ROUTE_OWNS_ANY] = {.check = for_tasks},
    [ROUTE_OWNS_RUN] = {.check = own_run},
    [ROUTE_OWNS_MODEL] = {.check = own_model},
    [ROUTE_OWNS_PIPELINE] = {.check = own_pipeline},
    [ROUTE_OWNS_REPORT] = {.check = own_report},
    [ROUTE_OWNS_DECISIONS] = {.check = own_decisions},
    [ROUTE_OWNS_DEPLOYED] = {.check = own_deployed},
    [ROUTE_OWNS_JOB] = {.check = own_job},
    [ROUTE_OWNS_ION] = {.check = own_ion},
    [ROUTE_OWNS_NODE] = {.check = own_node, .is_agents = true},
    [ROUTE_OWNS_TASK] = {.check = own_task, .is_agents = true},
};

/* The route's scope; NULL: it is closed to the caller. */
static const struct scope *find_scope(const struct api_call *call)
{
    const struct scope *scope = &scopes[call->route->owns];
    bool is_agent = call->identity.role == WEIR_ROLE_AGENT;
    bool is_theirs = scope->is_agents == is_agent && (is_agent || call->attempt != NULL);
    return scope->check != NULL && is_theirs ? scope : NULL;
}

static bool is_person(const struct api_call *call)
{
    return call->identity.role != WEIR_ROLE_AGENT && call->identity.role != WEIR_ROLE_WORKER;
}

weir_status api_check_open(const struct api_call *call, struct weir_error *err)
{
    bool is_agent = call->identity.role == WEIR_ROLE_AGENT;
    return is_person(call) || find_scope(call) != NULL
               ? WEIR_OK
               : refuse(call, is_agent ? "an agent's work" : "a task's work", err);
}

weir_status api_check_scope(struct api_call *call, struct weir_error *err)
{
    return is_person(call) ? WEIR_OK : find_scope(call)->check(call, err);
}
