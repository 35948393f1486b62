/**
 * Front: the HTTP server in front of loaded versions. It finds the protocol of an address, reads the
 * request, gives it to the version's batcher, and writes the answer when that is done. No thread waits
 * for a model.
 *
 * Every answer of a model names its version in the header Weir-Model-Version. The header
 * Weir-Timeout-Ms of a request says for how long its answer is of use; one that is not computed by
 * then gets 504. The header Weir-Times of an answer says how long each stage took, and
 * the header Weir-Output of a classifier's answer what it was, in two numbers (outputs.h). GET /metrics answers in Prometheus' text form (metrics.h).
 *
 * Bounds: body_max_bytes for a body (413), a quarter of a gigabyte for all of them (503), each
 * version's queue (503 with Retry-After), and those of http/http.h.
 */
#ifndef WEIR_SERVE_FRONT_H
#define WEIR_SERVE_FRONT_H

#include "serve/protocol/protocol.h"

struct front;

/** Strings are copied, the rest is borrowed. */
struct front_config {
    const char *listen; /**< "127.0.0.1:0" */
    const char *secret; /**< Demanded as "Authorization: Bearer", but of the health addresses; NULL:
                             nobody is asked. */
    struct versions *versions;
    const struct protocol_host *ops; /**< May be NULL. */
    int64_t timeout_ms;              /**< Of a request that says none; 0: 30 s. */
    uint64_t body_max_bytes;         /**< 0: 64 MiB. */
    int n_handlers;                  /**< Threads that read and write; 0: 4. */
};

weir_status front_start(const struct front_config *config, struct front **out,
                        struct weir_error *err) WEIR_MUST_CHECK;

int front_port(const struct front *front);

/** Requests that are being computed or wait to be. Any thread. */
int64_t front_n_running(struct front *front);

/** New requests are refused (503) and the server is not "ready" any more, those in flight are
 *  answered; after deadline_ms what is still being sent is cut. NULL is accepted. */
void front_stop(struct front *front, int64_t deadline_ms);

#endif
