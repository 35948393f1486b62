/* Weight gradients of bf16 tensors for AVX-512 with bfloat16; CMakeLists.txt has the flags. */
#define WGRAD_TABLE wgrad_kernels_bf16
#define VECTOR_IS_BF16
#include "wgrad_body.h"
