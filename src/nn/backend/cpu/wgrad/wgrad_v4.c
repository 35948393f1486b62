/* Weight gradients in f32 for AVX-512; CMakeLists.txt has the flags. */
#define WGRAD_TABLE wgrad_kernels_v4
#include "wgrad_body.h"
