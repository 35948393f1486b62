/* Vector kernels for any x86-64; CMakeLists.txt has the flags. */
#define VECTOR_TABLE vector_kernels_v1
#include "vector_body.h"
