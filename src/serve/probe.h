/**
 * Probe: runs a model on zeros, which proves that it runs, and puts into its signature what the file
 * does not say: shapes and types of outputs, whether the first dimension really is the batch, and
 * whether a classifier's output is probabilities.
 *
 * A free dimension other than the batch is that of the picture rule, or else 1, 32 and 224 are tried.
 */
#ifndef WEIR_SERVE_PROBE_H
#define WEIR_SERVE_PROBE_H

#include "signature.h"

/**
 * @param signature  In/out: of this model (weir_signature_make).
 * @return What the run of a batch of 1 returned; UNSUPPORTED: an output has a type that clients do
 *         not have. Cost: two runs at least.
 */
weir_status weir_signature_probe(struct serve_model *model, struct weir_signature *signature,
                                 struct weir_error *err) WEIR_MUST_CHECK;

#endif
