#include "serve/executor/executor_private.h"
#include "serve/model/onnx_texts.h"

#include "onnx/onnx.h"

#include <stdlib.h>
#include <string.h>

_Static_assert(SERVE_ROWS_BYTES == WEIR_ONNX_ROWS_BYTES, "one sentence");

struct onnx_serve_model {
    struct serve_model model;
    struct weir_onnx *onnx;
    struct weir_arena arena;
    struct onnx_texts texts;   /**< In the arena. */
    struct serve_port ports[]; /**< Inputs, then outputs. */
};

static struct onnx_serve_model *own(struct serve_model *model)
{
    return WEIR_CONTAINER_OF(model, struct onnx_serve_model, model);
}

static void copy_ports(struct serve_port *to, const struct weir_onnx_port *from, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        to[i] =
            (struct serve_port){.name = from[i].name, .dtype = from[i].dtype, .rank = from[i].rank};
        memcpy(to[i].dims, from[i].dims, sizeof to[i].dims);
    }
}

static weir_status describe(struct weir_onnx *onnx, struct serve_model **out,
                            struct weir_error *err)
{
    size_t n_inputs, n_outputs;
    const struct weir_onnx_port *inputs = weir_onnx_inputs(onnx, &n_inputs);
    const struct weir_onnx_port *outputs = weir_onnx_outputs(onnx, &n_outputs);
    struct onnx_serve_model *self =
        calloc(1, sizeof *self + (n_inputs + n_outputs) * sizeof self->ports[0]);
    if (self == NULL) {
        return weir_error_set(err, WEIR_ERR_NOMEM, "no memory for a model");
    }
    copy_ports(self->ports, inputs, n_inputs);
    copy_ports(self->ports + n_inputs, outputs, n_outputs);
    self->onnx = onnx;
    self->model = (struct serve_model){.inputs = self->ports,
                                       .n_inputs = n_inputs,
                                       .outputs = self->ports + n_inputs,
                                       .n_outputs = n_outputs,
                                       .is_resizable = weir_onnx_is_resizable(onnx)};
    enum weir_onnx_rows rows = weir_onnx_rows(onnx, self->model.rows_why);
    self->model.rows = rows == WEIR_ONNX_ROWS_APART ? SERVE_ROWS_APART : SERVE_ROWS_MIXED;
    *out = &self->model;
    return WEIR_OK;
}

static void unload(struct serve_model *model)
{
    struct onnx_serve_model *self = own(model);
    weir_onnx_free(self->onnx);
    weir_arena_fini(&self->arena);
    free(self);
}

static weir_status read_texts(struct serve_model *model, const struct model_bytes *bytes,
                              struct weir_error *err)
{
    struct onnx_serve_model *self = own(model);
    weir_arena_init(&self->arena, 0);
    weir_status status = onnx_texts_read(bytes->at, bytes->n, &self->arena, &self->texts, err);
    if (status != WEIR_OK) {
        unload(model);
    }
    return status;
}

static const char *metadata(struct serve_model *model, const char *key)
{
    return onnx_texts_find(&own(model)->texts, key);
}

static weir_status load(const char *path, const struct executor_options *options,
                        struct serve_model **out, struct weir_error *err)
{
    const struct weir_onnx_limits limits = {.run_bytes = options->memory_max_bytes,
                                            .n_threads = options->n_threads,
                                            .only_interprets = options->only_interprets};
    struct model_bytes bytes;
    struct weir_onnx *onnx;
    WEIR_TRY(model_bytes_map_onnx(path, options, &bytes, err));
    weir_status status = weir_onnx_load(bytes.at, bytes.n, &limits, &onnx, err);
    if (status == WEIR_OK) {
        status = describe(onnx, out, err);
        if (status != WEIR_OK) {
            weir_onnx_free(onnx);
        }
    }
    if (status == WEIR_OK) {
        status = read_texts(*out, &bytes, err);
    }
    model_bytes_unmap(&bytes);
    return status == WEIR_OK ? WEIR_OK : weir_error_prefix(err, "%s: ", path);
}

static weir_status run(struct serve_model *model, struct weir_tensor *const *in,
                       struct weir_tensor **out, struct weir_error *err)
{
    return weir_onnx_run(own(model)->onnx, in, out, err);
}

static const struct executor_ops ops = {
    .load = load, .run = run, .unload = unload, .metadata = metadata};

const struct weir_kind weir_executor_onnx_kind = {
    .name = "onnx",
    .doc = "Weir's own: models in ONNX files of opsets 7 and later, on the processor.",
    .ops = &ops,
};
