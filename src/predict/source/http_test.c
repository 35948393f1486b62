/* Frames over HTTP: each answered by its decision, once; refusals that say what to do. */
#include "predict/test_support.h"

#include "base/clock.h"
#include "http/http_client.h"

#include <pthread.h>
#include <string.h>

#define N_CLIENTS 6

static struct test_dir dir;
static struct test_server *server;
static struct replica *replica;
static char url[128];

static void set_up(const char *source)
{
    test_dir_make(&dir);
    server = test_server_start(&dir, 0);
    test_write_model(test_path(&dir, "model-1"), 1, NULL);
    replica = test_replica_start(&dir, test_server_port(server), source, NULL);
    (void)snprintf(url, sizeof url, "%s", test_endpoint(&dir));
}

static void tear_down(void)
{
    test_replica_stop(replica);
    test_server_stop(server);
    test_dir_drop(&dir);
}

static int post(const char *camera, int64_t frame, int person, const char *token, json_t **out)
{
    char bytes[1024];
    size_t len = test_picture(person, 100 + (int)frame, bytes);
    return test_post_frame(NULL, url, camera, frame, bytes, len, token, out);
}

static bool answers(void *context)
{
    static int64_t frame = 1000000;
    return post("probe", frame++, 0, context, NULL) == 200;
}

static void deploy(void)
{
    test_server_deploy(
        server, test_deployment(server, &dir, test_path(&dir, "model-1"), 1, 10, 4, 1, true));
}

START_TEST(a_frame_is_answered_by_its_decision_and_again_by_the_same_one)
{
    json_t *first, *again, *other;
    set_up("{\"kind\":\"http\"}");
    deploy();
    ck_assert(test_wait(answers, NULL));
    ck_assert_int_eq(post("door", 1, 3, NULL, &first), 200);
    ck_assert_str_eq(test_text(first, "person"), "p03");
    ck_assert_str_eq(test_text(first, "verdict"), "grant");
    ck_assert_str_eq(test_text(first, "camera"), "door");
    ck_assert_int_gt(test_int(first, "latency_us"), 0);
    ck_assert_int_ge(test_int(first, "durable_us"), test_int(first, "latency_us"));
    /* The same name, another face: the decision that was made stands. */
    ck_assert_int_eq(post("door", 1, 7, NULL, &again), 200);
    ck_assert(json_equal(first, again));
    ck_assert_int_eq(post("door", 2, 7, NULL, &other), 200);
    ck_assert_str_eq(test_text(other, "person"), "p07");
    json_decref(first);
    json_decref(again);
    json_decref(other);
    tear_down();
}

END_TEST

static json_t *post_named(const char *name, int person)
{
    char bytes[1024];
    json_t *answer;
    size_t len = test_picture(person, 100, bytes);
    ck_assert_int_eq(test_post_named(NULL, url, name, bytes, len, NULL, &answer), 200);
    return answer;
}

START_TEST(a_keyed_frame_is_decided_once_also_across_a_restart)
{
    set_up("{\"kind\":\"http\"}");
    deploy();
    ck_assert(test_wait(answers, NULL));
    json_t *first = post_named("door?key=topic/0/17", 3),
           *other = post_named("door?key=topic/1/17", 7);
    json_t *numbered = post_named("door/17", 5);
    /* Named as the first part of another frame would be: it is no part. */
    json_t *part = post_named("door?key=a/0", 2), *whole = post_named("door?key=a", 4);
    ck_assert_str_eq(test_text(part, "person"), "p02");
    ck_assert_str_eq(test_text(whole, "person"), "p04");
    json_decref(part);
    json_decref(whole);
    ck_assert_str_eq(test_text(first, "key"), "topic/0/17");
    ck_assert_int_lt(test_int(first, "frame"), 0);
    ck_assert_str_eq(test_text(first, "person"), "p03");
    ck_assert_str_eq(test_text(other, "person"), "p07");
    ck_assert_str_eq(test_text(numbered, "person"), "p05");
    ck_assert_ptr_null(json_object_get(numbered, "key"));
    for (int i = 0; i < 2; i++) {
        json_t *again = post_named("door?key=topic/0/17", 9), *same = post_named("door/17", 9);
        ck_assert_str_eq(test_text(again, "id"), test_text(first, "id"));
        ck_assert_str_eq(test_text(same, "id"), test_text(numbered, "id"));
        json_decref(again);
        json_decref(same);
        test_replica_stop(replica);
        replica = test_replica_start(&dir, test_server_port(server), "{\"kind\":\"http\"}", NULL);
        (void)snprintf(url, sizeof url, "%s", test_endpoint(&dir));
    }
    ck_assert_int_eq(test_post_named(NULL, url, "door?key=", "x", 1, NULL, NULL), 400);
    ck_assert_int_eq(test_post_named(NULL, url, "door?key=a%0a1", "x", 1, NULL, NULL), 400);
    ck_assert_int_eq(test_post_named(NULL, url, "door", "x", 1, NULL, NULL), 400);
    json_decref(first);
    json_decref(other);
    json_decref(numbered);
    tear_down();
}

END_TEST

START_TEST(a_restart_does_not_make_a_second_decision)
{
    json_t *first, *again;
    set_up("{\"kind\":\"http\"}");
    deploy();
    ck_assert(test_wait(answers, NULL));
    ck_assert_int_eq(post("door", 1, 3, NULL, &first), 200);
    test_replica_stop(replica);
    replica = test_replica_start(&dir, test_server_port(server), "{\"kind\":\"http\"}", NULL);
    (void)snprintf(url, sizeof url, "%s", test_endpoint(&dir));
    ck_assert_int_eq(post("door", 1, 3, NULL, &again), 200);
    ck_assert_str_eq(test_text(first, "id"), test_text(again, "id"));
    json_decref(first);
    json_decref(again);
    tear_down();
}

END_TEST

START_TEST(before_a_model_is_there_frames_are_sent_away_with_retry_after)
{
    struct weir_error err;
    struct weir_http_client *client;
    struct weir_http_reply reply;
    char target[200], header[64];
    set_up("{\"kind\":\"http\"}");
    ck_assert_int_eq(weir_http_client_open(&(struct weir_http_client_config){0}, &client, &err),
                     WEIR_OK);
    (void)snprintf(target, sizeof target, "%s/frames/door/1", url);
    struct weir_http_call call = {
        .method = "POST", .url = target, .body = "x", .body_len = 1, .timeout_ms = 10000};
    ck_assert_int_eq(weir_http_client_call(client, &call, &reply, &err), WEIR_OK);
    ck_assert_int_eq(reply.http_status, 503);
    ck_assert(weir_http_reply_header(&reply, "Retry-After", header, sizeof header));
    ck_assert_ptr_nonnull(strstr(reply.body.data, "no model is deployed yet"));
    weir_http_reply_fini(&reply);
    (void)snprintf(target, sizeof target, "%s/health", url);
    call = (struct weir_http_call){.method = "GET", .url = target, .timeout_ms = 10000};
    ck_assert_int_eq(weir_http_client_call(client, &call, &reply, &err), WEIR_OK);
    ck_assert_int_eq(reply.http_status, 200);
    ck_assert_ptr_nonnull(strstr(reply.body.data, "\"waiting\""));
    weir_http_reply_fini(&reply);
    weir_http_client_close(client);
    tear_down();
}

END_TEST

START_TEST(damaged_frames_and_wrong_names_are_answered_with_a_sentence)
{
    json_t *answer;
    set_up("{\"kind\":\"http\"}");
    deploy();
    ck_assert(test_wait(answers, NULL));
    ck_assert_int_eq(test_post_frame(NULL, url, "door", 5, "no picture", 10, NULL, &answer), 200);
    ck_assert_str_eq(test_text(answer, "verdict"), "error");
    ck_assert_str_ne(test_text(answer, "error"), "");
    json_decref(answer);
    ck_assert_int_eq(test_post_frame(NULL, url, "door", 6, "", 0, NULL, &answer), 200);
    ck_assert_str_eq(test_text(answer, "error"), "the frame is empty");
    json_decref(answer);
    ck_assert_int_eq(post(".hidden", 1, 1, NULL, NULL), 400);
    ck_assert_int_eq(post("%2e%2e%2fx", 1, 1, NULL, NULL), 400);
    ck_assert_int_eq(post("door", -1, 1, NULL, NULL), 400);
    tear_down();
}

END_TEST

START_TEST(a_source_with_a_token_wants_to_see_it)
{
    char token[] = "secret";
    set_up("{\"kind\":\"http\",\"token\":\"secret\"}");
    deploy();
    ck_assert(test_wait(answers, token));
    ck_assert_int_eq(post("door", 1, 1, NULL, NULL), 401);
    ck_assert_int_eq(post("door", 1, 1, "secres", NULL), 401);
    ck_assert_int_eq(post("door", 1, 1, "secret", NULL), 200);
    tear_down();
}

END_TEST

/* ---- many at once ---------------------------------------------------------------------------- */

struct client {
    pthread_t thread;
    char ids[40][40];
};

/* Every client posts the same forty frames, each with retries while the queue is full. */
static void *post_forty(void *context)
{
    struct client *client = context;
    struct weir_http_client *connection;
    struct weir_error err;
    ck_assert_int_eq(weir_http_client_open(&(struct weir_http_client_config){0}, &connection, &err),
                     WEIR_OK);
    for (int frame = 0; frame < 40; frame++) {
        char bytes[1024];
        size_t len = test_picture(frame % 10, 100 + frame, bytes);
        json_t *answer = NULL;
        while (test_post_frame(connection, url, "door", frame, bytes, len, NULL, &answer) == 503) {
            json_decref(answer);
        }
        (void)snprintf(client->ids[frame], sizeof client->ids[frame], "%s",
                       test_text(answer, "id"));
        json_decref(answer);
    }
    weir_http_client_close(connection);
    return NULL;
}

START_TEST(clients_that_send_the_same_frames_at_once_get_the_same_decisions)
{
    static struct client clients[N_CLIENTS];
    set_up("{\"kind\":\"http\"}");
    deploy();
    ck_assert(test_wait(answers, NULL));
    for (int i = 0; i < N_CLIENTS; i++) {
        ck_assert_int_eq(pthread_create(&clients[i].thread, NULL, post_forty, &clients[i]), 0);
    }
    for (int i = 0; i < N_CLIENTS; i++) {
        pthread_join(clients[i].thread, NULL);
    }
    for (int frame = 0; frame < 40; frame++) {
        ck_assert_uint_eq(strlen(clients[0].ids[frame]), 36);
        for (int i = 1; i < N_CLIENTS; i++) {
            ck_assert_str_eq(clients[i].ids[frame], clients[0].ids[frame]);
        }
    }
    tear_down();
}

END_TEST

WEIR_TEST_MAIN("source_http", a_frame_is_answered_by_its_decision_and_again_by_the_same_one,
               a_keyed_frame_is_decided_once_also_across_a_restart,
               a_restart_does_not_make_a_second_decision,
               before_a_model_is_there_frames_are_sent_away_with_retry_after,
               damaged_frames_and_wrong_names_are_answered_with_a_sentence,
               a_source_with_a_token_wants_to_see_it,
               clients_that_send_the_same_frames_at_once_get_the_same_decisions)
