#define WEIR_GPU_F16
#define EMULATED_TABLE emulated_kernels_f16
#include "emulated_kernels.h"
