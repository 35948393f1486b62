/** Random networks for tests: every kind of layer, branches, concatenations, odd sizes. */
#ifndef WEIR_NN_RANDOM_GRAPH_TEST_H
#define WEIR_NN_RANDOM_GRAPH_TEST_H

#include "nn/nn.h"

#include "base/rng.h"

#include <stdio.h>
#include <stdlib.h>

#define RANDOM_GRAPH_CLASSES 5

/* A random graph while it grows. */
struct random_graph {
    struct weir_graph *graph;
    struct weir_rng rng;
    int n_names;
    char name[32];
    bool has_dropout;
};

static inline const char *rg_name(struct random_graph *g)
{
    snprintf(g->name, sizeof(g->name), "l%d", g->n_names++);
    return g->name;
}

static inline int32_t rg_pick(struct random_graph *g, int32_t n)
{
    return (int32_t)weir_rng_below(&g->rng, (uint64_t)n);
}

/* A bias only where no batch norm can follow at once: the batch norm would cancel it and leave a
 * gradient that is nothing but rounding. */
static inline weir_value_t rg_conv(struct random_graph *g, weir_value_t x, int32_t k,
                                   int32_t stride, bool can_have_bias)
{
    static const int32_t kernels[] = {1, 3, 5};
    int32_t kernel = kernels[rg_pick(g, 3)];
    struct weir_conv_params p = {.k = k,
                                 .kernel_h = kernel,
                                 .kernel_w = kernel,
                                 .stride = stride,
                                 .pad_h = kernel / 2,
                                 .pad_w = kernel / 2,
                                 .has_bias = rg_pick(g, 2) == 0 && can_have_bias};
    return weir_graph_conv(g->graph, rg_name(g), x, &p);
}

/* x -> [conv bn relu conv bn] + shortcut -> relu, the block of residual networks, in either
 * order. */
static inline weir_value_t rg_residual(struct random_graph *g, weir_value_t x, int32_t k,
                                       bool has_projection)
{
    int32_t stride = has_projection ? 1 + rg_pick(g, 2) : 1;
    bool is_shortcut_first = rg_pick(g, 2) == 0;
    weir_value_t shortcut = x, y;
    if (has_projection && is_shortcut_first) {
        shortcut = rg_conv(g, x, k, stride, false);
        shortcut = weir_graph_batch_norm(g->graph, rg_name(g), shortcut);
    }
    y = rg_conv(g, x, k, stride, false);
    y = weir_graph_batch_norm(g->graph, rg_name(g), y);
    y = weir_graph_relu(g->graph, rg_name(g), y);
    y = rg_conv(g, y, k, 1, false);
    y = weir_graph_batch_norm(g->graph, rg_name(g), y);
    if (has_projection && !is_shortcut_first) {
        shortcut = rg_conv(g, x, k, stride, false);
        shortcut = weir_graph_batch_norm(g->graph, rg_name(g), shortcut);
    }
    y = rg_pick(g, 2) == 0 ? weir_graph_add(g->graph, rg_name(g), shortcut, y)
                           : weir_graph_add(g->graph, rg_name(g), y, shortcut);
    return weir_graph_relu(g->graph, rg_name(g), y);
}

/* Adds one more piece to x (k channels). It may change the channels through *k. */
static inline weir_value_t rg_grow(struct random_graph *g, weir_value_t x, int32_t *k)
{
    struct weir_graph *graph = g->graph;
    weir_value_t y;
    switch (rg_pick(g, 14)) {
    case 0:
        *k = 1 + rg_pick(g, 20);
        y = rg_conv(g, x, *k, 1, true);
        return weir_graph_relu(graph, rg_name(g), y);
    case 1:
        return rg_residual(g, x, *k, false);
    case 2:
        *k = 1 + rg_pick(g, 20);
        return rg_residual(g, x, *k, true);
    case 3:
        y = rg_conv(g, x, 3, 1, false);
        x = weir_graph_concat(graph, rg_name(g), (weir_value_t[]){x, y, x}, 3);
        *k = 2 * *k + 3;
        return x;
    case 4:
        x = rg_conv(g, x, *k, 1, true);
        return weir_graph_prelu(graph, rg_name(g), x);
    case 5:
        return weir_graph_avg_pool(graph, rg_name(g), x,
                                   &(struct weir_pool_params){.kernel = 3, .stride = 1, .pad = 1});
    case 6:
        return weir_graph_max_pool(graph, rg_name(g), x,
                                   &(struct weir_pool_params){.kernel = 3, .stride = 2, .pad = 1});
    case 7:
        y = weir_graph_batch_norm(graph, rg_name(g), x);
        return weir_graph_add(graph, rg_name(g), y, x);
    case 8:
        return weir_graph_scale(graph, rg_name(g), x, rg_pick(g, 2) == 0 ? -1.5f : 0.75f);
    case 9:
        y = weir_graph_layer_norm(graph, rg_name(g), x);
        return weir_graph_add(graph, rg_name(g), x, y);
    case 10:
        y = weir_graph_conv(graph, rg_name(g), x,
                            &(struct weir_conv_params){.k = 2 * *k,
                                                       .kernel_h = 3,
                                                       .kernel_w = 3,
                                                       .stride = 1,
                                                       .pad_h = 2,
                                                       .pad_w = 2,
                                                       .groups = *k,
                                                       .dilation = 2});
        *k *= 2;
        y = weir_graph_batch_norm_eps(graph, rg_name(g), y, 1e-3);
        return weir_graph_relu6(graph, rg_name(g), y);
    case 11:
        return weir_graph_max_pool(
            graph, rg_name(g), x,
            &(struct weir_pool_params){.kernel = 2, .stride = 2, .is_ceil = true});
    case 12:
        return weir_graph_avg_pool(
            graph, rg_name(g), x,
            &(struct weir_pool_params){.kernel = 3,
                                       .stride = 2,
                                       .pad = 1,
                                       .is_ceil = true,
                                       .is_pad_excluded = rg_pick(g, 2) == 0});
    default:
        g->has_dropout = true;
        return weir_graph_dropout(graph, rg_name(g), x, 0.25f);
    }
}

/** A graph of 1 + n_pieces pieces on a 7x9 image, ending in one of the two losses. */
static inline struct weir_graph *random_graph(uint64_t seed, int n_pieces, bool *out_has_dropout)
{
    struct random_graph g = {.graph = weir_graph_create()};
    weir_rng_init(&g.rng, seed, 99);
    int32_t k = 1 + rg_pick(&g, 3);
    weir_value_t x = weir_graph_input(g.graph, (struct weir_shape){k, 7, 9});
    for (int i = 0; i < n_pieces; i++) {
        x = rg_grow(&g, x, &k);
    }
    weir_value_t flat = rg_pick(&g, 2) == 0 ? weir_graph_flatten(g.graph, rg_name(&g), x) : -1;
    if (flat >= 0 || rg_pick(&g, 2) == 0) {
        x = weir_graph_global_pool(g.graph, rg_name(&g), x);
    }
    if (flat >= 0) {
        x = weir_graph_concat(g.graph, rg_name(&g), (weir_value_t[]){x, flat}, 2);
    }
    x = weir_graph_linear(g.graph, rg_name(&g), x, 1 + RANDOM_GRAPH_CLASSES, rg_pick(&g, 2) == 0);
    x = weir_graph_prelu(g.graph, rg_name(&g), x);
    if (rg_pick(&g, 2) == 0) {
        weir_graph_margin_loss(g.graph, "margin", x, RANDOM_GRAPH_CLASSES, 4, 0.2f);
    } else {
        x = weir_graph_linear(g.graph, rg_name(&g), x, RANDOM_GRAPH_CLASSES, true);
        weir_graph_softmax_loss(g.graph, "loss", x);
    }
    if (out_has_dropout) {
        *out_has_dropout = g.has_dropout;
    }
    return g.graph;
}

/** Random input and labels, one image without a label. */
static inline void random_batch(struct weir_net *net, const struct weir_graph *graph, uint64_t seed)
{
    struct weir_rng rng;
    struct weir_shape s = weir_graph_input_shape(graph);
    size_t n = (size_t)s.c * (size_t)s.h * (size_t)s.w * (size_t)weir_net_batch(net);
    weir_rng_init(&rng, seed, 5);
    for (size_t i = 0; i < n; i++) {
        weir_net_input(net)[i] = (float)weir_rng_normal(&rng);
    }
    for (int32_t i = 0; i < weir_net_batch(net); i++) {
        int32_t label = (int32_t)weir_rng_below(&rng, (uint64_t)weir_graph_n_classes(graph));
        weir_net_labels(net)[i] = i == 1 ? -1 : label;
    }
}

#endif
