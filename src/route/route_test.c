/* Routes found in random tables, against regular expressions made of their patterns. */
#include "route/route.h"

#include "base/test_main.h"
#include "base/test_seed.h"

#include <regex.h>
#include <stdio.h>
#include <string.h>

#define N_ROWS     12
#define N_SEGMENTS 5

static const char *const methods[] = {"GET", "POST", "DELETE", "HEAD"};

struct world {
    struct weir_route rows[N_ROWS];
    char patterns[N_ROWS][64];
    regex_t regex[N_ROWS];
    struct weir_route_table first, second;
    const struct weir_route_table *tables[3];
};

static const char *pick(struct weir_rng *rng, const char *const *words, size_t n)
{
    return words[weir_rng_below(rng, n)];
}

static void make_row(struct world *world, struct weir_rng *rng, size_t i)
{
    static const char *const parts[] = {"a", "b", "ab", "{id}", "{name}"};
    char regex[128] = "^";
    struct weir_arena arena;
    weir_arena_init(&arena, 0);
    const char *pattern = "", *expression = "^";
    size_t n = 1 + weir_rng_below(rng, 3);
    for (size_t k = 0; k < n; k++) {
        const char *part = pick(rng, parts, WEIR_ARRAY_LEN(parts));
        pattern = weir_arena_printf(&arena, "%s/%s", pattern, part);
        expression =
            weir_arena_printf(&arena, "%s/%s", expression, *part == '{' ? "([^/]*)" : part);
    }
    bool has_rest = weir_rng_below(rng, 4) == 0;
    (void)snprintf(world->patterns[i], sizeof world->patterns[i], "%s%s", pattern,
                   has_rest ? "/{path}" : "");
    (void)snprintf(regex, sizeof regex, "%s%s$", expression, has_rest ? "/(.*)" : "");
    weir_arena_fini(&arena);
    ck_assert_int_eq(regcomp(&world->regex[i], regex, REG_EXTENDED), 0);
    world->rows[i] =
        (struct weir_route){.method = pick(rng, methods, 3), .pattern = world->patterns[i]};
}

static void make_world(struct world *world, struct weir_rng *rng)
{
    memset(world, 0, sizeof *world);
    for (size_t i = 0; i < N_ROWS; i++) {
        make_row(world, rng, i);
    }
    world->first = (struct weir_route_table){world->rows, N_ROWS / 3};
    world->second = (struct weir_route_table){world->rows + N_ROWS / 3, N_ROWS - N_ROWS / 3};
    world->tables[0] = &world->first;
    world->tables[1] = &world->second;
}

/* The path behind the first segment, which is no part of it: "p", then what the tables know. */
static const char *make_request(struct weir_rng *rng, struct weir_http_request *request)
{
    static const char *const parts[] = {"a", "b", "ab", "abc", "c d"};
    request->method = pick(rng, methods, 4);
    request->n_segments = 1 + weir_rng_below(rng, N_SEGMENTS);
    request->segments = WEIR_ARENA_ARRAY(request->arena, N_SEGMENTS + 1, char *);
    request->segments[0] = "p";
    const char *path = "";
    for (size_t i = 1; i < request->n_segments; i++) {
        request->segments[i] = (char *)pick(rng, parts, WEIR_ARRAY_LEN(parts));
        path = weir_arena_printf(request->arena, "%s/%s", path, request->segments[i]);
    }
    return path;
}

static bool takes(const char *of_row, const char *asked)
{
    return strcmp(of_row, asked) == 0 || (strcmp(asked, "HEAD") == 0 && strcmp(of_row, "GET") == 0);
}

static void check_params(const char *path, const regmatch_t *groups, const char *const *params)
{
    for (size_t k = 0; k < ROUTE_MAX_PARAMS; k++) {
        const regmatch_t *group = &groups[k + 1];
        if (group->rm_so < 0) {
            ck_assert_ptr_null(params[k]);
            continue;
        }
        size_t len = (size_t)(group->rm_eo - group->rm_so);
        ck_assert_msg(params[k] != NULL && strlen(params[k]) == len &&
                          memcmp(params[k], path + group->rm_so, len) == 0,
                      "%s: parameter %zu is %s", path, k, params[k]);
    }
}

static void check_allowed(const struct world *world, const struct weir_http_request *request,
                          const char *path)
{
    const char *allowed = weir_route_allowed(world->tables, request, 1, request->arena);
    for (size_t m = 0; m < WEIR_ARRAY_LEN(methods); m++) {
        bool is_there = false;
        for (size_t i = 0; i < N_ROWS; i++) {
            is_there = is_there || (takes(world->rows[i].method, methods[m]) &&
                                    regexec(&world->regex[i], path, 0, NULL, 0) == 0);
        }
        const char *at = strstr(allowed, methods[m]);
        ck_assert_msg((at != NULL) == is_there, "%s: %s of \"%s\"", path, methods[m], allowed);
        ck_assert_msg(at == NULL || strstr(at + 1, methods[m]) == NULL, "twice: \"%s\"", allowed);
    }
}

START_TEST(the_first_row_that_fits_is_found_with_what_it_takes)
{
    struct weir_rng rng;
    struct world world;
    int n_found = 0;
    (void)test_seed(&rng);
    for (int t = 0; t < WEIR_TEST_TIMES(300, 30); t++) {
        make_world(&world, &rng);
        for (int r = 0; r < 50; r++) {
            struct weir_arena arena;
            const struct weir_route *wanted = NULL;
            const char *params[ROUTE_MAX_PARAMS];
            regmatch_t groups[ROUTE_MAX_PARAMS + 1];
            weir_arena_init(&arena, 0);
            struct weir_http_request request = {.arena = &arena};
            const char *path = make_request(&rng, &request);
            for (size_t i = 0; i < N_ROWS && wanted == NULL; i++) {
                if (takes(world.rows[i].method, request.method) &&
                    regexec(&world.regex[i], path, WEIR_ARRAY_LEN(groups), groups, 0) == 0) {
                    wanted = &world.rows[i];
                }
            }
            const struct weir_route *found = weir_route_find(world.tables, &request, 1, params);
            ck_assert_msg(found == wanted, "%s %s: %s, not %s", request.method, path,
                          found != NULL ? found->pattern : "none",
                          wanted != NULL ? wanted->pattern : "none");
            if (found != NULL) {
                check_params(path, groups, params);
                n_found++;
            }
            check_allowed(&world, &request, path);
            weir_arena_fini(&arena);
        }
        for (size_t i = 0; i < N_ROWS; i++) {
            ck_assert_ptr_eq(weir_route_at(world.tables, i), &world.rows[i]);
            regfree(&world.regex[i]);
        }
        ck_assert_ptr_null(weir_route_at(world.tables, N_ROWS));
    }
    printf("%d found\n", n_found);
    ck_assert_int_gt(n_found, 100);
}

END_TEST

WEIR_TEST_MAIN("route", the_first_row_that_fits_is_found_with_what_it_takes)
