/**
 * Optimisers: from gradients to new weights, over the flat slabs of a net.
 *
 *     struct weir_optimizer_config config;
 *     weir_optimizer_defaults("sgd", &config);
 *     config.weight_decay = 5e-4;
 *     weir_optimizer_create(&config, params, n_params, &optimizer, err);
 *     for each step: weir_optimizer_update(optimizer, weights, gradients, 0, n, lr, step);
 *
 * The rules are PyTorch's, element by element, in f32 (w weight, g gradient, d weight decay of the
 * parameter: config.weight_decay where is_decayed, else 0):
 *
 *     sgd    g' = g + d*w;  v = momentum*v + g';  w -= lr * (is_nesterov ? g' + momentum*v : v)
 *     adam   g' = g + d*w;  m = beta1*m + (1-beta1)*g';  s = beta2*s + (1-beta2)*g'*g'
 *            w -= lr/(1-beta1^t) * m / (sqrt(s)/sqrt(1-beta2^t) + epsilon),  t = step + 1
 *
 * All state is allocated once, in create. An update touches only the range it is given and its
 * result depends on nothing but the values of that range, lr and step: ranges may be cut anywhere
 * (a bucket, a shard), in any order, and give the same bits. Updates of ranges that do not overlap
 * may run in several threads at the same time; everything else belongs to one thread at a time. NaN
 * and infinity pass through: they are for the caller to see.
 */
#ifndef WEIR_NN_OPTIMIZER_H
#define WEIR_NN_OPTIMIZER_H

#include "base/status.h"
#include "nn/nn.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct weir_optimizer_config {
    const char *name;    /**< "sgd" or "adam". */
    double weight_decay; /**< >= 0, L2 into the gradient. Default 0. */
    double momentum;     /**< sgd: [0, 1). Default 0.9. 0 keeps no state. */
    bool is_nesterov;    /**< sgd: needs momentum > 0. Default false. */
    double beta1, beta2; /**< adam: [0, 1). Default 0.9, 0.999. */
    double epsilon;      /**< adam: > 0. Default 1e-8. */
};

/** One row of the table of optimisers. */
struct weir_optimizer_type {
    const char *name;
    const char *doc; /**< One sentence. */
};

/** All optimisers, for help texts. Static. */
const struct weir_optimizer_type *weir_optimizer_types(size_t *out_n);

/** The defaults above. @return INVALID naming the known optimisers if there is none of this name.
 */
weir_status weir_optimizer_defaults(const char *name, struct weir_optimizer_config *out,
                                    struct weir_error *err) WEIR_MUST_CHECK;

struct weir_optimizer;

/**
 * An optimiser for the trainable ones of `params` (weir_net_params; nothing of them is kept).
 * State starts at zero and has as many elements as the trainable part of the slab.
 * @return INVALID (a setting out of its range, or overlapping parameters), NOMEM.
 */
weir_status weir_optimizer_create(const struct weir_optimizer_config *config,
                                  const struct weir_param *params, size_t n_params,
                                  struct weir_optimizer **out,
                                  struct weir_error *err) WEIR_MUST_CHECK;
void weir_optimizer_destroy(struct weir_optimizer *optimizer);

/**
 * Step `step` (the first is 0) of elements [first, first + n) of the slabs; `weights` and
 * `gradients` point to element 0. Parts of the range that belong to no trainable parameter are left
 * alone. Gradients are read only. Allocates nothing.
 */
void weir_optimizer_update(struct weir_optimizer *optimizer, float *weights, const float *gradients,
                           size_t first, size_t n, double lr, uint64_t step);

/** Memory that a checkpoint must hold besides the weights and the number of the next step. */
struct weir_optimizer_state {
    const char *name; /**< "optimizer.sgd.momentum". Static. */
    float *data;      /**< In slab order; owned by the optimiser. May be written between updates. */
    size_t n_elems;
};

/** The states, in a fixed order; *out_n may be 0 (sgd without momentum). Owned by the optimiser. */
const struct weir_optimizer_state *weir_optimizer_states(const struct weir_optimizer *optimizer,
                                                         size_t *out_n);

/**
 * Put back a state that was saved. @return NOT_FOUND if this optimiser has no such state, INVALID
 * if n_elems differs; nothing is changed then.
 */
weir_status weir_optimizer_restore(struct weir_optimizer *optimizer, const char *name,
                                   const float *data, size_t n_elems,
                                   struct weir_error *err) WEIR_MUST_CHECK;

#endif
