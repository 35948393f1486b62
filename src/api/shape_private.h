/**
 * How the tables of shapes are written (shape.h). A file shape_*.c has those of one part of the API, each after those
 * that it names, and ends with its list; shape.c goes through the lists.
 */
#ifndef WEIR_API_SHAPE_PRIVATE_H
#define WEIR_API_SHAPE_PRIVATE_H

#include "api/shape.h"

/* A member that is always there with a value; one that may be null; one that may be missing. */
#define ALWAYS(name, type, doc)                                                                    \
    {                                                                                              \
        (name), (type), false, false, (doc)                                                        \
    }
#define OR_NULL(name, type, doc)                                                                   \
    {                                                                                              \
        (name), (type), true, false, (doc)                                                         \
    }
#define MAY_MISS(name, type, doc)                                                                  \
    {                                                                                              \
        (name), (type), true, true, (doc)                                                          \
    }

#define SHAPE(name, record, route, table)                                                          \
    {                                                                                              \
        (name), (record), NULL, (route), NULL, (table), WEIR_ARRAY_LEN(table)                      \
    }
#define RECORD(name, record, filled, table)                                                        \
    {                                                                                              \
        (name), &(record), (filled), NULL, NULL, (table), WEIR_ARRAY_LEN(table)                    \
    }
/* What a route's body has beside the record's fields. */
#define BODY(name, record, route, table)                                                           \
    {                                                                                              \
        (name), &(record), NULL, NULL, (route), (table), WEIR_ARRAY_LEN(table)                     \
    }
/* A body that is no record's. */
#define SHAPE_OF_BODY(name, route, table)                                                          \
    {                                                                                              \
        (name), NULL, NULL, NULL, (route), (table), WEIR_ARRAY_LEN(table)                          \
    }
#define PLAIN_RECORD(name, record, filled)                                                         \
    {                                                                                              \
        (name), &(record), (filled), NULL, NULL, NULL, 0                                           \
    }

struct api_shape_list {
    const struct api_shape *shapes;
    size_t n;
};

#define API_SHAPE_LIST(table)                                                                      \
    {                                                                                              \
        (table), WEIR_ARRAY_LEN(table)                                                             \
    }

extern const struct api_shape_list api_shapes_of_platform;
extern const struct api_shape_list api_shapes_of_cluster;
extern const struct api_shape_list api_shapes_of_tracking;
extern const struct api_shape_list api_shapes_of_deployments;
extern const struct api_shape_list api_shapes_of_ions;
extern const struct api_shape_list api_shapes_of_decisions;
extern const struct api_shape_list api_shapes_of_snapshots;
extern const struct api_shape_list api_shapes_of_data;
extern const struct api_shape_list api_shapes_of_lineage;

#endif
