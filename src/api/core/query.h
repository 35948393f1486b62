/**
 * The query of a request, by its route's row (route/route.h): what the row names is parsed before the route runs, and what is
 * wrong or unknown is refused with what, where and what to do. A route's function reads values only.
 *
 * A list (ROUTE_LIST) also takes the parameters of all lists; with ROUTE_FILTERS it filters by the text fields of its
 * record, whether its row names them or not. A field by which a list does not filter is refused as any other name: what is
 * answered fits all that was asked.
 */
#ifndef WEIR_API_QUERY_H
#define WEIR_API_QUERY_H

#include "api/core/call.h"
#include "route/route.h"

#include <stdint.h>

/** Parse the call's query by its route's row, into call->query.
 *  @return INVALID: a value is not of its parameter's type, or (unless the route is ROUTE_OPEN: browsers are sent
 *          there with more) there is no parameter of this name. */
weir_status api_query_parse(struct api_call *call, struct weir_error *err) WEIR_MUST_CHECK;

/** Does the route's list filter by this field because of ROUTE_FILTERS? `field` may be NULL. */
bool api_query_filters_by(const struct weir_route *route, const struct weir_field *field);

/** Was it given? What the row does not name was not. */
bool api_query_has(const struct api_call *call, const char *name);

/** An INT: what was given, else the row's fallback. */
int64_t api_query_int(const struct api_call *call, const char *name);

/** A BOOL or GIVEN; false if absent. */
bool api_query_bool(const struct api_call *call, const char *name);

/** A TIME; `fallback` if absent. */
int64_t api_query_time(const struct api_call *call, const char *name, int64_t fallback);

/** The text of any type, a WORD as the row writes it; NULL if absent. The first of several. */
const char *api_query_text(const struct api_call *call, const char *name);

#endif
