/** What the fronts, HTTP and gRPC, share: the caller, and whether the deployment is theirs. */
#ifndef WEIR_GATEWAY_FRONT_H
#define WEIR_GATEWAY_FRONT_H

#include "gateway/callers.h"
#include "gateway/gateway_private.h"

/** The caller, remembered or asked for; a reference. token or request may be NULL. */
weir_status front_caller(struct weir_gateway *gateway, const char *token,
                         const struct weir_http_request *request, struct caller **out,
                         struct weir_error *err) WEIR_MUST_CHECK;

/** The same, if it is remembered; NULL if not. Never blocks. */
struct caller *front_remembered(struct weir_gateway *gateway, const char *token);

/** NOT_FOUND, with the same words, for a deployment that is not there and one that is not theirs. */
weir_status front_find(const struct weir_gateway_table *table, const struct caller *caller,
                       const char *name, int64_t version,
                       const struct weir_gateway_deployment **out,
                       struct weir_error *err) WEIR_MUST_CHECK;

/** Would a request be answered without waiting for more than a replica's start? */
bool front_is_ready(const struct weir_gateway_deployment *deployment, int64_t version);

/** "Bearer x" gives "x"; NULL: another scheme, or none. */
const char *front_token(const char *authorization);

/** The header Weir-Timeout-Ms, or NULL. @return 0: none that is understood. */
int64_t front_timeout_ms(const char *text);

#endif
