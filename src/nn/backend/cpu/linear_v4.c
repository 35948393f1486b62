/* Kernels of linears for AVX-512; CMakeLists.txt has the flags. */
#define LINEAR_TABLE linear_kernels_v4
#include "linear_body.h"
