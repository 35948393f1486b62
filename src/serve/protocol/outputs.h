/**
 * Outputs: what a classifier says, in two small numbers, so that whoever sends the answer on can count
 * them without reading it: which class is the likeliest, and by how much. They stand in the header
 * Weir-Output of an answer, "CLASS SCORE". Pure.
 *
 * Of a request with several rows the first alone counts: rows of one request are seldom independent.
 */
#ifndef WEIR_SERVE_OUTPUTS_H
#define WEIR_SERVE_OUTPUTS_H

#include "serve/signature.h"
#include "tensor/tensor.h"

#include <stdbool.h>

#define OUTPUTS_BINS 64

/**
 * The bins of the first row: of the class, classes beyond the 63rd sharing the last bin; of the score, 8
 * bins for each doubling of 1 + the margin in logits between the likeliest class and the next.
 *
 * @param output  The first of the model.
 * @return false: it is no classifier of two classes or more, not of f32 or f64, or not a number.
 * Cost: two passes over the row, about 1 ns a value, and a logarithm or three.
 */
bool outputs_bins(const struct weir_signature *signature, const struct weir_tensor *output,
                  int *out_class, int *out_score);

#endif
