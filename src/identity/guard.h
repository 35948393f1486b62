/**
 * Guard: the only way to a password. Whoever guesses is made to wait (store/guesses.h), wrong passwords
 * are in the audit under the account that they were for, and an account that is guessed at raises the
 * alert "password_guessing", which ends when it was left alone for an hour. Who logged in from an address
 * before does not wait for strangers' passwords to be looked at (store/password.h).
 *
 * Threads: all functions may run on many at once, outside of transactions.
 */
#ifndef WEIR_IDENTITY_GUARD_H
#define WEIR_IDENTITY_GUARD_H

#include "base/arena.h"
#include "base/status.h"
#include "store/store.h"

#include <stdint.h>

/** Wrong passwords for one account within an hour, from wherever, at which people are told. */
#define WEIR_GUARD_TELLS_AT 20

struct weir_guard;

/** `store` is borrowed. */
struct weir_guard *weir_guard_create(struct weir_store *store);
void weir_guard_destroy(struct weir_guard *guard); /**< NULL is accepted. */

/** A password that was given. */
struct weir_guard_try {
    const char *user, *password;
    const char *hash;    /**< Of the user that is there; NULL: nobody, or without one. */
    const char *address; /**< From where it came. */
    int64_t now_ms;
    struct weir_arena *arena;
};

/** What is to be told of a try, whatever its end. */
struct weir_guard_note {
    /** Whose wrong password was given, of users that are there; NULL: nobody's. */
    const char *claimed;
    int64_t retry_after_s; /**< Who gave it is to wait; 0: no. */
};

/**
 * Is it the password of the user?
 * @return UNAUTH if not; UNAVAILABLE, with the time in the sentence and in note->retry_after_s, for who
 *         has to wait, and if too many passwords are being looked at.
 */
weir_status weir_guard_check(struct weir_guard *guard, const struct weir_guard_try *given,
                             struct weir_guard_note *note, struct weir_error *err) WEIR_MUST_CHECK;

/** Time has passed: end alerts of accounts that are left alone. Cheap if there are none. */
void weir_guard_tick(struct weir_guard *guard, int64_t now_ms);

#endif
