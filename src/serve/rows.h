/**
 * Rows: may requests of different callers be computed as one batch? Only if an answer to a row is a
 * function of that row alone. For Weir's own executors that is proven, or they are not joined. For a
 * model of onnxruntime whose graph nobody can judge it is tried: random rows, some of them far from the
 * others, must come out together as they do alone.
 */
#ifndef WEIR_SERVE_ROWS_H
#define WEIR_SERVE_ROWS_H

#include "serve/executor.h"

struct weir_signature;

/**
 * May they be joined? What was tried is kept in the model (rows, rows_why).
 * @param signature  Of this model: false if it is not batched.
 * Cost: nothing, or some twenty runs of a few rows where it has to be tried.
 */
bool serve_model_joins(struct serve_model *model, const struct weir_signature *signature);

#endif
