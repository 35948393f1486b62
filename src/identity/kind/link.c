#include "identity/identity.h"

#include "base/uuid.h"
#include "store/table.h"

#include <string.h>

#define MINUTE_MS ((int64_t)60 * 1000)

struct link_options {
    int64_t minutes;
};

static const struct weir_option options_of[] = {
    WEIR_OPT_JSON(link_options, minutes, "minutes", INT, 0, "15", 1, 1440,
                  "How long a link is good that nobody used"),
};

static weir_status proven_by(weir_status status, const struct weir_login_link *link,
                             struct weir_identity_proven *out)
{
    if (status == WEIR_OK) {
        out->user = link->user;
        out->limited_to = link->role;
        out->token = link->token;
    }
    return status;
}

static weir_status look(struct weir_txn *txn, struct weir_identity_ask *ask,
                        struct weir_identity_proven *out, struct weir_error *err)
{
    struct weir_login_link link;
    return proven_by(weir_login_link_look(txn, ask->given[0], ask->now_ms, ask->arena, &link, err),
                     &link, out);
}

static weir_status use_up(struct weir_txn *txn, struct weir_identity_ask *ask,
                          const struct weir_identity_proven *proven, struct weir_error *err)
{
    struct weir_login_link link;
    (void)proven;
    return weir_login_link_take(txn, ask->given[0], ask->now_ms, ask->arena, &link, err);
}

/* Secrets and names of users hold no character that means something in HTML; others are left out. */
static char *plain(struct weir_arena *arena, const char *text)
{
    char *copy = weir_arena_alloc(arena, strlen(text) + 1), *to = copy;
    for (; *text != '\0'; text++) {
        if (strchr("<>&\"'", *text) == NULL) {
            *to++ = *text;
        }
    }
    return copy;
}

/* The button names whose session will begin, so that nobody is logged in as another unawares. */
static weir_status begin(struct weir_identity_ask *ask, struct weir_identity_step *out,
                         struct weir_error *err)
{
    struct weir_identity_proven proven;
    WEIR_TRY(weir_identity_prove(ask, &proven, NULL, err));
    out->html = weir_arena_printf(ask->arena,
                                  "<form method=post action=\"/login\"><input type=hidden "
                                  "name=link value=\"%s\"><p>This link is "
                                  "good once.</p><button id=log-in autofocus "
                                  "style=\"font:inherit;padding:.6rem 1.2rem\">Log in "
                                  "as %s</button></form>",
                                  plain(ask->arena, ask->given[0]), plain(ask->arena, proven.user));
    return WEIR_OK;
}

static const char *draw(const struct weir_identity_ask *ask, const char *more)
{
    (void)more;
    return weir_arena_printf(ask->arena,
                             "<p>%s a one-time link on the server's machine with</p><pre>weir "
                             "login</pre>",
                             ask->has_more ? "Or get" : "Get");
}

weir_status weir_identity_make_link(struct weir_txn *txn, const struct weir_identities *identities,
                                    const struct weir_identity *identity, int64_t now_ms,
                                    char secret[WEIR_SECRET_BYTES], int64_t *out_ms,
                                    struct weir_error *err)
{
    char hash[WEIR_SHA256_TEXT_BYTES], id[WEIR_UUID_BYTES];
    const struct weir_identity_way *way = weir_identities_of(identities, &weir_identity_link);
    WEIR_TRY(weir_identity_check_on(way, err));
    if (identity->token ==
        NULL) { /* a link ends with its token: without one it is good for nothing */
        return weir_error_set(
            err, WEIR_ERR_UNSUPPORTED,
            "a link is made with a token, and this session has none: `weir login`");
    }
    const struct link_options *options = way->options;
    weir_secret_make(secret);
    weir_secret_hash(secret, hash);
    weir_uuid_make(id);
    const struct weir_login_link link = {.id = id,
                                         .user = identity->user.name,
                                         .role = (char *)identity->role_name,
                                         .token = identity->token,
                                         .secret_hash = hash,
                                         .created_ms = now_ms,
                                         .expires_ms = now_ms + options->minutes * MINUTE_MS};
    WEIR_TRY(weir_txn_insert(txn, &weir_login_link_resource, &link, err));
    *out_ms = options->minutes * MINUTE_MS;
    return WEIR_OK;
}

static const char *const fields[] = {"link", NULL};

static const struct weir_identity_ops ops = {
    .words = "a link",
    .is_default = true,
    .refused = "the link is unknown, was used or is too old",
    .refusal = "This link was used before or is too old.",
    .lead = "with a one-time link",
    .fields = fields,
    .look = look,
    .callback = use_up,
    .draw = draw,
    .begin = begin,
};

const struct weir_kind weir_identity_link = {
    .name = "link",
    .doc = "A one-time link, made by `weir login` with a token: its session may no more than that "
           "token, and "
           "ends with it.",
    WEIR_KIND_OPTIONS(link_options, options_of),
    .ops = &ops,
};
