/**
 * Plan: what a graph becomes before the first step. Pure: no threads, no kernels, no tensor memory.
 *
 * 1. Layers become ops. If the back-end can fuse, batch norm swallows the add and ReLU behind it;
 *    in a net that is not for training, convolutions and linears swallow batch norm too. In bf16, a
 * value that an op wants in the other type goes through a cast, once for all its readers. Where
 * channels come last, so does an image that a linear reads through a flatten.
 * 2. Ops become a schedule: stages of tasks. Within a stage an image slice runs all its tasks in a
 *    row, while the data is in cache; a stage ends where the whole batch must be known (statistics
 *    of batch norm). Weight gradients are fillers, opened by the stage that completes their input.
 * 3. Every tensor gets a place by its lifetime: in the slab shared by all slices, or, if it lives
 *    and dies inside one stage, in a small arena of the thread that runs the tile.
 *
 * In training, a value that costs no more than a pass over memory to make (plan_recompute.c) is not
 * kept for backward: it has one place and lifetime in forward, and another in backward, where a
 * task makes it again, by the same kernel from the same bits, just before the first task that reads
 * it.
 *
 * In a net with bands, a slice is one image and a tile one band of its rows. An op that reads rows
 * of other bands, or that has none, waits for them at a stage's end; all tensors are in the slab.
 *
 * Linears and convolutions of many weights are joined: every PLAN_BATCHED_SLICES slices' inputs are one
 * tile of theirs, in a stage between those that make and use them.
 *
 * Of a net that updates in backward, convolutions' and linears' parameters are updated by the
 * fillers that make their gradients, which open when nobody reads the parameters any more. A linear
 * of many weights has several such fillers, and no gradient in memory; where one slice is the whole
 * batch, its backward ends a stage, so that other threads update while one goes on.
 *
 * A training plan has two schedules over the same ops and memory: training and inference.
 */
#ifndef WEIR_NN_PLAN_H
#define WEIR_NN_PLAN_H

#include "nn/backend/op.h"
#include "nn/run/workers.h"

/** Stages that may open after the one that opened a filler, before they wait for it. */
#define PLAN_DEFERRED_SLACK 4

/** Stages before an op's backward that its refresh for backward may be done in. */
#define PLAN_REFRESH_LEAD 4

/** Stages before an op's in which what it derives from its weights may be made: few, as that lies
 * in memory meanwhile. */
#define PLAN_PACK_LEAD 1

/** Weights that one filler makes the gradient of and updates: some 25 us of work. */
#define PLAN_UPDATE_ELEMS ((size_t)1 << 17)

/** Fewer such parts are one: it costs as much to wake another thread. */
#define PLAN_UPDATE_MIN_PARTS 3

/** Slices of a tile of a joined op: few, so that there are tiles for several threads, and so that
 * as many workers as have fewer slices each make the same tiles. */
#define PLAN_BATCHED_SLICES 4

enum location_kind { LOCATION_NONE, LOCATION_SLAB, LOCATION_TILE, LOCATION_INPUT, LOCATION_OUTPUT };

struct location {
    enum location_kind kind;
    size_t offset; /**< Bytes, of the whole batch (SLAB) or of a tile (TILE). */
};

enum task_phase {
    TASK_FORWARD,
    TASK_FORWARD_SUMS,
    TASK_LOSS,
    TASK_BACKWARD_SUMS,
    TASK_BACKWARD,
    TASK_RECOMPUTE, /**< TASK_FORWARD once more, for backward. */
    /* Fillers. */
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

struct plan_op {
    struct op op;
    weir_value_t in[LAYER_MAX_INPUTS], out;
    int32_t i_layer; /**< The graph's layer it stands for (the first, if it holds several); -1 =
                          a cast, or a flatten of the plan's own. */
    bool dx_adds[LAYER_MAX_INPUTS];
};

struct task_schedule {
    struct plan_task *tasks; /**< Of all stages, in order. */
    int32_t *first_task;     /**< n_stages + 1 bounds. */
    struct plan_task
        *combines; /**< FORWARD_SUMS or BACKWARD_SUMS: what the end of a stage combines. */
    int32_t *first_combine;
    struct program_stage *stages;
    int32_t n_stages;
    int32_t loss_stage; /**< Its end knows the loss of the batch. */
    struct plan_task *deferred_tasks;
    struct deferred_task *deferred;
    int32_t n_deferred;
    struct location *data, *gradients; /**< By value. */
    struct location *again; /**< By value: where backward finds it; data unless it is made again. */
    struct location *packed_weights; /**< By op, 2: for forward and for backward. */
    size_t slab_bytes, tile_bytes;
};

struct net_plan {
    struct plan_op *ops;
    int32_t n_ops, n_values;
    struct weir_shape *shapes;  /**< By value: the graph's, in bf16 the cast of each, flat ones. */
    enum weir_precision *types; /**< By value. */
    enum weir_precision precision;
    enum weir_convolution convolution;
    bool keeps_f32; /**< bf16 lies in memory as f32. */
    /** Training: convolutions are refreshed for backward, where a stage lies between. */
    bool refreshes_backward;
    bool *needs_gradient; /**< By value. */
    bool *is_recomputed;  /**< By value: training makes it again in backward. */
    weir_value_t input, output;
    bool has_packed; /**< Some op has packed_bytes: stage 0 is empty, for its fillers. */
    int32_t i_loss;  /**< Op of the loss; -1 = none. */
    int32_t batch, n_slices, n_row_tiles, n_gradient_parts;
    bool is_training, is_channels_last, updates_in_backward;
    struct task_schedule training, inference; /**< training is empty if !is_training. */
};

/** @return INVALID naming the layer; NOMEM. */
weir_status plan_create(const struct weir_graph *graph, const struct weir_net_config *config,
                        struct net_plan **out, struct weir_error *err) WEIR_MUST_CHECK;
void plan_destroy(struct net_plan *plan);

/** First image of slice i (i = n_slices gives the batch). */
int32_t plan_slice_first(const struct net_plan *plan, int32_t i_slice);
/** First image, and images, that the tile of slice i has of an op; 0 if another slice's tile has
 * them. */
int32_t plan_tile_images(const struct net_plan *plan, const struct op *op, int32_t i_slice,
                         int32_t *out_first);
/** Images of the largest slice. */
int32_t plan_tile_max(const struct net_plan *plan);
/** Memory of one image of a value, or of its gradient. */
size_t plan_image_bytes(const struct net_plan *plan, weir_value_t value);

/* ---- the parts, each in its own file --------------------------------------------------------- */

/** plan_ops.c: ops, fusion, which values need gradients. */
weir_status plan_make_ops(struct net_plan *plan, const struct weir_graph *graph,
                          bool can_fuse) WEIR_MUST_CHECK;
/** plan_recompute.c: which values could be made again in backward; the schedule of training keeps
 *  those that are worth it. */
weir_status plan_mark_recomputed(struct net_plan *plan) WEIR_MUST_CHECK;
/** plan_row_tiles.c: which ops have bands. */
weir_status plan_make_row_tiles(struct net_plan *plan) WEIR_MUST_CHECK;
/** Is a band of in[i_in] all that a band of the op reads of it? */
bool plan_reads_own_rows(const struct op *op, int32_t i_in);
/** plan_schedule.c: tasks, stages, fillers. */
weir_status plan_make_schedule(struct net_plan *plan, struct task_schedule *schedule,
                               bool is_training) WEIR_MUST_CHECK;
/** plan_memory.c: places. */
weir_status plan_assign_locations(const struct net_plan *plan, struct task_schedule *schedule,
                                  bool is_training) WEIR_MUST_CHECK;

/** What an op's backward tasks and filler read: one row per layer kind, plan_memory.c. */
struct op_reads {
    bool backward_x, backward_y, deferred_x, deferred_dy;
};
struct op_reads plan_op_reads(const struct op *op);

/** First row of the gradient that filler i_part of an op with n_updates makes; of i_part =
 * n_updates, all its rows. */
int32_t plan_update_first(const struct op *op, int32_t i_part);

/** The op that stands for a layer; NULL if another has swallowed it. */
struct plan_op *plan_find_op(struct net_plan *plan, int32_t i_layer);

/** Does the op have a filler (parameters whose gradients are made over the whole batch)? */
bool plan_has_deferred(const struct op *op);
/** … that can be made of parts of the batch, one after the other? */
bool plan_has_parts(const struct op *op);

#endif
