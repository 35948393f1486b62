#include "job/secret.h"

#include "base/base64.h"
#include "base/file.h"
#include "store/row_scope.h"
#include "store/stmt.h"
#include "store/table.h"

#include <ctype.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NONCE_BYTES crypto_aead_xchacha20poly1305_ietf_NPUBBYTES
#define TAG_BYTES   crypto_aead_xchacha20poly1305_ietf_ABYTES
#define KEY_HEX     (2 * WEIR_SECRET_KEY_BYTES)
#define SEALED_MAX  (NONCE_BYTES + WEIR_SECRET_VALUE_MAX + TAG_BYTES)

_Static_assert(WEIR_SECRET_KEY_BYTES == crypto_aead_xchacha20poly1305_ietf_KEYBYTES,
               "the key is the cipher's");

// clang-format off
static const struct weir_field fields[] = {
    WEIR_FIELD(weir_secret, id,         TEXT, WEIR_FIELD_KEY | WEIR_FIELD_READ_ONLY, "", "PROJECT/NAME"),
    WEIR_FIELD(weir_secret, project,    TEXT, WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "", "Whose jobs may have it"),
    WEIR_FIELD(weir_secret, name,       TEXT, WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "", "Name in the project"),
    WEIR_FIELD_SIZED(weir_secret, sealed, TEXT, WEIR_FIELD_SECRET | WEIR_FIELD_READ_ONLY, WEIR_BASE64_TEXT_BYTES(SEALED_MAX), "", "The value, encrypted"),
    WEIR_FIELD(weir_secret, created_by, TEXT, WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "", "Who has set it last"),
    WEIR_FIELD(weir_secret, created_ms, TIME, WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "ms", "When it was made"),
    WEIR_FIELD(weir_secret, updated_ms, TIME, WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "ms", "When its value was set last"),
};
// clang-format on

const struct weir_resource weir_secret_resource =
    WEIR_RESOURCE("secret", "secrets", weir_secret, fields);

static const char sql_n[] = "SELECT count(*) FROM secrets";
static const char sql_n_of[] = "SELECT count(*) FROM secrets WHERE project = :project";

static char *id_of(const char *project, const char *name, struct weir_arena *arena)
{
    return weir_arena_printf(arena, "%s/%s", project, name);
}

/* ---- names ------------------------------------------------------------------------------------- */

bool weir_secret_name_is_valid(const char *name)
{
    size_t len = strlen(name);
    static const char letters[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
    return len > 0 && len <= WEIR_SECRET_NAME_MAX && strspn(name, letters) == len &&
           isalnum((unsigned char)name[0]);
}

static bool is_variable(const char *text)
{
    size_t len = strlen(text);
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";
    return len > 0 && len <= WEIR_SECRET_NAME_MAX && strspn(text, letters) == len &&
           !isdigit((unsigned char)text[0]) && strncmp(text, "WEIR_", 5) != 0;
}

weir_status weir_secret_read(const char *text, struct weir_arena *arena, const char **out_variable,
                             const char **out_name, struct weir_error *err)
{
    const char *equals = strchr(text, '=');
    char *variable;
    if (equals != NULL) {
        variable = weir_arena_memdup(arena, text, (size_t)(equals - text));
        text = equals + 1;
    } else {
        variable = weir_arena_strdup(arena, text);
        for (char *c = variable; *c != '\0'; c++) {
            *c = *c == '-' || *c == '.' ? '_' : (char)toupper((unsigned char)*c);
        }
    }
    if (!weir_secret_name_is_valid(text) || !is_variable(variable)) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "expected NAME or VARIABLE=NAME: a variable (letters, digits, \"_\") "
                              "that does not begin with WEIR_, and the name of a secret of the "
                              "project (letters, digits, \"._-\")");
    }
    *out_variable = variable;
    *out_name = weir_arena_strdup(arena, text);
    return WEIR_OK;
}

/* ---- the key ----------------------------------------------------------------------------------- */

static weir_status make_key(const char *path, struct weir_error *err)
{
    unsigned char key[WEIR_SECRET_KEY_BYTES];
    char text[KEY_HEX + 2];
    randombytes_buf(key, sizeof key);
    (void)sodium_bin2hex(text, sizeof text, key, sizeof key);
    text[KEY_HEX] = '\n';
    weir_status status = weir_file_write_atomic(path, text, KEY_HEX + 1, 0600, err);
    sodium_memzero(key, sizeof key);
    sodium_memzero(text, sizeof text);
    return status;
}

static weir_status read_key(const char *path, unsigned char out[WEIR_SECRET_KEY_BYTES],
                            struct weir_error *err)
{
    char text[KEY_HEX + 2];
    size_t len, n;
    WEIR_TRY(weir_file_read_into(path, text, sizeof text, &len, err));
    bool is_good = len >= KEY_HEX &&
                   sodium_hex2bin(out, WEIR_SECRET_KEY_BYTES, text, KEY_HEX, NULL, &n, NULL) == 0 &&
                   n == WEIR_SECRET_KEY_BYTES;
    sodium_memzero(text, sizeof text);
    return is_good ? WEIR_OK
                   : weir_error_set(err, WEIR_ERR_CORRUPT,
                                    "%s is no key: put back the one of a "
                                    "backup",
                                    path);
}

/* Without it the secrets that there are cannot be opened any more: a new one must not hide that. A
 * transaction that is undone leaves a key behind that nothing was sealed with, for the next one. */
static weir_status get_key(struct weir_txn *txn, const char *state_dir, bool can_make,
                           struct weir_arena *arena, unsigned char out[WEIR_SECRET_KEY_BYTES],
                           struct weir_error *err)
{
    int64_t n = 0;
    const char *path = weir_arena_printf(arena, "%s/" WEIR_SECRET_FILE, state_dir);
    if (!weir_path_exists(path)) {
        WEIR_TRY(weir_txn_query_int_of_all(txn, sql_n, WEIR_NO_BINDS, 0, &n, err));
        if (!can_make || n > 0) {
            return weir_error_set(err, WEIR_ERR_CORRUPT,
                                  "%s is missing, without which secrets cannot be opened: put back "
                                  "the one of a backup, or delete the secrets and set them anew",
                                  path);
        }
        WEIR_TRY(make_key(path, err));
    }
    return read_key(path, out, err);
}

/* ---- sealing ----------------------------------------------------------------------------------- */

static char *seal(const unsigned char *key, const char *id, const char *value, size_t len,
                  struct weir_arena *arena)
{
    unsigned long long n;
    unsigned char *bytes = weir_arena_alloc(arena, NONCE_BYTES + len + TAG_BYTES);
    randombytes_buf(bytes, NONCE_BYTES);
    (void)crypto_aead_xchacha20poly1305_ietf_encrypt(
        bytes + NONCE_BYTES, &n, (const unsigned char *)value, len, (const unsigned char *)id,
        strlen(id), NULL, bytes, key);
    size_t total = NONCE_BYTES + (size_t)n;
    return weir_base64_encode(bytes, total, weir_arena_alloc(arena, WEIR_BASE64_TEXT_BYTES(total)));
}

static weir_status open_sealed(const unsigned char *key, const char *id, const char *sealed,
                               struct weir_arena *arena, char **out, struct weir_error *err)
{
    size_t len = 0;
    unsigned long long n = 0;
    unsigned char *bytes = weir_arena_alloc(arena, SEALED_MAX);
    bool is_good = weir_base64_decode(sealed, bytes, SEALED_MAX, &len) == WEIR_OK &&
                   len >= NONCE_BYTES + TAG_BYTES;
    char *value = is_good ? weir_arena_alloc(arena, len) : NULL;
    is_good =
        is_good && crypto_aead_xchacha20poly1305_ietf_decrypt(
                       (unsigned char *)value, &n, NULL, bytes + NONCE_BYTES, len - NONCE_BYTES,
                       (const unsigned char *)id, strlen(id), bytes, key) == 0;
    if (!is_good) {
        return weir_error_set(
            err, WEIR_ERR_CORRUPT,
            "secret %s cannot be opened: it was sealed with another " WEIR_SECRET_FILE
            "; set it anew",
            id);
    }
    value[n] = '\0';
    *out = value;
    return WEIR_OK;
}

/* ---- records ----------------------------------------------------------------------------------- */

static weir_status check_new(struct weir_txn *txn, const char *project, const char *name,
                             const char *value, struct weir_error *err)
{
    int64_t n;
    if (!weir_secret_name_is_valid(name)) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "a secret's name has letters, digits and \"._-\", at most %d",
                              WEIR_SECRET_NAME_MAX);
    }
    if (value[0] == '\0' || strlen(value) > WEIR_SECRET_VALUE_MAX) {
        return weir_error_set(err, value[0] == '\0' ? WEIR_ERR_INVALID : WEIR_ERR_LIMIT,
                              "a secret's value has 1 to %zu bytes", WEIR_SECRET_VALUE_MAX);
    }
    WEIR_TRY(weir_txn_query_int(txn, sql_n_of, WEIR_BINDS(WEIR_BIND_TEXT("project", project)), 0,
                                &n, err));
    return n < WEIR_SECRETS_OF_PROJECT
               ? WEIR_OK
               : weir_error_set(err, WEIR_ERR_LIMIT, "project %s has %d secrets: delete one first",
                                project, WEIR_SECRETS_OF_PROJECT);
}

weir_status weir_secret_set(struct weir_txn *txn, const char *state_dir, const char *project,
                            const char *name, const char *value, const char *actor, int64_t now_ms,
                            struct weir_arena *arena, struct weir_secret *out,
                            struct weir_error *err)
{
    unsigned char key[WEIR_SECRET_KEY_BYTES];
    struct weir_secret old = {0};
    WEIR_TRY(check_new(txn, project, name, value, err));
    WEIR_TRY(get_key(txn, state_dir, true, arena, key, err));
    char *id = id_of(project, name, arena);
    bool is_there = weir_txn_get(txn, &weir_secret_resource, id, arena, &old, NULL) == WEIR_OK;
    struct weir_secret secret = {.id = id,
                                 .project = weir_arena_strdup(arena, project),
                                 .name = weir_arena_strdup(arena, name),
                                 .sealed = seal(key, id, value, strlen(value), arena),
                                 .created_by = weir_arena_strdup(arena, actor),
                                 .created_ms = is_there ? old.created_ms : now_ms,
                                 .updated_ms = now_ms};
    sodium_memzero(key, sizeof key);
    WEIR_TRY(weir_txn_upsert(txn, &weir_secret_resource, &secret, err));
    *out = secret;
    return WEIR_OK;
}

static weir_status not_there(const char *project, const char *name, struct weir_error *err)
{
    return weir_error_set(err, WEIR_ERR_NOT_FOUND,
                          "project %s has no secret \"%s\": `weir secret set %s --project %s`",
                          project, name, name, project);
}

static bool is_there(struct weir_txn *txn, const char *project, const char *name,
                     struct weir_arena *arena)
{
    struct weir_secret secret;
    return weir_txn_get(txn, &weir_secret_resource, id_of(project, name, arena), arena, &secret,
                        NULL) == WEIR_OK;
}

/* Does one stand the other way round? What stands where the secret's name belongs may be its value: it
 * is not repeated. */
static weir_status check_order(struct weir_txn *txn, const char *project, const char *text,
                               struct weir_arena *arena, struct weir_error *err)
{
    const char *equals = strchr(text, '=');
    char *first = weir_arena_memdup(arena, text, equals != NULL ? (size_t)(equals - text) : 0);
    return equals != NULL && is_there(txn, project, first, arena)
               ? weir_error_set(err, WEIR_ERR_INVALID,
                                "the variable comes first: write VARIABLE=%s", first)
               : WEIR_OK;
}

static weir_status check_one(struct weir_txn *txn, const char *project, const char *text,
                             struct weir_arena *arena, struct weir_error *err)
{
    const char *variable, *name;
    weir_status status = weir_secret_read(text, arena, &variable, &name, err);
    if (status == WEIR_OK && is_there(txn, project, name, arena)) {
        return WEIR_OK;
    }
    WEIR_TRY(check_order(txn, project, text, arena, err));
    return status != WEIR_OK ? status : not_there(project, name, err);
}

weir_status weir_secrets_check(struct weir_txn *txn, const char *project, const json_t *spec,
                               struct weir_arena *arena, struct weir_error *err)
{
    const json_t *names = json_object_get(spec, "secrets");
    size_t i;
    const json_t *item;
    if (json_array_size(names) > WEIR_SECRETS_OF_JOB) {
        return weir_error_set(err, WEIR_ERR_LIMIT, "$.spec.secrets: at most %d",
                              WEIR_SECRETS_OF_JOB);
    }
    json_array_foreach(names, i, item)
    {
        const char *text = json_string_value(item);
        if (check_one(txn, project, text != NULL ? text : "", arena, err) != WEIR_OK) {
            return weir_error_prefix(err, "$.spec.secrets[%zu]: ", i);
        }
    }
    return WEIR_OK;
}

weir_status weir_secrets_add(struct weir_txn *txn, const char *state_dir, const char *project,
                             const json_t *names, json_t *env, struct weir_arena *arena,
                             struct weir_error *err)
{
    unsigned char key[WEIR_SECRET_KEY_BYTES];
    size_t i;
    const json_t *item;
    if (json_array_size(names) == 0) {
        return WEIR_OK;
    }
    WEIR_TRY(get_key(txn, state_dir, false, arena, key, err));
    weir_status status = WEIR_OK;
    json_array_foreach(names, i, item)
    {
        struct weir_secret secret;
        char *value = NULL;
        const char *variable, *name, *text = json_string_value(item);
        status = weir_secret_read(text != NULL ? text : "", arena, &variable, &name, err);
        if (status == WEIR_OK &&
            weir_txn_get(txn, &weir_secret_resource, id_of(project, name, arena), arena, &secret,
                         NULL) != WEIR_OK) {
            status = not_there(project, name, err);
        }
        if (status == WEIR_OK) {
            status = open_sealed(key, secret.id, secret.sealed, arena, &value, err);
        }
        if (status != WEIR_OK) {
            break;
        }
        json_object_set_new(env, variable, json_string(value));
    }
    sodium_memzero(key, sizeof key);
    return status;
}
