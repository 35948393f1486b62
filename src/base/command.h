/**
 * Command: run a program to its end, and have what it prints: without a shell, for a bounded time and output.
 *
 *     const struct weir_command command = {.words = words, .env = env, .timeout_ms = 20000};
 *     WEIR_TRY(weir_command_run(&command, arena, &answer, err));
 *     if (answer.exit_status != 0) … answer.said …
 *
 * What a child of its own leaves open is not waited for.
 */
#ifndef WEIR_BASE_COMMAND_H
#define WEIR_BASE_COMMAND_H

#include "base/arena.h"
#include "base/status.h"

#include <stdint.h>

struct weir_command {
    const char *const *words; /**< Its name and its arguments; NULL at the end. */
    const char *program;      /**< NULL: words[0]. A name without "/" is looked for in PATH. */
    const char *input;        /**< Its standard input, less than 60 KiB; NULL: none. */
    const char *const *env;   /**< NAME=VALUE; NULL at the end; NULL: ours. */
    int64_t timeout_ms;
    size_t out_max_bytes;  /**< 0: 1 MiB. */
    size_t said_max_bytes; /**< Standard error is cut there; 0: 16 KiB. */
};

struct weir_command_answer {
    int exit_status;        /**< As shells have it. */
    const char *out, *said; /**< Standard output; standard error, cut. In the arena. */
};

/**
 * Run one, in a session of its own, and wait for its end. Any thread. One that is late or prints too much is killed.
 * @return NOT_FOUND: it is not there; TIMEOUT; LIMIT: it prints too much; IO. The answer is set with TIMEOUT and LIMIT, too.
 */
weir_status weir_command_run(const struct weir_command *command, struct weir_arena *arena,
                             struct weir_command_answer *out,
                             struct weir_error *err) WEIR_MUST_CHECK;

#endif
