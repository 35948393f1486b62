#define EMULATED_TABLE emulated_kernels_f32
#include "emulated_kernels.h"
