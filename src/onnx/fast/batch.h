/**
 * Batch: runs of many images as several runs of few, where that is faster. A plan for one image, or
 * four, finds in a cache what a plan for sixteen writes to memory; small layers want more images at
 * once. Which is best is measured, once for each size, when a run is first large enough for it. So
 * runs of any number of images need no more plans than there are sizes.
 *
 * Only where each image's result depends on that image alone: every step of two plans of different
 * sizes must be one that keeps images apart (batch_keeps_apart).
 */
#ifndef WEIR_ONNX_FAST_BATCH_H
#define WEIR_ONNX_FAST_BATCH_H

#include "op.h"

/** Images of the run whose inputs are given; 0: the model has no free first dimension, or the inputs
 *  have different ones. */
int64_t batch_count(const struct weir_onnx *onnx);

/** Does a step that was prepared keep the plan's images apart? */
bool batch_keeps_apart(const struct fast_plan *plan, const struct onnx_step *step);

/** Runs n images in pieces, or finds out whether that can be. *out_done false: run them at once. */
weir_status batch_run(struct fast *fast, int64_t n, struct weir_tensor **out, bool *out_done,
                      struct weir_error *err) WEIR_MUST_CHECK;

#endif
