/**
 * Optimiser: turns gradients into new weights, over the flat slabs of a net.
 *
 *     struct weir_optimizer_config config;
 *     weir_optimizer_defaults("sgd", &config, err);
 *     config.weight_decay = 5e-4;
 *     weir_optimizer_create(&config, params, n_params, &optimizer, err);
 *     for each step: weir_optimizer_update(optimizer, weights, gradients, 0, n, lr, step);
 *
 * The rules, element by element, in f32. w is the weight, g its gradient, d its weight decay
 * (config.weight_decay where is_decayed, else 0), t = step + 1, mu is momentum, b1 and b2 are beta1
 * and beta2.
 *
 *     sgd      g' = g + d*w;  v = mu*v + g';  w -= lr * (is_nesterov ? g' + mu*v : v)
 *     rmsprop  g' = g + d*w;  s = alpha*s + (1-alpha)*g'*g';  v = mu*v + g' / (sqrt(s) + epsilon)
 *              w -= lr * v
 *     adam     g' = g + d*w;  m = b1*m + (1-b1)*g';  s = b2*s + (1-b2)*g'*g'
 *              w -= lr/(1-b1^t) * m / (sqrt(s)/sqrt(1-b2^t) + epsilon)
 *     adamw    w *= 1 - lr*d, then adam's step of g without decay
 *     lars     v = mu*v + lr * r * (g + d*w);  w -= v
 *              r = trust * |w| / (|g| + d*|w|) for a tensor with decay, 1 for others
 *     lamb     m, s of g as in adam;  u = m/(1-b1^t) / (sqrt(s)/sqrt(1-b2^t) + epsilon) + d*w
 *              w -= lr * r * u;  r = |w| / |u| for a tensor with decay, 1 for others
 *
 * Sources: sgd, rmsprop, adam and adamw are PyTorch's (torch.optim, "Algorithm" of each page),
 * after Sutskever et al. (ICML 2013), Hinton's lecture 6e, Kingma and Ba (ICLR 2015), Loshchilov
 * and Hutter (ICLR 2019). lars is You, Gitman and Ginsburg (arXiv 1708.03888, algorithm 1). lamb is
 * You et al. (ICLR 2020, algorithm 2, phi(x) = x). As in their authors' programs, lars and lamb
 * leave biases and norms out of decay and of r, and take r = 1 where a norm is 0.
 *
 * With clip_norm > 0, g is the gradient times min(1, clip_norm / (|all gradients| + 1e-6)):
 * PyTorch's clip_grad_norm_ over the trainable parameters.
 *
 * Norms need all of a tensor, or of all tensors (weir_optimizer_needs_all). A caller that has all
 * gradients calls weir_optimizer_update. Where several owners have a part each, every owner
 * measures its part, they add up the sums, and every owner applies the update to its part:
 *
 *     for each pass i: sums = 0; weir_optimizer_measure(i, own part …);
 *                      every sum += the other owners'; weir_optimizer_conclude(i);
 *     weir_optimizer_apply(own part …);
 *
 * A norm's squares are summed in double: within fixed tiles of the element index, then tile by tile
 * in order. If parts end where tiles end, each tile has one owner, and the others add 0 to its sum.
 * So the weights have the same bits for any number of owners.
 *
 * create allocates all state. An update touches only the range it is given, and its result depends
 * only on the values of that range, lr and step. So ranges may be cut anywhere (a bucket, a shard),
 * in any order, with the same bits. With norms this does not hold: the range of an update must hold
 * all trainable parameters, and a measured range must end with tiles.
 *
 * Threads: several threads may update (without norms) or apply ranges that do not overlap at the
 * same time. One thread at a time calls everything else. NaN and infinity pass through for the
 * caller to see.
 */
#ifndef WEIR_NN_OPTIMIZER_H
#define WEIR_NN_OPTIMIZER_H

#include "base/status.h"
#include "nn/nn.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct weir_optimizer_config {
    const char *name;    /**< Name of a row of weir_optimizer_types. */
    double weight_decay; /**< >= 0. Default 0. */
    double clip_norm;    /**< >= 0. Default 0: gradients are not clipped. */
    double momentum;     /**< sgd, rmsprop, lars: [0, 1). Default 0.9. With 0 it has no state. */
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
    const char *keys;     /**< Settings, separated by blanks: "beta1 beta2 epsilon". */
    double learning_rate; /**< Initial learning rate if the user gives none. */
    double epsilon;       /**< Default. */
};

/** All optimisers, for help texts. Static. */
const struct weir_optimizer_type *weir_optimizer_types(size_t *out_n);

/** Writes the defaults above. @return INVALID, naming the known optimisers, if there is none of
 *  this name. */
weir_status weir_optimizer_defaults(const char *name, struct weir_optimizer_config *out,
                                    struct weir_error *err) WEIR_MUST_CHECK;

/**
 * Reads "NAME" or "NAME:key=value,key=value" over the defaults. The keys are those of the type:
 * nesterov (0 or 1), alpha, beta1, beta2, epsilon, trust. The caller sets weight_decay, momentum
 * and clip_norm. weir_optimizer_create and weir_optimizer_check check the ranges.
 *
 * @return INVALID, naming the wrong part and what was expected.
 */
weir_status weir_optimizer_parse(const char *text, struct weir_optimizer_config *out,
                                 struct weir_error *err) WEIR_MUST_CHECK;

/** Checks the ranges. @return INVALID, naming a setting that is out of its range. */
weir_status weir_optimizer_check(const struct weir_optimizer_config *config,
                                 struct weir_error *err) WEIR_MUST_CHECK;

/** Does an update need norms, and so all gradients at once? True for lars, lamb, and clip_norm >
 *  0. */
bool weir_optimizer_needs_all(const struct weir_optimizer_config *config);

struct weir_optimizer;

/**
 * Makes an optimiser for the trainable ones of `params` (weir_net_params). params is borrowed until
 * the call returns. State starts at zero and has as many elements as the trainable part of the
 * slab. The caller owns *out.
 *
 * @return INVALID (a setting out of its range, or overlapping parameters), NOMEM.
 */
weir_status weir_optimizer_create(const struct weir_optimizer_config *config,
                                  const struct weir_param *params, size_t n_params,
                                  struct weir_optimizer **out,
                                  struct weir_error *err) WEIR_MUST_CHECK;
void weir_optimizer_destroy(struct weir_optimizer *optimizer);

/**
 * Updates elements [first, first + n) of the slabs for step `step`; the first step is 0.
 *
 * @param weights  Element 0 of the weight slab. Elements that belong to no trainable parameter stay
 *         as they are.
 * @param gradients  Element 0 of the gradient slab; read only.
 * @param n  With weir_optimizer_needs_all, the range holds all trainable parameters.
 *
 * It allocates nothing.
 */
void weir_optimizer_update(struct weir_optimizer *optimizer, float *weights, const float *gradients,
                           size_t first, size_t n, double lr, uint64_t step);

/** weir_optimizer_update of gradients that were not made whole (weir_net_apply_fn). Not for
 *  optimisers that need norms. */
void weir_optimizer_apply_gradients(struct weir_optimizer *optimizer, float *weights,
                                    const struct weir_gradients *gradients, double lr,
                                    uint64_t step);

/** Elements of a tile. A measured range begins and ends at a multiple of it, or at the end of the
 *  slab. */
#define WEIR_OPTIMIZER_TILE ((size_t)1024)

/** Passes of measuring before an update is applied: 0 without norms; 2 for lamb with clipping,
 *  whose moments need the first norm; else 1. */
size_t weir_optimizer_n_passes(const struct weir_optimizer *optimizer);

/** Measures elements [first, first + n), with the arguments of weir_optimizer_update. Its sums of
 *  squares replace the old ones of that range; other sums stay. The last pass of lamb makes its new
 *  moments: it may not be repeated, and its ranges may not overlap. */
void weir_optimizer_measure(struct weir_optimizer *optimizer, size_t i_pass, const float *weights,
                            const float *gradients, size_t first, size_t n, double lr,
                            uint64_t step);

/** The sums, *out_n of them, the same for every pass. Where several owners measure, zero them
 *  before and add the other owners' after. The optimiser owns them. */
double *weir_optimizer_sums(const struct weir_optimizer *optimizer, size_t *out_n);

/** Computes the norms after all of a pass was measured and added up. */
void weir_optimizer_conclude(struct weir_optimizer *optimizer, size_t i_pass);

/** weir_optimizer_update after all passes were concluded: any range, any order. */
void weir_optimizer_apply(struct weir_optimizer *optimizer, float *weights, const float *gradients,
                          size_t first, size_t n, double lr, uint64_t step);

/**
 * Updates all weights of a net with the net's threads, then calls weir_net_weights_changed. The
 * bits are those of these two calls.
 *
 * On a GPU the net's own gradients are used where they lie, and the state moves there with the first
 * call (sgd, rmsprop, adam, adamw without clipping). It comes back when it is asked for, or when the
 * net or the optimiser is destroyed. Other rules fetch gradients and weights, and compute here.
 *
 * @param gradients  For the whole slab: what was made of the net's own; NULL: those.
 */
void weir_optimizer_update_net(struct weir_optimizer *optimizer, struct weir_net *net,
                               const float *gradients, double lr, uint64_t step);

/** A state that a checkpoint must hold, besides the weights and the number of the next step. */
struct weir_optimizer_state {
    const char *name; /**< "optimizer.sgd.momentum". Static. */
    float *data;      /**< In slab order; the optimiser owns it. The caller may write it between
                           updates. */
    size_t n_elems;
};

/** The states, in a fixed order. *out_n may be 0 (sgd without momentum). The optimiser owns them.
 *  Those on a GPU are fetched. */
const struct weir_optimizer_state *weir_optimizer_states(const struct weir_optimizer *optimizer,
                                                         size_t *out_n);

/** Copies a saved state back. @return NOT_FOUND if this optimiser has no such state, INVALID if
 *  n_elems differs; nothing has changed then. */
weir_status weir_optimizer_restore(struct weir_optimizer *optimizer, const char *name,
                                   const float *data, size_t n_elems,
                                   struct weir_error *err) WEIR_MUST_CHECK;

#endif
