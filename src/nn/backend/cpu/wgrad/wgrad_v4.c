/* Weight gradients in f32 for AVX-512; CMakeLists.txt has the flags. */
#define PRODUCT_TABLE product_kernels_v4
#include "wgrad_body.h"
