#include "server/bootstrap.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/uuid.h"
#include "store/identity.h"
#include "store/table.h"

#include <string.h>

struct builtin {
    const char *user, *kind, *role;
    const char *file; /**< Of its token, in the state folder. */
};

static const struct builtin builtins[] = {
    {"admin", "person", "admin", "admin.token"},
    {"agent", "service", "agent", "agent/token"},
    {"worker", "service", "worker", "worker.token"},
};

struct bootstrap {
    struct weir_arena *arena;
    int64_t now_ms;
    const struct builtin *builtin;
    char *secret;     /**< Of the token file; NULL if there is none. */
    bool is_known;    /**< Out: the database knows it. */
    char *new_secret; /**< Given out if it does not. */
};

static weir_status ensure_project(struct weir_txn *txn, struct bootstrap *boot,
                                  struct weir_error *err)
{
    struct weir_project project = {
        .name = "default", .description = "Made with the server", .created_ms = boot->now_ms};
    weir_status status = weir_txn_insert(txn, &weir_project_resource, &project, err);
    return status == WEIR_ERR_EXISTS ? WEIR_OK : status;
}

static weir_status ensure_identity(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct bootstrap *boot = context;
    char *name = weir_arena_strdup(boot->arena, boot->builtin->user);
    struct weir_user user = {.name = name,
                             .kind = weir_arena_strdup(boot->arena, boot->builtin->kind),
                             .role = weir_arena_strdup(boot->arena, boot->builtin->role),
                             .created_ms = boot->now_ms};
    struct weir_token token;
    WEIR_TRY(ensure_project(txn, boot, err));
    weir_status status = weir_txn_insert(txn, &weir_user_resource, &user, err);
    if (status != WEIR_OK && status != WEIR_ERR_EXISTS) {
        return status;
    }
    /* Known is enough: a user that was disabled must not come back by a new token. */
    boot->is_known = false;
    if (boot->secret != NULL) {
        char known[WEIR_SHA256_TEXT_BYTES];
        weir_secret_hash(boot->secret, known);
        boot->is_known = weir_txn_get_by(txn, &weir_token_resource, "secret_hash", known,
                                         boot->arena, &token, NULL) == WEIR_OK;
    }
    if (boot->is_known) {
        return WEIR_OK;
    }
    char hash[WEIR_SHA256_TEXT_BYTES], id[WEIR_UUID_BYTES];
    weir_secret_hash(boot->new_secret, hash);
    weir_uuid_make(id);
    token = (struct weir_token){.id = id,
                                .user = name,
                                .name = "built-in",
                                .role = user.role,
                                .secret_hash = hash,
                                .created_ms = boot->now_ms};
    return weir_txn_insert(txn, &weir_token_resource, &token, err);
}

/* First line of the token file; NULL if it cannot be had. */
static char *read_token(const char *path, struct weir_arena *arena)
{
    char *text;
    struct weir_error ignored;
    if (weir_file_read(path, 4096, arena, &text, NULL, &ignored) != WEIR_OK) {
        return NULL;
    }
    text[strcspn(text, "\r\n")] = '\0';
    return text;
}

static weir_status bootstrap_one(struct weir_store *store, const char *state_dir,
                                 const struct builtin *builtin, struct weir_arena *arena,
                                 char **out_secret, struct weir_error *err)
{
    char *path = weir_arena_printf(arena, "%s/%s", state_dir, builtin->file);
    char new_secret[WEIR_SECRET_BYTES];
    weir_secret_make(new_secret);
    struct bootstrap boot = {.arena = arena,
                             .now_ms = weir_time_ms(),
                             .builtin = builtin,
                             .secret = read_token(path, arena),
                             .new_secret = weir_arena_strdup(arena, new_secret)};
    WEIR_TRY(weir_store_write(store, ensure_identity, &boot, err));
    *out_secret = boot.is_known ? boot.secret : boot.new_secret;
    if (!boot.is_known) {
        char *line = weir_arena_printf(arena, "%s\n", boot.new_secret);
        return weir_file_write_atomic(path, line, strlen(line), 0600, err);
    }
    return WEIR_OK;
}

weir_status bootstrap(struct weir_store *store, const char *state_dir, struct weir_arena *arena,
                      char **out_worker_token, struct weir_error *err)
{
    WEIR_TRY(weir_dir_make(weir_arena_printf(arena, "%s/agent", state_dir), 0700, err));
    for (size_t i = 0; i < WEIR_ARRAY_LEN(builtins); i++) {
        char *secret;
        WEIR_TRY(bootstrap_one(store, state_dir, &builtins[i], arena, &secret, err));
        if (strcmp(builtins[i].user, "worker") == 0) {
            *out_worker_token = secret;
        }
    }
    return WEIR_OK;
}
