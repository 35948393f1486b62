/** How a machine becomes a node: a token to join with is exchanged for the node's own. */
#include "api/auth/audit.h"
#include "api/core/answer.h"
#include "api/core/args.h"
#include "api/core/functions.h"
#include "api/core/views.h"
#include "store/table.h"

#include "base/uuid.h"

#define HOUR_MS   ((int64_t)3600 * 1000)
#define LATEST_MS (7 * 24 * HOUR_MS)
#define NODES_MAX 4096

weir_status api_node_join_create(struct api_call *call, struct weir_txn *txn,
                                 struct weir_error *err)
{
    struct weir_node_join join = {0};
    char secret[WEIR_SECRET_BYTES], hash[WEIR_SHA256_TEXT_BYTES], id[WEIR_UUID_BYTES];
    WEIR_TRY(weir_record_from_json(&weir_node_join_resource, call->body, WEIR_RECORD_CREATE,
                                   call->arena, &join, err));
    WEIR_TRY(api_body_int(call, "n_nodes", 1, &join.n_nodes, err));
    if (join.n_nodes < 1 || join.n_nodes > NODES_MAX || (join.n_nodes > 1 && join.node != NULL)) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "$.n_nodes: expected 1 to %d, and 1 for a node with a name",
                              NODES_MAX);
    }
    if (join.expires_ms == 0) {
        join.expires_ms = call->now_ms + HOUR_MS;
    }
    if (join.expires_ms <= call->now_ms || join.expires_ms > call->now_ms + LATEST_MS) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "$.expires_ms: expected a time within the next 7 days");
    }
    weir_secret_make(secret);
    weir_secret_hash(secret, hash);
    weir_uuid_make(id);
    join.id = id;
    join.secret_hash = hash;
    join.created_by = (char *)call->actor;
    join.created_ms = call->now_ms;
    WEIR_TRY(weir_node_join_insert(txn, &join, call->now_ms, err));
    WEIR_TRY(audit_act(
        call, txn, "node_join_created", weir_arena_printf(call->arena, "node-join/%s", id),
        join.n_nodes > 1
            ? weir_arena_printf(call->arena, "A token to join with was made for %lld nodes",
                                (long long)join.n_nodes)
            : weir_arena_printf(call->arena, "A token to join with was made for %s",
                                join.node != NULL ? join.node : "any node"),
        err));
    API_ANSWER(call, api_node_join, .row = &join, .secret = secret);
    return WEIR_OK;
}

/* Whoever shows the secret may be anybody: nothing is told but what became of it. */
weir_status api_node_join(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    static char user[] = "agent";
    const char *shown, *node;
    char secret[WEIR_SECRET_BYTES], hash[WEIR_SHA256_TEXT_BYTES], id[WEIR_UUID_BYTES];
    int64_t n_tokens;
    WEIR_TRY(api_body_text(call, "token", &shown, err));
    WEIR_TRY(api_body_text(call, "node", &node, err));
    if (shown == NULL) {
        return weir_error_set(err, WEIR_ERR_UNAUTH,
                              "$.token: expected what `weir node token` printed");
    }
    node = node != NULL ? node : "";
    WEIR_TRY(weir_node_join_take(txn, shown, node, call->now_ms, call->arena, err));
    if (!weir_name_is_valid(node)) { /* the transaction is given up: the token stays good */
        return weir_error_set(
            err, WEIR_ERR_INVALID,
            "$.node: \"%.80s\" is no name (1 to 63 of a-z 0-9 . _ -, first a letter or digit)",
            node);
    }
    WEIR_TRY(weir_node_count_tokens(txn, node, &n_tokens, err));
    if (n_tokens > 0) {
        return weir_error_set(err, WEIR_ERR_CONFLICT,
                              "there is a node %s already: let it leave first (`weir node leave`), "
                              "or join with another name (--node)",
                              node);
    }
    weir_secret_make(secret);
    weir_secret_hash(secret, hash);
    weir_uuid_make(id);
    const struct weir_token token = {.id = id,
                                     .user = user,
                                     .name = weir_arena_printf(call->arena, "node %s", node),
                                     .role = (char *)weir_role_text(WEIR_ROLE_AGENT),
                                     .node = (char *)node,
                                     .secret_hash = hash,
                                     .created_ms = call->now_ms};
    WEIR_TRY(weir_txn_insert(txn, &weir_token_resource, &token, err));
    call->actor = user;
    WEIR_TRY(audit_act(call, txn, "node_joined", weir_arena_printf(call->arena, "node/%s", node),
                       weir_arena_printf(call->arena, "Node %s has joined", node), err));
    API_ANSWER(call, api_joined_node, .node = node, .secret = secret);
    return WEIR_OK;
}
