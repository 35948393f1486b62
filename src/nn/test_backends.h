/** The back-ends that tests compare, slow and obvious first, and how many of them may run here. */
#ifndef WEIR_NN_TEST_BACKENDS_H
#define WEIR_NN_TEST_BACKENDS_H

#include "nn/nn.h"

#if defined(__SANITIZE_THREAD__)
#define IS_THREAD_SANITIZED 1 /* oneDNN's OpenMP run-time is not instrumented */
#else
#define IS_THREAD_SANITIZED 0
#endif

#define N_BACKENDS (IS_THREAD_SANITIZED ? 1 : 2)

static const struct weir_backend *const backends[2] = {&weir_reference_backend,
                                                       &weir_onednn_backend};

#endif
