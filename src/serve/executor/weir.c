/*
 * Net files. A net is planned for a batch, so several are planned, and a run takes the smallest that
 * holds it; larger batches are run in parts.
 *
 * On the processor n images cost n images' time, rounded up to whole slices of the plan. So two
 * plans do: one whose threads share one image, for single requests, and one of batch_max images. A GPU
 * computes the whole batch of its plan, so there are plans in between: of 8, 32, 128 …, below half of the
 * largest.
 *
 * A detector takes pictures of any size: when another size comes, its nets are planned again, which takes some milliseconds.
 */
#include "serve/executor/executor_private.h"
#include "serve/model/net_texts.h"

#include "gpu_share.h"

#include "base/log.h"
#include "nn/net_file.h"

#include <stdlib.h>
#include <string.h>

#define NETS_MAX   8
#define STEP_FIRST 8
#define STEP       4
#define SIDE_MAX   4096 /* a detector takes no larger input */

struct weir_serve_model {
    struct serve_model model;
    struct weir_net_file *file;
    struct weir_net *nets[NETS_MAX]; /**< By batch; the first is of 1. */
    size_t n_nets;
    bool is_on_gpu;
    enum weir_precision precision;
    void *weights;              /**< On a GPU: the processor's copy, of all nets. */
    size_t in_elems, out_elems; /**< Of one image. */
    struct executor_options options;
    bool is_detector;
    struct serve_port input, output;
    struct weir_arena arena;
    struct net_texts texts; /**< In the arena. */
};

static struct weir_serve_model *own(struct serve_model *model)
{
    return WEIR_CONTAINER_OF(model, struct weir_serve_model, model);
}

/* ---- planning --------------------------------------------------------------------------------- */

/* Batches to plan for, the smallest first; returns how many. */
static size_t choose_batches(int32_t batch_max, bool is_on_gpu, int32_t out[NETS_MAX])
{
    size_t n = 0;
    out[n++] = 1;
    for (int32_t batch = STEP_FIRST; is_on_gpu && 2 * batch < batch_max && n < NETS_MAX - 1;
         batch *= STEP) {
        out[n++] = batch;
    }
    if (batch_max > 1) {
        out[n++] = batch_max;
    }
    return n;
}

static size_t memory_max(const struct executor_options *options)
{
    return options->memory_max_bytes > 0 ? options->memory_max_bytes : EXECUTOR_MEMORY_BYTES;
}

static weir_status plan_on_processor(struct weir_serve_model *self, int32_t batch,
                                     const struct executor_options *options, struct weir_net **out,
                                     struct weir_error *err)
{
    int32_t n_threads = executor_threads(options);
    struct weir_net_config config = {
        .batch = batch, .n_threads = n_threads, .precision = self->precision};
    if (batch == 1 && n_threads > 1) {
        config.n_row_tiles = WEIR_MIN(n_threads, WEIR_NET_ROW_TILES_MAX);
    }
    WEIR_TRY(weir_net_file_create_net(self->file, &config, out, err));
    size_t most = memory_max(options), bytes = weir_net_memory_bytes(*out);
    if (bytes > most) {
        weir_net_destroy(*out);
        *out = NULL;
        return weir_error_set(err, WEIR_ERR_LIMIT,
                              "a batch of %d needs %zu MiB, and %zu MiB are allowed", batch,
                              bytes >> 20, most >> 20);
    }
    return WEIR_OK;
}

/* The nets of a graph have the same weights at the same places. */
static void *share_weights(void *context, size_t size_bytes)
{
    struct weir_serve_model *self = context;
    if (self->weights == NULL) {
        size_t whole = (size_bytes + 63) / 64 * 64;
        self->weights = aligned_alloc(64, whole);
        if (self->weights != NULL) {
            memset(self->weights, 0, whole);
        }
    }
    return self->weights;
}

/* A first run compiles and records what later ones play. It is nobody's request. */
static weir_status plan_on_gpu(struct weir_serve_model *self, int32_t batch,
                               const struct executor_options *options, struct weir_net **out,
                               struct weir_error *err)
{
    const struct weir_net_config config = {.batch = batch,
                                           .precision = self->precision,
                                           .backend = options->gpu != NULL ? options->gpu
                                                                           : &weir_cuda_backend,
                                           .alloc_weights = share_weights,
                                           .alloc_context = self};
    weir_status status = gpu_share_create_net(self->file, config, memory_max(options), out, err);
    if (status != WEIR_OK) {
        return weir_error_prefix(err, "a batch of %d on the GPU: ", batch);
    }
    status = weir_net_forward(*out, batch, NULL);
    return status == WEIR_OK
               ? WEIR_OK
               : weir_error_set(err, status, "a first run of %d on the GPU failed", batch);
}

static void free_nets(struct weir_serve_model *self)
{
    for (size_t i = 0; i < NETS_MAX; i++) {
        if (self->is_on_gpu) {
            gpu_share_destroy_net(self->nets[i]);
        } else {
            weir_net_destroy(self->nets[i]);
        }
        self->nets[i] = NULL;
    }
    free(self->weights);
    self->weights = NULL;
    self->n_nets = 0;
}

/* What is made stays for free_nets, also on an error. */
static weir_status make_nets(struct weir_serve_model *self, bool is_on_gpu,
                             const struct executor_options *options, struct weir_error *err)
{
    int32_t batches[NETS_MAX];
    size_t n = choose_batches(options->batch_max, is_on_gpu, batches);
    self->is_on_gpu = is_on_gpu;
    for (size_t i = 0; i < n; i++) {
        WEIR_TRY((is_on_gpu ? plan_on_gpu : plan_on_processor)(self, batches[i], options,
                                                               &self->nets[i], err));
    }
    self->n_nets = n;
    return WEIR_OK;
}

static weir_status place_nets(struct weir_serve_model *self, const struct executor_options *options,
                              struct weir_error *err)
{
    struct weir_error lacks;
    WEIR_TRY(executor_precision(options, &self->precision, err));
    if (!executor_wants_gpu(options)) {
        return make_nets(self, false, options, err);
    }
    weir_status status = make_nets(self, true, options, &lacks);
    if (status == WEIR_ERR_UNSUPPORTED && options->device == EXECUTOR_AUTO) {
        weir_log(WEIR_LOG_WARN, "gpu_not_used", WEIR_KV_STR("executor", "weir"),
                 WEIR_KV_STR("reason", lacks.message));
        free_nets(self);
        return make_nets(self, false, options, err);
    }
    return status == WEIR_OK ? WEIR_OK : weir_error_set(err, status, "%s", lacks.message);
}

/* ---- loading ---------------------------------------------------------------------------------- */

static void measure(struct weir_serve_model *self)
{
    const struct weir_graph *graph = weir_net_file_graph(self->file);
    struct weir_shape in = weir_graph_input_shape(graph);
    struct weir_shape out = weir_graph_output_shape(graph);
    self->in_elems = (size_t)in.c * (size_t)in.h * (size_t)in.w;
    self->out_elems = (size_t)out.c * (size_t)out.h * (size_t)out.w;
}

/* Ports "input" [-1, C, H, W] and "output" [-1, C]; of a detector H, W and C are free. */
static void describe(struct weir_serve_model *self)
{
    struct weir_shape in = weir_graph_input_shape(weir_net_file_graph(self->file));
    bool is_free = self->is_detector;
    measure(self);
    self->input = (struct serve_port){.name = "input",
                                      .dtype = WEIR_DTYPE_FLOAT,
                                      .rank = 4,
                                      .dims = {-1, in.c, is_free ? -1 : in.h, is_free ? -1 : in.w}};
    self->output = (struct serve_port){.name = "output",
                                       .dtype = WEIR_DTYPE_FLOAT,
                                       .rank = 2,
                                       .dims = {-1, is_free ? -1 : (int64_t)self->out_elems}};
    self->model =
        (struct serve_model){.inputs = &self->input,
                             .n_inputs = 1,
                             .outputs = &self->output,
                             .n_outputs = 1,
                             .rows = SERVE_ROWS_APART, /* norms use their running statistics */
                             .place = self->is_on_gpu ? EXECUTOR_ON_GPU : EXECUTOR_ON_PROCESSOR};
}

static const char *metadata(struct serve_model *model, const char *key)
{
    const struct net_texts *texts = &own(model)->texts;
    return strcmp(key, "weir.picture") == 0       ? texts->picture
           : strcmp(key, "weir.labels") == 0      ? texts->labels
           : strcmp(key, "weir.output_kind") == 0 ? texts->output_kind
                                                  : NULL;
}

static void unload(struct serve_model *model)
{
    struct weir_serve_model *self = own(model);
    free_nets(self);
    weir_net_file_close(self->file);
    weir_arena_fini(&self->arena);
    free(self);
}

static weir_status load(const char *path, const struct executor_options *options,
                        struct serve_model **out, struct weir_error *err)
{
    struct weir_serve_model *self = calloc(1, sizeof *self);
    if (self == NULL) {
        return weir_error_set(err, WEIR_ERR_NOMEM, "no memory for a model");
    }
    weir_arena_init(&self->arena, 0);
    weir_status status = weir_net_file_open(path, &self->file, err);
    if (status == WEIR_OK) {
        self->options = *options;
        self->options.onnxruntime_path = self->options.precision = NULL; /* the caller's */
        self->is_detector = weir_graph_is_detector(weir_net_file_graph(self->file));
        status = place_nets(self, options, err);
    }
    if (status != WEIR_OK) {
        unload(&self->model);
        return status;
    }
    describe(self);
    self->texts = net_texts_make(self->file, &self->arena);
    if (self->is_detector) {
        self->texts.picture = NULL; /* any size will do: the kind of detector says what it takes */
    }
    *out = &self->model;
    return WEIR_OK;
}

/* ---- running ---------------------------------------------------------------------------------- */

static weir_status broken(struct weir_error *err)
{
    return weir_error_set(err, WEIR_ERR_INTERNAL,
                          "the GPU failed, and this process computes nothing on it any more: send "
                          "the request again when the replica has been started anew");
}

static weir_status run_part(struct weir_serve_model *self, const float *from, size_t n, float *to,
                            struct weir_error *err)
{
    size_t i = 0;
    while ((size_t)weir_net_batch(self->nets[i]) < n) {
        i++;
    }
    struct weir_net *net = self->nets[i];
    memcpy(weir_net_input(net), from, n * self->in_elems * sizeof *from);
    weir_status status = weir_net_forward(net, (int32_t)n, NULL);
    if (status == WEIR_ERR_INTERNAL && self->is_on_gpu) {
        self->model.is_broken = true;
        return broken(err);
    }
    if (status != WEIR_OK) {
        return weir_error_set(err, status, "the net failed: %s", weir_status_text(status));
    }
    memcpy(to, weir_net_output(net), n * self->out_elems * sizeof *to);
    return WEIR_OK;
}

/* Nets for pictures of this size. A failure leaves none, and the next call tries again. */
static weir_status fit_size(struct weir_serve_model *self, const struct weir_tensor *in,
                            struct weir_error *err)
{
    struct weir_shape have = weir_graph_input_shape(weir_net_file_graph(self->file));
    int64_t h = in->dims[2], w = in->dims[3];
    if (!self->is_detector || (have.h == h && have.w == w && self->n_nets > 0)) {
        return WEIR_OK;
    }
    if (h > SIDE_MAX || w > SIDE_MAX) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "input: a picture of %lld x %lld; at most %d a side", (long long)w,
                              (long long)h, SIDE_MAX);
    }
    free_nets(self);
    WEIR_TRY(weir_net_file_resize(self->file, (int32_t)h, (int32_t)w, err));
    WEIR_TRY(make_nets(self, self->is_on_gpu, &self->options, err));
    measure(self);
    return WEIR_OK;
}

static weir_status run(struct serve_model *model, struct weir_tensor *const *in,
                       struct weir_tensor **out, struct weir_error *err)
{
    struct weir_serve_model *self = own(model);
    struct weir_tensor *made;
    if (self->model.is_broken) {
        return broken(err);
    }
    WEIR_TRY(fit_size(self, in[0], err));
    int64_t dims[] = {in[0]->dims[0], (int64_t)self->out_elems};
    WEIR_TRY(weir_tensor_create(WEIR_DTYPE_FLOAT, 2, dims, &made, err));
    const float *from = in[0]->data;
    float *to = made->data;
    size_t most = (size_t)weir_net_batch(self->nets[self->n_nets - 1]);
    for (size_t n_left = (size_t)dims[0]; n_left > 0;) {
        size_t n = WEIR_MIN(n_left, most);
        weir_status status = run_part(self, from, n, to, err);
        if (status != WEIR_OK) {
            weir_tensor_release(made);
            return status;
        }
        from += n * self->in_elems;
        to += n * self->out_elems;
        n_left -= n;
    }
    out[0] = made;
    return WEIR_OK;
}

static const struct executor_ops ops = {.load = load,
                                        .run = run,
                                        .unload = unload,
                                        .metadata = metadata,
                                        .can_use_gpu = true,
                                        .has_precisions = true};

const struct weir_kind weir_executor_weir_kind = {
    .name = "weir",
    .doc = "Weir's own: models that Weir trained, on the processor or a GPU.",
    .ops = &ops,
};
