/** Scalar members of the snapshot's structs: a table that reads them from JSON. */
#ifndef WEIR_SCHED_JSON_FIELDS_H
#define WEIR_SCHED_JSON_FIELDS_H

#include "base/json.h"

#include <stdint.h>

enum json_field_type {
    JSON_FIELD_TEXT, /**< const char *; null = NULL */
    JSON_FIELD_I32,
    JSON_FIELD_I64,
    JSON_FIELD_BOOL,
    JSON_FIELD_WORD,  /**< An int-sized enum by the words of `words`. */
    JSON_FIELD_OTHER, /**< Read elsewhere: only its name is known here. */
};

struct json_field {
    const char *name;
    enum json_field_type type;
    size_t offset;
    int64_t fallback; /**< When left out. */
    const char *const *words;
    bool is_required;
};

/**
 * Fill the members of `out` that the table lists. `where` names the object in errors. Texts are
 * borrowed from the JSON.
 * @return INVALID: a member has the wrong type, is missing, or is not in the table.
 */
weir_status json_fields_read(const struct json_field *fields, size_t n_fields, const json_t *object,
                             const char *where, void *out, struct weir_error *err) WEIR_MUST_CHECK;

#endif
