/** Tests: model files of known weights, and ONNX files of a few bytes. */
#ifndef WEIR_SERVE_TEST_MODEL_H
#define WEIR_SERVE_TEST_MODEL_H

#include "base/rng.h"
#include "nn/model_file.h"
#include "nn/net_file.h"
#include "nn/zoo.h"
#include "serve/executor.h"

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define TEST_CLASSIFIER                                                                            \
    "{\"input\": [3, 8, 6], \"layers\": ["                                                         \
    "{\"name\": \"c\", \"type\": \"conv\", \"k\": 4, \"kernel\": 3, \"pad\": 1},"                  \
    "{\"name\": \"r\", \"type\": \"relu\"},"                                                       \
    "{\"name\": \"f\", \"type\": \"linear\", \"k\": \"classes\"}],"                                \
    "\"loss\": {\"type\": \"softmax\"}}"

#define TEST_EMBEDDING                                                                             \
    "{\"input\": [1, 8, 8], \"layers\": ["                                                         \
    "{\"name\": \"f\", \"type\": \"linear\", \"k\": 16}],"                                         \
    "\"loss\": {\"type\": \"margin\"}}"

static const char *const test_labels[] = {"cat", "dog", "eel"};

/** Norms that do nothing would hide mistakes: their parameters and statistics become random. */
static inline void test_model_stir(struct weir_net *net, uint64_t seed)
{
    size_t n;
    struct weir_rng rng;
    const struct weir_param *params = weir_net_params(net, &n);
    weir_rng_init(&rng, seed, 77);
    for (size_t i = 0; i < n; i++) {
        float *values = weir_net_weights(net, NULL) + params[i].first_elem;
        for (size_t k = 0; params[i].n_dims == 1 && k < params[i].n_elems; k++) {
            bool is_variance = strstr(params[i].name, "running_var") != NULL;
            values[k] += 0.25f * (is_variance ? fabsf((float)weir_rng_normal(&rng))
                                              : (float)weir_rng_normal(&rng));
        }
    }
    weir_net_weights_changed(net);
}

/** Saves a net of this model (model_file.h) with fresh weights and three classes. */
static inline void test_model_save(const char *path, const char *spec, uint64_t seed)
{
    struct weir_error err = {0};
    struct weir_model_spec *parsed = NULL;
    struct weir_graph *graph = NULL;
    struct weir_net *net = NULL;
    const struct weir_net_config config = {.batch = 1, .n_threads = 1};
    ck_assert_msg(weir_model_spec_parse(spec, strlen(spec), "test", &parsed, &err) == WEIR_OK, "%s",
                  err.message);
    ck_assert_int_eq(weir_model_spec_build(parsed, 3, &graph, &err), WEIR_OK);
    ck_assert_int_eq(weir_net_create(graph, &config, &net, &err), WEIR_OK);
    weir_net_init_weights(net, seed);
    test_model_stir(net, seed);
    const struct weir_net_file_info info = {.input = {.shape = weir_model_spec_input(parsed),
                                                      .mean = {0.5f, 0.25f, 0.125f},
                                                      .std = {0.25f, 0.5f, 0.75f}},
                                            .graph = weir_model_spec_text(parsed),
                                            .labels = test_labels,
                                            .n_labels = 3};
    ck_assert_msg(weir_net_file_save(path, net, &info, &err) == WEIR_OK, "%s", err.message);
    weir_net_destroy(net);
    weir_graph_destroy(graph);
    weir_model_spec_destroy(parsed);
}

/** ModelProto of one node TYPE(x) -> y; x and y FLOAT [N, 4]; opset 13. */
static inline size_t test_onnx_write(const char *type, unsigned char *out)
{
    unsigned char value[] = {0x0a, 1,    0, 0x12, 0x0f, 0x0a, 0x0d, 0x08, 1, 0x12,
                             9,    0x0a, 3, 0x12, 1,    'N',  0x0a, 2,    8, 4};
    size_t len = strlen(type), n = 0;
    unsigned char graph[256];
    graph[n++] = 0x0a; /* node */
    graph[n++] = (unsigned char)(6 + 2 + len);
    memcpy(graph + n, "\x0a\x01x\x12\x01y\x22", 7);
    n += 7;
    graph[n++] = (unsigned char)len;
    memcpy(graph + n, type, len);
    n += len;
    for (int i = 0; i < 2; i++) { /* input, output */
        value[2] = i == 0 ? 'x' : 'y';
        graph[n++] = i == 0 ? 0x5a : 0x62;
        graph[n++] = sizeof value;
        memcpy(graph + n, value, sizeof value);
        n += sizeof value;
    }
    size_t m = 0;
    memcpy(out, "\x08\x07\x42\x02\x10\x0d\x3a", 7); /* ir_version 7, opset 13, graph */
    m = 7;
    out[m++] = (unsigned char)n;
    memcpy(out + m, graph, n);
    return m + n;
}

/** Inputs of zeros (strings: empty) for a run; free dimensions are 1, but the first is `batch`. */
static inline void test_model_zeros(const struct serve_model *model, int64_t batch,
                                    struct weir_tensor **out)
{
    for (size_t i = 0; i < model->n_inputs; i++) {
        const struct serve_port *port = &model->inputs[i];
        int64_t dims[WEIR_TENSOR_RANK_MAX];
        for (int32_t k = 0; k < port->rank; k++) {
            dims[k] = port->dims[k] >= 0 ? port->dims[k] : k == 0 ? batch : 1;
        }
        ck_assert_int_eq(weir_tensor_create(port->dtype, port->rank, dims, &out[i], NULL), WEIR_OK);
    }
}

#endif
