#include "framework/model_names.h"

#include "base/macros.h"
#include "base/names.h"

#include <string.h>

static const struct weir_model_name models[] = {
    {.name = "lenet"},
    {.name = "lenet-5"},
    {.name = "mlp"},
    {.name = "resnet18"},
    {.name = "face-embed", .is_embedding = true},
    {.name = "face-detect", .is_detector = true},
    {.name = "trivial"},
    {.name = "alexnet"},
    {.name = "vgg11"},
    {.name = "vgg13"},
    {.name = "vgg16"},
    {.name = "vgg19"},
    {.name = "resnet34"},
    {.name = "resnet50"},
    {.name = "resnet101"},
    {.name = "resnet152"},
    {.name = "resnet50_v1"},
    {.name = "resnet101_v1"},
    {.name = "resnet152_v1"},
    {.name = "resnet50_v2"},
    {.name = "resnet101_v2"},
    {.name = "resnet152_v2"},
    {.name = "densenet121"},
    {.name = "googlenet"},
    {.name = "inception_v3"},
    {.name = "inception_v4"},
    {.name = "mobilenet_v1"},
    {.name = "mobilenet_v2"},
};

const struct weir_model_name *weir_model_names(size_t *out_n)
{
    *out_n = WEIR_ARRAY_LEN(models);
    return models;
}

const struct weir_model_name *weir_model_name_find(const char *name)
{
    for (size_t i = 0; i < WEIR_ARRAY_LEN(models); i++) {
        if (strcmp(models[i].name, name) == 0) {
            return &models[i];
        }
    }
    return NULL;
}

bool weir_model_is_file(const char *model)
{
    return weir_model_name_find(model) == NULL && strpbrk(model, "/.") != NULL;
}

weir_status weir_model_name_check(const char *model, const char *place, struct weir_error *err)
{
    struct weir_nearest nearest = {0};
    struct weir_names names = {0};
    if (weir_model_name_find(model) != NULL || (weir_model_is_file(model) && model[0] == '/')) {
        return WEIR_OK;
    }
    if (weir_model_is_file(model)) {
        return weir_error_set(
            err, WEIR_ERR_INVALID,
            "%s: \"%.200s\" is a relative path, and a training works in a folder of "
            "its own: write the model file's absolute path",
            place, model);
    }
    for (size_t i = 0; i < WEIR_ARRAY_LEN(models); i++) {
        weir_nearest_see(&nearest, model, strlen(model), models[i].name);
        weir_names_add(&names, models[i].name, strlen(models[i].name));
    }
    if (nearest.name != NULL) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "%s: there is no model \"%.60s\"; did you mean \"%s\"?", place, model,
                              nearest.name);
    }
    return weir_error_set(
        err, WEIR_ERR_INVALID,
        "%s: there is no model \"%.60s\": there are %s, or the absolute path of a "
        "model file",
        place, model, names.text);
}
