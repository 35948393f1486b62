#include "sweep/parameter.h"

#include <math.h>

struct sweep_choice {
    const json_t *values;
};

static weir_status check(const void *options, const char *where, struct weir_error *err)
{
    const struct sweep_choice *choice = options;
    size_t n = json_array_size(choice->values);
    if (n == 0 || n > WEIR_SWEEP_CHOICES_MAX) {
        return weir_error_set(err, n == 0 ? WEIR_ERR_INVALID : WEIR_ERR_LIMIT,
                              "%s: expected a list of 1 to %d values", where,
                              WEIR_SWEEP_CHOICES_MAX);
    }
    for (size_t i = 0; i < n; i++) {
        const json_t *value = json_array_get(choice->values, i);
        if (!json_is_string(value) && !json_is_number(value) && !json_is_boolean(value)) {
            return weir_error_set(err, WEIR_ERR_INVALID,
                                  "%s[%zu]: expected a text, a number, true or false", where, i);
        }
    }
    return WEIR_OK;
}

static size_t n_values(const void *options)
{
    const struct sweep_choice *choice = options;
    return json_array_size(choice->values);
}

static double place(const void *options, size_t i, size_t n)
{
    (void)options;
    return ((double)i + 0.5) / (double)n;
}

static json_t *value(const void *options, double at)
{
    const struct sweep_choice *choice = options;
    size_t n = json_array_size(choice->values);
    size_t i = (size_t)floor(at * (double)n);
    return json_incref(json_array_get(choice->values, WEIR_MIN(i, n - 1)));
}

static const struct weir_option options_of[] = {
    WEIR_OPT_JSON(sweep_choice, values, "values", JSON, WEIR_OPTION_REQUIRED, NULL, 0, 0,
                  "The values: texts, numbers, true or false"),
};

static const struct weir_sweep_parameter_ops ops = {
    .is_choice = true, .check = check, .n_values = n_values, .place = place, .value = value};

const struct weir_kind weir_sweep_parameter_choice = {
    .name = "choice",
    .doc = "One of the values of a list, each equally likely and none nearer to another.",
    WEIR_KIND_OPTIONS(sweep_choice, options_of),
    .ops = &ops,
};
