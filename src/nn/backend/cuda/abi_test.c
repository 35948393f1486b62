/* cuda_abi.h says what NVIDIA's headers say. Compiled only where the headers are (CMake looks for
 * them); all of it happens while it is compiled. */
#define CUDNN_WARN_DEPRECATED 0
#include <cuda.h>
#include <cudnn.h>
#include <nvrtc.h>

#define WEIR_CUDA_ABI_TEST
#include "cuda_abi.h"

#include <stdio.h>

#define X(name, number) _Static_assert((name) == (number), #name);
CUDA_CONSTANTS(X)
NVRTC_CONSTANTS(X)
CUDNN_CONSTANTS(X)
#undef X

#define SAME(symbol, type) _Static_assert(_Generic(&symbol, type : 1, default : 0), #symbol)

#define X(member, symbol, arguments) SAME(symbol, cu_result(*) arguments);
CUDA_FUNCTIONS(X)
#undef X
#define X(member, symbol, arguments) SAME(symbol, nvrtc_result(*) arguments);
NVRTC_FUNCTIONS(X)
#undef X
#define X(member, symbol, arguments) SAME(symbol, cudnn_status(*) arguments);
CUDNN_FUNCTIONS(X)
#undef X
#define X(member, symbol, result, arguments) SAME(symbol, result(*) arguments);
CUDNN_OTHER_FUNCTIONS(X)
#undef X

int main(void)
{
    (void)puts("cuda_abi.h is as NVIDIA's headers");
    return 0;
}
