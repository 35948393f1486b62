/**
 * The agent of this machine: a detached process, which outlives whoever starts it: `PROGRAM agent --dir=DIR
 * --server=URL --node=NAME --cpu-slots=N [--ca-file=FILE] [--task-users=N] [--onnxruntime=PATH] [--share=DIR …]`,
 * where PROGRAM is the one that runs now. It holds the lock of its folder while it runs, its log is DIR/agent.log, its
 * options are noted in DIR/options, the server's address in DIR/server.url. Any thread.
 */
#ifndef WEIR_CLUSTER_LOCAL_AGENT_H
#define WEIR_CLUSTER_LOCAL_AGENT_H

#include "base/arena.h"
#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

struct weir_local_agent {
    const char *dir;     /**< The agent's folder; its token is to be in DIR/token. */
    const char *server;  /**< URL the agent calls. */
    const char *ca_file; /**< Authorities to trust for https; NULL: the system's. */
    const char *node;    /**< NULL: weir_cluster_node_name. */
    int64_t cpu_slots;
    const char *shares;      /**< Folders for tasks, in lines; NULL: none. */
    const char *onnxruntime; /**< Library or its folder, for tasks; NULL: the system's. */
    int64_t task_users;      /**< First of the users of jobs; 0: the agent's default. */
};

/**
 * Make sure that an agent with this folder runs. One that runs learns a new server address; its other options stay.
 * @return The error of the folder or of starting it.
 */
weir_status weir_local_agent_start(const struct weir_local_agent *agent,
                                   struct weir_error *err) WEIR_MUST_CHECK;

/** Does an agent with this folder run? If none does, the lock is taken and freed for a moment. */
bool weir_local_agent_is_running(const char *dir);

/** End the agent of this folder and its tasks, as `weir agent stop` does, which it runs and waits for.
 *  @return UNAVAILABLE: it says on standard error what it could not end. */
weir_status weir_local_agent_end(const char *dir, struct weir_error *err) WEIR_MUST_CHECK;

/** Was the agent of this folder, the last that was started so, given other options than these (the server's address
 *  aside)? */
bool weir_local_agent_differs(const struct weir_local_agent *agent);

#endif
