#define WEIR_GPU_BF16
#define EMULATED_TABLE emulated_kernels_bf16
#include "emulated_kernels.h"
