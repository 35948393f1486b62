#include "sweep/parameter.h"

#include "base/rng.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#define NAME_MAX_BYTES 63
#define DRAWS          0x73776565u /* the stream of random numbers that points come from */

static const struct weir_kind *const kinds[] = {
#define WEIR_KIND(name) &weir_sweep_parameter_##name,
#include "sweep/parameters.def"
#undef WEIR_KIND
};

const struct weir_registry weir_sweep_parameters = {
    .noun = "sweep-parameter",
    .plural = "sweep-parameters",
    .doc = "What a parameter of a sweep may be: a range of numbers, or values to choose from. A "
           "list of values is a choice.",
    .kinds = kinds,
    .n_kinds = WEIR_ARRAY_LEN(kinds),
    .planned = WEIR_WORDS("normal"),
    .instead = "use \"uniform\" or \"log_uniform\"",
};

static bool is_name(const char *text)
{
    bool is_good = isalpha((unsigned char)text[0]) || text[0] == '_';
    for (const char *p = text; *p != '\0'; p++) {
        is_good = is_good && (isalnum((unsigned char)*p) || *p == '_');
    }
    return is_good && strlen(text) <= NAME_MAX_BYTES;
}

/* Names become variables of the environment in capitals, and some are given by the sweep itself. */
static weir_status check_name(const struct weir_sweep_space *space, const char *name,
                              const char *where, struct weir_error *err)
{
    static const char *const own[] = {"sweep", "trial", "max_resource"};
    if (!is_name(name)) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "%s: \"%.80s\": expected a name of letters, digits and \"_\", which "
                              "begins with no digit, of at most %d bytes",
                              where, name, NAME_MAX_BYTES);
    }
    for (size_t i = 0; i < WEIR_ARRAY_LEN(own); i++) {
        if (strcasecmp(own[i], name) == 0) {
            return weir_error_set(err, WEIR_ERR_INVALID,
                                  "%s.%s: the sweep itself gives {{%s}}: choose another name",
                                  where, name, own[i]);
        }
    }
    for (size_t i = 0; i < space->n; i++) {
        if (strcasecmp(space->parameters[i].name, name) == 0) {
            return weir_error_set(
                err, WEIR_ERR_INVALID,
                "%s: \"%s\" and \"%s\" differ in capitals only, and both would be "
                "the same variable of the environment",
                where, space->parameters[i].name, name);
        }
    }
    return WEIR_OK;
}

static weir_status read_one(const json_t *value, const char *where, struct weir_arena *arena,
                            struct weir_sweep_parameter *out, struct weir_error *err)
{
    struct weir_configured read;
    if (json_is_array(value) && json_array_size(value) == 0) {
        return weir_error_set(err, WEIR_ERR_INVALID, "%s: expected a list of 1 to %d values", where,
                              WEIR_SWEEP_CHOICES_MAX);
    }
    if (json_is_array(value)) {
        WEIR_AUTO(weir_json_auto_free) json_t *choice = json_object();
        json_object_set(choice, "values", (json_t *)value);
        WEIR_TRY(weir_kind_read(&weir_sweep_parameter_choice, choice, where, arena, &read, err));
    } else {
        WEIR_TRY(weir_registry_read(&weir_sweep_parameters, value, where, arena, &read, err));
    }
    out->kind = read.kind;
    out->options = read.options;
    const struct weir_sweep_parameter_ops *ops = weir_sweep_parameter_ops_of(out);
    return ops->check != NULL ? ops->check(read.options, where, err) : WEIR_OK;
}

weir_status weir_sweep_space_read(const json_t *object, const char *where, struct weir_arena *arena,
                                  struct weir_sweep_space *out, struct weir_error *err)
{
    struct weir_sweep_space space = {0};
    const char *name;
    json_t *value;
    size_t n = json_object_size(object);
    if (n == 0 || n > WEIR_SWEEP_PARAMETERS_MAX) {
        return weir_error_set(err, n == 0 ? WEIR_ERR_INVALID : WEIR_ERR_LIMIT,
                              "%s: expected an object of 1 to %d parameters, such as {\"lr\": "
                              "{\"kind\": \"log_uniform\", \"min\": 0.001, \"max\": 1}}",
                              where, WEIR_SWEEP_PARAMETERS_MAX);
    }
    space.parameters = WEIR_ARENA_ARRAY(arena, n, struct weir_sweep_parameter);
    json_object_foreach((json_t *)object, name, value)
    {
        struct weir_sweep_parameter *one = &space.parameters[space.n];
        WEIR_TRY(check_name(&space, name, where, err));
        one->name = weir_arena_strdup(arena, name);
        WEIR_TRY(read_one(value, weir_arena_printf(arena, "%s.%s", where, name), arena, one, err));
        space.n++;
    }
    *out = space;
    return WEIR_OK;
}

json_t *weir_sweep_space_values(const struct weir_sweep_space *space, const double *point)
{
    json_t *values = json_object();
    for (size_t i = 0; i < space->n; i++) {
        const struct weir_sweep_parameter *one = &space->parameters[i];
        json_object_set_new(values, one->name,
                            weir_sweep_parameter_ops_of(one)->value(one->options, point[i]));
    }
    return values;
}

void weir_sweep_space_draw(const struct weir_sweep_space *space, uint64_t seed, int64_t trial,
                           double *out_point)
{
    struct weir_rng rng;
    weir_rng_init(&rng, seed, (uint64_t)DRAWS << 32 | (uint64_t)trial);
    for (size_t i = 0; i < space->n; i++) {
        out_point[i] = weir_rng_f64(&rng);
    }
}
