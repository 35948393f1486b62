/** What the readers of flags and of JSON share. */
#ifndef WEIR_BASE_OPTIONS_PRIVATE_H
#define WEIR_BASE_OPTIONS_PRIVATE_H

#include "base/options.h"

/** Of an option's name, as a flag, a variable or a member; longer ones are unknown. */
#define OPTIONS_NAME_BYTES 80

struct options_parser {
    const struct weir_option *options;
    size_t n_options;
    struct weir_arena *arena;
    void *out;
    struct weir_error *err;
    bool is_strict; /**< JSON: members are named with "_", and texts are texts. */
};

/** The option of this name of `len` bytes; NULL: there is none. */
const struct weir_option *options_find_long(const struct options_parser *parser, const char *name,
                                            size_t len);

/** "max_mb" → "max-mb" and back. Returns out. */
const char *options_swap(const char *text, char from, char to, char out[OPTIONS_NAME_BYTES]);

/** Set one option from text; `source` names it in messages ("--workers", "$.workers"). */
weir_status options_set(const struct options_parser *parser, const struct weir_option *option,
                        const char *source, const char *text) WEIR_MUST_CHECK;

weir_status options_set_defaults(const struct options_parser *parser) WEIR_MUST_CHECK;

#endif
