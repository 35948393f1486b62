/* Kernels of linears for any x86-64; CMakeLists.txt has the flags. */
#define LINEAR_TABLE linear_kernels_v1
#include "linear_body.h"
