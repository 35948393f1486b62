/**
 * Shutdown: end an agent and every task of its folder, whatever has been killed before.
 *
 * The agent is ended by its lock (agent/lock.h), and its lock is held from then on, so that none is
 * started meanwhile. Each attempt that has not ended gets the request to stop, marked as an
 * interruption: its supervisor stops it in good order and records it as lost, because nobody wanted
 * its end; the server starts it again as a new attempt when it is back. If its supervisor was killed,
 * an attempt gets another one, which ends what is left of it. A supervisor that does not answer is
 * killed and counts as one that was. What the jobs had in /tmp and /dev/shm goes.
 */
#ifndef WEIR_AGENT_SHUTDOWN_H
#define WEIR_AGENT_SHUTDOWN_H

#include "agent/lock.h"
#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

/** Told when the number of attempts that still run has changed, the first time with all of them. */
typedef void (*weir_agent_left_fn)(void *context, size_t n_left);

struct weir_agent_shutdown {
    const char *dir;     /**< The agent's folder. */
    const char *program; /**< That supervisors are started with; NULL: this one. */
    int64_t patience_ms; /**< For all tasks together; then they are killed. */
    weir_agent_left_fn on_left;
    void *context;
};

/**
 * End them all. A folder that does not exist has nothing to end.
 * @param out_agent  How the agent ended; WAS_FREE if none ran.
 * @param out_n_tasks  How many attempts were stopped.
 * @return TIMEOUT naming an attempt that cannot be ended; DENIED if they are another user's.
 */
weir_status weir_agent_shutdown(const struct weir_agent_shutdown *config,
                                enum weir_lock_end *out_agent, size_t *out_n_tasks,
                                struct weir_error *err) WEIR_MUST_CHECK;

#endif
