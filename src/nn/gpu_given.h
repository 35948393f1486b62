/**
 * GPU given: what the agent, or another that starts a process, gives it of the machine's GPUs.
 *
 *     CUDA_VISIBLE_DEVICES   the GPUs; empty or "-1" where the process has none
 *     WEIR_DEVICE_MEMORY     of a share of a GPU, how many bytes the process may take there
 *
 * Threads: any, as long as none changes the environment.
 */
#ifndef WEIR_NN_GPU_GIVEN_H
#define WEIR_NN_GPU_GIVEN_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>

/** Does CUDA_VISIBLE_DEVICES name a GPU? Without the variable nobody has given one. */
bool weir_gpu_is_given(void);

/**
 * Bytes of the GPU's memory that this process may take, of WEIR_DEVICE_MEMORY.
 * @param out  0: all there is.
 * @return INVALID: it is no number of bytes.
 */
weir_status weir_gpu_memory_given(size_t *out, struct weir_error *err) WEIR_MUST_CHECK;

#endif
