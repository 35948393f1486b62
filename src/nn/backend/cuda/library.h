/**
 * Libraries of NVIDIA, loaded when a GPU is first opened. The folders of $WEIR_CUDA_LIBRARIES
 * (separated by colons) are tried first, then those of the loader. A loaded library stays: threads
 * of it may run until the process ends.
 *
 * Threads: any.
 */
#ifndef WEIR_NN_CUDA_LIBRARY_H
#define WEIR_NN_CUDA_LIBRARY_H

#include "cuda_abi.h"

#include "base/status.h"

struct cuda_driver {
#define X(member, symbol, arguments) cu_result(*member) arguments;
    CUDA_FUNCTIONS(X)
#undef X
};

struct nvrtc {
#define X(member, symbol, arguments) nvrtc_result(*member) arguments;
    NVRTC_FUNCTIONS(X)
#undef X
};

struct cudnn {
#define X(member, symbol, arguments) cudnn_status(*member) arguments;
    CUDNN_FUNCTIONS(X)
#undef X
#define X(member, symbol, result, arguments) result(*member) arguments;
    CUDNN_OTHER_FUNCTIONS(X)
#undef X
};

struct nccl {
#define X(member, symbol, arguments) nccl_result(*member) arguments;
    NCCL_FUNCTIONS(X)
#undef X
#define X(member, symbol, result, arguments) result(*member) arguments;
    NCCL_OTHER_FUNCTIONS(X)
#undef X
};

/**
 * Load one of them. `err` names the library, where it was looked for and what to do.
 * @return UNSUPPORTED: it is not there, or lacks a function.
 */
weir_status library_load_driver(struct cuda_driver *out, struct weir_error *err) WEIR_MUST_CHECK;
weir_status library_load_nvrtc(struct nvrtc *out, struct weir_error *err) WEIR_MUST_CHECK;

/** cuDNN looks for NVRTC itself: load NVRTC first, so that both use the same. Loads cuBLASLt too. */
weir_status library_load_cudnn(struct cudnn *out, struct weir_error *err) WEIR_MUST_CHECK;

/** Also UNSUPPORTED: it is older than 2.14, which could not give up waiting for a rank. */
weir_status library_load_nccl(struct nccl *out, struct weir_error *err) WEIR_MUST_CHECK;

#endif
