/**
 * Passwords: hashed with Argon2id (RFC 9106) by libsodium, at its interactive cost: about 64 MiB and
 * a tenth of a second. There are two lanes, one for who is known where they call from, one for
 * strangers, so that these keep nobody else waiting. In each one password is worked on at a time, some
 * more wait, and the next is UNAVAILABLE: who floods it costs one processor and no more.
 *
 * Passwords that somebody gives are checked by api/guard.h, which bounds how often.
 */
#ifndef WEIR_STORE_PASSWORD_H
#define WEIR_STORE_PASSWORD_H

#include "base/arena.h"

enum weir_password_lane { WEIR_PASSWORD_KNOWN, WEIR_PASSWORD_UNKNOWN };

/** That wait, in the lane of the known and in that of strangers. */
#define WEIR_PASSWORDS_WAITING   3
#define WEIR_PASSWORDS_STRANGERS 1
#define WEIR_PASSWORD_MIN_BYTES  10
#define WEIR_PASSWORD_MAX_BYTES  256

/** The hash of a password, in the arena; in the lane of the known. @return INVALID if it is too short or too long;
 *  UNAVAILABLE. */
weir_status weir_password_hash(const char *password, struct weir_arena *arena, char **out,
                               struct weir_error *err) WEIR_MUST_CHECK;

/** Is it the password of this hash? Without a hash (NULL) it takes as long. @return UNAUTH if not;
 *  UNAVAILABLE. */
weir_status weir_password_check(const char *password, const char *hash,
                                enum weir_password_lane lane,
                                struct weir_error *err) WEIR_MUST_CHECK;

#endif
