/* A long poll is handled anew with every wake, however many there are before its answer. */
#include "api/request_fixture.h"

#include "base/log.h"
#include "base/test_main.h"

static struct request_fixture fixture;

static struct http_exchange *ask(const char *text)
{
    struct http_exchange *x = request_fixture_make(&fixture, text, strlen(text));
    ck_assert_ptr_nonnull(x);
    request_fixture_handle(&fixture, x);
    return x;
}

static weir_status add_project(struct weir_txn *txn, void *context, struct weir_error *err)
{
    (void)context;
    const struct weir_project project = {.name = "late", .description = "", .created_ms = 1};
    return weir_txn_insert(txn, &weir_project_resource, &project, err);
}

START_TEST(a_wait_that_is_woken_often_keeps_no_memory)
{
    weir_log_set_level(WEIR_LOG_ERROR);
    request_fixture_open(&fixture);
    struct http_exchange *put = ask("PUT /api/v1/nodes/n\n\n{\"cpu_slots\":2}");
    ck_assert_int_eq(put->response.kind, ANSWER_READY);
    ck_assert_int_eq(put->response.http_status, 204);
    request_fixture_free(put);
    struct http_exchange *wait = ask("GET /api/v1/nodes/n/desired?after=99&wait_s=60");
    ck_assert_int_eq(wait->response.kind, ANSWER_WAIT);
    size_t before = wait->arena.used_bytes;
    for (int i = 0; i < 3000; i++) {
        request_fixture_handle(&fixture, wait);
        ck_assert_int_eq(wait->response.kind, ANSWER_WAIT);
    }
    ck_assert_uint_eq(wait->arena.used_bytes, before);
    wait->request.is_expired = true;
    request_fixture_handle(&fixture, wait);
    ck_assert_int_eq(wait->response.kind, ANSWER_READY);
    ck_assert_int_eq(wait->response.http_status, 200);
    request_fixture_free(wait);
    request_fixture_close(&fixture);
}

END_TEST

/* The store outlives the HTTP server, and what else uses it goes on committing. */
START_TEST(a_commit_wakes_no_server_that_is_gone)
{
    struct weir_error err;
    struct weir_http_server *http;
    const struct weir_http_config config = {
        .listen = "127.0.0.1:0", .n_handlers = 1, .n_io_threads = 1, .max_connections = 16};
    weir_log_set_level(WEIR_LOG_ERROR);
    request_fixture_open(&fixture);
    must(weir_http_server_start(&config, weir_api_handle, fixture.api, &http, &err), &err);
    weir_api_attach(fixture.api, http, "http://127.0.0.1:1");
    request_fixture_free(ask("PUT /api/v1/nodes/n\n\n{\"cpu_slots\":2}"));
    weir_api_stop(fixture.api);
    weir_http_server_stop(http, 1000);
    uint64_t before = weir_store_change(fixture.store);
    must(weir_store_write(fixture.store, add_project, NULL, &err), &err);
    ck_assert_uint_gt(weir_store_change(fixture.store), before);
    request_fixture_close(&fixture);
}

END_TEST

WEIR_TEST_MAIN("wait", a_wait_that_is_woken_often_keeps_no_memory,
               a_commit_wakes_no_server_that_is_gone)
