/* Whole replicas in this process, against a server in this process. */
#include "predict/test_support.h"

#include "base/clock.h"
#include "http/http_client.h"

#include <dirent.h>
#include <string.h>

#define N_FRAMES 60

static struct test_dir dir;
static struct test_server *server;
static struct weir_arena arena;
static struct predict_spec spec;
static struct replica *replica;

static void start_replica(const char *source, const char *sink)
{
    struct weir_error err = {0};
    weir_arena_init(&arena, 0);
    const char *path = test_write_spec(&dir, test_server_port(server), source, sink);
    ck_assert_msg(predict_spec_load(path, &arena, &spec, &err) == WEIR_OK, "%s", err.message);
    ck_assert_msg(replica_start(&spec, &replica, &err) == WEIR_OK, "%s", err.message);
}

static void stop_replica(void)
{
    replica_stop(replica);
    weir_arena_fini(&arena);
}

static void set_up(void)
{
    test_dir_make(&dir);
    server = test_server_start(&dir, 0);
    test_write_model(test_path(&dir, "model-1"), 1, NULL);
}

static void tear_down(void)
{
    test_server_stop(server);
    test_dir_drop(&dir);
}

static bool has_all(void *context)
{
    return test_server_n_decisions(server, NULL) >= *(const size_t *)context;
}

static void wait_for_decisions(size_t n)
{
    ck_assert_msg(test_wait(has_all, &n), "only %zu of %zu decisions came",
                  test_server_n_decisions(server, NULL), n);
}

static void put_frame(const char *camera, int64_t frame, const void *bytes, size_t len)
{
    struct weir_error err;
    ck_assert_int_eq(weir_dir_make(test_path(&dir, "frames/%s", camera), 0755, &err), WEIR_OK);
    test_write_file(test_path(&dir, "frames/%s/%06lld.pgm", camera, (long long)frame), bytes, len);
}

static size_t count_files(const char *path)
{
    DIR *stream = opendir(path);
    size_t n = 0;
    const struct dirent *entry;
    while (stream != NULL && (entry = readdir(stream)) != NULL) {
        n += entry->d_name[0] != '.';
    }
    if (stream != NULL) {
        closedir(stream);
    }
    return n;
}

static const char *verdict_of(const json_t *decision)
{
    return json_string_value(json_object_get(decision, "verdict"));
}

static char *directory_source(void)
{
    static char text[256];
    (void)snprintf(text, sizeof text, "{\"kind\":\"directory\",\"path\":\"%s/frames\"}", dir.path);
    return text;
}

START_TEST(frames_of_a_directory_are_decided_once_and_removed)
{
    char bytes[1024];
    size_t n_again;
    set_up();
    test_server_deploy(
        server, test_deployment(server, &dir, test_path(&dir, "model-1"), 7, 10, 4, 3, true));
    start_replica(directory_source(), test_path(&dir, "out.jsonl"));
    for (int i = 0; i < N_FRAMES; i++) {
        size_t len = test_picture(i % 12, 100 + i, bytes); /* People 10 and 11 are strangers. */
        put_frame(i % 2 == 0 ? "west" : "east", i, bytes, len);
    }
    put_frame("west", 9998, "P5 16 16 255\nshort", 18);
    wait_for_decisions(N_FRAMES + 1);
    for (int i = 0; i < N_FRAMES; i++) {
        json_t *decision = test_server_decision(server, i % 2 == 0 ? "west" : "east", i);
        ck_assert_ptr_nonnull(decision);
        if (i % 12 < 10) {
            char name[8];
            (void)snprintf(name, sizeof name, "p%02d", i % 12);
            ck_assert_str_eq(verdict_of(decision), "grant");
            ck_assert_str_eq(json_string_value(json_object_get(decision, "person")), name);
        } else {
            ck_assert_str_eq(verdict_of(decision), "unknown");
            ck_assert(json_is_null(json_object_get(decision, "person")));
        }
        ck_assert_int_eq(json_integer_value(json_object_get(decision, "model_version")), 7);
        ck_assert_int_eq(json_integer_value(json_object_get(decision, "gallery_version")), 3);
        ck_assert_int_gt(json_integer_value(json_object_get(decision, "durable_us")), 0);
        ck_assert(
            test_server_has_blob(server, json_string_value(json_object_get(decision, "image"))));
        json_decref(decision);
    }
    json_t *damaged = test_server_decision(server, "west", 9998);
    ck_assert_str_eq(verdict_of(damaged), "error");
    ck_assert_ptr_nonnull(json_string_value(json_object_get(damaged, "error")));
    json_decref(damaged);
    (void)test_server_n_decisions(server, &n_again);
    ck_assert_uint_eq(n_again, 0);
    stop_replica();
    ck_assert_uint_eq(count_files(test_path(&dir, "frames/west")), 0);
    ck_assert_uint_eq(count_files(test_path(&dir, "frames/east")), 0);
    ck_assert_uint_eq(count_files(test_path(&dir, "replica/images")), 0);
    tear_down();
}

END_TEST

WEIR_TEST_MAIN("replica", frames_of_a_directory_are_decided_once_and_removed)
