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

/* Does the pattern fit the path? `params` may be NULL. Else those that the pattern has not are NULL. */
static bool pattern_fits(const char *pattern, const struct weir_http_request *request,
                         size_t i_segment, const char **params)
{
    const char *taken[ROUTE_MAX_PARAMS] = {0};
    size_t n_taken = 0, i_rest = SIZE_MAX;
    for (const char *p = pattern + (*pattern == '/'); *p != '\0';) {
        size_t len = strcspn(p, "/");
        if (i_segment == request->n_segments) {
            return false;
        }
        const char *segment = request->segments[i_segment];
        if (strcmp(p, "{path}") == 0) {
            i_rest = i_segment;
            taken[n_taken++] = segment;
            i_segment = request->n_segments;
            break;
        }
        if (*p == '{') {
            taken[n_taken++] = segment;
        } else if (strncmp(segment, p, len) != 0 || segment[len] != '\0') {
            return false;
        }
        i_segment++;
        p += len;
        p += *p == '/';
    }
    if (i_segment != request->n_segments) {
        return false;
    }
    if (params != NULL && i_rest != SIZE_MAX) {
        taken[n_taken - 1] = join_segments(request, i_rest);
    }
    if (params != NULL) {
        memcpy(params, taken, sizeof taken);
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
