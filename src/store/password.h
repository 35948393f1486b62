/**
 * Passwords: hashed with Argon2id (RFC 9106) by libsodium, at its interactive cost: about 64 MiB and
 * a tenth of a second. One is worked on at a time, WEIR_PASSWORDS_WAITING_MAX more wait, and the next
 * is UNAVAILABLE: who floods it costs one processor and no more.
 */
#ifndef WEIR_STORE_PASSWORD_H
#define WEIR_STORE_PASSWORD_H

#include "base/arena.h"

#define WEIR_PASSWORDS_WAITING_MAX 3
#define WEIR_PASSWORD_MIN_BYTES    10
#define WEIR_PASSWORD_MAX_BYTES    256

/** The hash of a password, in the arena. @return INVALID if it is too short or too long;
 *  UNAVAILABLE. */
weir_status weir_password_hash(const char *password, struct weir_arena *arena, char **out,
                               struct weir_error *err) WEIR_MUST_CHECK;

/** Is it the password of this hash? Without a hash (NULL) it takes as long. @return UNAUTH if not;
 *  UNAVAILABLE. */
weir_status weir_password_check(const char *password, const char *hash,
                                struct weir_error *err) WEIR_MUST_CHECK;

#endif
