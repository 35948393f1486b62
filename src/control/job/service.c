#include "control/service.h"

#include "base/macros.h"
#include "base/rng.h"
#include "framework/framework.h"
#include "store/stmt.h"
#include "store/table.h"

#include <stdio.h>
#include <string.h>

#define SECRET_BYTES 32
#define MAX_RESTARTS 3
#define IDLE_MAX_MS  ((int64_t)365 * 24 * 3600 * 1000)
#define PORT_MAX     65535

static const char sql_n[] = "SELECT count(*) FROM services WHERE project = :project";
static const char sql_forget_logins[] = "DELETE FROM service_logins WHERE service = :service";

static const struct control_service_kind *find_kind(const char *name)
{
    for (size_t i = 0; i < control_n_service_kinds; i++) {
        if (strcmp(control_service_kinds[i].name, name) == 0) {
            return &control_service_kinds[i];
        }
    }
    return NULL;
}

/* ---- what is asked for ---------------------------------------------------------------------------- */

static weir_status check_wanted(const struct control_service *wanted,
                                const struct control_service_kind **out_kind,
                                struct weir_error *err)
{
    if (wanted->name == NULL || !weir_service_name_is_valid(wanted->name)) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "$.name: expected 1 to %d of a-z, 0-9 and \"-\", not \"-\" first",
                              WEIR_SERVICE_NAME_MAX);
    }
    *out_kind = find_kind(wanted->kind);
    if (*out_kind == NULL) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "$.kind: expected service, notebook or tensorboard, not \"%.60s\"",
                              wanted->kind);
    }
    if (wanted->port < 0 || wanted->port > PORT_MAX) {
        return weir_error_set(err, WEIR_ERR_INVALID, "$.port: expected 0 to %d", PORT_MAX);
    }
    if (wanted->idle_after_ms < 0 || wanted->idle_after_ms > IDLE_MAX_MS) {
        return weir_error_set(err, WEIR_ERR_INVALID, "$.idle_after_ms: expected 0 to %lld",
                              (long long)IDLE_MAX_MS);
    }
    return WEIR_OK;
}

static char *random_hex(struct weir_arena *arena)
{
    unsigned char bytes[SECRET_BYTES];
    char *text = weir_arena_alloc(arena, 2 * SECRET_BYTES + 1);
    weir_random_bytes(bytes, sizeof bytes);
    for (size_t i = 0; i < sizeof bytes; i++) {
        (void)snprintf(text + 2 * i, 3, "%02x", bytes[i]);
    }
    return text;
}

static bool is_running(const struct weir_service_look *look)
{
    return strcmp(look->state, WEIR_SERVICE_STOPPED) != 0 &&
           strcmp(look->state, WEIR_SERVICE_FAILED) != 0;
}

/* ---- starting --------------------------------------------------------------------------------------- */

static void announce(struct control *control, const struct weir_service_look *look)
{
    json_t *record = weir_record_to_json(&weir_service_resource, &look->service);
    json_object_set_new(record, "state", json_string(look->state));
    control_publish(control, "services", record);
}

/* Where browsers find it: proxy/proxy.h says the same to them. */
static char *path_of(struct control *control, const struct weir_service *service, bool has_domain)
{
    return has_domain && !service->keeps_path
               ? weir_arena_strdup(control->arena, "/")
               : weir_arena_printf(control->arena, "/services/%s/", service->id);
}

static weir_status start_job(struct control *control, struct weir_txn *txn,
                             struct weir_service *service, bool has_domain, struct weir_error *err)
{
    struct weir_job job;
    json_t *spec = json_loads(service->spec, 0, NULL);
    if (spec == NULL) {
        return weir_error_set(err, WEIR_ERR_CORRUPT, "the specification of service %s is damaged",
                              service->name);
    }
    char *path = path_of(control, service, has_domain);
    const char *runs =
        json_string_value(json_object_get(json_object_get(spec, "env"), "WEIR_RUNS"));
    bool has_runs = strcmp(service->kind, "tensorboard") == 0 && runs != NULL;
    json_t *port =
        json_pack("{s:s,s:s,s:I,s:s,s:s*}", "id", service->id, "secret", service->secret, "port",
                  (json_int_t)service->port, "path", path, "runs", has_runs ? runs : NULL);
    const struct control_job wanted = {.name = service->name,
                                       .project = service->project,
                                       .kind = "command",
                                       .spec = spec,
                                       .service = port,
                                       .max_restarts = MAX_RESTARTS};
    weir_status status = control_job_create(control, txn, &wanted, &job, err);
    json_decref(spec);
    json_decref(port);
    WEIR_TRY(status);
    service->job = job.id;
    service->address = NULL;
    service->address_attempt = 0;
    service->reason = NULL;
    service->started_ms = service->used_ms = control->now_ms;
    return WEIR_OK;
}

static weir_status answer(struct control *control, struct weir_txn *txn, const char *id,
                          struct weir_service_look *out, struct weir_error *err)
{
    WEIR_TRY(weir_service_look(txn, id, control->arena, out, err));
    announce(control, out);
    return WEIR_OK;
}

/* One that is there: may it be started as this caller asks? */
static weir_status check_old(struct control *control, const struct control_service *wanted,
                             const struct weir_service_look *old, struct weir_error *err)
{
    if (strcmp(old->service.owner, control->actor) != 0 ||
        strcmp(old->service.kind, wanted->kind) != 0) {
        return weir_error_set(err, WEIR_ERR_CONFLICT,
                              "the name \"%s\" is that of a %s of %s in project %s: take another "
                              "one (--name)",
                              wanted->name, old->service.kind, old->service.owner,
                              old->service.project);
    }
    return !is_running(old) ? WEIR_OK
                            : weir_error_set(err, WEIR_ERR_CONFLICT,
                                             "%s \"%s\" runs already: weir service open %s",
                                             old->service.kind, wanted->name, wanted->name);
}

static weir_status make_new(struct control *control, struct weir_txn *txn,
                            const struct control_service *wanted, struct weir_service *out,
                            struct weir_error *err)
{
    int64_t n;
    char *id = weir_arena_alloc(control->arena, WEIR_SERVICE_ID_BYTES);
    WEIR_TRY(weir_txn_query_int(txn, sql_n, WEIR_BINDS(WEIR_BIND_TEXT("project", wanted->project)),
                                0, &n, err));
    if (n >= WEIR_SERVICES_OF_PROJECT) {
        return weir_error_set(err, WEIR_ERR_LIMIT,
                              "project %s has %d services: delete one first (weir service delete)",
                              wanted->project, WEIR_SERVICES_OF_PROJECT);
    }
    weir_service_id_make(id);
    *out = (struct weir_service){.id = id,
                                 .name = weir_arena_strdup(control->arena, wanted->name),
                                 .project = weir_arena_strdup(control->arena, wanted->project),
                                 .kind = weir_arena_strdup(control->arena, wanted->kind),
                                 .owner = weir_arena_strdup(control->arena, control->actor),
                                 .created_ms = control->now_ms};
    return WEIR_OK;
}

/* Runs whose measurements its task will read (api/core/scope.c): the project's own, which the caller sees. */
static weir_status check_runs(struct control *control, struct weir_txn *txn,
                              const struct control_service *wanted, struct weir_error *err)
{
    struct weir_run run;
    for (size_t i = 0; i < json_array_size(wanted->runs); i++) {
        const char *id = json_string_value(json_array_get(wanted->runs, i));
        if (id == NULL ||
            weir_txn_get(txn, &weir_run_resource, id, control->arena, &run, NULL) != WEIR_OK ||
            run.project == NULL || strcmp(run.project, wanted->project) != 0) {
            return weir_error_set(err, WEIR_ERR_NOT_FOUND,
                                  "$.runs[%zu]: project %s has no run \"%.60s\"", i,
                                  wanted->project, id != NULL ? id : "");
        }
    }
    return WEIR_OK;
}

/* What a service takes, unless it is said. Somebody waits for it, so one without accelerators goes
 * before jobs, as a replica does: it is small. */
static void take_little(json_t *spec)
{
    const json_t *resources = json_object_get(spec, "resources");
    bool is_said = json_object_get(spec, "cpus") != NULL ||
                   json_object_get(spec, "cpu_slots") != NULL ||
                   json_object_get(resources, "cpus") != NULL;
    if (is_said) {
        return;
    }
    json_object_set_new(spec, "cpus", weir_json_milli(WEIR_FRAMEWORK_SERVICE_CPU_MILLIS));
    if (json_object_size(resources) == 0 && json_object_get(spec, "priority") == NULL) {
        json_object_set_new(spec, "priority", json_integer(WEIR_REQUEST_PRIORITY_SERVICE));
    }
}

/* Fill in what is asked for now. */
static weir_status fill(struct control *control, const struct control_service *wanted,
                        const struct control_service_kind *kind, struct weir_service *service,
                        struct weir_error *err)
{
    json_t *spec = NULL;
    WEIR_TRY(kind->make(control, wanted, &spec, &service->credential, err));
    take_little(spec);
    service->spec = weir_json_text(spec, control->arena);
    json_decref(spec);
    if (strlen(service->spec) > WEIR_SERVICE_SPEC_BYTES) {
        return weir_error_set(err, WEIR_ERR_LIMIT, "$.spec: longer than %zu bytes",
                              WEIR_SERVICE_SPEC_BYTES);
    }
    service->secret = random_hex(control->arena);
    service->port = wanted->port;
    service->keeps_path = wanted->keeps_path || kind->keeps_path;
    service->is_shared = wanted->is_shared;
    service->idle_after_ms = wanted->idle_after_ms;
    return WEIR_OK;
}

weir_status control_service_put(struct control *control, struct weir_txn *txn,
                                const struct control_service *wanted, bool has_domain,
                                struct weir_service_look *out, struct weir_error *err)
{
    const struct control_service_kind *kind = NULL;
    struct weir_service_look look = {0};
    char *id;
    WEIR_TRY(check_wanted(wanted, &kind, err));
    WEIR_TRY(check_runs(control, txn, wanted, err));
    WEIR_TRY(weir_service_find(txn, wanted->project, wanted->name, control->arena, &id, err));
    bool is_new = id == NULL;
    if (is_new) {
        WEIR_TRY(make_new(control, txn, wanted, &look.service, err));
    } else {
        WEIR_TRY(weir_service_look(txn, id, control->arena, &look, err));
        WEIR_TRY(check_old(control, wanted, &look, err));
    }
    WEIR_TRY(fill(control, wanted, kind, &look.service, err));
    WEIR_TRY(start_job(control, txn, &look.service, has_domain, err));
    WEIR_TRY(is_new ? weir_txn_insert(txn, &weir_service_resource, &look.service, err)
                    : weir_txn_upsert(txn, &weir_service_resource, &look.service, err));
    return answer(control, txn, look.service.id, out, err);
}

weir_status control_service_start(struct control *control, struct weir_txn *txn, const char *id,
                                  bool has_domain, struct weir_service_look *out,
                                  struct weir_error *err)
{
    struct weir_service_look look;
    WEIR_TRY(weir_service_look(txn, id, control->arena, &look, err));
    if (is_running(&look)) {
        return weir_error_set(err, WEIR_ERR_CONFLICT, "%s \"%s\" runs already", look.service.kind,
                              look.service.name);
    }
    look.service.secret = random_hex(control->arena);
    WEIR_TRY(start_job(control, txn, &look.service, has_domain, err));
    WEIR_TRY(weir_txn_upsert(txn, &weir_service_resource, &look.service, err));
    return answer(control, txn, id, out, err);
}

/* ---- stopping --------------------------------------------------------------------------------------- */

weir_status control_service_stop(struct control *control, struct weir_txn *txn, const char *id,
                                 const char *why, struct weir_service_look *out,
                                 struct weir_error *err)
{
    struct weir_service_look look;
    const struct weir_job_event cancel = {.type = WEIR_JOB_EVENT_CANCEL, .text = why};
    WEIR_TRY(weir_service_look(txn, id, control->arena, &look, err));
    if (is_running(&look)) {
        WEIR_TRY(control_job_event(control, txn, look.service.job, &cancel, err));
        look.service.reason = weir_arena_strdup(control->arena, why);
        look.service.stopped_ms = control->now_ms;
        look.service.address = NULL;
        WEIR_TRY(weir_txn_upsert(txn, &weir_service_resource, &look.service, err));
        WEIR_TRY(control_log(control, txn, "services", "service_stopped",
                             weir_arena_printf(control->arena, "job/%s", look.service.job),
                             weir_arena_printf(control->arena, "%s %s was stopped: %s",
                                               look.service.kind, look.service.name, why),
                             err));
    }
    return answer(control, txn, id, out, err);
}

weir_status control_service_delete(struct control *control, struct weir_txn *txn, const char *id,
                                   struct weir_error *err)
{
    struct weir_service_look look;
    WEIR_TRY(weir_service_look(txn, id, control->arena, &look, err));
    if (is_running(&look)) {
        return weir_error_set(err, WEIR_ERR_CONFLICT,
                              "%s \"%s\" runs: stop it first (weir service stop %s)",
                              look.service.kind, look.service.name, look.service.name);
    }
    WEIR_TRY(weir_txn_exec(txn, sql_forget_logins, WEIR_BINDS(WEIR_BIND_TEXT("service", id)), NULL,
                           err));
    return weir_txn_delete(txn, &weir_service_resource, id, err);
}
