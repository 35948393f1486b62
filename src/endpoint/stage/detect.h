/** Options of the stage "detect". */
#ifndef WEIR_ENDPOINT_STAGE_DETECT_H
#define WEIR_ENDPOINT_STAGE_DETECT_H

#include "base/json.h"

#include <stdint.h>

struct weir_stage_detect {
    char *model; /**< NAME, NAME@ALIAS or NAME/VERSION. */
    char *as;    /**< Kind of vision/detectors.def; NULL: recognised by the model's outputs. */
    double threshold, overlap; /**< 0: the kind's. */
    int64_t min_face;          /**< In pixels of the picture; 0: no wish. */
    int64_t tiles, width, height;
    const json_t *classes; /**< Names that count; NULL: all. */
    const json_t *options; /**< The kind's; NULL: its defaults. */
};

/** What a detector's model is called by: parts of "NAME", "NAME@ALIAS" or "NAME/VERSION". */
struct weir_detector_name {
    const char *name;  /**< In the arena. */
    const char *alias; /**< NULL: none. */
    int64_t version;   /**< 0: the newest. */
};

/** @return INVALID, with `where` before what is wrong. */
weir_status weir_detector_name_parse(const char *text, const char *where, struct weir_arena *arena,
                                     struct weir_detector_name *out,
                                     struct weir_error *err) WEIR_MUST_CHECK;

#endif
