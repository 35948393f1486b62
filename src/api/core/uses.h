/**
 * Uses: what tasks use of their machines, as their agents said it last. In memory, by node; a server that has just
 * started knows nothing until the agents speak, which they do as soon as they have reached it. Any thread. Cost: a hundred bytes for each
 * task that runs.
 */
#ifndef WEIR_API_USES_H
#define WEIR_API_USES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** What was not said again for so long is forgotten: agents speak of each task every minute at least. */
#define USES_KEPT_MS 150000

struct uses;

struct use_of_task {
    double cpu_cores; /**< Busy processors: 1.5 is one and a half. */
    int64_t memory_bytes;
};

struct uses *uses_create(void);
void uses_destroy(struct uses *uses);

/** A node's agent said this of a task. Of more than 131072 tasks at once the rest is not kept. */
void uses_put(struct uses *uses, const char *node, const char *task, struct use_of_task use,
              int64_t mono_ms);

/** What a task on this node uses. @return False: nobody knows. */
bool uses_get(struct uses *uses, const char *node, const char *task, int64_t mono_ms,
              struct use_of_task *out);

#endif
