/** What the files of a random graph share. */
#ifndef WEIR_ONNX_TEST_RANDOM_PRIVATE_H
#define WEIR_ONNX_TEST_RANDOM_PRIVATE_H

#include "random_graph.h"

#define GRAPH_BYTES_MAX ((size_t)16 << 20)

/** A test's memory is there, or it ends. */
void graph_must(weir_status status);
bool graph_is_float(enum weir_dtype dtype);
/** Relative noise of an element: some times what rounding makes of it. */
double graph_noise_of(enum weir_dtype dtype);
/** Writes a step's node, with the attributes that were set. */
void graph_put_node(struct random_graph *g, struct random_step *step);
/** A model of the one node, whose inputs have any shape; NULL: it cannot be. */
struct weir_onnx *graph_load_alone(const struct random_graph *g, const struct random_step *step);

#endif
