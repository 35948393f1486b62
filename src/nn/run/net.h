/**
 * The inside of a net: a plan with memory, threads and a back-end. For the domain's own files.
 */
#ifndef WEIR_NN_NET_H
#define WEIR_NN_NET_H

#include "nn/backend/slab.h"
#include "nn/plan/plan.h"
#include "workers.h"

#include <stdatomic.h>

/** What the tiles and fillers of one run need to know. */
struct net_run {
    const struct task_schedule *schedule;
    bool is_training, has_loss;
    uint64_t step;
    double inv_n_labelled;
    int32_t n_images;        /**< Those the caller wants: the loss counts no others. */
    weir_net_apply_fn apply; /**< Parameters are updated by it; NULL: gradients are left. */
    void *apply_context;
    bool is_spoilt; /**< The loss is not a number: nothing is updated. From the loss's stage on. */
};

/** Announces complete gradient ranges in slab order, whichever thread completes them. */
struct gradient_buckets {
    weir_net_bucket_fn fn;
    void *context;
    size_t bucket_bytes;
    _Atomic bool *is_done;   /**< By row of the parameter table. */
    _Atomic int32_t n_calls; /**< Unserved completions; who raises it from 0 serves them all. */
    int32_t i_next;          /**< First parameter not yet seen complete. */
    size_t first_elem;       /**< Start of the open range. */
};

/** Weights that are on their way; lazy_weights.c. */
struct lazy_weights;

struct weir_net {
    struct net_plan *plan;
    const struct weir_backend *backend;
    void *backend_context;
    struct workers *workers;
    int32_t n_threads;
    uint64_t seed;
    uint32_t first_image;
    int64_t n_labelled; /**< Over which gradients are a mean; 0: the batch's own. */
    double label_smoothing;

    struct weir_param *params;
    char (*param_names)[LAYER_NAME_MAX_BYTES + 16];
    size_t n_params, n_trainable_params;

    struct slab own_weights, own_gradients, activations, small, threads;
    float *weights, *gradients;
    size_t n_weight_elems, n_trainable_elems;
    size_t gradient_bytes; /**< Of those gradients that are kept whole. */
    float *input, *output;
    int32_t *labels;
    struct op_loss *losses; /**< By slice. */
    size_t thread_bytes, scratch_bytes, part_bytes;

    struct program training, inference, refresh, update;
    struct program rest, rest_refresh; /**< Of what is not updated, or refreshed, in backward. */
    struct deferred_task *refresh_deferred, *update_deferred, *rest_deferred;
    struct weir_gradients *rest_ranges;
    int32_t *refresh_ops;
    weir_net_update_fn update_fn;
    void *update_context;
    struct net_run run;
    struct gradient_buckets buckets;
    struct lazy_weights *lazy;
    struct weir_profile *profile; /**< NULL: nothing is recorded. */
    bool are_copies_of_backward;  /**< Convolutions were refreshed for backward since refresh. */
    bool are_packed_fresh;        /**< The last run was inference, of the weights as they are. */
    bool are_statistics_stale;    /**< Running statistics moved since batch norms were refreshed. */
};

/** params.c: the table, slab places and the ops' pointers into it. */
weir_status net_make_params(struct weir_net *net) WEIR_MUST_CHECK;
void net_bind_params(struct weir_net *net);
/** FNV-1a: the stream of random numbers that belongs to a parameter or layer of this name. */
uint64_t net_hash_name(const char *name);

/** net_run.c: the programs of a net whose plan stands. */
weir_status net_make_programs(struct weir_net *net) WEIR_MUST_CHECK;
/** Memory a thread keeps parts of gradients in. */
size_t net_part_bytes(const struct net_plan *plan);

/** net_update.c: what calls the callers' functions that update. */
weir_status net_make_updates(struct weir_net *net) WEIR_MUST_CHECK;
/** All of the gradients of an op, made, that are not made by rows: update it. */
void net_apply_gradients(const struct weir_net *net, const struct op *op);
/** Filler i_part of an op with update_rows: gradients made and used row by row. */
weir_status net_update_rows(const struct weir_net *net, const struct plan_op *o, int32_t i_thread,
                            int32_t i_part) WEIR_MUST_CHECK;
/** Memory a thread needs for it. */
size_t net_row_bytes(const struct net_plan *plan, const struct plan_op *o);

/* net_run.c, for net_update.c. */

/** What a weight gradient's kernel reads of images first .. first + n, at that time of the step. */
struct op_tile net_gradient_tile(const struct weir_net *net, const struct plan_op *o,
                                 int32_t i_thread, int32_t first, int32_t n);
/** The part_bytes of a thread. */
void *net_part_memory(const struct weir_net *net, int32_t i_thread);
void net_add_to(float *sum, const float *part, size_t n);
/** The first of the net's functions to run in this thread? It then becomes one of its threads. */
void net_enter(const struct weir_net *net);

/** gradient_buckets.c */
void gradient_buckets_start(struct weir_net *net, weir_net_bucket_fn fn, void *context);
/** All gradients of an op are complete. Any thread. */
void gradient_buckets_op_done(struct weir_net *net, const struct op *op);

/** lazy_weights.c */
weir_status lazy_weights_create(int32_t n_ops, struct lazy_weights **out) WEIR_MUST_CHECK;
void lazy_weights_destroy(struct lazy_weights *lazy);
/** Before an op's weights are read: have them come if they are on their way. Any thread of the net.
 *  @return What the caller's function did, in the one thread that called it. */
weir_status lazy_weights_require(struct weir_net *net, int32_t i_op,
                                 int32_t i_thread) WEIR_MUST_CHECK;

#endif
