/** What the files of fast/ share. */
#ifndef WEIR_ONNX_FAST_PRIVATE_H
#define WEIR_ONNX_FAST_PRIVATE_H

#include "fast.h"

#include "chain.h"
#include "region.h"

#include "dnn/dnn.h"

struct fast_plan;

/** Constants in a layout that an operator wants, for all plans. */
struct fast_pack {
    size_t step, n_bytes;
    int slot; /**< Which of the step's constants. */
    struct weir_dnn_layout md;
    void *data;
    struct fast_pack *next;
};

#define BATCH_SIZES 3 /* Of images that plans are made for. */

enum batch_state { BATCH_UNKNOWN, BATCH_IS_SPLIT, BATCH_IS_WHOLE };

/** How runs of many images are divided (batch.h). */
struct batch {
    enum batch_state state;
    double ns_each[BATCH_SIZES]; /**< Of an image, in a plan of so many; 0: not measured. */
};

/**
 * The plans of a shape: by one thread, and by all. Which is faster is another on another machine, and
 * changes with who else computes there: threads that must wait for each other wait for those who are
 * put aside. Both are timed, and the slower one is tried again now and then.
 */
struct fast_twins {
    struct fast_plan *plans[2]; /**< By one thread; by all. */
    double ns[2];               /**< Of a run, lately; 0: not known. */
    /** For runs that met a NaN (alarm.h), by all; NULL: there was none. */
    struct fast_plan *with_nan;
    uint64_t last_run;
    uint64_t n_since; /**< Runs since the slower one was tried. */
};

struct fast {
    struct weir_onnx *onnx;
    dnnl_engine_t engine;
    dnnl_stream_t stream;
    int32_t n_threads;    /**< Of the plan that runs, or is made. */
    int32_t most_threads; /**< That may be used. */
    struct region region;
    struct fast_chains chains;
    struct fast_pack *packs;
    struct fast_twins places[FAST_PLANS_MAX];
    struct fast_plan *last; /**< That ran last. */
    struct batch batch;
    uint64_t n_runs;
    bool profiles;
};

/** Runs the plan for the inputs, and makes it where there is none; where that met a NaN, one that keeps
 *  NaN. fast->last is the plan that counts.
 *  @return *out_ns: how long a run of this shape takes, as far as is known; else 0. NULL: not wanted. */
weir_status fast_run_plan(struct fast *fast, double *out_ns,
                          struct weir_error *err) WEIR_MUST_CHECK;

/** The constant of a step in a layout; NULL if it has not been made. */
void *fast_pack_find(const struct fast *fast, size_t step, int slot,
                     const struct weir_dnn_layout *md);
/** Room for one, to be filled. NULL: no memory. */
void *fast_pack_add(struct fast *fast, size_t step, int slot, const struct weir_dnn_layout *md,
                    size_t n_bytes);

#endif
