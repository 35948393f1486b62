/**
 * Sender: who stands behind a task. A task's token may at most what its role and its sender both may, now, in
 * the project of its job; only what is the job's own (its runs, its board, its replica) needs no sender.
 *
 * Who that is says control/sender.h. A sender that is disabled, deleted or out of the project may nothing.
 */
#ifndef WEIR_API_SENDER_H
#define WEIR_API_SENDER_H

#include "api/core/call.h"

struct api_sender {
    const char *name;               /**< NULL: nobody is known. */
    weir_rights rights;             /**< In the project of the job. */
    struct weir_row_scope readable; /**< Projects in which the sender may read blobs. */
};

/** DENIED unless the sender may; finds it. */
weir_status api_sender_check(struct api_call *call, enum weir_right right,
                             struct weir_error *err) WEIR_MUST_CHECK;

/** Is the task one of Weir's own programs, which do what their specification says and nothing else? */
bool api_task_is_weirs(const struct api_call *call);

#endif
