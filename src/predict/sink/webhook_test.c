/* Decisions arrive at a program of somebody else's, signed, each once, whatever it answers. */
#include "predict/consumer.h"

#include "base/clock.h"
#include "endpoint/sink/webhook.h"
#include "http/http.h"
#include "http/post.h"
#include "predict/test_support.h"

#include <pthread.h>
#include <string.h>

#define N_FRAMES 50

static struct test_dir dir;
static struct weir_error err;
static struct outbox *outbox;
static struct refused *refused;
static struct consumer *consumer;
static char url[64], key[] = "k3y", token[] = "t0ken";
static char ion[] = "door", pipeline[] = "see", replica[] = "J-0";
static struct predict_spec spec = {.host = {.replica = replica}, .ion = ion, .pipeline = pipeline};
static struct weir_sink_webhook options;

/* The program: what it got, and how it answers. */
static struct {
    pthread_mutex_t lock;
    struct weir_http_server *server;
    int seen[N_FRAMES], n_calls, n_bad;
    int first_answer; /* of the first call; 0: as all others */
    size_t most;      /* more at once: 413 */
    int bad_frame;    /* 422 */
} program = {.lock = PTHREAD_MUTEX_INITIALIZER};

static bool is_signed(const struct weir_http_request *request)
{
    char expected[WEIR_POST_SIGNATURE_BYTES];
    const char *time = weir_http_request_header(request, "Weir-Timestamp");
    const char *given = weir_http_request_header(request, "Weir-Signature");
    const char *bearer = weir_http_request_header(request, "Authorization");
    if (time == NULL || given == NULL || bearer == NULL) {
        return false;
    }
    weir_post_signature(key, time, request->body, request->body_len, expected);
    return strncmp(given, "v1=", 3) == 0 && strcmp(given + 3, expected) == 0 &&
           strcmp(bearer, "Bearer t0ken") == 0;
}

static int answer_to(const json_t *decisions)
{
    const json_t *decision;
    size_t i;
    program.n_calls++;
    if (program.n_calls == 1 && program.first_answer != 0) {
        return program.first_answer;
    }
    if (json_array_size(decisions) > program.most) {
        return 413;
    }
    json_array_foreach(decisions, i, decision)
    {
        if (test_int(decision, "frame") == program.bad_frame) {
            return 422;
        }
    }
    json_array_foreach(decisions, i, decision)
    {
        program.seen[test_int(decision, "frame")]++;
    }
    return 204;
}

static void take(void *context, struct weir_http_request *request,
                 struct weir_http_response *response)
{
    (void)context;
    json_t *body = json_loads(request->body, 0, NULL);
    pthread_mutex_lock(&program.lock);
    int http = answer_to(json_object_get(body, "decisions"));
    program.n_bad += !is_signed(request) || strcmp(test_text(body, "ion"), ion) != 0 ||
                     strcmp(test_text(body, "pipeline"), pipeline) != 0 ||
                     strcmp(test_text(body, "replica"), replica) != 0;
    pthread_mutex_unlock(&program.lock);
    json_decref(body);
    weir_http_response_text(response, http, "text/plain", "");
}

static void forget(void *context, void *const *tickets, size_t n)
{
    (void)context;
    (void)tickets;
    (void)n;
}

static void set_up(void)
{
    const struct weir_http_config http = {.listen = "127.0.0.1:0", .n_handlers = 2};
    test_dir_make(&dir);
    const struct outbox_config config = {.dir = test_path(&dir, "outbox"), .on_durable = forget};
    ck_assert_int_eq(outbox_open(&config, &outbox, &err), WEIR_OK);
    refused = refused_open(dir.path);
    ck_assert_int_eq(weir_http_server_start(&http, take, NULL, &program.server, &err), WEIR_OK);
    (void)snprintf(url, sizeof url, "http://127.0.0.1:%d/in",
                   weir_http_server_port(program.server));
    options = (struct weir_sink_webhook){.url = url, .secret = key, .token = token};
    memset(program.seen, 0, sizeof program.seen);
    program.n_calls = program.n_bad = program.first_answer = 0;
    program.most = N_FRAMES;
    program.bad_frame = -1;
}

static void tear_down(void)
{
    weir_http_server_stop(program.server, 1000);
    refused_close(refused);
    outbox_close(outbox);
    test_dir_drop(&dir);
}

static void give_all(void)
{
    const struct consumer_config config = {.name = "webhook",
                                           .ops = &sink_webhook,
                                           .options = &options,
                                           .spec = &spec,
                                           .outbox = outbox,
                                           .refused = refused};
    for (int frame = 0; frame < N_FRAMES; frame++) {
        char id[16];
        (void)snprintf(id, sizeof id, "id-%d", frame);
        test_outbox_put(outbox, id, "c", frame, NULL);
    }
    ck_assert(outbox_flush(outbox, 20000));
    ck_assert_int_eq(consumer_start(&config, &consumer, &err), WEIR_OK);
    consumers_stop(&consumer, 1, 30000);
    ck_assert_int_eq(program.n_bad, 0);
}

static void check_seen(void)
{
    for (int frame = 0; frame < N_FRAMES; frame++) {
        ck_assert_int_eq(program.seen[frame], frame != program.bad_frame);
    }
}

START_TEST(decisions_arrive_signed_in_one_post)
{
    give_all();
    check_seen();
    ck_assert_int_eq(program.n_calls, 1);
}

END_TEST

START_TEST(too_many_come_in_parts_and_one_that_is_refused_alone_is_set_aside)
{
    program.most = 7;
    program.bad_frame = 23;
    give_all();
    check_seen();
    ck_assert_int_eq(refused_count(refused), 1);
}

END_TEST

/* A wrong token and a wrong address are mended by people; nothing may be lost meanwhile. */
static const int passing[] = {503, 429, 401, 403, 404, 301};

START_TEST(an_answer_that_can_change_is_waited_for)
{
    program.first_answer = passing[_i];
    give_all();
    check_seen();
    ck_assert_int_eq(program.n_calls, 2);
    ck_assert_int_eq(refused_count(refused), 0);
}

END_TEST

int main(void)
{
    Suite *suite = suite_create("sink_webhook");
    TCase *tests = tcase_create("sink_webhook");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, decisions_arrive_signed_in_one_post);
    tcase_add_test(tests, too_many_come_in_parts_and_one_that_is_refused_alone_is_set_aside);
    tcase_add_loop_test(tests, an_answer_that_can_change_is_waited_for, 0,
                        (int)WEIR_ARRAY_LEN(passing));
    suite_add_tcase(suite, tests);
    return weir_test_run(suite);
}
