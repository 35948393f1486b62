/** Visits, as other parts of the API need them. */
#ifndef WEIR_API_VISIT_H
#define WEIR_API_VISIT_H

#include "api/core/call.h"

struct weir_visits_ops;

/** What streams are wanted of a node (weir_visits_wanted); a serial below -1: the node does not know of them. */
json_t *api_visits_wanted(struct api_call *call, const char *node, int64_t *serial);

/** Ends go to the audit, and who may no longer goes out; the context is the API. */
extern const struct weir_visits_ops api_visits_ops;

#endif
