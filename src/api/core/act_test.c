/* Every change that a person asks for is in the audit: the whole table of routes is walked. */
#include "api/request_fixture.h"

#include "api/core/act.h"
#include "api/core/call.h"
#include "api/routes.h"
#include "base/test_main.h"
#include "store/chain.h"
#include "store/event.h"
#include "store/table.h"

#define SHA "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" /* of "abc" */

#define WAITS 999 /* in the place of a status: it answers later */

/* Routes that the walk asks, and of those the ones that do something with what it asks. */
#define N_CHANGES 89
#define N_DONE    26

static struct request_fixture fixture;
static struct weir_arena arena;

static void set_up(void)
{
    request_fixture_open(&fixture);
    weir_arena_init(&arena, 0);
}

static void tear_down(void)
{
    weir_arena_fini(&arena);
    request_fixture_close(&fixture);
}

static int ask(const char *method, const char *target, const char *body)
{
    char *text = weir_arena_printf(&arena, "%s %s\n\n%s", method, target, body);
    struct http_exchange *x = request_fixture_make(&fixture, text, strlen(text));
    ck_assert_ptr_nonnull(x);
    request_fixture_handle(&fixture, x);
    int status = x->response.kind == ANSWER_WAIT ? WAITS : x->response.http_status;
    request_fixture_free(x);
    return status;
}

struct found {
    int64_t n;
    struct weir_event last;
};

/* Acts of ann: uses of the token are accesses. */
static weir_status look(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct found *found = context;
    void *items;
    size_t n;
    const struct weir_query query = {WEIR_FILTERS(WEIR_FILTER_TEXT("topic", EQ, "audit"),
                                                  WEIR_FILTER_TEXT("actor", EQ, "ann"),
                                                  WEIR_FILTER_TEXT("kind", NE, "token_used"),
                                                  WEIR_FILTER_TEXT("kind", NE, "access_refused")),
                                     .order_by = "seq", .is_descending = true, .limit = 1};
    WEIR_TRY(weir_txn_count(txn, &weir_event_resource, &query, &found->n, err));
    WEIR_TRY(weir_txn_list(txn, &weir_event_resource, &query, &arena, &items, &n, NULL, err));
    found->last = n > 0 ? *(const struct weir_event *)items : (struct weir_event){0};
    return WEIR_OK;
}

static struct found acts(void)
{
    struct found found = {0};
    struct weir_error err;
    must(weir_store_read(fixture.store, look, &found, &err), &err);
    return found;
}

static const struct {
    int status;
    const char *method, *target, *body, *kind, *subject;
} done[] = {
    {200, "POST", "/api/v1/projects", "{\"name\":\"vision\"}", "project_created", "project/vision"},
    {200, "POST", "/api/v1/datasets", "{\"name\":\"faces\"}", "datasets_change", "dataset/faces"},
    {200, "PUT", "/api/v1/datasets/faces/files/ann/1.pgm", "abc", "datasets_change",
     "dataset/faces"},
    {204, "DELETE", "/api/v1/datasets/faces/files/ann/1.pgm", "", "datasets_change",
     "dataset/faces"},
    {204, "DELETE", "/api/v1/datasets/faces/files/ann", "", "datasets_change", "dataset/faces"},
    {200, "PUT", "/api/v1/blobs/" SHA, "abc", "blobs_write", "blob/" SHA},
    /* Its file is looked at meanwhile: the act is written with the version. */
    {WAITS, "POST", "/api/v1/models/door/versions",
     "{\"id\":\"018f0000-0000-7000-8000-000000000001\","
     "\"blob\":\"" SHA "\"}",
     "models_register", "model/door"},
    {200, "PUT", "/api/v1/queues/default", "{}", "queues_change", "queue/default"},
    {200, "PUT", "/api/v1/retention", "{\"decisions\":\"30d\"}", "platform_change", "retention"},
    {200, "PUT", "/api/v1/projects/vision/retention", "{\"logs\":\"1d\"}",
     "project_retention_changed", "project/vision"},
    {200, "PUT", "/api/v1/retention/bounds", "{\"logs\":\"1d..90d\"}", "retention_bounds_changed",
     "retention"},
    {204, "POST", "/api/v1/store/sweep", "", "platform_change", "store"},
    {200, "POST", "/api/v1/groups", "{\"name\":\"team\"}", "group_created", "group/team"},
};

START_TEST(what_a_person_changes_is_in_the_audit_with_who_and_what)
{
    for (size_t i = 0; i < WEIR_ARRAY_LEN(done); i++) {
        struct found before = acts();
        int status = ask(done[i].method, done[i].target, done[i].body);
        struct found after = acts();
        ck_assert_msg(status == done[i].status, "%s %s: %d", done[i].method, done[i].target,
                      status);
        if (status == WAITS) {
            ck_assert_int_eq(after.n, before.n);
            continue;
        }
        ck_assert_msg(after.n == before.n + 1, "%s %s: %lld events, %lld before", done[i].method,
                      done[i].target, (long long)after.n, (long long)before.n);
        ck_assert_str_eq(after.last.kind, done[i].kind);
        ck_assert_str_eq(after.last.subject, done[i].subject);
        ck_assert_str_eq(after.last.actor, "ann");
        ck_assert_int_gt(after.last.chain, 0);
        ck_assert_ptr_nonnull(strstr(after.last.data, "127.0.0.1"));
    }
}

END_TEST

START_TEST(what_takes_data_in_is_written_once_a_minute)
{
    ck_assert_int_lt(ask("POST", "/api/v1/datasets", "{\"name\":\"faces\"}"), 300);
    int64_t n = acts().n;
    for (int i = 0; i < 5; i++) {
        ck_assert_int_lt(ask("PUT", "/api/v1/datasets/faces/files/ann/1.pgm", "abc"), 300);
    }
    ck_assert_int_ge(acts().n, n + 1);
    ck_assert_int_le(acts().n, n + 2); /* a minute may end meanwhile */
}

END_TEST

/* One that failed says nothing of those that follow it: what was done is in the audit. */
START_TEST(a_failure_of_what_takes_data_in_hides_no_success)
{
    ck_assert_int_lt(ask("POST", "/api/v1/datasets", "{\"name\":\"faces\"}"), 300);
    int64_t n = acts().n;
    ck_assert_int_eq(ask("PUT", "/api/v1/datasets/faces/files/ann/.1.pgm", "abc"), 400);
    ck_assert_int_eq(acts().n, n);
    ck_assert_int_lt(ask("PUT", "/api/v1/datasets/faces/files/ann/1.pgm", "abc"), 300);
    ck_assert_int_eq(acts().n, n + 1);
}

END_TEST

/* A freeze goes on, whoever waits for it: its act is there when it begins, and once. */
START_TEST(a_freeze_is_an_act_when_it_begins)
{
    static const char text[] = "POST /api/v1/datasets/faces/versions\n\n{}";
    ck_assert_int_lt(ask("POST", "/api/v1/datasets", "{\"name\":\"faces\"}"), 300);
    ck_assert_int_lt(ask("PUT", "/api/v1/datasets/faces/files/ann/1.pgm", "abc"), 300);
    int64_t n = acts().n;
    ck_assert_int_eq(ask("POST", "/api/v1/datasets/nowhere/versions", "{}"), 404);
    ck_assert_int_eq(acts().n, n);
    struct http_exchange *x = request_fixture_make(&fixture, text, strlen(text));
    ck_assert_ptr_nonnull(x);
    request_fixture_handle(&fixture, x);
    ck_assert_int_eq(acts().n, n + 1);
    ck_assert_str_eq(acts().last.kind, "datasets_change");
    x->request.is_expired = true;
    request_fixture_handle(&fixture, x);
    ck_assert_int_ne(x->response.kind, ANSWER_WAIT);
    ck_assert_int_eq(acts().n, n + 1);
    request_fixture_free(x);
}

END_TEST

#define DOOR                                                                                       \
    "{\"name\":\"door\",\"pipelines\":[{\"name\":\"learn\",\"type\":\"training\","                 \
    "\"dataset\":\"faces\",\"model\":\"face-embed\"}]}"

START_TEST(what_only_asks_is_no_act)
{
    ck_assert_int_lt(ask("POST", "/api/v1/datasets", "{\"name\":\"faces\"}"), 300);
    ck_assert_int_lt(ask("POST", "/api/v1/ions", DOOR), 300);
    ck_assert_int_lt(ask("POST", "/api/v1/snapshots", "{\"name\":\"s\",\"ion\":\"door\"}"), 300);
    int64_t n = acts().n;
    ck_assert_int_eq(ask("POST", "/api/v1/snapshots/s/replay", "{}"), 200);
    ck_assert_int_eq(ask("POST", "/api/v1/ions?dry_run=1", DOOR), 200);
    ck_assert_int_eq(acts().n, n);
}

END_TEST

/* "{name}" becomes x. */
static char *fill(const char *pattern)
{
    char *out = weir_arena_strdup(&arena, pattern), *to = out;
    for (const char *from = pattern; *from != '\0'; from++) {
        if (*from == '{') {
            *to++ = 'x';
            from += strcspn(from, "}");
        } else {
            *to++ = *from;
        }
    }
    *to = '\0';
    return out;
}

/* What the paths are about, each called x: there before each route, whatever the one before deleted. */
static const struct {
    const char *method, *target, *body;
} nouns[] = {
    {"POST", "/api/v1/projects", "{\"name\":\"x\"}"},
    {"POST", "/api/v1/groups", "{\"name\":\"x\"}"},
    {"POST", "/api/v1/users", "{\"name\":\"x\",\"kind\":\"person\",\"role\":\"viewer\"}"},
    {"PUT", "/api/v1/queues/x", "{}"},
    {"POST", "/api/v1/datasets", "{\"name\":\"x\"}"},
    {"PUT", "/api/v1/datasets/x/files/x/x", "abc"},
    {"PUT", "/api/v1/alert-receivers/x",
     "{\"kind\":\"webhook\",\"options\":{\"url\":\"http://127.0.0.1:9/\"}}"},
    {"PUT", "/api/v1/alert-rules/x", "{\"receivers\":[\"x\"],\"kinds\":[\"drift\"]}"},
    {"PUT", "/api/v1/nodes/x", "{}"},
    {"POST", "/api/v1/ions",
     "{\"name\":\"x\",\"pipelines\":[{\"name\":\"x\",\"type\":\"training\",\"dataset\":\"x\","
     "\"model\":\"face-embed\"}]}"},
    {"POST", "/api/v1/snapshots", "{\"name\":\"x\",\"ion\":\"x\"}"},
};

static void make_nouns(void)
{
    for (size_t i = 0; i < WEIR_ARRAY_LEN(nouns); i++) {
        int status = ask(nouns[i].method, nouns[i].target, nouns[i].body);
        ck_assert_msg(status < 300 || status == 409, "%s: %d", nouns[i].target, status);
    }
}

/* Routes that begin something and wait for it: their act is there by then. */
static bool is_begun(const struct weir_route *route, int status)
{
    static const char *const patterns[] = {"/api/v1/datasets/{name}/versions",
                                           "/api/v1/people/{person}/forget"};
    bool is_one = false;
    for (size_t i = 0; i < WEIR_ARRAY_LEN(patterns); i++) {
        is_one = is_one || strcmp(route->pattern, patterns[i]) == 0;
    }
    return is_one && status == WAITS;
}

START_TEST(a_look_at_a_file_is_written_once_a_minute_with_who_and_which)
{
    ck_assert_int_eq(ask("PUT", "/api/v1/blobs/" SHA, "abc"), 200);
    struct found before = acts();
    ck_assert_int_eq(ask("HEAD", "/api/v1/blobs/" SHA, ""), 200); /* shows nothing */
    ck_assert_int_eq(acts().n, before.n);
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(ask("GET", "/api/v1/blobs/" SHA, ""), 200);
    }
    struct found after = acts();
    ck_assert_int_eq(after.n, before.n + 1);
    ck_assert_str_eq(after.last.kind, "people_shown");
    ck_assert_str_eq(after.last.subject, "blob/" SHA);
    ck_assert_str_eq(after.last.actor, "ann");
}

END_TEST

/* Whatever a route takes: if it says that it did something, that is in the audit; and a refused one is not
 * an act, except of those that are written before. */
START_TEST(no_route_changes_anything_without_the_audit)
{
    size_t n_walked = 0, n_done = 0;
    const struct weir_route *route;
    for (size_t i = 0; (route = weir_route_at(api_routes, i)) != NULL; i++) {
        bool is_change = strcmp(route->method, "GET") != 0;
        struct weir_http_request request = {.method = route->method};
        const struct api_call call = {.route = route, .request = &request};
        bool is_look = (route->flags & ROUTE_SHOWS) != 0;
        ck_assert_msg(act_is_one(&call) ==
                          (is_look || (is_change && (route->flags & ROUTE_ASKS) == 0)),
                      "%s %s", route->method, route->pattern);
        if (!is_change || strcmp(route->pattern, "/api/v1/session") == 0) {
            continue; /* ending the session of a token is refused */
        }
        make_nouns();
        struct found before = acts();
        int status = ask(route->method, fill(route->pattern), "{}");
        struct found after = acts();
        bool is_done = (status < 300 || is_begun(route, status)) &&
                       (route->flags & (ROUTE_ASKS | ROUTE_OPEN)) == 0;
        n_walked++;
        n_done += is_done;
        /* Of what flows in, make_nouns() may have written the one of this minute. */
        bool may_lack = is_done && (route->flags & ROUTE_FLOW);
        ck_assert_msg((after.n > before.n) == is_done || may_lack ||
                          (route->flags & ROUTE_ACT_FIRST),
                      "%s %s: status %d and %lld events", route->method, route->pattern, status,
                      (long long)(after.n - before.n));
    }
    ck_assert_uint_ge(n_walked, N_CHANGES);
    ck_assert_uint_ge(n_done, N_DONE);
}

END_TEST

WEIR_TEST_MAIN_WITH("act", set_up, tear_down,
                    what_a_person_changes_is_in_the_audit_with_who_and_what,
                    what_takes_data_in_is_written_once_a_minute,
                    a_failure_of_what_takes_data_in_hides_no_success, what_only_asks_is_no_act,
                    a_freeze_is_an_act_when_it_begins,
                    a_look_at_a_file_is_written_once_a_minute_with_who_and_which,
                    no_route_changes_anything_without_the_audit)
