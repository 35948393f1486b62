/**
 * Tokens of task attempts: "weir_task.TASK.ATTEMPT.MAC", where MAC is computed with a key that only
 * the server has. None is stored: whether the attempt still lives is looked up with every call
 * (job/attempt.h), so a token dies with its attempt. It may do what its job may, and nothing for
 * another (scope.h).
 */
#ifndef WEIR_API_ATTEMPT_TOKEN_H
#define WEIR_API_ATTEMPT_TOKEN_H

#include "base/arena.h"
#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

#define ATTEMPT_TOKEN_KEY_BYTES 32

/** In the arena. `key` has ATTEMPT_TOKEN_KEY_BYTES. */
char *attempt_token_make(const unsigned char *key, const char *task, int64_t attempt,
                         struct weir_arena *arena);

/** Does the text have the form of such a token, right or wrong? */
bool attempt_token_is(const char *token);

/** @return UNAUTH unless this server's key made it. *out_task lies in the arena. */
weir_status attempt_token_open(const unsigned char *key, const char *token,
                               struct weir_arena *arena, char **out_task, int64_t *out_attempt,
                               struct weir_error *err) WEIR_MUST_CHECK;

#endif
