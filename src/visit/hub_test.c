/* Both sides of streams, over a real server: joined, told, held up, cut, refused. */
#include "visit/hub.h"

#include "base/clock.h"
#include "base/test_main.h"
#include "base/test_seed.h"
#include "http/http.h"
#include "http/tunnel.h"
#include "visit/line.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

static struct weir_http_server *http;
static struct weir_visits *visits;
static struct weir_client *client;
static struct weir_line person, node;
static atomic_bool is_barred;
static json_t *order;

static struct {
    pthread_mutex_t lock;
    pthread_cond_t come;
    int n;
    bool has_exit;
    int exit_status;
    char failed[WEIR_FRAME_TEXT_BYTES + 1], what[64];
} ended = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, false, 0, "", ""};

static void on_ended(void *context, const struct weir_visit_end *end)
{
    (void)context;
    pthread_mutex_lock(&ended.lock);
    ended.n++;
    ended.has_exit = end->has_exit;
    ended.exit_status = end->exit_status;
    (void)snprintf(ended.failed, sizeof ended.failed, "%s", end->failed != NULL ? end->failed : "");
    (void)snprintf(ended.what, sizeof ended.what, "%s", end->visit.what);
    pthread_cond_broadcast(&ended.come);
    pthread_mutex_unlock(&ended.lock);
}

static bool may(void *context, const struct weir_visit *visit)
{
    (void)context;
    (void)visit;
    return !atomic_load(&is_barred);
}

/* GET /stream/ID as "ann", GET /place/ID?stream=N with the secret. */
static void handle(void *context, struct weir_http_request *request,
                   struct weir_http_response *response)
{
    struct weir_visit_seat *seat = NULL;
    struct weir_error err = {0};
    const char *told = NULL, *secret = weir_http_request_header(request, WEIR_VISIT_SECRET);
    const char *number = weir_http_request_query(request, "stream");
    bool is_person = strcmp(request->segments[0], "stream") == 0;
    (void)context;
    weir_status status =
        is_person ? weir_visits_enter(visits, request->segments[1], "ann", request->arena, &seat,
                                      &told, &err)
                  : weir_visits_arrive(visits, request->segments[1],
                                       number != NULL ? strtoll(number, NULL, 10) : -1,
                                       secret != NULL ? secret : "", request->arena, &seat, &err);
    if (status == WEIR_OK) {
        weir_http_response_upgrade(response, WEIR_VISIT_PROTOCOL, weir_visits_upgraded, seat);
    } else {
        weir_http_response_error(response, &err);
    }
}

static void set_up(void)
{
    static const struct weir_visits_ops ops = {on_ended, may};
    const struct weir_http_config config = {
        .listen = "127.0.0.1:0", .n_handlers = 2, .n_io_threads = 1, .has_upgrades = true};
    char url[64];
    ended.n = 0;
    atomic_store(&is_barred, false);
    order = json_pack("{s:[s]}", "command", "true");
    ck_assert_int_eq(weir_visits_create(&ops, NULL, &visits, NULL), WEIR_OK);
    ck_assert_int_eq(weir_http_server_start(&config, handle, NULL, &http, NULL), WEIR_OK);
    (void)snprintf(url, sizeof url, "http://127.0.0.1:%d", weir_http_server_port(http));
    ck_assert_int_eq(weir_client_open(&(struct weir_client_config){.server = url}, &client, NULL),
                     WEIR_OK);
    person.tunnel = node.tunnel = NULL;
}

static void tear_down(void)
{
    weir_line_close(&person);
    weir_line_close(&node);
    weir_client_close(client);
    weir_visits_stop(visits);
    weir_http_server_stop(http, 1000);
    weir_visits_destroy(visits);
    json_decref(order);
}

static weir_status begin(enum weir_visit_kind kind, const char *job, char id[WEIR_VISIT_ID_BYTES],
                         struct weir_error *err)
{
    const struct weir_visit visit = {.kind = kind,
                                     .job = job,
                                     .project = "p",
                                     .task = "t",
                                     .label = "worker-0",
                                     .attempt = 3,
                                     .node = "n1",
                                     .who = "ann",
                                     .what = "true",
                                     .order = order};
    return weir_visits_begin(visits, &visit, id, err);
}

static weir_status come(struct weir_line *line, const char *id, struct weir_error *err)
{
    char path[80];
    (void)snprintf(path, sizeof path, "/stream/%s", id);
    return weir_line_open(line, client, path, NULL, err);
}

/* As the node is told, of the newest stream. */
static weir_status arrive(struct weir_line *line, int64_t *serial, const char *secret,
                          struct weir_error *err)
{
    char path[128];
    json_t *list = weir_visits_wanted(visits, "n1", serial);
    ck_assert_ptr_nonnull(list);
    const json_t *wanted = json_array_get(list, json_array_size(list) - 1);
    ck_assert_int_eq(json_integer_value(json_object_get(wanted, "attempt")), 3);
    ck_assert_uint_eq(json_array_size(json_object_get(wanted, "command")), 1);
    (void)snprintf(path, sizeof path, "/place/%s?stream=%lld",
                   json_string_value(json_object_get(wanted, "id")),
                   json_integer_value(json_object_get(wanted, "stream")));
    const char *own = json_string_value(json_object_get(wanted, "secret"));
    weir_status status = weir_line_open(line, client, path, secret != NULL ? secret : own, err);
    json_decref(list);
    return status;
}

static void join(char id[WEIR_VISIT_ID_BYTES])
{
    int64_t serial = -1;
    ck_assert_int_eq(begin(WEIR_VISIT_EXEC, "j", id, NULL), WEIR_OK);
    ck_assert_int_eq(come(&person, id, NULL), WEIR_OK);
    ck_assert_int_eq(arrive(&node, &serial, NULL, NULL), WEIR_OK);
    ck_assert_ptr_null(weir_visits_wanted(visits, "n1", &serial));
}

/* The next frame, or the end: false. */
static bool next(struct weir_line *line)
{
    int64_t due_ms = weir_mono_ms() + 20000;
    while (!weir_line_next(line) && !line->is_over) {
        struct pollfd fd = weir_line_poll(line, true);
        ck_assert_int_gt(due_ms - weir_mono_ms(), 0);
        (void)poll(&fd, 1, 1000);
    }
    return !line->is_over;
}

static void await_end(void)
{
    pthread_mutex_lock(&ended.lock);
    while (ended.n == 0) {
        pthread_cond_wait(&ended.come, &ended.lock);
    }
    pthread_mutex_unlock(&ended.lock);
}

START_TEST(bytes_go_both_ways_and_how_it_ended_is_told)
{
    char id[WEIR_VISIT_ID_BYTES];
    join(id);
    ck_assert(weir_frame_put(&person.box, WEIR_FRAME_INPUT, "hello", 5));
    ck_assert(weir_line_flush(&person));
    ck_assert(next(&node));
    ck_assert_int_eq(node.frames.type, WEIR_FRAME_INPUT);
    ck_assert_str_eq(node.payload, "hello");
    json_t *list = weir_visits_list(visits, "j");
    ck_assert_uint_eq(json_array_size(list), 1);
    json_decref(list);
    ck_assert(weir_frame_put(&node.box, WEIR_FRAME_OUTPUT, "world", 5));
    ck_assert(weir_frame_put(&node.box, WEIR_FRAME_EXIT, "\7\0", 2));
    ck_assert(weir_line_flush(&node));
    ck_assert(next(&person));
    ck_assert_str_eq(person.payload, "world");
    ck_assert(next(&person));
    ck_assert_int_eq(person.frames.type, WEIR_FRAME_EXIT);
    weir_line_close(&node);
    weir_line_close(&person);
    await_end();
    ck_assert(ended.has_exit);
    ck_assert_int_eq(ended.exit_status, 7);
    ck_assert_str_eq(ended.what, "true");
    list = weir_visits_list(visits, "j");
    ck_assert_uint_eq(json_array_size(list), 0);
    json_decref(list);
}

END_TEST

/* The reader sleeps: the writer is stopped, by no more than the sockets and the relay hold. */
START_TEST(who_does_not_read_holds_up_who_writes_and_loses_nothing)
{
    char id[WEIR_VISIT_ID_BYTES];
    static char bytes[WEIR_FRAME_MAX_BYTES], got[WEIR_FRAME_MAX_BYTES];
    struct weir_rng rng, again;
    uint64_t seed = test_seed(&rng);
    size_t n_put = 0, n_got = 0;
    weir_rng_init(&again, seed, 0);
    join(id);
    for (int n_stuck = 0; n_stuck < 20;) {
        size_t len = 1 + weir_rng_below(&rng, sizeof bytes);
        for (size_t i = 0; i < len; i += 97) {
            bytes[i] = (char)weir_rng_below(&rng, 256);
        }
        while (!weir_frame_put(&node.box, WEIR_FRAME_OUTPUT, bytes, len) && n_stuck < 20) {
            struct pollfd fd = weir_line_poll(&node, false);
            n_stuck = poll(&fd, 1, 10) == 0 ? n_stuck + 1 : 0;
            ck_assert(weir_line_flush(&node));
        }
        n_put += n_stuck < 20 ? len : 0;
        ck_assert_uint_lt(n_put, (size_t)256 << 20);
    }
    ck_assert_uint_gt(n_put, WEIR_FRAME_MAX_BYTES);
    memset(bytes, 0, sizeof bytes);
    while (n_got < n_put) {
        (void)weir_line_flush(&node);
        if (weir_line_next(&person)) {
            size_t len = 1 + weir_rng_below(&again, sizeof got);
            for (size_t i = 0; i < len; i += 97) {
                got[i] = (char)weir_rng_below(&again, 256);
            }
            ck_assert_uint_eq(person.frames.len, len);
            ck_assert_int_eq(memcmp(person.payload, got, len), 0);
            n_got += len;
        }
    }
}

END_TEST

START_TEST(a_wrong_frame_of_either_side_ends_it)
{
    char id[WEIR_VISIT_ID_BYTES], left[1];
    struct weir_line *bad = _i == 0 ? &person : &node, *other = _i == 0 ? &node : &person;
    join(id);
    ck_assert_int_eq(weir_http_tunnel_write(bad->tunnel, "\x63\0\0\0\1x", 6), 6);
    ck_assert(!next(other));
    await_end();
    ck_assert(!ended.has_exit);
    ck_assert_int_eq(weir_http_tunnel_read(other->tunnel, left, 1), -1);
}

END_TEST

START_TEST(a_stream_is_for_who_has_its_secret_and_once)
{
    char id[WEIR_VISIT_ID_BYTES];
    int64_t serial = -1, later = -1;
    struct weir_error err;
    static struct weir_line second;
    ck_assert_int_eq(begin(WEIR_VISIT_EXEC, "j", id, NULL), WEIR_OK);
    ck_assert_int_eq(come(&person, "00000000000000000000000000000000", &err), WEIR_ERR_NOT_FOUND);
    ck_assert_int_eq(come(&person, id, NULL), WEIR_OK);
    ck_assert_int_eq(come(&second, id, &err), WEIR_ERR_CONFLICT);
    ck_assert_int_eq(arrive(&node, &serial, "guessed", &err), WEIR_ERR_NOT_FOUND);
    serial = -1;
    ck_assert_int_eq(arrive(&node, &serial, NULL, NULL), WEIR_OK);
    ck_assert_ptr_null(weir_visits_wanted(visits, "n1", &later)); /* it is not wanted again */
    ck_assert_ptr_null(weir_visits_wanted(visits, "n2", &later));
}

END_TEST

START_TEST(no_job_has_more_than_its_bound)
{
    char id[WEIR_VISIT_ID_BYTES];
    struct weir_error err;
    for (int i = 0; i < WEIR_VISITS_OF_JOB_MAX; i++) {
        ck_assert_int_eq(begin(WEIR_VISIT_EXEC, "j", id, NULL), WEIR_OK);
    }
    ck_assert_int_eq(begin(WEIR_VISIT_EXEC, "j", id, &err), WEIR_ERR_LIMIT);
    ck_assert_ptr_nonnull(strstr(err.message, "64 are inside this job"));
    ck_assert_int_eq(begin(WEIR_VISIT_EXEC, "k", id, NULL), WEIR_OK);
    weir_visits_stop(visits);
    ck_assert_int_eq(begin(WEIR_VISIT_EXEC, "k", id, &err), WEIR_ERR_UNAVAILABLE);
    ck_assert_int_eq(ended.n, WEIR_VISITS_OF_JOB_MAX + 1);
}

END_TEST

START_TEST(no_person_has_all_places)
{
    char id[WEIR_VISIT_ID_BYTES], job[] = "j0";
    struct weir_error err;
    for (int i = 0; i < WEIR_VISITS_OF_WHO_MAX; i++) {
        job[1] = (char)('0' + i / (WEIR_VISITS_OF_JOB_MAX / 2));
        ck_assert_int_eq(begin(WEIR_VISIT_EXEC, job, id, NULL), WEIR_OK);
    }
    ck_assert_int_eq(begin(WEIR_VISIT_EXEC, "k", id, &err), WEIR_ERR_LIMIT);
    ck_assert_ptr_nonnull(strstr(err.message, "you are inside jobs 128 times"));
    const struct weir_visit other = {.job = "j0",
                                     .project = "p",
                                     .task = "t",
                                     .label = "worker-0",
                                     .node = "n1",
                                     .who = "bob",
                                     .what = "true",
                                     .order = order};
    ck_assert_int_eq(weir_visits_begin(visits, &other, id, &err), WEIR_OK);
}

END_TEST

START_TEST(a_forwarded_port_has_streams_that_end_with_the_first)
{
    char id[WEIR_VISIT_ID_BYTES];
    int64_t serial = -1;
    static struct weir_line persons, nodes; /* of a connection */
    ck_assert_int_eq(begin(WEIR_VISIT_FORWARD, "j", id, NULL), WEIR_OK);
    ck_assert_int_eq(come(&person, id, NULL), WEIR_OK);
    ck_assert_int_eq(arrive(&node, &serial, NULL, NULL), WEIR_OK);
    ck_assert_int_eq(come(&persons, id, NULL), WEIR_OK);
    ck_assert_int_eq(arrive(&nodes, &serial, NULL, NULL), WEIR_OK);
    ck_assert(weir_frame_put(&nodes.box, WEIR_FRAME_OUTPUT, "x", 1));
    ck_assert(weir_line_flush(&nodes));
    ck_assert(next(&persons));
    weir_line_close(&person);
    ck_assert(!next(&node));
    weir_line_close(&node);
    ck_assert(!next(&persons));
    ck_assert(!next(&nodes));
    weir_line_close(&persons);
    weir_line_close(&nodes);
    await_end();
}

END_TEST

START_TEST(a_server_that_stops_says_so)
{
    char id[WEIR_VISIT_ID_BYTES];
    join(id);
    weir_visits_stop(visits);
    ck_assert(next(&person));
    ck_assert_int_eq(person.frames.type, WEIR_FRAME_FAILED);
    ck_assert_str_eq(person.payload, "the server is stopping");
    ck_assert(!next(&person));
    ck_assert(!next(&node));
    ck_assert_str_eq(ended.failed, "the server is stopping");
}

END_TEST

int main(void)
{
    Suite *suite = suite_create("hub");
    TCase *tcase = tcase_create("hub");
    tcase_set_timeout(tcase, 60);
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_test(tcase, bytes_go_both_ways_and_how_it_ended_is_told);
    tcase_add_test(tcase, who_does_not_read_holds_up_who_writes_and_loses_nothing);
    tcase_add_loop_test(tcase, a_wrong_frame_of_either_side_ends_it, 0, 2);
    tcase_add_test(tcase, a_stream_is_for_who_has_its_secret_and_once);
    tcase_add_test(tcase, no_job_has_more_than_its_bound);
    tcase_add_test(tcase, no_person_has_all_places);
    tcase_add_test(tcase, a_forwarded_port_has_streams_that_end_with_the_first);
    tcase_add_test(tcase, a_server_that_stops_says_so);
    suite_add_tcase(suite, tcase);
    return weir_test_run(suite);
}
