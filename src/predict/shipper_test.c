/* What the server will never take is set aside; all the rest arrives, once. */
#include "predict/shipper.h"

#include "base/clock.h"
#include "predict/left.h"
#include "predict/test_support.h"

#include <inttypes.h>
#include <string.h>
#include <unistd.h>

static struct test_dir dir;
static struct test_server *server;
static struct outbox *outbox;
static struct pictures *pictures;
static struct refused *refused;
static struct weir_error err;

static void forget(void *context, void *const *tickets, size_t n)
{
    (void)context;
    (void)tickets;
    (void)n;
}

static void set_up(void)
{
    test_dir_make(&dir);
    server = test_server_start(&dir, 0);
    ck_assert_int_eq(weir_dir_make(test_path(&dir, "replica"), 0700, &err), WEIR_OK);
    const struct outbox_config config = {.dir = test_path(&dir, "replica/outbox"),
                                         .on_durable = forget};
    ck_assert_int_eq(outbox_open(&config, &outbox, &err), WEIR_OK);
    ck_assert_int_eq(
        pictures_open(test_path(&dir, "replica/images"), PICTURES_MAX, &pictures, &err), WEIR_OK);
    refused = refused_open(test_path(&dir, "replica"));
}

static void tear_down(void)
{
    refused_close(refused);
    outbox_close(outbox);
    pictures_close(pictures);
    test_server_stop(server);
    test_dir_drop(&dir);
}

static void put_frames(int64_t first, int64_t last)
{
    for (int64_t frame = first; frame <= last; frame++) {
        char id[WEIR_UUID_BYTES];
        (void)snprintf(id, sizeof id, "id-%" PRId64, frame);
        test_outbox_put(outbox, id, "cam", frame, NULL);
    }
    ck_assert(outbox_flush(outbox, 20000));
}

static struct consumer *start(void)
{
    static char url[64], token[128], folder[128], ion[] = "door", pipeline[] = "prediction";
    static struct predict_spec spec;
    struct consumer *shipper;
    (void)snprintf(url, sizeof url, "http://127.0.0.1:%d", test_server_port(server));
    (void)snprintf(token, sizeof token, "%s", test_path(&dir, "token"));
    (void)snprintf(folder, sizeof folder, "%s", test_path(&dir, "replica"));
    test_write_file(token, "weir_test\n", 10);
    spec = (struct predict_spec){.host = {.server = url, .token_file = token, .dir = folder},
                                 .ion = ion,
                                 .pipeline = pipeline};
    weir_status status = shipper_start(&spec, outbox, pictures, refused, &shipper, &err);
    ck_assert_msg(status == WEIR_OK, "%s", err.message);
    return shipper;
}

START_TEST(a_batch_that_is_too_large_arrives_in_parts)
{
    size_t n_again;
    set_up();
    test_server_limit(server, 7, 0);
    put_frames(1, 150);
    struct consumer *shipper = start();
    test_wait_for_decisions(server, 150);
    consumers_stop(&shipper, 1, 20000);
    ck_assert_uint_eq(test_server_n_decisions(server, &n_again), 150);
    ck_assert_uint_eq(n_again, 0);
    ck_assert_int_eq(refused_count(refused), 0);
    tear_down();
}

END_TEST

/* The replica before it has ended with the server away. */
START_TEST(what_a_replica_has_left_behind_is_brought_by_the_next_once)
{
    char url[64], token[128], own[128], before[128], nowhere[128], ion[] = "door",
                                                                   pipeline[] = "prediction";
    size_t n_again;
    set_up();
    put_frames(1, 150);
    outbox_close(outbox);
    outbox = NULL;
    (void)snprintf(url, sizeof url, "http://127.0.0.1:%d", test_server_port(server));
    (void)snprintf(token, sizeof token, "%s", test_path(&dir, "token"));
    (void)snprintf(own, sizeof own, "%s", test_path(&dir, "next"));
    (void)snprintf(before, sizeof before, "%s", test_path(&dir, "replica"));
    (void)snprintf(nowhere, sizeof nowhere, "%s", test_path(&dir, "nowhere"));
    test_write_file(token, "weir_test\n", 10);
    const struct predict_spec spec = {.host = {.server = url, .token_file = token, .dir = own},
                                      .ion = ion,
                                      .pipeline = pipeline,
                                      .left = {nowhere, before, before}, /* held by itself: once */
                                      .n_left = 3};
    for (int i = 0; i < 2; i++) {
        struct left *left = left_start(&spec);
        test_wait_for_decisions(server, 150);
        left_stop(left, 20000);
        ck_assert_uint_eq(test_server_n_decisions(server, &n_again), 150);
        ck_assert_uint_eq(n_again, 0);
    }
    tear_down();
}

END_TEST

/* A line of refused.jsonl, new reference. */
static json_t *only_refused(void)
{
    json_t *line;
    ck_assert_int_eq(weir_json_load(test_path(&dir, "replica/refused.jsonl"), 1 << 20, &line, &err),
                     WEIR_OK);
    return line;
}

START_TEST(one_decision_that_is_too_large_is_set_aside_and_the_rest_goes_on)
{
    size_t n_again;
    set_up();
    test_server_limit(server, 0, 77);
    put_frames(1, 150);
    struct consumer *shipper = start();
    test_wait_for_decisions(server, 149);
    put_frames(151, 160); /* what comes behind it */
    test_wait_for_decisions(server, 159);
    consumers_stop(&shipper, 1, 20000);
    ck_assert_uint_eq(test_server_n_decisions(server, &n_again), 159);
    ck_assert_uint_eq(n_again, 0);
    ck_assert_int_eq(refused_count(refused), 1);
    json_t *line = only_refused();
    ck_assert_int_eq(test_int(line, "frame"), 77);
    ck_assert_ptr_nonnull(strstr(test_text(line, "refused"), "too large"));
    json_decref(line);
    tear_down();
}

END_TEST

START_TEST(what_was_set_aside_is_counted_until_it_is_taken_away)
{
    set_up();
    json_t *decision = json_pack("{s:s,s:s}", "id", "a", "picture", "large");
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(refused_put(refused, decision, "no", &err), WEIR_OK);
    }
    refused_close(refused);
    refused = refused_open(test_path(&dir, "replica"));
    ck_assert_int_eq(refused_count(refused), 3);
    ck_assert_int_eq(unlink(test_path(&dir, "replica/refused.jsonl")), 0);
    ck_assert_int_eq(refused_count(refused), 0);
    ck_assert_int_eq(refused_put(refused, decision, "no", &err), WEIR_OK);
    ck_assert_int_eq(refused_count(refused), 1);
    json_t *line = only_refused();
    ck_assert_ptr_null(json_object_get(line, "picture"));
    ck_assert_ptr_nonnull(json_object_get(decision, "picture"));
    json_decref(line);
    json_decref(decision);
    tear_down();
}

END_TEST

START_TEST(what_is_set_aside_has_a_bound)
{
    set_up();
    char *padding = calloc(1, (1 << 20) + 1);
    memset(padding, 'x', 1 << 20);
    json_t *decision = json_pack("{s:s,s:s}", "id", "a", "padding", padding);
    for (int i = 0; i < 100; i++) {
        ck_assert_int_eq(refused_put(refused, decision, "no", &err), WEIR_OK);
    }
    /* A file holds 15 lines of a little more than a mebibyte; the newest has what is left of 100.
     */
    ck_assert_int_eq(refused_count(refused), 3 * 15 + 100 % 15);
    ck_assert(!weir_path_exists(test_path(&dir, "replica/refused.jsonl.4")));
    free(padding);
    json_decref(decision);
    tear_down();
}

END_TEST

WEIR_TEST_MAIN("shipper", a_batch_that_is_too_large_arrives_in_parts,
               what_a_replica_has_left_behind_is_brought_by_the_next_once,
               one_decision_that_is_too_large_is_set_aside_and_the_rest_goes_on,
               what_was_set_aside_is_counted_until_it_is_taken_away, what_is_set_aside_has_a_bound)
