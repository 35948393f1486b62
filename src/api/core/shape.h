/**
 * What answers and bodies have that no record has: the views (base/view.h) of api/core/views.h and of the domains that make
 * answers, and which routes answer and take them. The OpenAPI document is made from these and the record tables, and
 * the console's types from that document (web/api_types.py).
 */
#ifndef WEIR_API_SHAPE_H
#define WEIR_API_SHAPE_H

#include "base/view.h"

struct api_shape {
    const char *name; /**< As a record's: "link". */
    const struct weir_view_table *(*view)(
        void); /**< Its table; NULL: `members`, or a record as it is. */
    /** Whose fields it has too; the members go before them. NULL: the members are all. */
    const struct weir_resource *record;
    /** Text and times of the record that are never null, separated by blanks; its key and what must
     *  be given are not either. */
    const char *filled;
    /** That answers it: "GET /api/v1/session". NULL: a record's routes, or it is part of another. */
    const char *route;
    const char *body; /**< Route whose body it is; it is no answer then. NULL: it is one. */
    const struct weir_member *members; /**< Of what is no view, up to one without a name. */
};

/** The i-th of all shapes, from 0; NULL behind the last. */
const struct api_shape *api_shape_at(size_t i);

/** Its members, of its view or its own. */
const struct weir_member *api_shape_members(const struct api_shape *shape, size_t *out_n);

/** The shape of this record wherever no route has one of its own; NULL if answers have its fields and
 *  nothing else. */
const struct api_shape *api_shape_of_record(const struct weir_resource *record);

/** The shape that this route answers; NULL if its answer is a record, a list of them, or empty. */
const struct api_shape *api_shape_of_route(const char *method, const char *pattern);

/** The shape of this route's body; NULL if that is the route's record, options or nothing. */
const struct api_shape *api_shape_of_body(const char *method, const char *pattern);

#endif
