/**
 * Heartbeat: tells the server what became of the deployment, and that the replica lives: at once
 * when it changes, and every HEARTBEAT_MS with its counts.
 *
 * PUT …/pipelines/{pipeline}/replicas/{replica}, on a thread and a connection of its own, so that a
 * deployment that takes long does not look like a replica that is dead. While the server is away
 * nothing is kept: the next one says it all.
 */
#ifndef WEIR_PREDICT_HEARTBEAT_H
#define WEIR_PREDICT_HEARTBEAT_H

#include "predict/consumer.h"
#include "predict/intake.h"
#include "predict/outbox.h"
#include "predict/refused.h"
#include "predict/source.h"
#include "predict/spec.h"

#define HEARTBEAT_MS 5000

struct heartbeat;

struct heartbeat_config {
    const struct predict_spec *spec; /**< Must name a server. Borrowed, like the rest. */
    struct intake *intake;
    struct outbox *outbox;
    struct refused *refused;
    struct consumer *const *consumers;
    size_t n_consumers;
};

weir_status heartbeat_start(const struct heartbeat_config *config, struct heartbeat **out,
                            struct weir_error *err) WEIR_MUST_CHECK;

/** NULL is accepted, here and below. */
void heartbeat_stop(struct heartbeat *heartbeat);

/** Count the frames that wait at this source too; NULL: no more. Any thread. */
void heartbeat_set_source(struct heartbeat *heartbeat, const struct source_ops *ops,
                          struct source *source);

/** Frames are decided by this deployment from now on. Any thread. */
void heartbeat_applied(struct heartbeat *heartbeat, int64_t revision);

/** This deployment cannot be served; what was served before is served on. Any thread. */
void heartbeat_failed(struct heartbeat *heartbeat, int64_t revision, const char *reason);

#endif
