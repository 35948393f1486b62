/** Services and notebooks: made, started, stopped, and how a browser is let in. */

#include "api/job/service.h"

#include "api/core/answer.h"
#include "api/core/args.h"
#include "api/core/functions.h"
#include "api/core/records.h"
#include "api/core/views.h"
#include "control/service.h"
#include "job/service.h"

#include <string.h>

bool service_is_open_to(const struct weir_service *service, const struct weir_identity *who)
{
    bool is_owner = who->user.name != NULL && strcmp(who->user.name, service->owner) == 0;
    return (service->is_shared || is_owner) &&
           weir_identity_may(who, WEIR_RIGHT_JOBS_SUBMIT, service->project);
}

/* As the caller's browser names this server: its address has the same host, or one below the domain. */
static char *url_of(const struct api_call *call, const struct weir_service *service)
{
    const char *host = weir_http_request_header(call->request, "Host");
    if (call->api->services_port == 0 || host == NULL || !weir_proxy_is_host(host)) {
        return NULL;
    }
    return weir_proxy_url(call->api->services_domain, call->request->is_tls, host,
                          call->api->services_port, service->id, service->keeps_path, call->arena);
}

static struct api_service view(const struct api_call *call, const struct weir_service_look *look)
{
    return (struct api_service){.row = &look->service,
                                .state = look->state,
                                .why = look->why,
                                .node = look->node,
                                .is_mine = service_is_open_to(&look->service, &call->identity),
                                .url = url_of(call, &look->service)};
}

static void answer_look(struct api_call *call, const struct weir_service_look *look)
{
    const struct api_service its = view(call, look);
    api_answer(call, weir_view_to_json(api_service_view(), &its));
}

weir_status api_service_list(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    struct api_rows rows;
    WEIR_TRY(api_rows_read(call, txn, &(struct weir_query){0}, &rows, err));
    const struct weir_service *services = rows.items;
    size_t n = rows.n;
    struct weir_service_look *looks = WEIR_ARENA_ARRAY(call->arena, n, struct weir_service_look);
    struct api_service *views = WEIR_ARENA_ARRAY(call->arena, n, struct api_service);
    for (size_t i = 0; i < n; i++) {
        WEIR_TRY(weir_service_look(txn, services[i].id, call->arena, &looks[i], err));
        views[i] = view(call, &looks[i]);
    }
    api_answer_views(call, api_service_view(), views, n, rows.next);
    return WEIR_OK;
}

weir_status api_service_get(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    struct weir_service_look look;
    WEIR_TRY(weir_service_look(txn, call->params[0], call->arena, &look, err));
    answer_look(call, &look);
    return WEIR_OK;
}

static weir_status check_listener(const struct api_call *call, struct weir_error *err)
{
    return call->api->services_port != 0
               ? WEIR_OK
               : weir_error_set(err, WEIR_ERR_UNSUPPORTED,
                                "this server brings no browser to services: it was started with "
                                "--services-listen off");
}

weir_status api_service_put(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    static const char *const fields[] = {"name",       "project",   "kind",          "spec", "runs",
                                         "keeps_path", "is_shared", "idle_after_ms", "port", NULL};
    struct control control = api_control(call);
    struct weir_service_look look;
    struct control_service wanted = {.spec = json_object_get(call->body, "spec"),
                                     .runs = json_object_get(call->body, "runs")};
    WEIR_TRY(check_listener(call, err));
    WEIR_TRY(api_body_only(call, fields, err));
    WEIR_TRY(api_body_text(call, "name", &wanted.name, err));
    WEIR_TRY(api_body_text(call, "project", &wanted.project, err));
    WEIR_TRY(api_body_text(call, "kind", &wanted.kind, err));
    WEIR_TRY(api_body_int(call, "port", 0, &wanted.port, err));
    WEIR_TRY(api_body_int(call, "idle_after_ms", 0, &wanted.idle_after_ms, err));
    WEIR_TRY(api_body_bool(call, "keeps_path", false, &wanted.keeps_path, err));
    WEIR_TRY(api_body_bool(call, "is_shared", false, &wanted.is_shared, err));
    if (wanted.spec != NULL && !json_is_object(wanted.spec)) {
        return weir_error_set(err, WEIR_ERR_INVALID, "$.spec: expected an object");
    }
    wanted.project = wanted.project != NULL ? wanted.project : "default";
    wanted.kind = wanted.kind != NULL ? wanted.kind : "service";
    WEIR_TRY(api_check_project(call, txn, wanted.project, err));
    WEIR_TRY(control_service_put(&control, txn, &wanted, call->api->services_domain != NULL, &look,
                                 err));
    answer_look(call, &look);
    return WEIR_OK;
}

/* A private one is its owner's to start: it runs as the owner's programs do. */
static weir_status check_owner(const struct api_call *call, const struct weir_service *service,
                               struct weir_error *err)
{
    bool is_owner = strcmp(call->actor, service->owner) == 0;
    return is_owner || service->is_shared
               ? WEIR_OK
               : weir_error_set(err, WEIR_ERR_DENIED, "%s \"%s\" is %s's, who has not shared it",
                                service->kind, service->name, service->owner);
}

weir_status api_service_start(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    struct control control = api_control(call);
    struct weir_service_look look;
    WEIR_TRY(check_listener(call, err));
    WEIR_TRY(weir_service_look(txn, call->params[0], call->arena, &look, err));
    WEIR_TRY(check_owner(call, &look.service, err));
    WEIR_TRY(control_service_start(&control, txn, call->params[0],
                                   call->api->services_domain != NULL, &look, err));
    answer_look(call, &look);
    return WEIR_OK;
}

weir_status api_service_stop(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    struct control control = api_control(call);
    struct weir_service_look look;
    WEIR_TRY(control_service_stop(&control, txn, call->params[0],
                                  weir_arena_printf(call->arena, "stopped by %s", call->actor),
                                  &look, err));
    answer_look(call, &look);
    return WEIR_OK;
}

weir_status api_service_delete(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    struct control control = api_control(call);
    struct weir_service_look look;
    WEIR_TRY(weir_service_look(txn, call->params[0], call->arena, &look, err));
    bool is_admin = call->identity.role == WEIR_ROLE_ADMIN;
    if (!is_admin) {
        WEIR_TRY(check_owner(call, &look.service, err));
    }
    WEIR_TRY(control_service_delete(&control, txn, call->params[0], err));
    weir_http_response_empty(call->response);
    return WEIR_OK;
}

weir_status api_service_ticket(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    char secret[WEIR_SECRET_BYTES];
    struct weir_service_look look;
    WEIR_TRY(check_listener(call, err));
    WEIR_TRY(weir_service_look(txn, call->params[0], call->arena, &look, err));
    if (!service_is_open_to(&look.service, &call->identity)) {
        return weir_error_set(err, WEIR_ERR_DENIED, "%s \"%s\" is %s's, who has not shared it",
                              look.service.kind, look.service.name, look.service.owner);
    }
    char *url = url_of(call, &look.service);
    if (url == NULL) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "the request has no Host, or one that is none");
    }
    WEIR_TRY(weir_service_ticket_make(txn, look.service.id, &call->identity, "", call->now_ms,
                                      secret, err));
    API_ANSWER(call, api_service_ticket,
               .url = weir_arena_printf(call->arena, "%s.weir/enter?ticket=%s", url, secret),
               .address = url, .expires_s = WEIR_SERVICE_TICKET_MS / 1000);
    return WEIR_OK;
}
