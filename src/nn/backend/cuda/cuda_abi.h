/**
 * The part of the public binary interfaces of NVIDIA's libraries that Weir calls: the driver
 * (libcuda), NVRTC, cuDNN 9 and NCCL 2. Names, numbers and layouts are NVIDIA's. The libraries are loaded at
 * run time (library.h), so nothing of them is needed to build; abi_test.c compares this file with
 * their headers where they are installed.
 *
 * Their enumerations are `unsigned` here, which is how they are passed.
 */
#ifndef WEIR_NN_CUDA_ABI_H
#define WEIR_NN_CUDA_ABI_H

#include <stddef.h>
#include <stdint.h>

/* ---- the driver ------------------------------------------------------------------------------ */

typedef unsigned cu_result;
typedef int cu_device;
typedef unsigned long long cu_address;
typedef struct CUctx_st *cu_context;
typedef struct CUstream_st *cu_stream;
typedef struct CUevent_st *cu_event;
typedef struct CUmod_st *cu_module;
typedef struct CUfunc_st *cu_function;
typedef struct CUgraph_st *cu_graph;
typedef struct CUgraphExec_st *cu_graph_exec;

/* X(name, number) */
#define CUDA_CONSTANTS(X)                                                                          \
    X(CUDA_SUCCESS, 0)                                                                             \
    X(CUDA_ERROR_OUT_OF_MEMORY, 2)                                                                 \
    X(CUDA_ERROR_NOT_READY, 600) /* NVIDIA's word, an old word here */                             \
    X(CU_STREAM_NON_BLOCKING, 1)                                                                   \
    X(CU_EVENT_DEFAULT, 0)                                                                         \
    X(CU_EVENT_DISABLE_TIMING, 2)                                                                  \
    X(CU_STREAM_CAPTURE_MODE_RELAXED, 2)                                                           \
    X(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 75)                                            \
    X(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 76)

/** The queue is not done yet. */
#define CUDA_IS_BUSY CUDA_ERROR_NOT_READY /* NVIDIA's word, an old word here */

/* X(member, symbol, arguments): all return cu_result. */
#define CUDA_FUNCTIONS(X)                                                                          \
    X(init, cuInit, (unsigned flags))                                                              \
    X(error_string, cuGetErrorString, (cu_result result, const char **text))                       \
    X(driver_version, cuDriverGetVersion, (int *version))                                          \
    X(device_count, cuDeviceGetCount, (int *n))                                                    \
    X(device_get, cuDeviceGet, (cu_device * device, int index))                                    \
    X(device_name, cuDeviceGetName, (char *name, int size, cu_device device))                      \
    X(device_pci, cuDeviceGetPCIBusId, (char *id, int size, cu_device device))                     \
    X(device_attribute, cuDeviceGetAttribute, (int *value, unsigned attribute, cu_device device))  \
    X(context_retain, cuDevicePrimaryCtxRetain, (cu_context * context, cu_device device))          \
    X(context_release, cuDevicePrimaryCtxRelease_v2, (cu_device device))                           \
    X(context_set, cuCtxSetCurrent, (cu_context context))                                          \
    X(memory_info, cuMemGetInfo_v2, (size_t * n_free, size_t * n_total))                           \
    X(alloc, cuMemAlloc_v2, (cu_address * at, size_t size))                                        \
    X(free, cuMemFree_v2, (cu_address at))                                                         \
    X(host_alloc, cuMemHostAlloc, (void **at, size_t size, unsigned flags))                        \
    X(host_free, cuMemFreeHost, (void *at))                                                        \
    X(upload, cuMemcpyHtoDAsync_v2,                                                                \
      (cu_address to, const void *from, size_t size, cu_stream stream))                            \
    X(download, cuMemcpyDtoHAsync_v2, (void *to, cu_address from, size_t size, cu_stream stream))  \
    X(copy, cuMemcpyDtoDAsync_v2, (cu_address to, cu_address from, size_t size, cu_stream stream)) \
    X(set_8, cuMemsetD8Async, (cu_address at, unsigned char value, size_t n, cu_stream stream))    \
    X(set_32, cuMemsetD32Async, (cu_address at, unsigned value, size_t n, cu_stream stream))       \
    X(stream_create, cuStreamCreate, (cu_stream * stream, unsigned flags))                         \
    X(stream_destroy, cuStreamDestroy_v2, (cu_stream stream))                                      \
    X(stream_wait, cuStreamSynchronize, (cu_stream stream))                                        \
    X(stream_query, cuStreamQuery, (cu_stream stream))                                             \
    X(capture_begin, cuStreamBeginCapture_v2, (cu_stream stream, unsigned mode))                   \
    X(capture_end, cuStreamEndCapture, (cu_stream stream, cu_graph * graph))                       \
    X(graph_instantiate, cuGraphInstantiateWithFlags,                                              \
      (cu_graph_exec * exec, cu_graph graph, unsigned long long flags))                            \
    X(graph_destroy, cuGraphDestroy, (cu_graph graph))                                             \
    X(graph_exec_destroy, cuGraphExecDestroy, (cu_graph_exec exec))                                \
    X(graph_launch, cuGraphLaunch, (cu_graph_exec exec, cu_stream stream))                         \
    X(event_create, cuEventCreate, (cu_event * event, unsigned flags))                             \
    X(event_destroy, cuEventDestroy_v2, (cu_event event))                                          \
    X(event_record, cuEventRecord, (cu_event event, cu_stream stream))                             \
    X(event_wait, cuEventSynchronize, (cu_event event))                                            \
    X(stream_wait_event, cuStreamWaitEvent, (cu_stream stream, cu_event event, unsigned flags))    \
    X(event_elapsed, cuEventElapsedTime, (float *ms, cu_event begin, cu_event end))                \
    X(module_load, cuModuleLoadData, (cu_module * module, const void *image))                      \
    X(module_unload, cuModuleUnload, (cu_module module))                                           \
    X(module_function, cuModuleGetFunction,                                                        \
      (cu_function * function, cu_module module, const char *name))                                \
    X(launch, cuLaunchKernel,                                                                      \
      (cu_function function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,  \
       unsigned block_y, unsigned block_z, unsigned shared_bytes, cu_stream stream,                \
       void **parameters, void **extra))

/* ---- NVRTC: the compiler of kernels ---------------------------------------------------------- */

typedef unsigned nvrtc_result;
typedef struct _nvrtcProgram *nvrtc_program;

#define NVRTC_CONSTANTS(X) X(NVRTC_SUCCESS, 0)

/* X(member, symbol, arguments): all return nvrtc_result. */
#define NVRTC_FUNCTIONS(X)                                                                         \
    X(version, nvrtcVersion, (int *major, int *minor))                                             \
    X(create, nvrtcCreateProgram,                                                                  \
      (nvrtc_program * program, const char *source, const char *name, int n_headers,               \
       const char *const *headers, const char *const *header_names))                               \
    X(destroy, nvrtcDestroyProgram, (nvrtc_program * program))                                     \
    X(compile, nvrtcCompileProgram,                                                                \
      (nvrtc_program program, int n_options, const char *const *options))                          \
    X(cubin_size, nvrtcGetCUBINSize, (nvrtc_program program, size_t * size))                       \
    X(cubin, nvrtcGetCUBIN, (nvrtc_program program, char *cubin))                                  \
    X(log_size, nvrtcGetProgramLogSize, (nvrtc_program program, size_t * size))                    \
    X(log, nvrtcGetProgramLog, (nvrtc_program program, char *log))

/* ---- cuDNN 9: the graph interface ------------------------------------------------------------ */

typedef unsigned cudnn_status;
typedef struct cudnnContext *cudnn_handle;
typedef void *cudnn_descriptor;

#define CUDNN_CONSTANTS(X)                                                                         \
    X(CUDNN_STATUS_SUCCESS, 0)                                                                     \
    /* Types of elements. */                                                                       \
    X(CUDNN_DATA_FLOAT, 0)                                                                         \
    X(CUDNN_DATA_HALF, 2)                                                                          \
    X(CUDNN_DATA_BFLOAT16, 9)                                                                      \
    X(CUDNN_CROSS_CORRELATION, 1)                                                                  \
    X(CUDNN_POINTWISE_ADD, 0)                                                                      \
    X(CUDNN_POINTWISE_RELU_FWD, 100)                                                               \
    X(CUDNN_PROPAGATE_NAN, 1)                                                                      \
    X(CUDNN_HEUR_MODE_FALLBACK, 2)                                                                 \
    X(CUDNN_HEUR_MODE_A, 3)                                                                        \
    /* What an engine says of its numbers. */                                                      \
    X(CUDNN_NUMERICAL_NOTE_TENSOR_CORE, 0)                                                         \
    X(CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS, 1)                                                 \
    X(CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION, 2)                                         \
    /* Types of attributes. */                                                                     \
    X(CUDNN_TYPE_HANDLE, 0)                                                                        \
    X(CUDNN_TYPE_DATA_TYPE, 1)                                                                     \
    X(CUDNN_TYPE_BOOLEAN, 2)                                                                       \
    X(CUDNN_TYPE_INT64, 3)                                                                         \
    X(CUDNN_TYPE_FLOAT, 4)                                                                         \
    X(CUDNN_TYPE_VOID_PTR, 6)                                                                      \
    X(CUDNN_TYPE_CONVOLUTION_MODE, 7)                                                              \
    X(CUDNN_TYPE_HEUR_MODE, 8)                                                                     \
    X(CUDNN_TYPE_NAN_PROPOGATION, 10)                                                              \
    X(CUDNN_TYPE_NUMERICAL_NOTE, 11)                                                               \
    X(CUDNN_TYPE_POINTWISE_MODE, 14)                                                               \
    X(CUDNN_TYPE_BACKEND_DESCRIPTOR, 15)                                                           \
    X(CUDNN_TYPE_CHAR, 24)                                                                         \
    /* Types of descriptors. */                                                                    \
    X(CUDNN_BACKEND_POINTWISE_DESCRIPTOR, 0)                                                       \
    X(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR, 1)                                                     \
    X(CUDNN_BACKEND_ENGINE_DESCRIPTOR, 2)                                                          \
    X(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, 3)                                                       \
    X(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, 4)                                                      \
    X(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, 5)                                                  \
    X(CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR, 10)                                  \
    X(CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR, 11)                          \
    X(CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR, 12)                            \
    X(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, 13)                                            \
    X(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR, 15)                                                 \
    X(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, 16)                                                   \
    X(CUDNN_BACKEND_TENSOR_DESCRIPTOR, 17)                                                         \
    X(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR, 38)                                                     \
    /* Attributes. */                                                                              \
    X(CUDNN_ATTR_POINTWISE_MODE, 0)                                                                \
    X(CUDNN_ATTR_POINTWISE_MATH_PREC, 1)                                                           \
    X(CUDNN_ATTR_POINTWISE_NAN_PROPAGATION, 2)                                                     \
    X(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, 100)                                                       \
    X(CUDNN_ATTR_CONVOLUTION_CONV_MODE, 101)                                                       \
    X(CUDNN_ATTR_CONVOLUTION_DILATIONS, 102)                                                       \
    X(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, 103)                                                  \
    X(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, 104)                                                   \
    X(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, 105)                                                    \
    X(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, 106)                                                    \
    X(CUDNN_ATTR_ENGINEHEUR_MODE, 200)                                                             \
    X(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, 201)                                                  \
    X(CUDNN_ATTR_ENGINEHEUR_RESULTS, 202)                                                          \
    X(CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, 204)                                                       \
    X(CUDNN_ATTR_ENGINECFG_ENGINE, 300)                                                            \
    X(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, 400)                                                       \
    X(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, 401)                                                \
    X(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, 402)                                               \
    X(CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, 407)                                                   \
    X(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA, 700)                                         \
    X(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA, 701)                                          \
    X(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC, 702)                                     \
    X(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, 703)                                             \
    X(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, 704)                                             \
    X(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y, 705)                                             \
    X(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA, 706)                                        \
    X(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA, 707)                                         \
    X(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC, 708)                                    \
    X(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W, 709)                                            \
    X(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX, 710)                                           \
    X(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY, 711)                                           \
    X(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA, 712)                                      \
    X(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA, 713)                                       \
    X(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC, 714)                                  \
    X(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW, 715)                                         \
    X(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X, 716)                                          \
    X(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY, 717)                                         \
    X(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, 750)                                           \
    X(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, 751)                                                   \
    X(CUDNN_ATTR_OPERATION_POINTWISE_BDESC, 752)                                                   \
    X(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, 753)                                                   \
    X(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, 800)                                                       \
    X(CUDNN_ATTR_OPERATIONGRAPH_OPS, 801)                                                          \
    X(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, 900)                                                       \
    X(CUDNN_ATTR_TENSOR_DATA_TYPE, 901)                                                            \
    X(CUDNN_ATTR_TENSOR_DIMENSIONS, 902)                                                           \
    X(CUDNN_ATTR_TENSOR_STRIDES, 903)                                                              \
    X(CUDNN_ATTR_TENSOR_UNIQUE_ID, 906)                                                            \
    X(CUDNN_ATTR_TENSOR_IS_VIRTUAL, 907)                                                           \
    X(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, 1000)                                                    \
    X(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, 1001)                                                 \
    X(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, 1003)                                                     \
    X(CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, 1303)                                                      \
    X(CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, 2702)

/* X(member, symbol, arguments): all return cudnn_status. */
#define CUDNN_FUNCTIONS(X)                                                                         \
    X(create, cudnnCreate, (cudnn_handle * handle))                                                \
    X(destroy, cudnnDestroy, (cudnn_handle handle))                                                \
    X(set_stream, cudnnSetStream, (cudnn_handle handle, cu_stream stream))                         \
    X(descriptor_create, cudnnBackendCreateDescriptor,                                             \
      (unsigned type, cudnn_descriptor *descriptor))                                               \
    X(descriptor_destroy, cudnnBackendDestroyDescriptor, (cudnn_descriptor descriptor))            \
    X(finalize, cudnnBackendFinalize, (cudnn_descriptor descriptor))                               \
    X(set, cudnnBackendSetAttribute,                                                               \
      (cudnn_descriptor descriptor, unsigned attribute, unsigned type, int64_t n,                  \
       const void *values))                                                                        \
    X(get, cudnnBackendGetAttribute,                                                               \
      (const cudnn_descriptor descriptor, unsigned attribute, unsigned type, int64_t n_wanted,     \
       int64_t *n, void *values))                                                                  \
    X(execute, cudnnBackendExecute,                                                                \
      (cudnn_handle handle, cudnn_descriptor plan, cudnn_descriptor variant_pack))

/* Three functions of another form: X(member, symbol, result, arguments). */
#define CUDNN_OTHER_FUNCTIONS(X)                                                                   \
    X(version, cudnnGetVersion, size_t, (void))                                                    \
    X(error_string, cudnnGetErrorString, const char *, (cudnn_status status))                      \
    X(last_error, cudnnGetLastErrorString, void, (char *text, size_t size))

/* ---- NCCL 2: sums over GPUs ------------------------------------------------------------------ */

typedef unsigned nccl_result;

#define NCCL_ID_BYTES 128

/** 2.14, as ncclGetVersion tells it: the first whose calls need not block. */
#define NCCL_VERSION_MIN 21400

/* abi_test.c has the types from NVIDIA's header, to compare functions that take them by value. */
#ifndef WEIR_CUDA_ABI_TEST
typedef struct ncclComm *nccl_comm;

typedef struct {
    char internal[NCCL_ID_BYTES];
} nccl_id;

typedef struct nccl_config_2_14 nccl_config;
#endif

/** The communicator's configuration as NCCL 2.14 had it: `size` and `version` tell later ones that the
 *  rest is left at its default. */
struct nccl_config_2_14 {
    size_t size;
    unsigned magic, version;
    int blocking;
};

#define NCCL_CONSTANTS(X)                                                                          \
    X(ncclSuccess, 0)                                                                              \
    X(ncclRemoteError, 6)                                                                          \
    X(ncclInProgress, 7)                                                                           \
    X(ncclFloat32, 7)                                                                              \
    X(ncclSum, 0)                                                                                  \
    X(NCCL_API_MAGIC, 0xcafebeef)

/* X(member, symbol, arguments): all return nccl_result. */
#define NCCL_FUNCTIONS(X)                                                                          \
    X(version, ncclGetVersion, (int *version))                                                     \
    X(make_id, ncclGetUniqueId, (nccl_id * id))                                                    \
    X(init, ncclCommInitRankConfig,                                                                \
      (nccl_comm * comm, int size, nccl_id id, int rank, nccl_config *config))                     \
    X(async_error, ncclCommGetAsyncError, (nccl_comm comm, nccl_result * error))                   \
    X(abort, ncclCommAbort, (nccl_comm comm))                                                      \
    X(all_reduce, ncclAllReduce,                                                                   \
      (const void *from, void *to, size_t n, unsigned type, unsigned op, nccl_comm comm,           \
       cu_stream stream))

/* Functions of another form: X(member, symbol, result, arguments). */
#define NCCL_OTHER_FUNCTIONS(X)                                                                    \
    X(error_string, ncclGetErrorString, const char *, (nccl_result result))                        \
    X(last_error, ncclGetLastError, const char *, (nccl_comm comm))

/* abi_test.c has the constants from NVIDIA's headers. */
#ifndef WEIR_CUDA_ABI_TEST
#define X(name, number) name = (number),

enum { CUDA_CONSTANTS(X) NVRTC_CONSTANTS(X) CUDNN_CONSTANTS(X) };

enum { NCCL_CONSTANTS(X) };

#undef X
#endif

#endif
