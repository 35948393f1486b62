/**
 * Optimisers: from gradients to new weights, over the flat slabs of a net.
 *
 *     struct weir_optimizer_config config;
 *     weir_optimizer_defaults("sgd", &config);
 *     config.weight_decay = 5e-4;
 *     weir_optimizer_create(&config, params, n_params, &optimizer, err);
 *     for each step: weir_optimizer_update(optimizer, weights, gradients, 0, n, lr, step);
 *
 * The rules, element by element, in f32 (w weight, g gradient, d weight decay of the parameter:
 * config.weight_decay where is_decayed, else 0; t = step + 1; mu momentum, b1, b2 beta1, beta2):
 *
 *     sgd      g' = g + d*w;  v = mu*v + g';  w -= lr * (is_nesterov ? g' + mu*v : v)
 *     rmsprop  g' = g + d*w;  s = alpha*s + (1-alpha)*g'*g';  v = mu*v + g' / (sqrt(s) + epsilon)
 *              w -= lr * v
 *     adam     g' = g + d*w;  m = b1*m + (1-b1)*g';  s = b2*s + (1-b2)*g'*g'
 *              w -= lr/(1-b1^t) * m / (sqrt(s)/sqrt(1-b2^t) + epsilon)
 *     adamw    w *= 1 - lr*d, then adam's step of the old gradient without decay
 *     lars     v = mu*v + lr * r * (g + d*w);  w -= v
 *              r = trust * |w| / (|g| + d*|w|) of a tensor with decay, 1 of others
 *     lamb     m, s of g as adam's;  u = m/(1-b1^t) / (sqrt(s)/sqrt(1-b2^t) + epsilon) + d*w
 *              w -= lr * r * u;  r = |w| / |u| of a tensor with decay, 1 of others
 *
 * sgd, rmsprop, adam and adamw are PyTorch's (torch.optim, "Algorithm" of each page), which cite
 * Sutskever et al. (ICML 2013), Hinton's lecture 6e, Kingma and Ba (ICLR 2015), Loshchilov and
 * Hutter (ICLR 2019). lars is You, Gitman and Ginsburg (arXiv 1708.03888, algorithm 1), lamb You et
 * al. (ICLR 2020, algorithm 2, phi(x) = x). Both leave biases and norms out of decay and of r, and
 * take r = 1 where a norm is 0, as their authors' programs do.
 *
 * With clip_norm > 0, g above is the gradient times min(1, clip_norm / (|all gradients| + 1e-6)):
 * PyTorch's clip_grad_norm_, over the trainable parameters.
 *
 * Norms need all of a tensor, or of all tensors (weir_optimizer_needs_all). Who has all calls
 * weir_optimizer_update. Where several owners have a part each, one of them measures its part,
 * they add up what they measured, and then all apply:
 *
 *     for each pass i: sums = 0; weir_optimizer_measure(i, own part …);
 *                      every sum += the other owners'; weir_optimizer_conclude(i);
 *     weir_optimizer_apply(own part …);
 *
 * A norm's squares are summed in double: within fixed tiles of the element index, and tile by tile
 * in order. Parts that end where tiles do leave every tile to one owner, to whose sum the others
 * add 0: so the weights have the same bits however many owners there are.
 *
 * All state is allocated once, in create. An update touches only the range it is given and its
 * result depends on nothing but the values of that range, lr and step: ranges may be cut anywhere
 * (a bucket, a shard), in any order, and give the same bits. Not so where norms are needed: there
 * an update's range must hold all trainable parameters, and a measured one must end with tiles.
 * Updates (of optimisers without norms) and applications of ranges that do not overlap may run in
 * several threads at the same time; everything else belongs to one thread at a time. NaN and
 * infinity pass through: they are for the caller to see.
 */
#ifndef WEIR_NN_OPTIMIZER_H
#define WEIR_NN_OPTIMIZER_H

#include "base/status.h"
#include "nn/nn.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct weir_optimizer_config {
    const char *name;    /**< A row of weir_optimizer_types. */
    double weight_decay; /**< >= 0. Default 0. */
    double clip_norm;    /**< >= 0; 0, the default: gradients are taken as they are. */
    double momentum;     /**< sgd, rmsprop, lars: [0, 1). Default 0.9. 0 keeps no state of it. */
    bool is_nesterov;    /**< sgd: needs momentum > 0. Default false. */
    double alpha;        /**< rmsprop: [0, 1). Default 0.99. */
    double beta1, beta2; /**< adam, adamw, lamb: [0, 1). Default 0.9, 0.999. */
    double epsilon;      /**< rmsprop, adam, adamw, lamb: > 0. Default 1e-8; lamb 1e-6. */
    double trust;        /**< lars: > 0. Default 0.001. */
};

/** One row of the table of optimisers. */
struct weir_optimizer_type {
    const char *name;
    const char *doc;      /**< One sentence. */
    const char *keys;     /**< Settings, each followed by a space: "beta1 beta2 epsilon ". */
    double learning_rate; /**< To begin with where none is given. */
    double epsilon;       /**< Default. */
};

/** All optimisers, for help texts. Static. */
const struct weir_optimizer_type *weir_optimizer_types(size_t *out_n);

/** The defaults above. @return INVALID naming the known optimisers if there is none of this name.
 */
weir_status weir_optimizer_defaults(const char *name, struct weir_optimizer_config *out,
                                    struct weir_error *err) WEIR_MUST_CHECK;

/**
 * Defaults and settings: "NAME" or "NAME:key=value,key=value", with the keys of the type:
 * nesterov (0 or 1), alpha, beta1, beta2, epsilon, trust. weight_decay, momentum and clip_norm are
 * the caller's to set. Ranges are checked by weir_optimizer_create and weir_optimizer_check.
 * @return INVALID naming the part that is wrong and what was expected.
 */
weir_status weir_optimizer_parse(const char *text, struct weir_optimizer_config *out,
                                 struct weir_error *err) WEIR_MUST_CHECK;

/** @return INVALID naming a setting that is out of its range. */
weir_status weir_optimizer_check(const struct weir_optimizer_config *config,
                                 struct weir_error *err) WEIR_MUST_CHECK;

/** Does an update need norms, and so all gradients at once? (lars, lamb, clip_norm > 0) */
bool weir_optimizer_needs_all(const struct weir_optimizer_config *config);

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
 * alone. The range holds all of them if weir_optimizer_needs_all. Gradients are read only.
 * Allocates nothing.
 */
void weir_optimizer_update(struct weir_optimizer *optimizer, float *weights, const float *gradients,
                           size_t first, size_t n, double lr, uint64_t step);

/** weir_optimizer_update of what was not made whole. Not of optimisers that need norms. */
void weir_optimizer_apply_gradients(struct weir_optimizer *optimizer, float *weights,
                                    const struct weir_gradients *gradients, double lr,
                                    uint64_t step);

/** Elements: what is measured begins and ends at multiples of it, or at the end of the slab. */
#define WEIR_OPTIMIZER_TILE ((size_t)1024)

/** How often an update is measured before it is applied: 0 if it needs no norms; 2 of a clipped
 *  lamb, the moments of which need the first norm; else 1. */
size_t weir_optimizer_n_passes(const struct weir_optimizer *optimizer);

/**
 * A pass over elements [first, first + n), as weir_optimizer_update has them: its sums of squares
 * replace what they were, other sums stay. The last pass of lamb makes its new moments: it may not
 * be repeated, and its ranges may not overlap.
 */
void weir_optimizer_measure(struct weir_optimizer *optimizer, size_t i_pass, const float *weights,
                            const float *gradients, size_t first, size_t n, double lr,
                            uint64_t step);

/** The sums of a pass, *out_n of them whichever it is: to be zeroed before one of several owners
 *  measures, and added to the others' after it. Owned by the optimiser. */
double *weir_optimizer_sums(const struct weir_optimizer *optimizer, size_t *out_n);

/** All of a pass was measured: take the norms. */
void weir_optimizer_conclude(struct weir_optimizer *optimizer, size_t i_pass);

/** weir_optimizer_update after all passes were concluded: any range, any order. */
void weir_optimizer_apply(struct weir_optimizer *optimizer, float *weights, const float *gradients,
                          size_t first, size_t n, double lr, uint64_t step);

/**
 * weir_optimizer_update of all of a net's weights, followed by weir_net_weights_changed: by the
 * net's threads at the same time, but for norms. The same bits as those two calls.
 * @param gradients  Of the whole slab; the net's own, or what was made of them.
 */
void weir_optimizer_update_net(struct weir_optimizer *optimizer, struct weir_net *net,
                               const float *gradients, double lr, uint64_t step);

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
