/* The sender against a receiver in this process, which answers as it is told. */
#include "notify/sender.h"

#include "base/clock.h"
#include "base/deadline.h"
#include "http/http.h"
#include "http/post.h"
#include "notify/notify_fixture.h"

#include <stdio.h>

#define CALLS_MAX 64

/* What the receiver got, and what it answers. */
static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct weir_http_server *server;
    int n;

    struct {
        char path[64], delivery[64], time[32], signature[80], bearer[64];
        char *body;
    } calls[CALLS_MAX];

    int answers[CALLS_MAX]; /* HTTP status of the i-th call; 0: 200; -1: none until the test ends */
    bool lets_go;
} hook = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void copy_header(const struct weir_http_request *request, const char *name, char *out,
                        size_t size)
{
    const char *value = weir_http_request_header(request, name);
    (void)snprintf(out, size, "%s", value != NULL ? value : "");
}

static void take(void *context, struct weir_http_request *request,
                 struct weir_http_response *response)
{
    (void)context;
    pthread_mutex_lock(&hook.lock);
    int i = hook.n < CALLS_MAX - 1 ? hook.n++ : CALLS_MAX - 1;
    (void)snprintf(hook.calls[i].path, sizeof hook.calls[i].path, "%s", request->path);
    copy_header(request, "Weir-Delivery", hook.calls[i].delivery, sizeof hook.calls[i].delivery);
    copy_header(request, "Weir-Timestamp", hook.calls[i].time, sizeof hook.calls[i].time);
    copy_header(request, "Weir-Signature", hook.calls[i].signature, sizeof hook.calls[i].signature);
    copy_header(request, "Authorization", hook.calls[i].bearer, sizeof hook.calls[i].bearer);
    free(hook.calls[i].body);
    hook.calls[i].body = strdup(request->body);
    int answer = hook.answers[i] != 0 ? hook.answers[i] : 200;
    pthread_cond_broadcast(&hook.changed);
    while (answer < 0 && !hook.lets_go) {
        pthread_cond_wait(&hook.changed, &hook.lock);
    }
    pthread_mutex_unlock(&hook.lock);
    weir_http_response_json(response, answer > 0 ? answer : 200,
                            json_pack("{s:s}", "no_such_path", request->path));
}

static char url[128];

static void set_up_hook(void)
{
    struct weir_http_config config = {.listen = "127.0.0.1:0", .n_handlers = 4};
    set_up();
    now_ms = weir_time_ms();
    pthread_cond_init(&hook.changed, NULL);
    hook.n = 0;
    hook.lets_go = false;
    memset(hook.answers, 0, sizeof hook.answers);
    weir_status status = weir_http_server_start(&config, take, NULL, &hook.server, &fixture.err);
    ck_assert_msg(status == WEIR_OK, "%s", fixture.err.message);
    (void)snprintf(url, sizeof url,
                   "{\"url\":\"http://127.0.0.1:%d/in\",\"secret\":\"k3y\",\"token\":\"t0ken\"}",
                   weir_http_server_port(hook.server));
    add_receiver("hook", "webhook", url, NULL);
}

static void tear_down_hook(void)
{
    pthread_mutex_lock(&hook.lock);
    hook.lets_go = true;
    pthread_cond_broadcast(&hook.changed);
    pthread_mutex_unlock(&hook.lock);
    weir_http_server_stop(hook.server, 1000);
    for (int i = 0; i < CALLS_MAX; i++) {
        free(hook.calls[i].body);
        hook.calls[i].body = NULL;
    }
    tear_down();
}

static struct weir_sender *start(int64_t timeout_ms)
{
    struct weir_sender *sender;
    const struct weir_sender_config config = {.store = fixture.store, .timeout_ms = timeout_ms};
    weir_status status = weir_sender_start(&config, &sender, &fixture.err);
    ck_assert_msg(status == WEIR_OK, "%s", fixture.err.message);
    return sender;
}

static void end(struct weir_sender *sender)
{
    weir_sender_stop(sender);
    weir_sender_destroy(sender);
}

static void wait_for_calls(int n)
{
    struct timespec until = weir_deadline_after(20000);
    pthread_mutex_lock(&hook.lock);
    while (hook.n < n && weir_cond_wait_until(&hook.changed, &hook.lock, &until) == 0) {
    }
    int got = hook.n;
    pthread_mutex_unlock(&hook.lock);
    ck_assert_int_ge(got, n);
}

/* Until the database says so. */
static void wait_for(const char *sql, int64_t value)
{
    int64_t until_ms = weir_mono_ms() + 20000;
    uint64_t change = weir_store_change(fixture.store);
    while (ask(sql) != value) {
        ck_assert_msg(weir_mono_ms() < until_ms, "%s", sql);
        change = weir_store_wait(fixture.store, change, 1000);
    }
}

static weir_status test_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    char *id;
    return weir_notify_test(txn, context, "http://h:1", weir_time_ms(), &fixture.arena, &id, err);
}

static const char sent[] = "SELECT count(*) FROM alert_deliveries WHERE state = 'sent'";

START_TEST(a_message_arrives_signed)
{
    add_rule((struct weir_alert_rule){.name = "r", .receivers = "[\"hook\"]"});
    raise_alert("a1", "node_lost", "node/a");
    (void)look();
    struct weir_sender *sender = start(0);
    wait_for(sent, 1);
    end(sender);
    char expected[WEIR_POST_SIGNATURE_BYTES], header[80];
    weir_post_signature("k3y", hook.calls[0].time, hook.calls[0].body, strlen(hook.calls[0].body),
                        expected);
    (void)snprintf(header, sizeof header, "v1=%s", expected);
    ck_assert_str_eq(hook.calls[0].signature, header);
    ck_assert_str_eq(hook.calls[0].bearer, "Bearer t0ken");
    ck_assert_str_eq(hook.calls[0].path, "/in");
    json_t *message = json_loads(hook.calls[0].body, 0, NULL);
    ck_assert_str_eq(json_string_value(json_object_get(message, "id")), hook.calls[0].delivery);
    ck_assert_str_eq(json_string_value(json_object_get(message, "event")), "raised");
    const json_t *alert = json_array_get(json_object_get(message, "alerts"), 0);
    ck_assert_str_eq(json_string_value(json_object_get(alert, "id")), "a1");
    json_decref(message);
}

END_TEST

START_TEST(what_fails_comes_again_with_the_same_identifier)
{
    hook.answers[0] = 503;
    hook.answers[1] = 429;
    struct weir_sender *sender = start(0);
    fixture_write(&fixture, test_in, "hook");
    weir_sender_notify(sender);
    wait_for(sent, 1);
    end(sender);
    ck_assert_int_eq(hook.n, 3);
    ck_assert_str_eq(hook.calls[0].delivery, hook.calls[1].delivery);
    ck_assert_str_eq(hook.calls[0].delivery, hook.calls[2].delivery);
    ck_assert_int_eq(ask("SELECT attempts FROM alert_deliveries"), 3);
}

END_TEST

START_TEST(what_is_refused_is_given_up)
{
    hook.answers[0] = 400;
    struct weir_sender *sender = start(0);
    fixture_write(&fixture, test_in, "hook");
    weir_sender_notify(sender);
    wait_for("SELECT count(*) FROM alert_deliveries WHERE state = 'dead'", 1);
    ck_assert_int_eq(ask("SELECT count(*) FROM alerts WHERE key = 'receiver_failing:hook'"), 1);
    fixture_write(&fixture, test_in, "hook");
    weir_sender_notify(sender);
    wait_for(sent, 1);
    ck_assert_int_eq(ask("SELECT count(*) FROM alerts WHERE state <> 'resolved'"), 0);
    end(sender);
}

END_TEST

START_TEST(an_error_does_not_say_how_a_receiver_is_reached)
{
    int port = weir_http_server_port(hook.server);
    char options[160];
    (void)snprintf(options, sizeof options, "{\"url\":\"http://127.0.0.1:%d/s3cr3t-path\"}", port);
    add_receiver("hook", "webhook", options, NULL);
    hook.answers[0] = 404; /* with the path in its body */
    struct weir_sender *sender = start(300);
    fixture_write(&fixture, test_in, "hook");
    weir_sender_notify(sender);
    wait_for("SELECT count(*) FROM alert_deliveries WHERE state = 'dead'", 1);
    hook.answers[1] = -1;
    fixture_write(&fixture, test_in, "hook");
    weir_sender_notify(sender);
    wait_for("SELECT count(*) FROM alert_deliveries WHERE error IS NOT NULL", 2);
    add_receiver("gone", "webhook", "{\"url\":\"http://127.0.0.1:1/s3cr3t-path\"}", NULL);
    fixture_write(&fixture, test_in, "gone");
    weir_sender_notify(sender);
    wait_for("SELECT count(*) FROM alert_deliveries WHERE error IS NOT NULL", 3);
    add_receiver("letters", "alertmanager",
                 "{\"url\":\"http://127.0.0.1:1\",\"user\":\"u\","
                 "\"password_file\":\"/nowhere/s3cr3t-path\"}",
                 NULL);
    fixture_write(&fixture, test_in, "letters");
    weir_sender_notify(sender);
    wait_for("SELECT count(*) FROM alert_deliveries WHERE error IS NOT NULL", 4);
    end(sender);
    ck_assert_str_eq(ask_text("SELECT coalesce(max(error), '') FROM alert_deliveries"
                              " WHERE error LIKE '%s3cr3t%' OR error LIKE '%127.0.0%'"),
                     "");
    ck_assert_str_eq(ask_text("SELECT coalesce(max(message), '') FROM alerts"
                              " WHERE message LIKE '%s3cr3t%' OR message LIKE '%127.0.0%'"),
                     "");
}

END_TEST

START_TEST(who_does_not_answer_holds_up_nobody_else)
{
    hook.answers[0] = -1;
    struct weir_sender *sender = start(300);
    fixture_write(&fixture, test_in, "hook");
    weir_sender_notify(sender);
    wait_for_calls(1);
    add_receiver("other", "webhook", url, NULL);
    fixture_write(&fixture, test_in, "other");
    weir_sender_notify(sender);
    wait_for(sent, 1);
    wait_for("SELECT count(*) FROM alert_deliveries WHERE error IS NOT NULL OR state = 'sent'", 2);
    end(sender);
}

END_TEST

START_TEST(a_sender_that_ends_gives_its_message_back)
{
    hook.answers[0] = -1;
    struct weir_sender *sender = start(0);
    fixture_write(&fixture, test_in, "hook");
    weir_sender_notify(sender);
    wait_for_calls(1);
    int64_t began_ms = weir_mono_ms();
    end(sender);
    ck_assert_int_lt(weir_mono_ms() - began_ms, 5000);
    ck_assert_int_eq(ask("SELECT attempts FROM alert_deliveries"), 0);
    sender = start(0);
    wait_for(sent, 1);
    end(sender);
    ck_assert_str_eq(hook.calls[0].delivery, hook.calls[1].delivery);
}

END_TEST

static weir_status take_first_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct weir_alert_delivery delivery;
    (void)context;
    return notify_queue_take(txn, 1, weir_time_ms(), &fixture.arena, &delivery, err);
}

START_TEST(what_a_killed_server_was_sending_is_sent_at_the_next_start)
{
    fixture_write(&fixture, test_in, "hook");
    fixture_write(&fixture, take_first_in, NULL); /* and then it was killed */
    struct weir_sender *sender = start(0);
    wait_for(sent, 1);
    end(sender);
    ck_assert_int_eq(ask("SELECT attempts FROM alert_deliveries"), 2);
}

END_TEST

START_TEST(an_alertmanager_gets_labels_and_the_end)
{
    char options[128];
    (void)snprintf(options, sizeof options, "{\"url\":\"http://127.0.0.1:%d/\"}",
                   weir_http_server_port(hook.server));
    add_receiver("prom", "alertmanager", options, NULL);
    add_rule((struct weir_alert_rule){.name = "r", .receivers = "[\"prom\"]"});
    raise_alert("a1", "node_lost", "node/a");
    (void)look();
    resolve_alert("node_lost:node/a");
    (void)look();
    struct weir_sender *sender = start(0);
    wait_for(sent, 2);
    end(sender);
    ck_assert_str_eq(hook.calls[0].path, "/api/v2/alerts");
    json_t *raised = json_loads(hook.calls[0].body, 0, NULL);
    json_t *resolved = json_loads(hook.calls[1].body, 0, NULL);
    const json_t *labels = json_object_get(json_array_get(raised, 0), "labels");
    ck_assert_str_eq(json_string_value(json_object_get(labels, "alertname")), "node_lost");
    ck_assert(json_equal((json_t *)labels, json_object_get(json_array_get(resolved, 0), "labels")));
    const char *lasts = json_string_value(json_object_get(json_array_get(raised, 0), "endsAt"));
    const char *ends = json_string_value(json_object_get(json_array_get(resolved, 0), "endsAt"));
    int64_t lasts_ms, ends_ms;
    ck_assert_int_eq(weir_time_parse(lasts, &lasts_ms), WEIR_OK);
    ck_assert_int_eq(weir_time_parse(ends, &ends_ms), WEIR_OK);
    ck_assert_int_gt(lasts_ms, now_ms + 600000);
    ck_assert_int_eq(ends_ms, now_ms);
    json_decref(raised);
    json_decref(resolved);
}

END_TEST

static weir_status delete_hook_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    (void)context;
    return weir_alert_receiver_delete(txn, "hook", weir_time_ms(), &fixture.arena, err);
}

static weir_status run_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    return weir_txn_exec(txn, context, WEIR_NO_BINDS, NULL, err);
}

START_TEST(what_is_being_sent_to_a_receiver_that_is_deleted_is_not_sent_again)
{
    hook.answers[0] = -1;
    struct weir_sender *sender = start(300);
    fixture_write(&fixture, test_in, "hook");
    weir_sender_notify(sender);
    wait_for_calls(1);
    fixture_write(&fixture, delete_hook_in, NULL);
    /* another receiver's message goes after the first one's thread has noted what became of it */
    add_receiver("hook", "webhook", url, NULL);
    fixture_write(&fixture, test_in, "hook");
    weir_sender_notify(sender);
    wait_for(sent, 1);
    end(sender);
    ck_assert_int_eq(hook.n, 2);
    ck_assert_int_eq(ask("SELECT count(*) FROM alert_deliveries WHERE state = 'dead'"), 1);
    ck_assert_int_eq(ask("SELECT count(*) FROM alerts"), 0);
}

END_TEST

START_TEST(what_waits_for_a_receiver_that_is_not_there_is_given_up)
{
    fixture_write(&fixture, test_in, "hook");
    fixture_write(&fixture, run_in, "DELETE FROM alert_receivers");
    struct weir_sender *sender = start(0);
    wait_for("SELECT count(*) FROM alert_deliveries WHERE state = 'dead'", 1);
    end(sender);
    ck_assert_int_eq(hook.n, 0);
}

END_TEST

/* A clock that counts how often it is asked: at least once a turn. */
static int64_t count_now(const struct weir_clock *clock)
{
    (void)__atomic_add_fetch((int *)clock->context, 1, __ATOMIC_RELAXED);
    return weir_time_ms();
}

START_TEST(a_database_that_refuses_is_not_asked_all_the_time)
{
    int n_asked = 0;
    const struct weir_clock clock = {count_now, &n_asked};
    const struct weir_sender_config config = {.store = fixture.store, .clock = &clock};
    struct weir_sender *sender;
    fixture_write(&fixture, test_in, "hook");
    fixture_alter(&fixture, "CREATE TRIGGER full BEFORE UPDATE ON alert_deliveries"
                            " BEGIN SELECT RAISE(ABORT, 'disk full'); END");
    ck_assert_int_eq(weir_sender_start(&config, &sender, &fixture.err), WEIR_OK);
    int64_t until_ms = weir_mono_ms() + 700;
    while (weir_mono_ms() < until_ms) {
        (void)weir_store_wait(fixture.store, weir_store_change(fixture.store), 50);
        weir_sender_notify(sender); /* what changes meanwhile makes it no better */
    }
    /* once at the start, and once in each thread, or a little more on a slow machine */
    ck_assert_int_le(__atomic_load_n(&n_asked, __ATOMIC_RELAXED), 1 + 3 * WEIR_SENDER_THREADS);
    fixture_alter(&fixture, "DROP TRIGGER full");
    wait_for(sent, 1);
    end(sender);
}

END_TEST

WEIR_TEST_MAIN_WITH("sender", set_up_hook, tear_down_hook, a_message_arrives_signed,
                    what_fails_comes_again_with_the_same_identifier, what_is_refused_is_given_up,
                    an_error_does_not_say_how_a_receiver_is_reached,
                    who_does_not_answer_holds_up_nobody_else,
                    a_sender_that_ends_gives_its_message_back,
                    what_a_killed_server_was_sending_is_sent_at_the_next_start,
                    an_alertmanager_gets_labels_and_the_end,
                    what_is_being_sent_to_a_receiver_that_is_deleted_is_not_sent_again,
                    what_waits_for_a_receiver_that_is_not_there_is_given_up,
                    a_database_that_refuses_is_not_asked_all_the_time)
