/** Signature: what its files share. */
#ifndef WEIR_SERVE_SIGNATURE_PRIVATE_H
#define WEIR_SERVE_SIGNATURE_PRIVATE_H

#include "serve/signature.h"

#define SIGNATURE_WHERE_BYTES 128

/**
 * Reads a picture rule. What is left out follows from the input's shape, or is neutral.
 * @param ports  The model's inputs.
 */
weir_status picture_read(const json_t *object, const char *where, const struct serve_port *inputs,
                         size_t n_inputs, struct weir_arena *arena, struct signature_picture *out,
                         struct weir_error *err) WEIR_MUST_CHECK;

/** The rule as JSON; a new reference. */
json_t *picture_json(const struct signature_picture *picture, const struct serve_port *inputs);

/** Does the rule make what its input takes? */
weir_status picture_check(const struct signature_picture *picture, const struct serve_port *inputs,
                          size_t n_inputs, const char *where,
                          struct weir_error *err) WEIR_MUST_CHECK;

/** The kind of this name. False: there is none. */
bool output_kind_of(const char *text, enum signature_output_kind *out);

/** Labels of an array of strings. */
weir_status labels_read(const json_t *array, const char *where, struct weir_arena *arena,
                        struct weir_signature *out, struct weir_error *err) WEIR_MUST_CHECK;

#endif
