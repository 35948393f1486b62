/**
 * Cut: how photos are cut that no replica sees, as its stages "detect" and "align" cut a camera's frames.
 */
#ifndef WEIR_ENDPOINT_CUT_H
#define WEIR_ENDPOINT_CUT_H

#include "endpoint/stage/align.h"
#include "endpoint/stage/detect.h"

struct weir_cut {
    struct weir_stage_detect detect;
    struct weir_stage_align align;
    json_t *json; /**< What detect points into. */
};

/**
 * Read what the two stages say.
 *
 * @param model   What the detector is called.
 * @param detect  Options of the stage "detect" but for its model, an object as JSON text; NULL: its defaults.
 * @param align   Those of the stage "align"; NULL: its defaults.
 * @param out     weir_cut_fini when done. Texts lie in the arena.
 * @return INVALID or LIMIT; the sentence begins with "detect" or "align".
 */
weir_status weir_cut_read(const char *model, const char *detect, const char *align,
                          struct weir_arena *arena, struct weir_cut *out,
                          struct weir_error *err) WEIR_MUST_CHECK;
void weir_cut_fini(struct weir_cut *cut);

/** What a chain's stages say, as weir_cut_read takes it. In the arena. */
struct weir_cut_texts {
    char *model, *detect, *align;
};

/** @param stages  The list as it is written, valid. @return false: it has no detect, or no align. */
bool weir_cut_of_stages(const json_t *stages, struct weir_arena *arena, struct weir_cut_texts *out);

#endif
