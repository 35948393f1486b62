/** Visits, as other parts of the API need them. */
#ifndef WEIR_API_VISIT_H
#define WEIR_API_VISIT_H

#include "api/call.h"

struct weir_visit_end;

/** What streams are wanted of a node (weir_visits_wanted); a serial below -1: the node does not know of them. */
json_t *api_visits_wanted(struct api_call *call, const char *node, int64_t *serial);

/** weir_visit_ended_fn: the end goes to the audit; the context is the API. */
void api_visit_ended(void *api, const struct weir_visit_end *end);

#endif
