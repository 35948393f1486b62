/** All routes of the API, as a table (route/route.h); its rows are in api/core/routes.def. */
#ifndef WEIR_API_ROUTES_H
#define WEIR_API_ROUTES_H

#include "route/route.h"

/** Ended by NULL; for weir_route_find and weir_route_at. */
extern const struct weir_route_table *const api_routes[];

#endif
