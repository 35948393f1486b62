#include "sweep/parameter/range.h"

#include <math.h>

static weir_status check(const void *options, const char *where, struct weir_error *err)
{
    const struct sweep_range *range = options;
    WEIR_TRY(sweep_range_check(range, where, err));
    return range->min > 0 ? WEIR_OK
                          : weir_error_set(err, WEIR_ERR_INVALID,
                                           "%s.min: expected a number above 0, not %g: there is no "
                                           "logarithm of it",
                                           where, range->min);
}

static size_t n_values(const void *options)
{
    const struct sweep_range *range = options;
    return (size_t)range->points;
}

static double place(const void *options, size_t i, size_t n)
{
    (void)options;
    return n > 1 ? (double)i / (double)(n - 1) : 0.5;
}

static json_t *value(const void *options, double at)
{
    const struct sweep_range *range = options;
    double low = log(range->min), high = log(range->max);
    return json_real(fmax(fmin(exp(low + at * (high - low)), range->max), range->min));
}

static const struct weir_option options_of[] = {
    SWEEP_RANGE_MIN(sweep_range),
    SWEEP_RANGE_MAX(sweep_range),
    SWEEP_RANGE_POINTS(sweep_range),
};

static const struct weir_sweep_parameter_ops ops = {
    .check = check, .n_values = n_values, .place = place, .value = value};

const struct weir_kind weir_sweep_parameter_log_uniform = {
    .name = "log_uniform",
    .doc =
        "A number from min to max, each order of magnitude equally likely: learning rates, weight "
        "decay.",
    WEIR_KIND_OPTIONS(sweep_range, options_of),
    .ops = &ops,
};
