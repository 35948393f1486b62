/** Roles as records: what GET /roles lists. */
#ifndef WEIR_API_ROLE_H
#define WEIR_API_ROLE_H

#include "base/record.h"

/** A role and what it may, from the matrix (store/rights.def). */
extern const struct weir_resource weir_role_resource;

#endif
