/**
 * The part of onnxruntime's C interface that Weir uses, as its library has it (version 6 of the
 * interface, which is that of onnxruntime 1.6, and every later library has it too).
 *
 * OrtApi is a struct of pointers to functions, which new versions only append to. A function's
 * place in it never changes; places that Weir does not use are left out by count. Every function
 * that can fail returns a status, NULL for success, which the caller releases.
 *
 * The numbers of element types are those of ONNX and of enum weir_dtype.
 */
#ifndef WEIR_SERVE_ORT_API_H
#define WEIR_SERVE_ORT_API_H

#include <stddef.h>
#include <stdint.h>

#define ORT_INTERFACE 6

typedef struct ort_env ort_env;
typedef struct ort_status ort_status;
typedef struct ort_memory_info ort_memory_info;
typedef struct ort_session ort_session;
typedef struct ort_value ort_value;
typedef struct ort_type_info ort_type_info;
typedef struct ort_shape ort_shape; /**< OrtTensorTypeAndShapeInfo */
typedef struct ort_options ort_options;
typedef struct ort_metadata ort_metadata;
typedef struct ort_allocator ort_allocator;
typedef struct ort_arena ort_arena;

enum ort_code {
    ORT_CODE_OK,
    ORT_CODE_FAIL,
    ORT_CODE_INVALID_ARGUMENT,
    ORT_CODE_NO_FILE,
    ORT_CODE_NO_MODEL,
    ORT_CODE_ENGINE,
    ORT_CODE_EXCEPTION,
    ORT_CODE_INVALID_PROTOBUF,
    ORT_CODE_MODEL_LOADED,
    ORT_CODE_NOT_IMPLEMENTED,
    ORT_CODE_INVALID_GRAPH,
    ORT_CODE_PROVIDER,
};

#define ORT_LOG_FATAL       4
#define ORT_OPTIMIZE_ALL    99
#define ORT_TYPE_TENSOR     1 /* enum ONNXType */
#define ORT_ALLOCATOR_ARENA 1
#define ORT_MEMORY_DEFAULT  0

// clang-format off
struct ort_api {
    void *unused_0[1];
    int (*error_code)(const ort_status *);                                                      /* 1 */
    const char *(*error_message)(const ort_status *);
    ort_status *(*create_env)(int log_level, const char *log_id, ort_env **out);
    void *unused_4[4];
    ort_status *(*create_session)(const ort_env *, const void *bytes, size_t n, const ort_options *,
                                  ort_session **out);                                           /* 8 */
    ort_status *(*run)(ort_session *, const void *run_options, const char *const *in_names,
                       const ort_value *const *in, size_t n_in, const char *const *out_names,
                       size_t n_out, ort_value **out);
    ort_status *(*create_options)(ort_options **out);
    void *unused_11[12];
    ort_status *(*set_optimization)(ort_options *, int level);                                  /* 23 */
    ort_status *(*set_intra_threads)(ort_options *, int n);
    ort_status *(*set_inter_threads)(ort_options *, int n);
    void *unused_26[4];
    ort_status *(*n_inputs)(const ort_session *, size_t *out);                                  /* 30 */
    ort_status *(*n_outputs)(const ort_session *, size_t *out);
    void *unused_32[1];
    ort_status *(*input_type)(const ort_session *, size_t i, ort_type_info **out);              /* 33 */
    ort_status *(*output_type)(const ort_session *, size_t i, ort_type_info **out);
    void *unused_35[1];
    ort_status *(*input_name)(const ort_session *, size_t i, ort_allocator *, char **out);      /* 36 */
    ort_status *(*output_name)(const ort_session *, size_t i, ort_allocator *, char **out);
    void *unused_38[10];
    ort_status *(*create_tensor)(ort_allocator *, const int64_t *dims, size_t rank, int type,
                                 ort_value **out);                                              /* 48 */
    ort_status *(*wrap_tensor)(const ort_memory_info *, void *data, size_t bytes,
                               const int64_t *dims, size_t rank, int type, ort_value **out);
    ort_status *(*is_tensor)(const ort_value *, int *out);
    ort_status *(*tensor_data)(ort_value *, void **out);
    ort_status *(*fill_strings)(ort_value *, const char *const *texts, size_t n);
    ort_status *(*strings_bytes)(const ort_value *, size_t *out);
    ort_status *(*strings_content)(const ort_value *, void *out, size_t bytes, size_t *out_offsets,
                                   size_t n);
    ort_status *(*as_shape)(const ort_type_info *, const ort_shape **out); /* borrowed; NULL: no tensor */
    void *unused_56[4];
    ort_status *(*shape_type)(const ort_shape *, int *out);                                     /* 60 */
    ort_status *(*shape_rank)(const ort_shape *, size_t *out);
    ort_status *(*shape_dims)(const ort_shape *, int64_t *out, size_t rank);
    void *unused_63[2];
    ort_status *(*value_shape)(const ort_value *, ort_shape **out);                             /* 65 */
    void *unused_66[3];
    ort_status *(*create_memory_info)(int allocator, int memory, ort_memory_info **out);        /* 69 */
    void *unused_70[6];
    ort_status *(*allocator_free)(ort_allocator *, void *);                                     /* 76 */
    void *unused_77[1];
    ort_status *(*default_allocator)(ort_allocator **out);                                      /* 78 */
    void *unused_79[13];
    void (*release_env)(ort_env *);                                                             /* 92 */
    void (*release_status)(ort_status *);
    void (*release_memory_info)(ort_memory_info *);
    void (*release_session)(ort_session *);
    void (*release_value)(ort_value *);
    void *unused_97[1];
    void (*release_type_info)(ort_type_info *);                                                 /* 98 */
    void (*release_shape)(ort_shape *);
    void (*release_options)(ort_options *);
    void *unused_101[10];
    ort_status *(*session_metadata)(const ort_session *, ort_metadata **out);                   /* 111 */
    void *unused_112[4];
    ort_status *(*metadata_value)(const ort_metadata *, ort_allocator *, const char *key,
                                  char **out);                                                  /* 116 */
    void *unused_117[1];
    void (*release_metadata)(ort_metadata *);                                                   /* 118 */
    void *unused_119[6];
    ort_status *(*providers)(char ***out, int *out_n);                                          /* 125 */
    ort_status *(*release_providers)(char **, int n);
    void *unused_127[3];
    ort_status *(*set_entry)(ort_options *, const char *key, const char *value);                /* 130 */
    void *unused_131[13];
    ort_status *(*register_allocator)(ort_env *, const ort_memory_info *, const ort_arena *);   /* 144 */
    void *unused_145[11];
    ort_status *(*create_arena)(size_t max_bytes, int extend_strategy, int initial_chunk_bytes,
                                int max_dead_bytes, ort_arena **out);                           /* 156 */
    void (*release_arena)(ort_arena *);                                                         /* 157 */
};

// clang-format on

_Static_assert(offsetof(struct ort_api, release_options) == 100 * sizeof(void *),
               "the end of version 1 of the interface has its place");
_Static_assert(offsetof(struct ort_api, release_metadata) == 118 * sizeof(void *),
               "the end of version 2 of the interface has its place");
_Static_assert(offsetof(struct ort_api, release_providers) == 126 * sizeof(void *),
               "the end of version 4 of the interface has its place");
_Static_assert(offsetof(struct ort_api, release_arena) == 157 * sizeof(void *),
               "the end of version 6 of the interface has its place");

struct ort_api_base {
    const struct ort_api *(*get_api)(uint32_t interface); /**< NULL: the library is older. */
    const char *(*version)(void);                         /**< "1.21.0" */
};

/** OrtGetApiBase, by which the library is found. */
typedef const struct ort_api_base *(*ort_get_api_base_fn)(void);
/** OrtSessionOptionsAppendExecutionProvider_CUDA, which libraries with CUDA have. */
typedef ort_status *(*ort_append_cuda_fn)(ort_options *, int device);

#endif
