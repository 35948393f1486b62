/**
 * Endpoints: what joins an ION's prediction pipelines to the outside: the source of each, its sinks and doors, and the server, as its replicas
 * reported last (ion/replica.h): is it connected, since when, and the last error.
 */
#ifndef WEIR_ION_SOURCE_H
#define WEIR_ION_SOURCE_H

#include "base/arena.h"
#include "base/record.h"
#include "ion/ion_step.h"

#include <stdint.h>

struct weir_ion_source {
    char *id; /**< "ION:PIPELINE:REPLICA:NUMBER" */
    char *ion, *pipeline;
    char *replica;     /**< NULL: none has reported. */
    char *role;        /**< "source", "sink", "door" or "server". */
    char *name;        /**< A door's name, else the kind; "server". */
    char *kind;        /**< NULL: it is the server. */
    char *state;       /**< "connected", "lost" or "unknown". */
    int64_t since_ms;  /**< When that began; 0: not known. */
    char *url;         /**< A source's that takes requests, as it is reached; NULL. */
    char *error;       /**< The last, also of one that is connected again; NULL: there was none. */
    int64_t n_taken;   /**< Decisions, or a source's frames, since the replica started. */
    int64_t n_refused; /**< Decisions that it refused. */
    int64_t reported_ms; /**< 0: never. */
};

extern const struct weir_resource weir_ion_source_resource;

/** All of an ION's, by pipeline of its document and replica; text in the arena, or the state's. Pure. */
void weir_ion_sources(const struct weir_ion_state *state, int64_t now_ms, struct weir_arena *arena,
                      struct weir_ion_source **out, size_t *out_n);

#endif
