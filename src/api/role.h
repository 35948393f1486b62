/** Roles as records: what GET /roles lists. */
#ifndef WEIR_API_ROLE_H
#define WEIR_API_ROLE_H

#include "base/json.h"
#include "base/record.h"
#include "store/rights.h"

/** A role and what it may, from the matrix (store/rights.def). */
extern const struct weir_resource weir_role_resource;

/** A new list of what a set of rights lets one do: ["read jobs", "submit jobs" …]. */
json_t *api_rights_list(weir_rights rights);

#endif
