/*
 * Net files. A net is planned for a batch; a run of n images costs n images' time, rounded up to
 * whole slices of the plan. So two plans do: one whose threads share one image, for single requests,
 * and one of batch_max images. Larger batches are run in parts.
 */
#include "../executor_private.h"
#include "../net_texts.h"

#include "nn/net_file.h"

#include <stdlib.h>
#include <string.h>

struct weir_serve_model {
    struct serve_model model;
    struct weir_net_file *file;
    struct weir_net *single, *many; /**< many: NULL if batch_max is 1. */
    size_t in_elems, out_elems;     /**< Of one image. */
    struct serve_port input, output;
    struct weir_arena arena;
    struct net_texts texts; /**< In the arena. */
};

static struct weir_serve_model *own(struct serve_model *model)
{
    return WEIR_CONTAINER_OF(model, struct weir_serve_model, model);
}

static weir_status make_net(struct weir_serve_model *self, int32_t batch,
                            const struct executor_options *options, struct weir_net **out,
                            struct weir_error *err)
{
    int32_t n_threads = executor_threads(options);
    struct weir_net_config config = {.batch = batch, .n_threads = n_threads};
    if (batch == 1 && n_threads > 1) {
        config.n_row_tiles = WEIR_MIN(n_threads, WEIR_NET_ROW_TILES_MAX);
    }
    WEIR_TRY(weir_net_file_create_net(self->file, &config, out, err));
    size_t most = options->memory_max_bytes > 0 ? options->memory_max_bytes : EXECUTOR_MEMORY_BYTES;
    size_t bytes = weir_net_memory_bytes(*out);
    if (bytes > most) {
        weir_net_destroy(*out);
        *out = NULL;
        return weir_error_set(err, WEIR_ERR_LIMIT,
                              "a batch of %d needs %zu MiB, and %zu MiB are allowed", batch,
                              bytes >> 20, most >> 20);
    }
    return WEIR_OK;
}

/* Ports "input" [-1, C, H, W] and "output" [-1, C]. */
static void describe(struct weir_serve_model *self)
{
    const struct weir_graph *graph = weir_net_file_graph(self->file);
    struct weir_shape in = weir_graph_input_shape(graph);
    struct weir_shape out = weir_graph_output_shape(graph);
    self->in_elems = (size_t)in.c * (size_t)in.h * (size_t)in.w;
    self->out_elems = (size_t)out.c * (size_t)out.h * (size_t)out.w;
    self->input = (struct serve_port){
        .name = "input", .dtype = WEIR_DTYPE_FLOAT, .rank = 4, .dims = {-1, in.c, in.h, in.w}};
    self->output = (struct serve_port){.name = "output",
                                       .dtype = WEIR_DTYPE_FLOAT,
                                       .rank = 2,
                                       .dims = {-1, (int64_t)self->out_elems}};
    self->model = (struct serve_model){
        .inputs = &self->input, .n_inputs = 1, .outputs = &self->output, .n_outputs = 1};
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
    weir_net_destroy(self->many);
    weir_net_destroy(self->single);
    weir_net_file_close(self->file);
    weir_arena_fini(&self->arena);
    free(self);
}

static weir_status make_nets(struct weir_serve_model *self, const struct executor_options *options,
                             struct weir_error *err)
{
    WEIR_TRY(make_net(self, 1, options, &self->single, err));
    return options->batch_max > 1 ? make_net(self, options->batch_max, options, &self->many, err)
                                  : WEIR_OK;
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
        status = make_nets(self, options, err);
    }
    if (status != WEIR_OK) {
        unload(&self->model);
        return status;
    }
    describe(self);
    self->texts = net_texts_make(self->file, &self->arena);
    *out = &self->model;
    return WEIR_OK;
}

static weir_status run_part(struct weir_serve_model *self, const float *from, size_t n, float *to,
                            struct weir_error *err)
{
    struct weir_net *net = n == 1 ? self->single : self->many;
    memcpy(weir_net_input(net), from, n * self->in_elems * sizeof *from);
    weir_status status = weir_net_forward(net, (int32_t)n, NULL);
    if (status != WEIR_OK) {
        return weir_error_set(err, status, "the net failed: %s", weir_status_text(status));
    }
    memcpy(to, weir_net_output(net), n * self->out_elems * sizeof *to);
    return WEIR_OK;
}

static weir_status run(struct serve_model *model, struct weir_tensor *const *in,
                       struct weir_tensor **out, struct weir_error *err)
{
    struct weir_serve_model *self = own(model);
    struct weir_tensor *made;
    int64_t dims[] = {in[0]->dims[0], (int64_t)self->out_elems};
    WEIR_TRY(weir_tensor_create(WEIR_DTYPE_FLOAT, 2, dims, &made, err));
    const float *from = in[0]->data;
    float *to = made->data;
    size_t most = self->many != NULL ? (size_t)weir_net_batch(self->many) : 1;
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

static const struct executor_ops ops = {
    .load = load, .run = run, .unload = unload, .metadata = metadata};

const struct weir_kind weir_executor_weir_kind = {
    .name = "weir",
    .doc = "Weir's own: models that Weir trained, on the processor.",
    .ops = &ops,
};
