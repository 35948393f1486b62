/**
 * Gang: the processes of one attempt, forked, watched, and ended together.
 *
 * Ranks are children in a process group of their own, so that Ctrl-C reaches the launcher alone; it
 * then asks them to stop. A rank that fails says why through a pipe. When one is lost, the others
 * notice by themselves; who does not end in time is killed. Asked to stop again, more than two
 * seconds later, the launcher kills them at once; sooner it is the same wish, which some (timeout
 * of coreutils, service managers) send to a process and to its group.
 *
 * In an elastic group the loss of a worker is not the attempt's end: another is started in its
 * place, as long as there is a group to join and max_restarts allows it, and while min_workers are
 * left the group goes on without.
 */
#ifndef WEIR_TRAIN_GANG_H
#define WEIR_TRAIN_GANG_H

#include "comm/comm.h"
#include "train/task.h"
#include "train/train.h"

#include <sys/types.h>

/** How an attempt ended. */
struct gang_end {
    weir_status status;       /**< Of the rank whose failure was the cause. */
    int rank;                 /**< That rank; -1 if all is well. */
    bool is_worth_restarting; /**< A rank was killed or lost: another attempt may do better. */
    bool is_stopped;          /**< SIGINT or SIGTERM came. */
    struct weir_error err;    /**< What to tell the user. */
};

/** How a rank ended that did not end well. */
struct gang_exit {
    int rank;
    const char *role;        /**< "worker", "parameter server". */
    int wait_status;         /**< waitpid's. */
    bool is_ours;            /**< The gang was being killed. */
    struct weir_error words; /**< What it said; OK: nothing. */
};

/**
 * Why the gang ended, from how all those ranks did, in the order in which they were seen to: if it
 * was asked to stop, that it stopped; else who was killed, before what a rank said of itself,
 * before what it said of others. No exits: all is well. Pure.
 */
void gang_judge(const struct gang_exit *exits, int n_exits, bool is_stopped, struct gang_end *out);

/**
 * Run all ranks of an open task to their end. They inherit it: data is read and unpacked once, also
 * for those that are started later, in a lost one's place. The caller has blocked SIGINT, SIGTERM
 * and SIGCHLD, and reads no signals itself meanwhile.
 * @return INTERNAL or IO if processes cannot be started; else OK and *out says how it went.
 */
weir_status gang_run(const struct train_task *task, const struct weir_train_hooks *hooks,
                     struct gang_end *out, struct weir_error *err) WEIR_MUST_CHECK;

#endif
