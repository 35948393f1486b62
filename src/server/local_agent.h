/**
 * The agent of the server's own machine, kept alive: one that has died is started again, at once,
 * but not within 1 s of its own start. That time does not grow when it dies again and again: doors
 * wait for it.
 *
 * What is looked at is the agent's lock: an agent that outlived an earlier server is this one's
 * too. A stopped agent (SIGSTOP) holds its lock and is left alone.
 */
#ifndef WEIR_SERVER_LOCAL_AGENT_H
#define WEIR_SERVER_LOCAL_AGENT_H

#include "base/status.h"
#include "cluster/local_agent.h"

#include <stdbool.h>
#include <stdint.h>

struct local_agent;

/** When an agent was last started, and how often of late. Times are monotonic. */
struct local_agent_pace {
    int64_t started_ms; /**< Of the last start. */
    int n_starts;       /**< Since one was last stable. */
};

/** One was started now. */
void local_agent_pace_begin(struct local_agent_pace *pace, int64_t now_ms);

/** Pure: is one to be started now? If so it counts as started. */
bool local_agent_is_due(struct local_agent_pace *pace, bool is_running, int64_t now_ms);

/** Pure: in how many ms to look again whether it runs. */
int64_t local_agent_look_ms(const struct local_agent_pace *pace, int64_t now_ms);

/** Pure: is the last start worth a line of the log? Of a crash loop one a minute is. */
bool local_agent_is_told(const struct local_agent_pace *pace);

/** Start the agent, and the thread that watches it. Text is copied. */
weir_status local_agent_start(const struct weir_local_agent *agent, struct local_agent **out,
                              struct weir_error *err) WEIR_MUST_CHECK;

/** End the watching; the agent goes on. NULL is accepted. */
void local_agent_stop(struct local_agent *agent);

#endif
