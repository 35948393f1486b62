/* The server hears what became of each deployment, what is decided, and what waits. */
#include "predict/test_support.h"

#include <string.h>

static struct test_dir dir;
static struct test_server *server;
static struct replica *replica;

/** What the replica's last word about itself should be; < 0: any. */
struct expected {
    const char *state, *reason;
    int64_t revision, served, decided, waiting;
};

static bool is_as_expected(void *context)
{
    const struct expected *expected = context;
    json_t *heard = test_server_heartbeat(server);
    bool is_right =
        strcmp(test_text(heard, "state"), expected->state) == 0 &&
        strstr(test_text(heard, "reason"), expected->reason) != NULL &&
        test_int(heard, "revision") == expected->revision &&
        test_int(heard, "served_revision") == expected->served &&
        (expected->decided < 0 || test_int(heard, "frames_decided") == expected->decided) &&
        (expected->waiting < 0 || test_int(heard, "frames_waiting") == expected->waiting);
    json_decref(heard);
    return is_right;
}

static void expect(struct expected expected)
{
    if (!test_wait(is_as_expected, &expected)) {
        json_t *heard = test_server_heartbeat(server);
        ck_abort_msg("%s", json_dumps(heard, 0));
    }
}

static json_t *deployment(const char *model, int64_t version)
{
    return test_deployment(server, &dir, test_path(&dir, "%s", model), version, 4, 4, 1, true);
}

static void put_frames(int first, int n)
{
    char bytes[1024];
    for (int i = first; i < first + n; i++) {
        test_put_frame(&dir, "cam", i, bytes, test_picture(i % 4, 100 + i, bytes));
    }
}

START_TEST(the_server_hears_what_became_of_each_deployment)
{
    test_dir_make(&dir);
    server = test_server_start(&dir, 0);
    test_write_model(test_path(&dir, "good"), 1, NULL);
    test_write_file(test_path(&dir, "damaged"), "no model", 8);
    put_frames(0, 20);
    replica = test_replica_start(&dir, test_server_port(server), test_directory_source(&dir), NULL);
    expect((struct expected){"STARTING", "", 0, 0, 0, 20}); /* nobody reads them */
    test_server_deploy(server, deployment("damaged", 1));
    expect((struct expected){"FAILED", "model", 1, 0, 0, 20});
    test_server_deploy(server, deployment("good", 2));
    expect((struct expected){"APPLIED", "", 2, 2, 20, 0});
    json_t *heard = test_server_heartbeat(server);
    ck_assert_int_eq(test_int(heard, "frames_taken"), 20);
    ck_assert_int_gt(test_int(heard, "last_frame_ms"), 0);
    ck_assert_int_eq(test_int(heard, "backlog_ms"), 0);
    ck_assert(json_is_true(json_object_get(json_object_get(heard, "source"), "connected")));
    const json_t *shipper = json_array_get(json_object_get(heard, "consumers"), 0);
    ck_assert_str_eq(test_text(shipper, "name"), "server");
    ck_assert(json_is_true(json_object_get(shipper, "connected")));
    json_decref(heard);
    test_server_deploy(server, deployment("damaged", 3));
    expect((struct expected){"FAILED", "model", 3, 2, 20, 0}); /* the one before serves on */
    put_frames(20, 5);
    expect((struct expected){"FAILED", "model", 3, 2, 25, 0});
    test_server_deploy(server, deployment("good", 4));
    expect((struct expected){"APPLIED", "", 4, 4, 25, 0});
    test_replica_stop(replica);
    test_server_stop(server);
    test_dir_drop(&dir);
}

END_TEST

WEIR_TEST_MAIN("heartbeat", the_server_hears_what_became_of_each_deployment)
