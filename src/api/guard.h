/**
 * Guard: the only way to a password. Whoever guesses is made to wait (store/guesses.h), wrong passwords
 * are in the audit under the account that they were for, and an account that is guessed at raises the
 * alert "password_guessing", which ends when it was left alone for an hour. Who logged in from an address
 * before does not wait for strangers' passwords to be looked at (store/password.h).
 *
 * Threads: all functions may run on many at once, outside of transactions.
 */
#ifndef WEIR_API_GUARD_H
#define WEIR_API_GUARD_H

#include "base/status.h"
#include "store/store.h"

#include <stdint.h>

/** Wrong passwords for one account within an hour, from wherever, at which people are told. */
#define GUARD_TELLS_AT 20

struct api_call;
struct guard;

/** `store` is borrowed. */
struct guard *guard_create(struct weir_store *store);
void guard_destroy(struct guard *guard);

/**
 * Is it the password of the user? `hash` is of the user that is there; NULL: nobody, or without one.
 * @return UNAUTH if not; UNAVAILABLE, with the time in the sentence and in call->retry_after_s, for who
 *         has to wait, and if too many passwords are being looked at.
 */
weir_status guard_check(struct api_call *call, const char *user, const char *password,
                        const char *hash, struct weir_error *err) WEIR_MUST_CHECK;

/** Time has passed: end alerts of accounts that are left alone. Cheap if there are none. */
void guard_tick(struct guard *guard, int64_t now_ms);

#endif
