#include "sweep/parameter/range.h"

#include <math.h>

weir_status sweep_range_check(const struct sweep_range *range, const char *where,
                              struct weir_error *err)
{
    bool is_good = isfinite(range->min) && isfinite(range->max) && range->min < range->max &&
                   isfinite(range->max - range->min);
    return is_good ? WEIR_OK
                   : weir_error_set(err, WEIR_ERR_INVALID, "%s: min, %g, is not less than max, %g",
                                    where, range->min, range->max);
}

static weir_status check(const void *options, const char *where, struct weir_error *err)
{
    const struct sweep_range *range = options;
    WEIR_TRY(sweep_range_check(range, where, err));
    return range->step == 0 || (range->step > 0 && range->step <= range->max - range->min)
               ? WEIR_OK
               : weir_error_set(err, WEIR_ERR_INVALID,
                                "%s.step: expected a number from 0 to max - min, %g", where,
                                range->max - range->min);
}

static double n_steps(const struct sweep_range *range)
{
    /* A range that is whole steps long may come out a little shorter. */
    return floor((range->max - range->min) / range->step * (1 + 1e-12) + 1e-9);
}

static size_t n_values(const void *options)
{
    const struct sweep_range *range = options;
    if (range->points > 0) {
        return (size_t)range->points;
    }
    return range->step > 0 && n_steps(range) < WEIR_SWEEP_CHOICES_MAX ? (size_t)n_steps(range) + 1
                                                                      : 0;
}

static double place(const void *options, size_t i, size_t n)
{
    const struct sweep_range *range = options;
    if (range->step > 0 && n == (size_t)n_steps(range) + 1) {
        return ((double)i + 0.5) / (double)n;
    }
    return n > 1 ? (double)i / (double)(n - 1) : 0.5;
}

static json_t *value(const void *options, double at)
{
    const struct sweep_range *range = options;
    if (range->step > 0) {
        double n = n_steps(range) + 1;
        return json_real(range->min + fmin(floor(at * n), n - 1) * range->step);
    }
    return json_real(fmin(range->min + at * (range->max - range->min), range->max));
}

static const struct weir_option options_of[] = {
    SWEEP_RANGE_MIN(sweep_range),
    SWEEP_RANGE_MAX(sweep_range),
    WEIR_OPT_JSON(sweep_range, step, "step", F64, 0, "0", 0, 1e300,
                  "Values are min and whole steps above it; 0: any between min and max"),
    SWEEP_RANGE_POINTS(sweep_range),
};

static const struct weir_sweep_parameter_ops ops = {
    .check = check, .n_values = n_values, .place = place, .value = value};

const struct weir_kind weir_sweep_parameter_uniform = {
    .name = "uniform",
    .doc = "A number from min to max, each equally likely.",
    WEIR_KIND_OPTIONS(sweep_range, options_of),
    .ops = &ops,
};
