/* Lists filter by what they take: of each list, and each text field of what it lists, either all rows of the answer have
 * the value that was asked for, and those that have it are there, or the field is refused with the names that the list
 * takes. No list answers as if nothing had been asked. */
#include "api/lineage_fixture.h"

#include "api/routes.h"
#include "base/test_main.h"
#include "base/test_seed.h"

/* Two or three rows of as many nouns as requests alone make. */
static void fill(void)
{
    static const char *const requests[] = {
        "PUT " API "/alert-receivers/hook\n\n"
        "{\"kind\":\"webhook\",\"options\":{\"url\":\"http://127.0.0.1:1/\"}}",
        "PUT " API "/alert-receivers/horn\n\n"
        "{\"kind\":\"webhook\",\"options\":{\"url\":\"http://127.0.0.1:1/\"}}",
        "PUT " API "/alert-rules/r1\n\n{\"receivers\":[\"hook\"],\"project\":\"blue\"}",
        "PUT " API "/alert-rules/r2\n\n{\"receivers\":[\"horn\"],\"project\":\"red\"}",
        "POST " API "/alert-silences\n\n{\"kinds\":[\"drift\"],\"project\":\"blue\",\"until_ms\":"
        "\"2026-06-01T00:00:00Z\"}",
        "POST " API "/groups\n\n{\"name\":\"crew\"}",
        "POST " API "/groups\n\n{\"name\":\"team\"}",
        "PUT " API "/groups/crew/members/bea\n\n{}",
        "PUT " API "/groups/crew/members/rex\n\n{}",
        "PUT " API "/projects/blue/members/group/crew\n\n{\"role\":\"operator\"}",
        "PUT " API "/projects/blue/secrets/KEY\n\n{\"value\":\"one\"}",
        "PUT " API "/projects/blue/secrets/LOCK\n\n{\"value\":\"two\"}",
        "POST " API "/roles\n\n{\"name\":\"looker\",\"like\":\"viewer\"}",
        "POST " API "/node-joins\n\n{}",
        "PUT " API "/nodes/n1\n\n{\"cpu_slots\":4,\"agent_version\":\"1\"}",
        "PUT " API "/nodes/n2\n\n{\"cpu_slots\":4,\"agent_version\":\"2\"}",
        "POST " API "/jobs\n\n"
        "{\"name\":\"j1\",\"kind\":\"command\",\"spec\":{\"argv\":[\"true\"]}}",
        "POST " API "/jobs\n\n{\"name\":\"j2\",\"project\":\"red\",\"kind\":\"command\",\"spec\":{"
        "\"argv\":[\"true\"]}}",
        "POST " API "/experiments\n\n{\"name\":\"first\",\"project\":\"blue\"}",
        "POST " API "/runs\n\n{\"name\":\"r1\",\"project\":\"blue\"}",
        "POST " API "/datasets\n\n{\"name\":\"faces\",\"project\":\"red\"}",
        "PUT " API "/models/face/aliases/best\n\n{\"version\":1}",
        "PUT " API "/models/face/aliases/last\n\n{\"version\":1}",
        "POST " API "/ions/door/kpis\n\n{\"name\":\"errors\",\"value\":1}",
        "POST " API "/ions/door/kpis\n\n{\"name\":\"visits\",\"value\":2}",
        "PUT " API "/queues/fast\n\n{\"project\":\"red\"}",
    };

    ck_assert_int_eq(weir_time_parse("2026-05-01T00:00:00Z", &callers.now_ms), WEIR_OK);
    lineage_fill();
    for (size_t i = 0; i < WEIR_ARRAY_LEN(requests); i++) {
        int status = ask("%s", requests[i]);
        ck_assert_msg(status == 200 || status == 204, "%.60s: %d %s", requests[i], status,
                      said_text("error.message"));
    }
}

/* The name of something that is there, for a parameter of a path that begins so. */
static const char *name_for(const char *path)
{
    static const char *const names[][2] = {
        {API "/datasets/", "staff"}, {API "/ions/", "door"},   {API "/models/", "face"},
        {API "/projects/", "blue"},  {API "/groups/", "crew"}, {API "/runs/", "run-1"},
        {API "/jobs/", "none"},      {API "/sweeps/", "none"},
    };

    for (size_t i = 0; i < WEIR_ARRAY_LEN(names); i++) {
        if (strncmp(path, names[i][0], strlen(names[i][0])) == 0) {
            return names[i][1];
        }
    }
    return "x";
}

static void make_path(const struct weir_route *route, char path[256])
{
    size_t n = 0;
    for (const char *p = route->pattern; *p != '\0'; p++) {
        const char *text = *p != '{' ? p : strncmp(p, "{version}", 9) == 0 ? "1" : name_for(path);
        n += (size_t)snprintf(path + n, 256 - n, *p != '{' ? "%.1s" : "%s", text);
        p += *p == '{' ? strcspn(p, "}") : 0;
    }
}

/** What was found of one list. */
struct found {
    size_t n_filtered, n_refused, n_of_rows;
};

/* A value of that field that some row has; "": none. */
static void pick_value(const json_t *items, const char *name, struct weir_rng *rng, char out[128])
{
    size_t n = json_array_size(items), first = n > 0 ? weir_rng_below(rng, n) : 0;
    out[0] = '\0';
    for (size_t i = 0; i < n && out[0] == '\0'; i++) {
        const json_t *value = json_object_get(json_array_get(items, (first + i) % n), name);
        const char *text = json_is_string(value) ? json_string_value(value) : "";
        bool is_plain = strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                     "0123456789-_./:") == strlen(text);
        (void)snprintf(out, 128, "%s", is_plain && strlen(text) < 100 ? text : "");
    }
}

static size_t count_of(const json_t *items, const char *name, const char *value)
{
    size_t n = 0, i;
    const json_t *item;
    json_array_foreach((json_t *)items, i, item)
    {
        const char *text = json_string_value(json_object_get(item, name));
        n += text != NULL && strcmp(text, value) == 0;
    }
    return n;
}

/* It means something else there: how long the page is, a search, a status of more than one word. */
static bool is_own_parameter(const struct weir_route *route, const char *name)
{
    for (const struct weir_route_param *param = route->query; param != NULL && param->name != NULL;
         param++) {
        if (strcmp(param->name, name) == 0) {
            return param->type == ROUTE_TEXT;
        }
    }
    return strcmp(name, "limit") == 0;
}

static void try_value(const char *path, const char *name, const char *value, size_t n_there,
                      struct found *found)
{
    char begin[128];
    int status = ask("GET %s?%s=%s", path, name, value);
    if (status == 400) {
        (void)snprintf(begin, sizeof begin, "query parameter %s: ", name);
        const char *why = said_text("error.message");
        bool is_word = strstr(why, "is none of") != NULL;
        ck_assert_msg(is_word || strncmp(why, begin, strlen(begin)) == 0, "%s?%s: %s", path, name,
                      why);
        ck_assert_msg(is_word || strstr(why, " takes ") != NULL, "%s?%s: %s", path, name, why);
        ck_assert_msg(!is_word || n_there == 0, "%s?%s=%s: %s", path, name, value, why);
        found->n_refused += !is_word;
        return;
    }
    ck_assert_msg(status == 200, "%s?%s=%s: %d %s", path, name, value, status,
                  said_text("error.message"));
    const json_t *items = said("items");
    size_t n_fit = count_of(items, name, value);
    ck_assert_msg(n_fit == json_array_size(items), "%s?%s=%s: %zu of %zu rows fit", path, name,
                  value, n_fit, json_array_size(items));
    ck_assert_msg(n_fit == n_there, "%s?%s=%s: %zu rows, and %zu are there", path, name, value,
                  n_fit, n_there);
    found->n_filtered++;
}

/* Each text field that the answer shows, by a value that rows have and by one that none has. */
static void try_list(const struct weir_route *route, struct weir_rng *rng, struct found *found)
{
    char path[256], value[128];
    make_path(route, path);
    int status = ask("GET %s", path);
    ck_assert_msg(status == 200 || status == 404, "%s: %d %s", path, status,
                  said_text("error.message"));
    if (status != 200) {
        return;
    }
    json_t *all = json_deep_copy(said("items"));
    found->n_of_rows += json_array_size(all) > 0;
    for (size_t i = 0; i < route->out->n_fields; i++) {
        const struct weir_field *field = &route->out->fields[i];
        if (field->type != WEIR_FIELD_TYPE_TEXT || is_own_parameter(route, field->name)) {
            continue;
        }
        pick_value(all, field->name, rng, value);
        if (value[0] != '\0') {
            try_value(path, field->name, value, count_of(all, field->name, value), found);
        }
        (void)snprintf(value, sizeof value, "none-%llu",
                       (unsigned long long)weir_rng_below(rng, 1000000));
        try_value(path, field->name, value, 0, found);
    }
    json_decref(all);
}

START_TEST(a_list_filters_by_a_field_or_refuses_it)
{
    const struct weir_route *route;
    struct weir_rng rng;
    struct found found = {0};
    size_t n_lists = 0;
    (void)test_seed(&rng);
    fill();
    for (size_t i = 0; (route = weir_route_at(api_routes, i)) != NULL; i++) {
        if ((route->flags & ROUTE_LIST) != 0 && route->out != NULL) {
            ck_assert_str_eq(route->method, "GET");
            try_list(route, &rng, &found);
            n_lists++;
        }
    }
    printf("%zu lists, %zu with rows; %zu filters held, %zu were refused\n", n_lists,
           found.n_of_rows, found.n_filtered, found.n_refused);
    ck_assert_uint_gt(n_lists, 50);
    ck_assert_uint_gt(found.n_of_rows, 25);
    ck_assert_uint_gt(found.n_filtered, 150);
    ck_assert_uint_gt(found.n_refused, 50);
}

END_TEST

WEIR_TEST_MAIN_WITH("filter_routes", callers_open, callers_close,
                    a_list_filters_by_a_field_or_refuses_it)
