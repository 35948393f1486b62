/* Vector kernels for tensors of bf16, which only processors with instructions for it are asked to
 * run; CMakeLists.txt has the flags. */
#define VECTOR_TABLE vector_kernels_bf16
#define VECTOR_IS_BF16
#include "vector_body.h"
