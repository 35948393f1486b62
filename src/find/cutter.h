/**
 * Cutter: where to cut photos, for those who have a detector's file and no replica, as a training has. A chain of the stages "detect" and
 * "align" with these options, and a model that takes pictures of this size, cut a photo of the gallery there, too (photo.h).
 *
 * The detector runs on the processor: the same file, options and photo give the same place at each call. One thread at a time.
 */
#ifndef WEIR_FIND_CUTTER_H
#define WEIR_FIND_CUTTER_H

#include "base/json.h"
#include "data/image.h"
#include "endpoint/cut.h"
#include "vision/view.h"

struct cutter_config {
    const char *path; /**< The detector's file. */
    /** What stands with the model's version; NULL: what the file says. */
    const json_t *signature;
    const struct weir_cut *cut;  /**< Borrowed until the cutter is closed. */
    int width, height, channels; /**< The size of a cut. */
};

struct cutter;

/** @param config  Borrowed for the call, but for `cut`. @return As finder_load. */
weir_status cutter_open(const struct cutter_config *config, struct cutter **out,
                        struct weir_error *err) WEIR_MUST_CHECK;
void cutter_close(struct cutter *cutter); /**< NULL is accepted. */

/**
 * Where the largest face of a photo is to be cut.
 * @param out_map       From the cut to the photo; written if there is a face.
 * @param out_is_there  false: none was found.
 * @return As photo_find. Cost: one run of the detector, and of a photo without a face three.
 */
weir_status cutter_find(struct cutter *cutter, const struct weir_image *photo,
                        struct weir_affine *out_map, bool *out_is_there,
                        struct weir_error *err) WEIR_MUST_CHECK;

#endif
