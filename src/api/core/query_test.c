/* Queries by the rows of routes: what each row says of its parameters holds, and values are parsed and refused by it. */
#include "api/caller_fixture.h"

#include "api/core/query.h"
#include "api/routes.h"
#include "base/test_main.h"
#include "base/test_seed.h"

static void check_param(const struct weir_route *route, const struct weir_route_param *param)
{
    const char *where = weir_arena_printf(&callers.x->arena, "%s %s?%s", route->method,
                                          route->pattern, param->name);
    for (const struct weir_route_param *other = route->query; other != param; other++) {
        ck_assert_msg(strcmp(other->name, param->name) != 0, "%s: twice", where);
    }
    if (param->type == ROUTE_FIELD) {
        const struct weir_field *field =
            route->out != NULL ? weir_resource_field(route->out, param->name) : NULL;
        ck_assert_msg(field != NULL && field->type == WEIR_FIELD_TYPE_TEXT &&
                          (route->flags & ROUTE_LIST) != 0,
                      "%s: is no text of what is listed", where);
    } else {
        ck_assert_msg(param->doc != NULL && *param->doc != '\0', "%s: says nothing", where);
    }
    ck_assert_msg(param->type != ROUTE_INT || param->lo < param->hi, "%s: no bounds", where);
    ck_assert_msg((param->type == ROUTE_WORD) == (param->words != NULL), "%s: words", where);
}

START_TEST(rows_say_what_their_parameters_are)
{
    const struct weir_route *route;
    size_t n = 0;
    EXPECT(200, "GET /health");
    for (size_t i = 0; (route = weir_route_at(api_routes, i)) != NULL; i++) {
        for (const struct weir_route_param *param = route->query;
             param != NULL && param->name != NULL; param++, n++) {
            check_param(route, param);
        }
    }
    ck_assert_uint_gt(n, 200);
}

END_TEST

/* A path for the pattern; what it names need not be there. */
static const char *path_of(const struct weir_route *route, char path[256])
{
    size_t n = 0;
    for (const char *p = route->pattern; *p != '\0'; p++) {
        n += (size_t)snprintf(path + n, 256 - n, "%.1s", *p == '{' ? "x" : p);
        p += *p == '{' ? strcspn(p, "}") : 0;
    }
    return path;
}

static bool is_refusal_of(const char *name)
{
    char begin[64];
    (void)snprintf(begin, sizeof begin, "query parameter %s: ", name);
    return strncmp(said_text("error.message"), begin, strlen(begin)) == 0;
}

/* Asks with a value, and says whether the row refused it. */
static bool is_refused(const struct weir_route *route, const char *name, const char *value)
{
    char path[256];
    int status = ask("GET %s?%s=%s", path_of(route, path), name, value);
    bool is_by_row = status == 400 && is_refusal_of(name);
    ck_assert_msg(!is_by_row || strstr(said_text("error.message"), "got \"") != NULL ||
                      strstr(said_text("error.message"), "is none of ") != NULL,
                  "%s", said_text("error.message"));
    return is_by_row;
}

static void try_ints(const struct weir_route *route, const struct weir_route_param *param,
                     struct weir_rng *rng)
{
    char value[32];
    static const char *const wrong[] = {"", "x", "1x", "0x1", "99999999999999999999", "1.0"};
    const char *bad = wrong[weir_rng_below(rng, WEIR_ARRAY_LEN(wrong))];
    ck_assert_msg(is_refused(route, param->name, bad), "%s?%s=%s: %s", route->pattern, param->name,
                  bad, said_text("error.message"));
    int64_t lo = param->type == ROUTE_BOOL ? 0 : param->lo,
            hi = param->type == ROUTE_BOOL ? 1 : param->hi;
    (void)snprintf(value, sizeof value, "%lld", (long long)lo);
    ck_assert_msg(!is_refused(route, param->name, value), "%s?%s=%s", route->pattern, param->name,
                  value);
    (void)snprintf(value, sizeof value, "%lld", (long long)hi + (hi < INT64_MAX));
    ck_assert_msg(is_refused(route, param->name, value) == (hi < INT64_MAX), "%s?%s=%s",
                  route->pattern, param->name, value);
}

START_TEST(each_row_refuses_what_is_not_of_its_types)
{
    const struct weir_route *route;
    struct weir_rng rng;
    size_t n = 0;
    (void)test_seed(&rng);
    callers.may_wait = true;
    for (size_t i = 0; (route = weir_route_at(api_routes, i)) != NULL; i++) {
        if (strcmp(route->method, "GET") != 0 || (route->flags & ROUTE_OPEN) != 0 ||
            strstr(route->pattern, "/nodes/{") != NULL ||
            strstr(route->pattern, "/ions/{") != NULL || route->owns == ROUTE_OWNS_DEPLOYED ||
            strchr(route->pattern, '{') != NULL) {
            continue; /* refused before, or their noun is not there */
        }
        for (const struct weir_route_param *param = route->query;
             param != NULL && param->name != NULL; param++) {
            if (param->type == ROUTE_INT || param->type == ROUTE_BOOL) {
                try_ints(route, param, &rng);
                n++;
            } else if (param->type == ROUTE_TIME) {
                ck_assert(is_refused(route, param->name, "yesterday"));
                ck_assert(!is_refused(route, param->name, "2026-01-31T10:00:00Z"));
                ck_assert(!is_refused(route, param->name, "2026-01-31"));
            } else if (param->type == ROUTE_WORD) {
                ck_assert(is_refused(route, param->name, "nothing"));
            }
        }
    }
    ck_assert_uint_gt(n, 30);
}

END_TEST

START_TEST(what_no_route_takes_is_refused_with_what_it_takes)
{
    EXPECT(400, "GET " API "/jobs?limt=3");
    ck_assert_str_eq(said_text("error.message"),
                     "query parameter limt: GET /api/v1/jobs takes limit, cursor, newest, state, "
                     "kind, ion, project, id, name, reason, outcome, eviction, pipeline, run, "
                     "created_by, limited_to; did you mean limit?");
    EXPECT(400, "GET " API "/session?verbose=1");
    ck_assert_str_eq(said_text("error.message"),
                     "query parameter verbose: GET /api/v1/session takes none");
    EXPECT(400, "POST " API "/projects?dry_run=1\n\n{\"name\":\"lab\"}");
    EXPECT(404, "GET " API "/projects/lab");                   /* it was not made */
    EXPECT(200, "GET " API "/projects?newest=1&name=default"); /* as all lists */
    EXPECT(200, "GET " API "/kinds?limit=100000");             /* it comes whole */
    EXPECT(400, "GET " API "/projects?limit=100000");
    EXPECT(200, "GET /health?utm=1"); /* anybody may be sent there with more */
}

END_TEST

START_TEST(words_are_taken_in_any_capitals_and_a_day_is_its_first_moment)
{
    EXPECT(200, "GET " API "/usage?by=DAY&from=2026-01-31&to=2026-02-01T00:00:00Z");
    ck_assert_str_eq(said_text("by"), "day");
    ck_assert_str_eq(said_text("from"), "2026-01-31T00:00:00.000Z");
    EXPECT(400, "GET " API "/usage?by=week");
    ck_assert_str_eq(said_text("error.message"),
                     "query parameter by: \"week\" is none of project, user, job, model, day, "
                     "hour, cluster");
}

END_TEST

WEIR_TEST_MAIN_WITH("query", callers_open, callers_close, rows_say_what_their_parameters_are,
                    each_row_refuses_what_is_not_of_its_types,
                    what_no_route_takes_is_refused_with_what_it_takes,
                    words_are_taken_in_any_capitals_and_a_day_is_its_first_moment)
