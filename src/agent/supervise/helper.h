/** Helper: a child of the supervisor that works on files which a task left, hostile ones, and says at its end what came
 *  of it. */
#ifndef WEIR_AGENT_HELPER_H
#define WEIR_AGENT_HELPER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/** Open `name` to read, below `dir_fd`, through no link and on the same file system. -1: errno. */
int helper_open_beneath(int dir_fd, const char *name, uint64_t flags);

/**
 * Wait until the child writes what it has to say, then for its end. `must_end` is asked five times a second; if it says
 * true, the child is killed.
 * @return has it said all of it?
 */
bool helper_wait(pid_t child, int said_fd, bool (*must_end)(void *context), void *context,
                 void *out_said, size_t size);

#endif
