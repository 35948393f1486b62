/* cuda_abi.h says what NVIDIA's headers say. Compiled only where the headers are (CMake looks for
 * them); all of it happens while it is compiled. */
#define CUDNN_WARN_DEPRECATED 0
#include <cuda.h>
#include <cudnn.h>
#ifdef WEIR_HAVE_NCCL_H
#include <nccl.h>
#endif
#include <nvrtc.h>

#define WEIR_CUDA_ABI_TEST
#ifdef WEIR_HAVE_NCCL_H
typedef ncclComm_t nccl_comm;
typedef ncclUniqueId nccl_id;
typedef ncclConfig_t nccl_config;
#endif
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

#ifdef WEIR_HAVE_NCCL_H
#define X(name, number) _Static_assert((unsigned)(name) == (unsigned)(number), #name);
NCCL_CONSTANTS(X)
#undef X
#define X(member, symbol, arguments) SAME(symbol, nccl_result(*) arguments);
NCCL_FUNCTIONS(X)
#undef X
#define X(member, symbol, result, arguments) SAME(symbol, result(*) arguments);
NCCL_OTHER_FUNCTIONS(X)
#undef X
#define SAME_PLACE(member)                                                                         \
    _Static_assert(offsetof(struct nccl_config_2_14, member) == offsetof(ncclConfig_t, member),    \
                   #member)
SAME_PLACE(size);
SAME_PLACE(magic);
SAME_PLACE(version);
SAME_PLACE(blocking);
_Static_assert(sizeof(ncclUniqueId) == NCCL_ID_BYTES, "ncclUniqueId");
#endif

int main(void)
{
    (void)puts("cuda_abi.h is as NVIDIA's headers");
    return 0;
}
