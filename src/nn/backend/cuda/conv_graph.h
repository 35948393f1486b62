/**
 * A convolution as cuDNN's graph interface sees it: tensors, operations between them, and the
 * configurations of engines that may compute it. Nothing here needs a GPU when `device_properties`
 * stand for it, which is how the test looks whether every shape has engines.
 *
 * Errors: UNSUPPORTED (cuDNN does not take it; its words are in a log line), NOMEM.
 */
#ifndef WEIR_NN_CUDA_CONV_GRAPH_H
#define WEIR_NN_CUDA_CONV_GRAPH_H

#include "gpu.h"
#include "library.h"

/** Tensors in memory: what identifies them to cuDNN. */
enum conv_tensor {
    CONV_TENSOR_X = 1,
    CONV_TENSOR_W,
    CONV_TENSOR_Y,
    CONV_TENSOR_BIAS,
    CONV_TENSOR_RESIDUAL,
};

#define CONV_TENSORS_MAX     5
#define CONV_DESCRIPTORS_MAX 24
#define CONV_CONFIGS_MAX     64

/** Where a graph is to run: a handle, or, without a GPU, a descriptor of its properties. */
struct conv_device {
    const struct cudnn *dnn;
    cudnn_handle handle;                /**< Or NULL. */
    cudnn_descriptor device_properties; /**< Or NULL. */
};

struct conv_graph {
    struct conv_device device;
    cudnn_descriptor graph;
    cudnn_descriptor parts[CONV_DESCRIPTORS_MAX]; /**< All that it is made of, and itself. */
    int n_parts;
    int64_t tensors[CONV_TENSORS_MAX]; /**< Of enum conv_tensor: those in memory. */
    int n_tensors;
};

/** Configurations that may be used, the best guess first. */
struct conv_configs {
    cudnn_descriptor items[CONV_CONFIGS_MAX];
    int n;
};

weir_status conv_graph_build(const struct conv_device *device, const struct gpu_conv_shape *shape,
                             struct conv_graph *out) WEIR_MUST_CHECK;
void conv_graph_free(struct conv_graph *graph);

/**
 * Those engines that cuDNN proposes in `mode` (CUDNN_HEUR_MODE_…) and that compute as `type` says.
 * @return UNSUPPORTED: there is none.
 */
weir_status conv_graph_configs(const struct conv_graph *graph, unsigned mode, enum gpu_type type,
                               struct conv_configs *out) WEIR_MUST_CHECK;

/** Those that are NULL meanwhile belong to somebody else. */
void conv_configs_free(const struct cudnn *dnn, struct conv_configs *configs);

/** A plan that can be executed. The caller destroys the descriptor. */
weir_status conv_config_plan(const struct conv_device *device, cudnn_descriptor config,
                             cudnn_descriptor *out, size_t *out_workspace_bytes) WEIR_MUST_CHECK;

#endif
