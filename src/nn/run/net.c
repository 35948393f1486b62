#include "net.h"

#include "base/hash.h"

#include <sched.h>

#define DEFAULT_BUCKET_BYTES ((size_t)1 << 20)

/* Between the memories of two threads: no line and no page of one is prefetched by the other. */
#define THREAD_GAP_BYTES 4096

const struct weir_backend *weir_backend_find(const char *name)
{
    const struct weir_backend *const all[] = {&weir_reference_backend, &weir_onednn_backend,
                                              &weir_cuda_backend};
    for (size_t i = 0; i < WEIR_ARRAY_LEN(all); i++) {
        if (strcmp(all[i]->name, name) == 0) {
            return all[i];
        }
    }
    return NULL;
}

bool weir_backend_is_on_gpu(const struct weir_backend *backend)
{
    return backend && backend->gpu;
}

static const char *const precisions[] = {[WEIR_PRECISION_F32] = "f32",
                                         [WEIR_PRECISION_BF16] = "bf16",
                                         [WEIR_PRECISION_TF32] = "tf32",
                                         [WEIR_PRECISION_F16] = "fp16"};

const char *weir_precision_text(enum weir_precision precision)
{
    return precisions[precision];
}

static const char *const convolutions[] = {[WEIR_CONVOLUTION_AUTO] = "auto",
                                           [WEIR_CONVOLUTION_DIRECT] = "direct",
                                           [WEIR_CONVOLUTION_WINOGRAD] = "winograd"};

weir_status weir_convolution_parse(const char *text, enum weir_convolution *out,
                                   struct weir_error *err)
{
    for (size_t i = 0; i < WEIR_ARRAY_LEN(convolutions); i++) {
        if (strcmp(convolutions[i], text) == 0) {
            *out = (enum weir_convolution)i;
            return WEIR_OK;
        }
    }
    return weir_error_set(err, WEIR_ERR_INVALID,
                          "convolution must be auto, direct or winograd, not \"%s\"", text);
}

weir_status weir_precision_parse(const char *text, enum weir_precision *out, struct weir_error *err)
{
    for (size_t i = 0; i < WEIR_ARRAY_LEN(precisions); i++) {
        if (strcmp(precisions[i], text) == 0) {
            *out = (enum weir_precision)i;
            return WEIR_OK;
        }
    }
    return weir_error_set(err, WEIR_ERR_INVALID,
                          "precision must be f32, bf16, tf32 or fp16, not \"%s\"", text);
}

static int32_t n_usable_cpus(void)
{
    cpu_set_t set;
    return sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : 1;
}

static void take_io(const struct net_plan *plan, struct slab *slab, struct net_io *io)
{
    size_t batch = (size_t)plan->batch, n_slices = (size_t)plan->n_slices;
    io->input = slab_take(slab, batch * op_elems(plan->shapes[plan->input]) * sizeof(float));
    io->output = slab_take(slab, batch * op_elems(plan->shapes[plan->output]) * sizeof(float));
    io->labels = slab_take(slab, batch * sizeof(int32_t));
    if (plan->i_loss >= 0 && plan->ops[plan->i_loss].op.kind == LAYER_DETECT_LOSS) {
        size_t n_values = op_elems(plan->shapes[plan->output]);
        io->targets = slab_take(slab, batch * n_values * sizeof(float));
    }
    io->losses = slab_take(slab, n_slices * sizeof(*io->losses));
}

/* Takes everything small that ops own; run once to count and once to have it. */
static void take_small(struct weir_net *net)
{
    struct slab *slab = &net->small;
    const struct net_plan *plan = net->plan;
    size_t batch = (size_t)plan->batch, n_slices = (size_t)plan->n_slices;
    take_io(plan, slab, &net->io);
    for (int32_t i = 0; i < plan->n_ops; i++) {
        struct op *op = &net->plan->ops[i].op;
        size_t channels = op->n_in > 0 ? (size_t)op->in[0].c : 0;
        if (op->kind == LAYER_BATCH_NORM) {
            op->saved = slab_take(slab, BN_SAVED_ROWS * channels * sizeof(real));
        }
        if (plan->is_training && (op->kind == LAYER_BATCH_NORM || op->kind == LAYER_PRELU)) {
            op->n_partials = (int32_t)channels * (op->kind == LAYER_BATCH_NORM ? 2 : 1);
            op->partials = slab_take(slab, n_slices * (size_t)op->n_partials * sizeof(double));
        }
        if (plan->is_training && op->kind == LAYER_MAX_POOL) {
            op->argmax = slab_take(slab, batch * op_elems(op->out) * sizeof(int32_t));
        }
        if (op->kind == LAYER_MARGIN_LOSS) {
            size_t n_classes = (size_t)op->n_classes;
            op->saved = slab_take(slab, n_classes * (channels + 1) * sizeof(real));
            op->scores = slab_take(slab, batch * n_classes * sizeof(real));
        }
        op->dropout_key = net->seed ^ weir_hash_text(WEIR_HASH_BEGIN, op->name);
        op->dropout_first = net->first_image;
        op->smoothing = net->label_smoothing;
    }
}

static weir_status map_small(struct weir_net *net, struct weir_error *err)
{
    take_small(net);
    WEIR_TRY(net_map(net, &net->small, net->small.used_bytes, err));
    take_small(net);
    net->caller = net->io;
    if (net->on_gpu.gpu) {
        struct slab *host = &net->on_gpu.host_io;
        take_io(net->plan, host, &net->caller);
        WEIR_TRY(net_gpu_map_io(net, host->used_bytes, err));
        take_io(net->plan, host, &net->caller);
    }
    return WEIR_OK;
}

/* The caller's memory if it gives any, else the net's. A net without parameters needs none. */
static weir_status map_array(void *(*alloc)(void *context, size_t size_bytes), void *context,
                             struct slab *own, size_t n_elems, float **out)
{
    size_t size = n_elems * sizeof(float);
    if (alloc && size > 0) {
        *out = alloc(context, size);
    } else if (slab_map(own, size)) {
        *out = (float *)(void *)own->base;
    }
    return *out || size == 0 ? WEIR_OK : WEIR_ERR_NOMEM;
}

static weir_status map_params(struct weir_net *net, const struct weir_net_config *config,
                              struct weir_error *err)
{
    if (net->on_gpu.gpu) {
        WEIR_TRY(net_gpu_map_params(net, config, err));
    }
    if (!net->weights) {
        WEIR_TRY(map_array(config->alloc_weights, config->alloc_context, &net->own_weights,
                           net->n_weight_elems, &net->weights));
    }
    /* On a GPU the caller's copy is made when it asks. */
    if (config->is_training && (!net->on_gpu.gpu || config->alloc_gradients)) {
        WEIR_TRY(map_array(config->alloc_gradients, config->alloc_context, &net->own_gradients,
                           net->gradient_bytes / sizeof(float), &net->gradients));
    }
    if (!net->on_gpu.gpu) {
        net->op_weights = net->weights;
        net->op_gradients = net->gradients;
    }
    return WEIR_OK;
}

/* Slices differ by one image at most. So do batched slices, except the last, which may have
 * fewer. */
enum { MAX_TILE_SIZES = 3 };

static int32_t tile_sizes(const struct net_plan *plan, const struct op *op, int32_t *sizes)
{
    int32_t n_sizes = 0;
    for (int32_t i = 0; i < plan->n_slices; i++) {
        int32_t first, n = plan_tile_images(plan, op, i, &first), j = 0;
        while (j < n_sizes && sizes[j] != n) {
            j++;
        }
        if (n > 0 && j == n_sizes && n_sizes < MAX_TILE_SIZES) {
            sizes[n_sizes++] = n;
        }
    }
    return n_sizes;
}

static weir_status open_backend(struct weir_net *net, const struct weir_net_config *config,
                                struct weir_error *err)
{
    if (net->backend->enter_thread) {
        net->backend->enter_thread();
    }
    if (net->backend->open) {
        WEIR_TRY(net->backend->open(config, net->n_threads, &net->backend_context, err));
    }
    if (net->backend->gpu) {
        net->on_gpu.gpu = net->backend->gpu(net->backend_context);
    }
    return WEIR_OK;
}

static weir_status prepare_ops(struct weir_net *net, struct weir_error *err)
{
    const struct net_plan *plan = net->plan;
    for (int32_t i = 0; net->backend->prepare && i < plan->n_ops; i++) {
        size_t scratch_bytes = 0;
        struct op *op = &net->plan->ops[i].op;
        int32_t sizes[MAX_TILE_SIZES], n_sizes = tile_sizes(plan, op, sizes);
        weir_status status = net->backend->prepare(net->backend_context, op, sizes, n_sizes,
                                                   plan->is_training, &scratch_bytes, err);
        if (status != WEIR_OK) {
            weir_error_prefix(err, "layer %s: ", op->name);
            return status;
        }
        net->scratch_bytes = WEIR_MAX(net->scratch_bytes, scratch_bytes);
    }
    return WEIR_OK;
}

static weir_status map_tensors(struct weir_net *net, struct weir_error *err)
{
    const struct task_schedule *a = &net->plan->training, *b = &net->plan->inference;
    size_t tile_bytes = WEIR_MAX(a->tile_bytes, b->tile_bytes);
    size_t slab_bytes = WEIR_MAX(a->slab_bytes, b->slab_bytes);
    net->scratch_bytes = (net->scratch_bytes + 63) / 64 * 64;
    net->thread_bytes = tile_bytes + net->scratch_bytes + THREAD_GAP_BYTES;
    net->part_bytes = net_part_bytes(net->plan);
    net->thread_bytes = (net->thread_bytes + 63) / 64 * 64 + net->part_bytes;
    WEIR_TRY(net_map(net, &net->activations, slab_bytes, err));
    WEIR_TRY(net_map(net, &net->threads, (size_t)net->n_threads * net->thread_bytes, err));
    if (net->on_gpu.gpu && net->plan->is_training) {
        WEIR_TRY(net_map(net, &net->on_gpu.lane_scratch, net->scratch_bytes, err));
    }
    /* Which thread runs what differs from step to step: one may meet its most demanding task late.
     */
    if (!net->on_gpu.gpu) {
        slab_populate(&net->threads);
    }
    return WEIR_OK;
}

static weir_status build(struct weir_net *net, const struct weir_net_config *config,
                         struct weir_error *err)
{
    WEIR_TRY(net_make_params(net));
    WEIR_TRY(open_backend(net, config, err));
    WEIR_TRY(map_params(net, config, err));
    net_bind_params(net);
    WEIR_TRY(map_small(net, err));
    WEIR_TRY(prepare_ops(net, err));
    WEIR_TRY(map_tensors(net, err));
    WEIR_TRY(net_make_programs(net));
    WEIR_TRY(lazy_weights_create(net->plan->n_ops, &net->lazy));
    int32_t max_stages = WEIR_MAX(net->plan->training.n_stages, net->plan->inference.n_stages);
    return workers_create(net->n_threads, max_stages, net->backend->enter_thread, &net->workers);
}

weir_status weir_net_create(const struct weir_graph *graph, const struct weir_net_config *given,
                            struct weir_net **out, struct weir_error *err)
{
    struct weir_net_config config = *given;
    struct net_plan *plan;
    config.backend = config.backend ? config.backend : &weir_onednn_backend;
    if (config.n_threads < 0 || config.n_threads > 1024) {
        return weir_error_set(err, WEIR_ERR_INVALID, "n_threads must be 0 to 1024, not %d",
                              config.n_threads);
    }
    if (!(config.label_smoothing >= 0 && config.label_smoothing < 1)) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "label_smoothing must be a number in [0, 1), not %g",
                              config.label_smoothing);
    }
    if (config.label_smoothing > 0 && weir_graph_is_embedding(graph)) {
        return weir_error_set(err, WEIR_ERR_UNSUPPORTED,
                              "label_smoothing: the margin loss has none, only softmax");
    }
    if (config.is_training && config.backend->gpu && weir_graph_is_detector(graph)) {
        return weir_error_set(err, WEIR_ERR_UNSUPPORTED,
                              "detectors are trained on processors: choose the back-end onednn");
    }
    WEIR_TRY(plan_create(graph, &config, &plan, err));
    struct weir_net *net = calloc(1, sizeof(*net));
    if (!net) {
        plan_destroy(plan);
        return weir_error_set(err, WEIR_ERR_NOMEM, "out of memory for a net");
    }
    net->plan = plan;
    net->backend = config.backend;
    net->n_threads = config.n_threads > 0 ? config.n_threads : n_usable_cpus();
    if (net->backend->gpu) {
        net->n_threads = 1; /* it queues; the GPU computes */
    }
    net->seed = config.seed;
    net->first_image = config.first_image;
    net->label_smoothing = config.label_smoothing;
    net->loss_scale = config.precision != WEIR_PRECISION_F16 ? 1
                      : config.loss_scale > 0                ? config.loss_scale
                                                             : BACKEND_LOSS_SCALE;
    net->is_scaled =
        config.precision == WEIR_PRECISION_F16 && config.is_training && net->backend->unscale;
    net->buckets.bucket_bytes = DEFAULT_BUCKET_BYTES;
    net->are_statistics_stale = true;
    weir_status status = build(net, &config, err);
    if (status != WEIR_OK) {
        weir_net_destroy(net);
        return status == WEIR_ERR_NOMEM && !config.backend->gpu
                   ? weir_error_set(err, status, "out of memory for a net")
                   : status;
    }
    *out = net;
    return WEIR_OK;
}

void weir_net_destroy(struct weir_net *net)
{
    if (!net) {
        return;
    }
    workers_destroy(net->workers);
    if (net->on_gpu.gpu) {
        net_gpu_unmap(net);
    }
    for (int32_t i = 0; net->backend->release && i < net->plan->n_ops; i++) {
        net->backend->release(&net->plan->ops[i].op);
    }
    net_unmap(net, &net->activations);
    net_unmap(net, &net->small);
    net_unmap(net, &net->threads);
    if (net->backend_context) {
        net->backend->close(net->backend_context);
    }
    slab_unmap(&net->own_weights);
    slab_unmap(&net->own_gradients);
    free(net->params);
    free(net->param_names);
    free((void *)net->buckets.is_done);
    lazy_weights_destroy(net->lazy);
    free(net->refresh_deferred);
    free(net->update_deferred);
    free(net->rest_deferred);
    free(net->rest_ranges);
    free(net->refresh_ops);
    plan_destroy(net->plan);
    free(net);
}

float *weir_net_input(struct weir_net *net)
{
    net->on_gpu.is_input_new = true;
    return net->caller.input;
}

void weir_net_set_fill_ahead(struct weir_net *net, weir_net_fill_fn fn, void *context)
{
    net->on_gpu.fill = fn;
    net->on_gpu.fill_context = context;
}

int32_t *weir_net_labels(struct weir_net *net)
{
    return net->caller.labels;
}

float *weir_net_targets(struct weir_net *net)
{
    return net->caller.targets;
}

const float *weir_net_output(const struct weir_net *net)
{
    return net->caller.output;
}

int32_t weir_net_batch(const struct weir_net *net)
{
    return net->plan->batch;
}

void weir_net_set_n_labelled(struct weir_net *net, int64_t n)
{
    net->n_labelled = n;
}

void weir_net_set_first_image(struct weir_net *net, uint32_t first_image)
{
    net->first_image = first_image;
    for (int32_t i = 0; i < net->plan->n_ops; i++) {
        net->plan->ops[i].op.dropout_first = first_image;
    }
}

size_t weir_net_memory_bytes(const struct weir_net *net)
{
    if (net->on_gpu.gpu) {
        return net->on_gpu.gpu->ops->memory_bytes(net->on_gpu.gpu);
    }
    return net->n_weight_elems * sizeof(float) + net->gradient_bytes + net->activations.size_bytes +
           net->small.size_bytes + net->threads.size_bytes;
}
