/** What tests that compare a back-end with the reference share: nets of the same weights and batch, and
 *  how far their numbers are apart. */
#ifndef WEIR_NN_COMPARE_NETS_H
#define WEIR_NN_COMPARE_NETS_H

#include "nn/nn.h"

#include "base/test_main.h"
#include "nn/graph/random_graph_test.h"

#include <math.h>
#include <string.h>

/** The same graph twice: by the reference, and by the back-end that is tested. */
struct net_pair {
    struct weir_net *nets[2];
    struct weir_step_result results[2];
};

/* Some nets smooth their labels, no matter which; embeddings cannot. */
static inline double smoothing_of(const struct weir_graph *graph)
{
    return !weir_graph_is_embedding(graph) && weir_graph_n_parameters(graph) % 2 == 0 ? 0.1 : 0;
}

/** A net with a batch; of norms and biases, which are not all ones and zeros in a trained net. */
static inline struct weir_net *compared_net(const struct weir_graph *graph,
                                            struct weir_net_config config)
{
    struct weir_net *net = NULL;
    struct weir_error err = {0};
    config.seed = 4;
    config.label_smoothing = config.is_training ? smoothing_of(graph) : 0;
    weir_status status = weir_net_create(graph, &config, &net, &err);
    ck_assert_msg(status == WEIR_OK, "%s", err.message);
    weir_net_init_weights(net, 3);
    size_t n_params;
    const struct weir_param *params = weir_net_params(net, &n_params);
    float *weights = weir_net_weights(net, NULL);
    struct weir_rng rng;
    weir_rng_init(&rng, 17, 0);
    for (size_t i = 0; i < n_params; i++) {
        for (size_t j = 0; params[i].n_dims == 1 && params[i].is_trainable && j < params[i].n_elems;
             j++) {
            weights[params[i].first_elem + j] += 0.3f * (float)weir_rng_normal(&rng);
        }
    }
    weir_net_weights_changed(net);
    random_batch(net, graph, 8);
    return net;
}

static inline void free_pair(struct net_pair *pair)
{
    weir_net_destroy(pair->nets[0]);
    weir_net_destroy(pair->nets[1]);
}

/* Largest difference over the largest value, but over no less than `floor`. */
static inline double distance(const float *a, const float *b, size_t n, double floor_)
{
    double largest = floor_, difference = 0;
    for (size_t i = 0; i < n; i++) {
        largest = fmax(largest, fabs((double)a[i]));
        double d = fabs((double)a[i] - (double)b[i]);
        difference = d > difference || isnan(d) ? d : difference;
    }
    return difference / largest;
}

static inline void compare_params(const struct net_pair *pair, double tolerance, const char *what)
{
    size_t n_params;
    const struct weir_param *params = weir_net_params(pair->nets[0], &n_params);
    /* A gradient far smaller than others of its net has their rounding. */
    size_t n_gradients;
    const float *gradients = weir_net_gradients(pair->nets[0], &n_gradients);
    double largest = 1e-6;
    for (size_t i = 0; i < n_gradients; i++) {
        largest = fmax(largest, fabs((double)gradients[i]));
    }
    for (size_t i = 0; i < n_params; i++) {
        const struct weir_param *p = &params[i];
        const float *a = p->is_trainable ? weir_net_gradients(pair->nets[0], NULL)
                                         : weir_net_weights(pair->nets[0], NULL);
        const float *b = p->is_trainable ? weir_net_gradients(pair->nets[1], NULL)
                                         : weir_net_weights(pair->nets[1], NULL);
        double d = distance(a + p->first_elem, b + p->first_elem, p->n_elems, 1e-2 * largest);
        const char *suffix = strrchr(p->name, '.');
        bool is_bias = suffix != NULL && strcmp(suffix, ".bias") == 0;
        ck_assert_msg(d <= (is_bias ? 2 : 1) * tolerance, "%s: %s differs by %g", what, p->name, d);
    }
}

static inline void compare_forward(const struct net_pair *pair, size_t n_out, int32_t n,
                                   double tolerance, const char *what)
{
    struct weir_step_result results[2];
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(weir_net_forward(pair->nets[i], n, &results[i]), WEIR_OK);
    }
    double d = distance(weir_net_output(pair->nets[0]), weir_net_output(pair->nets[1]),
                        n_out * (size_t)n, 1e-6);
    ck_assert_msg(d <= tolerance, "%s: inference differs by %g", what, d);
    ck_assert_double_eq_tol(results[0].loss, results[1].loss, tolerance * (1 + results[0].loss));
    ck_assert_int_eq(results[0].n_labelled, results[1].n_labelled);
}

/* Two convolutions, so that the second one's gradient by its input shows in the first one's. */
static inline struct weir_graph *conv_graph(int32_t c, const struct weir_conv_params *params)
{
    struct weir_graph *graph = weir_graph_create();
    struct weir_conv_params first = {.k = c,
                                     .kernel_h = 3,
                                     .kernel_w = 3,
                                     .stride = 1,
                                     .pad_h = 1,
                                     .pad_w = 1,
                                     .has_bias = true};
    weir_value_t x = weir_graph_input(graph, (struct weir_shape){2, 13, 11});
    x = weir_graph_conv(graph, "first", x, &first);
    x = weir_graph_conv(graph, "second", x, params);
    x = weir_graph_linear(graph, "fc", x, 7, true);
    weir_graph_softmax_loss(graph, "loss", x);
    return graph;
}

#endif
