/** What rows of routes are written with. For files of rows only: the names are short. */
#ifndef WEIR_ROUTE_ROWS_H
#define WEIR_ROUTE_ROWS_H

#include "route/route.h"

#define MIB      ((uint64_t)1 << 20)
#define R(right) WEIR_RIGHT_##right

#define GET(path)    .method = "GET", .pattern = (path)
#define POST(path)   .method = "POST", .pattern = (path)
#define PUT(path)    .method = "PUT", .pattern = (path)
#define PATCH(path)  .method = "PATCH", .pattern = (path)
#define DELETE(path) .method = "DELETE", .pattern = (path)

#endif
