/** For the tests of serving: a replica without a server on a free port, and requests to it. */
#ifndef WEIR_SERVE_TEST_REPLICA_H
#define WEIR_SERVE_TEST_REPLICA_H

#include "serve/replica/replica.h"
#include "serve/test_model.h"

#include "base/file.h"
#include "base/json.h"
#include "base/test_main.h"
#include "http/http_client.h"

#include <stdarg.h>
#include <string.h>

#define TEST_PATH_BYTES (WEIR_DIR_TEMPORARY_BYTES + 32)

/** A model that Weir trained ("net"), with labels, and an ONNX model y = relu(x) ("relu"). */
struct test_replica {
    char folder[WEIR_DIR_TEMPORARY_BYTES];
    char net_path[TEST_PATH_BYTES], relu_path[TEST_PATH_BYTES];
    struct serve_given given[2];
    struct serve_options options;
    struct serve_replica *replica;
    struct weir_http_client *client;
    struct weir_http_reply reply; /**< Of the last call. */
    bool has_reply;
    json_t *json; /**< The last reply's body; NULL if it is none. */
};

static inline void test_replica_files(struct test_replica *t)
{
    struct weir_error err;
    unsigned char onnx[512];
    memset(t, 0, sizeof *t);
    ck_assert_int_eq(weir_dir_make_temporary("serve", t->folder, &err), WEIR_OK);
    (void)snprintf(t->net_path, sizeof t->net_path, "%s/net", t->folder);
    (void)snprintf(t->relu_path, sizeof t->relu_path, "%s/relu.onnx", t->folder);
    test_model_save(t->net_path, TEST_CLASSIFIER, 11);
    size_t n = test_onnx_write("Relu", onnx);
    ck_assert_int_eq(weir_file_write(t->relu_path, onnx, n, 0600, &err), WEIR_OK);
    t->given[0] = (struct serve_given){.model = "net", .number = 3, .path = t->net_path};
    t->given[1] = (struct serve_given){.model = "relu", .number = 1, .path = t->relu_path};
    t->options = (struct serve_options){.given = t->given,
                                        .n_given = 2,
                                        .listen = "127.0.0.1:0",
                                        .rules = {.batch_max = 8, .queue_max = 64},
                                        .executor = {.n_threads = 1}};
    ck_assert_int_eq(weir_http_client_open(&(struct weir_http_client_config){0}, &t->client, &err),
                     WEIR_OK);
}

static inline void test_replica_start(struct test_replica *t)
{
    struct weir_error err = {0};
    ck_assert_msg(serve_replica_start(&t->options, &t->replica, &err) == WEIR_OK, "%s",
                  err.message);
}

static inline void test_replica_drop_reply(struct test_replica *t)
{
    if (t->has_reply) {
        weir_http_reply_fini(&t->reply);
    }
    json_decref(t->json);
    t->json = NULL;
    t->has_reply = false;
}

static inline void test_replica_stop(struct test_replica *t)
{
    struct weir_error err;
    test_replica_drop_reply(t);
    weir_http_client_close(t->client);
    serve_replica_stop(t->replica, 1000);
    ck_assert_int_eq(weir_dir_remove(t->folder, &err), WEIR_OK);
}

/** Status of a call; body NULL: GET. header may be NULL. */
static inline int test_replica_call(struct test_replica *t, const char *path, const char *type,
                                    const char *header, const void *body, size_t len)
{
    char url[512];
    struct weir_error err = {0};
    test_replica_drop_reply(t);
    (void)snprintf(url, sizeof url, "http://127.0.0.1:%d%s", serve_replica_port(t->replica), path);
    const struct weir_http_call call = {.method = body != NULL ? "POST" : "GET",
                                        .url = url,
                                        .headers = &header,
                                        .n_headers = header != NULL,
                                        .content_type = type,
                                        .body = body,
                                        .body_len = len,
                                        .timeout_ms = 30000};
    ck_assert_msg(weir_http_client_call(t->client, &call, &t->reply, &err) == WEIR_OK, "%s: %s",
                  path, err.message);
    t->has_reply = true;
    if (weir_json_parse(t->reply.body.data, t->reply.body.len, "answer", &t->json, &err) !=
        WEIR_OK) {
        t->json = NULL;
    }
    return t->reply.http_status;
}

static inline int test_replica_get(struct test_replica *t, const char *path)
{
    return test_replica_call(t, path, NULL, NULL, NULL, 0);
}

static inline int test_replica_post(struct test_replica *t, const char *path, const char *json)
{
    return test_replica_call(t, path, "application/json", NULL, json, strlen(json));
}

/** The model's own answer for rows of numbers, without anything of serving. Release it. */
static inline struct weir_tensor *test_replica_oracle(const char *path, int32_t rank,
                                                      const int64_t *dims, const float *values)
{
    struct serve_model *model;
    struct weir_tensor *in, *out;
    struct weir_error err = {0};
    char why[EXECUTOR_WHY_BYTES];
    const struct executor_options options = {.n_threads = 1};
    ck_assert_msg(executor_choose(path, &options, &model, why, &err) == WEIR_OK, "%s", err.message);
    ck_assert_int_eq(weir_tensor_create(WEIR_DTYPE_FLOAT, rank, dims, &in, &err), WEIR_OK);
    memcpy(in->data, values, in->n_elems * sizeof *values);
    ck_assert_msg(serve_model_run(model, &in, &out, &err) == WEIR_OK, "%s", err.message);
    weir_tensor_release(in);
    serve_model_unload(model);
    return out;
}

#endif
