#include "route/route.h"

#include <string.h>

/* All segments from the i-th on, as one text. */
static const char *join_segments(const struct weir_http_request *request, size_t i_first)
{
    const char *path = request->segments[i_first];
    for (size_t i = i_first + 1; i < request->n_segments; i++) {
        path = weir_arena_printf(request->arena, "%s/%s", path, request->segments[i]);
    }
    return path;
}

/* Is the pattern's part, which *inout_pattern is moved behind, this text? Byte by byte: most rows differ early. */
static bool part_is(const char **inout_pattern, const char *text)
{
    const char *p = *inout_pattern;
    while (*p != '/' && *p != '\0') {
        if (*p++ != *text++) {
            return false;
        }
    }
    *inout_pattern = p;
    return *text == '\0';
}

/* Does the pattern fit the path? `params` may be NULL; those that the pattern has not are NULL. */
static bool pattern_fits(const char *p, const struct weir_http_request *request, size_t i_segment,
                         const char **params)
{
    const char *taken[ROUTE_MAX_PARAMS];
    size_t n_taken = 0, i_rest = SIZE_MAX;
    for (p += *p == '/'; *p != '\0'; p += *p == '/') {
        if (i_segment == request->n_segments) {
            return false;
        }
        if (*p != '{') {
            if (!part_is(&p, request->segments[i_segment++])) {
                return false;
            }
            continue;
        }
        taken[n_taken++] = request->segments[i_segment++];
        if (strcmp(p, "{path}") == 0) {
            i_rest = i_segment - 1;
            i_segment = request->n_segments;
        }
        p = strchr(p, '}') + 1;
    }
    if (i_segment != request->n_segments) {
        return false;
    }
    for (size_t i = 0; params != NULL && i < ROUTE_MAX_PARAMS; i++) {
        params[i] = i < n_taken ? taken[i] : NULL;
    }
    if (params != NULL && i_rest != SIZE_MAX) {
        params[n_taken - 1] = join_segments(request, i_rest);
    }
    return true;
}

static bool method_fits(const struct weir_route *route, const char *method)
{
    return strcmp(route->method, method) == 0 ||
           (strcmp(method, "HEAD") == 0 && strcmp(route->method, "GET") == 0);
}

const struct weir_route *weir_route_find(const struct weir_route_table *const *tables,
                                         const struct weir_http_request *request, size_t i_first,
                                         const char *out_params[ROUTE_MAX_PARAMS])
{
    for (; *tables != NULL; tables++) {
        for (size_t i = 0; i < (*tables)->n; i++) {
            const struct weir_route *route = &(*tables)->rows[i];
            if (method_fits(route, request->method) &&
                pattern_fits(route->pattern, request, i_first, out_params)) {
                return route;
            }
        }
    }
    return NULL;
}

const char *weir_route_allowed(const struct weir_route_table *const *tables,
                               const struct weir_http_request *request, size_t i_first,
                               struct weir_arena *arena)
{
    const struct weir_route *route;
    const char *allow = "";
    for (size_t i = 0; (route = weir_route_at(tables, i)) != NULL; i++) {
        if (pattern_fits(route->pattern, request, i_first, NULL) &&
            strstr(allow, route->method) == NULL) {
            allow =
                weir_arena_printf(arena, "%s%s%s%s", allow, *allow != '\0' ? ", " : "",
                                  route->method, strcmp(route->method, "GET") == 0 ? ", HEAD" : "");
        }
    }
    return allow;
}

const struct weir_route *weir_route_at(const struct weir_route_table *const *tables, size_t i)
{
    for (; *tables != NULL; tables++) {
        if (i < (*tables)->n) {
            return &(*tables)->rows[i];
        }
        i -= (*tables)->n;
    }
    return NULL;
}
