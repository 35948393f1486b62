/* What the audit writes, over a store of its own and at times of our choosing. */
#include "api/request_fixture.h"

#include "api/auth/audit.h"
#include "api/core/call.h"
#include "base/test_main.h"
#include "store/event.h"
#include "store/table.h"

#define NOW ((int64_t)1000000000000)

static struct request_fixture fixture;
static struct weir_arena arena;
static struct audit *audit;

static void set_up(void)
{
    request_fixture_open(&fixture);
    weir_arena_init(&arena, 0);
    audit = audit_create(fixture.store);
}

static void tear_down(void)
{
    audit_destroy(audit, NOW);
    weir_arena_fini(&arena);
    request_fixture_close(&fixture);
}

struct found {
    const struct weir_event *events;
    size_t n;
};

static weir_status list_events(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct found *found = context;
    void *items;
    const struct weir_query query = {.limit = 10000};
    WEIR_TRY(
        weir_txn_list(txn, &weir_event_resource, &query, &arena, &items, &found->n, NULL, err));
    found->events = items;
    return WEIR_OK;
}

static struct found events(void)
{
    struct weir_error err;
    struct found found;
    must(weir_store_read(fixture.store, list_events, &found, &err), &err);
    return found;
}

static void refuse(const char *actor, const char *address, int64_t now_ms)
{
    struct weir_http_request request = {.method = "GET", .path = "/x", .remote = address};
    struct api_call call = {.request = &request, .arena = &arena, .actor = actor, .now_ms = now_ms};
    audit_refused(audit, &call, "access_refused", "why");
}

static void use(char *token, const char *address, int64_t now_ms)
{
    struct weir_http_request request = {.method = "GET", .path = "/x", .remote = address};
    struct api_call call = {.request = &request,
                            .arena = &arena,
                            .actor = "ann",
                            .now_ms = now_ms,
                            .identity = {.token = token}};
    audit_used(audit, &call);
}

START_TEST(refusals_of_a_minute_are_two_events)
{
    for (int i = 0; i < 1000; i++) {
        refuse("bob", "1.2.3.4", NOW + i);
    }
    struct found found = events();
    ck_assert_uint_eq(found.n, 1);
    ck_assert_str_eq(found.events[0].topic, "audit");
    ck_assert_str_eq(found.events[0].actor, "bob");
    ck_assert_str_eq(found.events[0].severity, "warning");
    ck_assert_str_eq(found.events[0].message,
                     "GET a request of bob from 1.2.3.4 was refused: why.");
    audit_flush(audit, NOW + AUDIT_WINDOW_MS - 1);
    ck_assert_uint_eq(events().n, 1);
    audit_flush(audit, NOW + AUDIT_WINDOW_MS);
    found = events();
    ck_assert_uint_eq(found.n, 2);
    ck_assert_str_eq(found.events[1].message,
                     "999 more requests of bob from 1.2.3.4 were refused.");
    audit_flush(audit, NOW + 9 * AUDIT_WINDOW_MS);
    ck_assert_uint_eq(events().n, 2);
    refuse("bob", "1.2.3.4", NOW + 10 * AUDIT_WINDOW_MS);
    ck_assert_uint_eq(events().n, 3);
    refuse("bob", "5.6.7.8", NOW + 10 * AUDIT_WINDOW_MS);
    refuse("eve", "1.2.3.4", NOW + 10 * AUDIT_WINDOW_MS);
    ck_assert_uint_eq(events().n, 5);
}

END_TEST

/* Whoever has a million addresses writes no more than this in a minute. */
START_TEST(many_addresses_write_no_more_than_the_bound)
{
    int64_t n_refused = 20000, n_counted = 0;
    for (int i = 0; i < n_refused; i++) {
        refuse("nobody", weir_arena_printf(&arena, "10.0.%d.%d", i / 250, i % 250), NOW + i / 1000);
    }
    ck_assert_uint_eq(events().n, AUDIT_WINDOWS);
    audit_flush(audit, NOW + 2 * AUDIT_WINDOW_MS);
    struct found found = events();
    ck_assert_uint_eq(found.n, AUDIT_WINDOWS + 1);
    for (size_t i = 0; i < found.n; i++) { /* none is lost */
        json_t *data = json_loads(found.events[i].data, 0, NULL);
        const json_t *count = json_object_get(data, "count");
        n_counted += count != NULL ? json_integer_value(count) : 1;
        json_decref(data);
    }
    ck_assert_int_eq(n_counted, n_refused);
}

END_TEST

START_TEST(what_is_counted_is_written_at_the_end)
{
    refuse("bob", "1.2.3.4", NOW);
    refuse("bob", "1.2.3.4", NOW);
    audit_destroy(audit, NOW + 1);
    audit = NULL;
    ck_assert_uint_eq(events().n, 2);
}

END_TEST

START_TEST(a_clock_that_is_set_back_closes_the_window)
{
    refuse("bob", "1.2.3.4", NOW);
    refuse("bob", "1.2.3.4", NOW);
    audit_flush(audit, NOW - 3600000);
    ck_assert_uint_eq(events().n, 2);
}

END_TEST

START_TEST(a_tokens_first_use_from_an_address_is_written_once)
{
    for (int i = 0; i < 100; i++) {
        use("t1", "1.2.3.4", NOW + i);
    }
    ck_assert_uint_eq(events().n, 1);
    ck_assert_str_eq(events().events[0].subject, "token/t1");
    use("t1", "5.6.7.8", NOW);
    use("t2", "1.2.3.4", NOW);
    use(NULL, "1.2.3.4", NOW);
    ck_assert_uint_eq(events().n, 3);
    for (int i = 0; i < 2000; i++) {
        use("t3", weir_arena_printf(&arena, "10.0.%d.%d", i / 250, i % 250), NOW);
    }
    ck_assert_uint_eq(events().n, AUDIT_USES_PER_MINUTE);
    use("t4", "1.2.3.4", NOW + AUDIT_WINDOW_MS);
    ck_assert_uint_eq(events().n, AUDIT_USES_PER_MINUTE + 1);
}

END_TEST

WEIR_TEST_MAIN_WITH("audit", set_up, tear_down, refusals_of_a_minute_are_two_events,
                    many_addresses_write_no_more_than_the_bound,
                    what_is_counted_is_written_at_the_end,
                    a_clock_that_is_set_back_closes_the_window,
                    a_tokens_first_use_from_an_address_is_written_once)
