/** What the kinds of executors share. */
#ifndef WEIR_SERVE_EXECUTOR_PRIVATE_H
#define WEIR_SERVE_EXECUTOR_PRIVATE_H

#include "serve/executor.h"

#include "base/buf.h"
#include "nn/nn.h"

#define WEIR_KIND(name) extern const struct weir_kind weir_executor_##name##_kind;
#include "serve/executors.def"
#undef WEIR_KIND

#define EXECUTOR_MEMORY_BYTES ((size_t)8 << 30)

/** Places of a model. */
#define EXECUTOR_ON_PROCESSOR "the processor"
#define EXECUTOR_ON_GPU       "the GPU"

/** A file's bytes, as long as it is mapped. */
struct model_bytes {
    const void *at;
    size_t n;
    struct weir_buf reshaped; /**< What at points to, where inputs have other shapes. */
};

/** Maps a file of at most SERVE_MODEL_MAX_BYTES. @return NOT_FOUND, DENIED, IO, LIMIT; INVALID: it
 *  is no regular file, or it is empty. */
weir_status model_bytes_map(const char *path, struct model_bytes *out,
                            struct weir_error *err) WEIR_MUST_CHECK;
/** The same of an ONNX file; its inputs have the shapes of the options. @return CORRUPT, LIMIT, NOMEM too. */
weir_status model_bytes_map_onnx(const char *path, const struct executor_options *options,
                                 struct model_bytes *out, struct weir_error *err) WEIR_MUST_CHECK;
void model_bytes_unmap(struct model_bytes *bytes);

/** The precision that options ask for. @return INVALID, naming the words there are. */
weir_status executor_precision(const struct executor_options *options, enum weir_precision *out,
                               struct weir_error *err) WEIR_MUST_CHECK;

/** Threads that options ask for: at least 1. */
int32_t executor_threads(const struct executor_options *options);

#endif
