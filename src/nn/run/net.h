/**
 * The inside of a net: a plan with memory, threads and a back-end.
 *
 *   params.c             the parameter table, slab positions, initial weights
 *   net_run.c            the programs of a step and of a forward pass: their tasks
 *   net_step.c           steps and forward passes as the caller asks for them
 *   net_update.c         new weights: after backward, or where gradients are made
 *   gradient_buckets.c   reports complete gradient buckets in slab order
 *   lazy_weights.c       fetches pending weights layer by layer
 *   net_gpu.c            what differs where tensors lie on a GPU
 *   net_group.c          gradients summed over several GPUs (net_group.h)
 */
#ifndef WEIR_NN_NET_H
#define WEIR_NN_NET_H

#include "nn/backend/cuda/gpu.h"
#include "nn/backend/slab.h"
#include "nn/plan/plan.h"
#include "workers.h"

#include <stdatomic.h>

/** What the tiles and deferred tasks of one run need to know. */
struct net_run {
    const struct task_schedule *schedule;
    bool is_training, has_loss;
    uint64_t step;
    double inv_n_labelled;
    int32_t n_images;        /**< Images the caller wants; the loss counts no others. */
    weir_net_apply_fn apply; /**< Updates parameters; NULL: gradients are left. */
    void *apply_context;
    bool is_spoilt; /**< The loss is not finite: nothing is updated. Set at the loss's stage. */
};

/** Reports complete gradient buckets in slab order, whichever thread completes them. */
struct gradient_buckets {
    weir_net_bucket_fn fn;
    void *context;
    size_t bucket_bytes;
    _Atomic bool *is_done; /**< By row of the parameter table. */
    /** Completions that no thread has handled. The thread that raises it from 0 handles all. */
    _Atomic int32_t n_calls;
    int32_t i_next;    /**< First parameter not yet seen complete. */
    size_t first_elem; /**< Start of the open bucket. */
};

/** State of weights that are fetched layer by layer; lazy_weights.c. */
struct lazy_weights;

/** What the caller and the kernels both use. */
struct net_io {
    float *input, *output;
    int32_t *labels;
    float *targets;         /**< A detect loss has them; else NULL. */
    struct op_loss *losses; /**< By slice. */
};

/** Programs that are recorded on a GPU. */
enum net_record {
    NET_TRAINING,
    NET_INFERENCE,
    NET_INFERENCE_WITH_LOSS,
    NET_REFRESH,
    NET_TRAINING_PART,         /**< In a group: of a step's runs one that is not the last. */
    NET_TRAINING_SUMMED,       /**< Gradients are summed over the group. */
    NET_TRAINING_ADDED_SUMMED, /**< Those of earlier runs are added before. */
    NET_RECORDS
};

/** A net's part in a group of GPUs that sum gradients. */
struct net_in_group {
    bool is_open;
    bool is_warm; /**< A step has run that was not recorded. */
    bool is_first_run, is_last_run;
    /** On the GPU: gradients of a step's earlier runs, if it may have several. */
    struct slab sums;
    weir_status status; /**< Of queueing the buckets of this step. */
};

/** A net on a GPU: copies of what the caller sees, and which side has the newer one. */
struct net_on_gpu {
    struct gpu *gpu;                   /**< NULL: tensors are in the processor's memory. */
    struct slab weights, gradients;    /**< On the GPU. */
    struct slab host_io, host_weights; /**< Pinned. */
    struct slab lane_scratch;          /**< Training: scratch of deferred tasks. */
    int32_t i_stage;                   /**< Of the tasks that are being queued. */
    bool has_mark[GPU_MARKS];          /**< Since the program began. */
    bool is_input_new;                 /**< The caller has asked for it since the last run. */
    struct slab ahead;     /**< Training: where a step's input comes to while another computes. */
    bool has_ahead;        /**< It has the next step's. */
    weir_net_fill_fn fill; /**< NULL: nobody fills ahead. */
    void *fill_context;
    bool are_weights_behind, are_gradients_behind; /**< The caller's copies. */
    bool are_gradients_scaled;                     /**< Those on the GPU, by fp16's loss scale. */
    struct weir_optimizer *optimizer; /**< Its state lies on the GPU; NULL: none does. */
    struct net_in_group group;
};

struct weir_net {
    struct net_plan *plan;
    const struct weir_backend *backend;
    void *backend_context;
    struct workers *workers;
    int32_t n_threads;
    uint64_t seed;
    uint32_t first_image;
    int64_t n_labelled; /**< Images that gradients are a mean over; 0: the batch's own. */
    double label_smoothing;
    float loss_scale; /**< fp16: of the first step; else 1. */
    bool is_scaled;   /**< It trains in fp16 on a GPU. */

    struct weir_param *params;
    char (*param_names)[LAYER_NAME_MAX_BYTES + 16];
    size_t n_params, n_trainable_params;

    struct slab own_weights, own_gradients, activations, small, threads;
    float *weights, *gradients;       /**< The caller's. */
    float *op_weights, *op_gradients; /**< Where ops find them: the same, without a GPU. */
    size_t n_weight_elems, n_trainable_elems;
    size_t gradient_bytes; /**< Of the gradients that are kept whole. */
    struct net_io io;      /**< Where kernels find it. */
    struct net_io caller;  /**< The same, without a GPU. */
    struct net_on_gpu on_gpu;
    size_t thread_bytes, scratch_bytes, part_bytes;

    struct program training, inference, refresh, update;
    struct program rest, rest_refresh; /**< What backward has not updated, or not refreshed. */
    struct deferred_task *refresh_deferred, *update_deferred, *rest_deferred;
    struct weir_gradients *rest_ranges;
    int32_t *refresh_ops;
    weir_net_update_fn update_fn;
    void *update_context;
    struct net_run run;
    struct gradient_buckets buckets;
    struct lazy_weights *lazy;
    struct weir_profile *profile; /**< NULL: nothing is recorded. */
    bool are_copies_of_backward;  /**< The copies of convolutions' weights are those of backward. */
    bool are_packed_fresh;        /**< Packed weights in the slab are those of the weights. */
    bool are_statistics_stale;    /**< Running statistics changed since batch norms' refresh. */
};

/** params.c: the parameter table and slab positions. */
weir_status net_make_params(struct weir_net *net) WEIR_MUST_CHECK;
/** Points the ops' parameters into the slabs. */
void net_bind_params(struct weir_net *net);

/** net_run.c: makes the programs of a net that has a plan. */
weir_status net_make_programs(struct weir_net *net) WEIR_MUST_CHECK;
/** Memory that a thread needs for parts of gradients. */
size_t net_part_bytes(const struct net_plan *plan);

/** net_update.c: makes the programs that call the caller's update functions. */
weir_status net_make_updates(struct weir_net *net) WEIR_MUST_CHECK;
/** Updates an op whose gradients were made whole. */
void net_apply_gradients(const struct weir_net *net, const struct op *op);
/** Part i_part of an op with update_rows: makes gradients and applies them row by row. */
weir_status net_update_rows(const struct weir_net *net, const struct plan_op *o, int32_t i_thread,
                            int32_t i_part) WEIR_MUST_CHECK;
/** Memory that a thread needs for it. */
size_t net_row_bytes(const struct net_plan *plan, const struct plan_op *o);

/* net_gpu.c; only for nets on a GPU, but for the first two. */

/** Zeroed memory where tensors lie; 0 bytes are fine. */
weir_status net_map(struct weir_net *net, struct slab *slab, size_t size_bytes,
                    struct weir_error *err) WEIR_MUST_CHECK;
void net_unmap(struct weir_net *net, struct slab *slab);
/** The caller's copies: pinned memory for `caller`. The slab counts io_bytes. */
weir_status net_gpu_map_io(struct weir_net *net, size_t io_bytes,
                           struct weir_error *err) WEIR_MUST_CHECK;
/** Weights, gradients: on the GPU, and the caller's copy of the weights. */
weir_status net_gpu_map_params(struct weir_net *net, const struct weir_net_config *config,
                               struct weir_error *err) WEIR_MUST_CHECK;
void net_gpu_unmap(struct weir_net *net);
/** Copies weights that the caller has written to the GPU, and makes the ops' copies again. */
weir_status net_gpu_weights_changed(struct weir_net *net) WEIR_MUST_CHECK;
/** The weights on the GPU are new: the caller's are behind. Makes the ops' copies again. */
weir_status net_gpu_weights_updated(struct weir_net *net) WEIR_MUST_CHECK;
/** A step or a forward pass of net->run: queues it, and waits if `waits`. */
weir_status net_gpu_step(struct weir_net *net, weir_net_bucket_fn on_bucket, void *bucket_context,
                         bool waits) WEIR_MUST_CHECK;
weir_status net_gpu_forward(struct weir_net *net, bool waits) WEIR_MUST_CHECK;
/** Before a stage of training is queued: it waits for the deferred tasks whose deadline it is. */
weir_status net_gpu_begin_stage(struct weir_net *net, int32_t i_stage) WEIR_MUST_CHECK;
/** Before and after a weight gradient is queued: it runs beside the stages up to its deadline. */
weir_status net_gpu_enter_lane(struct weir_net *net) WEIR_MUST_CHECK;
weir_status net_gpu_leave_lane(struct weir_net *net) WEIR_MUST_CHECK;
/** Queues a program as it was recorded; the first time, and after records were forgotten, records it. */
weir_status net_gpu_run_recorded(struct weir_net *net, enum net_record slot,
                                 const struct program *program) WEIR_MUST_CHECK;
/** Queues a program as it is; lane 0 has waited for all of it then. */
weir_status net_gpu_run_program(struct weir_net *net,
                                const struct program *program) WEIR_MUST_CHECK;

/** net_group.c: queues a step's forward and backward, and in its last run the sums of gradients. */
weir_status net_group_run(struct weir_net *net) WEIR_MUST_CHECK;
/** A step has failed with `status`: gives the group up. @return Why the group failed, if it did. */
weir_status net_group_fail(struct weir_net *net, weir_status status) WEIR_MUST_CHECK;

/** Fetches what the caller's copies lack. A failure shows in the next wait. */
void net_gpu_fetch_weights(struct weir_net *net);
void net_gpu_fetch_gradients(struct weir_net *net);

/** fp16: before an update that the processor makes of these gradients, all of the slab's. Are all finite?
 *  If not, it is to be left out. The loss scale moves on. Always true for other nets. */
bool net_note_gradients(struct weir_net *net, const float *gradients) WEIR_MUST_CHECK;

/* net_run.c and net_step.c, for each other, net_update.c and net_gpu.c. */

/** What the first slices have measured, added up in slice order: the sum does not depend on which thread
 *  was first. */
struct weir_step_result net_sum_losses(const struct weir_net *net, int32_t n_slices);

/** Batch norms' copies of the running statistics, if steps have moved those. */
void net_refresh_statistics(struct weir_net *net);

/** The tile that a weight gradient's kernel reads: images first .. first + n, in backward. */
struct op_tile net_gradient_tile(const struct weir_net *net, const struct plan_op *o,
                                 int32_t i_thread, int32_t first, int32_t n);
/** A thread's memory of part_bytes. */
void *net_part_memory(const struct weir_net *net, int32_t i_thread);
/** sum += part, n elements. */
void net_add_to(float *sum, const float *part, size_t n);
/** Prepares the calling thread to run kernels. Every public function calls it first. */
void net_enter(const struct weir_net *net);

/** gradient_buckets.c: begins a step. fn may be NULL. */
void gradient_buckets_start(struct weir_net *net, weir_net_bucket_fn fn, void *context);
/** All gradients of an op are complete. Called by any thread. */
void gradient_buckets_op_done(struct weir_net *net, const struct op *op);

/** lazy_weights.c: is some op's state pending? */
bool lazy_weights_has_pending(const struct weir_net *net);
/** n_ops states, none pending. The caller owns *out. */
weir_status lazy_weights_create(int32_t n_ops, struct lazy_weights **out) WEIR_MUST_CHECK;
void lazy_weights_destroy(struct lazy_weights *lazy);
/**
 * Fetches the op's weights if they are pending, and waits if another thread is fetching them.
 * Called before the weights are read, by any thread of the net.
 * @return What the caller's fetch function returned, in the one thread that called it.
 */
weir_status lazy_weights_require(struct weir_net *net, int32_t i_op,
                                 int32_t i_thread) WEIR_MUST_CHECK;

#endif
