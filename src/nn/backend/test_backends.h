/** The back-ends that tests compare, the slow and obvious one first, and how many may run here. */
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

/** Back-ends and precisions that tests go through. Those of f32 come first, in the order of
 *  backends. */
#define N_FORMS 4

static inline const struct weir_backend *form_backend(int i_form)
{
    return backends[i_form % 2];
}

static inline enum weir_precision form_precision(int i_form)
{
    return i_form / 2 ? WEIR_PRECISION_BF16 : WEIR_PRECISION_F32;
}

/** Can it run here? oneDNN needs instructions for bf16. */
static inline bool has_form(int i_form)
{
    bool is_onednn = i_form % 2 == 1;
    bool has_bf16 = false;
#if defined(__x86_64__)
    has_bf16 = __builtin_cpu_supports("avx512bf16");
#endif
    return !is_onednn || (N_BACKENDS > 1 && (i_form < 2 || has_bf16));
}

/** The convolution algorithm that tests of oneDNN in f32 use besides the direct one. */
static inline enum weir_convolution other_convolution(void)
{
    bool has_avx512 = false;
#if defined(__x86_64__)
    has_avx512 = __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
                 __builtin_cpu_supports("avx512bw");
#endif
    return has_avx512 ? WEIR_CONVOLUTION_WINOGRAD : WEIR_CONVOLUTION_AUTO;
}

/** The form after this one that can run here; the first after -1, N_FORMS after the last. */
static inline int next_form(int i_form)
{
    do {
        i_form++;
    } while (i_form < N_FORMS && !has_form(i_form));
    return i_form;
}

#endif
