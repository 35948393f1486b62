/**
 * Former token: the one that all tasks of a cluster shared, until migration 9.
 *
 * A replica that was begun with it, and runs on over an upgrade, knows no other until its agent begins it again. So
 * that what it decides meanwhile arrives, the token stays good for that alone: decisions of such attempts, each for
 * its own replica, and their pictures. It ends with the last of them; no later attempt has it.
 */
#ifndef WEIR_JOB_FORMER_H
#define WEIR_JOB_FORMER_H

#include "job/attempt.h"

/** Remember the token by the SHA-256 of its secret, if there are attempts that were begun with it. */
weir_status weir_former_keep(struct weir_txn *txn, const char *secret_hash, int64_t now_ms,
                             struct weir_error *err) WEIR_MUST_CHECK;

/**
 * An attempt that was begun with the token of this hash and is not over.
 *
 * @param replica  "JOB-RANK"; NULL: any.
 * @return NOT_FOUND: there is none, or this is not the token.
 */
weir_status weir_former_attempt(struct weir_txn *txn, const char *secret_hash, const char *replica,
                                struct weir_arena *arena, struct weir_attempt *out,
                                struct weir_error *err) WEIR_MUST_CHECK;

/** The projects of all such attempts. */
weir_status weir_former_projects(struct weir_txn *txn, struct weir_arena *arena, char ***out,
                                 size_t *out_n, struct weir_error *err) WEIR_MUST_CHECK;

#endif
