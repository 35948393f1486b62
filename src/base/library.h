/**
 * The outside libraries of this build, by name (cmake/deps.cmake): which are in it and in what version, and which
 * optional ones are not, with what they would bring and the package that has them.
 *
 * A kind that needs an optional library names it (base/kind.h); other code asks weir_library_need. Its file that
 * includes the library's header is compiled only where the library is there; elsewhere the build takes a file in its
 * place that refuses.
 */
#ifndef WEIR_BASE_LIBRARY_H
#define WEIR_BASE_LIBRARY_H

#include "base/arena.h"
#include "base/status.h"

#include <stdbool.h>

struct weir_library {
    const char *name;    /**< "ucx" */
    const char *version; /**< That it was built with; NULL: it is not in this build. */
    const char *package; /**< Of Debian: "libucx-dev". */
    const char *doc; /**< What an optional library brings; NULL: there is no build without it. */
};

extern const struct weir_library weir_libraries[];
extern const size_t weir_n_libraries;

/**
 * Is a library in this build?
 * @param name  Of the table.
 * @param what  What needs it, for the message: "transport ucx".
 * @return UNSUPPORTED with the package that brings it.
 */
weir_status weir_library_need(const char *name, const char *what,
                              struct weir_error *err) WEIR_MUST_CHECK;

/** "jansson 2.14, …": those that are in; or "ucx (libucx-dev: messages …)": those that are not; "" if there is
 *  none. In the arena. */
char *weir_libraries_text(bool is_in, struct weir_arena *arena);

/** Print "PROGRAM VERSION", and on lines of their own the libraries that are in and those that are not. */
void weir_version_print(const char *program);

#endif
