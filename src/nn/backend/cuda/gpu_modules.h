/**
 * Kernels as a module for one GPU: compiled by NVRTC for its architecture, and kept in
 * $XDG_CACHE_HOME/weir (or ~/.cache/weir), so that NVRTC works once for each source, option and
 * release of its own. A cache that cannot be written is no error.
 *
 * Threads: any.
 */
#ifndef WEIR_NN_CUDA_MODULES_H
#define WEIR_NN_CUDA_MODULES_H

#include "library.h"

#include <stdbool.h>

/** What is compiled. Texts end with a NUL. */
struct module_source {
    const char *code;                /**< The text that includes the others. */
    const char *const *headers;      /**< Texts that can be included … */
    const char *const *header_names; /**< … by these names. */
    int n_headers;
    int arch;           /**< 90 for sm_90. */
    const char *option; /**< Of the compiler, "-DWEIR_GPU_BF16"; NULL: none. */
};

/** The kernels of this program, for the elements that the option says; NULL: f32. */
struct module_source module_source_of_kernels(int arch, const char *option);

/**
 * The module's image for cuModuleLoadData, from the cache or compiled.
 * @param nvrtc  NULL if it is not there: then only an image of the cache will do.
 * @param is_cache_trusted  false: compile again, and replace what the cache holds.
 * @param out  The caller frees it.
 * @return NOT_FOUND: not in the cache, and no NVRTC; INTERNAL: it does not compile, with the
 *         beginning of NVRTC's words (all of them are in a log line); NOMEM.
 */
weir_status module_image(const struct nvrtc *nvrtc, const struct module_source *source,
                         bool is_cache_trusted, void **out, size_t *out_bytes,
                         struct weir_error *err) WEIR_MUST_CHECK;

#endif
