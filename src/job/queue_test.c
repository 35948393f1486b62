#include "job/queue.h"

#include "store/identity.h"
#include "store/store_fixture.h"
#include "store/table.h"

#include <string.h>

static struct store_fixture fixture;
static struct weir_error error;

static weir_status populate(struct weir_txn *txn, void *context, struct weir_error *err)
{
    (void)context;
    MUST(weir_txn_insert(txn, &weir_project_resource, &(struct weir_project){.name = "p"}, err));
    return weir_txn_insert(txn, &weir_project_resource, &(struct weir_project){.name = "q"}, err);
}

static void set_up(void)
{
    fixture_make(&fixture, populate);
}

static void tear_down(void)
{
    fixture_fini(&fixture);
}

struct setting {
    const struct weir_queue *queue;
    weir_status status;
};

/* A refusal is the test's to look at: the transaction itself goes on. */
static weir_status set_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct setting *setting = context;
    (void)err;
    setting->status = weir_queue_set(txn, setting->queue, 5, &error);
    return WEIR_OK;
}

static weir_status set(struct weir_queue queue)
{
    struct setting setting = {&queue, WEIR_OK};
    queue.min_run_ms = queue.min_run_ms == 0 ? -1 : queue.min_run_ms;
    fixture_write(&fixture, set_in, &setting);
    return setting.status;
}

static weir_status delete_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct setting *setting = context;
    (void)err;
    setting->status = weir_queue_delete(txn, setting->queue->name, &error);
    return WEIR_OK;
}

static weir_status delete (const char *name)
{
    const struct weir_queue queue = {.name = (char *)name};
    struct setting setting = {&queue, WEIR_OK};
    fixture_write(&fixture, delete_in, &setting);
    return setting.status;
}

static const struct {
    const char *shares, *says;
} bad_shares[] = {
    {"[]", "$.shares: expected {accelerators"},
    {"{\"gpus\": {}}", "$.shares: \"gpus\" is not known"},
    {"{\"cpus\": 4}", "$.shares.cpus: expected {guarantee"},
    {"{\"cpus\": {\"guarantee\": -1}}", "$.shares.cpus.guarantee: expected a number"},
    {"{\"cpus\": {\"guarantee\": 1e300}}", "$.shares.cpus.guarantee: expected a number"},
    {"{\"memory\": {\"weight\": 1.5}}", "$.shares.memory.weight: expected an integer"},
    {"{\"cpus\": {\"guarantee\": 4, \"limit\": 3}}", "$.shares.cpus: its guarantee is more"},
    {"{\"cpus\": {\"guarantee\": null, \"limit\": 3}}", "$.shares.cpus: its guarantee is more"},
    {"{\"models\": {\"\": {}}}", "$.shares.models: a model has no name"},
    {"{\"models\": {\"H100\": {\"limt\": 3}}}", "$.shares.models.H100: \"limt\" is not known"},
};

START_TEST(shares_that_make_no_sense_are_refused_with_their_member)
{
    for (size_t i = 0; i < WEIR_ARRAY_LEN(bad_shares); i++) {
        struct weir_queue_shares shares;
        ck_assert_int_eq(weir_queue_shares_read(bad_shares[i].shares, "$.shares", &fixture.arena,
                                                &shares, &error),
                         WEIR_ERR_INVALID);
        ck_assert_msg(strstr(error.message, bad_shares[i].says) == error.message, "%s",
                      error.message);
    }
}

END_TEST

START_TEST(shares_are_read_in_thousandths_and_bytes)
{
    struct weir_queue_shares shares;
    const char *text = "{\"accelerators\": {\"guarantee\": 4.5, \"limit\": 8, \"weight\": 3},"
                       " \"cpus\": {\"guarantee\": null},"
                       " \"memory\": {\"guarantee\": 1099511627776, \"limit\": null},"
                       " \"models\": {\"H100\": {\"guarantee\": 2}}}";
    ck_assert_int_eq(weir_queue_shares_read(text, "$.shares", &fixture.arena, &shares, &error),
                     WEIR_OK);
    ck_assert_int_eq(shares.of[WEIR_QUEUE_ACCELERATORS].guarantee, 4500);
    ck_assert_int_eq(shares.of[WEIR_QUEUE_ACCELERATORS].limit, 8000);
    ck_assert_int_eq(shares.of[WEIR_QUEUE_ACCELERATORS].weight, 3);
    ck_assert_int_eq(shares.of[WEIR_QUEUE_CPUS].guarantee, WEIR_QUEUE_UNLIMITED);
    ck_assert_int_eq(shares.of[WEIR_QUEUE_CPUS].weight, 1);
    ck_assert_int_eq(shares.of[WEIR_QUEUE_MEMORY].guarantee, (int64_t)1 << 40);
    ck_assert_int_eq(shares.of[WEIR_QUEUE_MEMORY].limit, WEIR_QUEUE_UNLIMITED);
    ck_assert_uint_eq(shares.n_models, 1);
    ck_assert_str_eq(shares.models[0].model, "H100");
    ck_assert_int_eq(shares.models[0].share.guarantee, 2000);
    ck_assert_int_eq(weir_queue_shares_read(NULL, "$.shares", &fixture.arena, &shares, &error),
                     WEIR_OK);
    ck_assert_int_eq(shares.of[WEIR_QUEUE_CPUS].guarantee, 0);
    ck_assert_int_eq(shares.of[WEIR_QUEUE_CPUS].limit, WEIR_QUEUE_UNLIMITED);
}

END_TEST

START_TEST(times_name_days_and_minutes)
{
    struct weir_queue_time *times;
    size_t n;
    const char *text = "[{\"days\": [\"mon\", \"sun\"], \"from\": \"20:00\", \"until\": \"06:30\","
                       " \"shares\": {\"cpus\": {\"guarantee\": 2}}},"
                       " {\"from\": \"00:00\", \"until\": \"24:00\"}]";
    ck_assert_int_eq(weir_queue_times_read(text, &fixture.arena, &times, &n, &error), WEIR_OK);
    ck_assert_uint_eq(n, 2);
    ck_assert_int_eq(times[0].days, 1 | 64);
    ck_assert_int_eq(times[0].from_min, 1200);
    ck_assert_int_eq(times[0].until_min, 390);
    ck_assert_int_eq(times[0].shares.of[WEIR_QUEUE_CPUS].guarantee, 2000);
    ck_assert_int_eq(times[1].days, 127);
    ck_assert_int_eq(times[1].until_min, 1440);
    static const char *const bad[] = {
        "{}",
        "[1]",
        "[{\"from\": \"20:00\"}]",
        "[{\"from\": \"24:01\", \"until\": \"06:00\"}]",
        "[{\"days\": [\"moon\"], \"from\": \"20:00\", \"until\": \"06:00\"}]",
        "[{\"days\": [], \"from\": \"20:00\", \"until\": \"06:00\"}]",
        "[{\"from\": \"20:00\", \"until\": \"06:00\", \"at\": 1}]"};
    for (size_t i = 0; i < WEIR_ARRAY_LEN(bad); i++) {
        ck_assert_int_ne(weir_queue_times_read(bad[i], &fixture.arena, &times, &n, &error),
                         WEIR_OK);
    }
}

END_TEST

START_TEST(a_tree_has_no_loop_and_jobs_wait_in_leaves_alone)
{
    ck_assert_int_eq(set((struct weir_queue){.name = "a"}), WEIR_OK);
    ck_assert_int_eq(set((struct weir_queue){.name = "b", .parent = "a"}), WEIR_OK);
    ck_assert_int_eq(set((struct weir_queue){.name = "c", .parent = "b", .project = "p"}), WEIR_OK);
    ck_assert_int_eq(set((struct weir_queue){.name = "a", .parent = "b"}), WEIR_ERR_INVALID);
    ck_assert_int_eq(set((struct weir_queue){.name = "a", .parent = "a"}), WEIR_ERR_INVALID);
    ck_assert_int_eq(set((struct weir_queue){.name = "d", .parent = "c"}), WEIR_ERR_INVALID);
    ck_assert_int_eq(set((struct weir_queue){.name = "b", .project = "q"}), WEIR_ERR_INVALID);
    ck_assert_int_eq(set((struct weir_queue){.name = "d", .parent = "no"}), WEIR_ERR_NOT_FOUND);
    ck_assert_int_eq(set((struct weir_queue){.name = "d", .project = "no"}), WEIR_ERR_NOT_FOUND);
    ck_assert_int_eq(set((struct weir_queue){.name = "d", .project = "p"}), WEIR_ERR_CONFLICT);
    ck_assert_int_eq(set((struct weir_queue){.name = "c", .parent = "a", .project = "q"}), WEIR_OK);
    ck_assert_int_eq(delete ("a"), WEIR_ERR_CONFLICT);
    ck_assert_int_eq(delete ("c"), WEIR_OK);
    ck_assert_int_eq(delete ("c"), WEIR_ERR_NOT_FOUND);
    ck_assert_int_eq(delete ("b"), WEIR_OK);
    ck_assert_int_eq(delete ("a"), WEIR_OK);
}

END_TEST

START_TEST(all_queues_together_name_as_many_models_as_the_planner_knows)
{
    for (int i = 0; i < WEIR_QUEUE_MODELS_MAX; i++) {
        struct weir_queue queue = {
            .name = weir_arena_printf(&fixture.arena, "q%d", i),
            .shares = weir_arena_printf(&fixture.arena, "{\"models\": {\"m%d\": {}}}", i)};
        ck_assert_int_eq(set(queue), WEIR_OK);
    }
    struct weir_queue another = {.name = "z", .shares = "{\"models\": {\"another\": {}}}"};
    ck_assert_int_eq(set(another), WEIR_ERR_LIMIT);
    another.name = "q0";
    ck_assert_int_eq(set(another), WEIR_OK);
}

END_TEST

WEIR_TEST_MAIN_WITH("queue", set_up, tear_down,
                    shares_that_make_no_sense_are_refused_with_their_member,
                    shares_are_read_in_thousandths_and_bytes, times_name_days_and_minutes,
                    a_tree_has_no_loop_and_jobs_wait_in_leaves_alone,
                    all_queues_together_name_as_many_models_as_the_planner_knows)
