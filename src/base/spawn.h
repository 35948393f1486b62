/**
 * Spawn: start a program as a process of its own, with no more of this process than is said.
 *
 * What the program gets: its standard streams as given; no other descriptor; no blocked signal; SIGPIPE as usual. One
 * that stands apart (its own session) has every signal as usual, one that stays with us ignores what we ignore, as
 * nohup wants it. A program that cannot be executed is an error of the call, not an exit status.
 *
 *     const struct weir_spawn spawn = {.argv = argv, .out = pipe[1], .place = WEIR_SPAWN_SESSION};
 *     WEIR_TRY(weir_spawn_start(&spawn, &pid, err));
 *     … int status = weir_spawn_wait(pid);
 *
 * Programs that need more between fork and exec (a sandbox, limits) do that by themselves: agent/supervise/launch.h,
 * control/inspect_child.h.
 */
#ifndef WEIR_BASE_SPAWN_H
#define WEIR_BASE_SPAWN_H

#include "base/status.h"

#include <sys/types.h>

enum weir_spawn_place {
    WEIR_SPAWN_HERE,    /**< In our process group and session. */
    WEIR_SPAWN_GROUP,   /**< In a process group of its own. */
    WEIR_SPAWN_SESSION, /**< In a session of its own: no terminal's signal reaches it. */
    WEIR_SPAWN_DETACHED, /**< In a session without a leader, and nobody's child: nobody has to wait for it. */
};

/** In place of a descriptor. */
enum { WEIR_SPAWN_NULL = 0, WEIR_SPAWN_OWN = -1 };

struct weir_spawn {
    const char *program; /**< NULL: argv[0]. A name without "/" is looked for in PATH. */
    char *const *argv;   /**< NULL at the end. */
    char *const *env;    /**< NULL at the end; NULL: ours. */
    int in, out, said;   /**< Streams 0, 1, 2; WEIR_SPAWN_NULL: /dev/null; WEIR_SPAWN_OWN: ours. */
    /** File that 1 and 2 are appended to (mode 0600), in place of out and said; or NULL. */
    const char *log;
    enum weir_spawn_place place;
};

/**
 * Start it. Any thread. Cost: about 1 ms, whatever the size of this process.
 * @param out_pid  Its process, to be waited for; 0 if detached.
 * @return The error of opening the log or of executing the program (NOT_FOUND: there is none); nothing runs then.
 */
weir_status weir_spawn_start(const struct weir_spawn *spawn, pid_t *out_pid,
                             struct weir_error *err) WEIR_MUST_CHECK;

/** Wait for the end of a child, also where signals come. @return Its exit status, as shells have it: 128 + the signal
 *  that ended it; -1 if it is no child of ours. */
int weir_spawn_wait(pid_t pid);

#endif
