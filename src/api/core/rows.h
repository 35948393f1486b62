/** What the API's rows are written with beside route/rows.h: the parameters of queries. */
#ifndef WEIR_API_ROWS_H
#define WEIR_API_ROWS_H

#include "route/rows.h"

#include <stdint.h>

#define API "/api/v1"

// clang-format off
/** The parameters of a row's query. */
#define QUERY(...) (const struct weir_route_param[]){__VA_ARGS__, {0}}

#define Q_TEXT(n, d)            {.name = (n), .type = ROUTE_TEXT, .doc = (d)}
#define Q_NAME(n, d)            {.name = (n), .type = ROUTE_NAME, .doc = (d)}
#define Q_FIELD(n)              {.name = (n), .type = ROUTE_FIELD}
#define Q_INT(n, l, h, f, d)    {.name = (n), .type = ROUTE_INT, .lo = (l), .hi = (h), .fallback = (f), .doc = (d)}
#define Q_BOOL(n, d)            {.name = (n), .type = ROUTE_BOOL, .doc = (d)}
#define Q_GIVEN(n, d)           {.name = (n), .type = ROUTE_GIVEN, .doc = (d)}
#define Q_TIME(n, d)            {.name = (n), .type = ROUTE_TIME, .doc = (d)}
#define Q_WORD(n, w, d)         {.name = (n), .type = ROUTE_WORD, .words = (w), .doc = (d)}

#define Q_LIMIT                 Q_LIMIT_TO(1000, 100)
#define Q_LIMIT_TO(most, usual) Q_INT("limit", 1, most, usual, "At most so many")
#define Q_CURSOR                Q_TEXT("cursor", "`next` of the page before")
#define Q_NEWEST                Q_GIVEN("newest", "The newest first")
#define Q_AFTER                 Q_INT("after", -1, INT64_MAX, -1, "Those with a greater number, in order; without: the newest first")
#define Q_REVISION              Q_INT("after", -1, INT64_MAX, -1, "The revision that is known: a newer one is answered at once")
#define Q_WAIT_S(most)          Q_INT("wait_s", 0, most, 0, "Wait so many seconds for what is asked for")
#define Q_SINCE                 Q_TIME("since", "Not before this time")
#define Q_UNTIL                 Q_TIME("until", "Before this time")
#define Q_FORCE                 Q_BOOL("force", "1: even if something speaks against it")
#define Q_DRY_RUN               Q_BOOL("dry_run", "1: change nothing, and answer what would come of it")
#define Q_PROJECT               Q_NAME("project", "Of this project only")
#define Q_VIEW                  Q_WORD("view", "active deleted all", "By whether they were deleted; without: active")
// clang-format on

#endif
