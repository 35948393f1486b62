/* Decisions at doors of each kind that needs no broker: what may open does, once; what may not does not, and is told. */
#include "predict/door.h"

#include "base/clock.h"
#include "base/hash.h"
#include "endpoint/door/command.h"
#include "endpoint/door/webhook.h"
#include "http/http.h"
#include "http/post.h"
#include "predict/test_support.h"

#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define CALLS_MAX 64

static struct test_dir dir;
static struct weir_error err;
static struct outbox *outbox;
static struct refused *refused;
static struct serving_slot slot;
static struct door_board board;
static struct consumer *consumer;
static char url[64], key[] = "whsec_c2l4IHRpbWVzIHNldmVuIGlzIGZvcnR5LXR3bw==", replica[] = "J-0",
                     name[] = "door-1", open_verb[] = "open";
static const char *cameras[] = {"door-1"};
static struct weir_door door;
static struct weir_door_webhook webhook;
static struct predict_spec spec = {.host = {.replica = replica}};
static struct door_setup setup = {&door, &board, &slot, NULL};

/* The controller: what it got, and how it answers. */
static struct {
    pthread_mutex_t lock;
    struct weir_http_server *server;
    int n_calls, n_bad, n_busy; /* 503 to the first n_busy */
    char verbs[CALLS_MAX][8], ids[CALLS_MAX][WEIR_UUID_BYTES];
    int64_t seqs[CALLS_MAX];
    const char *answer;
} controller = {.lock = PTHREAD_MUTEX_INITIALIZER};

static bool is_signed(const struct weir_http_request *request, const char *id)
{
    char expected[WEIR_POST_STANDARD_BYTES];
    const char *time = weir_http_request_header(request, "webhook-timestamp");
    const char *given = weir_http_request_header(request, "webhook-signature");
    const char *its = weir_http_request_header(request, "webhook-id");
    if (time == NULL || given == NULL || its == NULL || strcmp(its, id) != 0) {
        return false;
    }
    weir_post_signature_standard(key, its, time, request->body, request->body_len, expected);
    return strcmp(given, expected) == 0;
}

static void take(void *context, struct weir_http_request *request,
                 struct weir_http_response *response)
{
    (void)context;
    json_t *body = json_loads(request->body, 0, NULL);
    const json_t *data = json_object_get(body, "data");
    pthread_mutex_lock(&controller.lock);
    int i = WEIR_MIN(controller.n_calls, CALLS_MAX - 1);
    controller.n_calls++;
    controller.n_bad += !is_signed(request, test_text(data, "id"));
    (void)snprintf(controller.verbs[i], sizeof controller.verbs[i], "%s", test_text(data, "verb"));
    (void)snprintf(controller.ids[i], sizeof controller.ids[i], "%s", test_text(data, "id"));
    controller.seqs[i] = test_int(data, "seq");
    int http = controller.n_calls <= controller.n_busy ? 503 : 200;
    pthread_mutex_unlock(&controller.lock);
    json_decref(body);
    weir_http_response_text(response, http, "application/json", controller.answer);
}

static void forget(void *context, void *const *tickets, size_t n)
{
    (void)context;
    (void)tickets;
    (void)n;
}

static void serve_lists(const char *locked)
{
    static const char *allow[] = {"ada"};
    const char *names[] = {locked};
    const struct lists lists = {
        .allow = allow, .n_allow = 1, .locked = names, .n_locked = locked != NULL};
    const struct serving_parts none = {0};
    serving_slot_publish(&slot, serving_create(&none, &lists, 1, 1));
}

static void set_up(void)
{
    const struct weir_http_config http = {.listen = "127.0.0.1:0", .n_handlers = 2};
    test_dir_make(&dir);
    const struct outbox_config config = {.dir = test_path(&dir, "outbox"), .on_durable = forget};
    ck_assert_int_eq(outbox_open(&config, &outbox, &err), WEIR_OK);
    refused = refused_open(dir.path);
    ck_assert_int_eq(weir_http_server_start(&http, take, NULL, &controller.server, &err), WEIR_OK);
    (void)snprintf(url, sizeof url, "http://127.0.0.1:%d/",
                   weir_http_server_port(controller.server));
    controller.n_calls = controller.n_bad = controller.n_busy = 0;
    controller.answer = "{\"answer\": \"done\"}";
    webhook = (struct weir_door_webhook){.url = url, .secret = key};
    door = (struct weir_door){.name = name,
                              .verb = open_verb,
                              .cameras = cameras,
                              .n_cameras = 1,
                              .by = {&weir_door_webhook_kind, &webhook},
                              .valid_ms = 2000,
                              .pulse_ms = 100};
    door_board_init(&board, &door, 1);
    serving_slot_init(&slot);
    setup.orders = door_orders_open(test_path(&dir, "orders.jsonl"));
    serve_lists(NULL);
}

static void tear_down(void)
{
    serving_slot_fini(&slot);
    door_orders_close(setup.orders);
    door_board_fini(&board);
    weir_http_server_stop(controller.server, 1000);
    refused_close(refused);
    outbox_close(outbox);
    test_dir_drop(&dir);
}

static void put(enum verdict verdict, const char *camera, const char *person, int64_t age_ms)
{
    struct outbox_item item = {.decision = decision_create(), .received_ns = weir_mono_ns()};
    weir_uuid_make(item.decision->id);
    item.decision->camera = camera;
    item.decision->person = person;
    item.decision->verdict = verdict;
    item.decision->time_ms = weir_time_ms() - age_ms;
    outbox_put(outbox, &item);
    ck_assert(outbox_flush(outbox, 20000));
}

static void start(void)
{
    const struct consumer_config config = {.name = "door",
                                           .ops = &door_sink,
                                           .options = &setup,
                                           .spec = &spec,
                                           .outbox = outbox,
                                           .refused = refused};
    ck_assert_int_eq(consumer_start(&config, &consumer, &err), WEIR_OK);
}

static int64_t n_told(const char *what)
{
    json_t *status = consumer_status(consumer);
    int64_t n = test_int(status, what);
    json_decref(status);
    return n;
}

static int64_t n_wanted;

static bool are_told(void *context)
{
    (void)context;
    return n_told("done") + n_told("not_done") >= n_wanted;
}

/* All of them, with what is known in the end. */
static json_t *run_until(int64_t n)
{
    n_wanted = n;
    ck_assert(test_wait(are_told, NULL));
    json_t *status = consumer_status(consumer);
    consumers_stop(&consumer, 1, 30000);
    return status;
}

/* The orders that the server will hear of: their verbs and states; those of decisions have one. */
static void check_orders(const char *wanted)
{
    char text[512] = "";
    json_t *report = door_orders_report(setup.orders), *one;
    size_t i;
    json_array_foreach(report, i, one)
    {
        size_t len = strlen(text);
        bool is_own = strcmp(test_text(one, "verb"), "open") != 0;
        (void)snprintf(text + len, sizeof text - len, "%s%s:%s", i > 0 ? " " : "",
                       test_text(one, "verb"), test_text(one, "state"));
        ck_assert_str_eq(test_text(one, "door"), "door-1");
        ck_assert_int_eq(is_own, json_is_null(json_object_get(one, "decision")));
        ck_assert_int_gt(test_int(one, "sent_ms"), 0);
    }
    ck_assert_str_eq(text, wanted);
    json_decref(report);
}

START_TEST(a_grant_opens_once_and_nothing_else_does)
{
    put(VERDICT_DENY, "door-1", "bob", 0);
    put(VERDICT_UNKNOWN, "door-1", NULL, 0);
    put(VERDICT_GRANT, "door-2", "ada", 0);
    put(VERDICT_GRANT, "door-1", "ada", 5000);
    put(VERDICT_GRANT, "door-1", "ada", 0);
    start();
    json_t *status = run_until(2);
    ck_assert_int_eq(controller.n_calls, 1);
    ck_assert_int_eq(controller.n_bad, 0);
    ck_assert_str_eq(controller.verbs[0], "open");
    ck_assert_int_eq(test_int(status, "done"), 1);
    ck_assert_int_eq(test_int(status, "not_done"), 1); /* the late one */
    ck_assert_str_eq(test_text(status, "door"), "door-1");
    ck_assert_str_eq(test_text(json_object_get(status, "last"), "outcome"), "done");
    json_decref(status);
    check_orders("open:late open:done");
    json_t *report = door_orders_report(setup.orders);
    const json_t *done = json_array_get(report, 1), *late = json_array_get(report, 0);
    ck_assert_str_eq(test_text(done, "id"), controller.ids[0]);
    ck_assert_int_ge(test_int(done, "answered_ms"), test_int(done, "sent_ms"));
    ck_assert_int_lt(test_int(late, "valid_until_ms"), test_int(late, "sent_ms"));
    json_decref(report);
}

END_TEST

START_TEST(a_busy_controller_gets_the_same_command_again)
{
    controller.n_busy = 2;
    put(VERDICT_GRANT, "door-1", "ada", 0);
    start();
    json_decref(run_until(1));
    ck_assert_int_eq(controller.n_calls, 3);
    ck_assert_str_eq(controller.ids[0], controller.ids[2]);
    ck_assert_int_eq(controller.seqs[0], controller.seqs[2]);
}

END_TEST

START_TEST(a_silent_controller_is_told_and_holds_nothing_up)
{
    controller.n_busy = 1000;
    door.valid_ms = 300;
    put(VERDICT_GRANT, "door-1", "ada", 0);
    start();
    json_t *status = run_until(1);
    ck_assert(json_is_false(json_object_get(status, "connected")));
    ck_assert_str_eq(test_text(json_object_get(status, "last"), "outcome"), "silent");
    json_decref(status);
    check_orders("open:silent");
    ck_assert_int_ge(controller.n_calls, 2);
}

END_TEST

/* The same outbox read again, as after a kill: whatever is sent has the identifier that it had. */
START_TEST(after_a_kill_a_command_has_its_identifier_again)
{
    put(VERDICT_GRANT, "door-1", "ada", 0);
    start();
    json_decref(run_until(1));
    ck_assert_int_eq(unlink(test_path(&dir, "outbox/door-%016llx.position",
                                      (unsigned long long)weir_hash_text(WEIR_HASH_BEGIN, name))),
                     0);
    outbox_close(outbox);
    const struct outbox_config config = {.dir = test_path(&dir, "outbox"), .on_durable = forget};
    ck_assert_int_eq(outbox_open(&config, &outbox, &err), WEIR_OK);
    controller.answer = "{\"answer\": \"repeated\"}";
    start();
    json_decref(run_until(1));
    ck_assert_int_eq(controller.n_calls, 2);
    ck_assert_str_eq(controller.ids[0], controller.ids[1]);
    check_orders("open:done");
}

END_TEST

START_TEST(a_door_that_is_locked_down_is_told_to_lock_and_opens_for_nobody)
{
    serve_lists("door-1");
    put(VERDICT_GRANT, "door-1", "ada", 0);
    start();
    json_t *status = run_until(2);
    ck_assert(json_is_true(json_object_get(status, "is_locked_down")));
    ck_assert_int_eq(controller.n_calls, 1);
    ck_assert_str_eq(controller.verbs[0], "lock");
    json_decref(status);
    check_orders("open:locked-down lock:done");
}

END_TEST

START_TEST(nobody_is_let_in_before_it_is_known_what_is_locked_down)
{
    serving_slot_publish(&slot, NULL);
    put(VERDICT_GRANT, "door-1", "ada", 0);
    start();
    json_decref(run_until(1));
    ck_assert_int_eq(controller.n_calls, 0);
}

END_TEST

START_TEST(a_door_is_held_open_in_its_hours_and_locked_when_it_is_locked_down)
{
    static const struct weir_door_hours always = {0x7f, 0, WEIR_DOOR_DAY_MINUTES};
    door.hold_open = &always;
    door.n_hold_open = 1;
    start();
    n_wanted = 1;
    ck_assert(test_wait(are_told, NULL));
    serve_lists("door-1");
    json_decref(run_until(2));
    ck_assert_int_eq(controller.n_calls, 2);
    ck_assert_str_eq(controller.verbs[0], "hold");
    ck_assert_str_eq(controller.verbs[1], "lock");
    ck_assert_int_gt(controller.seqs[1], controller.seqs[0]);
    check_orders("hold:done lock:done");
}

END_TEST

START_TEST(a_jammed_door_is_told)
{
    controller.answer = "{\"answer\": \"jammed\", \"said\": \"bolt\"}";
    put(VERDICT_GRANT, "door-1", "ada", 0);
    start();
    json_t *status = run_until(1);
    ck_assert_str_eq(test_text(status, "state"), "jammed");
    ck_assert_str_eq(test_text(json_object_get(status, "last"), "said"), "bolt");
    ck_assert(json_is_true(json_object_get(status, "connected")));
    json_decref(status);
    check_orders("open:jammed");
}

END_TEST

/* ---- programs --------------------------------------------------------------------------------- */

static void put_program(const char *script)
{
    static struct weir_door_command command = {"buzz"};
    static char folder[512];
    (void)signal(SIGPIPE, SIG_IGN); /* as in a replica */
    (void)snprintf(folder, sizeof folder, "%s", test_path(&dir, "programs"));
    ck_assert_int_eq(mkdir(folder, 0755), 0);
    const char *path = test_path(&dir, "programs/buzz");
    test_write_file(path, script, strlen(script));
    ck_assert_int_eq(chmod(path, 0755), 0);
    spec.door_programs = folder;
    door.by = (struct weir_configured){&weir_door_command_kind, &command};
}

static const struct {
    const char *script, *outcome;
} programs[] = {
    {"#!/bin/sh\ncat > \"$(dirname \"$0\")/got\"\n", "done"},
    {"#!/bin/sh\nexit 10\n", "repeated"},
    {"#!/bin/sh\nexit 12\n", "refused"},
    {"#!/bin/sh\nexit 3\n", "jammed"},
    {"#!/bin/sh\nsleep 60\n", "jammed"},
};

START_TEST(a_program_of_the_operators_is_started_with_the_command)
{
    door.valid_ms = _i == 4 ? 300 : 3000;
    put_program(programs[_i].script);
    put(VERDICT_GRANT, "door-1", "ada", 0);
    start();
    json_t *status = run_until(1);
    if (geteuid() != 0) { /* whose programs they then are */
        ck_assert_str_eq(test_text(json_object_get(status, "last"), "outcome"), "refused");
    } else {
        ck_assert_str_eq(test_text(json_object_get(status, "last"), "outcome"),
                         programs[_i].outcome);
    }
    if (_i == 0 && geteuid() == 0) {
        json_t *got = json_load_file(test_path(&dir, "programs/got"), 0, NULL);
        ck_assert_str_eq(test_text(got, "person"), "ada");
        ck_assert_str_eq(test_text(got, "door"), "door-1");
        json_decref(got);
    }
    json_decref(status);
}

END_TEST

START_TEST(a_program_that_others_can_write_is_not_started)
{
    put_program("#!/bin/sh\nexit 0\n");
    ck_assert_int_eq(chmod(test_path(&dir, "programs/buzz"), 0777), 0);
    put(VERDICT_GRANT, "door-1", "ada", 0);
    start();
    json_t *status = run_until(1);
    ck_assert_str_eq(test_text(json_object_get(status, "last"), "outcome"), "refused");
    ck_assert_ptr_nonnull(strstr(test_text(json_object_get(status, "last"), "said"), "root's"));
    json_decref(status);
}

END_TEST

int main(void)
{
    Suite *suite = suite_create("door");
    TCase *tcase = tcase_create("door");
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_set_timeout(tcase, 60);
    tcase_add_test(tcase, a_grant_opens_once_and_nothing_else_does);
    tcase_add_test(tcase, a_busy_controller_gets_the_same_command_again);
    tcase_add_test(tcase, a_silent_controller_is_told_and_holds_nothing_up);
    tcase_add_test(tcase, after_a_kill_a_command_has_its_identifier_again);
    tcase_add_test(tcase, a_door_that_is_locked_down_is_told_to_lock_and_opens_for_nobody);
    tcase_add_test(tcase, nobody_is_let_in_before_it_is_known_what_is_locked_down);
    tcase_add_test(tcase, a_door_is_held_open_in_its_hours_and_locked_when_it_is_locked_down);
    tcase_add_test(tcase, a_jammed_door_is_told);
    tcase_add_loop_test(tcase, a_program_of_the_operators_is_started_with_the_command, 0,
                        WEIR_ARRAY_LEN(programs));
    tcase_add_test(tcase, a_program_that_others_can_write_is_not_started);
    suite_add_tcase(suite, tcase);
    return weir_test_run(suite);
}
