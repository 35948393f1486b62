#include "server/bootstrap.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/rng.h"
#include "base/uuid.h"
#include "job/former.h"
#include "store/event.h"
#include "store/identity.h"
#include "store/table.h"
#include "track/experiment.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct builtin {
    const char *user, *kind, *role;
    const char *file; /**< Of its token, in the state folder. */
};

static const struct builtin builtins[] = {
    {"admin", "person", "admin", "admin.token"},
    {"agent", "service", "agent", "agent/token"},
};

struct bootstrap {
    struct weir_arena *arena;
    int64_t now_ms;
    const struct builtin *builtin;
    char *node;       /**< For the agent's token; NULL for others. */
    char *secret;     /**< Of the token file; NULL if there is none. */
    bool is_known;    /**< Out: the database knows it. */
    char *new_secret; /**< Given out if it does not. */
};

static weir_status ensure_project(struct weir_txn *txn, struct bootstrap *boot,
                                  struct weir_error *err)
{
    struct weir_project project = {
        .name = "default", .description = "Made with the server", .created_ms = boot->now_ms};
    int64_t experiment;
    weir_status status = weir_txn_insert(txn, &weir_project_resource, &project, err);
    if (status != WEIR_OK && status != WEIR_ERR_EXISTS) {
        return status;
    }
    return weir_experiment_ensure(txn, project.name, WEIR_EXPERIMENT_DEFAULT, NULL, boot->now_ms,
                                  &experiment, err);
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
    if (boot->is_known) { /* the machine may have got another name */
        token.node = boot->node;
        return weir_txn_update(txn, &weir_token_resource, &token, WEIR_FIELDS("node"), err);
    }
    char hash[WEIR_SHA256_TEXT_BYTES], id[WEIR_UUID_BYTES];
    weir_secret_hash(boot->new_secret, hash);
    weir_uuid_make(id);
    token = (struct weir_token){.id = id,
                                .user = name,
                                .name = "built-in",
                                .role = user.role,
                                .node = boot->node,
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

static weir_status bootstrap_one(struct weir_store *store, const char *state_dir, const char *node,
                                 const struct builtin *builtin, struct weir_arena *arena,
                                 struct weir_error *err)
{
    bool is_agent = strcmp(builtin->role, weir_role_text(WEIR_ROLE_AGENT)) == 0;
    char *path = weir_arena_printf(arena, "%s/%s", state_dir, builtin->file);
    char new_secret[WEIR_SECRET_BYTES];
    weir_secret_make(new_secret);
    struct bootstrap boot = {.arena = arena,
                             .now_ms = weir_time_ms(),
                             .builtin = builtin,
                             .node = is_agent ? weir_arena_strdup(arena, node) : NULL,
                             .secret = read_token(path, arena),
                             .new_secret = weir_arena_strdup(arena, new_secret)};
    WEIR_TRY(weir_store_write(store, ensure_identity, &boot, err));
    if (!boot.is_known) {
        char *line = weir_arena_printf(arena, "%s\n", boot.new_secret);
        return weir_file_write_atomic(path, line, strlen(line), 0600, err);
    }
    return WEIR_OK;
}

struct key_boot {
    struct weir_arena *arena;
    char *made; /**< In hexadecimal; taken if there is none. */
    char *kept; /**< Out. */
};

static weir_status ensure_task_key(struct weir_txn *txn, void *context, struct weir_error *err)
{
    static const char name[] = "task_token_key";
    struct key_boot *boot = context;
    char *value;
    weir_status status = weir_setting_get(txn, name, boot->arena, &value, NULL);
    if (status == WEIR_OK && strlen(value) == 2 * BOOTSTRAP_TASK_KEY_BYTES + 2) {
        boot->kept = value + 1; /* between the quotes of JSON */
        return WEIR_OK;
    }
    boot->kept = boot->made;
    value = weir_arena_printf(boot->arena, "\"%s\"", boot->made);
    return weir_setting_put(txn, name, value, weir_time_ms(), err);
}

static weir_status bootstrap_task_key(struct weir_store *store, struct weir_arena *arena,
                                      unsigned char out[BOOTSTRAP_TASK_KEY_BYTES],
                                      struct weir_error *err)
{
    unsigned char key[BOOTSTRAP_TASK_KEY_BYTES];
    struct key_boot boot = {.arena = arena, .made = weir_arena_alloc(arena, 2 * sizeof key + 1)};
    weir_random_bytes(key, sizeof key);
    for (size_t i = 0; i < sizeof key; i++) {
        (void)snprintf(boot.made + 2 * i, 3, "%02x", key[i]);
    }
    WEIR_TRY(weir_store_write(store, ensure_task_key, &boot, err));
    for (size_t i = 0; i < sizeof key; i++) {
        char digits[3] = {boot.kept[2 * i], boot.kept[2 * i + 1], '\0'};
        out[i] = (unsigned char)strtoul(digits, NULL, 16);
    }
    return WEIR_OK;
}

struct former_boot {
    const char *secret;
    int64_t now_ms;
};

static weir_status keep_former(struct weir_txn *txn, void *context, struct weir_error *err)
{
    const struct former_boot *boot = context;
    char hash[WEIR_SHA256_TEXT_BYTES];
    weir_secret_hash(boot->secret, hash);
    return weir_former_keep(txn, hash, boot->now_ms, err);
}

/* Versions before migration 9 kept here the token that all tasks shared. */
static weir_status bootstrap_former(struct weir_store *store, const char *state_dir,
                                    struct weir_arena *arena, struct weir_error *err)
{
    const char *path = weir_arena_printf(arena, "%s/worker.token", state_dir);
    struct former_boot boot = {.secret = read_token(path, arena), .now_ms = weir_time_ms()};
    if (boot.secret == NULL) {
        return WEIR_OK;
    }
    WEIR_TRY(weir_store_write(store, keep_former, &boot, err));
    (void)unlink(path);
    return WEIR_OK;
}

weir_status bootstrap(struct weir_store *store, const char *state_dir, const char *node,
                      struct weir_arena *arena,
                      unsigned char out_task_key[BOOTSTRAP_TASK_KEY_BYTES], struct weir_error *err)
{
    WEIR_TRY(weir_dir_make(weir_arena_printf(arena, "%s/agent", state_dir), 0700, err));
    for (size_t i = 0; i < WEIR_ARRAY_LEN(builtins); i++) {
        WEIR_TRY(bootstrap_one(store, state_dir, node, &builtins[i], arena, err));
    }
    WEIR_TRY(bootstrap_former(store, state_dir, arena, err));
    return bootstrap_task_key(store, arena, out_task_key, err);
}
