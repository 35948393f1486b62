/**
 * Processes by identity. A pid alone means nothing: it may have been given to another process
 * since. Here a process is (pid, start time, boot), and signals go through a pidfd that was opened
 * before the identity was checked.
 */
#ifndef WEIR_AGENT_PROCESS_H
#define WEIR_AGENT_PROCESS_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define PROCESS_BOOT_ID_BYTES 40

struct process_id {
    pid_t pid;
    uint64_t start_time; /**< Field 22 of /proc/PID/stat: clock ticks since boot. */
};

/** False if there is no such process. */
bool process_identify(pid_t pid, struct process_id *out);

/** Does this very process exist (a zombie counts as gone)? */
bool process_is_alive(const struct process_id *id);

#define PROCESS_TEXT_BYTES 96

/** "process 12 (sleep), state S, begun 34 s ago", the state as in proc(5). False if it is gone. */
bool process_describe(const struct process_id *id, char out[PROCESS_TEXT_BYTES]);

/** Signal this very process; false if it is gone. */
bool process_signal(const struct process_id *id, int signal_number);

/**
 * Wait until this very process has ended, at most timeout_ms. Returns whether it has; a process
 * that is not this user's or not there is waited for in short steps.
 */
bool process_wait(const struct process_id *id, int64_t timeout_ms);

/** Identifier of this boot of the kernel ("" if unknown). */
void process_boot_id(char out[PROCESS_BOOT_ID_BYTES]);

/** Children, children's children … of `root` (without it); returns how many went to `out`. */
size_t process_descendants(pid_t root, struct process_id *out, size_t max);

/** Processes of this user whose initial environment holds the line `entry` ("A=b"). */
size_t process_with_environment(const char *entry, struct process_id *out, size_t max);

#endif
