#include "agent/node/plan.h"

/* It has not ended: is a supervisor needed, or a stop request? */
static unsigned plan_alive(enum plan_desired desired, const struct plan_seen *seen)
{
    unsigned actions = 0;
    bool is_unwanted = desired == PLAN_DESIRED_STOP || desired == PLAN_DESIRED_ABSENT;
    if (is_unwanted && !seen->has_stop) {
        actions |= PLAN_STOP;
    }
    if (desired == PLAN_DESIRED_RUN && seen->is_to_save && seen->has_run && !seen->has_save) {
        actions |= PLAN_SAVE;
    }
    if (seen->is_supervised) {
        return actions;
    }
    /* Begun but unattended: its end must be settled whatever is desired. Not begun: only when it is
     * desired and the attempt before it is over, or to put down that it never ran. */
    if (seen->has_run || is_unwanted || (desired == PLAN_DESIRED_RUN && !seen->is_crowded)) {
        actions |= PLAN_SUPERVISE;
    }
    return actions;
}

unsigned agent_plan(enum plan_desired desired, const struct plan_seen *seen)
{
    unsigned actions = 0;
    if (!seen->has_exit) {
        actions |= plan_alive(desired, seen);
        if (seen->has_run || seen->is_supervised) { /* before it runs its supervisor writes there */
            actions |= PLAN_SHIP_LOG;
        }
        if (seen->has_run) {
            actions |= seen->reported < PLAN_REPORTED_RUNNING ? PLAN_REPORT_RUNNING : 0;
        }
        return actions;
    }
    if (!seen->is_log_complete) {
        actions |= PLAN_SHIP_LOG;
    }
    /* The end of the log comes before the exit, so that it is there for everybody who waits for the exit. */
    if (seen->reported < PLAN_REPORTED_EXIT) {
        actions |= seen->is_log_complete || seen->is_log_stuck ? PLAN_REPORT_EXIT : 0;
    } else if (seen->is_log_complete && seen->is_forgotten) {
        actions |= PLAN_REMOVE;
    }
    return actions;
}
