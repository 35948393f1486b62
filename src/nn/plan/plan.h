/**
 * Plan: what a graph becomes before the first step. It is pure: it has no threads, kernels or
 * tensor memory.
 *
 * Making a plan has three steps:
 *
 *   1. Layers become ops (plan_ops.c).
 *        - If the back-end can fuse, batch norm takes over the add and the ReLU behind it.
 *        - In a net that is not for training, convolutions and linears take over batch norm too.
 *        - In bf16, a value that an op wants in the other type goes through a cast, once for all
 *          its readers.
 *        - Where channels come last, an image that a linear reads goes through a flatten.
 *   2. Ops become a schedule (plan_schedule.c): stages of tasks.
 *        - Within a stage, an image slice runs all its tasks in a row, while its data is in cache.
 *        - A stage ends where the whole batch must be known: at the statistics of batch norm.
 *        - Weight gradients are deferred tasks. The stage that completes their input opens them.
 *   3. Every tensor gets a location by its lifetime (plan_memory.c): in the slab that all slices
 *      share, or, if it lives within one stage, in a small arena of the thread that runs the tile.
 *
 * Four options change this:
 *
 *   Recomputed values  Training does not keep a value that costs only a pass over memory to make
 *                      (plan_recompute.c). The value has one location and lifetime in forward, and
 *                      another in backward. There a task makes it again, by the same kernel from
 *                      the same bits, just before the first task that reads it.
 *   Row tiles          A slice is one image, and a tile is one row tile of it (plan_row_tiles.c).
 *                      An op that reads rows of other row tiles, or that has none, begins a new
 *                      stage. All tensors are in the slab.
 *   Batched slices     A linear or convolution with many weights takes PLAN_BATCHED_SLICES slices
 *                      as one tile, in a stage between those that make its input and use its
 *                      output.
 *   Update in backward The deferred task that makes the gradients of a convolution or linear also
 *                      updates its parameters. It opens when no task reads the parameters any more.
 *                      A linear with many weights has several such tasks, and no gradient in
 *                      memory. Where one slice is the whole batch, its backward ends a stage, so
 *                      that other threads update while one thread goes on.
 *
 * A training plan has two schedules over the same ops and memory: training and inference.
 */
#ifndef WEIR_NN_PLAN_H
#define WEIR_NN_PLAN_H

#include "nn/backend/op.h"
#include "nn/run/workers.h"

/** Stages from the one that opens a deferred task to its deadline, at least. */
#define PLAN_DEFERRED_SLACK 4

/** The same where they run in a lane of their own, which is not far behind: less memory is kept. */
#define PLAN_LANE_SLACK 2

/** Stages before an op's backward in which its refresh for backward may run. */
#define PLAN_REFRESH_LEAD 4

/** Stages before the one that reads packed weights in which the pack task may run. It is few,
 *  because packed weights occupy memory meanwhile. */
#define PLAN_PACK_LEAD 1

/** Weights whose gradient one deferred task makes and uses: some 25 us of work. */
#define PLAN_UPDATE_ELEMS ((size_t)1 << 17)

/** Fewer parts than this are one: waking another thread costs as much. */
#define PLAN_UPDATE_MIN_PARTS 3

/** Slices of one tile of an op that batches slices. It is small, so that there are tiles for
 *  several threads, and so that workers with fewer slices each make the same tiles. */
#define PLAN_BATCHED_SLICES 4

enum location_kind { LOCATION_NONE, LOCATION_SLAB, LOCATION_TILE, LOCATION_INPUT, LOCATION_OUTPUT };

/** Where a tensor lies. */
struct location {
    enum location_kind kind;
    size_t offset; /**< Bytes: of the whole batch (SLAB), or of one tile (TILE). */
};

/** What a task does with its op. */
enum task_phase {
    TASK_FORWARD,
    TASK_FORWARD_SUMS,
    TASK_LOSS,
    TASK_BACKWARD_SUMS,
    TASK_BACKWARD,
    TASK_RECOMPUTE, /**< TASK_FORWARD once more, for backward. */
    /* Deferred tasks. */
    TASK_WEIGHT_GRADIENT,
    TASK_REFRESH_BACKWARD,
    TASK_PACK_FORWARD,
    TASK_PACK_BACKWARD
};

struct plan_task {
    int32_t i_op;
    enum task_phase phase;
    int32_t i_part; /**< WEIGHT_GRADIENT: which of op.n_updates. */
};

/** An op and the values it reads and makes. */
struct plan_op {
    struct op op;
    weir_value_t in[LAYER_MAX_INPUTS], out;
    int32_t i_layer; /**< The graph's layer that it stands for (the first, if it holds several); -1:
                          a cast or a flatten that the plan added. */
    bool dx_adds[LAYER_MAX_INPUTS];
};

/** The tasks of a step, in stages, and the locations of all tensors. */
struct task_schedule {
    struct plan_task *tasks; /**< Of all stages, in order. */
    int32_t *first_task;     /**< n_stages + 1 bounds. */
    /** FORWARD_SUMS and BACKWARD_SUMS: what the end of a stage combines. */
    struct plan_task *combines;
    int32_t *first_combine;
    struct program_stage *stages;
    int32_t n_stages;
    int32_t loss_stage; /**< At its end the loss of the batch is known. */
    struct plan_task *deferred_tasks;
    struct deferred_task *deferred; /**< By deferred task: its deadline. */
    int32_t n_deferred;
    struct location *data, *gradients; /**< By value. */
    struct location *again; /**< By value: where backward finds it; data unless it is recomputed. */
    struct location *packed_weights; /**< By op, two each: for forward and for backward. */
    size_t slab_bytes, tile_bytes;
};

struct net_plan {
    struct plan_op *ops;
    int32_t n_ops, n_values;
    struct weir_shape *shapes;  /**< By value: those of the graph, of casts and of flattens. */
    enum weir_precision *types; /**< By value. */
    enum weir_precision precision;
    enum weir_convolution convolution;
    bool keeps_f32; /**< bf16 lies in memory as f32. */
    /** Training: convolutions are refreshed for backward, if a stage lies between. */
    bool refreshes_backward;
    bool *needs_gradient; /**< By value. */
    bool *is_recomputed;  /**< By value: backward makes it again. */
    weir_value_t input, output;
    bool has_packed; /**< Some op has packed_bytes. Stage 0 is then empty: it opens pack tasks. */
    int32_t i_loss;  /**< Op of the loss; -1 = none. */
    int32_t batch, n_slices, n_row_tiles, n_gradient_parts;
    bool is_training, is_channels_last, updates_in_backward;
    bool knows_signs; /**< Of the back-end. */
    bool is_in_order; /**< On a GPU: one tile; deferred tasks run in a lane of their own. */
    struct task_schedule training, inference; /**< training is empty if !is_training. */
};

/** Plans a graph. The caller owns *out. @return INVALID naming the layer; NOMEM. */
weir_status plan_create(const struct weir_graph *graph, const struct weir_net_config *config,
                        struct net_plan **out, struct weir_error *err) WEIR_MUST_CHECK;
/** NULL is accepted. */
void plan_destroy(struct net_plan *plan);

/** First image of slice i. i = n_slices gives the batch. */
int32_t plan_slice_first(const struct net_plan *plan, int32_t i_slice);
/** Images of the tile that slice i has of an op; *out_first is the first. 0 if the tile of another
 *  slice holds them. */
int32_t plan_tile_images(const struct net_plan *plan, const struct op *op, int32_t i_slice,
                         int32_t *out_first);
/** Images of the largest slice. */
int32_t plan_tile_max(const struct net_plan *plan);
/** Memory of one image of a value, or of its gradient. */
size_t plan_image_bytes(const struct net_plan *plan, weir_value_t value);

/* ---- the parts, each in its own file --------------------------------------------------------- */

/** plan_ops.c: ops, fusion, and which values need gradients. */
weir_status plan_make_ops(struct net_plan *plan, const struct weir_graph *graph,
                          bool can_fuse) WEIR_MUST_CHECK;
/** plan_recompute.c: marks values that backward can make again. The training schedule unmarks those
 *  for which it is not worth it. */
weir_status plan_mark_recomputed(struct net_plan *plan) WEIR_MUST_CHECK;
/** plan_row_tiles.c: gives row tiles to the ops that can have them. */
weir_status plan_make_row_tiles(struct net_plan *plan) WEIR_MUST_CHECK;
/** Does a row tile of the op read only the same row tile of in[i_in]? */
bool plan_reads_own_rows(const struct op *op, int32_t i_in);
/** plan_schedule.c: tasks, stages, deferred tasks. */
weir_status plan_make_schedule(struct net_plan *plan, struct task_schedule *schedule,
                               bool is_training) WEIR_MUST_CHECK;
/** plan_memory.c: a location for every tensor. */
weir_status plan_assign_locations(const struct net_plan *plan, struct task_schedule *schedule,
                                  bool is_training) WEIR_MUST_CHECK;

/** What an op's backward tasks and its weight-gradient task read. plan_memory.c has one row per
 *  layer kind. */
struct op_reads {
    bool backward_x, backward_y, deferred_x, deferred_dy;
};
struct op_reads plan_op_reads(const struct op *op);

/** First row of the gradient that part i_part of an op with n_updates makes. i_part = n_updates
 *  gives the number of rows. */
int32_t plan_update_first(const struct op *op, int32_t i_part);

/** The op that stands for a layer; NULL if another op has taken the layer over. */
struct plan_op *plan_find_op(struct net_plan *plan, int32_t i_layer);

/** Does a deferred task make the op's gradients over the whole batch? */
bool plan_has_deferred(const struct op *op);
/** Can that task make them of parts of the batch, one after the other? */
bool plan_has_parts(const struct op *op);

#endif
