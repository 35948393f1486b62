#include "model_layer.h"

#include <stdlib.h>
#include <string.h>

/* Where graph.c stops too; here it keeps integers within 32 bits. */
#define SIZE_LIMIT (1 << 20)

/* ---- settings ----------------------------------------------------------------------------- */

enum setting_kind {
    SETTING_INT,   /**< int64_t */
    SETTING_COUNT, /**< int64_t, or the word "classes" */
    SETTING_PAIR,  /**< int64_t[2]: n or [h, w] */
    SETTING_BOOL,  /**< bool */
    SETTING_REAL,  /**< double in [min, max) */
};

struct setting {
    const char *name;
    enum setting_kind kind;
    size_t offset;
    bool is_required;
    double min, max;
    const char *expected; /**< For messages. */
};

#define FIELD(member) offsetof(struct model_settings, member)
#define COUNT(m, must)                                                                             \
    {                                                                                              \
#m, SETTING_COUNT, FIELD(m), must, 1, SIZE_LIMIT, "integer > 0 or \"classes\""             \
    }
#define SIZE(m, must)                                                                              \
    {                                                                                              \
#m, SETTING_INT, FIELD(m), must, 1, SIZE_LIMIT, "integer > 0"                              \
    }
#define PAIR(m, must, lo, text)                                                                    \
    {                                                                                              \
#m, SETTING_PAIR, FIELD(m), must, lo, SIZE_LIMIT, text                                     \
    }

// clang-format off
static const struct setting conv_settings[] = {
    COUNT(k, true),
    PAIR(kernel, true, 1, "integer > 0"),
    SIZE(stride, false),
    PAIR(pad, false, 0, "integer >= 0"),
    SIZE(groups, false),
    SIZE(dilation, false),
    {"bias", SETTING_BOOL, FIELD(bias), false, 0, 0, "true or false"},
    {"initial", SETTING_REAL, FIELD(initial), false, 1e-6, 1.0001, "number in [0.000001, 1]"},
    {"initial_bias", SETTING_REAL, FIELD(initial_bias), false, -1e3, 1e3, "number in [-1000, 1000)"},
    {0},
};
static const struct setting linear_settings[] = {
    COUNT(k, true),
    {"bias", SETTING_BOOL, FIELD(bias), false, 0, 0, "true or false"},
    {0},
};
static const struct setting pool_settings[] = {
    {"kernel", SETTING_INT, FIELD(kernel), true, 1, SIZE_LIMIT, "integer > 0"},
    SIZE(stride, false),
    {"pad", SETTING_INT, FIELD(pad), false, 0, SIZE_LIMIT, "integer >= 0"},
    {"ceil", SETTING_BOOL, FIELD(ceil), false, 0, 0, "true or false"},
    {0},
};
static const struct setting avg_pool_settings[] = {
    {"kernel", SETTING_INT, FIELD(kernel), true, 1, SIZE_LIMIT, "integer > 0"},
    SIZE(stride, false),
    {"pad", SETTING_INT, FIELD(pad), false, 0, SIZE_LIMIT, "integer >= 0"},
    {"ceil", SETTING_BOOL, FIELD(ceil), false, 0, 0, "true or false"},
    {"count_pad", SETTING_BOOL, FIELD(count_pad), false, 0, 0, "true or false"},
    {0},
};
static const struct setting norm_settings[] = {
    {"eps", SETTING_REAL, FIELD(eps), false, 1e-12, 1, "number in [1e-12, 1)"},
    {0},
};
static const struct setting dropout_settings[] = {
    {"rate", SETTING_REAL, FIELD(rate), true, 0, 1, "number in [0, 1)"},
    {0},
};
static const struct setting scale_settings[] = {
    {"factor", SETTING_REAL, FIELD(factor), true, -1e4, 1e4, "number in [-10000, 10000)"},
    {0},
};
static const struct setting margin_settings[] = {
    {"scale", SETTING_REAL, FIELD(scale), false, 1e-3, 1e4, "number in [0.001, 10000)"},
    {"margin", SETTING_REAL, FIELD(margin), false, 0, 1.57, "number in [0, 1.57)"},
    {0},
};
static const struct setting detect_settings[] = {
    {"values", SETTING_INT, FIELD(values), true, 2, SIZE_LIMIT, "integer > 1"},
    {"scale", SETTING_REAL, FIELD(scale), false, 1e-3, 1e4, "number in [0.001, 10000)"},
    {0},
};
static const struct setting no_settings[] = {{0}};
// clang-format on

/* ---- types -------------------------------------------------------------------------------- */

typedef weir_value_t (*add_fn)(const struct model_layer *layer, struct weir_graph *graph,
                               const weir_value_t *xs, int32_t k);

struct model_layer_type {
    const char *name;
    bool is_loss;
    int32_t n_from_min, n_from_max;
    const struct setting *settings;
    add_fn add;
    struct model_settings defaults;
};

static weir_value_t add_conv(const struct model_layer *layer, struct weir_graph *graph,
                             const weir_value_t *xs, int32_t k)
{
    const struct model_settings *s = &layer->settings;
    weir_value_t made =
        weir_graph_conv(graph, layer->name, xs[0],
                        &(struct weir_conv_params){.k = k,
                                                   .kernel_h = (int32_t)s->kernel[0],
                                                   .kernel_w = (int32_t)s->kernel[1],
                                                   .stride = (int32_t)s->stride,
                                                   .pad_h = (int32_t)s->pad[0],
                                                   .pad_w = (int32_t)s->pad[1],
                                                   .has_bias = s->bias,
                                                   .groups = (int32_t)s->groups,
                                                   .dilation = (int32_t)s->dilation});
    if (made >= 0 && (s->initial > 0 || s->initial_bias != 0)) {
        weir_graph_set_initial(graph, made, s->initial > 0 ? (float)s->initial : 1,
                               (float)s->initial_bias);
    }
    return made;
}

static weir_value_t add_linear(const struct model_layer *layer, struct weir_graph *graph,
                               const weir_value_t *xs, int32_t k)
{
    return weir_graph_linear(graph, layer->name, xs[0], k, layer->settings.bias);
}

static struct weir_pool_params pool_params(const struct model_settings *s)
{
    int64_t stride = s->stride == 0 ? s->kernel[0] : s->stride;
    return (struct weir_pool_params){.kernel = (int32_t)s->kernel[0],
                                     .stride = (int32_t)stride,
                                     .pad = (int32_t)s->pad[0],
                                     .is_ceil = s->ceil,
                                     .is_pad_excluded = !s->count_pad};
}

static weir_value_t add_max_pool(const struct model_layer *layer, struct weir_graph *graph,
                                 const weir_value_t *xs, int32_t k)
{
    (void)k;
    const struct weir_pool_params params = pool_params(&layer->settings);
    return weir_graph_max_pool(graph, layer->name, xs[0], &params);
}

static weir_value_t add_avg_pool(const struct model_layer *layer, struct weir_graph *graph,
                                 const weir_value_t *xs, int32_t k)
{
    (void)k;
    const struct weir_pool_params params = pool_params(&layer->settings);
    return weir_graph_avg_pool(graph, layer->name, xs[0], &params);
}

static weir_value_t add_global_pool(const struct model_layer *layer, struct weir_graph *graph,
                                    const weir_value_t *xs, int32_t k)
{
    (void)k;
    return weir_graph_global_pool(graph, layer->name, xs[0]);
}

static weir_value_t add_batch_norm(const struct model_layer *layer, struct weir_graph *graph,
                                   const weir_value_t *xs, int32_t k)
{
    (void)k;
    return weir_graph_batch_norm_eps(graph, layer->name, xs[0], layer->settings.eps);
}

static weir_value_t add_relu(const struct model_layer *layer, struct weir_graph *graph,
                             const weir_value_t *xs, int32_t k)
{
    (void)k;
    return weir_graph_relu(graph, layer->name, xs[0]);
}

static weir_value_t add_relu6(const struct model_layer *layer, struct weir_graph *graph,
                              const weir_value_t *xs, int32_t k)
{
    (void)k;
    return weir_graph_relu6(graph, layer->name, xs[0]);
}

static weir_value_t add_prelu(const struct model_layer *layer, struct weir_graph *graph,
                              const weir_value_t *xs, int32_t k)
{
    (void)k;
    return weir_graph_prelu(graph, layer->name, xs[0]);
}

static weir_value_t add_l2_normalise(const struct model_layer *layer, struct weir_graph *graph,
                                     const weir_value_t *xs, int32_t k)
{
    (void)k;
    return weir_graph_l2_normalise(graph, layer->name, xs[0]);
}

static weir_value_t add_flatten(const struct model_layer *layer, struct weir_graph *graph,
                                const weir_value_t *xs, int32_t k)
{
    (void)k;
    return weir_graph_flatten(graph, layer->name, xs[0]);
}

static weir_value_t add_scale(const struct model_layer *layer, struct weir_graph *graph,
                              const weir_value_t *xs, int32_t k)
{
    (void)k;
    return weir_graph_scale(graph, layer->name, xs[0], (float)layer->settings.factor);
}

static weir_value_t add_layer_norm(const struct model_layer *layer, struct weir_graph *graph,
                                   const weir_value_t *xs, int32_t k)
{
    (void)k;
    return weir_graph_layer_norm(graph, layer->name, xs[0]);
}

static weir_value_t add_dropout(const struct model_layer *layer, struct weir_graph *graph,
                                const weir_value_t *xs, int32_t k)
{
    (void)k;
    return weir_graph_dropout(graph, layer->name, xs[0], (float)layer->settings.rate);
}

static weir_value_t add_add(const struct model_layer *layer, struct weir_graph *graph,
                            const weir_value_t *xs, int32_t k)
{
    (void)k;
    return weir_graph_add(graph, layer->name, xs[0], xs[1]);
}

static weir_value_t add_concat(const struct model_layer *layer, struct weir_graph *graph,
                               const weir_value_t *xs, int32_t k)
{
    (void)k;
    return weir_graph_concat(graph, layer->name, xs, layer->n_from);
}

static weir_value_t add_softmax(const struct model_layer *layer, struct weir_graph *graph,
                                const weir_value_t *xs, int32_t k)
{
    (void)k;
    weir_graph_softmax_loss(graph, layer->name, xs[0]);
    return -1;
}

static weir_value_t add_margin(const struct model_layer *layer, struct weir_graph *graph,
                               const weir_value_t *xs, int32_t k)
{
    weir_graph_margin_loss(graph, layer->name, xs[0], k, (float)layer->settings.scale,
                           (float)layer->settings.margin);
    return -1;
}

static weir_value_t add_detect(const struct model_layer *layer, struct weir_graph *graph,
                               const weir_value_t *xs, int32_t k)
{
    (void)k;
    weir_graph_detect_loss(graph, layer->name, xs[0], (int32_t)layer->settings.values,
                           (float)layer->settings.scale);
    return -1;
}

/* k = 1 where k is no setting: anything but MODEL_K_CLASSES. */
// clang-format off
static const struct model_layer_type types[] = {
    {"conv",         false, 1, 1,  conv_settings,    add_conv,
                                {.stride = 1, .groups = 1, .dilation = 1, .bias = true}},
    {"linear",       false, 1, 1,  linear_settings,  add_linear,       {.bias = true}},
    {"batch_norm",   false, 1, 1,  norm_settings,    add_batch_norm,   {.k = 1, .eps = 1e-5}},
    {"relu",         false, 1, 1,  no_settings,      add_relu,         {.k = 1}},
    {"relu6",        false, 1, 1,  no_settings,      add_relu6,        {.k = 1}},
    {"prelu",        false, 1, 1,  no_settings,      add_prelu,        {.k = 1}},
    {"max_pool",     false, 1, 1,  pool_settings,    add_max_pool,     {.k = 1}},
    {"avg_pool",     false, 1, 1,  avg_pool_settings, add_avg_pool,    {.k = 1, .count_pad = true}},
    {"global_pool",  false, 1, 1,  no_settings,      add_global_pool,  {.k = 1}},
    {"add",          false, 2, 2,  no_settings,      add_add,          {.k = 1}},
    {"concat",       false, 2, MODEL_FROM_MAX, no_settings, add_concat, {.k = 1}},
    {"dropout",      false, 1, 1,  dropout_settings, add_dropout,      {.k = 1}},
    {"l2_normalise", false, 1, 1,  no_settings,      add_l2_normalise, {.k = 1}},
    {"layer_norm",   false, 1, 1,  no_settings,      add_layer_norm,   {.k = 1}},
    {"flatten",      false, 1, 1,  no_settings,      add_flatten,      {.k = 1}},
    {"scale",        false, 1, 1,  scale_settings,   add_scale,        {.k = 1}},
    {"softmax",      true,  1, 1,  no_settings,      add_softmax,      {.k = 1}},
    {"margin",       true,  1, 1,  margin_settings,  add_margin,
                                            {.k = MODEL_K_CLASSES, .scale = 16, .margin = 0.3}},
    {"detect",       true,  1, 1,  detect_settings,  add_detect,       {.k = 1, .scale = 1}},
};

// clang-format on

void model_layer_arity(const struct model_layer *layer, int32_t *out_min, int32_t *out_max)
{
    *out_min = layer->type->n_from_min;
    *out_max = layer->type->n_from_max;
}

const char *model_layer_type_name(const struct model_layer *layer)
{
    return layer->type->name;
}

bool model_layer_needs_classes(const struct model_layer *layer)
{
    return layer->settings.k == MODEL_K_CLASSES;
}

weir_value_t model_layer_add(const struct model_layer *layer, struct weir_graph *graph,
                             const weir_value_t *xs, int32_t n_classes)
{
    int32_t k = model_layer_needs_classes(layer) ? n_classes : (int32_t)layer->settings.k;
    return layer->type->add(layer, graph, xs, k);
}

/* ---- reading ------------------------------------------------------------------------------ */

weir_status model_expected(const struct model_place *place, const char *key, const char *expected,
                           const json_t *got)
{
    const char *dot = *key == '\0' ? "" : ".";
    if (got == NULL) {
        return weir_error_set(place->err, WEIR_ERR_INVALID, "%s: %s%s%s is missing: expected %s",
                              place->what, place->path, dot, key, expected);
    }
    WEIR_AUTO(weir_auto_free) char *text = json_dumps(got, JSON_ENCODE_ANY | JSON_COMPACT);
    return weir_error_set(place->err, WEIR_ERR_INVALID, "%s: %s%s%s: expected %s, got %.60s",
                          place->what, place->path, dot, key, expected, text == NULL ? "?" : text);
}

/** An integer within the setting's bounds; says so if it is not. */
static weir_status int_read(const struct setting *setting, const json_t *value,
                            const struct model_place *place, int64_t *out)
{
    if (!json_is_integer(value) || json_integer_value(value) < (json_int_t)setting->min) {
        return model_expected(place, setting->name, setting->expected, value);
    }
    if (json_integer_value(value) > (json_int_t)setting->max) {
        return model_expected(place, setting->name, "integer up to 1048576", value);
    }
    *out = (int64_t)json_integer_value(value);
    return WEIR_OK;
}

static weir_status pair_read(const struct setting *setting, const json_t *value,
                             const struct model_place *place, int64_t out[2])
{
    if (!json_is_array(value)) {
        WEIR_TRY(int_read(setting, value, place, &out[0]));
        out[1] = out[0];
        return WEIR_OK;
    }
    if (json_array_size(value) != 2) {
        return model_expected(place, setting->name, "an integer or [h, w]", value);
    }
    WEIR_TRY(int_read(setting, json_array_get(value, 0), place, &out[0]));
    return int_read(setting, json_array_get(value, 1), place, &out[1]);
}

static weir_status setting_read(const struct setting *setting, const json_t *value,
                                const struct model_place *place, struct model_settings *settings)
{
    void *out = (char *)settings + setting->offset;
    switch (setting->kind) {
    case SETTING_COUNT:
        if (json_is_string(value) && strcmp(json_string_value(value), "classes") == 0) {
            *(int64_t *)out = MODEL_K_CLASSES;
            return WEIR_OK;
        }
        return int_read(setting, value, place, out);
    case SETTING_INT:
        return int_read(setting, value, place, out);
    case SETTING_PAIR:
        return pair_read(setting, value, place, out);
    case SETTING_BOOL:
        if (!json_is_boolean(value)) {
            return model_expected(place, setting->name, setting->expected, value);
        }
        *(bool *)out = json_boolean_value(value);
        return WEIR_OK;
    case SETTING_REAL:
        if (!json_is_number(value) || !(json_number_value(value) >= setting->min) ||
            !(json_number_value(value) < setting->max)) {
            return model_expected(place, setting->name, setting->expected, value);
        }
        *(double *)out = json_number_value(value);
        return WEIR_OK;
    }
    return weir_error_set(place->err, WEIR_ERR_INTERNAL, "setting of unknown kind");
}

static weir_status unknown_key(const struct model_layer_type *type, const char *key,
                               const struct model_place *place)
{
    char takes[128] = "";
    size_t len = 0;
    for (const struct setting *s = type->settings; s->name != NULL; s++) {
        len += (size_t)snprintf(takes + len, sizeof takes - len, ", %s", s->name);
    }
    return weir_error_set(place->err, WEIR_ERR_INVALID,
                          "%s: %s.%.64s: %s takes type, name, from%s and nothing else", place->what,
                          place->path, key, type->name, takes);
}

static weir_status settings_read(const struct model_layer_type *type, const json_t *object,
                                 const struct model_place *place, struct model_settings *settings)
{
    size_t n_known = json_object_get(object, "name") != NULL;
    n_known += json_object_get(object, "type") != NULL;
    n_known += json_object_get(object, "from") != NULL;
    *settings = type->defaults;
    for (const struct setting *s = type->settings; s->name != NULL; s++) {
        const json_t *value = json_object_get(object, s->name);
        if (value != NULL) {
            n_known++;
            WEIR_TRY(setting_read(s, value, place, settings));
        } else if (s->is_required) {
            return model_expected(place, s->name, s->expected, NULL);
        }
    }
    if (n_known == json_object_size(object)) {
        return WEIR_OK;
    }
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)object, key, value)
    {
        bool is_known =
            strcmp(key, "name") == 0 || strcmp(key, "type") == 0 || strcmp(key, "from") == 0;
        for (const struct setting *s = type->settings; s->name != NULL; s++) {
            is_known = is_known || strcmp(key, s->name) == 0;
        }
        if (!is_known) {
            return unknown_key(type, key, place);
        }
    }
    return WEIR_OK;
}

static weir_status type_read(const json_t *object, bool is_loss, const struct model_place *place,
                             const struct model_layer_type **out)
{
    const json_t *value = json_object_get(object, "type");
    char known[256] = "one of";
    size_t len = strlen(known);
    for (size_t i = 0; i < WEIR_ARRAY_LEN(types); i++) {
        if (types[i].is_loss != is_loss) {
            continue;
        }
        if (json_is_string(value) && strcmp(json_string_value(value), types[i].name) == 0) {
            *out = &types[i];
            return WEIR_OK;
        }
        len += (size_t)snprintf(known + len, sizeof known - len, " %s", types[i].name);
    }
    return model_expected(place, "type", known, value);
}

static bool name_is_valid(const char *name)
{
    size_t len = strlen(name);
    return len > 0 && len <= MODEL_NAME_MAX_BYTES &&
           strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-") == len;
}

weir_status model_layer_read(const json_t *object, bool is_loss, size_t i_layer,
                             const struct model_place *place, struct model_layer *out)
{
    if (!json_is_object(object)) {
        return model_expected(place, "", "an object with type and settings", object);
    }
    WEIR_TRY(type_read(object, is_loss, place, &out->type));
    const json_t *name = json_object_get(object, "name");
    if (name != NULL && (!json_is_string(name) || !name_is_valid(json_string_value(name)))) {
        return model_expected(place, "name", "1 to 80 letters, digits, \"_\", \".\", \"-\"", name);
    }
    if (name != NULL) {
        (void)snprintf(out->name, sizeof out->name, "%s", json_string_value(name));
    } else if (is_loss) {
        (void)snprintf(out->name, sizeof out->name, "%s", out->type->name);
    } else {
        (void)snprintf(out->name, sizeof out->name, "%s_%zu", out->type->name, i_layer);
    }
    return settings_read(out->type, object, place, &out->settings);
}
