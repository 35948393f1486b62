#include "store/event.h"

#include "base/rng.h"
#include "base/test_seed.h"
#include "store/noun.h"
#include "store/row_scope.h"
#include "store/sqlite/sqlite.h"
#include "store/store_fixture.h"
#include "store/table.h"

#include <string.h>

static struct store_fixture fixture;

extern const struct weir_noun weir_noun_event;

static const struct weir_noun *noun_at(size_t i)
{
    return i == 0 ? &weir_noun_event : NULL;
}

static void set_up(void)
{
    fixture_make(&fixture, NULL);
}

static void tear_down(void)
{
    fixture_fini(&fixture);
}

static weir_status events(struct weir_txn *txn, void *context, struct weir_error *err)
{
    (void)context;
    struct weir_event event = {
        .topic = "ions", .kind = "k", .message = "It happened.", .data = "{}"};
    for (int64_t i = 1; i <= 3; i++) {
        int64_t seq;
        event.time_ms = 100 - i; /* The clock may step back: numbers do not. */
        MUST(weir_event_append(txn, &event, &seq, err));
        ck_assert_int_eq(seq, i);
    }
    MUST(weir_txn_delete(txn, &weir_event_resource, "3", err));
    int64_t seq;
    MUST(weir_event_append(txn, &event, &seq, err));
    ck_assert_int_eq(seq, 4);
    void *items;
    size_t n;
    struct weir_query query = {WEIR_FILTERS(WEIR_FILTER_INT("seq", GT, 1))};
    MUST(weir_txn_list(txn, &weir_event_resource, &query, &fixture.arena, &items, &n, NULL, err));
    ck_assert_uint_eq(n, 2);
    ck_assert_int_eq(((struct weir_event *)items)[1].seq, 4);
    ck_assert_str_eq(((struct weir_event *)items)[0].message, "It happened.");
    return WEIR_OK;
}

START_TEST(events_are_numbered_and_no_number_comes_twice)
{
    fixture_write(&fixture, events, NULL);
}

END_TEST

/* ---- pages in a scope ---------------------------------------------------------------------------- */

#define N_EVENTS   3000
#define N_PROJECTS 4

static const char *const projects[N_PROJECTS] = {"p0", "p1", "p2", "p3"};
static struct weir_rng rng;

static weir_status scatter(struct weir_txn *txn, void *context, struct weir_error *err)
{
    const size_t *n_others = context;
    for (size_t i = 1; i <= N_EVENTS + *n_others; i++) {
        size_t project = i > N_EVENTS ? 3 : weir_rng_below(&rng, N_PROJECTS);
        MUST(weir_txn_exec(
            txn,
            "INSERT INTO events (seq, time_ms, topic, kind, severity, subject, message, project)"
            " VALUES (:seq, 0, :topic, :kind, :severity, :subject, 'm', :project)",
            WEIR_BINDS(WEIR_BIND_INT("seq", (int64_t)i),
                       WEIR_BIND_TEXT("topic", weir_rng_below(&rng, 2) ? "jobs" : "ions"),
                       WEIR_BIND_TEXT("kind", weir_rng_below(&rng, 3) ? "k" : "l"),
                       WEIR_BIND_TEXT("severity", weir_rng_below(&rng, 9) ? "info" : "error"),
                       WEIR_BIND_TEXT("subject", weir_rng_below(&rng, 5) ? "job/1" : "job/2"),
                       WEIR_BIND_TEXT("project",
                                      weir_rng_below(&rng, 20) == 0 ? NULL : projects[project])),
            NULL, err));
    }
    return WEIR_OK;
}

/** One list, by pages and by all rows that the scope sees. */
struct listing {
    struct weir_query query;
    int64_t seqs[2][N_EVENTS];
    size_t n[2];
    uint64_t steps; /**< Of SQLite's machine, in hundreds: of the pages. */
};

static int count_step(void *context)
{
    (*(uint64_t *)context)++;
    return 0;
}

static weir_status list_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct listing *listing = context;
    struct weir_query query = listing->query;
    void *items;
    size_t n;
    sqlite3_progress_handler(txn->connection->db->handle, 100, count_step, &listing->steps);
    do {
        char *next;
        MUST(weir_events_list(txn, &query, &fixture.arena, &items, &n, &next, err));
        for (size_t i = 0; i < n; i++) {
            listing->seqs[0][listing->n[0]++] = ((struct weir_event *)items)[i].seq;
        }
        ck_assert(n <= query.limit && (next == NULL || n > 0));
        query.cursor = next;
    } while (query.cursor != NULL);
    sqlite3_progress_handler(txn->connection->db->handle, 0, NULL, NULL);
    query = listing->query;
    query.limit = N_EVENTS;
    query.max_bytes = 0;
    MUST(weir_txn_list(txn, &weir_event_resource, &query, &fixture.arena, &items, &n, NULL, err));
    for (size_t i = 0; i < n; i++) {
        listing->seqs[1][listing->n[1]++] = ((struct weir_event *)items)[i].seq;
    }
    return WEIR_OK;
}

static void list_anything(const struct weir_row_scope *scope)
{
    static const struct weir_filter any[] = {
        WEIR_FILTER_TEXT("topic", EQ, "jobs"),     WEIR_FILTER_TEXT("kind", EQ, "l"),
        WEIR_FILTER_TEXT("severity", EQ, "error"), WEIR_FILTER_TEXT("severity", EQ, "info"),
        WEIR_FILTER_TEXT("subject", EQ, "job/2"),  WEIR_FILTER_TEXT("topic", NE, "ions"),
        WEIR_FILTER_INT("seq", GT, N_EVENTS / 2)};
    struct weir_filter filters[3];
    static struct listing listing;
    listing = (struct listing){.query = {.filters = filters,
                                         .n_filters = weir_rng_below(&rng, 4),
                                         .order_by = "seq",
                                         .is_descending = weir_rng_below(&rng, 2),
                                         .limit = 1 + weir_rng_below(&rng, 200),
                                         .max_bytes = weir_rng_below(&rng, 2) * 9000}};
    for (size_t i = 0; i < listing.query.n_filters; i++) {
        filters[i] = any[weir_rng_below(&rng, WEIR_ARRAY_LEN(any))];
    }
    ck_assert_int_eq(weir_store_read_scoped(fixture.store, scope, list_in, &listing, &fixture.err),
                     WEIR_OK);
    ck_assert_uint_eq(listing.n[0], listing.n[1]);
    ck_assert_mem_eq(listing.seqs[0], listing.seqs[1], listing.n[0] * sizeof *listing.seqs[0]);
}

static void scatter_all(size_t n_others)
{
    tear_down();
    fixture_init(&fixture);
    fixture_open(&fixture, (struct weir_store_config){.noun_at = noun_at});
    fixture_write(&fixture, scatter, &n_others);
}

/* Whatever is asked for, against the list that looks at every row. */
START_TEST(pages_of_a_scope_are_its_events_in_order)
{
    (void)test_seed(&rng);
    scatter_all(0);
    for (int i = 0; i < 60; i++) {
        const struct weir_row_scope scope = {.projects = projects,
                                             .n_projects = weir_rng_below(&rng, N_PROJECTS + 1)};
        list_anything(i % 10 == 0 ? NULL : &scope);
    }
}

END_TEST

static uint64_t steps_with(size_t n_others)
{
    static const struct weir_row_scope own = {.projects = projects, .n_projects = 2};
    static struct listing listing;
    listing = (struct listing){.query = {WEIR_FILTERS(WEIR_FILTER_TEXT("kind", EQ, "l")),
                                         .order_by = "seq", .is_descending = true, .limit = 1000}};
    scatter_all(n_others);
    ck_assert_int_eq(weir_store_read_scoped(fixture.store, &own, list_in, &listing, &fixture.err),
                     WEIR_OK);
    ck_assert_uint_gt(listing.n[0], 100);
    return listing.steps;
}

START_TEST(a_page_of_a_scope_looks_at_no_event_of_others)
{
    weir_rng_init(&rng, 1, 0);
    uint64_t few = steps_with(0);
    weir_rng_init(&rng, 1, 0);
    ck_assert_uint_le(steps_with(5 * N_EVENTS), few + few / 10);
}

END_TEST

static weir_status severities(struct weir_txn *txn, void *context, struct weir_error *err)
{
    static const char *const expected[][2] = {{"model_promoted", "info"},
                                              {"job_restarting", "warning"},
                                              {"review_wanted", "warning"},
                                              {"training_failed", "error"}};
    (void)context;
    for (size_t i = 0; i < WEIR_ARRAY_LEN(expected); i++) {
        int64_t seq;
        struct weir_event out;
        struct weir_event event = {.topic = "t",
                                   .kind = (char *)expected[i][0],
                                   .severity = "none of the caller's business",
                                   .message = "It happened."};
        MUST(weir_event_append(txn, &event, &seq, err));
        char *key = weir_arena_printf(&fixture.arena, "%lld", (long long)seq);
        MUST(weir_txn_get(txn, &weir_event_resource, key, &fixture.arena, &out, err));
        ck_assert_str_eq(out.severity, expected[i][1]);
    }
    return WEIR_OK;
}

START_TEST(an_event_matters_as_much_as_its_kind)
{
    fixture_write(&fixture, severities, NULL);
}

END_TEST

static weir_status alerts(struct weir_txn *txn, void *context, struct weir_error *err)
{
    (void)context;
    bool is_new;
    struct weir_alert alert = {
        .id = "1", .key = "drift/a", .severity = "warning", .kind = "drift", .message = "first"};
    MUST(weir_alert_raise(txn, &alert, 10, &is_new, err));
    ck_assert(is_new);
    alert.id = "2";
    alert.message = "second";
    MUST(weir_alert_raise(txn, &alert, 20, &is_new, err));
    ck_assert(!is_new);
    struct weir_alert out;
    MUST(weir_txn_get(txn, &weir_alert_resource, "1", &fixture.arena, &out, err));
    ck_assert_int_eq(out.count, 2);
    ck_assert_int_eq(out.raised_ms, 10);
    ck_assert_int_eq(out.last_ms, 20);
    ck_assert_str_eq(out.message, "second");
    MUST(weir_alert_acknowledge(txn, "1", "ann", NULL, 30, err));
    MUST(weir_alert_acknowledge(txn, "1", "bob", NULL, 40, err));
    MUST(weir_txn_get(txn, &weir_alert_resource, "1", &fixture.arena, &out, err));
    ck_assert_str_eq(out.acknowledged_by, "ann");
    MUST(weir_alert_raise(txn, &alert, 45, &is_new, err));
    ck_assert(!is_new);
    ck_assert_int_eq(weir_alert_acknowledge(txn, "9", "bob", NULL, 40, err), WEIR_ERR_NOT_FOUND);
    MUST(weir_alert_resolve(txn, "drift/a", 50, err));
    MUST(weir_alert_resolve(txn, "drift/a", 60, err));
    ck_assert_int_eq(weir_alert_acknowledge(txn, "1", "bob", NULL, 60, err), WEIR_ERR_CONFLICT);
    MUST(weir_txn_get(txn, &weir_alert_resource, "1", &fixture.arena, &out, err));
    ck_assert_int_eq(out.resolved_ms, 50);
    MUST(weir_alert_raise(txn, &alert, 70, &is_new, err));
    ck_assert(is_new);
    alert.severity = "loud";
    alert.key = "other";
    ck_assert_int_eq(weir_alert_raise(txn, &alert, 70, &is_new, err), WEIR_ERR_INVALID);
    return WEIR_OK;
}

START_TEST(an_alert_is_open_once_per_key_until_it_is_resolved)
{
    fixture_write(&fixture, alerts, NULL);
}

END_TEST

static weir_status outbox(struct weir_txn *txn, void *context, struct weir_error *err)
{
    (void)context;
    struct weir_outbox *taken;
    size_t n;
    int64_t due;
    MUST(weir_outbox_next_due(txn, 5, &due, err));
    ck_assert_int_eq(due, INT64_MAX);
    MUST(weir_outbox_add(txn, "a", "start", "{\"x\":1}", 100, 5, err));
    MUST(weir_outbox_add(txn, "b", "start", "{}", 50, 5, err));
    MUST(weir_outbox_add(txn, "a", "start", "{\"x\":2}", 0, 6, err));
    MUST(weir_outbox_next_due(txn, 5, &due, err));
    ck_assert_int_eq(due, 50);
    MUST(weir_outbox_take(txn, 49, 1000, 10, &fixture.arena, &taken, &n, err));
    ck_assert_uint_eq(n, 0);
    MUST(weir_outbox_take(txn, 100, 1000, 10, &fixture.arena, &taken, &n, err));
    ck_assert_uint_eq(n, 2);
    ck_assert_str_eq(taken[0].key, "a");
    ck_assert_str_eq(taken[0].payload, "{\"x\":1}");
    ck_assert_int_eq(taken[0].attempts, 1);
    struct weir_outbox first = taken[0], second = taken[1];
    MUST(weir_outbox_take(txn, 1099, 1000, 10, &fixture.arena, &taken, &n, err));
    ck_assert_uint_eq(n, 0);
    MUST(weir_outbox_done(txn, first.seq, 110, err));
    MUST(weir_outbox_fail(txn, second.seq, "no luck", 120, 110, err));
    MUST(weir_outbox_take(txn, 120, 1000, 10, &fixture.arena, &taken, &n, err));
    ck_assert_uint_eq(n, 1);
    ck_assert_int_eq(taken[0].attempts, 2);
    ck_assert_str_eq(taken[0].error, "no luck");
    /* After a crash what was taken is due at once. */
    MUST(weir_outbox_release(txn, 121, err));
    MUST(weir_outbox_take(txn, 121, 1000, 10, &fixture.arena, &taken, &n, err));
    ck_assert_uint_eq(n, 1);
    MUST(weir_outbox_fail(txn, second.seq, "for good", 0, 130, err));
    MUST(weir_outbox_take(txn, 100000, 1000, 10, &fixture.arena, &taken, &n, err));
    ck_assert_uint_eq(n, 0);
    /* What was done is not done again. */
    MUST(weir_outbox_add(txn, "a", "start", "{}", 0, 200, err));
    MUST(weir_outbox_take(txn, 100000, 1000, 10, &fixture.arena, &taken, &n, err));
    ck_assert_uint_eq(n, 0);
    ck_assert_int_eq(weir_outbox_done(txn, 99, 1, err), WEIR_ERR_NOT_FOUND);
    return WEIR_OK;
}

START_TEST(an_action_is_taken_until_it_is_done_and_never_after)
{
    fixture_write(&fixture, outbox, NULL);
}

END_TEST

static weir_status clock_set_back(struct weir_txn *txn, void *context, struct weir_error *err)
{
    (void)context;
    const int64_t hour_ms = 3600000, then_ms = 10 * hour_ms, now_ms = then_ms - 3 * hour_ms;
    struct weir_outbox *taken;
    size_t n;
    int64_t due;
    MUST(weir_outbox_add(txn, "leased", "start", "{}", then_ms, then_ms, err));
    MUST(weir_outbox_take(txn, then_ms, 30000, 10, &fixture.arena, &taken, &n, err));
    ck_assert_uint_eq(n, 1);
    MUST(weir_outbox_add(txn, "new", "start", "{}", then_ms, then_ms, err));
    MUST(weir_outbox_next_due(txn, now_ms, &due, err));
    ck_assert_int_eq(due, now_ms);
    MUST(weir_outbox_take(txn, now_ms, 30000, 10, &fixture.arena, &taken, &n, err));
    ck_assert_uint_eq(n, 2);
    /* The leases of the new time hold. */
    MUST(weir_outbox_next_due(txn, now_ms, &due, err));
    ck_assert_int_eq(due, now_ms + 30000);
    MUST(weir_outbox_take(txn, now_ms + 29999, 30000, 10, &fixture.arena, &taken, &n, err));
    ck_assert_uint_eq(n, 0);
    return WEIR_OK;
}

START_TEST(actions_do_not_wait_for_a_clock_that_was_set_back)
{
    fixture_write(&fixture, clock_set_back, NULL);
}

END_TEST

static weir_status settings(struct weir_txn *txn, void *context, struct weir_error *err)
{
    (void)context;
    char *value;
    ck_assert_int_eq(weir_setting_get(txn, "k", &fixture.arena, &value, err), WEIR_ERR_NOT_FOUND);
    MUST(weir_setting_put(txn, "k", "1", 1, err));
    MUST(weir_setting_put(txn, "k", "[2]", 2, err));
    MUST(weir_setting_get(txn, "k", &fixture.arena, &value, err));
    ck_assert_str_eq(value, "[2]");
    return WEIR_OK;
}

START_TEST(the_last_setting_counts)
{
    fixture_write(&fixture, settings, NULL);
}

END_TEST

WEIR_TEST_MAIN_WITH("event", set_up, tear_down, events_are_numbered_and_no_number_comes_twice,
                    an_event_matters_as_much_as_its_kind,
                    an_alert_is_open_once_per_key_until_it_is_resolved,
                    an_action_is_taken_until_it_is_done_and_never_after,
                    actions_do_not_wait_for_a_clock_that_was_set_back, the_last_setting_counts,
                    pages_of_a_scope_are_its_events_in_order,
                    a_page_of_a_scope_looks_at_no_event_of_others)
