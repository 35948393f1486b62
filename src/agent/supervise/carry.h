/**
 * Carry: a job's folder of checkpoints, between the server and a node that does not see the server's
 * (agent/code/places.h).
 *
 * Before a task starts, the folder on its node becomes what the server has (carry_fetch), unless it is that already,
 * with or without what could not be brought back the last time. While the task runs, a child of its supervisor looks
 * at the folder twice a second and brings what is new to the server, with low priority; when the program has ended
 * it brings the rest, before exit.json is written. Then the folder goes, if all of it was brought.
 *
 * What is brought is the folder as it was at one moment, in which nothing in it had changed for CARRY_QUIET_MS: no
 * file that is being written, no files of two moments. A folder that has no such moment for
 * CARRY_PATIENCE_MS gives the files that are quiet by themselves. A training of Weir's writes each file beside its
 * name, needs no two of one moment, and is not waited for. The server changes its folder when it has all
 * of that (blob/kept_folder.h). Files that other nodes brought stay there: each node brings those that were
 * written on it. A server that is away, or has no room, is tried again, and nothing that computes waits for it; after the
 * program's end it is waited for CARRY_END_MS.
 *
 * Where several tasks of the job are on the node, the last that ends brings the rest.
 *
 * What lies in the folder may be hostile: no link in it is followed, and no other file system entered.
 * Beside it lie FOLDER.json, what of it the server has, and two locks: FOLDER.lock while something is fetched or brought, and
 * FOLDER.used, shared by the supervisors of the tasks that use it.
 */
#ifndef WEIR_AGENT_CARRY_H
#define WEIR_AGENT_CARRY_H

#include "agent/task.h"
#include "client/client.h"

#define CARRY_TICK_MS     500
#define CARRY_QUIET_MS    2000
#define CARRY_PATIENCE_MS 60000
#define CARRY_END_MS      ((int64_t)10 * 60 * 1000)
#define CARRY_LINE_BYTES  1024

/** Text is borrowed from the definition and the arena. */
struct carry {
    const char *folder; /**< NULL: there is nothing to carry. */
    bool is_atomic;     /**< A training of Weir's: a file that has its name is whole. */
    int64_t tick_ms, quiet_ms;
    const char *job;
    const char *server, *token, *ca_file; /**< NULL: as weir_client_open. */
    int used_fd;                          /**< The lock FOLDER.used; -1: not taken. */
    pid_t pid;                            /**< The child; 0: none. */
    int finish_fd, said_fd;               /**< To it and from it. */
};

/** What a task's definition says. Nothing is held yet. */
void carry_read(const char *dir, const json_t *document, const struct task *task,
                struct weir_arena *arena, struct carry *out);

/**
 * Make the folder what the server has, and hold it as used until this process ends.
 * @param is_stopped  Asked now and then; if it says true, CANCELLED is returned.
 * @param deadline_ms By weir_mono_ms.
 */
weir_status carry_fetch(struct carry *carry, struct weir_client *client, int64_t deadline_ms,
                        bool (*is_stopped)(void *context), void *context, struct weir_arena *arena,
                        struct weir_error *err) WEIR_MUST_CHECK;

/** Start the child. Without one (no memory, no folder) all is brought at the end. */
void carry_start(struct carry *carry);

/** This process has collected a child: if it is the one, there is none any more. */
void carry_note_end(struct carry *carry, pid_t pid);

/**
 * The program has ended: bring the rest, unless another task of the job uses the folder yet. A child is started if none is there. `must_end` as of helper.h.
 * @param out_line  What became of it, a line for the task's log; "": nothing to say.
 */
void carry_finish(struct carry *carry, bool (*must_end)(void *context), void *context,
                  char out_line[CARRY_LINE_BYTES]);

#endif
