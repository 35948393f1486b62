/* Convolutions by cuDNN: which of its engines is the fastest for a shape is found by measuring. */
#include "conv_choices.h"
#include "conv_graph.h"
#include "gpu_private.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/macros.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Candidates that are measured, of those that cuDNN proposes, and for how long more are tried: an
 * engine that is compiled first takes seconds. */
#define CANDIDATES_MAX      8
#define PLANNING_NS_MAX     1500000000U
#define WORKSPACE_MAX_BYTES ((size_t)1 << 30)
#define TIMINGS             3
/* Times that differ by less than this factor count as equal. */
#define AS_FAST 1.02F
/* A workspace above this, which two lanes have each, must gain more than this factor. */
#define WORKSPACE_LARGE_BYTES ((size_t)256 << 20)
#define GAIN_OF_LARGE         1.1F

/* Queued before each timing: the GPU is busy until the processor has queued what is timed, and its
 * cache holds none of the tensors. */
#define FLUSH_BYTES ((size_t)128 << 20)

/* 0x3c00 is 2^-7 in bf16 and 1 in fp16; in f32 the pair is 0.0078. */
#define FILL_PATTERN 0x3c003c00U

struct gpu_plan {
    struct gpu_plan *next;
    struct gpu_conv_shape shape; /**< Its padding is zero. */
    bool is_supported;
    struct conv_graph graph; /**< What the plan was made of lives as long. */
    cudnn_descriptor config, plan;
    size_t workspace_bytes;
};

/** A plan that is measured. */
struct candidate {
    cudnn_descriptor *config; /**< In the list of configurations. */
    cudnn_descriptor plan;
    size_t workspace_bytes;
    float ms; /**< < 0: not measured, or it failed. */
};

/** Tensors and workspace of a measurement. */
struct scratch {
    struct gpu_conv_tensors tensors;
    cu_address memory[CONV_TENSORS_MAX + 2];
    int n;
    cu_address flush;
};

/* ---- running --------------------------------------------------------------------------------- */

static const void *tensor_address(const struct gpu_conv_tensors *tensors, int64_t tensor)
{
    switch (tensor) {
    case CONV_TENSOR_X:
        return tensors->x;
    case CONV_TENSOR_W:
        return tensors->w;
    case CONV_TENSOR_Y:
        return tensors->y;
    case CONV_TENSOR_BIAS:
        return tensors->bias;
    default:
        return tensors->residual;
    }
}

static cudnn_status execute(const struct cuda_gpu *gpu, cudnn_descriptor plan,
                            const struct conv_graph *graph, const struct gpu_conv_tensors *tensors)
{
    const int64_t *ids = graph->tensors;
    int n = graph->n_tensors;
    const struct cudnn *dnn = &gpu->dnn;
    const void *addresses[CONV_TENSORS_MAX];
    cudnn_descriptor pack = NULL;
    for (int i = 0; i < n; i++) {
        addresses[i] = tensor_address(tensors, ids[i]);
    }
    cudnn_status status = dnn->descriptor_create(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, &pack);
    if (status == CUDNN_STATUS_SUCCESS) {
        status = dnn->set(pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, n,
                          addresses);
    }
    if (status == CUDNN_STATUS_SUCCESS) {
        status = dnn->set(pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, n, ids);
    }
    if (status == CUDNN_STATUS_SUCCESS) {
        status = dnn->set(pack, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1,
                          &tensors->workspace);
    }
    if (status == CUDNN_STATUS_SUCCESS) {
        status = dnn->finalize(pack);
    }
    if (status == CUDNN_STATUS_SUCCESS) {
        status = dnn->execute(gpu->cudnn, plan, pack);
    }
    if (pack != NULL) {
        (void)dnn->descriptor_destroy(pack);
    }
    return status;
}

weir_status cuda_run_conv(struct gpu *base, const struct gpu_plan *plan,
                          const struct gpu_conv_tensors *tensors)
{
    struct cuda_gpu *gpu = cuda_gpu_of(base);
    cudnn_status status = execute(gpu, plan->plan, &plan->graph, tensors);
    if (status == CUDNN_STATUS_SUCCESS) {
        return WEIR_OK;
    }
    char text[512] = "";
    gpu->dnn.last_error(text, sizeof text);
    text[sizeof text - 1] = '\0';
    weir_log(WEIR_LOG_WARN, "gpu_call_failed", WEIR_KV_STR("call", "cudnnBackendExecute"),
             WEIR_KV_INT("error", status), WEIR_KV_STR("reason", text));
    return WEIR_ERR_INTERNAL;
}

/* ---- memory to measure on -------------------------------------------------------------------- */

static size_t padded(size_t size_bytes)
{
    return (size_bytes + 255) / 256 * 256;
}

/* Memory of `size_bytes`, filled with small numbers. False: there is none. */
static bool scratch_add(const struct cuda_gpu *gpu, struct scratch *scratch, size_t size_bytes,
                        const void **out)
{
    cu_address at = 0;
    size_t size = padded(WEIR_MAX(size_bytes, (size_t)1));
    if (gpu->cu.alloc(&at, size) != CUDA_SUCCESS) {
        return false;
    }
    scratch->memory[scratch->n++] = at;
    if (gpu->cu.set_32(at, FILL_PATTERN, size / 4, gpu->stream) != CUDA_SUCCESS) {
        return false;
    }
    *out = (const void *)(uintptr_t)at;
    return true;
}

static void scratch_free(const struct cuda_gpu *gpu, struct scratch *scratch)
{
    while (scratch->n > 0) {
        (void)cuda_check(gpu, gpu->cu.free(scratch->memory[--scratch->n]), "cuMemFree");
    }
}

static bool scratch_alloc(const struct cuda_gpu *gpu, const struct gpu_conv_shape *shape,
                          size_t workspace_bytes, struct scratch *out)
{
    size_t elem_bytes = gpu_is_half(shape->type) ? 2 : 4;
    size_t n = (size_t)shape->n, c = (size_t)shape->c, k = (size_t)shape->k;
    size_t x_bytes = n * c * (size_t)shape->h * (size_t)shape->w * elem_bytes;
    size_t y_bytes = n * k * (size_t)shape->out_h * (size_t)shape->out_w * elem_bytes;
    size_t w_bytes = k * (c / (size_t)shape->groups) * (size_t)shape->kernel_h *
                     (size_t)shape->kernel_w * elem_bytes;
    struct gpu_conv_tensors *t = &out->tensors;
    const void *workspace = NULL, *flush = NULL;
    *out = (struct scratch){.n = 0};
    bool is_there =
        scratch_add(gpu, out, x_bytes, &t->x) && scratch_add(gpu, out, w_bytes, &t->w) &&
        scratch_add(gpu, out, y_bytes, &t->y) && scratch_add(gpu, out, k * elem_bytes, &t->bias) &&
        (!shape->has_residual || scratch_add(gpu, out, y_bytes, &t->residual)) &&
        scratch_add(gpu, out, workspace_bytes, &workspace) &&
        scratch_add(gpu, out, FLUSH_BYTES, &flush);
    out->flush = cuda_address(flush);
    t->workspace = (void *)(uintptr_t)workspace;
    if (!is_there) {
        scratch_free(gpu, out);
    }
    return is_there;
}

/* ---- measuring ------------------------------------------------------------------------------- */

/* One timing in ms; < 0: it failed. */
static float time_once(const struct cuda_gpu *gpu, const struct conv_graph *graph,
                       cudnn_descriptor plan, const struct scratch *scratch)
{
    const struct cuda_driver *cu = &gpu->cu;
    float ms = 0;
    bool is_done =
        cu->set_32(scratch->flush, FILL_PATTERN, FLUSH_BYTES / 4, gpu->stream) == CUDA_SUCCESS &&
        cu->event_record(gpu->begin, gpu->stream) == CUDA_SUCCESS &&
        execute(gpu, plan, graph, &scratch->tensors) == CUDNN_STATUS_SUCCESS &&
        cu->event_record(gpu->end, gpu->stream) == CUDA_SUCCESS &&
        cu->event_wait(gpu->end) == CUDA_SUCCESS &&
        cu->event_elapsed(&ms, gpu->begin, gpu->end) == CUDA_SUCCESS;
    return is_done ? ms : -1.0F;
}

/* The least of some timings, after one that does not count. */
static float time_least(const struct cuda_gpu *gpu, const struct conv_graph *graph,
                        cudnn_descriptor plan, const struct scratch *scratch)
{
    float least = time_once(gpu, graph, plan, scratch);
    for (int i = 0; i < TIMINGS && least >= 0; i++) {
        float ms = time_once(gpu, graph, plan, scratch);
        least = i == 0 || ms < least ? ms : least;
    }
    return least;
}

static void log_candidate(const struct gpu_conv_shape *s, int i, const struct candidate *candidate)
{
    char shape[96];
    (void)snprintf(shape, sizeof shape, "%d:%dx%dx%dx%d>%d,k%dx%d,s%d,d%d,g%d", (int)s->direction,
                   (int)s->n, (int)s->c, (int)s->h, (int)s->w, (int)s->k, (int)s->kernel_h,
                   (int)s->kernel_w, (int)s->stride, (int)s->dilation, (int)s->groups);
    weir_log(WEIR_LOG_DEBUG, "gpu_conv_measured", WEIR_KV_STR("shape", shape),
             WEIR_KV_INT("type", s->type), WEIR_KV_INT("candidate", i),
             WEIR_KV_F64("ms", (double)candidate->ms),
             WEIR_KV_INT("workspace_bytes", (int64_t)candidate->workspace_bytes));
}

/* The fastest of those that want no more than so much workspace. -1: there is none. */
static int fastest(const struct candidate *candidates, int n, size_t workspace_max)
{
    int best = -1;
    for (int i = 0; i < n; i++) {
        if (candidates[i].ms >= 0 && candidates[i].workspace_bytes <= workspace_max &&
            (best < 0 || candidates[i].ms < candidates[best].ms)) {
            best = i;
        }
    }
    return best;
}

/* A large workspace only where it pays; then the one that wants the least of those that are as fast as
 * the fastest, within what a measurement is off by. -1: all of them fail. */
static int cheapest(const struct candidate *candidates, int n)
{
    int best = fastest(candidates, n, SIZE_MAX);
    int small = fastest(candidates, n, WORKSPACE_LARGE_BYTES);
    if (small >= 0 && candidates[small].ms <= candidates[best].ms * GAIN_OF_LARGE) {
        best = small;
    }
    float most_ms = best >= 0 ? candidates[best].ms * AS_FAST : 0;
    for (int i = 0; i < n; i++) {
        if (candidates[i].ms >= 0 && candidates[i].ms <= most_ms &&
            candidates[i].workspace_bytes < candidates[best].workspace_bytes) {
            best = i;
        }
    }
    return best;
}

/* Which to take; without memory to measure on, the first: the library's best guess. -1: all of them
 * fail. */
static int choose(const struct cuda_gpu *gpu, const struct gpu_conv_shape *shape,
                  const struct conv_graph *graph, struct candidate *candidates, int n)
{
    struct scratch scratch;
    size_t workspace_bytes = 0;
    for (int i = 0; i < n; i++) {
        workspace_bytes = WEIR_MAX(workspace_bytes, candidates[i].workspace_bytes);
    }
    if (!scratch_alloc(gpu, shape, workspace_bytes, &scratch)) {
        return n > 0 ? 0 : -1;
    }
    for (int i = 0; i < n; i++) {
        candidates[i].ms = time_least(gpu, graph, candidates[i].plan, &scratch);
        log_candidate(shape, i, &candidates[i]);
    }
    int best = cheapest(candidates, n);
    (void)cuda_check(gpu, gpu->cu.stream_wait(gpu->stream), "cuStreamSynchronize");
    scratch_free(gpu, &scratch);
    return best;
}

/* ---- planning -------------------------------------------------------------------------------- */

/* Plans of the first configurations that can be planned and are content with little memory.
 * only: of this one alone; -1: of all. */
static int make_candidates(const struct conv_graph *graph, struct conv_configs *configs, int only,
                           struct candidate out[CANDIDATES_MAX])
{
    uint64_t begin_ns = weir_mono_ns();
    int n = 0, end = only >= 0 ? WEIR_MIN(only + 1, configs->n) : configs->n;
    for (int i = WEIR_MAX(only, 0); i < end && n < CANDIDATES_MAX; i++) {
        struct candidate candidate = {.config = &configs->items[i], .ms = -1.0F};
        if (n > 0 && weir_mono_ns() - begin_ns > PLANNING_NS_MAX) {
            break;
        }
        if (conv_config_plan(&graph->device, configs->items[i], &candidate.plan,
                             &candidate.workspace_bytes) != WEIR_OK) {
            continue;
        }
        if (candidate.workspace_bytes > WORKSPACE_MAX_BYTES) {
            (void)graph->device.dnn->descriptor_destroy(candidate.plan);
            continue;
        }
        out[n++] = candidate;
    }
    return n;
}

/* Plans with the engines of one mode. False: none of them does it. */
static bool plan_in_mode(const struct cuda_gpu *gpu, unsigned mode, struct gpu_plan *plan)
{
    struct conv_configs configs = {.n = 0};
    struct candidate candidates[CANDIDATES_MAX];
    if (conv_graph_configs(&plan->graph, mode, plan->shape.type, &configs) != WEIR_OK) {
        return false;
    }
    int known = conv_choices_find((int)gpu->device, &plan->shape, mode);
    int n = make_candidates(&plan->graph, &configs, known, candidates);
    if (known >= 0 && n == 0) { /* not any more: as if nobody had measured */
        known = -1;
        n = make_candidates(&plan->graph, &configs, known, candidates);
    }
    int best = known >= 0 ? 0 : choose(gpu, &plan->shape, &plan->graph, candidates, n);
    if (best >= 0 && candidates[best].ms >= 0) { /* measured */
        conv_choices_keep((int)gpu->device, &plan->shape, mode,
                          (int)(candidates[best].config - configs.items));
    }
    for (int i = 0; i < n; i++) {
        if (i != best) {
            (void)gpu->dnn.descriptor_destroy(candidates[i].plan);
        }
    }
    if (best >= 0) {
        plan->plan = candidates[best].plan;
        plan->workspace_bytes = candidates[best].workspace_bytes;
        plan->config = *candidates[best].config;
        *candidates[best].config = NULL;
    }
    conv_configs_free(&gpu->dnn, &configs);
    return best >= 0;
}

static void make_plan(const struct cuda_gpu *gpu, struct gpu_plan *plan)
{
    struct conv_device device = {.dnn = &gpu->dnn, .handle = gpu->cudnn};
    if (conv_graph_build(&device, &plan->shape, &plan->graph) != WEIR_OK) {
        return;
    }
    plan->is_supported = plan_in_mode(gpu, CUDNN_HEUR_MODE_A, plan) ||
                         plan_in_mode(gpu, CUDNN_HEUR_MODE_FALLBACK, plan);
    if (!plan->is_supported) {
        conv_graph_free(&plan->graph);
    }
}

/* With zeros between the members, so that shapes compare as bytes. */
static void shape_copy(struct gpu_conv_shape *to, const struct gpu_conv_shape *from)
{
    memset(to, 0, sizeof *to);
    to->direction = from->direction;
    to->type = from->type;
    to->n = from->n;
    to->c = from->c;
    to->h = from->h;
    to->w = from->w;
    to->k = from->k;
    to->out_h = from->out_h;
    to->out_w = from->out_w;
    to->kernel_h = from->kernel_h;
    to->kernel_w = from->kernel_w;
    to->stride = from->stride;
    to->pad_h = from->pad_h;
    to->pad_w = from->pad_w;
    to->dilation = from->dilation;
    to->groups = from->groups;
    to->adds = from->adds;
    to->has_bias = from->has_bias;
    to->has_residual = from->has_residual;
    to->has_relu = from->has_relu;
}

/* The plan of a shape, perhaps one that says "unsupported". NULL: no memory. */
static struct gpu_plan *plan_of(struct cuda_gpu *gpu, const struct gpu_conv_shape *shape)
{
    struct gpu_plan *plan = calloc(1, sizeof *plan);
    if (plan == NULL) {
        return NULL;
    }
    shape_copy(&plan->shape, shape);
    for (struct gpu_plan *old = gpu->plans; old != NULL; old = old->next) {
        if (memcmp(&old->shape, &plan->shape, sizeof plan->shape) == 0) {
            free(plan);
            return old;
        }
    }
    make_plan(gpu, plan);
    plan->next = gpu->plans;
    gpu->plans = plan;
    return plan;
}

weir_status cuda_plan_conv(struct gpu *base, const struct gpu_conv_shape *shape,
                           struct gpu_plan **out, size_t *out_workspace_bytes,
                           struct weir_error *err)
{
    struct cuda_gpu *gpu = cuda_gpu_of(base);
    if (!gpu->has_cudnn) {
        return weir_error_set(err, WEIR_ERR_UNSUPPORTED, "there is no cuDNN");
    }
    struct gpu_plan *plan = plan_of(gpu, shape);
    if (plan == NULL) {
        return weir_error_set(err, WEIR_ERR_NOMEM, "no memory for a plan of a convolution");
    }
    if (!plan->is_supported) {
        return weir_error_set(
            err, WEIR_ERR_UNSUPPORTED,
            "cuDNN has nothing for this convolution (its words: log level debug)");
    }
    *out = plan;
    *out_workspace_bytes = plan->workspace_bytes;
    return WEIR_OK;
}

void cuda_plans_free(struct cuda_gpu *gpu)
{
    while (gpu->plans != NULL) {
        struct gpu_plan *plan = gpu->plans;
        gpu->plans = plan->next;
        if (plan->is_supported) {
            (void)gpu->dnn.descriptor_destroy(plan->plan);
            (void)gpu->dnn.descriptor_destroy(plan->config);
            conv_graph_free(&plan->graph);
        }
        free(plan);
    }
}
