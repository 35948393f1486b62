#include "identity/identity.h"

#include "store/table.h"

#include <string.h>

#define FIELD_STYLE                                                                                \
    "style=\"font:inherit;display:block;box-sizing:border-box;width:100%%;padding:.5rem;margin:."  \
    "2rem 0 1rem\""
#define FORM                                                                                       \
    "<form method=post action=\"/login/password\">%s<label>Name<input name=user required "         \
    "autocomplete=username " FIELD_STYLE "></label><label>Password<input name=password "           \
    "type=password required autocomplete=current-password " FIELD_STYLE                            \
    "></label><button id=log-in-with-password style=\"font:inherit;padding:.6rem 1.2rem\">"        \
    "Log in</button></form>"

static const char *draw(const struct weir_identity_ask *ask, const char *more)
{
    return weir_arena_printf(ask->arena, FORM, more);
}

/* One that was changed while it was checked opens nothing: its change has ended what there was. */
static weir_status check_still(struct weir_txn *txn, struct weir_identity_ask *ask,
                               const struct weir_identity_proven *proven, struct weir_error *err)
{
    struct weir_user user;
    WEIR_TRY(weir_txn_get(txn, &weir_user_resource, proven->user, ask->arena, &user, err));
    return user.password_hash != NULL && strcmp(user.password_hash, ask->password_hash) == 0
               ? WEIR_OK
               : weir_error_set(err, WEIR_ERR_UNAUTH, "user and password do not fit");
}

static const char *const fields[] = {"user", "password", NULL};

static const struct weir_identity_ops ops = {
    .words = "a password",
    .is_default = true,
    .refused = "user and password do not fit",
    .refusal = "Name and password do not fit.",
    .lead = "with your name and password",
    .fields = fields,
    .look = identity_look_person,
    .prove = identity_prove_password,
    .callback = check_still,
    .draw = draw,
};

const struct weir_kind weir_identity_password = {
    .name = "password",
    .doc = "A user's name and password, given on the page /login, or by `weir login` for a token. "
           "An admin "
           "sets the first password. Who guesses is made to wait.",
    .ops = &ops,
};
