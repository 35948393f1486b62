/** What each kind of detector takes beside its own options (vision/detectors.c). */
#ifndef WEIR_VISION_DETECTOR_COMMON_H
#define WEIR_VISION_DETECTOR_COMMON_H

#include "base/json.h"

#include <stdint.h>

struct detector_common {
    const json_t *outputs, *classes, *mean, *std; /**< NULL: not given. */
    char *colours, *fit;                          /**< NULL: the kind's. */
    double scale;                                 /**< 0: the kind's. */
    int64_t pad, divisor;                         /**< -1, 0: the kind's. */
};

#endif
