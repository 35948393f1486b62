/** Ranges of numbers: what kinds of parameters with a least and a greatest value share. */
#ifndef WEIR_SWEEP_PARAMETER_RANGE_H
#define WEIR_SWEEP_PARAMETER_RANGE_H

#include "sweep/parameter.h"

struct sweep_range {
    double min, max;
    double step;    /**< Values are min plus whole steps; 0: any. */
    int64_t points; /**< Values of a grid; 0: not said. */
};

#define SWEEP_RANGE_MIN(strct)                                                                     \
    WEIR_OPT_JSON(strct, min, "min", F64, WEIR_OPTION_REQUIRED, NULL, 0, 0, "Least value")
#define SWEEP_RANGE_MAX(strct)                                                                     \
    WEIR_OPT_JSON(strct, max, "max", F64, WEIR_OPTION_REQUIRED, NULL, 0, 0, "Greatest value")
#define SWEEP_RANGE_POINTS(strct)                                                                  \
    WEIR_OPT_JSON(strct, points, "points", INT, 0, "0", 0, WEIR_SWEEP_CHOICES_MAX,                 \
                  "How many values method grid takes, from min to max; 0: not said")

/** @return INVALID unless min is less than max. */
weir_status sweep_range_check(const struct sweep_range *range, const char *where,
                              struct weir_error *err) WEIR_MUST_CHECK;

#endif
