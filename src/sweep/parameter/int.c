#include "sweep/parameter.h"

#include <math.h>

struct sweep_int {
    int64_t min, max, step, points;
    bool log;
};

static weir_status check(const void *options, const char *where, struct weir_error *err)
{
    const struct sweep_int *range = options;
    if (range->min >= range->max) {
        return weir_error_set(err, WEIR_ERR_INVALID, "%s: min, %lld, is not less than max, %lld",
                              where, (long long)range->min, (long long)range->max);
    }
    if (range->log && (range->min < 1 || range->step != 1)) {
        return weir_error_set(err, WEIR_ERR_INVALID, "%s.log: expected min above 0, and no step",
                              where);
    }
    return range->step <= range->max - range->min
               ? WEIR_OK
               : weir_error_set(err, WEIR_ERR_INVALID, "%s.step: it is more than max - min", where);
}

static int64_t n_steps(const struct sweep_int *range)
{
    return (range->max - range->min) / range->step + 1;
}

static size_t n_values(const void *options)
{
    const struct sweep_int *range = options;
    int64_t n = n_steps(range);
    if (range->points > 0 && range->points < n) {
        return (size_t)range->points;
    }
    return n <= WEIR_SWEEP_CHOICES_MAX ? (size_t)n : 0;
}

static int64_t value_at(const struct sweep_int *range, double at)
{
    if (range->log) {
        double low = log((double)range->min), high = log((double)range->max + 1);
        int64_t value = (int64_t)floor(exp(low + at * (high - low)));
        return WEIR_MAX(WEIR_MIN(value, range->max), range->min);
    }
    int64_t n = n_steps(range);
    return range->min + WEIR_MIN((int64_t)floor(at * (double)n), n - 1) * range->step;
}

static double place(const void *options, size_t i, size_t n)
{
    const struct sweep_int *range = options;
    int64_t n_all = n_steps(range);
    if ((int64_t)n == n_all && range->log) { /* the middle of the value's part of the range */
        double low = log((double)range->min), high = log((double)range->max + 1);
        double value = (double)range->min + (double)i;
        return (log(value + 0.5) - low) / (high - low);
    }
    if ((int64_t)n == n_all) {
        return ((double)i + 0.5) / (double)n;
    }
    return n > 1 ? (double)i / (double)(n - 1) : 0.5;
}

static json_t *value(const void *options, double at)
{
    return json_integer((json_int_t)value_at(options, at));
}

static const struct weir_option options_of[] = {
    WEIR_OPT_JSON(sweep_int, min, "min", INT, WEIR_OPTION_REQUIRED, NULL, -9e15, 9e15,
                  "Least value"),
    WEIR_OPT_JSON(sweep_int, max, "max", INT, WEIR_OPTION_REQUIRED, NULL, -9e15, 9e15,
                  "Greatest value"),
    WEIR_OPT_JSON(sweep_int, step, "step", INT, 0, "1", 1, 9e15,
                  "Values are min and whole steps above it"),
    WEIR_OPT_JSON(sweep_int, log, "log", BOOL, 0, "false", 0, 0,
                  "Each order of magnitude is equally likely"),
    WEIR_OPT_JSON(sweep_int, points, "points", INT, 0, "0", 0, WEIR_SWEEP_CHOICES_MAX,
                  "How many values method grid takes, if not all; 0: all"),
};

static const struct weir_sweep_parameter_ops ops = {
    .check = check, .n_values = n_values, .place = place, .value = value};

const struct weir_kind weir_sweep_parameter_int = {
    .name = "int",
    .doc = "A whole number from min to max.",
    WEIR_KIND_OPTIONS(sweep_int, options_of),
    .ops = &ops,
};
