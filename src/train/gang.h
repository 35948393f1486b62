/**
 * Gang: the processes of one attempt, forked, watched, and ended together.
 *
 * Ranks are child processes in a process group of their own, so that Ctrl-C reaches the launcher
 * only, which then asks them to stop. A rank that fails sends a failure report through a pipe. When
 * a rank is lost the others notice by themselves; ranks that do not end in time are killed. A
 * second request to stop, more than two seconds later, kills all at once; an earlier one counts as
 * the same request, which some programs (coreutils' timeout, service managers) send to a process
 * and to its group.
 *
 * In an elastic group the loss of a worker does not end the attempt. Another is started in its
 * place, as long as there is a group to join and max_restarts allows it; the group goes on without
 * it while min_workers are left.
 */
#ifndef WEIR_TRAIN_GANG_H
#define WEIR_TRAIN_GANG_H

#include "comm/comm.h"
#include "train/task.h"
#include "train/train.h"

#include <sys/types.h>

/** How an attempt ended. */
struct gang_end {
    weir_status status;       /**< Of the root cause. */
    int rank;                 /**< The rank that is the root cause; -1 if all ended well. */
    bool is_worth_restarting; /**< A rank was killed or lost: another attempt may do better. */
    bool is_stopped;          /**< SIGINT or SIGTERM came. */
    struct weir_error err;    /**< For the user. */
};

/** The exit of a rank that failed. */
struct gang_exit {
    int rank;
    const char *role;          /**< "worker", "parameter server". */
    int wait_status;           /**< waitpid's. */
    bool is_ours;              /**< The gang was being killed. */
    struct weir_error failure; /**< Its failure report; OK: none. */
};

/**
 * Why the gang ended, from the exits of all ranks that failed, in the order in which they were
 * seen. If the gang was asked to stop: that it stopped. Otherwise a rank that was killed, before a
 * rank's own failure, before a secondary failure (the report that another rank was lost). No exits:
 * all ended well. Pure.
 */
void gang_root_cause(const struct gang_exit *exits, int n_exits, bool is_stopped,
                     struct gang_end *out);

/**
 * Run all ranks of an open task to their end. They inherit it: data is read and unpacked once, also
 * for ranks that are started later in place of lost ones. The caller has blocked SIGINT, SIGTERM
 * and SIGCHLD, and reads no signals itself meanwhile.
 *
 * @return INTERNAL or IO if processes cannot be started; else OK, and *out is how it ended.
 */
weir_status gang_run(const struct train_task *task, const struct weir_train_hooks *hooks,
                     struct gang_end *out, struct weir_error *err) WEIR_MUST_CHECK;

#endif
