/**
 * Probe: runs a model, which proves that it runs, and puts into its signature what the file does not
 * say: shapes and types of outputs, whether the first dimension really is the batch, and whether a
 * classifier's output is probabilities. Where requests of a batched model are not joined (rows.h), the
 * signature's `why` says so.
 *
 * It is run on zeros whose free dimensions are 1, or those of the picture rule. Where that fails, on
 * the golden input if there is one, and then on other sizes and values: the text "0", ones, random ones.
 */
#ifndef WEIR_SERVE_PROBE_H
#define WEIR_SERVE_PROBE_H

#include "serve/signature.h"

/** Golden cases, as golden.h has them. */
struct probe_golden {
    const char *text; /**< NULL: none. */
    size_t len;
};

/**
 * Something that the model can be run on.
 * @param in, out  What it is, and what came of it: references for the caller.
 * @return What the first run returned, with a sentence, if none went well.
 */
weir_status probe_find(struct serve_model *model, const struct weir_signature *signature,
                       const struct probe_golden *golden, struct weir_tensor **in,
                       struct weir_tensor **out, struct weir_error *err) WEIR_MUST_CHECK;

/** Inputs as of a real request in place of `in`, if the model can be run on such: two rows, and free_size
 *  of what else is free, or 32 or 16. */
void probe_widen(struct serve_model *model, const struct weir_signature *signature,
                 int64_t free_size, struct weir_tensor **in);

/**
 * @param signature  In/out: of this model (weir_signature_make).
 * @param golden     NULL: none.
 * @param arena      For a longer `why`.
 * @param out_in     What the model was run on, references for the caller. NULL: not wanted.
 * @return What the first run returned, if none went well; UNSUPPORTED: an output has a type that
 *         clients do not have. Cost: two runs at least.
 */
weir_status weir_signature_probe(struct serve_model *model, struct weir_signature *signature,
                                 const struct probe_golden *golden, struct weir_arena *arena,
                                 struct weir_tensor **out_in,
                                 struct weir_error *err) WEIR_MUST_CHECK;

#endif
