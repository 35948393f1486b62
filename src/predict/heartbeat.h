/**
 * Heartbeat: what a replica tells its server of itself every 5 s, and at once when a deployment is applied
 * or fails (host/host.h): what became of it, and its counts.
 */
#ifndef WEIR_PREDICT_HEARTBEAT_H
#define WEIR_PREDICT_HEARTBEAT_H

#include "host/host.h"
#include "predict/consumer.h"
#include "predict/count.h"
#include "predict/door/orders.h"
#include "predict/intake.h"
#include "predict/outbox.h"
#include "predict/refused.h"
#include "predict/source.h"

#define HEARTBEAT_MS 5000

/** What it looks at. All borrowed. */
struct heartbeat {
    struct intake *intake;
    struct outbox *outbox;
    struct refused *refused;
    struct consumer *const *consumers;
    size_t n_consumers;
    struct door_orders *orders; /**< NULL: there are no doors. */
    struct counts *counts;
    const struct source_ops *source_ops;
    struct source *source;
};

/** Everything, as it is now: a new reference; NULL: it would be no UTF-8. Any thread. */
json_t *heartbeat_make(const struct heartbeat *heartbeat,
                       const struct weir_host_standing *standing);

#endif
