/**
 * Options as data: one table gives flags of the command line, `--help`, the configuration file,
 * environment variables and the manual's option lists.
 *
 * Precedence: default < file < environment (WEIR_<NAME>) < flag. A flag is `--name VALUE` or
 * `--name=VALUE`; a BOOL is `--name` or `--no-name`. "--" ends the flags.
 */
#ifndef WEIR_BASE_OPTIONS_H
#define WEIR_BASE_OPTIONS_H

#include "base/arena.h"
#include "base/json.h"
#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum weir_option_type {
    WEIR_OPTION_TEXT, /**< char * */
    WEIR_OPTION_INT,  /**< int64_t, within [min, max] */
    WEIR_OPTION_F64,  /**< double, within [min, max] */
    WEIR_OPTION_BOOL, /**< bool */
    WEIR_OPTION_LIST, /**< char *: may be repeated; values joined by '\n' */
};

struct weir_option {
    const char *name; /**< "parameter-servers" */
    char short_name;  /**< 'o' or 0 */
    enum weir_option_type type;
    size_t offset;
    const char *fallback; /**< Default as text; NULL = absent (NULL, 0 or false). */
    double min, max;      /**< Range of INT and F64; equal = unbounded. */
    const char *arg;      /**< What the value is called in help: "DIR". */
    const char *doc;      /**< One sentence. */
};

#define WEIR_OPT(strct, member, opt_name, opt_short, opt_type, dflt, lo, hi, opt_arg, opt_doc)     \
    {                                                                                              \
        .name = (opt_name), .short_name = (opt_short), .type = WEIR_OPTION_##opt_type,             \
        .offset = offsetof(struct strct, member), .fallback = (dflt), .min = (lo), .max = (hi),    \
        .arg = (opt_arg), .doc = (opt_doc)                                                         \
    }

/**
 * Fill `out` with the defaults, then from the environment, then from argv[0..argc-1].
 * Words that are not flags are collected, in order, in out_words (in the arena).
 * @return INVALID naming the flag and what was expected, and the nearest known flag if there is
 * one.
 */
weir_status weir_options_parse(const struct weir_option *options, size_t n_options, int argc,
                               char *const *argv, struct weir_arena *arena, void *out,
                               char ***out_words, size_t *out_n_words,
                               struct weir_error *err) WEIR_MUST_CHECK;

/** Set options from a JSON object (a configuration file's section); same errors. */
weir_status weir_options_from_json(const struct weir_option *options, size_t n_options,
                                   const json_t *object, struct weir_arena *arena, void *out,
                                   struct weir_error *err) WEIR_MUST_CHECK;

/** Print the option list, two columns, as `--help` shows it. */
void weir_options_print(const struct weir_option *options, size_t n_options, FILE *file);

#endif
