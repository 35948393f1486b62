#include "predict/model.h"

#include "base/arena.h"
#include "base/json.h"
#include "base/log.h"
#include "nn/net_embed.h"

#include <stdlib.h>
#include <string.h>

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

weir_status model_load(const char *path, const struct model_name *name, struct model **out,
                       struct weir_error *err)
{
    struct weir_net *net;
    struct weir_net_file *file;
    const struct weir_net_config config = {.batch = 1, .n_threads = 1};
    WEIR_TRY(weir_net_file_load(path, &config, &net, &file, err));
    const struct weir_net_file_info *info = weir_net_file_info(file);
    const struct weir_graph *graph = weir_net_file_graph(file);
    if (!weir_graph_is_embedding(graph)) {
        weir_net_file_close(file);
        weir_net_destroy(net);
        return weir_error_set(err, WEIR_ERR_UNSUPPORTED,
                              "model %s version %lld is a classifier: a gallery needs a model that "
                              "gives embeddings (loss: margin)",
                              name->name, (long long)name->version);
    }
    struct weir_shape shape = weir_graph_output_shape(graph);
    struct model *model = weir_xalloc(sizeof *model);
    *model = (struct model){.name = weir_xstrdup(name->name),
                            .id = weir_xstrdup(name->id),
                            .blob = weir_xstrdup(name->blob),
                            .version = name->version,
                            .net = net,
                            .input = model_data_input(&info->input),
                            .net_input = info->input,
                            .dim = (size_t)shape.c * (size_t)shape.h * (size_t)shape.w};
    atomic_init(&model->n_refs, 1);
    model->embedding = weir_xalloc(model->dim * sizeof *model->embedding);
    read_baseline(model, info->baseline);
    weir_net_file_close(file);
    weir_status status = warm_up(model);
    if (status != WEIR_OK) {
        model_unref(model);
        return weir_error_set(err, status, "model %s cannot be run: %s", name->name,
                              weir_status_text(status));
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
    free(model->embedding);
    free(model->name);
    free(model->id);
    free(model->blob);
    free(model);
}

weir_status model_embed(struct model *model, const struct weir_image *image,
                        const float **out_embedding, double *out_brightness, struct weir_error *err)
{
    float *tensor = weir_net_input(model->net);
    WEIR_TRY(weir_image_to_tensor(image, &model->input, tensor, err));
    double brightness = weir_net_input_brightness(&model->net_input, tensor);
    weir_status status =
        weir_net_embed(model->net, &model->net_input.shape, 1, model->dim, model->embedding);
    if (status != WEIR_OK) {
        return weir_error_set(err, status, "the net failed: %s", weir_status_text(status));
    }
    *out_brightness = brightness;
    *out_embedding = model->embedding;
    return WEIR_OK;
}
