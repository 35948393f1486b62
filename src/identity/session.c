/** A session of a browser, begun from what is proven. */
#include "identity/identity.h"

#include "base/uuid.h"
#include "store/table.h"
#include "store/tenant.h"

weir_status weir_identity_begin_session(struct weir_txn *txn,
                                        const struct weir_identity_proven *proven,
                                        const struct weir_identity_ask *ask,
                                        char secret[WEIR_SECRET_BYTES], struct weir_session *out,
                                        struct weir_error *err)
{
    char csrf[WEIR_SECRET_BYTES], hash[WEIR_SHA256_TEXT_BYTES], id[WEIR_UUID_BYTES];
    struct weir_identity identity;
    WEIR_TRY(weir_user_identify(txn, proven->user, ask->arena, &identity, err));
    if (proven->issuer != NULL) {
        WEIR_TRY(weir_groups_take(txn, proven->user, proven->issuer, proven->groups,
                                  proven->n_groups, ask->now_ms, ask->arena, err));
    }
    weir_secret_make(secret);
    weir_secret_make(csrf);
    weir_secret_hash(secret, hash);
    weir_uuid_make(id);
    const struct weir_session session = {
        .id = weir_arena_strdup(ask->arena, id),
        .user = identity.user.name,
        .role = (char *)(proven->limited_to != NULL ? proven->limited_to : identity.user.role),
        .limited_to = (char *)proven->limited_to,
        .proof = (char *)proven->by,
        .token = (char *)proven->token,
        .address = (char *)ask->request->remote,
        .secret_hash = weir_arena_strdup(ask->arena, hash),
        .csrf = weir_arena_strdup(ask->arena, csrf),
        .created_ms = ask->now_ms,
        .expires_ms = ask->now_ms + WEIR_SESSION_MS};
    WEIR_TRY(weir_txn_insert(txn, &weir_session_resource, &session, err));
    *out = session;
    return WEIR_OK;
}
