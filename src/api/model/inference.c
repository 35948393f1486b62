/** What the gateway asks of the API: who may send requests to which deployments. */
#include "api/core/dispatch.h"
#include "store/table.h"

#include "gateway/gateway.h"

struct lookup {
    struct api_call *call;
    int64_t expires_ms;
};

static weir_status load_expiry(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct lookup *lookup = context;
    struct weir_token token;
    const char *id = lookup->call->identity.token;
    if (id != NULL && lookup->call->identity.session == NULL) {
        WEIR_TRY(weir_txn_get(txn, &weir_token_resource, id, lookup->call->arena, &token, err));
        lookup->expires_ms = token.expires_ms;
    }
    return WEIR_OK;
}

static weir_status find_projects(struct api_call *call, struct weir_gateway_caller *out,
                                 struct weir_error *err)
{
    const struct weir_identity *identity = &call->identity;
    const weir_rights right = WEIR_RIGHTS_OF(WEIR_RIGHT_PREDICT);
    const char **projects = WEIR_ARENA_ARRAY(call->arena, identity->n_grants + 1, const char *);
    size_t n = 0;
    for (size_t i = 0; i < identity->n_grants; i++) {
        if (identity->grants[i].rights & right) {
            projects[n++] = identity->grants[i].project;
        }
    }
    out->is_all = (identity->rights & right) != 0;
    out->projects = projects;
    out->n_projects = n;
    if (out->is_all || n > 0) {
        return WEIR_OK;
    }
    return weir_error_set(err, WEIR_ERR_DENIED,
                          "a request for a prediction needs the right to %s %s in some project; "
                          "this %s of \"%s\" has the role \"%s\", which does not give it: use "
                          "another one, or ask an admin",
                          weir_right_verb(WEIR_RIGHT_PREDICT), weir_right_noun(WEIR_RIGHT_PREDICT),
                          identity->session != NULL ? "session" : "token", call->actor,
                          identity->role_name);
}

weir_status weir_api_authorise(void *context, const char *token,
                               const struct weir_http_request *request, struct weir_arena *arena,
                               struct weir_gateway_caller *out, struct weir_error *err)
{
    struct weir_api *api = context;
    struct weir_http_request of_grpc = {.method = "POST", .path = "/grpc", .remote = "gRPC"};
    struct weir_http_response *no_response = NULL;
    struct api_call call = {.api = api,
                            .request =
                                request != NULL ? (struct weir_http_request *)request : &of_grpc,
                            .response = no_response,
                            .arena = arena,
                            .actor = "nobody",
                            .now_ms = weir_clock_now_ms(api->clock)};
    struct lookup lookup = {.call = &call};
    const char *session =
        token == NULL && request != NULL ? weir_http_request_cookie(request, "weir_session") : NULL;
    weir_status status = api_identify_by(&call, token, session, err);
    if (status == WEIR_OK) {
        status = find_projects(&call, out, err);
    }
    if (status == WEIR_OK) {
        status = weir_store_read(api->store, load_expiry, &lookup, err);
        out->expires_ms = lookup.expires_ms;
    }
    api_note_for_audit(&call, status, err);
    return status;
}
