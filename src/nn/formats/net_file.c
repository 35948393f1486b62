#include "nn/net_file.h"

#include "base/json.h"
#include "nn/model_file.h"
#include "nn/run/net.h"
#include "nn/safetensors.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct weir_net_file {
    struct weir_safetensors *tensors;
    struct weir_graph *graph;
    struct weir_arena arena; /**< Labels. */
    struct weir_net_file_info info;
    char what[256]; /**< Names the file in errors. */
};

double weir_net_input_brightness(const struct weir_net_input *input, const float *tensor)
{
    size_t n_pixels = (size_t)input->shape.h * (size_t)input->shape.w;
    double sum = 0;
    for (int32_t c = 0; c < input->shape.c; c++) {
        double channel = 0;
        for (size_t i = 0; i < n_pixels; i++) {
            channel += (double)tensor[(size_t)c * n_pixels + i];
        }
        sum += channel * (double)input->std[c] + (double)input->mean[c] * (double)n_pixels;
    }
    return sum / ((double)n_pixels * input->shape.c);
}

void weir_net_input_grey(const struct weir_net_input *input, const float *tensor, float *out)
{
    size_t n_pixels = (size_t)input->shape.h * (size_t)input->shape.w;
    for (size_t i = 0; i < n_pixels; i++) {
        out[i] = 0;
    }
    for (int32_t c = 0; c < input->shape.c; c++) {
        const float *plane = tensor + (size_t)c * n_pixels;
        for (size_t i = 0; i < n_pixels; i++) {
            out[i] += (plane[i] * input->std[c] + input->mean[c]) / (float)input->shape.c;
        }
    }
}

/** Class weights of a margin loss: for training only, and of classes that the file may not name. */
static bool is_class_weight(const struct weir_net *net, size_t i_param)
{
    const struct net_plan *plan = net->plan;
    if (plan->i_loss < 0) {
        return false;
    }
    const struct op *loss = &plan->ops[plan->i_loss].op;
    return loss->kind == LAYER_MARGIN_LOSS && loss->params[OP_WEIGHT].index == (int32_t)i_param;
}

/* ---- writing ------------------------------------------------------------------------------ */

static weir_status check_finite(const struct weir_param *param, const float *weights,
                                weir_status status, struct weir_error *err)
{
    const float *values = weights + param->first_elem;
    for (size_t i = 0; i < param->n_elems; i++) {
        if (!isfinite(values[i])) {
            return weir_error_set(err, status, "%s holds a value that is not finite", param->name);
        }
    }
    return WEIR_OK;
}

static weir_status check_object(const char *text, const char *key, struct weir_error *err)
{
    if (text == NULL) {
        return WEIR_OK;
    }
    json_t *value = NULL;
    WEIR_TRY(weir_json_parse(text, strlen(text), key, &value, err));
    bool is_object = json_is_object(value);
    json_decref(value);
    return is_object ? WEIR_OK
                     : weir_error_set(err, WEIR_ERR_INVALID, "%s: expected an object", key);
}

static char *input_text(const struct weir_net_input *input, struct weir_arena *arena)
{
    json_t *mean = json_array(), *std = json_array();
    for (int32_t c = 0; c < input->shape.c && c < 3; c++) {
        json_array_append_new(mean, json_real((double)input->mean[c]));
        json_array_append_new(std, json_real((double)input->std[c]));
    }
    json_t *object = json_pack("{s:i,s:i,s:i,s:o,s:o,s:b,s:s}", "c", input->shape.c, "h",
                               input->shape.h, "w", input->shape.w, "mean", mean, "std", std,
                               "grey", input->shape.c == 1, "crop", "none");
    char *text = weir_json_text(object, arena);
    json_decref(object);
    return text;
}

static char *labels_text(const struct weir_net_file_info *info, struct weir_arena *arena)
{
    json_t *array = json_array();
    for (size_t i = 0; i < info->n_labels; i++) {
        json_array_append_new(array, json_string(info->labels[i]));
    }
    char *text = weir_json_text(array, arena);
    json_decref(array);
    return text;
}

static weir_status collect(struct weir_net *net, struct weir_safetensors_tensor *tensors,
                           size_t *out_n, struct weir_error *err)
{
    size_t n = 0, n_taken = 0;
    const struct weir_param *params = weir_net_params(net, &n);
    const float *weights = weir_net_weights(net, NULL);
    WEIR_TRY(weir_net_check_copies(net, err));
    for (size_t i = 0; i < n; i++) {
        if (is_class_weight(net, i)) {
            continue;
        }
        WEIR_TRY(check_finite(&params[i], weights, WEIR_ERR_INVALID, err));
        struct weir_safetensors_tensor *tensor = &tensors[n_taken++];
        *tensor = (struct weir_safetensors_tensor){.name = params[i].name,
                                                   .n_dims = params[i].n_dims,
                                                   .data = weights + params[i].first_elem};
        for (int32_t d = 0; d < params[i].n_dims; d++) {
            tensor->dims[d] = params[i].dims[d];
        }
    }
    *out_n = n_taken;
    return WEIR_OK;
}

weir_status weir_net_file_save(const char *path, struct weir_net *net,
                               const struct weir_net_file_info *info, struct weir_error *err)
{
    WEIR_TRY(check_object(info->baseline, "weir.baseline", err));
    WEIR_TRY(check_object(info->training, "weir.training", err));
    size_t n_params = 0;
    (void)weir_net_params(net, &n_params);
    WEIR_AUTO(weir_auto_free)
    struct weir_safetensors_tensor *tensors = calloc(n_params + 1, sizeof *tensors);
    if (tensors == NULL) {
        return weir_error_set(err, WEIR_ERR_NOMEM, "no memory for the list of parameters");
    }
    WEIR_AUTO(weir_arena_fini) struct weir_arena arena;
    weir_arena_init(&arena, 0);
    const struct weir_safetensors_text texts[] = {
        {"weir.graph", info->graph},
        {"weir.input", input_text(&info->input, &arena)},
        {"weir.labels", labels_text(info, &arena)},
        {"weir.baseline", info->baseline},
        {"weir.training", info->training},
    };
    struct weir_safetensors_text given[WEIR_ARRAY_LEN(texts)];
    size_t n_given = 0;
    for (size_t i = 0; i < WEIR_ARRAY_LEN(texts); i++) {
        if (texts[i].text != NULL) {
            given[n_given++] = texts[i];
        }
    }
    size_t n_tensors = 0;
    WEIR_TRY(collect(net, tensors, &n_tensors, err));
    return weir_safetensors_write(path, tensors, n_tensors, given, n_given, err);
}

/* ---- reading ------------------------------------------------------------------------------ */

/** The metadata `key` as JSON; *out stays NULL if it is absent and optional. */
static weir_status read_json(const struct weir_net_file *file, const char *key, json_t **out,
                             struct weir_error *err)
{
    const char *text = weir_safetensors_metadata(file->tensors, key);
    if (text == NULL) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "%s: no model of Weir: \"%s\" is missing in its metadata", file->what,
                              key);
    }
    weir_status status = weir_json_parse(text, strlen(text), key, out, err);
    return status == WEIR_OK ? WEIR_OK : weir_error_prefix(err, "%s: ", file->what);
}

static bool read_int(const json_t *object, const char *key, int32_t *out)
{
    const json_t *value = json_object_get(object, key);
    if (!json_is_integer(value) || json_integer_value(value) < 1 ||
        json_integer_value(value) > 1 << 16) {
        return false;
    }
    *out = (int32_t)json_integer_value(value);
    return true;
}

static bool read_channels(const json_t *object, const char *key, int32_t n, float *out)
{
    const json_t *array = json_object_get(object, key);
    if (!json_is_array(array) || json_array_size(array) != (size_t)n) {
        return false;
    }
    for (int32_t i = 0; i < n; i++) {
        const json_t *value = json_array_get(array, (size_t)i);
        out[i] = (float)json_number_value(value);
        if (!json_is_number(value) || !isfinite(out[i])) {
            return false;
        }
    }
    return true;
}

static bool parse_input(const json_t *object, struct weir_net_input *out)
{
    if (!read_int(object, "c", &out->shape.c) || !read_int(object, "h", &out->shape.h) ||
        !read_int(object, "w", &out->shape.w) || (out->shape.c != 1 && out->shape.c != 3) ||
        !read_channels(object, "mean", out->shape.c, out->mean) ||
        !read_channels(object, "std", out->shape.c, out->std)) {
        return false;
    }
    for (int32_t c = 0; c < out->shape.c; c++) {
        if (out->std[c] <= 0) {
            return false;
        }
    }
    const json_t *crop = json_object_get(object, "crop");
    return crop == NULL || json_is_null(crop) ||
           (json_is_string(crop) && strcmp(json_string_value(crop), "none") == 0);
}

static weir_status read_input(struct weir_net_file *file, struct weir_error *err)
{
    json_t *object = NULL;
    WEIR_TRY(read_json(file, "weir.input", &object, err));
    bool is_good = parse_input(object, &file->info.input);
    json_decref(object);
    if (!is_good) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "%s: weir.input: expected {\"c\": 1 or 3, \"h\", \"w\", \"mean\": "
                              "[…], \"std\": […]} with a number > 0 for each std, and no crop",
                              file->what);
    }
    return WEIR_OK;
}

static weir_status read_labels(struct weir_net_file *file, struct weir_error *err)
{
    json_t *array = NULL;
    WEIR_TRY(read_json(file, "weir.labels", &array, err));
    size_t n = json_array_size(array);
    bool is_good = json_is_array(array) && n > 0 && n <= WEIR_NET_FILE_LABELS_MAX;
    const char **labels = WEIR_ARENA_ARRAY(&file->arena, is_good ? n : 1, const char *);
    for (size_t i = 0; is_good && i < n; i++) {
        const json_t *label = json_array_get(array, i);
        is_good = json_is_string(label);
        labels[i] = weir_arena_strdup(&file->arena, json_string_value(label));
    }
    json_decref(array);
    if (!is_good) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "%s: weir.labels: expected an array of 1 to %zu class names",
                              file->what, WEIR_NET_FILE_LABELS_MAX);
    }
    file->info.labels = labels;
    file->info.n_labels = n;
    return WEIR_OK;
}

static weir_status read_graph(struct weir_net_file *file, struct weir_error *err)
{
    const char *text = weir_safetensors_metadata(file->tensors, "weir.graph");
    if (text == NULL) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "%s: no model of Weir: \"weir.graph\" is missing in its metadata",
                              file->what);
    }
    file->info.graph = text;
    weir_status status = weir_model_build(text, (int32_t)file->info.n_labels, &file->graph, err);
    if (status != WEIR_OK) {
        return weir_error_prefix(err, "%s: weir.graph: ", file->what);
    }
    struct weir_shape have = weir_graph_input_shape(file->graph), want = file->info.input.shape;
    if (have.c != want.c || have.h != want.h || have.w != want.w) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "%s: weir.input is %d×%d×%d, the input of weir.graph %d×%d×%d",
                              file->what, want.c, want.h, want.w, have.c, have.h, have.w);
    }
    return WEIR_OK;
}

weir_status weir_net_file_resize(struct weir_net_file *file, int32_t h, int32_t w,
                                 struct weir_error *err)
{
    struct weir_graph *graph = NULL;
    if (!weir_graph_is_detector(file->graph)) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "%s: only a detector takes pictures of any size", file->what);
    }
    weir_status status =
        weir_model_build_sized(file->info.graph, (int32_t)file->info.n_labels, h, w, &graph, err);
    if (status != WEIR_OK) {
        return weir_error_prefix(err, "%s: an input of %d rows and %d columns: ", file->what, h, w);
    }
    weir_graph_destroy(file->graph);
    file->graph = graph;
    file->info.input.shape = weir_graph_input_shape(graph);
    return WEIR_OK;
}

static weir_status read_metadata(struct weir_net_file *file, struct weir_error *err)
{
    WEIR_TRY(read_input(file, err));
    WEIR_TRY(read_labels(file, err));
    WEIR_TRY(read_graph(file, err));
    file->info.baseline = weir_safetensors_metadata(file->tensors, "weir.baseline");
    file->info.training = weir_safetensors_metadata(file->tensors, "weir.training");
    return check_object(file->info.baseline, "weir.baseline", err) == WEIR_OK &&
                   check_object(file->info.training, "weir.training", err) == WEIR_OK
               ? WEIR_OK
               : weir_error_prefix(err, "%s: ", file->what);
}

/** Takes over `tensors`. */
static weir_status open_tensors(struct weir_safetensors *tensors, const char *what,
                                struct weir_net_file **out, struct weir_error *err)
{
    struct weir_net_file *file = calloc(1, sizeof *file);
    if (file == NULL) {
        weir_safetensors_close(tensors);
        return weir_error_set(err, WEIR_ERR_NOMEM, "%s: no memory", what);
    }
    weir_arena_init(&file->arena, 0);
    file->tensors = tensors;
    (void)snprintf(file->what, sizeof file->what, "%s", what);
    weir_status status = read_metadata(file, err);
    if (status != WEIR_OK) {
        weir_net_file_close(file);
        return status;
    }
    *out = file;
    return WEIR_OK;
}

weir_status weir_net_file_open(const char *path, struct weir_net_file **out, struct weir_error *err)
{
    struct weir_safetensors *tensors = NULL;
    WEIR_TRY(weir_safetensors_open(path, &tensors, err));
    return open_tensors(tensors, path, out, err);
}

weir_status weir_net_file_open_memory(const void *bytes, size_t len, const char *what,
                                      struct weir_net_file **out, struct weir_error *err)
{
    struct weir_safetensors *tensors = NULL;
    WEIR_TRY(weir_safetensors_open_memory(bytes, len, what, &tensors, err));
    return open_tensors(tensors, what, out, err);
}

void weir_net_file_close(struct weir_net_file *file)
{
    if (file == NULL) {
        return;
    }
    weir_graph_destroy(file->graph);
    weir_safetensors_close(file->tensors);
    weir_arena_fini(&file->arena);
    free(file);
}

const struct weir_net_file_info *weir_net_file_info(const struct weir_net_file *file)
{
    return &file->info;
}

const struct weir_graph *weir_net_file_graph(const struct weir_net_file *file)
{
    return file->graph;
}

/** Is there a tensor for the parameter, and of its shape? out_why says what is wrong if not. */
static bool has_tensor_of(const struct weir_safetensors *tensors, const struct weir_param *param,
                          const char **out_why)
{
    const struct weir_safetensors_entry *entry = weir_safetensors_find(tensors, param->name);
    bool is_same = entry != NULL && entry->n_dims == param->n_dims;
    for (int32_t d = 0; is_same && d < param->n_dims; d++) {
        is_same = entry->dims[d] == param->dims[d];
    }
    *out_why = entry == NULL ? "is missing" : "has another shape than the model says";
    return is_same;
}

static weir_status read_param(const struct weir_safetensors *tensors, const char *what,
                              const struct weir_param *param, float *weights,
                              struct weir_error *err)
{
    const char *why = NULL;
    if (!has_tensor_of(tensors, param, &why)) {
        return weir_error_set(err, WEIR_ERR_CORRUPT, "%s: %s %s", what, param->name, why);
    }
    WEIR_TRY(weir_safetensors_read_f32(tensors, param->name, weights + param->first_elem,
                                       param->n_elems, err));
    weir_status status = check_finite(param, weights, WEIR_ERR_CORRUPT, err);
    return status == WEIR_OK ? WEIR_OK : weir_error_prefix(err, "%s: ", what);
}

weir_status weir_net_file_create_net(const struct weir_net_file *file,
                                     const struct weir_net_config *config, struct weir_net **out,
                                     struct weir_error *err)
{
    struct weir_net *net = NULL;
    WEIR_TRY(weir_net_create(file->graph, config, &net, err));
    size_t n = 0;
    const struct weir_param *params = weir_net_params(net, &n);
    float *weights = weir_net_weights(net, NULL);
    if (config->is_training) {
        weir_net_init_weights(net, config->seed); /* class weights begin again */
    }
    for (size_t i = 0; i < n; i++) {
        weir_status status = is_class_weight(net, i)
                                 ? WEIR_OK
                                 : read_param(file->tensors, file->what, &params[i], weights, err);
        if (status != WEIR_OK) {
            weir_net_destroy(net);
            return status;
        }
    }
    weir_net_weights_changed(net);
    *out = net;
    return WEIR_OK;
}

weir_status weir_net_file_load(const char *path, const struct weir_net_config *config,
                               struct weir_net **out_net, struct weir_net_file **out_file,
                               struct weir_error *err)
{
    struct weir_net_file *file = NULL;
    WEIR_TRY(weir_net_file_open(path, &file, err));
    weir_status status = weir_net_file_create_net(file, config, out_net, err);
    if (status != WEIR_OK) {
        weir_net_file_close(file);
        return status;
    }
    *out_file = file;
    return WEIR_OK;
}

/* ---- weights of another program ------------------------------------------------------------- */

static bool are_of_one_layer(const struct weir_param *a, const struct weir_param *b)
{
    size_t n = (size_t)(strrchr(a->name, '.') - a->name) + 1;
    return strncmp(a->name, b->name, n) == 0 && strchr(b->name + n, '.') == NULL;
}

/** Parameters at the head of the table, whole layers, that the file has not. */
static size_t count_new(const struct weir_safetensors *tensors, const struct weir_param *params,
                        size_t n_trainable)
{
    size_t n_new = 0;
    const char *why = NULL;
    for (size_t first = 0, end = 0; first < n_trainable; first = end) {
        bool is_new = false;
        for (end = first; end < n_trainable && are_of_one_layer(&params[first], &params[end]);
             end++) {
            is_new = !has_tensor_of(tensors, &params[end], &why) || is_new;
        }
        if (!is_new) {
            break;
        }
        n_new = end;
    }
    return n_new;
}

/** Are a layer's running statistics to stay as they are, because its weights do? */
static bool is_of_new_layer(const struct weir_param *params, size_t n_new, size_t i_param)
{
    for (size_t i = 0; i < n_new; i++) {
        if (are_of_one_layer(&params[i], &params[i_param])) {
            return true;
        }
    }
    return false;
}

static weir_status import(const struct weir_safetensors *tensors, const char *path,
                          struct weir_net *net, struct weir_net_import *out, struct weir_error *err)
{
    struct weir_net_import result = {0};
    size_t n = 0, n_trainable = 0;
    const struct weir_param *params = weir_net_params(net, &n);
    while (n_trainable < n && params[n_trainable].is_trainable) {
        n_trainable++;
    }
    size_t n_new = count_new(tensors, params, n_trainable);
    if (n_new == n_trainable) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "%s: holds no tensor of this network, which begins with %s", path,
                              n_trainable > 0 ? params[n_trainable - 1].name : "none");
    }
    for (size_t i = n_new; i < n; i++) {
        if (i >= n_trainable && is_of_new_layer(params, n_new, i)) {
            continue;
        }
        weir_status status =
            read_param(tensors, path, &params[i], weir_net_weights(net, NULL), err);
        if (status != WEIR_OK) {
            return status;
        }
        result.n_read++;
    }
    result.n_new = n - result.n_read;
    result.last_new = n_new > 0 ? params[n_new - 1].name : NULL;
    size_t n_entries = 0;
    (void)weir_safetensors_entries(tensors, &n_entries);
    result.n_unused = n_entries - result.n_read;
    weir_net_weights_changed(net);
    *out = result;
    return WEIR_OK;
}

weir_status weir_net_file_import(const char *path, struct weir_net *net,
                                 struct weir_net_import *out, struct weir_error *err)
{
    struct weir_safetensors *tensors = NULL;
    WEIR_TRY(weir_safetensors_open(path, &tensors, err));
    weir_status status = import(tensors, path, net, out, err);
    weir_safetensors_close(tensors);
    return status;
}
