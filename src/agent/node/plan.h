/**
 * What the agent does about one task attempt: a pure function of what is desired and what is seen.
 *
 * The agent calls it for every attempt it knows, whenever something may have changed, and does what
 * it says; nothing depends on what it said before.
 */
#ifndef WEIR_AGENT_PLAN_H
#define WEIR_AGENT_PLAN_H

#include <stdbool.h>

enum plan_desired {
    PLAN_DESIRED_UNKNOWN, /**< The server has not been heard in this life of the agent. */
    PLAN_DESIRED_RUN,
    PLAN_DESIRED_STOP,
    PLAN_DESIRED_ABSENT, /**< The server does not list the attempt. */
};

enum plan_report { PLAN_REPORTED_NOTHING, PLAN_REPORTED_RUNNING, PLAN_REPORTED_EXIT };

struct plan_seen {
    bool has_run, has_exit, has_stop; /**< The files of the folder. */
    bool has_save;                    /**< It was asked to save. */
    bool is_to_save;                  /**< The server wants it to be. */
    bool is_supervised;               /**< The lock is held, or a supervisor was just started. */
    /** Another attempt of the same task, or one that has a device of it, has not ended here. */
    bool is_crowded;
    bool is_log_complete;      /**< All of it was taken by the server, or never will be. */
    bool is_log_stuck;         /**< The server cannot take it now, but answers otherwise. */
    enum plan_report reported; /**< What the server has acknowledged. */
    /** The attempt is not in a desired state that was asked for after its exit was acknowledged. */
    bool is_forgotten;
};

enum plan_action {
    PLAN_SUPERVISE = 1 << 0, /**< Start a supervisor: it starts the task, or settles its end. */
    PLAN_STOP = 1 << 1,      /**< Write the stop request. */
    PLAN_REPORT_RUNNING = 1 << 2,
    PLAN_SHIP_LOG = 1 << 3,
    PLAN_REPORT_EXIT = 1 << 4,
    PLAN_REMOVE = 1 << 5, /**< Delete the folder. */
    PLAN_SAVE = 1 << 6,   /**< Write the request to save. */
};

/** Set of plan_action, to be done in the order of their values. */
unsigned agent_plan(enum plan_desired desired, const struct plan_seen *seen);

#endif
