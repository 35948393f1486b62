#include "cli/track/try_it.h"

#include "base/macros.h"

#include <stdlib.h>
#include <string.h>

#define VALUES_WHOLE 16 /* so many values of an input are written out */
#define IMAGE_RANK   4

static bool has_texts(const json_t *port)
{
    const char *datatype = json_string_value(json_object_get(port, "datatype"));
    return datatype != NULL && strcmp(datatype, "BYTES") == 0;
}

/* [-1,3,224,224] or [-1,224,224,1]. */
static bool is_image(const json_t *port)
{
    const json_t *shape = json_object_get(port, "shape");
    bool is_one = false;
    for (size_t i = 1; i < IMAGE_RANK; i += 2) {
        json_int_t channels = json_integer_value(json_array_get(shape, i));
        is_one = is_one || channels == 1 || channels == 3;
    }
    return json_array_size(shape) == IMAGE_RANK && is_one && !has_texts(port);
}

enum try_it_input try_it_input_of(const json_t *signature)
{
    const json_t *inputs = json_object_get(signature, "inputs"), *port;
    size_t i;
    if (!json_is_object(signature)) {
        return TRY_IT_UNKNOWN;
    }
    if (json_is_object(json_object_get(signature, "picture"))) {
        return TRY_IT_PICTURE;
    }
    json_array_foreach(inputs, i, port)
    {
        if (has_texts(port)) {
            return TRY_IT_TEXT;
        }
    }
    return json_array_size(inputs) == 1 && is_image(json_array_get(inputs, 0)) ? TRY_IT_IMAGE
                                                                               : TRY_IT_TENSOR;
}

/* The shape with 1 in place of what is free; *out_n: its values, at most INT64_MAX. */
static json_t *shape_of(const json_t *port, int64_t *out_n)
{
    json_t *shape = json_array();
    const json_t *side;
    size_t i;
    *out_n = 1;
    json_array_foreach(json_object_get(port, "shape"), i, side)
    {
        json_int_t length = WEIR_MAX(json_integer_value(side), (json_int_t)1);
        json_array_append_new(shape, json_integer(length));
        *out_n = *out_n > INT64_MAX / length ? INT64_MAX : *out_n * length;
    }
    return shape;
}

static json_t *value_of(const json_t *port)
{
    const char *datatype = json_string_value(json_object_get(port, "datatype"));
    return has_texts(port)                                       ? json_string("a text")
           : datatype != NULL && strcmp(datatype, "BOOL") == 0   ? json_false()
           : datatype != NULL && strstr(datatype, "INT") != NULL ? json_integer(0)
                                                                 : json_real(0.5);
}

/* {"name":"x","datatype":"FP32","shape":[1,2],"data":[0.5,0.5]} */
static char *input_text(struct cli_call *call, const json_t *port)
{
    int64_t n;
    json_t *input = json_object(), *data = json_array();
    json_object_set(input, "name", json_object_get(port, "name"));
    json_object_set(input, "datatype", json_object_get(port, "datatype"));
    json_object_set_new(input, "shape", shape_of(port, &n));
    for (int64_t i = 0; i < n && n <= VALUES_WHOLE; i++) {
        json_array_append_new(data, value_of(port));
    }
    json_object_set_new(input, "data", data);
    char *text = weir_json_text(input, call->arena);
    json_decref(input);
    return n <= VALUES_WHOLE
               ? text
               : weir_arena_printf(call->arena, "%.*s… %lld values]}",
                                   (int)(strlen(text) - strlen("]}")), text, (long long)n);
}

void try_it_print(struct cli_call *call, const char *deployment, const json_t *signature)
{
    enum try_it_input input = try_it_input_of(signature);
    const json_t *port;
    size_t i;
    if (input == TRY_IT_UNKNOWN || input == TRY_IT_PICTURE) {
        printf("  try it   weir predict %s %s\n", deployment,
               input == TRY_IT_PICTURE ? "PICTURE" : "FILE");
        return;
    }
    printf("  try it   weir predict %s request.json\n  request  {\"inputs\":[", deployment);
    json_array_foreach(json_object_get(signature, "inputs"), i, port)
    {
        printf("%s%s", i > 0 ? "," : "", input_text(call, port));
    }
    printf("]}\n");
}
