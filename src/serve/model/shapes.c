/* Shapes of inputs that people say in place of those that a file says. */
#include "serve/signature.h"

#include <stdlib.h>
#include <string.h>

#define DIGITS_MAX 9

/* A number from 1, or a name. */
static bool read_dim(const char *text, int64_t *out)
{
    static const char digits[] = "0123456789";
    static const char signs[] = "0123456789_abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    size_t len = strlen(text), n_digits = strspn(text, digits);
    bool is_number = len > 0 && n_digits == len && len <= DIGITS_MAX;
    *out = is_number ? strtoll(text, NULL, 10) : -1;
    return is_number ? *out >= 1 : len > 0 && n_digits == 0 && strspn(text, signs) == len;
}

static weir_status read_shape(const char *name, const json_t *value, struct weir_arena *arena,
                              struct serve_port *out, struct weir_error *err)
{
    const char *text = json_string_value(value);
    char *rest = text != NULL ? weir_arena_strdup(arena, text) : NULL;
    bool is = text != NULL;
    *out = (struct serve_port){.name = weir_arena_strdup(arena, name)};
    for (char *dim; is && (dim = strsep(&rest, ",")) != NULL;) {
        is = out->rank < WEIR_TENSOR_RANK_MAX && read_dim(dim, &out->dims[out->rank]);
        out->rank += is;
    }
    return is ? WEIR_OK
              : weir_error_set(err, WEIR_ERR_INVALID,
                               "inputs: $[\"%.80s\"]: expected up to %d numbers and names of what "
                               "is free, as in \"N,3,H,W\", got \"%.60s\"",
                               name, WEIR_TENSOR_RANK_MAX, text != NULL ? text : "?");
}

weir_status signature_shapes(const struct signature_extras *extras, struct weir_arena *arena,
                             struct executor_options *options, struct weir_error *err)
{
    WEIR_AUTO(weir_json_auto_free) json_t *given = NULL;
    if (extras->inputs == NULL) {
        return WEIR_OK;
    }
    WEIR_TRY(weir_yaml_parse(extras->inputs, extras->inputs_len, "inputs", false, &given, err));
    size_t n = json_object_size(given), i = 0;
    if (!json_is_object(given) || n == 0 || n > SERVE_PORTS_MAX) {
        return weir_error_set(
            err, WEIR_ERR_INVALID,
            "inputs: expected the shapes of 1 to %d inputs, as in {x: \"N,3,H,W\"}",
            SERVE_PORTS_MAX);
    }
    struct serve_port *ports = WEIR_ARENA_ARRAY(arena, n, struct serve_port);
    const char *name;
    json_t *value;
    json_object_foreach(given, name, value)
    {
        WEIR_TRY(read_shape(name, value, arena, &ports[i++], err));
    }
    options->shapes = ports;
    options->n_shapes = n;
    return WEIR_OK;
}
