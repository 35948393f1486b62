/** What flags change of a queue: for weir queue, and for weir what-if, which only asks. */
#ifndef WEIR_CLI_QUEUE_CHANGE_H
#define WEIR_CLI_QUEUE_CHANGE_H

#include "cli/command.h"

/** Values of flags; NULL: not given. */
struct queue_change {
    const char *project, *parent, *guarantee, *limit, *weight, *times, *priority, *min_run,
        *idle_after, *clusters, *overflow_after;
};

/** Put into `queue` what the flags say; what is there besides stays. @return INVALID, naming the flag. */
weir_status queue_change_apply(struct cli_call *call, const struct queue_change *change,
                               json_t *queue, struct weir_error *err) WEIR_MUST_CHECK;

/** What PUT takes of a queue as GET shows it, without members that say nothing. A new reference. */
json_t *queue_change_kept(const json_t *shown);

#endif
