/**
 * What answers have that no record has, as data: members that a handler adds to a record, and answers
 * that are no record. The OpenAPI document is made from these and the record tables, and the console's
 * types from that document (web/api_types.py). A handler that adds a member adds it to the table of its shape too, in
 * the shape_*.c of its part of the API: tests/system/openapi_test.py compares answers with the document.
 */
#ifndef WEIR_API_SHAPE_H
#define WEIR_API_SHAPE_H

#include "base/record.h"

/** A member of a JSON object. */
struct api_member {
    const char *name;
    /** "text", "integer", "number", "bool", "time", "any", the name of a record or a shape, or one of
     *  those after "list of " or "map of " (by text). */
    const char *type;
    bool is_nullable; /**< It is there, and may be null. */
    bool is_optional; /**< It may be missing. */
    const char *doc;  /**< One sentence. */
};

struct api_shape {
    const char *name; /**< As a record's: "link". */
    /** Whose fields it has too; the members go before them. NULL: the members are all. */
    const struct weir_resource *record;
    /** Text and times of the record that are never null, separated by blanks; its key and what must
     *  be given are not either. */
    const char *filled;
    /** That answers it: "GET /api/v1/session". NULL: a record's routes, or it is part of another. */
    const char *route;
    const char *body; /**< Route whose body it is; it is no answer then. NULL: it is one. */
    const struct api_member *members;
    size_t n_members;
};

/** The i-th of all shapes, from 0; NULL behind the last. */
const struct api_shape *api_shape_at(size_t i);

/** The shape of this record wherever no route has one of its own; NULL if answers have its fields and
 *  nothing else. */
const struct api_shape *api_shape_of_record(const struct weir_resource *record);

/** The shape that this route answers; NULL if its answer is a record, a list of them, or empty. */
const struct api_shape *api_shape_of_route(const char *method, const char *pattern);

/** The shape of this route's body; NULL if that is the route's record, options or nothing. */
const struct api_shape *api_shape_of_body(const char *method, const char *pattern);

#endif
