/* Vector kernels for AVX-512; CMakeLists.txt has the flags. */
#define VECTOR_TABLE vector_kernels_v4
#include "vector_body.h"
