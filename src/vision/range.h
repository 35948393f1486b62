/** Range: what numbers an option may have. Inside vision. */
#ifndef WEIR_VISION_RANGE_H
#define WEIR_VISION_RANGE_H

#include "base/status.h"

#include <stddef.h>

struct range {
    const char *name;
    double value, min, max;
};

/** @param what  What they are options of: "the tracker". @return INVALID: one is out of its range, or no number; with its name. */
weir_status ranges_check(const char *what, const struct range *ranges, size_t n,
                         struct weir_error *err) WEIR_MUST_CHECK;

#endif
