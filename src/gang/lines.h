/**
 * Lines: what several programs print at once goes on in whole lines, each program's in its order, as srun has it.
 *
 * Each program has pipes of its own; one thread reads them. A line goes on when it ends (by a line feed, or the carriage
 * return of a progress bar). One that does not end goes on as it is when LINES_MAX_BYTES are there, when its program
 * says nothing for LINES_QUIET_MS, or when the pipe ends. Once nobody reads the
 * lines any more, the program finds its pipe closed, as if it had the stream itself.
 */
#ifndef WEIR_GANG_LINES_H
#define WEIR_GANG_LINES_H

#include "base/status.h"

#include <stddef.h>

#define LINES_MAX_BYTES ((size_t)16 << 10)
#define LINES_QUIET_MS  1000

struct gang_lines;

/**
 * @param out, said  Where the programs' streams 1 and 2 go; the caller's. Where both are the same file, a program's two
 *                   streams share a pipe, and stay in their order.
 * @param n  Programs; two descriptors for each of their pipes.
 * @return As pipe2, with a cure; nothing is left then.
 */
weir_status gang_lines_open(int out, int said, size_t n, struct gang_lines **out_lines,
                            struct weir_error *err) WEIR_MUST_CHECK;

/** Program i's streams 1 and 2: to be given to it before gang_lines_start, which closes them here. */
void gang_lines_streams(const struct gang_lines *lines, size_t i, int *out, int *said);

/** Begin to read: all programs have their streams. @return As pthread_create; gang_lines_close is still due. */
weir_status gang_lines_start(struct gang_lines *lines, struct weir_error *err) WEIR_MUST_CHECK;

/**
 * What the programs have printed until now goes on, and the pipes end. It waits for the reader of `out` and `said`, not
 * for a process that still holds a pipe. NULL does nothing.
 */
void gang_lines_close(struct gang_lines *lines);

#endif
