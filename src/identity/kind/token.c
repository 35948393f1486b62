#include "identity/identity.h"

#include <string.h>

static bool is_shown(struct weir_identity_ask *ask)
{
    static const char bearer[] = "Bearer ";
    const char *header = weir_http_request_header(ask->request, "Authorization");
    bool is_here = header != NULL && strncmp(header, bearer, strlen(bearer)) == 0;
    ask->token = is_here ? header + strlen(bearer) : NULL;
    return is_here;
}

static weir_status look(struct weir_txn *txn, struct weir_identity_ask *ask,
                        struct weir_identity_proven *out, struct weir_error *err)
{
    WEIR_TRY(weir_token_identify(txn, ask->given[0], ask->now_ms, ask->arena, ask->identity, err));
    out->user = ask->identity->user.name;
    out->limited_to = ask->identity->limited_to;
    out->token = ask->identity->token;
    return WEIR_OK;
}

static const char *const fields[] = {"token", NULL};

static const struct weir_identity_ops ops = {
    .words = "a token",
    .is_default = true,
    .refused = "the token is unknown or has ended",
    .is_needed = true,
    .shown = is_shown,
    .fields = fields,
    .look = look,
};

const struct weir_kind weir_identity_token = {
    .name = "token",
    .doc = "A secret text that programs, agents and the command line send with each request "
           "(\"Authorization: Bearer weir_…\"). It cannot be off.",
    .ops = &ops,
};
