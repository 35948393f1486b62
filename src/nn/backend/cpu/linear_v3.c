/* Kernels of linears for AVX2 and FMA; CMakeLists.txt has the flags. */
#define LINEAR_TABLE linear_kernels_v3
#include "linear_body.h"
