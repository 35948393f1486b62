/*
 * Metrics and registration against a server of our own that is down, refuses, and comes back; and a
 * whole training that reports to it.
 */
#include "train/test_support.h"

#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "base/uuid.h"
#include "http/test_support.h"
#include "train/register.h"
#include "train/report.h"

#include <pthread.h>
#include <sys/wait.h>

#define STEPS_MAX 8192

static struct {
    struct weir_http_server *server;
    char url[64];
    pthread_mutex_t mutex;
    pthread_cond_t has_changed;
    /* Under the mutex. */
    int n_failures; /**< Calls still to be answered with 503. */
    weir_status refusal;
    int n_metric_calls, n_values, n_posts, n_bad_tokens;
    double steps[STEPS_MAX]; /**< Of "loss", as they came. */
    int n_steps;
    char keys[2048];
    char ids[8][WEIR_UUID_BYTES];
    json_t *version;
} site;

static void take_metrics(const struct weir_http_request *request,
                         struct weir_http_response *response)
{
    json_t *body = NULL, *item;
    size_t i;
    site.n_metric_calls++;
    ck_assert_int_eq(weir_json_parse(request->body, request->body_len, "body", &body, NULL),
                     WEIR_OK);
    json_array_foreach(json_object_get(body, "metrics"), i, item)
    {
        const char *key = json_string_value(json_object_get(item, "key"));
        site.n_values++;
        if (strcmp(key, "loss") == 0 && site.n_steps < STEPS_MAX) {
            site.steps[site.n_steps++] = json_number_value(json_object_get(item, "step"));
        }
        if (strstr(site.keys, key) == NULL) {
            strncat(site.keys, key, sizeof site.keys - strlen(site.keys) - 1);
            strncat(site.keys, " ", sizeof site.keys - strlen(site.keys) - 1);
        }
    }
    json_decref(body);
    weir_http_response_empty(response);
}

static void take_version(const struct weir_http_request *request,
                         struct weir_http_response *response)
{
    json_decref(site.version);
    site.version = NULL;
    ck_assert_int_eq(weir_json_parse(request->body, request->body_len, "body", &site.version, NULL),
                     WEIR_OK);
    (void)snprintf(site.ids[site.n_posts++ % 8], WEIR_UUID_BYTES, "%s",
                   json_string_value(json_object_get(site.version, "id")));
    weir_http_response_json(response, 200, json_pack("{s:i}", "version", 7));
}

static void take_blob(struct weir_http_request *request, struct weir_http_response *response)
{
    char sha[WEIR_SHA256_TEXT_BYTES];
    uint64_t size = 0;
    if (strcmp(request->method, "PUT") != 0) {
        weir_http_response_errorf(response, WEIR_ERR_NOT_FOUND, "no such blob");
        return;
    }
    ck_assert_int_eq(weir_file_sha256(request->body_file, sha, &size, NULL), WEIR_OK);
    ck_assert_str_eq(sha, request->segments[3]);
    weir_http_response_empty(response);
}

static void handle(void *context, struct weir_http_request *request,
                   struct weir_http_response *response)
{
    (void)context;
    (void)pthread_mutex_lock(&site.mutex);
    const char *token = weir_http_request_header(request, "Authorization");
    site.n_bad_tokens += token == NULL || strcmp(token, "Bearer weir_secret") != 0;
    const char *last = request->segments[request->n_segments - 1];
    if (site.n_failures > 0) {
        site.n_failures--;
        weir_http_response_errorf(response, WEIR_ERR_UNAVAILABLE, "starting");
    } else if (site.refusal != WEIR_OK) {
        weir_http_response_errorf(response, site.refusal, "no such run");
    } else if (strcmp(last, "metrics") == 0) {
        take_metrics(request, response);
    } else if (strcmp(last, "versions") == 0) {
        take_version(request, response);
    } else {
        take_blob(request, response);
    }
    (void)pthread_cond_broadcast(&site.has_changed);
    (void)pthread_mutex_unlock(&site.mutex);
}

static void rule(void *context, const struct weir_http_request *request,
                 struct weir_http_body_rule *out)
{
    (void)context;
    out->max_bytes = 16 << 20;
    out->to_file = strcmp(request->segments[2], "blobs") == 0;
}

static char *token_file(void)
{
    char *path = weir_arena_printf(&fixture.arena, "%s/token", fixture.dir);
    ck_assert_int_eq(weir_file_write_atomic(path, "weir_secret\n", 12, 0600, NULL), WEIR_OK);
    return path;
}

static void start_site(void)
{
    (void)pthread_mutex_init(&site.mutex, NULL);
    (void)pthread_cond_init(&site.has_changed, NULL);
    site.server = serve(
        &(struct weir_http_config){.n_handlers = 2, .body_rule = rule, .upload_dir = fixture.dir},
        handle, NULL);
    (void)snprintf(site.url, sizeof site.url, "http://127.0.0.1:%d",
                   weir_http_server_port(site.server));
}

/** What it saw can be read after this. */
static void stop_site(void)
{
    weir_http_server_stop(site.server, 1000);
    site.server = NULL;
}

static void drop_site(void)
{
    json_decref(site.version);
    fixture_drop();
}

/** Answer so many calls with 503, and then with this (OK: as it should be). */
static void set_trouble(int n_failures, weir_status refusal)
{
    (void)pthread_mutex_lock(&site.mutex);
    site.n_failures = n_failures;
    site.refusal = refusal;
    (void)pthread_mutex_unlock(&site.mutex);
}

static struct train_report *start_report(void)
{
    struct train_report *report = NULL;
    const struct weir_client_config client = {.server = site.url, .token_file = token_file()};
    ck_assert_int_eq(train_report_start(&client, "r1", &report, &fixture.err), WEIR_OK);
    return report;
}

static void add_step(struct train_report *report, uint64_t step)
{
    struct train_tick tick = {.step = step};
    train_tick_add(&tick, "loss", 1.0 / (double)(step + 1));
    train_tick_add(&tick, "progress", 0.5);
    train_report_add(report, &tick);
}

START_TEST(metrics_are_in_order_though_the_server_was_away)
{
    fixture_make();
    start_site();
    set_trouble(3, WEIR_OK);
    struct train_report *report = start_report();
    for (uint64_t step = 0; step < 200; step++) {
        add_step(report, step);
    }
    train_report_stop(report, 20000);
    stop_site();
    ck_assert_int_eq(site.n_steps, 200);
    ck_assert_int_eq(site.n_values, 400);
    for (int i = 0; i < 200; i++) {
        ck_assert_int_eq((int)site.steps[i], i);
    }
    ck_assert_int_eq(site.n_bad_tokens, 0);
    drop_site();
}

END_TEST

START_TEST(a_long_absence_leaves_a_thinner_curve_without_a_hole)
{
    enum { N = 6000 };

    size_t n_dropped = 0;
    fixture_make();
    start_site();
    set_trouble(1 << 30, WEIR_OK);
    struct train_report *report = start_report();
    for (uint64_t step = 0; step < N; step++) {
        add_step(report, step);
    }
    ck_assert_uint_le(train_report_n_waiting(report, &n_dropped), TRAIN_REPORT_TICKS_MAX);
    ck_assert_uint_gt(n_dropped, 0);
    set_trouble(0, WEIR_OK);
    train_report_stop(report, 30000);
    stop_site();
    ck_assert_uint_eq((size_t)site.n_steps + n_dropped, N);
    ck_assert_int_lt((int)site.steps[0], 2);
    ck_assert_int_eq((int)site.steps[site.n_steps - 1], N - 1);
    for (int i = 1; i < site.n_steps; i++) {
        /* The queue was halved a few times: no more than 2^4 steps between two points. */
        ck_assert_double_gt(site.steps[i], site.steps[i - 1]);
        ck_assert_double_le(site.steps[i], site.steps[i - 1] + 16);
    }
    drop_site();
}

END_TEST

START_TEST(a_refusal_ends_the_reports_and_a_dead_server_does_not_hold_up_the_end)
{
    size_t n_dropped = 0;
    fixture_make();
    start_site();
    weir_log_set_level(WEIR_LOG_ERROR);
    set_trouble(0, WEIR_ERR_NOT_FOUND);
    struct train_report *report = start_report();
    add_step(report, 1);
    train_report_stop(report, 60000); /* far longer than this test may take */
    set_trouble(1 << 30, WEIR_OK);
    report = start_report();
    add_step(report, 1);
    ck_assert_uint_eq(train_report_n_waiting(report, &n_dropped), 1);
    train_report_stop(report, 300);
    stop_site();
    ck_assert_int_eq(site.n_steps, 0);
    drop_site();
}

END_TEST

static struct weir_train_config registering(void)
{
    struct weir_train_config config = fixture_config(1, 0, 1);
    config.report.server = site.url;
    config.report.token_file = token_file();
    config.report.model_name = "faces";
    config.report.run = "r1";
    config.report.dataset = "people";
    config.report.dataset_version = 4;
    ck_assert_int_eq(weir_dir_make(fixture.checkpoints, 0755, NULL), WEIR_OK);
    ck_assert_int_eq(weir_file_write_atomic(fixture.output, "weights", 7, 0644, NULL), WEIR_OK);
    return config;
}

START_TEST(a_model_is_registered_under_one_identifier_however_often_it_is_tried)
{
    int64_t number = 0;
    fixture_make();
    start_site();
    weir_log_set_level(WEIR_LOG_ERROR);
    struct weir_train_config config = registering();
    const struct train_version version = {.file = fixture.output,
                                          .parameters = "{\"epochs\":1}",
                                          .metrics = "{\"accuracy\":0.5}",
                                          .baseline = "{}"};
    for (int i = 0; i < 2; i++) {
        set_trouble(2, WEIR_OK);
        ck_assert_msg(train_register(&config, &version, &number, &fixture.err) == WEIR_OK, "%s",
                      fixture.err.message);
        ck_assert_int_eq((int)number, 7);
    }
    config.report.register_timeout_s = 0.3;
    set_trouble(1 << 30, WEIR_OK);
    ck_assert_int_eq(train_register(&config, &version, &number, &fixture.err),
                     WEIR_ERR_UNAVAILABLE);
    stop_site();
    ck_assert_int_eq(site.n_posts, 2);
    ck_assert_str_eq(site.ids[0], site.ids[1]);
    ck_assert(weir_uuid_is_valid(site.ids[0]));
    ck_assert_str_eq(json_string_value(json_object_get(site.version, "dataset")), "people");
    ck_assert_int_eq(json_integer_value(json_object_get(site.version, "dataset_version")), 4);
    ck_assert_int_eq(json_integer_value(json_object_get(site.version, "bytes")), 7);
    ck_assert_str_eq(json_string_value(json_object_get(site.version, "run")), "r1");
    drop_site();
}

END_TEST

/** Ranks are forked from a process without threads: made before the server's, told its address. */
static pid_t start_training(int *out_pipe)
{
    int ends[2];
    ck_assert_int_eq(pipe(ends), 0);
    pid_t pid = fork();
    if (pid == 0) {
        ssize_t n = read(ends[0], site.url, sizeof site.url);
        struct weir_train_config config = registering();
        config.group.workers = 2;
        config.loop.epochs = 2;
        fixture_clear();
        bool is_good = n == (ssize_t)sizeof site.url &&
                       weir_train_launch(&config, NULL, &fixture.err) == WEIR_OK;
        if (!is_good) {
            (void)fprintf(stderr, "%s\n", fixture.err.message);
        }
        _exit(is_good ? 0 : 1);
    }
    (void)close(ends[0]);
    *out_pipe = ends[1];
    return pid;
}

START_TEST(a_training_reports_its_run_and_registers_its_model)
{
    static const char *const keys[] = {"loss",  "accuracy", "images_per_second", "learning_rate",
                                       "epoch", "epochs",   "progress"};
    int fd = -1, wait_status = 0;
    fixture_make();
    pid_t pid = start_training(&fd);
    start_site();
    ck_assert_int_eq((int)write(fd, site.url, sizeof site.url), (int)sizeof site.url);
    ck_assert_int_eq(waitpid(pid, &wait_status, 0), pid);
    ck_assert_int_eq(wait_status, 0);
    stop_site();
    for (size_t i = 0; i < WEIR_ARRAY_LEN(keys); i++) {
        ck_assert_msg(strstr(site.keys, keys[i]) != NULL, "%s is missing in %s", keys[i],
                      site.keys);
    }
    ck_assert_int_eq((int)site.steps[site.n_steps - 1], 12);
    ck_assert_int_eq(site.n_posts, 1);
    ck_assert_int_eq(site.n_bad_tokens, 0);
    const json_t *baseline = json_object_get(site.version, "baseline");
    ck_assert_int_eq(json_integer_value(json_array_get(
                         json_object_get(json_object_get(baseline, "brightness"), "counts"), 0)) >=
                         0,
                     1);
    ck_assert_ptr_nonnull(json_object_get(json_object_get(site.version, "metrics"), "accuracy"));
    ck_assert_int_eq(
        json_integer_value(json_object_get(json_object_get(site.version, "parameters"), "epochs")),
        2);
    (void)close(fd);
    drop_site();
}

END_TEST

WEIR_TEST_MAIN("report", metrics_are_in_order_though_the_server_was_away,
               a_long_absence_leaves_a_thinner_curve_without_a_hole,
               a_refusal_ends_the_reports_and_a_dead_server_does_not_hold_up_the_end,
               a_model_is_registered_under_one_identifier_however_often_it_is_tried,
               a_training_reports_its_run_and_registers_its_model)
