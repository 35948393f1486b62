/* Each shape against the routes, and against the other shapes. */
#include "api/core/shape.h"

#include "api/routes.h"
#include "base/test_main.h"

#include <string.h>

static bool is_a_route(const char *route)
{
    const char *pattern = strchr(route, ' ') + 1;
    bool is_one = false;
    const struct weir_route *row;
    for (size_t i = 0; (row = weir_route_at(api_routes, i)) != NULL; i++) {
        size_t len = strlen(row->method);
        is_one = is_one || (strncmp(route, row->method, len) == 0 && route + len + 1 == pattern &&
                            strcmp(pattern, row->pattern) == 0);
    }
    return is_one;
}

START_TEST(every_shape_has_a_name_of_its_own)
{
    const struct api_shape *shape, *other;
    size_t i, k;
    for (i = 0; (shape = api_shape_at(i)) != NULL; i++) {
        for (k = 0; k < i; k++) {
            other = api_shape_at(k);
            ck_assert_str_ne(shape->name, other->name);
        }
    }
    ck_assert_uint_gt(i, 100);
    ck_assert_ptr_null(api_shape_at(SIZE_MAX));
}

END_TEST

START_TEST(every_shape_is_found_by_its_route_or_its_record)
{
    const struct api_shape *shape;
    for (size_t i = 0; (shape = api_shape_at(i)) != NULL; i++) {
        char text[256];
        const char *route = shape->route != NULL ? shape->route : shape->body;
        if (route == NULL) {
            ck_assert(shape->record == NULL || api_shape_of_record(shape->record) == shape);
            continue;
        }
        ck_assert_msg(is_a_route(route), "%s: there is no %s", shape->name, route);
        (void)snprintf(text, sizeof text, "%s", route);
        char *pattern = strchr(text, ' ');
        *pattern++ = '\0';
        ck_assert_ptr_eq(shape->route != NULL ? api_shape_of_route(text, pattern)
                                              : api_shape_of_body(text, pattern),
                         shape);
    }
}

END_TEST

/* "text", "integer" …, or what the document has a schema of. */
static bool is_known(const char *type)
{
    static const char *const plain[] = {"text", "integer", "number", "bool", "time", "any"};
    static const char *const around[] = {"list of ", "map of "};
    const struct api_shape *shape;
    bool is_one = false;
    for (size_t i = 0; i < WEIR_ARRAY_LEN(around); i++) {
        size_t len = strlen(around[i]);
        if (strncmp(type, around[i], len) == 0) {
            return is_known(type + len);
        }
    }
    for (size_t i = 0; i < WEIR_ARRAY_LEN(plain); i++) {
        is_one = is_one || strcmp(type, plain[i]) == 0;
    }
    for (size_t i = 0; (shape = api_shape_at(i)) != NULL; i++) {
        is_one = is_one || strcmp(type, shape->name) == 0;
    }
    const struct weir_route *route;
    for (size_t i = 0; (route = weir_route_at(api_routes, i)) != NULL; i++) {
        is_one = is_one || (route->in != NULL && strcmp(type, route->in->name) == 0) ||
                 (route->out != NULL && strcmp(type, route->out->name) == 0);
    }
    return is_one;
}

START_TEST(every_member_has_a_type_that_is_there)
{
    const struct api_shape *shape;
    for (size_t i = 0; (shape = api_shape_at(i)) != NULL; i++) {
        size_t n;
        const struct weir_member *members = api_shape_members(shape, &n);
        ck_assert(shape->view == NULL || strcmp(shape->view()->head->title, shape->name) == 0 ||
                  shape->route != NULL);
        for (size_t k = 0; k < n; k++) {
            const struct weir_member *member = &members[k];
            const char *type = member->words;
            if (member->type == WEIR_MEMBER_FLAT || member->type == WEIR_MEMBER_FLAT_OF) {
                continue;
            }
            if (member->view != NULL) {
                type = member->view()->head->title;
            } else if (member->resource != NULL) {
                type = member->resource->name;
            }
            ck_assert_msg(type == NULL || is_known(type), "%s.%s: %s", shape->name, member->name,
                          type);
        }
    }
}

END_TEST

WEIR_TEST_MAIN("shape", every_shape_has_a_name_of_its_own,
               every_shape_is_found_by_its_route_or_its_record,
               every_member_has_a_type_that_is_there)
