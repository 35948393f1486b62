/** The job's board, as a task of the job uses it (job/board.h says what it is). */
#ifndef WEIR_GANG_WIRE_H
#define WEIR_GANG_WIRE_H

#include "client/client.h"

/** Where the board is; text is borrowed. */
struct wire_place {
    const char *server, *ca_file, *job, *token_file;
};

/** From the task's environment. @return INVALID if it is no task's. */
weir_status wire_find(const char *token_file, struct wire_place *out,
                      struct weir_error *err) WEIR_MUST_CHECK;

weir_status wire_open(const struct wire_place *place, struct weir_client **out,
                      struct weir_error *err) WEIR_MUST_CHECK;

/** Set a value, or with NULL remove it; tried for a minute while the server is away. */
weir_status wire_put(struct weir_client *client, const struct wire_place *place, const char *key,
                     const char *value, struct weir_error *err) WEIR_MUST_CHECK;

/**
 * The values whose key begins with `prefix`, once one is newer than *revision, or after some
 * seconds; *revision becomes that of the newest.
 * @param out  An object of texts; a new reference.
 */
weir_status wire_wait(struct weir_client *client, const struct wire_place *place,
                      const char *prefix, int64_t *revision, json_t **out,
                      struct weir_error *err) WEIR_MUST_CHECK;

/** Most bytes of a command: a value of the board has 64 KiB. */
#define WIRE_COMMAND_MAX_BYTES ((size_t)60 << 10)

/** Have the job's task `rank`, which serves (gang/mpi.h), run a command of a shell; wait for its exit status. */
weir_status wire_run(const struct wire_place *place, int rank, const char *command,
                     struct weir_arena *arena, int *out_status,
                     struct weir_error *err) WEIR_MUST_CHECK;

#endif
