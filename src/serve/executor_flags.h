/** Executor flags: where and in what models are computed, as every program that serves them is told. */
#ifndef WEIR_SERVE_EXECUTOR_FLAGS_H
#define WEIR_SERVE_EXECUTOR_FLAGS_H

#include "serve/executor.h"

/** The member `executor` of a program's options. */
struct executor_flags {
    char *onnxruntime, *device, *precision;
};

/** Their rows, for a table of options. */
#define EXECUTOR_FLAGS(strct)                                                                      \
    WEIR_OPT(strct, executor.onnxruntime, "onnxruntime", 0, TEXT, NULL, 0, 0, "PATH",              \
             "The library onnxruntime, or its folder; default: the system's"),                     \
        WEIR_OPT(                                                                                  \
            strct, executor.device, "device", 0, TEXT, "auto", 0, 0, "WORD",                       \
            "Where models are computed: processor, gpu, or auto: on the GPU that the process "     \
            "was given, if any"),                                                                  \
        WEIR_OPT(strct, executor.precision, "precision", 0, TEXT, "f32", 0, 0, "WORD",             \
                 "What models that Weir trained are computed in: f32, bf16, or on a GPU tf32")

/** Into these options, which borrow the texts. @return INVALID, naming the words there are. */
weir_status executor_flags_read(const struct executor_flags *flags, struct executor_options *out,
                                struct weir_error *err) WEIR_MUST_CHECK;

#endif
