/**
 * onnxruntime's library: found, loaded once for the process, and its errors as ours.
 *
 * The library is the file that the configuration names, or libonnxruntime.so in a folder that it
 * names (as onnxruntime/capi of the Python package), else the system's: what the loader finds, or
 * libonnxruntime.so* in /usr/lib and /usr/local/lib.
 *
 * All models of a process share one arena of memory, whose bound is that of the first model.
 *
 * Threads: any.
 */
#ifndef WEIR_SERVE_ORT_LIBRARY_H
#define WEIR_SERVE_ORT_LIBRARY_H

#include "ort_api.h"

#include "base/status.h"

#include <stdbool.h>

struct ort_library {
    const struct ort_api *api;
    const char *version;
    ort_env *env;
    ort_memory_info *memory;
    ort_allocator *allocator;
    ort_append_cuda_fn append_cuda; /**< NULL: this library has no CUDA. */
    bool has_arena;                 /**< The env has an allocator with a bound. */
};

/**
 * The library, which stays loaded until the process ends.
 * @param path         File or folder; NULL or "": the system's.
 * @param memory_max_bytes  Of the arena, if this call loads the library.
 * @return NOT_FOUND: there is none, with what to install or set. INVALID: the file is no onnxruntime.
 *         UNSUPPORTED: it is too old. CONFLICT: another one is loaded.
 */
weir_status ort_library_get(const char *path, size_t memory_max_bytes,
                            const struct ort_library **out, struct weir_error *err) WEIR_MUST_CHECK;

/** A failure of the library as ours: its message, and `status`; the library's status is released.
 *  NULL is success. */
weir_status ort_check(const struct ort_library *library, ort_status *failure, weir_status status,
                      struct weir_error *err) WEIR_MUST_CHECK;

/** Releases a status that nobody asks for. NULL is accepted. */
void ort_ignore(const struct ort_library *library, ort_status *failure);

#endif
