/** Options of the stage "count". */
#ifndef WEIR_ENDPOINT_STAGE_COUNT_H
#define WEIR_ENDPOINT_STAGE_COUNT_H

#include "base/json.h"

#include <stdint.h>

#define WEIR_STAGE_COUNT_POINTS 32

struct weir_stage_count {
    char *name;            /**< What the place is called. */
    const json_t *cameras; /**< Cameras that it is in; NULL: all. */
    const json_t *classes; /**< Names of classes that count; NULL: all. */
    const json_t *zone;    /**< [[x, y] …], shares of the picture; NULL: the whole picture. */
    const json_t *line;    /**< [[x, y], [x, y]]; NULL: none. */
    char *by;              /**< "foot" or "centre". */
    int64_t over, under;   /**< -1: no limit. */
    double for_s, long_s;  /**< long_s 0: nothing is too long. */
    int64_t enter_ms, leave_ms;
};

/** Does it look at a zone? Else at its line alone. */
bool weir_stage_count_has_zone(const struct weir_stage_count *count);

/** Points of zone or line: x, y of each, into out, which has room for WEIR_STAGE_COUNT_POINTS. @return How many; 0 for NULL. */
size_t weir_stage_count_points(const json_t *points, float *out);

/** @return INVALID, with `where` before what is wrong. */
weir_status weir_stage_count_check(const struct weir_stage_count *count, const char *where,
                                   struct weir_error *err) WEIR_MUST_CHECK;

#endif
