/** How an attempt ends: its output is sent, then its end is on disk. Supervisor only. */
#ifndef WEIR_AGENT_ENDING_H
#define WEIR_AGENT_ENDING_H

#include "agent/supervise/carry.h"
#include "agent/task.h"

/** Write exit.json; while the disk is full it is tried again, for a minute. Errors are logged. */
weir_status ending_write(const char *dir, const struct task_exit *record);

/**
 * The program has ended: bring its checkpoints to where they are kept (carry.h), send what it left (output.h), say in its log what became of that, and write
 * exit.json. ended.json stands for it until then: with that, ending_resume goes on.
 * @param signal_fd  Readable: this process is to end soon, and what was not sent then is given up; so it is
 *                   if the task is to stop.
 */
weir_status ending_finish(const char *dir, const json_t *document, const struct task *task,
                          struct carry *carry, struct task_exit *record, int signal_fd);

/** An earlier supervisor was killed while it did. @return NOT_FOUND if ended.json cannot be read. */
weir_status ending_resume(const char *dir, int signal_fd);

/** An earlier supervisor began the attempt in `dir` and did not live to see its end: kill what is left of it, and write that
 *  it is lost. */
weir_status ending_lost(const char *dir) WEIR_MUST_CHECK;

#endif
