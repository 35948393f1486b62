/**
 * The back-end for GPUs, for its tests: the same on another implementation of the seam (gpu.h).
 */
#ifndef WEIR_NN_CUDA_BACKEND_H
#define WEIR_NN_CUDA_BACKEND_H

#include "gpu.h"
#include "nn/backend/op.h"

/** The GPUs of weir_cuda_backend. A test of what uses it by its name sets others before. */
extern const struct gpu_ops *cuda_gpus;

/** weir_backend.open on GPUs of these ops. */
weir_status cuda_open_on(const struct gpu_ops *ops, const struct weir_net_config *config,
                         void **out_context, struct weir_error *err);

#endif
