/**
 * Board: where the tasks of one job leave small values for each other: under which address and port
 * rank 0 is reached, what a rank is to run. It is how ranks on different nodes find each other
 * before there is anything between them but the server.
 *
 * A value belongs to the attempt of the task that wrote it, and is seen as long as that attempt
 * lives: after a restart of the gang nobody meets an address of before. All go with the job's end.
 *
 * Bounds: BOARD_KEY_MAX_BYTES, BOARD_VALUE_MAX_BYTES, BOARD_KEYS_MAX and BOARD_MAX_BYTES of a job.
 */
#ifndef WEIR_JOB_BOARD_H
#define WEIR_JOB_BOARD_H

#include "job/attempt.h"

#define WEIR_BOARD_KEY_MAX_BYTES   128
#define WEIR_BOARD_VALUE_MAX_BYTES ((size_t)64 << 10)
#define WEIR_BOARD_KEYS_MAX        4096
#define WEIR_BOARD_MAX_BYTES       ((int64_t)8 << 20)

/** Text lies in the caller's arena. */
struct weir_board_value {
    char *key, *value;
};

/**
 * Set a value, over one that is there, or remove it.
 * @param attempt  Who writes it; its job has the board.
 * @param key      Of a-z 0-9 . _ -
 * @param value    NULL: remove it, whichever attempt has written it.
 * @return INVALID for the key; LIMIT with the bound that is exceeded.
 */
weir_status weir_board_put(struct weir_txn *txn, const struct weir_attempt *attempt,
                           const char *key, const char *value,
                           struct weir_error *err) WEIR_MUST_CHECK;

/**
 * The values of attempts that live whose key begins with `prefix`, by key.
 * @param out_n  At most WEIR_BOARD_KEYS_MAX.
 */
weir_status weir_board_list(struct weir_txn *txn, const char *job, const char *prefix,
                            struct weir_arena *arena, struct weir_board_value **out, size_t *out_n,
                            struct weir_error *err) WEIR_MUST_CHECK;

/**
 * How many those are, and when the last of them was written: a number that only grows. Cheaper than
 * the list of them.
 */
weir_status weir_board_look(struct weir_txn *txn, const char *job, const char *prefix,
                            int64_t *out_n, int64_t *out_seq,
                            struct weir_error *err) WEIR_MUST_CHECK;

/** Remove all of a job that is over. */
weir_status weir_board_clear(struct weir_txn *txn, const char *job,
                             struct weir_error *err) WEIR_MUST_CHECK;

#endif
