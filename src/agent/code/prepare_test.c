/* Preparing a task, with a board that the test itself keeps. */
#include "agent/code/prepare.h"

#include "agent/rendezvous/rendezvous.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/test_main.h"
#include "http/http.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

static struct {
    struct weir_http_server *http;
    pthread_mutex_t lock;
    json_t *values; /* lock */
    char url[64];
    atomic_int n_waiting;
} board;

static char dir[WEIR_DIR_TEMPORARY_BYTES];
static struct weir_arena arena;
static struct weir_error err;
static struct task task;

/* PUT /api/v1/jobs/j1/board/KEY and GET /api/v1/jobs/j1/board. */
static void handle(void *context, struct weir_http_request *request,
                   struct weir_http_response *response)
{
    (void)context;
    const char *token = weir_http_request_header(request, "Authorization");
    pthread_mutex_lock(&board.lock);
    if (token == NULL || strcmp(token, "Bearer weir_task.x") != 0) {
        weir_http_response_errorf(response, WEIR_ERR_UNAUTH, "no token");
    } else if (request->n_segments == 6) {
        json_t *body = json_loadb(request->body, request->body_len, 0, NULL);
        json_object_set(board.values, request->segments[5], json_object_get(body, "value"));
        json_decref(body);
        weir_http_response_empty(response);
    } else {
        const char *count = weir_http_request_query(request, "count");
        size_t n_wanted = (size_t)strtol(count, NULL, 10);
        if (json_object_size(board.values) < n_wanted && !request->is_expired) {
            atomic_fetch_add(&board.n_waiting, 1);
            weir_http_response_wait(response, 1, 20000);
        } else {
            weir_http_response_json(response, 200, json_pack("{s:O}", "values", board.values));
        }
    }
    pthread_mutex_unlock(&board.lock);
    weir_http_wake(board.http, 1);
}

static void setup(void)
{
    struct weir_http_config config = {.listen = "127.0.0.1:0"};
    weir_arena_init(&arena, 0);
    memset(&board, 0, sizeof board);
    pthread_mutex_init(&board.lock, NULL);
    board.values = json_object();
    ck_assert_int_eq(weir_http_server_start(&config, handle, NULL, &board.http, &err), WEIR_OK);
    (void)snprintf(board.url, sizeof board.url, "http://127.0.0.1:%d",
                   weir_http_server_port(board.http));
    ck_assert_int_eq(weir_dir_make_temporary("prepare-test", dir, &err), WEIR_OK);
    char work[WEIR_DIR_TEMPORARY_BYTES + 8];
    (void)snprintf(work, sizeof work, "%s/work", dir);
    ck_assert_int_eq(weir_dir_make(work, 0700, &err), WEIR_OK);
}

static void teardown(void)
{
    weir_http_server_stop(board.http, 1000);
    json_decref(board.values);
    weir_arena_fini(&arena);
    ck_assert_int_eq(weir_dir_remove(dir, NULL), WEIR_OK);
}

/* Rank `rank` of the job j1; takes `meet`. */
static weir_status prepare(int64_t rank, json_t *meet, const char *server)
{
    json_t *document = json_pack(
        "{s:s,s:s,s:i,s:s,s:I,s:s,s:[s,s],s:{s:s},s:{s:s},s:o,s:{s:s?,s:s,s:s}}", "id", "t1", "job",
        "j1", "attempt", 3, "role", "worker", "rank", (json_int_t)rank, "desired", "running",
        "argv", "python3", "{{x}}", "env", "OWN", "mine", "files", "token", "weir_task.x", "meet",
        meet, "surroundings", "server", server, "address", "10.0.0.7", "node", "n7");
    ck_assert_ptr_nonnull(document);
    ck_assert_int_eq(task_from_json(document, &arena, &task, &err), WEIR_OK);
    weir_status status = prepare_task(dir, document, &task, &arena, &err);
    json_decref(document);
    return status;
}

static const char *variable(const char *name)
{
    for (size_t i = 0; i < task.n_env; i++) {
        if (strcmp(task.env[i].name, name) == 0) {
            return task.env[i].value;
        }
    }
    return NULL;
}

static json_t *meet_of(int size, int wait)
{
    return json_pack("{s:i,s:i,s:{s:s,s:s,s:s},s:{s:s},s:[s,s]}", "size", size, "wait", wait, "env",
                     "MASTER", "{{0|@address:@node}}", "OWN", "other", "RESTARTS", "{{restarts}}",
                     "files", "hosts", "{{0-0|@address\n}}", "launcher", "run", "{{0|@address}}");
}

START_TEST(one_rank_alone_asks_nobody)
{
    ck_assert_int_eq(prepare(0, meet_of(1, 1), NULL), WEIR_OK);
    ck_assert_str_eq(variable("MASTER"), "10.0.0.7:n7");
    ck_assert_str_eq(variable("OWN"), "mine"); /* what the user gave stays */
    ck_assert_str_eq(variable("RESTARTS"), "2");
    ck_assert_str_eq(task.argv[0], "run");
    ck_assert_str_eq(task.argv[1], "10.0.0.7");
    ck_assert_str_eq(task.argv[3], "{{x}}"); /* the user's own words are not filled in */
    ck_assert_ptr_null(task.argv[4]);
    char path[WEIR_DIR_TEMPORARY_BYTES + 16], text[64];
    size_t len;
    (void)snprintf(path, sizeof path, "%s/work/hosts", dir);
    ck_assert_int_eq(weir_file_read_into(path, text, sizeof text - 1, &len, &err), WEIR_OK);
    text[len] = '\0';
    ck_assert_str_eq(text, "10.0.0.7\n");
    ck_assert_uint_eq(json_object_size(board.values), 0);
}

END_TEST

/* What the first rank leaves on the board. */
static void leave(const char *rank, const char *address, const char *node)
{
    json_object_set_new(
        board.values, rank,
        json_sprintf("{\"address\":\"%s\",\"port\":20001,\"node\":\"%s\"}", address, node));
}

START_TEST(a_rank_leaves_its_address_and_learns_that_of_the_first)
{
    leave("at.0000", "10.0.0.1", "n1");
    ck_assert_int_eq(prepare(1, meet_of(2, 2), board.url), WEIR_OK);
    ck_assert_str_eq(variable("MASTER"), "10.0.0.1:n1");
    struct rendezvous_member own;
    const char *said = json_string_value(json_object_get(board.values, "at.0001"));
    ck_assert_int_eq(rendezvous_member_read(said, &own, &err), WEIR_OK);
    ck_assert_str_eq(own.address, "10.0.0.7");
    ck_assert_str_eq(own.node, "n7");
    ck_assert_int_gt(own.port, 0);
    ck_assert_int_eq(prepare(1, meet_of(2, 2), board.url), WEIR_OK); /* again: as before */
    ck_assert_str_eq(variable("MASTER"), "10.0.0.1:n1");
}

END_TEST

START_TEST(what_cannot_be_reached_or_read_ends_the_preparation)
{
    leave("at.0000", "127.0.0.1", "n1");
    ck_assert_int_eq(prepare(1, meet_of(2, 1), board.url), WEIR_ERR_UNSUPPORTED);
    ck_assert_ptr_nonnull(strstr(err.message, "rendezvous: rank 0 is on node n1"));
    ck_assert_ptr_nonnull(strstr(err.message, "--address"));
    leave("at.0000", "127.0.0.1", "n7"); /* of this node */
    ck_assert_int_eq(prepare(1, meet_of(2, 1), board.url), WEIR_OK);
    json_object_set_new(board.values, "at.0000", json_string("rm -rf"));
    ck_assert_int_eq(prepare(1, meet_of(2, 1), board.url), WEIR_ERR_INVALID);
    ck_assert_int_eq(prepare(1, meet_of(2, 0), board.url), WEIR_ERR_INVALID);
    ck_assert_int_eq(prepare(1, meet_of(2, 1), NULL), WEIR_ERR_UNSUPPORTED);
}

END_TEST

static void *stop_main(void *context)
{
    (void)context;
    while (atomic_load(&board.n_waiting) == 0) {
        (void)usleep(1000);
    }
    ck_assert_int_eq(task_stop_write(dir, 5, NULL), WEIR_OK);
    return NULL;
}

START_TEST(a_stop_request_ends_the_wait_for_others)
{
    pthread_t thread;
    int64_t begun_ms = weir_mono_ms();
    ck_assert_int_eq(pthread_create(&thread, NULL, stop_main, NULL), 0);
    ck_assert_int_eq(prepare(1, meet_of(2, 1), board.url), WEIR_ERR_CANCELLED);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    ck_assert_int_lt(weir_mono_ms() - begun_ms, 10000);
    ck_assert_int_eq(prepare(1, meet_of(2, 1), board.url), WEIR_ERR_CANCELLED); /* it is there */
}

END_TEST

WEIR_TEST_MAIN_WITH("prepare", setup, teardown, one_rank_alone_asks_nobody,
                    a_rank_leaves_its_address_and_learns_that_of_the_first,
                    what_cannot_be_reached_or_read_ends_the_preparation,
                    a_stop_request_ends_the_wait_for_others)
