/* A replica of a deployment, beside a server that is played here: it loads what is wanted, reports,
 * follows changes, and serves on and starts again without the server. */
#include "serve/replica/test_replica.h"

#include "base/clock.h"
#include "base/file.h"
#include "http/http.h"

#include <pthread.h>
#include <unistd.h>

#define N_FILES 4 /* two models; golden inputs that hold for the second, and that do not */

struct fake {
    struct weir_http_server *http;
    pthread_mutex_t lock;
    /* Under lock. */
    json_t *wanted, *report;
    const char *paths[N_FILES]; /* files by blob */
    char blobs[N_FILES][WEIR_SHA256_TEXT_BYTES];
    int golden;      /* file of golden inputs of version 2; -1: none */
    bool is_damaged; /* blobs come with another byte */
    int n_reports;
};

static struct test_replica t;
static struct fake fake;
static struct serve_spec spec;
static char dir[WEIR_DIR_TEMPORARY_BYTES + 16], server_url[64];

static void give_blob(const char *sha256, struct weir_http_response *response)
{
    for (int i = 0; i < N_FILES; i++) {
        if (strcmp(fake.blobs[i], sha256) == 0) {
            if (fake.is_damaged) {
                weir_http_response_text(response, 200, "application/octet-stream", "damaged");
            } else {
                weir_http_response_file(response, 200, "application/octet-stream", fake.paths[i]);
            }
            return;
        }
    }
    weir_http_response_errorf(response, WEIR_ERR_NOT_FOUND, "no such blob");
}

static void handle(void *context, struct weir_http_request *request,
                   struct weir_http_response *response)
{
    struct weir_error err;
    (void)context;
    pthread_mutex_lock(&fake.lock);
    if (strncmp(request->path, "/api/v1/blobs/", 14) == 0) {
        give_blob(request->segments[3], response);
    } else if (strcmp(request->method, "PUT") == 0) {
        ck_assert_str_eq(request->path, "/api/v1/deployments/digits/replicas/digits-1");
        json_decref(fake.report);
        ck_assert_int_eq(
            weir_json_parse(request->body, request->body_len, "report", &fake.report, &err),
            WEIR_OK);
        fake.n_reports++;
        weir_http_response_json(response, 200, json_object());
    } else {
        ck_assert_str_eq(request->path, "/api/v1/deployments/digits/desired");
        long long after = strtoll(weir_http_request_query(request, "after"), NULL, 10);
        bool is_news =
            json_integer_value(json_object_get(fake.wanted, "revision")) != (json_int_t)after;
        if (is_news || request->is_expired) {
            weir_http_response_json(response, 200, json_incref(fake.wanted));
        } else {
            weir_http_response_wait(response, 1, 20000);
        }
    }
    pthread_mutex_unlock(&fake.lock);
}

static void start_server(void)
{
    struct weir_error err;
    const struct weir_http_config config = {.listen = "127.0.0.1:0"};
    ck_assert_int_eq(weir_http_server_start(&config, handle, NULL, &fake.http, &err), WEIR_OK);
    (void)snprintf(server_url, sizeof server_url, "http://127.0.0.1:%d",
                   weir_http_server_port(fake.http));
}

static void stop_server(void)
{
    weir_http_server_stop(fake.http, 100);
    fake.http = NULL;
}

/* n versions: number i + 1 is file `files[i]`. */
static void want(int64_t revision, size_t n, const int *files)
{
    json_t *versions = json_array();
    for (size_t i = 0; i < n; i++) {
        (void)json_array_append_new(
            versions,
            json_pack("{s:i,s:s,s:s?}", "version", (int)i + 1, "blob", fake.blobs[files[i]],
                      "golden", i == 1 && fake.golden >= 0 ? fake.blobs[fake.golden] : NULL));
    }
    pthread_mutex_lock(&fake.lock);
    json_decref(fake.wanted);
    fake.wanted = json_pack("{s:I,s:i,s:i,s:o}", "revision", (json_int_t)revision, "batch_max", 4,
                            "n_threads", 1, "versions", versions);
    pthread_mutex_unlock(&fake.lock);
    weir_http_wake(fake.http, 1);
}

static void put_golden(int file, const char *expected)
{
    static char paths[N_FILES][TEST_PATH_BYTES + 16];
    char text[512];
    struct weir_error err;
    (void)snprintf(text, sizeof text,
                   "{\"inputs\":[{\"name\":\"x\",\"shape\":[1,4],\"datatype\":\"FP32\",\"data\":"
                   "[1,-2,3,-4]}],\"outputs\":[{\"name\":\"y\",\"shape\":[1,4],\"datatype\":"
                   "\"FP32\",\"data\":%s}]}",
                   expected);
    (void)snprintf(paths[file], sizeof paths[file], "%s/golden-%d", t.folder, file);
    ck_assert_int_eq(weir_file_write(paths[file], text, strlen(text), 0600, &err), WEIR_OK);
    fake.paths[file] = paths[file];
}

static void start(void)
{
    struct weir_error err;
    uint64_t n_bytes;
    memset(&fake, 0, sizeof fake);
    pthread_mutex_init(&fake.lock, NULL);
    test_replica_files(&t);
    fake.paths[0] = t.net_path;
    fake.paths[1] = t.relu_path;
    fake.golden = -1;
    put_golden(2, "[1,0,3,0]");
    put_golden(3, "[1,0,3,-4]");
    for (int i = 0; i < N_FILES; i++) {
        ck_assert_int_eq(weir_file_sha256(fake.paths[i], fake.blobs[i], &n_bytes, &err), WEIR_OK);
    }
    (void)snprintf(dir, sizeof dir, "%s/replica", t.folder);
    start_server();
    want(1, 1, (int[]){1});
    static char token[TEST_PATH_BYTES];
    (void)snprintf(token, sizeof token, "%s/token", t.folder);
    ck_assert_int_eq(weir_file_write(token, "secret-token\n", 13, 0600, &err), WEIR_OK);
    spec = (struct serve_spec){
        .deployment = "digits",
        .host = {.replica = "digits-1", .dir = dir, .server = server_url, .token_file = token},
        .listen = "127.0.0.1:0",
        .secret = "gateway"};
    t.options = (struct serve_options){.spec = &spec, .executor = {.n_threads = 1}};
}

static void stop(void)
{
    test_replica_stop(&t);
    if (fake.http != NULL) {
        stop_server();
    }
    json_decref(fake.wanted);
    json_decref(fake.report);
}

static void forget_report(void)
{
    pthread_mutex_lock(&fake.lock);
    json_decref(fake.report);
    fake.report = NULL;
    pthread_mutex_unlock(&fake.lock);
}

/* What the last report says of a version; "" if nothing. */
static void reported(int64_t version, char out[32])
{
    size_t i;
    const json_t *one;
    out[0] = '\0';
    pthread_mutex_lock(&fake.lock);
    json_array_foreach(json_object_get(fake.report, "versions"), i, one)
    {
        if (json_integer_value(json_object_get(one, "version")) == (json_int_t)version) {
            (void)snprintf(out, 32, "%s", json_string_value(json_object_get(one, "state")));
        }
    }
    pthread_mutex_unlock(&fake.lock);
}

static void await_report(int64_t version, const char *state)
{
    char is[32];
    int64_t give_up_ms = weir_mono_ms() + 30000;
    do {
        reported(version, is);
        ck_assert_msg(weir_mono_ms() < give_up_ms, "version %d is %s", (int)version, is);
        (void)usleep(1000); /* only to leave the processor to the replica */
    } while (strcmp(is, state) != 0);
}

static int predict(int version)
{
    char path[64];
    static const char body[] = "{\"instances\":[[1,-2,3,-4]]}";
    (void)snprintf(path, sizeof path, "/v1/models/digits/versions/%d:predict", version);
    return test_replica_call(&t, path, "application/json", "Authorization: Bearer gateway", body,
                             sizeof body - 1);
}

START_TEST(a_replica_loads_what_is_wanted_and_says_so)
{
    test_replica_start(&t);
    await_report(1, "READY");
    ck_assert_int_eq(predict(1), 200);
    ck_assert_str_eq(t.reply.body.data, "{\"predictions\":[[1.0,0.0,3.0,0.0]]}");
    char url[64];
    (void)snprintf(url, sizeof url, "http://127.0.0.1:%d", serve_replica_port(t.replica));
    pthread_mutex_lock(&fake.lock);
    ck_assert_str_eq(json_string_value(json_object_get(fake.report, "url")), url);
    ck_assert_int_eq(json_integer_value(json_object_get(fake.report, "revision")), 1);
    pthread_mutex_unlock(&fake.lock);
    /* A second version beside it, and the first one goes. */
    want(2, 2, (int[]){1, 0});
    await_report(2, "READY");
    ck_assert_int_eq(predict(1), 200);
    want(3, 1, (int[]){1});
    await_report(2, "");
    ck_assert_int_eq(predict(2), 404);
    ck_assert_int_eq(predict(1), 200);
}

END_TEST

START_TEST(only_who_has_the_secret_is_answered)
{
    test_replica_start(&t);
    await_report(1, "READY");
    ck_assert_int_eq(test_replica_get(&t, "/v2/models/digits"), 401);
    ck_assert_int_eq(
        test_replica_call(&t, "/v2/models/digits", NULL, "Authorization: Bearer gatewaz", NULL, 0),
        401);
    ck_assert_int_eq(test_replica_get(&t, "/v2/health/live"), 200);
    ck_assert_int_eq(test_replica_call(&t, "/v2/repository/models/digits/unload", NULL,
                                       "Authorization: Bearer gateway", "{}", 2),
                     501);
}

END_TEST

START_TEST(a_replica_serves_and_starts_without_its_server)
{
    test_replica_start(&t);
    await_report(1, "READY");
    stop_server();
    ck_assert_int_eq(predict(1), 200);
    serve_replica_stop(t.replica, 1000);
    test_replica_start(&t);
    int64_t give_up_ms = weir_mono_ms() + 30000;
    while (predict(1) != 200) {
        ck_assert_int_lt(weir_mono_ms(), give_up_ms);
        (void)usleep(1000); /* only to leave the processor to the replica */
    }
}

END_TEST

START_TEST(a_file_that_is_not_what_it_was_is_not_served)
{
    struct weir_error err;
    char path[TEST_PATH_BYTES * 2 + WEIR_SHA256_TEXT_BYTES];
    test_replica_start(&t);
    await_report(1, "READY");
    serve_replica_stop(t.replica, 1000);
    t.replica = NULL;
    /* Damaged on disk: it is fetched anew. */
    (void)snprintf(path, sizeof path, "%s/cache/model-%s", dir, fake.blobs[1]);
    ck_assert_int_eq(weir_file_write(path, "x", 1, 0600, &err), WEIR_OK);
    forget_report();
    test_replica_start(&t);
    await_report(1, "READY");
    ck_assert_int_eq(predict(1), 200);
    /* Damaged on the way: not served. */
    pthread_mutex_lock(&fake.lock);
    fake.is_damaged = true;
    pthread_mutex_unlock(&fake.lock);
    want(2, 2, (int[]){1, 0});
    await_report(2, "FAILED");
    ck_assert_int_eq(predict(2), 503);
    ck_assert_int_eq(predict(1), 200);
}

END_TEST

START_TEST(a_version_that_fails_its_golden_inputs_says_which_output_and_gets_no_request)
{
    test_replica_start(&t);
    await_report(1, "READY");
    fake.golden = 3;
    want(2, 2, (int[]){1, 1});
    await_report(2, "FAILED");
    pthread_mutex_lock(&fake.lock);
    const json_t *second = json_array_get(json_object_get(fake.report, "versions"), 1);
    ck_assert_str_eq(json_string_value(json_object_get(second, "reason")),
                     "golden check: element 3 of 'y' is 0, expected -4");
    pthread_mutex_unlock(&fake.lock);
    ck_assert_int_eq(predict(2), 503);
    ck_assert_int_eq(predict(1), 200);
    fake.golden = 2;
    want(3, 2, (int[]){1, 1});
    await_report(2, "READY");
    ck_assert_int_eq(predict(2), 200);
}

END_TEST

WEIR_TEST_MAIN_WITH("replica of a deployment", start, stop,
                    a_replica_loads_what_is_wanted_and_says_so, only_who_has_the_secret_is_answered,
                    a_replica_serves_and_starts_without_its_server,
                    a_file_that_is_not_what_it_was_is_not_served,
                    a_version_that_fails_its_golden_inputs_says_which_output_and_gets_no_request)
