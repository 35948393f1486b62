/**
 * How far long work is. On a terminal a line that the next one overwrites, five times a second; elsewhere a plain line
 * every ten seconds, so that a log of a script tells too. Nothing with -o json, and nothing of what is over at once.
 */
#ifndef WEIR_CLI_PROGRESS_H
#define WEIR_CLI_PROGRESS_H

#include "base/macros.h"
#include "cli/command.h"

/** Starts as zero. Of one thread at a time. */
struct cli_progress {
    int64_t told_ms; /**< By weir_mono_ms; 0: nothing was to tell yet. */
    bool is_open;    /**< A line stands on the terminal without an end. */
};

/** "546 of 1000 files": as often as is due. */
void cli_progress_tell(const struct cli_call *call, struct cli_progress *progress,
                       const char *format, ...) WEIR_PRINTF(3, 4);

/** Say that a file is on its way, and how large it is, if it is large enough for that to be of interest. */
void cli_progress_file(const struct cli_call *call, const char *path);

/** Take the line off the terminal: before anything else is printed. */
void cli_progress_end(struct cli_progress *progress);

#endif
