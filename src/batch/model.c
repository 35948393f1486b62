#include "batch/model.h"

#include "serve/executor.h"
#include "serve/preprocess.h"
#include "serve/rows.h"

#include <stdlib.h>
#include <string.h>

struct batch_model {
    struct weir_arena arena;
    struct weir_signature signature;
    struct serve_model *executor;
    int64_t batch;
    struct weir_tensor *in; /**< Of `batch` pictures. */
    struct weir_tensor *out[SERVE_PORTS_MAX];
};

static weir_status check(const struct batch_model *model, const struct batch_spec *spec,
                         struct weir_error *err)
{
    const struct weir_signature *signature = &model->signature;
    if (!signature->has_picture || signature->n_inputs != 1) {
        return weir_error_set(err, WEIR_ERR_UNSUPPORTED,
                              "model %s takes %s: a batch prediction gives it a picture, and "
                              "nothing beside",
                              spec->model,
                              signature->has_picture ? "more than a picture" : "tensors");
    }
    bool is_classifier = signature->output_kind == SIGNATURE_LOGITS ||
                         signature->output_kind == SIGNATURE_PROBABILITIES;
    if (strcmp(spec->format, "csv") == 0 && (!is_classifier || spec->values)) {
        return weir_error_set(err, WEIR_ERR_UNSUPPORTED,
                              "format csv has labels and probabilities only: take jsonl for the "
                              "values of model %s",
                              spec->model);
    }
    return WEIR_OK;
}

static weir_status make_input(struct batch_model *model, struct weir_error *err)
{
    const struct signature_picture *picture = &model->signature.picture;
    int64_t c = picture->channels, h = picture->height, w = picture->width;
    const int64_t dims[] = {model->batch, picture->is_nhwc ? h : c, picture->is_nhwc ? w : h,
                            picture->is_nhwc ? c : w};
    int32_t rank = model->signature.inputs[picture->i_input].rank;
    return weir_tensor_create(picture->dtype, rank, dims + (4 - rank), &model->in, err);
}

static weir_status load(struct batch_model *model, const struct batch_spec *spec,
                        struct weir_client *client, struct weir_error *err)
{
    /* In the task's own folder, under a name of its own: a task may have two. */
    const char *path =
        client != NULL ? weir_arena_printf(&model->arena, "model-%.16s", spec->blob) : spec->blob;
    WEIR_TRY(
        weir_signature_read(spec->signature, "$.signature", &model->arena, &model->signature, err));
    WEIR_TRY(check(model, spec, err));
    model->batch = spec->batch_size;
    if (client != NULL) {
        WEIR_TRY(weir_client_blob_get(client, spec->blob, path, err));
    }
    const struct executor_options options = {.n_threads = (int32_t)spec->threads,
                                             .onnxruntime_path = spec->onnxruntime,
                                             .batch_max = (int32_t)model->batch,
                                             .shapes = model->signature.inputs,
                                             .n_shapes = model->signature.n_inputs};
    WEIR_TRY(executor_load(model->signature.executor, path, &options, &model->executor, err));
    if (model->executor->n_inputs != 1 ||
        model->executor->n_outputs != model->signature.n_outputs) {
        return weir_error_set(err, WEIR_ERR_CORRUPT,
                              "model %s: its file has other inputs and outputs than its signature",
                              spec->model);
    }
    if (!serve_model_joins(model->executor, &model->signature)) {
        model->batch = 1; /* a picture's answer must not depend on its neighbours */
    }
    return make_input(model, err);
}

weir_status batch_model_open(const struct batch_spec *spec, struct weir_client *client,
                             struct batch_model **out, struct weir_error *err)
{
    struct batch_model *model = weir_xalloc(sizeof *model);
    memset(model, 0, sizeof *model);
    weir_arena_init(&model->arena, 0);
    weir_status status = load(model, spec, client, err);
    if (status != WEIR_OK) {
        batch_model_close(model);
        return status;
    }
    *out = model;
    return WEIR_OK;
}

void batch_model_close(struct batch_model *model)
{
    if (model == NULL) {
        return;
    }
    serve_tensors_release(model->out, SERVE_PORTS_MAX);
    serve_tensors_release(&model->in, 1);
    serve_model_unload(model->executor);
    weir_arena_fini(&model->arena);
    free(model);
}

const struct weir_signature *batch_model_signature(const struct batch_model *model)
{
    return &model->signature;
}

int64_t batch_model_batch(const struct batch_model *model)
{
    return model->batch;
}

weir_status batch_model_put(struct batch_model *model, int64_t i, const struct weir_image *image,
                            struct weir_error *err)
{
    const struct signature_picture *picture = &model->signature.picture;
    return weir_picture_fill(
        picture, image, (char *)model->in->data + (size_t)i * weir_picture_bytes(picture), err);
}

/* The first n of the pictures, as a tensor of its own where that is not all. */
static weir_status first_of(const struct batch_model *model, int64_t n, struct weir_tensor **out,
                            struct weir_error *err)
{
    struct weir_tensor *in = model->in, *part;
    if (n == model->batch) {
        *out = weir_tensor_retain(in);
        return WEIR_OK;
    }
    int64_t dims[WEIR_TENSOR_RANK_MAX];
    memcpy(dims, in->dims, sizeof dims);
    dims[0] = n;
    WEIR_TRY(weir_tensor_create(in->dtype, in->rank, dims, &part, err));
    memcpy(part->data, in->data, part->n_elems * weir_dtype_bytes(part->dtype));
    *out = part;
    return WEIR_OK;
}

weir_status batch_model_run(struct batch_model *model, int64_t n, struct weir_tensor *const **out,
                            struct weir_error *err)
{
    struct weir_tensor *in;
    serve_tensors_release(model->out, SERVE_PORTS_MAX);
    WEIR_TRY(first_of(model, n, &in, err));
    weir_status status = serve_model_run(model->executor, &in, model->out, err);
    serve_tensors_release(&in, 1);
    if (status == WEIR_OK) {
        *out = model->out;
    }
    return status;
}
