/* The account and the history of queues, as people ask for them. */
#include "api/caller_fixture.h"

#include "base/rng.h"
#include "base/test_main.h"
#include "base/test_seed.h"
#include "job/cluster.h"
#include "job/queue_history.h"
#include "store/stmt.h"

#define NOON INT64_C(1790769600000) /* 2026-09-30T12:00:00Z */

static weir_status fill(struct weir_txn *txn, void *context, struct weir_error *err)
{
    static const char *const rows[] = {
        "INSERT INTO projects (name, description, created_ms) VALUES ('blue', '', 1)",
        /* time, span, project, user, job, model, waited, given, used, unknown, idle, borrowed, cpu… */
        "INSERT INTO usage VALUES (1790769600000, 3600000, 'default', 'ann', 'j1', 'H100', "
        "1000000000,"
        " 3600000000, 1800000000, 0, 0, 900000000, 0, 7200000000, 0)",
        "INSERT INTO usage VALUES (1790773200000, 3600000, 'default', 'bob', 'j2', 'H100', 0,"
        " 7200000000, 0, 7200000000, 0, 0, 0, 0, 0)",
        "INSERT INTO usage VALUES (1790683200000, 86400000, 'blue', 'cid', '', '', 0, 0, 0, 0, 0, "
        "0, 0,"
        " 60000000, 0)"};
    const struct weir_queue_sample samples[] = {
        {"default", "default", {1000, 4000, 3000, 2000}, {0, 0, 0, 0}, 0},
        {"blue", "blue", {0, 0, 0, 0}, {2000, 1000, 0, 500}, 0},
        {"research", NULL, {1000, 4000, 3000, 2000}, {2000, 1000, 0, 500}, 0}};
    (void)context;
    for (size_t i = 0; i < WEIR_ARRAY_LEN(rows); i++) {
        WEIR_TRY(weir_txn_exec(txn, rows[i], WEIR_NO_BINDS, NULL, err));
    }
    return weir_queue_history_add(txn, samples, WEIR_ARRAY_LEN(samples), NOON, err);
}

static void set_up(void)
{
    struct weir_error err;
    callers_open();
    callers.now_ms = NOON + 2 * 3600000;
    must(weir_store_write(callers.fixture.store, fill, NULL, &err), &err);
}

static void tear_down(void)
{
    callers_close();
}

static double number(const char *path)
{
    return json_number_value(said(path));
}

START_TEST(usage_is_added_up_by_what_is_asked)
{
    EXPECT(200, "GET " API "/usage");
    ck_assert_str_eq(said_text("by"), "project");
    ck_assert_str_eq(said_text("items.0.key"), "default");
    ck_assert_double_eq_tol(number("items.0.given_device_s"), 10800, 1e-6);
    ck_assert_double_eq_tol(number("items.0.asked_device_s"), 11800, 1e-6);
    ck_assert_double_eq_tol(number("items.0.used_device_s"), 1800, 1e-6);
    ck_assert_double_eq_tol(number("items.0.unknown_device_s"), 7200, 1e-6);
    ck_assert_double_eq_tol(number("items.0.borrowed_device_s"), 900, 1e-6);
    ck_assert_double_eq_tol(number("total.given_cpu_s"), 7260, 1e-6);
    EXPECT(200, "GET " API "/usage?by=user&project=default");
    ck_assert_uint_eq(json_array_size(said("items")), 2);
    ck_assert_str_eq(said_text("items.0.key"), "bob");
    ck_assert(json_is_null(said("items.0.used_device_s"))); /* Nobody knows. */
    EXPECT(200, "GET " API "/usage?by=model");
    ck_assert_str_eq(said_text("items.0.key"), "H100");
    ck_assert(json_is_null(said("items.1.key")));
    EXPECT(200, "GET " API "/usage?by=job&user=ann");
    ck_assert_str_eq(said_text("items.0.key"), "j1");
    ck_assert_str_eq(said_text("items.0.project"), "default");
    EXPECT(200, "GET " API "/usage?by=hour&from=2026-09-30T13:00:00Z");
    ck_assert_uint_eq(json_array_size(said("items")), 1);
    ck_assert_str_eq(said_text("items.0.key"), "2026-09-30T13:00:00.000Z");
    EXPECT(200, "GET " API "/usage?by=day&from=2026-09-01&to=2026-09-30");
    ck_assert_uint_eq(json_array_size(said("items")), 1);
    EXPECT(400, "GET " API "/usage?by=colour");
    EXPECT(400, "GET " API "/usage?from=yesterday");
    EXPECT(400, "GET " API "/usage?from=2026-09-30&to=2026-09-01");
    EXPECT(400, "GET " API "/usage?format=xml");
}

END_TEST

START_TEST(a_table_has_a_head_and_quotes)
{
    static const char head[] =
        "project,asked_device_s,given_device_s,used_device_s,unknown_device_s,"
        "idle_device_s,borrowed_device_s,asked_cpu_s,given_cpu_s,borrowed_cpu_s,node_s\r\n"
        "\"default\",11800.000,10800.000,1800.000,7200.000,0.000,900.000,"
        "7200.000,7200.000,0.000,\r\n";
    EXPECT(200, "GET " API "/usage?format=csv");
    ck_assert_str_eq(said_header("Content-Type"), "text/csv; charset=utf-8");
    ck_assert_uint_ge(callers.x->response.body_len, sizeof head - 1);
    ck_assert_int_eq(memcmp(callers.x->response.body, head, sizeof head - 1), 0);
    EXPECT(200, "GET " API "/usage?by=user\nAccept: text/csv");
    ck_assert_str_eq(said_header("Content-Type"), "text/csv; charset=utf-8");
}

END_TEST

START_TEST(queues_over_time_are_means)
{
    EXPECT(200, "GET " API "/usage/queues?from=2026-09-30T12:00:00Z");
    ck_assert_uint_eq(json_array_size(said("items")), 3);
    ck_assert_str_eq(said_text("items.1.queue"), "default");
    ck_assert_double_eq_tol(number("items.1.used.accelerators"), 4, 1e-9);
    ck_assert_double_eq_tol(number("items.1.asked.accelerators"), 6, 1e-9);
    ck_assert_double_eq_tol(number("items.1.borrowed.accelerators"), 3, 1e-9);
    ck_assert(json_is_null(said("items.2.project")));
    EXPECT(200, "GET " API "/usage/queues?queue=blue&step_s=300");
    ck_assert_uint_eq(json_array_size(said("items")), 1);
    EXPECT(400, "GET " API "/usage/queues?step_s=301");
    EXPECT(400, "GET " API "/usage/queues?step_s=60");
}

END_TEST

START_TEST(members_see_the_usage_of_their_projects)
{
    char member[BEARER_BYTES];
    make_caller("mia", "member", "", member);
    EXPECT_STATUS(403, ask_as(member, "GET " API "/usage"));
    EXPECT(200, "PUT " API "/projects/blue/members/user/mia\n\n{\"role\":\"viewer\"}");
    EXPECT_STATUS(200, ask_as(member, "GET " API "/usage"));
    ck_assert_uint_eq(json_array_size(said("items")), 1);
    ck_assert_str_eq(said_text("items.0.key"), "blue");
    EXPECT_STATUS(200, ask_as(member, "GET " API "/usage?by=user&project=default"));
    ck_assert_uint_eq(json_array_size(said("items")), 0);
    EXPECT_STATUS(200, ask_as(member, "GET " API "/usage/queues"));
    ck_assert_uint_eq(json_array_size(said("items")), 1);
    ck_assert_str_eq(said_text("items.0.queue"), "blue");
}

END_TEST

/* ---- by cluster ------------------------------------------------------------------------------- */

#define N_ALLOCATIONS 40
#define HOUR_S        3600
#define WINDOW_H      6

/* Of what is asked for: seconds, by cluster. */
struct law {
    struct weir_rng rng;
    struct weir_allocation made[N_ALLOCATIONS];
    double node_s[2], cpu_s[2], device_s[2];
};

static const char *const clusters[] = {"east", "west"};

/* Whole nodes of the pool have 16 CPUs and 4 devices. */
static weir_status make_allocations(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct law *law = context;
    static char ids[N_ALLOCATIONS][16];
    for (int i = 0; i < 2; i++) {
        const struct weir_pool pool = {.id = i == 0 ? "east/p" : "west/p",
                                       .cluster = (char *)clusters[i],
                                       .name = "p",
                                       .cpu_slots = 16,
                                       .n_accelerators = 4};
        WEIR_TRY(weir_pools_put(txn, clusters[i], &pool, 1, err));
    }
    for (int i = 0; i < N_ALLOCATIONS; i++) {
        struct weir_allocation *made = &law->made[i];
        (void)snprintf(ids[i], sizeof ids[i], "a%d", i);
        bool is_whole = weir_rng_below(&law->rng, 3) == 0;
        *made = (struct weir_allocation){
            .id = ids[i],
            .cluster = (char *)clusters[weir_rng_below(&law->rng, 2)],
            .pool = "p",
            .project = weir_rng_below(&law->rng, 2) == 0 ? "default" : "blue",
            .n_nodes = 1 + (int64_t)weir_rng_below(&law->rng, 5),
            .cpu_slots = is_whole ? 0 : 1 + (int64_t)weir_rng_below(&law->rng, 8),
            .n_accelerators = is_whole ? 0 : (int64_t)weir_rng_below(&law->rng, 3)};
        if (made->n_accelerators == 1 && weir_rng_below(&law->rng, 2) == 0) {
            made->accelerator_milli = 1 + (int64_t)weir_rng_below(&law->rng, 999);
        }
        WEIR_TRY(weir_allocation_insert(txn, made, NOON, err));
        made->created_ms = NOON;
        int64_t started = NOON / 1000 + (int64_t)weir_rng_below(&law->rng, 8 * HOUR_S) - HOUR_S;
        int64_t ended = started + (int64_t)weir_rng_below(&law->rng, 3 * HOUR_S);
        unsigned how = (unsigned)weir_rng_below(&law->rng, 4);
        made->asked_ms = NOON;
        made->started_ms = how == 0 ? 0 : started * 1000; /* it never ran */
        made->ended_ms = how == 1 ? 0 : ended * 1000;     /* it runs */
        made->state = (char *)(how == 1 ? WEIR_ALLOCATION_RUNS : WEIR_ALLOCATION_OVER);
        WEIR_TRY(weir_allocation_save(txn, made, err));
    }
    return WEIR_OK;
}

/* Second by second: who has a node then? */
static void count_seconds(struct law *law, const char *project)
{
    memset(law->node_s, 0, sizeof law->node_s);
    memset(law->cpu_s, 0, sizeof law->cpu_s);
    memset(law->device_s, 0, sizeof law->device_s);
    for (int64_t s = NOON / 1000; s < NOON / 1000 + WINDOW_H * (int64_t)HOUR_S; s++) {
        for (int i = 0; i < N_ALLOCATIONS && s * 1000 < callers.now_ms; i++) {
            const struct weir_allocation *made = &law->made[i];
            bool runs = made->started_ms > 0 && made->started_ms <= s * 1000 &&
                        (made->ended_ms == 0 || made->ended_ms > s * 1000);
            if (!runs || (project != NULL && strcmp(project, made->project) != 0)) {
                continue;
            }
            int k = strcmp(made->cluster, "west") == 0;
            bool is_whole = made->cpu_slots == 0 && made->n_accelerators == 0;
            law->node_s[k] += (double)made->n_nodes;
            law->cpu_s[k] += (double)(made->n_nodes * (is_whole ? 16 : made->cpu_slots));
            double part = made->accelerator_milli > 0 ? (double)made->accelerator_milli / 1000 : 1;
            law->device_s[k] +=
                part * (double)(made->n_nodes * (is_whole ? 4 : made->n_accelerators));
        }
    }
}

static void expect_counted(const struct law *law)
{
    size_t n = json_array_size(said("items"));
    ck_assert_uint_ge(n, 1);
    for (size_t i = 0; i < n; i++) {
        const json_t *item = json_array_get(said("items"), i);
        int k = strcmp(json_string_value(json_object_get(item, "key")), "west") == 0;
        ck_assert_double_eq_tol(json_number_value(json_object_get(item, "node_s")), law->node_s[k],
                                1e-6);
        ck_assert_double_eq_tol(json_number_value(json_object_get(item, "given_cpu_s")),
                                law->cpu_s[k], 1e-6);
        ck_assert_double_eq_tol(json_number_value(json_object_get(item, "given_device_s")),
                                law->device_s[k], 1e-3);
        /* Of no device nothing was used; of those there were nobody knows. */
        ck_assert_int_eq(json_is_null(json_object_get(item, "used_device_s")),
                         law->device_s[k] > 0);
    }
    ck_assert_double_eq_tol(number("total.node_s"), law->node_s[0] + law->node_s[1], 1e-6);
}

START_TEST(clusters_count_what_a_clock_beside_their_nodes_would)
{
    struct weir_error err;
    static struct law law;
    char member[BEARER_BYTES];
    (void)test_seed(&law.rng);
    callers.now_ms = NOON + 5 * HOUR_S * INT64_C(1000);
    must(weir_store_write(callers.fixture.store, make_allocations, &law, &err), &err);
    count_seconds(&law, NULL);
    EXPECT(200, "GET " API "/usage?by=cluster&from=2026-09-30T12:00:00Z&to=2026-09-30T18:00:00Z");
    expect_counted(&law);
    count_seconds(&law, "blue");
    EXPECT(200, "GET " API "/usage?by=cluster&project=blue&from=2026-09-30T12:00:00Z"
                "&to=2026-09-30T18:00:00Z");
    expect_counted(&law);
    make_caller("mia", "member", "", member);
    EXPECT(200, "PUT " API "/projects/blue/members/user/mia\n\n{\"role\":\"viewer\"}");
    EXPECT_STATUS(200, ask_as(member, "GET " API "/usage?by=cluster&from=2026-09-30T12:00:00Z"
                                      "&to=2026-09-30T18:00:00Z"));
    expect_counted(&law);
    EXPECT(400, "GET " API "/usage?by=cluster&user=ann");
    EXPECT(200, "GET " API "/usage?by=project");
    ck_assert(json_is_null(said("total.node_s")));
}

END_TEST

WEIR_TEST_MAIN_WITH("usage_routes", set_up, tear_down,
                    clusters_count_what_a_clock_beside_their_nodes_would,
                    usage_is_added_up_by_what_is_asked, a_table_has_a_head_and_quotes,
                    queues_over_time_are_means, members_see_the_usage_of_their_projects)
