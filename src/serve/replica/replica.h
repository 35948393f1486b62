/** Replica: what `weir-worker serve` consists of, put together. For serve.h and the tests. */
#ifndef WEIR_SERVE_REPLICA_H
#define WEIR_SERVE_REPLICA_H

#include "serve/replica/front.h"
#include "serve/replica/serve_spec.h"

/** A model that is served without a server. */
struct serve_given {
    const char *model;
    int64_t number;
    const char *path, *labels, *preprocess, *inputs,
        *golden; /**< Files; but for path they may be NULL. */
};

/** Zero means the default for every number. Borrowed until the replica stops. */
struct serve_options {
    const struct serve_spec *spec;   /**< Of a deployment's replica; NULL: */
    const struct serve_given *given; /**< these are served. */
    size_t n_given;
    const char *listen; /**< Without a spec. */
    struct batcher_rules rules;
    size_t memory_max_bytes;
    struct executor_options executor;
    /** A GPU has failed, and only a new process can use it again. As in versions.h. */
    void (*on_broken)(void *context, const char *reason);
    void *context;
    int64_t timeout_ms;
    uint64_t body_max_bytes;
};

struct serve_replica;

/**
 * Starts everything. With a spec, it returns before anything is loaded; without, when all that is
 * given is READY. The errors of versions_load and front_start.
 */
weir_status serve_replica_start(const struct serve_options *options, struct serve_replica **out,
                                struct weir_error *err) WEIR_MUST_CHECK;

int serve_replica_port(const struct serve_replica *replica);

/** Requests in flight are answered, for at most deadline_ms. NULL is accepted. */
void serve_replica_stop(struct serve_replica *replica, int64_t deadline_ms);

#endif
