/**
 * Gateway: takes inference requests on the server's own port and forwards them to the replicas of
 * deployments. Nothing of it reads the database while a request is under way.
 *
 * Three nouns: the *table* says where requests go (table.h), the *call* is one request on its way,
 * the *figures* say what became of them, by deployment and version (figures.h).
 *
 *     weir_gateway_create(&config, &gateway, err);
 *     weir_gateway_publish(gateway, table);          again whenever something has changed
 *     …
 *     weir_gateway_destroy(gateway);
 */
#ifndef WEIR_GATEWAY_GATEWAY_H
#define WEIR_GATEWAY_GATEWAY_H

#include "base/status.h"
#include "gateway/table.h"

struct weir_gateway;

struct weir_gateway_config {
    /** A request waits at a deployment that has no replica for it, and whose can_start is set: start
     *  one. Called on the gateway's thread, at most once a second for each deployment: it must
     *  return at once. May be NULL. */
    void (*start)(void *context, const char *deployment);
    void *start_context;
};

weir_status weir_gateway_create(const struct weir_gateway_config *config, struct weir_gateway **out,
                                struct weir_error *err) WEIR_MUST_CHECK;

/** NULL is accepted. */
void weir_gateway_destroy(struct weir_gateway *gateway);

/** Let this table be the one that requests begin with from now on; takes the caller's reference.
 *  Any thread. Names of hosts in it are resolved here, so it may take as long as the resolver. */
void weir_gateway_publish(struct weir_gateway *gateway, struct weir_gateway_table *table);

/** The table in effect, with a reference for the caller; an empty one before the first publish. */
struct weir_gateway_table *weir_gateway_acquire(struct weir_gateway *gateway);

#endif
