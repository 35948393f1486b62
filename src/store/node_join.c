#include "store/identity.h"
#include "store/stmt.h"
#include "store/table.h"

#include <string.h>

#define KEPT_MS                                                                                    \
    ((int64_t)24 * 3600 * 1000) /* after its end, so that people see what became of it */

// clang-format off
static const struct weir_field node_join_fields[] = {
    WEIR_FIELD(weir_node_join, id,          TEXT, WEIR_FIELD_KEY | WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "", "Identifier"),
    WEIR_FIELD(weir_node_join, node,        TEXT, WEIR_FIELD_NAME | WEIR_FIELD_COLUMN, "", "The only name of a node that it is good for; absent: any"),
    WEIR_FIELD(weir_node_join, secret_hash, TEXT, WEIR_FIELD_SECRET | WEIR_FIELD_READ_ONLY, "", "SHA-256 of the secret"),
    WEIR_FIELD(weir_node_join, created_by,  TEXT, WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "", "Who made it"),
    WEIR_FIELD(weir_node_join, created_ms,  TIME, WEIR_FIELD_READ_ONLY, "ms", "When it was made"),
    WEIR_FIELD(weir_node_join, expires_ms,  TIME, WEIR_FIELD_COLUMN, "ms", "When it ends; absent: an hour from now"),
    WEIR_FIELD(weir_node_join, used_ms,     TIME, WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "ms", "When a node joined with it last"),
    WEIR_FIELD(weir_node_join, used_by,     TEXT, WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "", "Which node did"),
    WEIR_FIELD(weir_node_join, n_nodes,     INT,  WEIR_FIELD_COLUMN, "", "How many nodes it is good for; absent: one"),
    WEIR_FIELD(weir_node_join, n_used,      INT,  WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "", "How many have joined with it"),
    WEIR_FIELD(weir_node_join, allocation,  TEXT, WEIR_FIELD_READ_ONLY, "", "Allocation: only its nodes join with it"),
};
// clang-format on

const struct weir_resource weir_node_join_resource =
    WEIR_RESOURCE("node join", "node_joins", weir_node_join, node_join_fields);

static const char sql_forget[] = "DELETE FROM node_joins WHERE expires_ms <= :before";
static const char sql_has_used[] =
    "SELECT count(*) FROM node_join_uses WHERE node_join = :id AND node = :node";
static const char sql_use[] = "INSERT INTO node_join_uses (node_join, node) VALUES (:id, :node)";
static const char sql_count_tokens[] = "SELECT count(*) FROM tokens WHERE node = :node";
static const char sql_end_tokens[] = "DELETE FROM tokens WHERE node = :node";
static const char sql_expire[] = "UPDATE node_joins SET expires_ms = :now"
                                 " WHERE allocation = :allocation AND expires_ms > :now";
static const char sql_end_tokens_of[] =
    "DELETE FROM tokens WHERE node IN (SELECT u.node FROM node_join_uses u JOIN node_joins j"
    " ON j.id = u.node_join WHERE j.allocation = :allocation)";

weir_status weir_node_join_insert(struct weir_txn *txn, const struct weir_node_join *join,
                                  int64_t now_ms, struct weir_error *err)
{
    struct weir_node_join made = *join;
    made.n_nodes = WEIR_MAX(made.n_nodes, (int64_t)1);
    WEIR_TRY(weir_txn_exec(txn, sql_forget, WEIR_BINDS(WEIR_BIND_INT("before", now_ms - KEPT_MS)),
                           NULL, err));
    return weir_txn_insert(txn, &weir_node_join_resource, &made, err);
}

/* The row of a secret that can still be shown. */
static weir_status find_join(struct weir_txn *txn, const char *secret, struct weir_arena *arena,
                             struct weir_node_join *out, struct weir_error *err)
{
    char hash[WEIR_SHA256_TEXT_BYTES];
    struct weir_error ignored;
    weir_secret_hash(secret, hash);
    weir_status status =
        weir_txn_get_by(txn, &weir_node_join_resource, "secret_hash", hash, arena, out, &ignored);
    if (status == WEIR_ERR_NOT_FOUND) {
        return weir_error_set(err, WEIR_ERR_UNAUTH,
                              "this is no token to join with: make one with `weir node token`");
    }
    if (status != WEIR_OK) {
        return weir_error_set(err, status, "%s", ignored.message);
    }
    return WEIR_OK;
}

/* May this node join with it, which is not used up? */
static weir_status check_name(const struct weir_node_join *join, const char *node,
                              struct weir_error *err)
{
    size_t len = join->allocation != NULL ? strlen(join->allocation) : 0;
    if (join->node != NULL && strcmp(join->node, node) != 0) {
        return weir_error_set(err, WEIR_ERR_UNAUTH, "this token is for node %s, not for %s",
                              join->node, node);
    }
    bool is_of_it = len == 0 || (strncmp(node, join->allocation, len) == 0 && node[len] == '-' &&
                                 node[len + 1] != '\0');
    return is_of_it ? WEIR_OK
                    : weir_error_set(err, WEIR_ERR_UNAUTH,
                                     "this token is for the nodes of allocation %s, whose names "
                                     "begin with %s-, not for %.80s",
                                     join->allocation, join->allocation, node);
}

static weir_status refuse_used(const struct weir_node_join *join, struct weir_error *err)
{
    return join->n_nodes == 1
               ? weir_error_set(err, WEIR_ERR_UNAUTH,
                                "node %s has joined with this token, and it is good for one: make "
                                "another with `weir node token`",
                                join->used_by)
               : weir_error_set(err, WEIR_ERR_UNAUTH,
                                "%lld nodes have joined with this token, and it is good for %lld: "
                                "make another with `weir node token --nodes N`",
                                (long long)join->n_used, (long long)join->n_nodes);
}

weir_status weir_node_join_take(struct weir_txn *txn, const char *secret, const char *node,
                                int64_t now_ms, struct weir_arena *arena, struct weir_error *err)
{
    struct weir_node_join join;
    int64_t n_before;
    WEIR_TRY(find_join(txn, secret, arena, &join, err));
    const struct weir_bind binds[] = {WEIR_BIND_TEXT("id", join.id), WEIR_BIND_TEXT("node", node)};
    WEIR_TRY(
        weir_txn_query_int(txn, sql_has_used, WEIR_BINDS(binds[0], binds[1]), 0, &n_before, err));
    bool is_again = n_before > 0 && join.allocation != NULL;
    if (!is_again && join.n_used >= join.n_nodes) {
        return refuse_used(&join, err);
    }
    if (join.expires_ms <= now_ms) {
        return weir_error_set(err, WEIR_ERR_UNAUTH,
                              "this token has expired: make another with `weir node token`");
    }
    WEIR_TRY(check_name(&join, node, err));
    if (n_before > 0 && !is_again) {
        return weir_error_set(err, WEIR_ERR_UNAUTH, "node %s has joined with this token already",
                              node);
    }
    if (is_again) {
        WEIR_TRY(weir_node_end_tokens(txn, node, err));
    } else {
        WEIR_TRY(weir_txn_exec(txn, sql_use, WEIR_BINDS(binds[0], binds[1]), NULL, err));
        join.n_used++;
    }
    join.used_ms = now_ms;
    join.used_by = (char *)node;
    return weir_txn_update(txn, &weir_node_join_resource, &join,
                           WEIR_FIELDS("used_ms", "used_by", "n_used"), err);
}

weir_status weir_node_count_tokens(struct weir_txn *txn, const char *node, int64_t *out,
                                   struct weir_error *err)
{
    return weir_txn_query_int(txn, sql_count_tokens, WEIR_BINDS(WEIR_BIND_TEXT("node", node)), 0,
                              out, err);
}

weir_status weir_node_end_tokens(struct weir_txn *txn, const char *node, struct weir_error *err)
{
    return weir_txn_exec(txn, sql_end_tokens, WEIR_BINDS(WEIR_BIND_TEXT("node", node)), NULL, err);
}

weir_status weir_node_join_end(struct weir_txn *txn, const char *allocation, int64_t now_ms,
                               struct weir_error *err)
{
    const struct weir_bind of = WEIR_BIND_TEXT("allocation", allocation);
    WEIR_TRY(weir_txn_exec(txn, sql_end_tokens_of, WEIR_BINDS(of), NULL, err));
    return weir_txn_exec(txn, sql_expire, WEIR_BINDS(of, WEIR_BIND_INT("now", now_ms)), NULL, err);
}
