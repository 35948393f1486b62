/* A libnccl.so.2 for tests: it sums nothing, and answers what variables of the environment tell it to. */
#include "nn/backend/cuda/cuda_abi.h"

#include <stdlib.h>

#define EXPORT __attribute__((visibility("default")))

static unsigned told(const char *name, unsigned otherwise)
{
    const char *text = getenv(name);
    return text ? (unsigned)strtoul(text, NULL, 10) : otherwise;
}

/* What the test sees. */
EXPORT int fake_nccl_n_open, fake_nccl_n_asked;

static int communicator;

EXPORT nccl_result ncclGetVersion(int *version);
EXPORT nccl_result ncclGetUniqueId(nccl_id *id);
EXPORT nccl_result ncclCommInitRankConfig(nccl_comm *comm, int size, nccl_id id, int rank,
                                          nccl_config *config);
EXPORT nccl_result ncclCommGetAsyncError(nccl_comm comm, nccl_result *error);
EXPORT nccl_result ncclCommAbort(nccl_comm comm);
EXPORT nccl_result ncclAllReduce(const void *from, void *to, size_t n, unsigned type, unsigned op,
                                 nccl_comm comm, cu_stream stream);
EXPORT const char *ncclGetErrorString(nccl_result result);
EXPORT const char *ncclGetLastError(nccl_comm comm);

nccl_result ncclGetVersion(int *version)
{
    *version = (int)told("FAKE_NCCL_VERSION", 22304);
    return ncclSuccess;
}

nccl_result ncclGetUniqueId(nccl_id *id)
{
    *id = (nccl_id){{7}};
    return told("FAKE_NCCL_ID", ncclSuccess);
}

nccl_result ncclCommInitRankConfig(nccl_comm *comm, int size, nccl_id id, int rank,
                                   nccl_config *config)
{
    unsigned result = told("FAKE_NCCL_INIT", ncclInProgress);
    if (config->blocking != 0 || config->magic != NCCL_API_MAGIC || id.internal[0] != 7 ||
        rank < 0 || rank >= size) {
        abort();
    }
    if (result == ncclSuccess || result == ncclInProgress) {
        *comm = (nccl_comm)(void *)&communicator;
        fake_nccl_n_open++;
    }
    return result;
}

/* The third time that it is asked it is what it was told. */
nccl_result ncclCommGetAsyncError(nccl_comm comm, nccl_result *error)
{
    (void)comm;
    *error = ++fake_nccl_n_asked % 3 == 0 ? told("FAKE_NCCL_ASYNC", ncclSuccess) : ncclInProgress;
    return ncclSuccess;
}

nccl_result ncclCommAbort(nccl_comm comm)
{
    fake_nccl_n_open -= comm == (nccl_comm)(void *)&communicator;
    return ncclSuccess;
}

nccl_result ncclAllReduce(const void *from, void *to, size_t n, unsigned type, unsigned op,
                          nccl_comm comm, cu_stream stream)
{
    if (from != to || n == 0 || type != ncclFloat32 || op != ncclSum || !comm || !stream) {
        abort();
    }
    return told("FAKE_NCCL_SUM", ncclInProgress);
}

const char *ncclGetErrorString(nccl_result result)
{
    return result == ncclRemoteError ? "remote process exited" : "some error";
}

const char *ncclGetLastError(nccl_comm comm)
{
    (void)comm;
    return "the socket said so";
}
