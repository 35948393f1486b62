/**
 * Rows and columns: the two ways in which TensorFlow Serving, KServe v1 and MLflow write tensors.
 *
 *     "instances": [[1, 2], [3, 4]]   or  [{"a": 1, "b": [2]}, …]      a row each
 *     "inputs":    [[1, 2], [3, 4]]   or  {"a": [1, …], "b": [[2], …]}  a tensor each
 *
 * {"b64": "…"} is the bytes of a string; where the model takes pictures, a picture.
 */
#ifndef WEIR_SERVE_PROTOCOL_ROWS_H
#define WEIR_SERVE_PROTOCOL_ROWS_H

#include "serve/protocol/protocol_private.h"
#include "serve/protocol/tensor_json.h"

/** Rows on the way to the model's inputs. */
struct rows {
    struct infer *infer;
    struct weir_json_scan *scan;
    struct tensor_fill fills[SERVE_PORTS_MAX];
    struct weir_tensor **pictures; /**< One a row, of the picture's input. */
    size_t n_pictures, cap_pictures;
};

void rows_init(struct rows *rows, struct infer *infer, struct weir_json_scan *scan);
void rows_fini(struct rows *rows);

/** Reads the array of rows. */
weir_status rows_read_instances(struct rows *rows) WEIR_MUST_CHECK;
/** Reads one row: a value, or an object of values by input. */
weir_status rows_read_instance(struct rows *rows) WEIR_MUST_CHECK;
/** Reads the tensors. */
weir_status rows_read_columns(struct rows *rows) WEIR_MUST_CHECK;

/** Gives what was read to the inputs. A column of single values also fits an input [-1, 1]. */
weir_status rows_take(struct rows *rows, struct weir_error *err) WEIR_MUST_CHECK;

/** [row, …] of one output, else [{"a": row, "b": row}, …]. */
void rows_write_instances(const struct infer *infer, struct weir_buf *out);
/** The tensor of one output, else {"a": tensor, …}. */
void rows_write_columns(const struct infer *infer, struct weir_buf *out);

#endif
