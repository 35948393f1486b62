#include "api/shape.h"

#include "api/shape_private.h"

#include <string.h>

static const struct api_shape_list *const lists[] = {
    &api_shapes_of_platform,    &api_shapes_of_cluster, &api_shapes_of_tracking,
    &api_shapes_of_deployments, &api_shapes_of_ions,    &api_shapes_of_decisions,
    &api_shapes_of_snapshots,   &api_shapes_of_data,    &api_shapes_of_lineage,
};

const struct api_shape *api_shape_at(size_t i)
{
    for (size_t k = 0; k < WEIR_ARRAY_LEN(lists); k++) {
        if (i < lists[k]->n) {
            return &lists[k]->shapes[i];
        }
        i -= lists[k]->n;
    }
    return NULL;
}

const struct api_shape *api_shape_of_record(const struct weir_resource *record)
{
    const struct api_shape *shape;
    for (size_t i = 0; (shape = api_shape_at(i)) != NULL; i++) {
        if (record != NULL && shape->record == record && shape->route == NULL &&
            shape->body == NULL) {
            return shape;
        }
    }
    return NULL;
}

static bool is_route(const char *route, const char *method, const char *pattern)
{
    size_t len = strlen(method);
    return route != NULL && strncmp(route, method, len) == 0 && route[len] == ' ' &&
           strcmp(route + len + 1, pattern) == 0;
}

const struct api_shape *api_shape_of_route(const char *method, const char *pattern)
{
    const struct api_shape *shape;
    for (size_t i = 0; (shape = api_shape_at(i)) != NULL; i++) {
        if (is_route(shape->route, method, pattern)) {
            return shape;
        }
    }
    return NULL;
}

const struct api_shape *api_shape_of_body(const char *method, const char *pattern)
{
    const struct api_shape *shape;
    for (size_t i = 0; (shape = api_shape_at(i)) != NULL; i++) {
        if (is_route(shape->body, method, pattern)) {
            return shape;
        }
    }
    return NULL;
}
