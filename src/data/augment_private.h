/** What the policies of augment share. */
#ifndef WEIR_DATA_AUGMENT_PRIVATE_H
#define WEIR_DATA_AUGMENT_PRIVATE_H

#include "data/augment.h"

#include "base/rng.h"

static inline float augment_between(struct weir_rng *rng, float low, float high)
{
    return low + (high - low) * weir_rng_f32(rng);
}

static inline bool augment_happens(struct weir_rng *rng, float probability)
{
    return weir_rng_f32(rng) < probability;
}

/** Position of the centre of pixel i of n, -1 to 1 over the pixels' edges. */
static inline float augment_position(int i, int n)
{
    return (2 * (float)i + 1) / (float)n - 1;
}

/** A rectangle of one grey, sides 0.1 to 0.35 of the picture's; it may reach over the edge. */
void augment_erase(const struct weir_input *input, float *planes, struct weir_rng *rng);

/** augment_photo.c: planes of the policy "photo", 0..255. @return NOMEM. */
weir_status augment_photo(const struct weir_image *image, const struct weir_input *input,
                          struct weir_rng *rng, float *out);

#endif
