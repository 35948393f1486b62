/**
 * Secrets: values of a project that its jobs are given and nobody is shown: a password, a token.
 *
 * A value lies in the database sealed (XChaCha20-Poly1305) by a key that does not: 32 bytes in the file
 * secrets.key of the state folder, which backups copy. It is sealed together with its project and name, so
 * that a row that somebody puts elsewhere in the database does not open. A job names secrets, its
 * definition holds the names, and the value is opened only when a node is told what to start.
 *
 * In a specification "secrets" is a list of "NAME" or "VARIABLE=NAME". Without a variable it is the name in
 * capitals, "-" and "." being "_": "hf-token" is HF_TOKEN.
 */
#ifndef WEIR_JOB_SECRET_H
#define WEIR_JOB_SECRET_H

#include "base/arena.h"
#include "base/json.h"
#include "base/record.h"
#include "store/store.h"

#define WEIR_SECRET_FILE        "secrets.key"
#define WEIR_SECRET_NAME_MAX    64
#define WEIR_SECRET_VALUE_MAX   ((size_t)64 << 10)
#define WEIR_SECRETS_OF_PROJECT 256
#define WEIR_SECRETS_OF_JOB     64
#define WEIR_SECRET_KEY_BYTES   32

struct weir_secret {
    char *id; /**< PROJECT/NAME */
    char *project, *name;
    char *sealed; /**< Base64 of nonce and ciphertext; never leaves the server. */
    char *created_by;
    int64_t created_ms, updated_ms;
};

extern const struct weir_resource weir_secret_resource;

/** Letters, digits, ".", "_", "-", the first a letter or digit; at most WEIR_SECRET_NAME_MAX bytes. */
bool weir_secret_name_is_valid(const char *name);

/**
 * Read one of a specification's "secrets".
 * @param out_variable, out_name  In the arena.
 * @return INVALID with what would be right, which does not repeat what was given: it may be a value.
 */
weir_status weir_secret_read(const char *text, struct weir_arena *arena, const char **out_variable,
                             const char **out_name, struct weir_error *err) WEIR_MUST_CHECK;

/**
 * Set a secret. The key is made with the first one.
 * @return INVALID for a bad name, an empty value or one with NUL; LIMIT; CORRUPT if the key is missing
 *         though there are secrets.
 */
weir_status weir_secret_set(struct weir_txn *txn, const char *state_dir, const char *project,
                            const char *name, const char *value, const char *actor, int64_t now_ms,
                            struct weir_arena *arena, struct weir_secret *out,
                            struct weir_error *err) WEIR_MUST_CHECK;

/** Are the secrets that a specification names there? @return INVALID or NOT_FOUND with the place. */
weir_status weir_secrets_check(struct weir_txn *txn, const char *project, const json_t *spec,
                               struct weir_arena *arena, struct weir_error *err) WEIR_MUST_CHECK;

/**
 * Put the values of `names` (as in a specification) into an environment.
 * @return NOT_FOUND for one that was deleted, CORRUPT for one that does not open: `env` has those before it.
 */
weir_status weir_secrets_add(struct weir_txn *txn, const char *state_dir, const char *project,
                             const json_t *names, json_t *env, struct weir_arena *arena,
                             struct weir_error *err) WEIR_MUST_CHECK;

#endif
