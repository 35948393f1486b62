/* Vector kernels for AVX2 and FMA; CMakeLists.txt has the flags. */
#define VECTOR_TABLE vector_kernels_v3
#include "vector_body.h"
