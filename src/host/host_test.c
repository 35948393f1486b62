/* A host beside a server that is played here: what is news, what is remembered, which files are fetched, what the
 * server is told. */
#include "host/host.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "http/test_support.h"

#include <pthread.h>
#include <semaphore.h>

#define TOPIC 1
#define TEXT  "the bytes of a model"

struct fixture {
    struct weir_http_server *server;
    struct weir_host *host;
    char dir[WEIR_DIR_TEMPORARY_BYTES], url[64], sha256[WEIR_SHA256_TEXT_BYTES];
    struct weir_host_spec spec;
    struct weir_hosted hosted;
    sem_t applied; /* once for each call of apply */
    sem_t told;    /* once for each report */
    atomic_int n_failures, n_asked, n_blobs;
    pthread_mutex_t lock;
    /* Under lock. */
    json_t *wanted, *seen;    /* what the server says; what was applied last */
    json_t *report;           /* what it was told last */
    char after[32];           /* of the last question */
    weir_status (*act)(void); /* what apply does beside; NULL: nothing */
};

static struct fixture f;

static void handle_wanted(struct weir_http_request *request, struct weir_http_response *response)
{
    const char *after = weir_http_request_query(request, "after");
    (void)snprintf(f.after, sizeof f.after, "%s", after);
    json_int_t revision = json_integer_value(json_object_get(f.wanted, "revision"));
    if (revision != strtoll(after, NULL, 10) || request->is_expired) {
        weir_http_response_json(response, 200, json_incref(f.wanted));
    } else {
        weir_http_response_wait(response, TOPIC, 60000);
    }
}

static void handle(void *context, struct weir_http_request *request,
                   struct weir_http_response *response)
{
    (void)context;
    pthread_mutex_lock(&f.lock);
    if (strcmp(request->path, "/a%20b/wanted") == 0) {
        handle_wanted(request, response);
    } else if (strcmp(request->method, "PUT") == 0) {
        struct weir_error err;
        ck_assert_str_eq(request->path, "/a%20b/replicas/r-0");
        json_decref(f.report);
        ck_assert_int_eq(
            weir_json_parse(request->body, request->body_len, "report", &f.report, &err), WEIR_OK);
        weir_http_response_json(response, 200, json_object());
        sem_post(&f.told);
    } else {
        ck_assert_str_eq(request->segments[3], f.sha256);
        f.n_blobs++;
        weir_http_response_text(response, 200, "application/octet-stream", TEXT);
    }
    pthread_mutex_unlock(&f.lock);
}

static weir_status apply(void *context, const json_t *wanted, struct weir_error *err)
{
    ck_assert_ptr_eq(context, &f);
    pthread_mutex_lock(&f.lock);
    json_decref(f.seen);
    f.seen = json_deep_copy(wanted);
    weir_status status = f.act != NULL ? f.act() : WEIR_OK;
    status = status != WEIR_OK ? weir_error_set(err, status, "no") : WEIR_OK;
    pthread_mutex_unlock(&f.lock);
    if (f.n_failures > 0) {
        f.n_failures--;
        status = weir_error_set(err, WEIR_ERR_UNAVAILABLE, "not yet");
    }
    sem_post(&f.applied);
    return status;
}

static bool needs(const void *context, const json_t *wanted, const char *file)
{
    ck_assert_ptr_eq(context, &f);
    ck_assert(json_equal(wanted, f.seen));
    return strstr(file, f.sha256) != NULL;
}

static json_t *report(void *context, const struct weir_host_standing *standing)
{
    ck_assert_ptr_eq(context, &f);
    return json_pack("{s:s,s:s,s:I,s:I}", "state", standing->state, "reason", standing->reason,
                     "revision", (json_int_t)standing->revision, "served",
                     (json_int_t)standing->served_revision);
}

static void before_asking(void *context)
{
    ((struct fixture *)context)->n_asked++;
}

static void want(const char *text)
{
    pthread_mutex_lock(&f.lock);
    json_decref(f.wanted);
    f.wanted = json_loads(text, 0, NULL);
    ck_assert_ptr_nonnull(f.wanted);
    pthread_mutex_unlock(&f.lock);
    weir_http_wake(f.server, TOPIC);
}

/* Until apply was called once more; it must have been given this. */
static void expect_applied(const char *text)
{
    while (sem_wait(&f.applied) != 0) {
    }
    json_t *expected = json_loads(text, 0, NULL);
    pthread_mutex_lock(&f.lock);
    ck_assert_msg(json_equal(f.seen, expected), "not %s", text);
    pthread_mutex_unlock(&f.lock);
    json_decref(expected);
}

static void write_file(const char *name, const char *text)
{
    char path[WEIR_HOST_PATH_BYTES];
    (void)snprintf(path, sizeof path, "%s/%s", f.dir, name);
    ck_assert_int_eq(weir_file_write(path, text, strlen(text), 0600, NULL), WEIR_OK);
}

static void create(void)
{
    struct weir_error err;
    const struct weir_host_config config = {.spec = &f.spec,
                                            .names = {"a b"},
                                            .n_names = 1,
                                            .hosted = &f.hosted,
                                            .context = &f,
                                            .retry_ms = 1};
    ck_assert_int_eq(weir_host_create(&config, &f.host, &err), WEIR_OK);
}

static void start(void)
{
    struct weir_error err;
    create();
    ck_assert_int_eq(weir_host_start(f.host, &err), WEIR_OK);
}

static void stop(void)
{
    weir_host_destroy(f.host);
    f.host = NULL;
}

static void set_up(void)
{
    struct weir_error err;
    uint64_t n_bytes;
    char path[WEIR_HOST_PATH_BYTES];
    weir_log_set_level(WEIR_LOG_ERROR);
    memset(&f, 0, sizeof f);
    pthread_mutex_init(&f.lock, NULL);
    sem_init(&f.applied, 0, 0);
    sem_init(&f.told, 0, 0);
    ck_assert_int_eq(weir_dir_make_temporary("weir-host", f.dir, &err), WEIR_OK);
    write_file("model", TEXT);
    (void)snprintf(path, sizeof path, "%s/model", f.dir);
    ck_assert_int_eq(weir_file_sha256(path, f.sha256, &n_bytes, &err), WEIR_OK);
    f.wanted = json_object();
    f.server = serve(&(struct weir_http_config){0}, handle, NULL);
    (void)snprintf(f.url, sizeof f.url, "http://127.0.0.1:%d", weir_http_server_port(f.server));
    f.spec = (struct weir_host_spec){.replica = "r-0", .dir = f.dir, .server = f.url};
    f.hosted = (struct weir_hosted){.place = "/{}",
                                    .wanted = "wanted",
                                    .member = "versions",
                                    .file = "wanted.json",
                                    .report_ms = 3600 * 1000,
                                    .unsendable_event = "report_not_utf8",
                                    .refused_event = "report_refused",
                                    .apply = apply,
                                    .needs = needs,
                                    .report = report,
                                    .before_asking = before_asking};
}

static void tear_down(void)
{
    struct weir_error err;
    stop();
    weir_http_server_stop(f.server, 100);
    json_decref(f.wanted);
    json_decref(f.seen);
    json_decref(f.report);
    sem_destroy(&f.told);
    sem_destroy(&f.applied);
    pthread_mutex_destroy(&f.lock);
    ck_assert_int_eq(weir_dir_remove(f.dir, &err), WEIR_OK);
}

START_TEST(each_other_revision_is_applied_an_older_one_too)
{
    want("{\"revision\":7,\"versions\":[7]}");
    start();
    expect_applied("{\"revision\":7,\"versions\":[7]}");
    want("{\"revision\":8,\"versions\":[8]}");
    expect_applied("{\"revision\":8,\"versions\":[8]}");
    want("{\"revision\":9}"); /* wants nothing yet */
    want("{\"revision\":3,\"versions\":[3]}");
    expect_applied("{\"revision\":3,\"versions\":[3]}");
    stop();
    pthread_mutex_lock(&f.lock);
    ck_assert(strcmp(f.after, "8") == 0 || strcmp(f.after, "3") == 0);
    pthread_mutex_unlock(&f.lock);
    ck_assert_int_ge(f.n_asked, 3);
    ck_assert_int_ne(sem_trywait(&f.applied), 0);
}

END_TEST

START_TEST(what_failed_is_tried_again)
{
    f.n_failures = 2;
    want("{\"revision\":1,\"versions\":[]}");
    start();
    for (int i = 0; i < 3; i++) {
        expect_applied("{\"revision\":1,\"versions\":[]}");
    }
    stop();
    ck_assert_int_eq(f.n_failures, 0);
}

END_TEST

START_TEST(what_was_applied_last_comes_first_without_a_server_too)
{
    want("{\"revision\":4,\"versions\":[]}");
    start();
    expect_applied("{\"revision\":4,\"versions\":[]}");
    stop();
    f.spec.server = NULL;
    start();
    expect_applied("{\"revision\":4,\"versions\":[]}");
    ck_assert_ptr_null(weir_host_client(f.host));
    stop();
    /* With a server it is not asked for again. */
    f.spec.server = f.url;
    start();
    expect_applied("{\"revision\":4,\"versions\":[]}");
    want("{\"revision\":5,\"versions\":[]}");
    expect_applied("{\"revision\":5,\"versions\":[]}");
}

END_TEST

START_TEST(what_is_remembered_badly_is_passed_over)
{
    write_file("wanted.json", "{\"revision\":");
    want("{\"revision\":1,\"versions\":[]}");
    start();
    expect_applied("{\"revision\":1,\"versions\":[]}");
}

END_TEST

START_TEST(an_end_does_not_wait_for_the_server)
{
    want("{\"revision\":1,\"versions\":[]}");
    start();
    expect_applied("{\"revision\":1,\"versions\":[]}");
    stop(); /* the server would hold the question for a minute, longer than a test may take */
    weir_host_destroy(NULL);
    create();
    stop(); /* never started */
}

END_TEST

static bool is_in_cache(const char *name)
{
    char path[WEIR_HOST_PATH_BYTES];
    (void)snprintf(path, sizeof path, "%s/cache/%s", f.dir, name);
    return weir_path_exists(path);
}

/* Called by apply. */
static weir_status get_files(void)
{
    char path[WEIR_HOST_PATH_BYTES];
    struct weir_error err;
    weir_host_cache_path(f.host, "model", f.sha256, path);
    pthread_mutex_unlock(&f.lock); /* the server takes it */
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(weir_host_get(f.host, f.sha256, path, &err), WEIR_OK);
    }
    ck_assert_int_eq(f.n_blobs, 1);
    ck_assert_int_eq(weir_file_write(path, "damaged", 7, 0600, &err), WEIR_OK);
    ck_assert_int_eq(weir_host_get(f.host, f.sha256, path, &err), WEIR_OK);
    ck_assert_int_eq(f.n_blobs, 2);
    write_file("cache/other", "x");
    write_file("cache/.hidden", "x");
    pthread_mutex_lock(&f.lock);
    return WEIR_OK;
}

START_TEST(a_file_is_fetched_once_and_again_if_it_is_damaged)
{
    f.act = get_files;
    f.hosted.is_low_priority = _i == 1;
    char name[8 + WEIR_SHA256_TEXT_BYTES];
    want("{\"revision\":1,\"versions\":[]}");
    start();
    expect_applied("{\"revision\":1,\"versions\":[]}");
    stop();
    (void)snprintf(name, sizeof name, "model-%s", f.sha256);
    ck_assert(is_in_cache(name) && is_in_cache(".hidden") && !is_in_cache("other"));
}

END_TEST

static weir_status get_nothing(void)
{
    char path[WEIR_HOST_PATH_BYTES];
    struct weir_error err;
    weir_host_cache_path(f.host, "model", f.sha256, path);
    ck_assert_int_eq(weir_host_get(f.host, f.sha256, path, &err), WEIR_ERR_UNAVAILABLE);
    ck_assert_ptr_nonnull(strstr(err.message, "no server is named"));
    return WEIR_OK;
}

START_TEST(a_file_that_is_not_there_needs_a_server)
{
    f.act = get_nothing;
    f.spec.server = NULL;
    write_file("wanted.json", "{\"revision\":1}");
    start();
    expect_applied("{\"revision\":1}");
}

END_TEST

/* Until the server was told this; what it was told before may have been older. */
static void expect_told(const char *text)
{
    json_t *expected = json_loads(text, 0, NULL);
    bool is_equal = false;
    while (!is_equal) {
        while (sem_wait(&f.told) != 0) {
        }
        pthread_mutex_lock(&f.lock);
        is_equal = json_equal(f.report, expected);
        pthread_mutex_unlock(&f.lock);
    }
    json_decref(expected);
}

static weir_status refuse(void)
{
    return WEIR_ERR_INVALID;
}

/* The next report by the clock is an hour away: each of these is told because something changed. */
START_TEST(the_server_is_told_at_once_how_things_stand)
{
    start();
    expect_told("{\"state\":\"STARTING\",\"reason\":\"\",\"revision\":0,\"served\":0}");
    f.n_failures = 2; /* that another try mends: nothing has failed */
    want("{\"revision\":4,\"versions\":[]}");
    for (int i = 0; i < 3; i++) {
        expect_applied("{\"revision\":4,\"versions\":[]}");
    }
    while (sem_wait(&f.told) != 0) {
    }
    pthread_mutex_lock(&f.lock);
    ck_assert_str_eq(json_string_value(json_object_get(f.report, "state")), "APPLIED");
    f.act = refuse;
    pthread_mutex_unlock(&f.lock);
    want("{\"revision\":5,\"versions\":[]}");
    expect_told("{\"state\":\"FAILED\",\"reason\":\"no\",\"revision\":5,\"served\":4}");
    pthread_mutex_lock(&f.lock);
    f.act = NULL;
    pthread_mutex_unlock(&f.lock);
    expect_told("{\"state\":\"APPLIED\",\"reason\":\"\",\"revision\":5,\"served\":5}");
    weir_host_notify(f.host);
    expect_told("{\"state\":\"APPLIED\",\"reason\":\"\",\"revision\":5,\"served\":5}");
    weir_host_notify(NULL);
}

END_TEST

int main(void)
{
    Suite *suite = suite_create("host");
    TCase *tests = tcase_create("host");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, each_other_revision_is_applied_an_older_one_too);
    tcase_add_test(tests, what_failed_is_tried_again);
    tcase_add_test(tests, what_was_applied_last_comes_first_without_a_server_too);
    tcase_add_test(tests, what_is_remembered_badly_is_passed_over);
    tcase_add_test(tests, an_end_does_not_wait_for_the_server);
    tcase_add_loop_test(tests, a_file_is_fetched_once_and_again_if_it_is_damaged, 0, 2);
    tcase_add_test(tests, a_file_that_is_not_there_needs_a_server);
    tcase_add_test(tests, the_server_is_told_at_once_how_things_stand);
    tcase_set_timeout(tests, 30);
    suite_add_tcase(suite, tests);
    return weir_test_run(suite);
}
