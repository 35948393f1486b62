#include "predict/model.h"

#include "base/log.h"
#include "nn/net_file.h"
#include "serve/preprocess.h"
#include "serve/rows.h"
#include "stats/frozen.h"
#include "tensor/convert.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LABEL_MAX_BYTES 256
#define OUTPUT_MAX      ((size_t)1 << 20)

/* ---- baseline -------------------------------------------------------------------------------- */

const char *const model_signal_names[MODEL_N_SIGNALS] = {
    [MODEL_SCORE] = "score",       [MODEL_BRIGHTNESS] = "brightness",
    [MODEL_CONTRAST] = "contrast", [MODEL_SHARPNESS] = "sharpness",
    [MODEL_ENTROPY] = "entropy",   [MODEL_EMBEDDING] = "embedding"};

static bool read_histogram(const json_t *baseline, const char *name, struct weir_histogram *out)
{
    struct weir_error err;
    const json_t *value = json_object_get(baseline, name);
    if (!json_is_object(value)) {
        return false;
    }
    if (weir_histogram_from_json(value, out, &err) != WEIR_OK) {
        weir_log(WEIR_LOG_WARN, "baseline_unusable", WEIR_KV_STR("signal", name),
                 WEIR_KV_STR("reason", err.message));
        return false;
    }
    return true;
}

static bool read_embedding(struct model *model, const json_t *value)
{
    struct weir_error err;
    if (!json_is_object(value) || model->gives != WEIR_STAGE_MODEL_EMBEDS) {
        return false;
    }
    if (weir_embedding_read(value, model->dim, &model->embedding, &err) != WEIR_OK) {
        weir_log(WEIR_LOG_WARN, "baseline_unusable", WEIR_KV_STR("signal", "embedding"),
                 WEIR_KV_STR("reason", err.message));
        return false;
    }
    model->baselines[MODEL_EMBEDDING] = model->embedding.distance;
    return true;
}

/* Files that Weir wrote carry it; others are not watched for drift. */
static void read_baseline(struct model *model, const char *path)
{
    struct weir_net_file *file;
    struct weir_error err;
    if (model->signature.format != WEIR_MODEL_FORMAT_WEIR ||
        weir_net_file_open(path, &file, &err) != WEIR_OK) {
        return;
    }
    const char *text = weir_net_file_info(file)->baseline;
    json_t *baseline = text != NULL ? json_loads(text, 0, NULL) : NULL;
    for (size_t i = 0; i < MODEL_EMBEDDING; i++) {
        model->has_baseline[i] =
            read_histogram(baseline, model_signal_names[i], &model->baselines[i]);
    }
    model->has_baseline[MODEL_EMBEDDING] =
        read_embedding(model, json_object_get(baseline, "embedding"));
    json_decref(baseline);
    weir_net_file_close(file);
}

/* ---- what it gives --------------------------------------------------------------------------- */

static weir_status unsupported(const struct model *model, const char *what, struct weir_error *err)
{
    return weir_error_set(err, WEIR_ERR_UNSUPPORTED, "model %s version %lld %s", model->name,
                          (long long)model->version, what);
}

/* What stands in decisions, which the server takes no longer, and which people read. */
static bool is_label(const char *text)
{
    size_t len = strlen(text);
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)text[i];
        bool is_c1 = c == 0xC2 && (unsigned char)text[i + 1] < 0xA0; /* U+0080 to U+009F */
        if (c < 0x20 || c == 0x7F || is_c1) {
            return false;
        }
    }
    return len > 0 && len <= LABEL_MAX_BYTES;
}

static weir_status take_labels(struct model *model, struct weir_error *err)
{
    const struct weir_signature *signature = &model->signature;
    if (signature->labels == NULL) {
        return unsupported(model, "has no labels: push it with --labels FILE", err);
    }
    if (signature->n_labels != model->dim) {
        return weir_error_set(err, WEIR_ERR_UNSUPPORTED,
                              "model %s version %lld has %zu outputs and %zu labels", model->name,
                              (long long)model->version, model->dim, signature->n_labels);
    }
    for (size_t i = 0; i < model->dim; i++) {
        if (!is_label(signature->labels[i])) {
            return weir_error_set(err, WEIR_ERR_UNSUPPORTED,
                                  "model %s version %lld: label %zu is empty, longer than %d bytes "
                                  "or holds control characters",
                                  model->name, (long long)model->version, i, LABEL_MAX_BYTES);
        }
    }
    model->labels = signature->labels;
    return WEIR_OK;
}

static weir_status find_what_it_gives(struct model *model, struct weir_error *err)
{
    const struct weir_signature *signature = &model->signature;
    if (!signature->has_picture || signature->n_inputs != 1 || model->serve->n_inputs != 1) {
        return unsupported(model,
                           "takes no picture: its signature has no picture rule (push it with "
                           "--preprocess FILE)",
                           err);
    }
    switch (signature->output_kind) {
    case SIGNATURE_EMBEDDING:
        model->gives = WEIR_STAGE_MODEL_EMBEDS;
        return WEIR_OK;
    case SIGNATURE_LOGITS:
    case SIGNATURE_PROBABILITIES:
        model->gives = WEIR_STAGE_MODEL_CLASSIFIES;
        return WEIR_OK;
    case SIGNATURE_TENSOR:
        break;
    }
    return unsupported(model,
                       "gives numbers that its signature does not explain: push it with --labels "
                       "FILE, or with output_kind in --preprocess FILE",
                       err);
}

/* ---- runs ------------------------------------------------------------------------------------ */

/* Exponentials of the distances to the largest, so that none overflows. In place. */
static void softmax(float *values, size_t n)
{
    double largest = (double)values[0], sum = 0;
    for (size_t i = 1; i < n; i++) {
        largest = fmax(largest, (double)values[i]);
    }
    for (size_t i = 0; i < n; i++) {
        sum += exp((double)values[i] - largest);
    }
    for (size_t i = 0; i < n; i++) {
        values[i] = (float)(exp((double)values[i] - largest) / sum);
    }
}

static void to_unit_length(float *vector, size_t dim)
{
    double squares = 0;
    for (size_t i = 0; i < dim; i++) {
        squares += (double)vector[i] * (double)vector[i];
    }
    double factor = squares > 0 ? 1 / sqrt(squares) : 0;
    for (size_t i = 0; i < dim; i++) {
        vector[i] = (float)(vector[i] * factor);
    }
}

/* Rows of pixels, turned; a pixel is `bytes` long. */
static void mirror_rows(char *rows, size_t n_rows, size_t width, size_t bytes)
{
    char kept[32];
    for (size_t row = 0; row < n_rows; row++, rows += width * bytes) {
        for (size_t x = 0; x < width / 2; x++) {
            char *left = rows + x * bytes, *right = rows + (width - 1 - x) * bytes;
            memcpy(kept, left, bytes);
            memcpy(left, right, bytes);
            memcpy(right, kept, bytes);
        }
    }
}

/* Picture i, in its place, or at the mirror images behind the batch. */
static void mirror(struct model *model, size_t n)
{
    const struct signature_picture *picture = &model->signature.picture;
    size_t width = (size_t)picture->width, height = (size_t)picture->height;
    size_t channels = (size_t)picture->channels, bytes = weir_dtype_bytes(picture->dtype);
    for (size_t i = 0; i < n; i++) {
        char *one = (char *)model->input->data + i * model->picture_bytes;
        if (model->has_mirrors) {
            char *other = one + model->batch * model->picture_bytes;
            memcpy(other, one, model->picture_bytes);
            one = other;
        }
        if (picture->is_nhwc) {
            mirror_rows(one, height, width, channels * bytes);
        } else {
            mirror_rows(one, channels * height, width, bytes);
        }
    }
}

static double element(enum weir_dtype dtype, const char *at)
{
    double value;
    if (dtype == WEIR_DTYPE_FLOAT) {
        float single;
        memcpy(&single, at, sizeof single);
        return (double)single;
    }
    weir_elems_to_f64(dtype, at, &value, 1);
    return value;
}

/* The first n pictures are the input from now on. */
static void narrow(struct model *model, size_t n)
{
    if (model->batch > 1) {
        model->input->n_elems = model->input->n_elems / (size_t)model->input->dims[0] * n;
        model->input->dims[0] = (int64_t)n;
    }
}

/* The first output of the pictures in the input, as floats: dim of each. */
static weir_status run_once(struct model *model, float *out, struct weir_error *err)
{
    struct weir_tensor *outputs[SERVE_PORTS_MAX] = {0};
    weir_status status = serve_model_run(model->serve, &model->input, outputs, err);
    if (status != WEIR_OK) {
        return weir_error_prefix(err, "the model failed: ");
    }
    const struct weir_tensor *first = outputs[0];
    size_t n = (model->batch > 1 ? (size_t)model->input->dims[0] : model->n_rows) * model->dim;
    if (first->n_elems != n) {
        status =
            weir_error_set(err, WEIR_ERR_UNSUPPORTED,
                           "the model gave %zu numbers, and %zu were expected", first->n_elems, n);
    } else if (weir_dtype_class(first->dtype) != WEIR_DTYPE_IS_FLOAT) {
        status = weir_error_set(err, WEIR_ERR_UNSUPPORTED, "the model gives %s, no floats",
                                weir_dtype_name(first->dtype));
    } else {
        size_t bytes = weir_dtype_bytes(first->dtype);
        for (size_t i = 0; i < n; i++) {
            out[i] = (float)element(first->dtype, (const char *)first->data + i * bytes);
        }
    }
    serve_tensors_release(outputs, model->serve->n_outputs);
    return status;
}

/* The vectors of the mirror images, one run later. */
static weir_status run_mirrored(struct model *model, size_t n, float *out, struct weir_error *err)
{
    WEIR_TRY(run_once(model, model->output, err));
    mirror(model, n);
    return run_once(model, out, err);
}

static weir_status run_embedding(struct model *model, size_t n, struct weir_error *err)
{
    size_t n_values = n * model->dim;
    float *own = NULL;
    const float *mirrored = model->output + model->batch * model->dim;
    weir_status status;
    if (model->has_mirrors) {
        mirror(model, n);
        status = run_once(model, model->output, err);
    } else {
        mirrored = own = weir_xalloc(n_values * sizeof *own);
        status = run_mirrored(model, n, own, err);
    }
    for (size_t i = 0; status == WEIR_OK && i < n_values; i++) {
        model->output[i] += mirrored[i];
    }
    for (size_t i = 0; status == WEIR_OK && i < n; i++) {
        to_unit_length(model->output + i * model->dim, model->dim);
    }
    free(own);
    return status;
}

weir_status model_run(struct model *model, size_t n, const float **out, struct weir_error *err)
{
    narrow(model, model->has_mirrors ? model->n_rows : n);
    if (model->gives == WEIR_STAGE_MODEL_EMBEDS) {
        WEIR_TRY(run_embedding(model, n, err));
    } else {
        WEIR_TRY(run_once(model, model->output, err));
        for (size_t i = 0; i < n && model->signature.output_kind == SIGNATURE_LOGITS; i++) {
            softmax(model->output + i * model->dim, model->dim);
        }
    }
    *out = model->output;
    return WEIR_OK;
}

/* Values are (v · scale − mean) / std of v in 0..1: the mean of v, over all. */
static double brightness_of(const struct signature_picture *picture, const char *elems)
{
    size_t area = (size_t)picture->width * (size_t)picture->height;
    size_t channels = (size_t)picture->channels, n = area * channels;
    size_t bytes = weir_dtype_bytes(picture->dtype);
    double sums[3] = {0}, sum = 0;
    for (size_t i = 0; i < n; i++) {
        double value = element(picture->dtype, elems + i * bytes);
        sums[picture->is_nhwc ? i % channels : i / area] += value;
    }
    for (size_t c = 0; c < channels; c++) {
        sum += sums[c] * picture->std[c] + picture->mean[c] * (double)area;
    }
    return sum / (double)n / picture->scale;
}

struct weir_look model_look(struct model *model, size_t i)
{
    const struct signature_picture *picture = &model->signature.picture;
    const char *elems = (const char *)model->input->data + i * model->picture_bytes;
    size_t area = (size_t)picture->width * (size_t)picture->height;
    size_t channels = (size_t)picture->channels, bytes = weir_dtype_bytes(picture->dtype);
    for (size_t k = 0; k < area; k++) {
        double sum = 0;
        for (size_t c = 0; c < channels; c++) {
            size_t at = picture->is_nhwc ? k * channels + c : c * area + k;
            sum += element(picture->dtype, elems + at * bytes) * picture->std[c] + picture->mean[c];
        }
        model->grey[k] = (float)(sum / ((double)channels * picture->scale));
    }
    return weir_look_at(model->grey, (size_t)picture->height, (size_t)picture->width);
}

uint64_t model_digest(const struct model *model, size_t i)
{
    const char *elems = (const char *)model->input->data + i * model->picture_bytes;
    return weir_frozen_digest(elems, model->picture_bytes);
}

weir_status model_put(struct model *model, size_t i, const struct weir_image *image,
                      double *out_brightness, struct weir_error *err)
{
    const struct signature_picture *picture = &model->signature.picture;
    char *elems = (char *)model->input->data + i * model->picture_bytes;
    WEIR_TRY(weir_picture_fill(picture, image, elems, err));
    if (out_brightness != NULL) {
        *out_brightness = brightness_of(picture, elems);
    }
    return WEIR_OK;
}

/* ---- loading --------------------------------------------------------------------------------- */

static weir_status load_file(struct model *model, const char *path, const struct model_name *name,
                             struct weir_error *err)
{
    bool needs_mirrors = executor_wants_gpu(name->executor);
    return model_file_load(path, name, model->batch * (needs_mirrors ? 2 : 1), &model->arena,
                           &model->serve, &model->signature, err);
}

/* The input of a batch, and how many numbers come of a picture. */
static weir_status make_tensors(struct model *model, struct weir_error *err)
{
    const struct serve_port *in = &model->serve->inputs[0], *out = &model->serve->outputs[0];
    const struct signature_picture *picture = &model->signature.picture;
    int64_t dims[WEIR_TENSOR_RANK_MAX];
    bool has_batch = in->rank == 4;
    int32_t at = has_batch ? 1 : 0;
    bool joins = serve_model_joins(model->serve, &model->signature);
    if (!joins) {
        model->batch = 1; /* It cannot take more, or a picture's answer would depend on others. */
    }
    model->has_mirrors =
        joins && model->gives == WEIR_STAGE_MODEL_EMBEDS && serve_model_is_on_gpu(model->serve);
    model->n_rows = model->batch * (model->has_mirrors ? 2 : 1);
    dims[0] = (int64_t)model->n_rows;
    dims[at] = picture->is_nhwc ? picture->height : picture->channels;
    dims[at + 1] = picture->is_nhwc ? picture->width : picture->height;
    dims[at + 2] = picture->is_nhwc ? picture->channels : picture->width;
    WEIR_TRY(weir_tensor_create(picture->dtype, at + 3, dims, &model->input, err));
    model->picture_bytes = weir_picture_bytes(picture);
    model->dim = 1;
    bool is_known = out->rank > 0;
    for (int32_t i = model->signature.is_batched ? 1 : 0; i < out->rank; i++) {
        is_known = is_known && out->dims[i] > 0;
        model->dim *= (size_t)WEIR_MAX(out->dims[i], (int64_t)1);
    }
    if (!is_known && model->signature.labels != NULL) {
        model->dim = model->signature.n_labels; /* A run will tell. */
    }
    return model->dim <= OUTPUT_MAX
               ? WEIR_OK
               : weir_error_set(err, WEIR_ERR_LIMIT,
                                "model %s version %lld gives %zu numbers of a picture, at most %zu "
                                "are used",
                                model->name, (long long)model->version, model->dim, OUTPUT_MAX);
}

static weir_status warm_up(struct model *model, struct weir_error *err)
{
    const float *ignored;
    WEIR_TRY(model_run(model, model->batch, &ignored, err));
    return model_run(model, model->batch, &ignored, err);
}

static weir_status prepare(struct model *model, const char *path, const struct model_name *name,
                           struct weir_error *err)
{
    WEIR_TRY(load_file(model, path, name, err));
    WEIR_TRY(find_what_it_gives(model, err));
    WEIR_TRY(make_tensors(model, err));
    model->output = weir_xalloc(model->n_rows * model->dim * sizeof *model->output);
    model->grey = weir_xalloc(
        WEIR_MAX((size_t)model->signature.picture.width * (size_t)model->signature.picture.height,
                 (size_t)1) *
        sizeof *model->grey);
    if (model->gives == WEIR_STAGE_MODEL_CLASSIFIES) {
        WEIR_TRY(take_labels(model, err));
    }
    read_baseline(model, path);
    weir_status status = warm_up(model, err);
    return status == WEIR_OK ? WEIR_OK
                             : weir_error_prefix(err, "model %s cannot be run: ", name->name);
}

weir_status model_load(const char *path, const struct model_name *name, size_t batch,
                       struct model **out, struct weir_error *err)
{
    struct model *model = weir_xalloc(sizeof *model);
    *model = (struct model){.name = weir_xstrdup(name->name),
                            .id = weir_xstrdup(name->id),
                            .blob = weir_xstrdup(name->blob),
                            .version = name->version,
                            .batch = batch};
    atomic_init(&model->n_refs, 1);
    weir_arena_init(&model->arena, 0);
    weir_status status = prepare(model, path, name, err);
    if (status != WEIR_OK) {
        model_unref(model);
        return status;
    }
    *out = model;
    return WEIR_OK;
}

bool model_is_broken(const struct model *model)
{
    return model->serve->is_broken;
}

struct model *model_ref(struct model *model)
{
    atomic_fetch_add(&model->n_refs, 1);
    return model;
}

void model_unref(struct model *model)
{
    if (model == NULL || atomic_fetch_sub(&model->n_refs, 1) > 1) {
        return;
    }
    serve_model_unload(model->serve);
    weir_tensor_release(model->input);
    weir_arena_fini(&model->arena);
    free(model->output);
    free(model->grey);
    weir_embedding_fini(&model->embedding);
    free(model->name);
    free(model->id);
    free(model->blob);
    free(model);
}
