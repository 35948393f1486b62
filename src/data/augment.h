/**
 * Augment: the random change a sample gets in an epoch. Pure: the pixels depend on the policy and
 * on (seed, epoch, sample), so any thread of any worker makes the same ones.
 *
 *     none        resize and normalise only
 *     flip        mirrored left-right with probability 1/2
 *     shift-flip  padded by 4 black pixels, cut back at a random place (shift -4..4), flip; for
 *                 28..32 px
 *     face        a warp: rotation ±12°, scale e^±0.12, aspect e^±0.08, shear ±0.06, shift ±0.1 of
 *                 half a side, and an elastic grid of 5x4 points that move by 0.03 of half a side
 *                 (deviation); gamma e^±0.2; light that rises by ±0.15 from the middle to the edge,
 *                 both ways; with probability 1/2 a rectangle of one random grey; noise of up to
 *                 0.2 of the input's deviation. Never mirrored: the mirror image of a face is somebody else
 * (weir_dataset_open_mirrored)
 *     photo       a random part of the whole picture, of 0.25 to 1 of its area and of sides 3:4 to
 *                 4:3, resized (Szegedy et al., CVPR 2015, section 6; torchvision's
 *                 RandomResizedCrop but for the smallest area); flip; brightness, contrast and
 *                 saturation times 0.6 to 1.4, in random order (torchvision's ColorJitter(0.4, 0.4,
 *                 0.4)); with probability 1/4 a rectangle of one random grey (Zhong et al., AAAI
 *                 2020)
 *
 * "±" is uniform. A face's geometry is one warp with bilinear sampling and clamped edges.
 */
#ifndef WEIR_DATA_AUGMENT_H
#define WEIR_DATA_AUGMENT_H

#include "data/image.h"

enum weir_augment {
    WEIR_AUGMENT_NONE,
    WEIR_AUGMENT_FLIP,
    WEIR_AUGMENT_SHIFT_FLIP,
    WEIR_AUGMENT_FACE,
    WEIR_AUGMENT_PHOTO,
    WEIR_AUGMENT_COUNT
};

/** "none", "flip", "shift-flip", "face", "photo"; NULL outside the list. */
const char *weir_augment_name(enum weir_augment augment);

/** @return INVALID listing the names. */
weir_status weir_augment_from_name(const char *name, enum weir_augment *out,
                                   struct weir_error *err) WEIR_MUST_CHECK;

struct weir_augment_key {
    uint64_t seed, epoch, sample;
};

/** Floats of scratch memory that weir_augment_apply needs for an input. */
size_t weir_augment_scratch_len(const struct weir_input *input);

/**
 * Picture to normalised tensor through a policy. WEIR_AUGMENT_NONE gives weir_image_to_tensor's
 * result exactly.
 * @param scratch  weir_augment_scratch_len(input) floats, used by one thread at a time.
 * @param[out] out  c · h · w floats.
 * @return NOMEM; INVALID for an unusable input.
 */
weir_status weir_augment_apply(enum weir_augment augment, struct weir_augment_key key,
                               const struct weir_image *image, const struct weir_input *input,
                               float *scratch, float *out, struct weir_error *err) WEIR_MUST_CHECK;

#endif
