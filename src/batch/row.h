/**
 * Row: what the results say of one picture. As JSON lines:
 *
 *     {"file":"a/1.png","class":3,"label":"cat","probability":0.98,
 *      "top":[{"class":3,"label":"cat","probability":0.98},…],"outputs":{"y":[…]}}
 *     {"file":"a/2.png","error":"…"}
 *
 * "class", "label" and "probability" are a classifier's, "label" where the model has labels, "top" with
 * more than one; "outputs" are the values of every output, of a model that is no classifier or if asked
 * for. Probabilities have 6 digits, values as many as tell a float from the next.
 *
 * As CSV (RFC 4180, lines end with "\n") with a head, for classifiers only:
 *
 *     file,class,label,probability,class_2,label_2,probability_2,…,error
 *
 * Pure, but for the buffer.
 */
#ifndef WEIR_BATCH_ROW_H
#define WEIR_BATCH_ROW_H

#include "base/buf.h"
#include "serve/infer.h"

#include <stdbool.h>

/** What rows have. */
struct row_form {
    const struct weir_signature *signature;
    bool is_csv;
    bool has_values; /**< Of every output. */
    int64_t n_top;
};

/** What a shard begins with. Errors stay in the buffer. */
void row_write_head(const struct row_form *form, struct weir_buf *out);

/** A picture's row: row i of the outputs of a run. The arena is for work. */
void row_write(const struct row_form *form, const char *file, struct weir_tensor *const *outputs,
               int64_t i, struct weir_arena *arena, struct weir_buf *out);

/** The row of a picture without an answer; line breaks in the message become blanks. */
void row_write_error(const struct row_form *form, const char *file, const char *message,
                     struct weir_buf *out);

/** Counts the rows of a shard, and how many of them are errors. CORRUPT: it is none. */
weir_status row_count(bool is_csv, const char *text, size_t len, int64_t *out_n,
                      int64_t *out_n_errors, struct weir_error *err) WEIR_MUST_CHECK;

#endif
