/** Versions as detectors: what a stage "detect" would take their outputs for. */
#ifndef WEIR_API_FINDS_H
#define WEIR_API_FINDS_H

#include "base/arena.h"
#include "base/status.h"

struct weir_stage_detect;

/**
 * Fit a kind of detector to a version, by its signature alone.
 * @param detect  What the stage says; NULL: it is recognised by names and shapes.
 * @param out_why  Which kind, and by what: a sentence, in the arena. NULL: there is no signature to look at.
 * @return As weir_detector_create.
 */
weir_status api_finds(const char *signature, const struct weir_stage_detect *detect,
                      struct weir_arena *arena, char **out_why,
                      struct weir_error *err) WEIR_MUST_CHECK;

#endif
