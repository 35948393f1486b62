/* Why a gang ended: by the reports and the exits of all ranks, not by which was seen first. */
#include "train/gang.h"

#include <string.h>
#include <sys/wait.h>

/* How well a rank's end explains the gang's, worst first. */
enum weight {
    WEIGHT_SILENT,      /**< No report. */
    WEIGHT_SECONDARY,   /**< A secondary failure: it lost another rank. */
    WEIGHT_OWN_FAILURE, /**< Its own failure, or that it was asked to stop. */
    WEIGHT_KILLED,      /**< By another process than the launcher, whatever the others report. */
    WEIGHT_STOPPED      /**< It stopped as the gang was asked to, with a checkpoint. */
};

/** Asked to stop while it waited for the others, it ended at once, without a report. */
static bool is_aborted(const struct gang_exit *exit)
{
    return exit->failure.status == WEIR_OK && WIFEXITED(exit->wait_status) &&
           WEXITSTATUS(exit->wait_status) == weir_status_exit(WEIR_ERR_CANCELLED);
}

static bool is_killed(const struct gang_exit *exit)
{
    return WIFSIGNALED(exit->wait_status) && !exit->is_ours;
}

static enum weight weigh(const struct gang_exit *exit, bool is_stopped)
{
    const weir_status reported = exit->failure.status;
    if (is_stopped && reported == WEIR_ERR_CANCELLED) {
        return WEIGHT_STOPPED;
    }
    if (is_killed(exit)) {
        return WEIGHT_KILLED;
    }
    if (reported == WEIR_ERR_PEER || reported == WEIR_ERR_TIMEOUT) {
        return WEIGHT_SECONDARY;
    }
    return reported != WEIR_OK || is_aborted(exit) ? WEIGHT_OWN_FAILURE : WEIGHT_SILENT;
}

static weir_status explain(const struct gang_exit *exit, struct weir_error *out)
{
    if (is_killed(exit)) {
        int number = WTERMSIG(exit->wait_status);
        return weir_error_set(out, WEIR_ERR_PEER, "%s %d was killed by signal %d (%s)", exit->role,
                              exit->rank, number, strsignal(number));
    }
    if (exit->failure.status != WEIR_OK) {
        *out = exit->failure;
        return exit->failure.status;
    }
    if (is_aborted(exit)) {
        return weir_error_set(out, WEIR_ERR_CANCELLED, "stopped before its first step");
    }
    if (WIFSIGNALED(exit->wait_status)) {
        return weir_error_set(out, WEIR_ERR_INTERNAL, "%s %d did not end in time, and was killed",
                              exit->role, exit->rank);
    }
    return weir_error_set(out, WEIR_ERR_INTERNAL, "%s %d ended with exit status %d", exit->role,
                          exit->rank, WEXITSTATUS(exit->wait_status));
}

void gang_root_cause(const struct gang_exit *exits, int n_exits, bool is_stopped,
                     struct gang_end *out)
{
    const struct gang_exit *cause = NULL;
    *out = (struct gang_end){.rank = -1, .is_stopped = is_stopped};
    for (int i = 0; i < n_exits; i++) {
        if (cause == NULL || weigh(&exits[i], is_stopped) > weigh(cause, is_stopped)) {
            cause = &exits[i];
        }
        out->is_worth_restarting |= is_killed(&exits[i]);
    }
    if (cause != NULL) {
        out->rank = cause->rank;
        out->status = explain(cause, &out->err);
        out->is_worth_restarting |= out->status == WEIR_ERR_PEER || out->status == WEIR_ERR_TIMEOUT;
    }
}
