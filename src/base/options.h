/**
 * Options as data: one table gives flags of the command line, `--help`, the configuration file,
 * environment variables, members of a JSON object, the manual's option lists, the description over
 * REST and the schema of OpenAPI.
 *
 * On the command line the precedence is default < file < environment (WEIR_<NAME>) < flag. A flag
 * is `--name VALUE` or `--name=VALUE`; a BOOL is `--name` or `--no-name`. "--" ends the flags.
 *
 * In JSON the member of option "max-mb" is "max_mb". Options of kinds (base/kind.h) are only
 * written so.
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
    WEIR_OPTION_CPUS, /**< int64_t in thousandths; [min, max] of processors (base/quantity.h) */
    /* Only in JSON; the member points into the object that was read, and lives as long. */
    WEIR_OPTION_TEXTS, /**< const json_t *: an array of strings */
    WEIR_OPTION_MAP,   /**< const json_t *: an object of strings */
    WEIR_OPTION_JSON,  /**< const json_t *: any value; its reader checks it */
};

enum weir_option_flags {
    WEIR_OPTION_REQUIRED = 1 << 0, /**< weir_options_read: must be there, and not empty. */
    WEIR_OPTION_SECRET = 1 << 1,   /**< Shown to nobody once it is stored (base/secret.h). */
    WEIR_OPTION_PATH = 1 << 2,     /**< A file or folder of the node: weir_options_paths. */
    WEIR_OPTION_WRITTEN = 1 << 3,  /**< With PATH: the task writes there, or removes. */
    WEIR_OPTION_SETTINGS = 1 << 4, /**< A word may be followed by settings: "adamw:beta2=0.95". */
    WEIR_OPTION_INTERNAL = 1 << 5, /**< Weir sets it itself; people leave it out. */
};

/** Most bytes of one text in JSON. */
#define WEIR_OPTION_TEXT_MAX_BYTES ((size_t)4 << 10)

struct weir_option {
    const char *name; /**< "parameter-servers" */
    char short_name;  /**< 'o' or 0 */
    enum weir_option_type type;
    size_t offset;
    const char *fallback;     /**< Default as text; NULL = absent (NULL, 0 or false). */
    double min, max;          /**< Range of INT and F64; equal = unbounded. */
    const char *arg;          /**< What the value is called in help: "DIR". */
    const char *doc;          /**< One sentence. */
    unsigned flags;           /**< enum weir_option_flags */
    const char *const *words; /**< What a TEXT may be, with NULL at the end; NULL: anything. */
};

/** The words of an option: WEIR_WORDS("auto", "folder", "idx"). */
#define WEIR_WORDS(...) ((const char *const[]){__VA_ARGS__, NULL})

#define WEIR_OPT(strct, member, opt_name, opt_short, opt_type, dflt, lo, hi, opt_arg, opt_doc)     \
    {                                                                                              \
        .name = (opt_name), .short_name = (opt_short), .type = WEIR_OPTION_##opt_type,             \
        .offset = offsetof(struct strct, member), .fallback = (dflt), .min = (lo), .max = (hi),    \
        .arg = (opt_arg), .doc = (opt_doc)                                                         \
    }

/** An option that stands in JSON: no short name, no name of its value. */
#define WEIR_OPT_JSON(strct, member, opt_name, opt_type, opt_flags, dflt, lo, hi, opt_doc)         \
    {                                                                                              \
        .name = (opt_name), .type = WEIR_OPTION_##opt_type,                                        \
        .offset = offsetof(struct strct, member), .fallback = (dflt), .min = (lo), .max = (hi),    \
        .doc = (opt_doc), .flags = (opt_flags)                                                     \
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

/** Set options from a JSON object (a configuration file's section); same errors. A TEXT may be an
 *  array: "input": [1, 28, 28]. */
weir_status weir_options_from_json(const struct weir_option *options, size_t n_options,
                                   const json_t *object, struct weir_arena *arena, void *out,
                                   struct weir_error *err) WEIR_MUST_CHECK;

/**
 * Fill `out` with the defaults, then from a JSON object; every REQUIRED option must be there.
 * Wrong types, numbers outside the range, texts that are none of the words, unknown members and
 * texts of more than WEIR_OPTION_TEXT_MAX_BYTES are refused.
 *
 * @param where    Where the object lies, for messages: "$.source".
 * @param ignored  A member that somebody else reads ("kind"); NULL: none.
 * @return INVALID or LIMIT with the member's place and what was expected. `out` is undefined then.
 */
weir_status weir_options_read(const struct weir_option *options, size_t n_options,
                              const json_t *object, const char *where, const char *ignored,
                              struct weir_arena *arena, void *out,
                              struct weir_error *err) WEIR_MUST_CHECK;

/**
 * Is a text among the option's words? Any is, of an option without words.
 * @param source  What it is called in the message ("--keep", "$.keep"); NULL: its member in JSON.
 * @return INVALID, with the words, and the one that was probably meant.
 */
weir_status weir_option_check_word(const struct weir_option *option, const char *source,
                                   const char *text, struct weir_error *err) WEIR_MUST_CHECK;

/** The defaults of the table, in a struct of zeros. Texts go to the arena. */
void weir_options_defaults(const struct weir_option *options, size_t n_options,
                           struct weir_arena *arena, void *out);

/** Called with a path that an object names, and where it stands there ("$.source.path"). */
typedef weir_status (*weir_option_path_fn)(void *context, const char *where, const char *path,
                                           bool is_written);

/** Call fn with every text that the object has for a PATH option; what is not OK ends it. */
weir_status weir_options_paths(const struct weir_option *options, size_t n_options,
                               const json_t *object, const char *where, weir_option_path_fn fn,
                               void *context) WEIR_MUST_CHECK;

/** The option of that name, or of that member of JSON ("max_mb"); NULL: there is none. */
const struct weir_option *weir_options_find(const struct weir_option *options, size_t n_options,
                                            const char *name);

/** The member of JSON that an option is: "max_mb". In the arena. */
char *weir_option_key(const struct weir_option *option, struct weir_arena *arena);

/**
 * The options as JSON, for those who fill them in: [{"name","type","default","minimum","maximum",
 * "words","required","secret","path","doc"}]; what an option does not have is left out. INTERNAL
 * ones are left out. A new reference.
 */
json_t *weir_options_describe(const struct weir_option *options, size_t n_options);

/** A JSON schema of an object of these options, as OpenAPI has it. A new reference. */
json_t *weir_options_schema(const struct weir_option *options, size_t n_options);

/** Print the option list, two columns, as `--help` shows it. */
void weir_options_print(const struct weir_option *options, size_t n_options, FILE *file);

#endif
