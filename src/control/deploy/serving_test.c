/* The gateway's table against the rows it is made of, and how soon it follows a commit. */
#include "control/deploy.h"
#include "control/job/control_fixture.h"
#include "control/serving.h"

#include "base/clock.h"

#include <pthread.h>

#define SOON_MS 5000 /* That it comes at all; the clock is read below. */

static struct control_fixture fixture;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct weir_gateway_table *current; /* lock */
static struct serving *follower;

static weir_status push_in(struct control *control, struct weir_txn *txn, void *context,
                           struct weir_error *err)
{
    struct weir_model_version out, version = {.id = context, .model = "digits", .blob = "b10b"};
    return control_model_register(control, txn, &version, &out, err);
}

static void publish(void *context, struct weir_gateway_table *table)
{
    (void)context;
    pthread_mutex_lock(&lock);
    (void)weir_gateway_table_unref(current);
    current = table;
    pthread_mutex_unlock(&lock);
}

static struct weir_gateway_table *acquire(void)
{
    pthread_mutex_lock(&lock);
    struct weir_gateway_table *table = weir_gateway_table_ref(current);
    pthread_mutex_unlock(&lock);
    return table;
}

static void set_up(void)
{
    struct weir_error err;
    control_fixture_make(&fixture);
    turn(&fixture, push_in, (char *)"id-1");
    turn(&fixture, push_in, (char *)"id-2");
    ck_assert_int_eq(serving_start(fixture.store.store, publish, NULL, &follower, &err), WEIR_OK);
    ck_assert_ptr_nonnull(current);
}

static void tear_down(void)
{
    serving_stop(follower);
    current = weir_gateway_table_unref(current);
    control_fixture_fini(&fixture);
}

static weir_status put_in(struct control *control, struct weir_txn *txn, void *context,
                          struct weir_error *err)
{
    struct weir_deploy_state state;
    json_t *body = json_loads(context, 0, NULL);
    weir_status status = control_deploy_put(control, txn, "d", body, &state, err);
    json_decref(body);
    return status;
}

static weir_status report_of_in(struct control *control, struct weir_txn *txn, void *context,
                                struct weir_error *err)
{
    return control_deploy_report(control, txn, "d", context, err);
}

static void report_of(const char *replica, const char *versions)
{
    struct weir_deployment_replica row = {
        .id = (char *)replica, .url = "http://127.0.0.1:1", .versions = (char *)versions};
    turn(&fixture, report_of_in, &row);
}

static int32_t weight_of(const struct weir_gateway_deployment *row, int64_t version)
{
    int i = row != NULL ? weir_gateway_version_find(row, version) : -1;
    return i >= 0 ? row->versions[i].weight_ppm : -1;
}

/* Wait until the table gives the version this weight (-1: it or the deployment is not there). @return
 * How long it took. */
static int64_t wait_for_weight(int64_t version, int32_t weight)
{
    int64_t begin_ms = weir_mono_ms();
    for (;;) {
        struct weir_gateway_table *table = acquire();
        int32_t now = weight_of(weir_gateway_table_find(table, "d"), version);
        (void)weir_gateway_table_unref(table);
        int64_t passed_ms = weir_mono_ms() - begin_ms;
        if (now == weight) {
            return passed_ms;
        }
        ck_assert_msg(passed_ms < SOON_MS, "version %d has weight %d, not %d", (int)version, now,
                      weight);
        (void)weir_store_wait(fixture.store.store, UINT64_MAX - 1, 1);
    }
}

#define READY(v) "{\"version\":" #v ",\"state\":\"READY\"}"

START_TEST(a_change_of_shares_is_in_the_table_within_50_ms)
{
    int64_t fastest_ms = INT64_MAX;
    turn(&fixture, put_in, (char *)"{\"model\":\"digits\",\"traffic\":\"v1=90,v2=10\"}");
    (void)carry_out(&fixture, 0);
    (void)wait_for_weight(1, 0); /* it is there, without traffic */
    report_of("d-1", "[" READY(1) "," READY(2) "]");
    (void)wait_for_weight(1, 900000);
    for (int i = 0; i < 5; i++) { /* the best of some: the machine may be busy */
        char body[64];
        (void)snprintf(body, sizeof body, "{\"traffic\":\"v1=%d,v2=%d\"}", 50 + i, 50 - i);
        turn(&fixture, put_in, body);
        fastest_ms = WEIR_MIN(fastest_ms, wait_for_weight(1, 500000 + i * 10000));
    }
    ck_assert_int_lt(fastest_ms, 50);
}

END_TEST

START_TEST(a_version_that_no_replica_has_ready_gives_its_share_to_the_others)
{
    turn(&fixture, put_in, (char *)"{\"model\":\"digits\",\"traffic\":\"v1=90,v2=10\"}");
    (void)carry_out(&fixture, 0);
    report_of("d-1", "[" READY(1) "," READY(2) "]");
    (void)wait_for_weight(2, 100000);
    report_of("d-1", "[" READY(1) ",{\"version\":2,\"state\":\"LOADING\"}]"); /* it began again */
    (void)wait_for_weight(1, 1000000);
    (void)wait_for_weight(2, 0);
    struct weir_gateway_table *table = acquire();
    const struct weir_gateway_deployment *row = weir_gateway_table_find(table, "d");
    ck_assert_uint_eq(row->n_replicas, 1);
    ck_assert_uint_eq(row->replicas[0].ready, 1);
    ck_assert_str_eq(row->project, "default");
    ck_assert(row->can_start);
    (void)weir_gateway_table_unref(table);
}

END_TEST

static weir_status delete_in(struct control *control, struct weir_txn *txn, void *context,
                             struct weir_error *err)
{
    return control_deploy_delete(control, txn, context, err);
}

START_TEST(a_deleted_deployment_is_gone_from_the_table)
{
    turn(&fixture, put_in, (char *)"{\"model\":\"digits\"}");
    (void)wait_for_weight(2, 0);
    turn(&fixture, delete_in, (char *)"d");
    (void)wait_for_weight(2, -1);
}

END_TEST

WEIR_TEST_MAIN_WITH("serving", set_up, tear_down, a_change_of_shares_is_in_the_table_within_50_ms,
                    a_version_that_no_replica_has_ready_gives_its_share_to_the_others,
                    a_deleted_deployment_is_gone_from_the_table)
