/**
 * View: a picture as it lies in memory, of a file or of a camera, and what is cut out of it.
 *
 * Video comes as planes (I420: full Y, quarter U and V). A stage takes what it needs straight from there: the whole frame made small
 * for a detector, a face turned upright for a recogniser. Nothing in between is copied. Pure, and nothing is allocated; any thread.
 */
#ifndef WEIR_VISION_VIEW_H
#define WEIR_VISION_VIEW_H

#include "data/image.h"

enum weir_view_form {
    WEIR_VIEW_NONE,
    WEIR_VIEW_GREY,
    WEIR_VIEW_RGB,  /**< Interleaved, in planes[0]. */
    WEIR_VIEW_I420, /**< planes Y, U, V; U and V have (width + 1) / 2 × (height + 1) / 2. */
};

struct weir_view {
    enum weir_view_form form;
    int width, height;
    const uint8_t *planes[3]; /**< Borrowed. */
    int strides[3];           /**< Bytes from one line to the next. */
    bool is_full_range;       /**< I420: Y from 0 to 255; else 16 to 235 (BT.601 limited). */
};

/** The view of a picture in memory, which must outlive it. */
struct weir_view weir_view_of(const struct weir_image *image);

/** Where pixels of a cut come from: x = m[0]·u + m[1]·v + m[2], y = m[3]·u + m[4]·v + m[5], with u, v in pixels of the cut and
 *  x, y in pixels of the view; centres of pixels lie at +0.5 in both. */
struct weir_affine {
    float m[6];
};

/** A map that shrinks more than this averages the middle so many pixels of a line. */
#define WEIR_VIEW_SHRINK_MAX 1000

/** A map that turns averages at most so many samples to a side of what a pixel of the cut covers. */
#define WEIR_VIEW_SAMPLES_MAX 16

/**
 * Make `out`, which is allocated and says width, height and channels (1 or 3), of what the map shows. Bilinear; where it shrinks,
 * the mean over the pixels that a pixel of the cut covers. Where a pixel of the cut has its centre outside the view, or nowhere (a map
 * with NaN), it is `fill` in all channels; at the edge the outermost pixels go on.
 * Colours are BT.601; chroma lies in the middle of its four pixels of luma. Grey is luma from 0 to 255.
 * Cost: about 2 ns a pixel of the cut, and 0.5 ns a pixel of the view that it covers; where the map turns, 15 ns a sample: a pixel
 * of the cut has as many as it covers pixels of the view. A grey cut of I420 reads Y alone.
 */
void weir_view_cut(const struct weir_view *view, const struct weir_affine *map, uint8_t fill,
                   struct weir_image *out);

/** A cut as a network takes it. A channel's value is pixel · scale + shift, the pixel from 0 to 255. */
struct weir_view_input {
    int width, height, channels; /**< channels: 1 grey, 3 colours. */
    bool is_planar;              /**< C×H×W; else H×W×C. */
    bool is_bgr;                 /**< Blue comes first. */
    bool is_u8;                  /**< Bytes, rounded and held within 0 to 255; else f32. */
    float scale[3], shift[3];    /**< By place in the input: of blue first where it comes first. */
};

/** As weir_view_cut, to width · height · channels values. f32 values are not rounded. */
void weir_view_cut_input(const struct weir_view *view, const struct weir_affine *map, float fill,
                         const struct weir_view_input *input, void *out);

/** Copy as a picture of 3 channels (1 of a grey view), made smaller so that its longer side has at most max_side pixels (0: as it is).
 *  @return NOMEM; INVALID or LIMIT of a view without pixels or with too many. */
weir_status weir_view_to_image(const struct weir_view *view, int max_side, struct weir_image *out,
                               struct weir_error *err) WEIR_MUST_CHECK;

#endif
