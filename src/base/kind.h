/**
 * Kinds as tables: whatever there are several of (sources of frames, sinks of decisions, policies of
 * links, kinds of jobs, cluster drivers) is a table of kinds, and each kind is one file.
 *
 * A kind says its name, what it is, which options it takes, and what its domain does with it. From
 * that come the check of what people write, the defaults, `weir explain`, GET /api/v1/kinds and the
 * reference. A registry is the list of the kinds of one noun; beside it stand the names that are
 * known and not there yet, which are refused as such and not as a typing error.
 *
 * A domain lists its kinds in NOUNs.def, one line each: `WEIR_KIND(directory)`. The registry is made
 * of it, and the build takes the kinds' files from it (weir_kinds in cmake/weir_library.cmake). A kind that needs an
 * optional library is listed as `WEIR_KIND_WITH(library, name)`, and its description names the library.
 *
 *     static const struct weir_option options[] = {
 *         WEIR_OPT_JSON(weir_source_directory, path, "path", TEXT, WEIR_OPTION_REQUIRED, NULL, 0, 0,
 *                       "Folder that cameras write to"),
 *     };
 *     const struct weir_kind weir_source_directory_kind = {
 *         .name = "directory", .doc = "…", WEIR_KIND_OPTIONS(weir_source_directory, options)};
 */
#ifndef WEIR_BASE_KIND_H
#define WEIR_BASE_KIND_H

#include "base/options.h"

#include <stdio.h>

/** Words that people write for an option that a kind calls otherwise, or does not have. */
struct weir_kind_words {
    const char *const *words; /**< Members of JSON, with NULL at the end; none is an option. */
    const char *option;       /**< The member that is meant: "max_mb"; NULL: there is none. */
    const char *doc;          /**< How it is given, or why there is none; no sentence. */
};

struct weir_kind {
    const char *name; /**< What people write. */
    const char *doc;  /**< What it is and does; sentences. */
    const struct weir_option *options;
    size_t n_options;
    size_t options_bytes; /**< sizeof the struct that the options fill; 0: there are none. */
    const void *ops;      /**< What its domain does with it, a table of the domain's own type; NULL
                             where another domain has them (base/kind.h is used by both). */
    const struct weir_kind_words *words; /**< Or NULL. */
    size_t n_words;
    /** Optional library that its domain does it with (base/library.h), or NULL. */
    const char *library;
};

#define WEIR_KIND_OPTIONS(strct, table)                                                            \
    .options = (table), .n_options = WEIR_ARRAY_LEN(table), .options_bytes = sizeof(struct strct)

/** A line of a list of kinds: one whose file is compiled only where the library is there. */
#define WEIR_KIND_WITH(library, name) WEIR_KIND(name)

#define WEIR_KIND_WORDS(table) .words = (table), .n_words = WEIR_ARRAY_LEN(table)

struct weir_registry {
    const char *noun;   /**< "source", "job-kind"; with blanks for "-" in sentences. */
    const char *plural; /**< "sources" */
    const char *doc;    /**< What such a thing is: a sentence. */
    const struct weir_kind *const *kinds;
    size_t n_kinds;
    const char *const
        *planned;        /**< Names that are refused as UNSUPPORTED, NULL at the end; or NULL. */
    const char *instead; /**< What to do in place of a planned one; or NULL. */
    const struct weir_option *common; /**< What each kind takes beside its own options, for those
                                           who describe it; its domain reads them. Or NULL. */
    size_t n_common;
};

/** A configured kind: what {"kind": "directory", "path": "/f"} is read into. */
struct weir_configured {
    const struct weir_kind *kind;
    const void *options; /**< The kind's struct, in an arena; NULL if it has no options. */
};

/**
 * The kind of that name.
 * @param where  Where the name stands, for the message: "$.source.kind", "--driver".
 * @return UNSUPPORTED for a planned name, and for a kind whose library is not in this build; INVALID for any other
 *         name, with the nearest and all.
 */
weir_status weir_registry_find(const struct weir_registry *registry, const char *name,
                               const char *where, const struct weir_kind **out,
                               struct weir_error *err) WEIR_MUST_CHECK;

/** The kind of that name, or NULL. */
const struct weir_kind *weir_registry_get(const struct weir_registry *registry, const char *name);

/**
 * Read a kind's options from an object (weir_options_read); "kind" in it is passed over.
 * @param where  Where the object lies: "$.source".
 */
weir_status weir_kind_read(const struct weir_kind *kind, const json_t *object, const char *where,
                           struct weir_arena *arena, struct weir_configured *out,
                           struct weir_error *err) WEIR_MUST_CHECK;

/**
 * Is every member of an object an option of the kind, or one that every kind of the registry takes?
 * "kind" is passed over; values are not looked at.
 * @return INVALID with the place of the first that is none, and the option that is meant: by the
 *         kind's words, else the nearest; where no name is near, all of the kind's.
 */
weir_status weir_kind_check_members(const struct weir_registry *registry,
                                    const struct weir_kind *kind, const json_t *object,
                                    const char *where, struct weir_error *err) WEIR_MUST_CHECK;

/** Read {"kind": NAME, …options}. */
weir_status weir_registry_read(const struct weir_registry *registry, const json_t *object,
                               const char *where, struct weir_arena *arena,
                               struct weir_configured *out, struct weir_error *err) WEIR_MUST_CHECK;

/**
 * Read {"kind": NAME, …options}, or NAME alone, which stands for {"kind": NAME}.
 * @param out_text  The object as JSON, in the arena; NULL: nobody wants it.
 */
weir_status weir_registry_read_named(const struct weir_registry *registry, const json_t *json,
                                     const char *where, struct weir_arena *arena,
                                     struct weir_configured *out, char **out_text,
                                     struct weir_error *err) WEIR_MUST_CHECK;

/** weir_options_paths of {"kind": NAME, …options}; a kind that is not there has none. */
weir_status weir_registry_paths(const struct weir_registry *registry, const json_t *object,
                                const char *where, weir_option_path_fn fn,
                                void *context) WEIR_MUST_CHECK;

/** weir_options_describe of a kind's own options and the registry's common ones; a new reference. */
json_t *weir_kind_options(const struct weir_registry *registry, const struct weir_kind *kind);

/** {"noun","name","doc","options":[…]} of one kind; a new reference. */
json_t *weir_kind_describe(const struct weir_registry *registry, const struct weir_kind *kind);

#endif
