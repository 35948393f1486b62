/**
 * Who may do what: projects, users, tokens, browser sessions and one-time login links.
 *
 * Secrets are made by weir_secret_make, shown once and stored only as SHA-256 (they hold 256 random
 * bits, so a plain hash is enough). Whoever shows a valid secret is the token's user, with the
 * lesser of the token's and the user's role.
 *
 * A login link, and the session it opens, carry the role of who made the link, and name the token
 * that was shown for it: they never may more than that token, and end with it. A session that was begun
 * by another proof may what its user may. That is looked up with every request, so a user that is
 * disabled or gets another role, or whose group does, has lost or gained at once.
 */
#ifndef WEIR_STORE_IDENTITY_H
#define WEIR_STORE_IDENTITY_H

#include "base/arena.h"
#include "base/file.h"
#include "base/record.h"
#include "store/rights.h"
#include "store/store.h"

struct weir_project {
    char *name;
    char *description;
    int64_t created_ms;
};

struct weir_user {
    char *name;
    char *kind; /**< "person" or "service". */
    char *role;
    bool is_disabled;
    char *password_hash; /**< password.h; NULL: the user logs in with links only. */
    int64_t created_ms;
};

struct weir_token {
    char *id;
    char *user;
    char *name;
    char *role;
    char *node;    /**< Of role agent: the node it may speak for. NULL: the first it registers. */
    char *project; /**< The only project it is for; NULL: all of its user's. */
    char *
        origin; /**< Kind of the proof that it was made with: "password" ends when that changes; NULL:
                        an admin made it. */
    char *secret_hash;
    int64_t created_ms;
    int64_t expires_ms; /**< 0 = never. */
    int64_t used_ms;    /**< When it was shown last, by the hour; 0: never. */
};

struct weir_session {
    char *id;
    char *user;
    char *role;       /**< That it began with. */
    char *limited_to; /**< At most this role; NULL: all that its user may. */
    char *proof;      /**< Kind of the proof that it was begun with. */
    char *token;      /**< That the login link was made with, and that it ends with; NULL: none. */
    char *address;    /**< From where it was opened; may be NULL. */
    char *secret_hash;
    char *csrf;
    int64_t created_ms;
    int64_t expires_ms;
};

struct weir_login_link {
    char *id;
    char *user;
    char *role;  /**< At most this one. */
    char *token; /**< That it was made with. */
    char *secret_hash;
    int64_t created_ms;
    int64_t expires_ms;
    int64_t used_ms; /**< 0 = not yet. */
};

/** A token that machines join the cluster with, each once. */
struct weir_node_join {
    char *id;
    char *node; /**< The only name it is good for; NULL: any. */
    char *secret_hash;
    char *created_by;
    int64_t created_ms;
    int64_t expires_ms;
    int64_t used_ms; /**< When it was used last; 0: not yet. */
    char *used_by;   /**< The node that did. */
    int64_t n_nodes; /**< It is good for so many nodes. */
    int64_t n_used;
    /** Only its nodes join with it: their names begin with its id and "-". NULL: it is for no allocation. */
    char *allocation;
};

extern const struct weir_resource weir_node_join_resource;
extern const struct weir_resource weir_project_resource;
extern const struct weir_resource weir_user_resource;
extern const struct weir_resource weir_token_resource;
extern const struct weir_resource weir_session_resource;
extern const struct weir_resource weir_login_link_resource;

/** "weir_" + 43 characters of base64url (256 bits) and a NUL. Make it before the transaction. */
#define WEIR_SECRET_BYTES 49
void weir_secret_make(char out[WEIR_SECRET_BYTES]);
void weir_secret_hash(const char *secret, char out[WEIR_SHA256_TEXT_BYTES]);

/** What somebody may do in one project. */
struct weir_grant {
    char *project;
    weir_rights rights;
    char *gone_role; /**< A name that no role has any more: it adds nothing. NULL: none. */
};

/** What a shown secret proves. Text lies in the caller's arena. */
struct weir_identity {
    struct weir_user user;
    enum weir_role role;       /**< The least of the user's, the token's and the session's; MEMBER
                                    for a custom one. */
    const char *role_name;     /**< Its name; static or in the arena. */
    weir_rights limit;         /**< What that role allows whoever has it everywhere. */
    weir_rights rights;        /**< In all projects, and on the platform. */
    struct weir_grant *grants; /**< In single projects, each once. */
    size_t n_grants;
    char *limited_to; /**< Role of that token; NULL: no token was shown. */
    char
        *proof; /**< Kind of the proof that was given for this session, or to make that token; NULL:
                              there was none but a token that an admin made. */
    char *token;   /**< Identifier of the token that was shown, or that began the session. */
    char *session; /**< Identifier of the session; NULL for a token. */
    char *csrf;    /**< Of a session; NULL for a token. */
    char *node;    /**< That an agent's token is bound to; NULL if it is to none. */
};

/** May it do this in the project? NULL: on the platform, and so in every project. Pure. */
bool weir_identity_may(const struct weir_identity *identity, enum weir_right right,
                       const char *project);

/** @return UNAUTH if no token has this secret, or it has expired, or its user is disabled. */
weir_status weir_token_identify(struct weir_txn *txn, const char *secret, int64_t now_ms,
                                struct weir_arena *arena, struct weir_identity *out,
                                struct weir_error *err) WEIR_MUST_CHECK;

/**
 * What a user may now, and no more than the role `limited_to` (NULL: all of it): of one whose token that
 * was, though it is not shown. UNAUTH if there is no such user, or it is disabled, or nothing is left.
 */
weir_status weir_user_identify_as(struct weir_txn *txn, const char *name, const char *limited_to,
                                  struct weir_arena *arena, struct weir_identity *out,
                                  struct weir_error *err) WEIR_MUST_CHECK;

/** What a user may by itself: of one whose password was right. UNAUTH if there is none, or it is disabled. */
weir_status weir_user_identify(struct weir_txn *txn, const char *name, struct weir_arena *arena,
                               struct weir_identity *out, struct weir_error *err) WEIR_MUST_CHECK;

/** Bind an agent's token to its node. @return CONFLICT if another token is bound to that node. */
weir_status weir_token_bind(struct weir_txn *txn, const char *token, const char *node,
                            struct weir_error *err) WEIR_MUST_CHECK;

/** The same for a browser session; UNAUTH too if the token that began it is gone or has expired. */
weir_status weir_session_identify(struct weir_txn *txn, const char *secret, int64_t now_ms,
                                  struct weir_arena *arena, struct weir_identity *out,
                                  struct weir_error *err) WEIR_MUST_CHECK;

/** Who is behind a session, or else a token, of this identifier, now. @return UNAUTH if it has ended. */
weir_status weir_identity_by_id(struct weir_txn *txn, const char *session, const char *token,
                                int64_t now_ms, struct weir_arena *arena, struct weir_identity *out,
                                struct weir_error *err) WEIR_MUST_CHECK;

/** Would the secret behind this identity still be good, for the same rights? UNAUTH if it is not. */
weir_status weir_identity_check(struct weir_txn *txn, const struct weir_identity *identity,
                                int64_t now_ms, struct weir_arena *arena,
                                struct weir_error *err) WEIR_MUST_CHECK;

/** The login link of this secret, if it is still good; it stays so. @return UNAUTH as below. */
weir_status weir_login_link_look(struct weir_txn *txn, const char *secret, int64_t now_ms,
                                 struct weir_arena *arena, struct weir_login_link *out,
                                 struct weir_error *err) WEIR_MUST_CHECK;

/** Use up a login link: write transaction. @return UNAUTH if unknown, used or expired. */
weir_status weir_login_link_take(struct weir_txn *txn, const char *secret, int64_t now_ms,
                                 struct weir_arena *arena, struct weir_login_link *out,
                                 struct weir_error *err) WEIR_MUST_CHECK;

/** End the user's tokens that were made with the password of before. */
weir_status weir_user_end_password_tokens(struct weir_txn *txn, const char *user,
                                          struct weir_error *err) WEIR_MUST_CHECK;

/** End the user's sessions and login links. */
weir_status weir_user_end_sessions(struct weir_txn *txn, const char *user,
                                   struct weir_error *err) WEIR_MUST_CHECK;

/** CONFLICT unless there is an admin, not disabled, beside this user. */
weir_status weir_user_check_other_admin(struct weir_txn *txn, const char *user,
                                        struct weir_error *err) WEIR_MUST_CHECK;

/** Delete sessions and login links that expired before now_ms. */
weir_status weir_identity_expire(struct weir_txn *txn, int64_t now_ms,
                                 struct weir_error *err) WEIR_MUST_CHECK;

/** Insert one, and remove those that have ended for a day. */
weir_status weir_node_join_insert(struct weir_txn *txn, const struct weir_node_join *join,
                                  int64_t now_ms, struct weir_error *err) WEIR_MUST_CHECK;

/**
 * Use the one of this secret for a node. It is good for as many nodes as it says, each once. If the agent of an
 * allocation's node was started again, it shows it again: that is no second node, and the node's tokens end.
 * @return UNAUTH if none has it, or it has expired, is used up, or is for other names.
 */
weir_status weir_node_join_take(struct weir_txn *txn, const char *secret, const char *node,
                                int64_t now_ms, struct weir_arena *arena,
                                struct weir_error *err) WEIR_MUST_CHECK;

/** How many tokens are bound to the node. */
weir_status weir_node_count_tokens(struct weir_txn *txn, const char *node, int64_t *out,
                                   struct weir_error *err) WEIR_MUST_CHECK;

/** End all tokens that are bound to the node. */
weir_status weir_node_end_tokens(struct weir_txn *txn, const char *node,
                                 struct weir_error *err) WEIR_MUST_CHECK;

/** The allocation has ended: nobody joins as a node of it any more, and tokens of those that have joined end, whether or
 *  not they have been heard of since. */
weir_status weir_node_join_end(struct weir_txn *txn, const char *allocation, int64_t now_ms,
                               struct weir_error *err) WEIR_MUST_CHECK;

#endif
