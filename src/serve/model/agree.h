/**
 * Agree: does another way to compute a model give what the executor gives? Asked when a version is
 * pushed, on random inputs, since whoever runs a model wrongly is sure of it.
 *
 * An answer may differ by rounding. Where a model jumps (a sort, a threshold, a step of a quantised
 * value), a rounding becomes much; so what differs is held against what the other way itself makes of
 * an input that is changed by a millionth.
 */
#ifndef WEIR_SERVE_AGREE_H
#define WEIR_SERVE_AGREE_H

#include "serve/executor.h"

/**
 * @param path   The model's file.
 * @param like   Inputs that the model can be run on; random ones of their shapes are made.
 * @param other  The executor to compare with. "onnx": the plain way of Weir's own.
 * @return UNSUPPORTED: most of the answers differ, and in which output by how much. OK too if the other
 *         cannot run the model, or not within some seconds: then nothing is known.
 * Cost: some runs of both; AGREE_TIME_MS at most of the other's.
 */
weir_status agree_check(const char *path, const struct executor_options *options,
                        struct serve_model *model, struct weir_tensor *const *like,
                        const char *other, struct weir_error *err) WEIR_MUST_CHECK;

/** Does a comparison that was given up still compute? Then the process must not be taken apart. */
bool agree_is_running(void);

#define AGREE_TIME_MS 6000

#endif
