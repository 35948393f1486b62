/**
 * Table: where requests go. Which deployments there are, which versions share their traffic, and
 * which replicas have them.
 *
 * The control plane builds a table from the store's rows and publishes it whole
 * (weir_gateway_publish in gateway.h). From then on it is immutable. Who uses it holds a reference,
 * so that a request which began with one table ends with it, whatever is published meanwhile.
 *
 *     struct weir_gateway_table *table = weir_gateway_table_create();
 *     for each deployment: weir_gateway_table_add(table, &deployment, err)
 *     weir_gateway_publish(gateway, table);                  takes the reference
 *
 * Look-up is a binary search by name and allocates nothing.
 */
#ifndef WEIR_GATEWAY_TABLE_H
#define WEIR_GATEWAY_TABLE_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** As many versions of one model as replicas of a deployment load at a time. */
#define WEIR_GATEWAY_VERSIONS_MAX 32
#define WEIR_GATEWAY_REPLICAS_MAX 1024
#define WEIR_GATEWAY_PPM          1000000

/** A version that the replicas load. */
struct weir_gateway_version {
    int64_t version;    /**< > 0 */
    int32_t weight_ppm; /**< Its share of requests that name none; 0: only those that name it. */
};

struct weir_gateway_replica {
    const char *id; /**< Unique in its deployment, in all its life: figures go by it. */
    /** "http://HOST:PORT"; NULL or "": not known yet. HOST is an address or a name that the resolver
     *  answers at once. */
    const char *url;
    uint32_t ready; /**< Bit i: it has versions[i] READY. */
    /** The server hears nothing of it: requests under way there are ended. None is sent there if `ready`
     *  is 0 too. */
    bool is_silent;
};

/** Everything is copied by weir_gateway_table_add. */
struct weir_gateway_deployment {
    const char *name, *project;
    const char *secret; /**< What replicas demand as "Authorization: Bearer". */
    const struct weir_gateway_version *versions;
    size_t n_versions;
    int64_t mirror; /**< One of versions: gets a copy of each request. Its answer is compared and
                         dropped. 0: none. */
    const struct weir_gateway_replica *replicas;
    size_t n_replicas;
    bool can_start;      /**< A replica is started when a request waits: requests are held. */
    int64_t hold_ms;     /**< For how long at most; 0: 30 s. */
    int64_t timeout_ms;  /**< For a request that says none; 0: 60 s. */
    int32_t n_calls_max; /**< In flight and held at a time; 0: 1024. */
};

/** Has it a replica that is not silent? */
bool weir_gateway_has_replica(const struct weir_gateway_deployment *deployment);

struct weir_gateway_table;

/** An empty table with one reference, the caller's. Aborts when memory is out. */
struct weir_gateway_table *weir_gateway_table_create(void);

/**
 * Add a deployment, before the table is published.
 * @return INVALID for a name that is there already, a version that is listed twice, weights below 0
 *         or over a million together, a mirror that is none of the versions, or a URL that is none;
 *         LIMIT over the maximums above. The table is then as before.
 */
weir_status weir_gateway_table_add(struct weir_gateway_table *table,
                                   const struct weir_gateway_deployment *deployment,
                                   struct weir_error *err) WEIR_MUST_CHECK;

/** One more reference, from any thread; from somebody who holds one. */
struct weir_gateway_table *weir_gateway_table_ref(struct weir_gateway_table *table);

/** Give a reference back; the last one frees the table. NULL is accepted. Returns NULL. */
struct weir_gateway_table *weir_gateway_table_unref(struct weir_gateway_table *table);

/** The deployment with this name, as long as the table lives; NULL if there is none. */
const struct weir_gateway_deployment *
weir_gateway_table_find(const struct weir_gateway_table *table, const char *name);

/** All of them, ordered by name. */
size_t weir_gateway_table_count(const struct weir_gateway_table *table);
const struct weir_gateway_deployment *weir_gateway_table_at(const struct weir_gateway_table *table,
                                                            size_t i);

/** Place of `version` among the deployment's versions; -1 if it has it not. */
int weir_gateway_version_find(const struct weir_gateway_deployment *deployment, int64_t version);

/** Take "http://HOST:PORT" (or "http://[V6]:PORT") apart; false if it is not of that form. */
#define WEIR_GATEWAY_HOST_BYTES 256
bool weir_gateway_url_split(const char *url, char out_host[WEIR_GATEWAY_HOST_BYTES],
                            uint16_t *out_port);

#endif
