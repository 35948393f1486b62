/** What the files of fast/ share. */
#ifndef WEIR_ONNX_FAST_PRIVATE_H
#define WEIR_ONNX_FAST_PRIVATE_H

#include "fast.h"

#include "chain.h"
#include "region.h"

#include <oneapi/dnnl/dnnl.h>

struct fast_plan;

/** Constants in a layout that an operator wants, for all plans. */
struct fast_pack {
    size_t step, n_bytes;
    int slot; /**< Which of the step's constants. */
    dnnl_memory_desc_t md;
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

struct fast {
    struct weir_onnx *onnx;
    dnnl_engine_t engine;
    dnnl_stream_t stream;
    int32_t n_threads;
    struct region region;
    struct fast_chains chains;
    struct fast_pack *packs;
    struct fast_plan *plans[FAST_PLANS_MAX];
    struct fast_plan *last; /**< That ran last. */
    struct batch batch;
    uint64_t n_runs;
    bool profiles;
};

/** Runs the plan for the inputs, and makes it where there is none. fast->last is that plan then. */
weir_status fast_run_plan(struct fast *fast, struct weir_error *err) WEIR_MUST_CHECK;

/** The constant of a step in a layout; NULL if it has not been made. */
void *fast_pack_find(const struct fast *fast, size_t step, int slot, const dnnl_memory_desc_t *md);
/** Room for one, to be filled. NULL: no memory. */
void *fast_pack_add(struct fast *fast, size_t step, int slot, const dnnl_memory_desc_t *md,
                    size_t n_bytes);

#endif
