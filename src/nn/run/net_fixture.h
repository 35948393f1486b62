/** The nets that the tests of run/ look at. */
#ifndef WEIR_NN_NET_FIXTURE_H
#define WEIR_NN_NET_FIXTURE_H

#include "nn/nn.h"

#include "base/hash.h"
#include "base/test_main.h"
#include "nn/backend/test_backends.h"
#include "nn/graph/random_graph_test.h"

/* conv bn relu pool, a residual block, dropout: barriers, deferred tasks, additions and tiles of
 * two sizes. */
static inline struct weir_graph *small_graph(void)
{
    struct weir_graph *graph = weir_graph_create();
    struct weir_conv_params conv = {.k = 8,
                                    .kernel_h = 3,
                                    .kernel_w = 3,
                                    .stride = 1,
                                    .pad_h = 1,
                                    .pad_w = 1,
                                    .has_bias = false};
    weir_value_t x = weir_graph_input(graph, (struct weir_shape){2, 10, 8});
    x = weir_graph_conv(graph, "conv1", x, &conv);
    x = weir_graph_batch_norm(graph, "bn1", x);
    x = weir_graph_relu(graph, "relu1", x);
    x = weir_graph_max_pool(graph, "pool", x,
                            &(struct weir_pool_params){.kernel = 2, .stride = 2, .pad = 0});
    weir_value_t y = weir_graph_conv(graph, "conv2", x, &conv);
    y = weir_graph_batch_norm(graph, "bn2", y);
    y = weir_graph_add(graph, "add", y, x);
    y = weir_graph_relu(graph, "relu2", y);
    y = weir_graph_linear(graph, "fc1", y, 12, true);
    y = weir_graph_prelu(graph, "prelu", y);
    y = weir_graph_dropout(graph, "drop", y, 0.3f);
    y = weir_graph_linear(graph, "fc2", y, RANDOM_GRAPH_CLASSES, true);
    weir_graph_softmax_loss(graph, "loss", y);
    return graph;
}

static inline struct weir_net *make_net(const struct weir_graph *graph,
                                        struct weir_net_config config)
{
    struct weir_net *net = NULL;
    struct weir_error err = {0};
    weir_status status = weir_net_create(graph, &config, &net, &err);
    ck_assert_msg(status == WEIR_OK, "%s", err.message);
    weir_net_init_weights(net, 3);
    random_batch(net, graph, 8);
    return net;
}

static inline struct weir_net *training_net(const struct weir_graph *graph, int i_form,
                                            int32_t n_threads)
{
    return make_net(graph, (struct weir_net_config){.batch = 11,
                                                    .n_slices = 4,
                                                    .n_threads = n_threads,
                                                    .is_training = true,
                                                    .seed = 5,
                                                    .precision = form_precision(i_form),
                                                    .backend = form_backend(i_form)});
}

static inline struct weir_step_result train_step(struct weir_net *net, uint64_t step)
{
    struct weir_step_result result;
    size_t n;
    ck_assert_int_eq(weir_net_step(net, step, NULL, NULL, &result), WEIR_OK);
    const float *gradients = weir_net_gradients(net, &n);
    float *weights = weir_net_weights(net, NULL);
    for (size_t i = 0; i < n; i++) {
        weights[i] -= 0.05f * gradients[i];
    }
    weir_net_weights_changed(net);
    return result;
}

static inline uint64_t hash_weights(struct weir_net *net)
{
    size_t n;
    const float *weights = weir_net_weights(net, &n);
    return weir_hash_bytes(WEIR_HASH_BEGIN, weights, n * sizeof *weights);
}

#endif
