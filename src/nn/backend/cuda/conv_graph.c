#include "conv_graph.h"

#include "base/log.h"
#include "base/macros.h"

#define ALIGNMENT_BYTES  16
#define FIRST_VIRTUAL_ID 100
#define OPERATIONS_MAX   4
#define NUMERICAL_NOTES  32
#define NOTE_BIT(note)   (1u << (note))

/* Under construction: after the first call that fails, the rest do nothing. */
struct builder {
    const struct cudnn *dnn;
    struct conv_graph *graph;
    cudnn_status status;
    const char *call; /* The one that failed. */
    cudnn_descriptor operations[OPERATIONS_MAX];
    int n_operations;
    int64_t next_virtual_id;
    unsigned io_type;
};

/** N, C, H, W, or K, C, R, S. In memory the last three are H, W, C. */
struct dims {
    int64_t d[4];
};

/** Says what cuDNN says in a log line (debug) and returns UNSUPPORTED, or NOMEM. */
static weir_status say_refused(const struct cudnn *dnn, cudnn_status status, const char *call)
{
    char text[512] = "";
    dnn->last_error(text, sizeof text);
    text[sizeof text - 1] = '\0';
    weir_log(WEIR_LOG_DEBUG, "say_refused", WEIR_KV_STR("call", call), WEIR_KV_INT("error", status),
             WEIR_KV_STR("name", dnn->error_string(status)), WEIR_KV_STR("reason", text));
    return WEIR_ERR_UNSUPPORTED;
}

static void note_status(struct builder *b, cudnn_status status, const char *call)
{
    if (b->status == CUDNN_STATUS_SUCCESS && status != CUDNN_STATUS_SUCCESS) {
        b->status = status;
        b->call = call;
    }
}

static cudnn_descriptor begin(struct builder *b, unsigned type)
{
    cudnn_descriptor descriptor = NULL;
    if (b->status != CUDNN_STATUS_SUCCESS || b->graph->n_parts == CONV_DESCRIPTORS_MAX) {
        return NULL;
    }
    note_status(b, b->dnn->descriptor_create(type, &descriptor), "create");
    if (b->status == CUDNN_STATUS_SUCCESS) {
        b->graph->parts[b->graph->n_parts++] = descriptor;
    }
    return descriptor;
}

static void set(struct builder *b, cudnn_descriptor descriptor, unsigned attribute, unsigned type,
                int64_t n, const void *values)
{
    if (b->status == CUDNN_STATUS_SUCCESS) {
        note_status(b, b->dnn->set(descriptor, attribute, type, n, values), "set");
    }
}

static void set_int(struct builder *b, cudnn_descriptor descriptor, unsigned attribute,
                    int64_t value)
{
    set(b, descriptor, attribute, CUDNN_TYPE_INT64, 1, &value);
}

/* Enumerations, each with a type of its own. */
static void set_enum(struct builder *b, cudnn_descriptor descriptor, unsigned attribute,
                     unsigned type, unsigned value)
{
    set(b, descriptor, attribute, type, 1, &value);
}

static void set_part(struct builder *b, cudnn_descriptor descriptor, unsigned attribute,
                     cudnn_descriptor part)
{
    set(b, descriptor, attribute, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &part);
}

static void end(struct builder *b, cudnn_descriptor descriptor, const char *what)
{
    if (b->status == CUDNN_STATUS_SUCCESS) {
        note_status(b, b->dnn->finalize(descriptor), what);
    }
}

/* ---- tensors --------------------------------------------------------------------------------- */

static cudnn_descriptor tensor(struct builder *b, struct dims dims, unsigned data_type, int64_t id,
                               bool is_virtual)
{
    const int64_t *d = dims.d;
    int64_t strides[4] = {d[1] * d[2] * d[3], 1, d[1] * d[3], d[1]};
    cudnn_descriptor descriptor = begin(b, CUDNN_BACKEND_TENSOR_DESCRIPTOR);
    set_enum(b, descriptor, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, data_type);
    set(b, descriptor, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 4, d);
    set(b, descriptor, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, 4, strides);
    set_int(b, descriptor, CUDNN_ATTR_TENSOR_UNIQUE_ID, id);
    set_int(b, descriptor, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, ALIGNMENT_BYTES);
    if (is_virtual) {
        set(b, descriptor, CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, 1, &is_virtual);
    }
    end(b, descriptor, "tensor");
    return descriptor;
}

static cudnn_descriptor tensor_in_memory(struct builder *b, struct dims dims, enum conv_tensor id)
{
    b->graph->tensors[b->graph->n_tensors++] = id;
    return tensor(b, dims, b->io_type, id, false);
}

/* Between two operations, in f32: never in memory. */
static cudnn_descriptor tensor_between(struct builder *b, struct dims dims)
{
    return tensor(b, dims, CUDNN_DATA_FLOAT, b->next_virtual_id++, true);
}

/* ---- operations ------------------------------------------------------------------------------ */

static cudnn_descriptor convolution(struct builder *b, const struct gpu_conv_shape *shape)
{
    int64_t pads[2] = {shape->pad_h, shape->pad_w};
    int64_t strides[2] = {shape->stride, shape->stride};
    int64_t dilations[2] = {shape->dilation, shape->dilation};
    cudnn_descriptor descriptor = begin(b, CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
    set_enum(b, descriptor, CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE,
             CUDNN_DATA_FLOAT);
    set_enum(b, descriptor, CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE,
             CUDNN_CROSS_CORRELATION);
    set_int(b, descriptor, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, 2);
    set(b, descriptor, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_TYPE_INT64, 2, pads);
    set(b, descriptor, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_TYPE_INT64, 2, pads);
    set(b, descriptor, CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64, 2, dilations);
    set(b, descriptor, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64, 2, strides);
    end(b, descriptor, "convolution");
    return descriptor;
}

/** What the three operations call their attributes. */
struct operation_names {
    unsigned type, x, w, y, conv, alpha, beta;
};

static const struct operation_names operation_names[] = {
    [GPU_CONV_FORWARD] = {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
                          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
                          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
                          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
                          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
                          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
                          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA},
    [GPU_CONV_INPUT_GRADIENT] = {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
                                 CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
                                 CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
                                 CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
                                 CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
                                 CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
                                 CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA},
    [GPU_CONV_WEIGHT_GRADIENT] = {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
                                  CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
                                  CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
                                  CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
                                  CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
                                  CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
                                  CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA},
};

static void add_operation(struct builder *b, cudnn_descriptor operation, const char *what)
{
    end(b, operation, what);
    b->operations[b->n_operations++] = operation;
}

static void add_convolution(struct builder *b, const struct gpu_conv_shape *shape,
                            cudnn_descriptor x, cudnn_descriptor w, cudnn_descriptor y, float beta)
{
    const struct operation_names *names = &operation_names[shape->direction];
    const float alpha = 1.0F;
    cudnn_descriptor conv = convolution(b, shape);
    cudnn_descriptor operation = begin(b, names->type);
    set_part(b, operation, names->x, x);
    set_part(b, operation, names->w, w);
    set_part(b, operation, names->y, y);
    set_part(b, operation, names->conv, conv);
    set(b, operation, names->alpha, CUDNN_TYPE_FLOAT, 1, &alpha);
    set(b, operation, names->beta, CUDNN_TYPE_FLOAT, 1, &beta);
    add_operation(b, operation, "convolution operation");
}

/* y = x + other, or, without another, the ReLU of x. A NaN stays one. */
static void add_pointwise(struct builder *b, cudnn_descriptor x, cudnn_descriptor other,
                          cudnn_descriptor y)
{
    bool is_relu = other == NULL;
    cudnn_descriptor pointwise = begin(b, CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
    set_enum(b, pointwise, CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE,
             is_relu ? CUDNN_POINTWISE_RELU_FWD : CUDNN_POINTWISE_ADD);
    set_enum(b, pointwise, CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT);
    if (is_relu) {
        set_enum(b, pointwise, CUDNN_ATTR_POINTWISE_NAN_PROPAGATION, CUDNN_TYPE_NAN_PROPOGATION,
                 CUDNN_PROPAGATE_NAN);
    }
    end(b, pointwise, "pointwise");
    cudnn_descriptor operation = begin(b, CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
    set_part(b, operation, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, pointwise);
    set_part(b, operation, CUDNN_ATTR_OPERATION_POINTWISE_XDESC, x);
    set_part(b, operation, CUDNN_ATTR_OPERATION_POINTWISE_YDESC, y);
    if (other != NULL) {
        set_part(b, operation, CUDNN_ATTR_OPERATION_POINTWISE_BDESC, other);
    }
    add_operation(b, operation, is_relu ? "ReLU" : "sum");
}

/* ---- graphs ---------------------------------------------------------------------------------- */

/* The residual before the bias, and the bias before the ReLU: in this order cuDNN has engines ready,
 * in another it compiles some, for seconds. */
static void add_forward(struct builder *b, const struct gpu_conv_shape *shape, cudnn_descriptor x,
                        cudnn_descriptor w, cudnn_descriptor y, struct dims y_dims)
{
    int n_left = shape->has_bias + shape->has_residual + shape->has_relu;
    cudnn_descriptor last = n_left == 0 ? y : tensor_between(b, y_dims);
    add_convolution(b, shape, x, w, last, 0.0F);
    if (shape->has_residual) {
        cudnn_descriptor residual = tensor_in_memory(b, y_dims, CONV_TENSOR_RESIDUAL);
        cudnn_descriptor sum = --n_left == 0 ? y : tensor_between(b, y_dims);
        add_pointwise(b, last, residual, sum);
        last = sum;
    }
    if (shape->has_bias) {
        struct dims dims = {{1, shape->k, 1, 1}};
        cudnn_descriptor bias = tensor_in_memory(b, dims, CONV_TENSOR_BIAS);
        cudnn_descriptor sum = --n_left == 0 ? y : tensor_between(b, y_dims);
        add_pointwise(b, last, bias, sum);
        last = sum;
    }
    if (shape->has_relu) {
        add_pointwise(b, last, NULL, y);
    }
}

static void add_all(struct builder *b, const struct gpu_conv_shape *shape)
{
    struct dims x_dims = {{shape->n, shape->c, shape->h, shape->w}};
    /* How many groups there are follows from the shapes. */
    struct dims w_dims = {{shape->k, shape->c / shape->groups, shape->kernel_h, shape->kernel_w}};
    struct dims y_dims = {{shape->n, shape->k, shape->out_h, shape->out_w}};
    cudnn_descriptor x = tensor_in_memory(b, x_dims, CONV_TENSOR_X);
    cudnn_descriptor w = tensor_in_memory(b, w_dims, CONV_TENSOR_W);
    cudnn_descriptor y = tensor_in_memory(b, y_dims, CONV_TENSOR_Y);
    if (shape->direction == GPU_CONV_FORWARD) {
        add_forward(b, shape, x, w, y, y_dims);
    } else {
        bool adds = shape->direction == GPU_CONV_INPUT_GRADIENT && shape->adds;
        add_convolution(b, shape, x, w, y, adds ? 1.0F : 0.0F);
    }
}

weir_status conv_graph_build(const struct conv_device *device, const struct gpu_conv_shape *shape,
                             struct conv_graph *out)
{
    struct builder b = {
        .dnn = device->dnn,
        .graph = out,
        .status = CUDNN_STATUS_SUCCESS,
        .next_virtual_id = FIRST_VIRTUAL_ID,
        .io_type = shape->type == GPU_BF16  ? CUDNN_DATA_BFLOAT16
                   : shape->type == GPU_F16 ? CUDNN_DATA_HALF
                                            : CUDNN_DATA_FLOAT,
    };
    *out = (struct conv_graph){.device = *device};
    add_all(&b, shape);
    out->graph = begin(&b, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
    if (device->handle != NULL) {
        set(&b, out->graph, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1,
            &device->handle);
    }
    set(&b, out->graph, CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR,
        b.n_operations, b.operations);
    end(&b, out->graph, "graph");
    if (b.status != CUDNN_STATUS_SUCCESS) {
        conv_graph_free(out);
        return say_refused(device->dnn, b.status, b.call);
    }
    return WEIR_OK;
}

void conv_graph_free(struct conv_graph *graph)
{
    while (graph->n_parts > 0) {
        (void)graph->device.dnn->descriptor_destroy(graph->parts[--graph->n_parts]);
    }
    graph->graph = NULL;
}

/* ---- engines --------------------------------------------------------------------------------- */

/* Numerical notes that engines of a type may not have, as a set of bits. Sums are f32 always. */
static unsigned banned_notes(enum gpu_type type)
{
    unsigned banned = NOTE_BIT(CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION);
    if (!gpu_is_half(type)) {
        banned |= NOTE_BIT(CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS);
    }
    if (type == GPU_F32) {
        banned |= NOTE_BIT(CUDNN_NUMERICAL_NOTE_TENSOR_CORE);
    }
    return banned;
}

/* The notes of a configuration's engine. False: it does not tell. */
static bool config_notes(const struct cudnn *dnn, cudnn_descriptor config, unsigned *out)
{
    cudnn_descriptor engine = NULL;
    unsigned notes[NUMERICAL_NOTES] = {0};
    int64_t n = 0;
    if (dnn->descriptor_create(CUDNN_BACKEND_ENGINE_DESCRIPTOR, &engine) != CUDNN_STATUS_SUCCESS) {
        return false;
    }
    bool is_told = dnn->get(config, CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1,
                            &n, &engine) == CUDNN_STATUS_SUCCESS;
    n = 0;
    is_told =
        is_told && dnn->get(engine, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE,
                            NUMERICAL_NOTES, &n, notes) == CUDNN_STATUS_SUCCESS;
    (void)dnn->descriptor_destroy(engine);
    unsigned bits = 0;
    for (int64_t i = 0; i < WEIR_MIN(n, NUMERICAL_NOTES); i++) {
        bits |= notes[i] < 32 ? NOTE_BIT(notes[i]) : 0;
    }
    *out = bits;
    return is_told;
}

/* Keeps the configurations of `items` that are allowed, in order, and destroys the others. */
static void keep_allowed(const struct cudnn *dnn, enum gpu_type type, cudnn_descriptor *items,
                         int64_t n_filled, struct conv_configs *out)
{
    unsigned banned = banned_notes(type);
    for (int i = 0; i < CONV_CONFIGS_MAX; i++) {
        unsigned notes = 0;
        if (i < n_filled && config_notes(dnn, items[i], &notes) && (notes & banned) == 0) {
            out->items[out->n++] = items[i];
        } else if (items[i] != NULL) {
            (void)dnn->descriptor_destroy(items[i]);
        }
    }
}

static weir_status read_results(const struct cudnn *dnn, cudnn_descriptor heuristics,
                                enum gpu_type type, struct conv_configs *out)
{
    cudnn_descriptor items[CONV_CONFIGS_MAX] = {NULL};
    int64_t n = 0;
    cudnn_status status = CUDNN_STATUS_SUCCESS;
    for (int i = 0; i < CONV_CONFIGS_MAX && status == CUDNN_STATUS_SUCCESS; i++) {
        status = dnn->descriptor_create(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, &items[i]);
    }
    if (status == CUDNN_STATUS_SUCCESS) {
        status = dnn->get(heuristics, CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                          CONV_CONFIGS_MAX, &n, items);
    }
    bool is_filled = status == CUDNN_STATUS_SUCCESS;
    keep_allowed(dnn, type, items, is_filled ? n : 0, out);
    return is_filled ? WEIR_OK : say_refused(dnn, status, "heuristics' results");
}

weir_status conv_graph_configs(const struct conv_graph *graph, unsigned mode, enum gpu_type type,
                               struct conv_configs *out)
{
    const struct cudnn *dnn = graph->device.dnn;
    cudnn_descriptor heuristics = NULL;
    out->n = 0;
    cudnn_status status = dnn->descriptor_create(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, &heuristics);
    if (status != CUDNN_STATUS_SUCCESS) {
        return say_refused(dnn, status, "create heuristics");
    }
    status = dnn->set(heuristics, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH,
                      CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &graph->graph);
    if (status == CUDNN_STATUS_SUCCESS) {
        status = dnn->set(heuristics, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode);
    }
    if (status == CUDNN_STATUS_SUCCESS && graph->device.device_properties != NULL) {
        status = dnn->set(heuristics, CUDNN_ATTR_ENGINEHEUR_DEVICEPROP,
                          CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &graph->device.device_properties);
    }
    if (status == CUDNN_STATUS_SUCCESS) {
        status = dnn->finalize(heuristics);
    }
    weir_status result = status == CUDNN_STATUS_SUCCESS ? read_results(dnn, heuristics, type, out)
                                                        : say_refused(dnn, status, "heuristics");
    (void)dnn->descriptor_destroy(heuristics);
    return result == WEIR_OK && out->n == 0 ? WEIR_ERR_UNSUPPORTED : result;
}

void conv_configs_free(const struct cudnn *dnn, struct conv_configs *configs)
{
    while (configs->n > 0) {
        cudnn_descriptor item = configs->items[--configs->n];
        if (item != NULL) {
            (void)dnn->descriptor_destroy(item);
        }
    }
}

weir_status conv_config_plan(const struct conv_device *device, cudnn_descriptor config,
                             cudnn_descriptor *out, size_t *out_workspace_bytes)
{
    const struct cudnn *dnn = device->dnn;
    cudnn_descriptor plan = NULL;
    int64_t workspace_bytes = 0, n = 0;
    cudnn_status status = dnn->descriptor_create(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, &plan);
    if (status == CUDNN_STATUS_SUCCESS) {
        status = dnn->set(plan, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG,
                          CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &config);
    }
    if (status == CUDNN_STATUS_SUCCESS && device->handle != NULL) {
        status =
            dnn->set(plan, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1, &device->handle);
    }
    if (status == CUDNN_STATUS_SUCCESS && device->device_properties != NULL) {
        status = dnn->set(plan, CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                          1, &device->device_properties);
    }
    if (status == CUDNN_STATUS_SUCCESS) {
        status = dnn->finalize(plan);
    }
    if (status == CUDNN_STATUS_SUCCESS) {
        status = dnn->get(plan, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1, &n,
                          &workspace_bytes);
    }
    if (status != CUDNN_STATUS_SUCCESS) {
        weir_status refused = say_refused(dnn, status, "plan");
        if (plan != NULL) {
            (void)dnn->descriptor_destroy(plan);
        }
        return refused;
    }
    *out = plan;
    *out_workspace_bytes = (size_t)workspace_bytes;
    return WEIR_OK;
}
