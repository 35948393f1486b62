/* Lists: pages to the end, also while records come and go; limits and filters. And bodies: what is
 * no JSON, of the wrong type or too large is refused with the place. */
#include "api/caller_fixture.h"

#include "api/core/dispatch.h"
#include "base/test_main.h"
#include "ion/decision.h"
#include "store/event.h"

#define N_RECORDS 57

/** How often each key was seen while reading a list to its end. */
struct seen {
    char keys[400][64];
    int counts[400];
    size_t n, n_pages;
};

static void note(struct seen *seen, const char *key)
{
    size_t i = 0;
    while (i < seen->n && strcmp(seen->keys[i], key) != 0) {
        i++;
    }
    ck_assert_uint_lt(i, WEIR_ARRAY_LEN(seen->keys));
    (void)snprintf(seen->keys[i], sizeof seen->keys[i], "%s", key);
    seen->counts[i]++;
    seen->n = seen->n > i ? seen->n : i + 1;
}

static int count_of(const struct seen *seen, const char *key)
{
    for (size_t i = 0; i < seen->n; i++) {
        if (strcmp(seen->keys[i], key) == 0) {
            return seen->counts[i];
        }
    }
    return 0;
}

/** Read a list to its end; `between` runs after each page. */
static void read_all(const char *target, const char *key, void (*between)(int page),
                     struct seen *seen)
{
    char cursor[512] = "";
    memset(seen, 0, sizeof *seen);
    do {
        const char *sep = strchr(target, '?') != NULL ? "&" : "?";
        EXPECT(200, "GET " API "%s%s%s%s", target, cursor[0] != '\0' ? sep : "",
               cursor[0] != '\0' ? "cursor=" : "", cursor);
        size_t i;
        json_t *item;
        ck_assert(json_is_array(said("items")));
        json_array_foreach(said("items"), i, item)
        {
            const json_t *value = json_object_get(item, key);
            char number[32];
            (void)snprintf(number, sizeof number, "%lld", (long long)json_integer_value(value));
            note(seen, json_is_string(value) ? json_string_value(value) : number);
        }
        ck_assert(json_is_null(said("next")) || json_is_string(said("next")));
        cursor[0] = '\0';
        for (const char *p = said_text("next"); *p != '\0'; p++) { /* as a query takes it */
            size_t len = strlen(cursor);
            (void)snprintf(cursor + len, sizeof cursor - len, "%%%02x", (unsigned char)*p);
        }
        if (between != NULL) {
            between((int)seen->n_pages);
        }
        ck_assert_uint_lt(++seen->n_pages, 100);
    } while (cursor[0] != '\0');
}

static void add_project(const char *prefix, int i)
{
    EXPECT(200, "POST " API "/projects\n\n{\"name\":\"%s%03d\"}", prefix, i);
}

static void add_projects(void)
{
    for (int i = 0; i < N_RECORDS; i++) {
        add_project("p", i);
    }
}

/** Behind where the reader is, in front of it, and far away. */
static void insert_between(int page)
{
    add_project("a", page);
    add_project("p000-", page);
    add_project("z", page);
}

static struct seen seen;

START_TEST(a_list_gives_each_record_once)
{
    add_projects();
    for (int limit = 1; limit <= N_RECORDS + 2; limit += 7) {
        char target[64];
        (void)snprintf(target, sizeof target, "/projects?limit=%d", limit);
        read_all(target, "name", NULL, &seen);
        ck_assert_uint_eq(seen.n, N_RECORDS + 1); /* and "default" */
        for (size_t i = 0; i < seen.n; i++) {
            ck_assert_int_eq(seen.counts[i], 1);
        }
        ck_assert_uint_eq(seen.n_pages, (size_t)(N_RECORDS + limit) / (size_t)limit);
    }
}

END_TEST

START_TEST(what_was_there_comes_once_whatever_is_put_in_meanwhile)
{
    add_projects();
    read_all("/projects?limit=10", "name", insert_between, &seen);
    for (int i = 0; i < N_RECORDS; i++) {
        char name[32];
        (void)snprintf(name, sizeof name, "p%03d", i);
        ck_assert_int_eq(count_of(&seen, name), 1);
    }
    for (size_t i = 0; i < seen.n; i++) {
        ck_assert_msg(seen.counts[i] == 1, "%s came %d times", seen.keys[i], seen.counts[i]);
    }
    ck_assert_int_eq(count_of(&seen, "z000"), 1); /* in front of the reader when it came */
    ck_assert_int_eq(count_of(&seen, "a000"), 0); /* behind */
}

END_TEST

START_TEST(limits_are_checked)
{
    static const char *const wrong[] = {
        "0", "1001", "-1", "ten", "", "1e3", "99999999999999999999"};
    for (size_t i = 0; i < WEIR_ARRAY_LEN(wrong); i++) {
        EXPECT_ERROR(400, "query parameter limit: expected an integer from 1 to 1000",
                     "GET " API "/projects?limit=%s", wrong[i]);
        EXPECT_ERROR(400, "from 1 to 1000", "GET " API "/runs?limit=%s",
                     i == 1 ? "1001" : wrong[i]);
    }
    EXPECT(200, "GET " API "/projects?limit=1000");
    EXPECT_ERROR(400, "is not a cursor", "GET " API "/jobs?newest=1&cursor=none-of-ours");
    EXPECT(400, "GET " API "/events?cursor=none-of-ours");
    EXPECT_ERROR(400, "is not a cursor", "GET " API "/runs?cursor=none-of-ours");
}

END_TEST

START_TEST(a_list_has_100_unless_more_are_asked_for)
{
    for (int i = 0; i < 101; i++) {
        add_project("q", i);
    }
    EXPECT(200, "GET " API "/projects");
    ck_assert_uint_eq(json_array_size(said("items")), 100);
    ck_assert(json_is_string(said("next")));
}

END_TEST

/* ---- jobs, by newest and by filters -------------------------------------------------------- */

static char job_ids[N_RECORDS][64];

static void add_jobs(void)
{
    EXPECT(200, "POST " API "/projects\n\n{\"name\":\"lab\"}");
    callers.now_ms = 1000000;
    for (int i = 0; i < N_RECORDS; i++) {
        callers.now_ms += i % 5 == 0; /* several of one moment */
        EXPECT(200,
               "POST " API "/jobs\n\n{\"name\":\"j%d\",\"kind\":\"command\","
               "\"project\":\"%s\",\"spec\":{\"argv\":[\"true\"]}}",
               i, i % 3 == 0 ? "lab" : "default");
        (void)snprintf(job_ids[i], sizeof job_ids[i], "%s", said_text("id"));
    }
}

START_TEST(jobs_come_newest_first_and_once)
{
    add_jobs();
    read_all("/jobs?newest=1&limit=4", "id", NULL, &seen);
    ck_assert_uint_eq(seen.n, N_RECORDS);
    int64_t last = INT64_MAX;
    for (size_t i = 0; i < seen.n; i++) {
        ck_assert_int_eq(seen.counts[i], 1);
        EXPECT(200, "GET " API "/jobs/%s", seen.keys[i]);
        int64_t made = 0;
        ck_assert_int_eq(weir_time_parse(said_text("created_ms"), &made), WEIR_OK);
        ck_assert_int_le(made, last);
        last = made;
    }
}

END_TEST

START_TEST(filters_are_by_text_fields_and_together)
{
    add_jobs();
    EXPECT(200, "POST " API "/jobs/%s/cancel", job_ids[0]); /* of project lab */
    read_all("/jobs?project=lab&limit=5", "id", NULL, &seen);
    ck_assert_uint_eq(seen.n, N_RECORDS / 3);
    read_all("/jobs?project=lab&state=CANCELLED", "id", NULL, &seen);
    ck_assert_uint_eq(seen.n, 1);
    ck_assert_int_eq(count_of(&seen, job_ids[0]), 1);
    read_all("/jobs?project=default&state=CANCELLED", "id", NULL, &seen);
    ck_assert_uint_eq(seen.n, 0);
    read_all("/jobs?name=j7", "id", NULL, &seen);
    ck_assert_uint_eq(seen.n, 1);
    EXPECT(400, "GET " API "/jobs?colour=red"); /* is of no field */
    read_all("/jobs?project=%27%20OR%201%3D1--", "id", NULL, &seen);
    ck_assert_uint_eq(seen.n, 0);
}

END_TEST

START_TEST(a_users_hash_is_no_filter)
{
    EXPECT(400, "GET " API "/tokens?secret_hash=none"); /* hidden: is of no field */
    EXPECT(200, "GET " API "/tokens?name=none");
    ck_assert_uint_eq(json_array_size(said("items")), 0);
}

END_TEST

/* ---- numbered records ------------------------------------------------------------------------ */

static weir_status append_events(struct weir_txn *txn, void *context, struct weir_error *err)
{
    const int *n = context;
    for (int i = 0; i < *n; i++) {
        struct weir_event event = {.time_ms = 1 + i,
                                   .topic = i % 2 == 0 ? "jobs" : "system",
                                   .kind = "k",
                                   .severity = "info",
                                   .subject = "s/1",
                                   .actor = "ann",
                                   .message = "m"};
        WEIR_TRY(weir_event_append(txn, &event, NULL, err));
    }
    return WEIR_OK;
}

static void add_events(int n)
{
    struct weir_error err;
    must(weir_store_write(callers.fixture.store, append_events, &n, &err), &err);
}

static void more_events(int page)
{
    add_events(page % 3);
}

START_TEST(events_are_read_from_a_number_on_or_newest_first)
{
    add_events(N_RECORDS);
    EXPECT(200, "GET " API "/events?limit=1");
    int64_t newest = json_integer_value(said("items.0.seq"));
    read_all("/events?limit=10", "seq", more_events, &seen);
    for (size_t i = 0; i < seen.n; i++) {
        ck_assert_int_eq(seen.counts[i], 1);
        ck_assert_int_le(strtoll(seen.keys[i], NULL, 10), newest); /* newer ones lie behind */
    }
    ck_assert_uint_ge(seen.n, N_RECORDS);
    EXPECT(200, "GET " API "/events?after=%lld&limit=1000", (long long)newest - 5);
    ck_assert_uint_ge(json_array_size(said("items")), 5);
    for (size_t i = 0; i < 5; i++) { /* in order from there on */
        const json_t *event = json_array_get(said("items"), i);
        ck_assert_int_eq(json_integer_value(json_object_get(event, "seq")),
                         newest - 4 + (int64_t)i);
    }
    EXPECT(200, "GET " API "/events?topic=system&limit=1000");
    ck_assert_uint_ge(json_array_size(said("items")), N_RECORDS / 2);
    EXPECT(400, "GET " API "/events?after=x");
}

END_TEST

/* ---- bodies ---------------------------------------------------------------------------------- */

START_TEST(a_body_that_is_no_object_is_refused)
{
    static const char *const wrong[] = {"{",
                                        "{\"name\":}",
                                        "nul",
                                        "[]",
                                        "7",
                                        "\"text\"",
                                        "{\"name\":\"a\"} more",
                                        "{\"name\":\"a\",\"name\":\"b\"}"};
    for (size_t i = 0; i < WEIR_ARRAY_LEN(wrong); i++) {
        EXPECT_ERROR(400, "request body", "POST " API "/projects\n\n%s", wrong[i]);
    }
    EXPECT_STATUS(400, ask_bytes("POST " API "/projects\n\n{\"name\":\"\xff\"}",
                                 strlen("POST " API "/projects\n\n{\"name\":\"\xff\"}")));
}

END_TEST

START_TEST(what_is_of_the_wrong_type_is_named)
{
    static const struct {
        const char *request, *body, *place;
    } wrong[] = {
        {"POST " API "/projects", "{\"name\":7}", "$.name: expected "},
        {"POST " API "/projects", "{}", "$.name"},
        {"POST " API "/projects", "{\"name\":\"a\",\"colour\":\"red\"}", "$.colour: unknown field"},
        {"POST " API "/projects", "{\"name\":\"-a\"}", "$.name"},
        {"POST " API "/projects", "{\"name\":\"a\",\"created_ms\":\"2026-01-01T00:00:00Z\"}",
         "$.created_ms"},
        {"POST " API "/jobs", "{\"name\":1}", "$.name: expected string"},
        {"POST " API "/jobs", "{\"name\":\"a\",\"kind\":\"command\"}", "$.spec"},
        {"POST " API "/jobs", "{\"name\":\"A b\",\"kind\":\"command\",\"spec\":{}}", "$.name"},
        {"POST " API "/jobs",
         "{\"name\":\"a\",\"kind\":\"command\",\"spec\":{},\"max_restarts\":\"3\"}",
         "$.max_restarts: expected integer"},
        {"POST " API "/jobs",
         "{\"name\":\"a\",\"kind\":\"command\",\"spec\":{},\"max_restarts\":1001}",
         "$.max_restarts: expected an integer from 0 to 1000"},
        {"POST " API "/jobs", "{\"prio\":1}", "$.prio: unknown field"},
        {"PUT " API "/nodes/n", "{\"cpu_slots\":\"4\"}", "$.cpu_slots: expected integer"},
        {"PUT " API "/nodes/n", "{\"cpu_slots\":0}", "$.cpu_slots: expected 1 to 4096, got 0"},
        {"PUT " API "/nodes/n", "{\"cpu_slots\":1,\"memory_bytes\":-1}", "$.memory_bytes"},
        {"PUT " API "/nodes/n", "{\"disk_bytes\":1,\"disk_free_bytes\":2}", "$.disk_free_bytes"},
        {"PUT " API "/nodes/Big", "{\"cpu_slots\":1}", "not a name"},
        {"POST " API "/runs/r/metrics", "{}", "$.metrics: expected an array"},
        {"POST " API "/runs/r/metrics", "{\"metrics\":[{\"key\":\"a\",\"step\":\"x\"}]}",
         "$.metrics[0].step"},
        {"POST " API "/decisions", "{\"decisions\":{}}", "$.decisions: expected an array"},
        {"POST " API "/decisions", "{\"decisions\":[{\"id\":1}]}", "$.decisions[0].id"},
        {"POST " API "/decisions", "{\"decisions\":[],\"more\":1}", "$.more: unknown field"},
        {"POST " API "/decisions", "{\"decisions\":[{\"id\":\"a\",\"colour\":\"red\"}]}",
         "$.decisions[0].colour: unknown field"},
        {"POST " API "/decisions",
         "{\"decisions\":[{\"id\":\"a\",\"ion\":\"x\",\"camera\":\"c\",\"verdict\":\"deny\"}]}",
         "$.decisions[0].frame: missing"},
        {"POST " API "/runs/r/metrics", "{\"metrics\":[{\"key\":\"a\",\"step\":1}]}",
         "$.metrics[0].value: missing"},
        {"POST " API "/runs/r/metrics",
         "{\"metrics\":[{\"key\":\"a\",\"step\":1,\"value\":1,\"x\":1}]}",
         "$.metrics[0].x: unknown field"},
        {"POST " API "/health-reports",
         "{\"ion\":\"x\",\"pipeline\":\"p\",\"signal\":\"score\",\"statistic\":\"ks\",\"p\":1}",
         "$.p: unknown field"},
        {"POST " API "/health-reports", "{\"ion\":\"x\",\"pipeline\":\"p\",\"signal\":\"score\"}",
         "$.statistic: missing"},
        {"PUT " API "/ions/x/pipelines/p/threshold",
         "{\"rule\":\"both\",\"deployment_revision\":1}", "$.threshold: missing"},
        {"POST " API "/models/m/versions", "{\"id\":\"a\",\"blob\":\"b\",\"size\":1}",
         "$.size: unknown field"},
        {"PUT " API "/retention", "{\"decisions\":30}", "$.decisions: expected a limit"},
        {"PUT " API "/retention", "{\"decisions\":\"30x\"}", "$.decisions: "},
        {"PUT " API "/retention", "{\"pens\":\"30d\"}", "$.pens: no rule has that name"},
        {"POST " API "/ions/x/trigger", "{}", "$.pipeline: missing"},
        {"POST " API "/ions/x/approve", "{\"version\":\"1\"}", "$.version: expected integer"},
        {"POST " API "/ions/x/approve", "{\"vesion\":1}", "$.vesion: unknown field"},
        {"PUT " API "/ions/x/members/ann", "{\"list\":\"guest\"}", "$.list: expected "},
        {"PATCH " API "/runs/r", "{\"state\":\"FAILED\"}", "$.state: unknown field"},
        {"PATCH " API "/users/ann", "{\"role\":7}", "$.role"},
    };

    for (size_t i = 0; i < WEIR_ARRAY_LEN(wrong); i++) {
        EXPECT_ERROR(400, wrong[i].place, "%s\n\n%s", wrong[i].request, wrong[i].body);
        ck_assert_str_eq(said_text("error.status"), "INVALID");
    }
}

END_TEST

START_TEST(what_is_too_large_is_named_with_its_maximum)
{
    static char text[4098];
    memset(text, 'a', sizeof text - 1);
    EXPECT_ERROR(413, "$.description",
                 "POST " API "/projects\n\n{\"name\":\"a\",\"description\":"
                 "\"%s\"}",
                 text);
    ck_assert_ptr_nonnull(strstr(said_text("error.message"), "4096"));
    EXPECT_ERROR(413, "$.note: 4097 bytes; at most 4096",
                 "POST " API "/ions/x/approve\n\n{\"note\":"
                 "\"%s\"}",
                 text);
    text[4096] = '\0';
    EXPECT(200, "POST " API "/projects\n\n{\"name\":\"a\",\"description\":\"%s\"}", text);
    text[64] = '\0';
    EXPECT_ERROR(400, "$.name", "POST " API "/projects\n\n{\"name\":\"%s\"}", text);
    text[63] = '\0';
    EXPECT(200, "POST " API "/projects\n\n{\"name\":\"%s\"}", text);
}

END_TEST

START_TEST(a_body_of_too_many_values_is_refused_before_it_is_read)
{
    const size_t n = API_BODY_MAX_VALUES;
    static const char head[] = "POST " API "/projects\n\n{\"a\":[";
    char *bytes = malloc(sizeof head + 2 * n + 4), *to = bytes;
    ck_assert_ptr_nonnull(bytes);
    memcpy(to, head, strlen(head));
    to += strlen(head);
    for (size_t i = 0; i < n; i++) {
        *to++ = '1';
        *to++ = ',';
    }
    memcpy(to - 1, "]}", 2);
    EXPECT_STATUS(413, ask_bytes(bytes, (size_t)(to + 1 - bytes)));
    ck_assert_ptr_nonnull(strstr(said_text("error.message"), "262144 values"));
    free(bytes);
}

END_TEST

/* How much of a body the HTTP server reads for the API. */
START_TEST(bodies_have_their_maximum_by_route)
{
    static const struct {
        const char *request;
        uint64_t max_bytes;
        bool to_file;
    } rules[] = {
        {"POST /login", 4 << 10, false},
        {"POST " API "/projects", 1 << 20, false},
        {"POST " API "/jobs", 4 << 20, false},
        {"POST " API "/decisions", 4 << 20, false},
        {"PUT " API "/datasets/d/files/c/f", 64 << 20, true},
        {"PUT " API "/blobs/x", (uint64_t)4 << 30, true},
    };

    for (size_t i = 0; i < WEIR_ARRAY_LEN(rules); i++) {
        struct weir_http_body_rule rule = {.max_bytes = 1 << 20};
        (void)ask("%s", rules[i].request);
        weir_api_body_rule(callers.fixture.api, &callers.x->request, &rule);
        ck_assert_uint_eq(rule.max_bytes, rules[i].max_bytes);
        ck_assert_int_eq(rule.to_file, rules[i].to_file);
    }
}

END_TEST

/* Before a long body is read, its sender is asked who it is. */
START_TEST(who_may_not_is_told_before_the_body_is_read)
{
    char vic[BEARER_BYTES];
    make_caller("vic", "viewer", "", vic);

    const struct {
        const char *authorization;
        int status;
    } who[] = {{"", 401}, {vic, 403}};

    for (size_t i = 0; i < WEIR_ARRAY_LEN(who); i++) {
        (void)ask_as(who[i].authorization, "PUT " API "/blobs/x");
        response_fini(&callers.x->response);
        response_init(&callers.x->response);
        weir_api_admit(callers.fixture.api, &callers.x->request, &callers.x->response);
        ck_assert_int_eq(callers.x->response.http_status, who[i].status);
    }
    (void)ask("PUT " API "/blobs/x");
    response_fini(&callers.x->response);
    response_init(&callers.x->response);
    weir_api_admit(callers.fixture.api, &callers.x->request, &callers.x->response);
    ck_assert_int_eq(callers.x->response.kind, ANSWER_NONE);
}

END_TEST

WEIR_TEST_MAIN_WITH("list", callers_open, callers_close, a_list_gives_each_record_once,
                    what_was_there_comes_once_whatever_is_put_in_meanwhile, limits_are_checked,
                    a_list_has_100_unless_more_are_asked_for, jobs_come_newest_first_and_once,
                    filters_are_by_text_fields_and_together, a_users_hash_is_no_filter,
                    events_are_read_from_a_number_on_or_newest_first,
                    a_body_that_is_no_object_is_refused, what_is_of_the_wrong_type_is_named,
                    what_is_too_large_is_named_with_its_maximum,
                    a_body_of_too_many_values_is_refused_before_it_is_read,
                    bodies_have_their_maximum_by_route, who_may_not_is_told_before_the_body_is_read)
