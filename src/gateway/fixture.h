/** For the gateway's tests: an HTTP server with a gateway behind it, replicas that do as they are told,
 *  and requests over raw sockets. */
#ifndef WEIR_GATEWAY_FIXTURE_H
#define WEIR_GATEWAY_FIXTURE_H

#include "base/clock.h"
#include "gateway/differed.h"
#include "gateway/figures.h"
#include "gateway/gateway.h"
#include "gateway/receipt.h"
#include "http/test_support.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#define REPLICAS_MAX 4

/** A replica: it answers with what it was asked, or as `mode` says. */
struct fake_replica {
    struct weir_http_server *server;
    char url[64];
    atomic_int n_requests;
    atomic_int http_status; /**< 0: 200 */
    atomic_int wait_ms;     /**< Before it answers. */
    const char *answers[8]; /**< By version: the body; NULL: what was asked. */
};

struct fixture {
    struct weir_gateway *gateway;
    struct weir_http_server *server;
    struct fake_replica replicas[REPLICAS_MAX];
    atomic_int n_started, n_authorised;
    atomic_bool is_revoked;
};

static struct fixture f;
static const unsigned char fixture_key[WEIR_RECEIPT_KEY_BYTES] = "the key of the tests";

/* Triton's binary tensors: the bytes behind the JSON come back as the output "y", of FP32. */
static void answer_binary(struct weir_http_request *request, struct weir_http_response *response,
                          long version, long n_json)
{
    char text[65536], number[16];
    long n = (long)request->body_len - n_json;
    ck_assert(n >= 0 && n < 60000);
    int len = snprintf(text, sizeof text,
                       "{\"model_name\":\"cats\",\"model_version\":\"%ld\",\"id\":\"7\","
                       "\"outputs\":[{\"name\":\"y\",\"datatype\":\"FP32\",\"shape\":[1,%ld],"
                       "\"parameters\":{\"binary_data_size\":%ld}}]}",
                       version, n / 4, n);
    memcpy(text + len, request->body + n_json, (size_t)n);
    weir_http_response_bytes(response, 200, "application/octet-stream", text, (size_t)(len + n));
    (void)snprintf(number, sizeof number, "%d", len);
    weir_http_response_header(response, "Inference-Header-Content-Length", number);
}

static void replica_handle(void *context, struct weir_http_request *request,
                           struct weir_http_response *response)
{
    struct fake_replica *replica = context;
    const char *bearer = weir_http_request_header(request, "Authorization");
    if (replica->wait_ms > 0 && !request->is_expired) {
        weir_http_response_wait(response, 1, replica->wait_ms);
        return;
    }
    atomic_fetch_add(&replica->n_requests, 1);
    if (bearer == NULL || strcmp(bearer, "Bearer hush") != 0) {
        weir_http_response_text(response, 401, "text/plain", "no secret");
        return;
    }
    if (replica->http_status != 0) {
        weir_http_response_text(response, replica->http_status, "application/json",
                                "{\"error\":\"as told\"}");
        return;
    }
    long version = request->n_segments > 4 ? strtol(request->segments[4], NULL, 10) : 0;
    if (version > 0 && version < 8 && replica->answers[version] != NULL) {
        weir_http_response_text(response, 200, "application/json", replica->answers[version]);
        return;
    }
    const char *n_json = weir_http_request_header(request, "Inference-Header-Content-Length");
    if (n_json != NULL) {
        answer_binary(request, response, version, strtol(n_json, NULL, 10));
        return;
    }
    const char *type = weir_http_request_header(request, "Content-Type");
    char text[1024];
    (void)snprintf(text, sizeof text, "%s %s %s [%.200s] by %s", request->method, request->path,
                   type != NULL ? type : "-", request->body, replica->url);
    weir_http_response_text(response, 200, "text/plain", text);
}

static weir_status fixture_authorise(void *context, const char *token,
                                     const struct weir_http_request *request,
                                     struct weir_arena *arena, struct weir_gateway_caller *out,
                                     struct weir_error *err)
{
    static const char *const projects[] = {"vision"};
    (void)context;
    (void)request;
    (void)arena;
    atomic_fetch_add(&f.n_authorised, 1);
    if (token == NULL || f.is_revoked) {
        return weir_error_set(err, WEIR_ERR_UNAUTH, "no token that is known");
    }
    *out = (struct weir_gateway_caller){.is_all = strcmp(token, "all") == 0,
                                        .projects = projects,
                                        .n_projects = strcmp(token, "vision") == 0};
    return WEIR_OK;
}

static void fixture_start(void *context, const char *deployment)
{
    (void)context;
    (void)deployment;
    atomic_fetch_add(&f.n_started, 1);
}

static void fixture_handle(void *context, struct weir_http_request *request,
                           struct weir_http_response *response)
{
    weir_gateway_handle(context, request, response);
}

static void fixture_admit(void *context, struct weir_http_request *request,
                          struct weir_http_response *response)
{
    weir_gateway_admit(context, request, response);
}

static void fixture_body_rule(void *context, const struct weir_http_request *request,
                              struct weir_http_body_rule *rule)
{
    weir_gateway_body_rule(context, request, rule);
}

static void set_up(void)
{
    struct weir_error err = {0};
    memset(&f, 0, sizeof f);
    struct weir_gateway_config config = {.authorise = fixture_authorise,
                                         .key = fixture_key,
                                         .start = fixture_start,
                                         .max_request_bytes = 1 << 20,
                                         .version = "1"};
    ck_assert_msg(weir_gateway_create(&config, &f.gateway, &err) == WEIR_OK, "%s", err.message);
    f.server = serve(&(struct weir_http_config){.admit = fixture_admit,
                                                .body_rule = fixture_body_rule,
                                                .max_connections_per_address = 4000},
                     fixture_handle, f.gateway);
    for (size_t i = 0; i < REPLICAS_MAX; i++) {
        struct fake_replica *replica = &f.replicas[i];
        replica->server = serve(&(struct weir_http_config){.n_handlers = 4,
                                                           .max_body_bytes = 2 << 20,
                                                           .max_connections_per_address = 4000},
                                replica_handle, replica);
        (void)snprintf(replica->url, sizeof replica->url, "http://127.0.0.1:%d",
                       weir_http_server_port(replica->server));
    }
}

static void tear_down(void)
{
    weir_gateway_stop(f.gateway);
    weir_http_server_stop(f.server, 1000);
    for (size_t i = 0; i < REPLICAS_MAX; i++) {
        weir_http_server_stop(f.replicas[i].server, 1000);
    }
    weir_gateway_destroy(f.gateway);
}

static const struct weir_gateway_version two_versions[] = {{1, 900000}, {2, 100000}};

/** Publish one deployment "cats" of project "vision". What *like leaves out has a usual value. */
static void publish(const struct weir_gateway_deployment *like)
{
    struct weir_error err = {0};
    struct weir_gateway_table *table = weir_gateway_table_create();
    struct weir_gateway_deployment d = *like;
    d.name = "cats";
    d.project = "vision";
    d.secret = "hush";
    if (d.n_versions == 0) {
        d.versions = two_versions;
        d.n_versions = 2;
    }
    ck_assert_msg(weir_gateway_table_add(table, &d, &err) == WEIR_OK, "%s", err.message);
    weir_gateway_publish(f.gateway, table);
}

static WEIR_UNUSED void publish_replicas(size_t n)
{
    struct weir_gateway_replica replicas[REPLICAS_MAX];
    static const char *const ids[] = {"r-0", "r-1", "r-2", "r-3"};
    for (size_t i = 0; i < n; i++) {
        replicas[i] = (struct weir_gateway_replica){ids[i], f.replicas[i].url, 3, false};
    }
    publish(&(struct weir_gateway_deployment){.replicas = replicas, .n_replicas = n});
}

static WEIR_UNUSED int ask_with(const char *path, const char *headers, const char *body)
{
    char text[4096];
    int fd = connect_to(f.server);
    (void)snprintf(text, sizeof text,
                   "POST %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: text/csv\r\n"
                   "Content-Length: %zu\r\n%s\r\n%s",
                   path, strlen(body), headers, body);
    send_text(fd, text);
    return fd;
}

#define AS_VISION "Authorization: Bearer vision\r\n"
#define INFER     "/v2/models/cats/infer"

/** Its answer; the text is good until the next one on this thread. */
static const char *answer_of(int fd)
{
    static _Thread_local char text[65536];
    read_until(fd, NULL, text, sizeof text);
    close(fd);
    return text;
}

static WEIR_UNUSED const char *ask(const char *path, const char *headers, const char *body)
{
    return answer_of(ask_with(path, headers, body));
}

static WEIR_UNUSED const char *get(const char *path, const char *headers)
{
    char text[1024];
    int fd = connect_to(f.server);
    (void)snprintf(text, sizeof text, "GET %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n%s\r\n",
                   path, headers);
    send_text(fd, text);
    return answer_of(fd);
}

static WEIR_UNUSED void expect_text(const char *answer, const char *part)
{
    ck_assert_msg(strstr(answer, part) != NULL, "no \"%s\" in: %s", part, answer);
}

/** Of all versions together. */
static void add_figures(void *context, const struct weir_gateway_figures *figures)
{
    struct weir_gateway_figures *sum = context;
#define X(field, name, help) sum->field += figures->field;
#include "gateway/figures.def"
#undef X
    sum->n_in_flight += figures->n_in_flight;
    sum->n_held += figures->n_held;
}

static WEIR_UNUSED struct weir_gateway_figures figures_now(void)
{
    struct weir_gateway_figures sum = {0};
    weir_gateway_figures_each(f.gateway, add_figures, &sum);
    return sum;
}

/** Wait until a condition holds; fail after 20 s. */
#define UNTIL(condition)                                                                           \
    for (int64_t give_up_ms_ = weir_mono_ms() + 20000; !(condition);) {                            \
        ck_assert_msg(weir_mono_ms() < give_up_ms_, "never: %s", #condition);                      \
        (void)usleep(1000); /* only to leave the processor to the others */                        \
    }

#endif
