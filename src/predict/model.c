#include "predict/model.h"

#include "base/arena.h"
#include "base/json.h"
#include "base/log.h"
#include "nn/net_embed.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LABEL_MAX_BYTES 256

struct weir_input model_data_input(const struct weir_net_input *input)
{
    struct weir_input out = {.c = input->shape.c, .h = input->shape.h, .w = input->shape.w};
    memcpy(out.mean, input->mean, sizeof out.mean);
    memcpy(out.std, input->std, sizeof out.std);
    return out;
}

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

static void read_baseline(struct model *model, const char *text)
{
    json_t *baseline = text != NULL ? json_loads(text, 0, NULL) : NULL;
    model->has_score_baseline = read_histogram(baseline, "score", &model->score_baseline);
    model->has_brightness_baseline =
        read_histogram(baseline, "brightness", &model->brightness_baseline);
    json_decref(baseline);
}

static weir_status warm_up(struct model *model)
{
    size_t n = (size_t)model->input.c * (size_t)model->input.h * (size_t)model->input.w;
    memset(weir_net_input(model->net), 0, n * sizeof(float));
    WEIR_TRY(weir_net_forward(model->net, 1, NULL));
    return weir_net_forward(model->net, 1, NULL);
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

/* Labels travel with the net; output i is label i. */
static weir_status copy_labels(struct model *model, const struct weir_net_file_info *info,
                               struct weir_error *err)
{
    if (info->n_labels != model->dim) {
        return weir_error_set(err, WEIR_ERR_UNSUPPORTED,
                              "model %s version %lld has %zu outputs and %zu labels", model->name,
                              (long long)model->version, model->dim, info->n_labels);
    }
    model->labels = weir_xalloc(model->dim * sizeof *model->labels);
    for (size_t i = 0; i < model->dim; i++) {
        model->labels[i] = weir_xstrdup(info->labels[i]);
    }
    for (size_t i = 0; i < model->dim; i++) {
        if (!is_label(model->labels[i])) {
            return weir_error_set(err, WEIR_ERR_UNSUPPORTED,
                                  "model %s version %lld: label %zu is empty, longer than %d bytes "
                                  "or holds control characters",
                                  model->name, (long long)model->version, i, LABEL_MAX_BYTES);
        }
    }
    return WEIR_OK;
}

static struct model *make(const struct model_name *name, struct weir_net *net,
                          const struct weir_net_file *file)
{
    const struct weir_graph *graph = weir_net_file_graph(file);
    struct weir_shape shape = weir_graph_output_shape(graph);
    struct model *model = weir_xalloc(sizeof *model);
    *model = (struct model){.name = weir_xstrdup(name->name),
                            .id = weir_xstrdup(name->id),
                            .blob = weir_xstrdup(name->blob),
                            .version = name->version,
                            .net = net,
                            .input = model_data_input(&weir_net_file_info(file)->input),
                            .net_input = weir_net_file_info(file)->input,
                            .gives = weir_graph_is_embedding(graph) ? WEIR_STAGE_MODEL_EMBEDS
                                                                    : WEIR_STAGE_MODEL_CLASSIFIES,
                            .dim = (size_t)shape.c * (size_t)shape.h * (size_t)shape.w};
    atomic_init(&model->n_refs, 1);
    model->output = weir_xalloc(model->dim * sizeof *model->output);
    return model;
}

weir_status model_load(const char *path, const struct model_name *name, struct model **out,
                       struct weir_error *err)
{
    struct weir_net *net;
    struct weir_net_file *file;
    const struct weir_net_config config = {.batch = 1, .n_threads = 1};
    WEIR_TRY(weir_net_file_load(path, &config, &net, &file, err));
    const struct weir_net_file_info *info = weir_net_file_info(file);
    struct model *model = make(name, net, file);
    weir_status status =
        model->gives == WEIR_STAGE_MODEL_CLASSIFIES ? copy_labels(model, info, err) : WEIR_OK;
    read_baseline(model, info->baseline);
    weir_net_file_close(file);
    if (status == WEIR_OK) {
        status = warm_up(model);
        if (status != WEIR_OK) {
            weir_error_set(err, status, "model %s cannot be run: %s", name->name,
                           weir_status_text(status));
        }
    }
    if (status != WEIR_OK) {
        model_unref(model);
        return status;
    }
    *out = model;
    return WEIR_OK;
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
    weir_net_destroy(model->net);
    for (size_t i = 0; model->labels != NULL && i < model->dim; i++) {
        free(model->labels[i]);
    }
    free(model->labels);
    free(model->output);
    free(model->name);
    free(model->id);
    free(model->blob);
    free(model);
}

/* Exponentials of the distances to the largest, so that none overflows. */
static void softmax(const float *logits, size_t n, float *out)
{
    double largest = (double)logits[0], sum = 0;
    for (size_t i = 1; i < n; i++) {
        largest = fmax(largest, (double)logits[i]);
    }
    for (size_t i = 0; i < n; i++) {
        sum += exp((double)logits[i] - largest);
    }
    for (size_t i = 0; i < n; i++) {
        out[i] = (float)(exp((double)logits[i] - largest) / sum);
    }
}

static weir_status run_net(struct model *model)
{
    if (model->gives == WEIR_STAGE_MODEL_EMBEDS) {
        return weir_net_embed(model->net, &model->net_input.shape, 1, model->dim, model->output);
    }
    WEIR_TRY(weir_net_forward(model->net, 1, NULL));
    softmax(weir_net_output(model->net), model->dim, model->output);
    return WEIR_OK;
}

weir_status model_run(struct model *model, const struct weir_image *image, const float **out,
                      double *out_brightness, struct weir_error *err)
{
    float *tensor = weir_net_input(model->net);
    WEIR_TRY(weir_image_to_tensor(image, &model->input, tensor, err));
    double brightness = weir_net_input_brightness(&model->net_input, tensor);
    weir_status status = run_net(model);
    if (status != WEIR_OK) {
        return weir_error_set(err, status, "the net failed: %s", weir_status_text(status));
    }
    *out_brightness = brightness;
    *out = model->output;
    return WEIR_OK;
}
