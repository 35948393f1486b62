/**
 * What rows of routes are written with. They stand in files NAME.def, which have no guard:
 *
 *     ROUTE(api_get, GET, API "/jobs/{id}", "Look at a job", JOBS_READ, READ, .out = &weir_job_resource)
 *
 * is a function, a method, a pattern, what its API says of it, a right (store/rights.def) and an access (ROUTE_READ),
 * which all rows have; and then members of struct weir_route. One ROUTE makes the table of them, another declares the
 * functions, so that a route is written down once. For these files only: the names are short.
 */
#ifndef WEIR_ROUTE_ROWS_H
#define WEIR_ROUTE_ROWS_H

#include "route/route.h"

#define MIB ((uint64_t)1 << 20)

/** The members that all rows have. */
#define ROUTE_ROW(method_, pattern_, right_, access_)                                              \
    .method = #method_, .pattern = (pattern_), .right = WEIR_RIGHT_##right_,                       \
    .access = ROUTE_##access_

#endif
