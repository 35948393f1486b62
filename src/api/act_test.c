/* Every change that a person asks for is in the audit: the whole table of routes is walked. */
#include "api/request_fixture.h"

#include "api/api_private.h"
#include "base/test_main.h"
#include "store/chain.h"
#include "store/event.h"

#define SHA "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" /* of "abc" */

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
    int status = x->response.kind == ANSWER_WAIT ? 999 : x->response.http_status;
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
    const char *method, *target, *body, *kind, *subject;
} done[] = {
    {"POST", "/api/v1/projects", "{\"name\":\"vision\"}", "project_created", "project/vision"},
    {"POST", "/api/v1/datasets", "{\"name\":\"faces\"}", "datasets_change", "dataset/faces"},
    {"PUT", "/api/v1/datasets/faces/files/ann/1.pgm", "abc", "datasets_change", "dataset/faces"},
    {"DELETE", "/api/v1/datasets/faces/files/ann/1.pgm", "", "datasets_change", "dataset/faces"},
    {"DELETE", "/api/v1/datasets/faces/files/ann", "", "datasets_change", "dataset/faces"},
    {"PUT", "/api/v1/blobs/" SHA, "abc", "blobs_write", "blob/" SHA},
    {"POST", "/api/v1/models/door/versions",
     "{\"id\":\"018f0000-0000-7000-8000-000000000001\","
     "\"blob\":\"" SHA "\"}",
     "models_register", "model/door"},
    {"PUT", "/api/v1/queues/default", "{}", "queues_change", "queue/default"},
    {"PUT", "/api/v1/retention", "{\"decisions\":\"30d\"}", "platform_change", "retention"},
    {"POST", "/api/v1/store/sweep", "", "platform_change", "store"},
    {"POST", "/api/v1/groups", "{\"name\":\"team\"}", "group_created", "group/team"},
};

START_TEST(what_a_person_changes_is_in_the_audit_with_who_and_what)
{
    size_t n_good = 0;
    for (size_t i = 0; i < WEIR_ARRAY_LEN(done); i++) {
        struct found before = acts();
        int status = ask(done[i].method, done[i].target, done[i].body);
        struct found after = acts();
        if (status >= 300) { /* such as a model whose file is still looked at */
            ck_assert_msg(status != 500, "%s %s: %d", done[i].method, done[i].target, status);
            continue;
        }
        n_good++;
        ck_assert_msg(after.n == before.n + 1, "%s %s: %lld events, %lld before", done[i].method,
                      done[i].target, (long long)after.n, (long long)before.n);
        ck_assert_str_eq(after.last.kind, done[i].kind);
        ck_assert_str_eq(after.last.subject, done[i].subject);
        ck_assert_str_eq(after.last.actor, "ann");
        ck_assert_int_gt(after.last.chain, 0);
        ck_assert_ptr_nonnull(strstr(after.last.data, "127.0.0.1"));
    }
    ck_assert_uint_ge(n_good, WEIR_ARRAY_LEN(done) - 2);
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

/* Whatever a route takes: if it says that it did something, that is in the audit; and a refused one is not
 * an act, except of those that are written before. */
START_TEST(no_route_changes_anything_without_the_audit)
{
    size_t n_walked = 0, n_done = 0;
    for (size_t i = 0; i < api_n_routes; i++) {
        const struct api_route *route = &api_routes[i];
        bool is_change = strcmp(route->method, "GET") != 0;
        struct weir_http_request request = {.method = route->method};
        const struct api_call call = {.route = route, .request = &request};
        ck_assert_msg(act_is_one(&call) == (is_change && (route->flags & API_ASKS) == 0), "%s %s",
                      route->method, route->pattern);
        if (!is_change || strcmp(route->pattern, "/api/v1/session") == 0) {
            continue; /* ending the session of a token is refused */
        }
        struct found before = acts();
        int status = ask(route->method, fill(route->pattern), "{}");
        struct found after = acts();
        bool is_done = status < 300 && (route->flags & (API_ASKS | API_OPEN)) == 0;
        n_walked++;
        n_done += is_done;
        ck_assert_msg((after.n > before.n) == is_done || (route->flags & API_ACT_FIRST),
                      "%s %s: status %d and %lld events", route->method, route->pattern, status,
                      (long long)(after.n - before.n));
    }
    ck_assert_uint_gt(n_walked, 40);
    ck_assert_uint_gt(n_done, 2);
}

END_TEST

WEIR_TEST_MAIN_WITH("act", set_up, tear_down,
                    what_a_person_changes_is_in_the_audit_with_who_and_what,
                    what_takes_data_in_is_written_once_a_minute,
                    no_route_changes_anything_without_the_audit)
