/**
 * Serving: keeps the gateway's table as the store has it. One thread waits for commits; when one has
 * changed a deployment (weir_deploy_change), it makes the whole table again from the rows and publishes
 * it: within milliseconds of the commit, and outside of every request.
 *
 * A version's weight is its share in effect among the versions that are READY on some replica: while
 * one is loaded nowhere, the others have its requests. If none is ready, the weights are the shares,
 * and the gateway holds what comes, as long as replicas do not fail one after the other.
 */
#ifndef WEIR_CONTROL_SERVING_H
#define WEIR_CONTROL_SERVING_H

#include "base/status.h"
#include "deploy/step.h"
#include "gateway/table.h"
#include "store/store.h"

struct serving;

/** Publish the table to what routes requests by it; takes the reference. */
typedef void (*serving_publish_fn)(void *context, struct weir_gateway_table *table);

/** Start the thread; the first table is published before this returns. All is borrowed. */
weir_status serving_start(struct weir_store *store, serving_publish_fn publish, void *context,
                          struct serving **out, struct weir_error *err) WEIR_MUST_CHECK;

/** End the thread. NULL is accepted. */
void serving_stop(struct serving *serving);

#endif
