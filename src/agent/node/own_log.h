/** The agent's own log, where its standard error is DIR/agent.log: within a bound. */
#ifndef WEIR_AGENT_OWN_LOG_H
#define WEIR_AGENT_OWN_LOG_H

#include <stdint.h>

#define OWN_LOG_MAX_BYTES ((int64_t)16 << 20)
#define OWN_LOG_KEPT      3

/**
 * If standard error is `path`, and it holds max_bytes or more: it becomes path.1 (what was that
 * path.2, and so on up to OWN_LOG_KEPT), and standard error is a new file of that name. Anything
 * else (a journal, a terminal, a file of another name) is left alone. On failure the old file goes
 * on. Cost: two calls of stat. Not while other threads fork.
 */
void own_log_bound(const char *path, int64_t max_bytes);

#endif
