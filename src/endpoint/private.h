/** What sources, sinks and doors are read with. */
#ifndef WEIR_ENDPOINT_PRIVATE_H
#define WEIR_ENDPOINT_PRIVATE_H

#include "endpoint/endpoint.h"

/** What each takes beside its own options: "secrets". */
#define ENDPOINT_N_COMMON 1
extern const struct weir_option endpoint_common[ENDPOINT_N_COMMON];

/** Read one, with its secrets, and check what its kind checks. */
weir_status endpoint_read(const struct weir_registry *registry, const json_t *endpoint,
                          const char *where, struct weir_arena *arena, struct weir_configured *out,
                          struct weir_error *err) WEIR_MUST_CHECK;

/** @param place  What the variables begin with: "sink_0". */
void endpoint_secrets(const struct weir_registry *registry, json_t *endpoint, const char *place,
                      weir_endpoint_secret_fn fn, void *context);

#endif
