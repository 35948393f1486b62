/**
 * Look: what can be said of a picture without knowing what it shows. The same of training's pictures
 * and of live ones tells whether a camera has changed: light, haze, focus, dirt.
 *
 * A picture is grey, h × w values of 0 (black) to 1, row by row: the mean of the channels as the model
 * sees them. It is compared only with pictures of the same size.
 */
#ifndef WEIR_STATS_LOOK_H
#define WEIR_STATS_LOOK_H

#include <stddef.h>

/** Grey levels that entropy counts. */
#define WEIR_LOOK_LEVELS 64

struct weir_look {
    double brightness; /**< Mean. */
    double contrast;   /**< Standard deviation. */
    double sharpness;  /**< Mean size of the Laplacian (4 neighbours) inside; 0 below 3 × 3. */
    double entropy;    /**< Of the grey levels, in bits: 0 to 6. */
};

/** Pure. NaN in the picture makes members NaN. Cost: about 2 ns a value. */
struct weir_look weir_look_at(const float *grey, size_t h, size_t w);

#endif
