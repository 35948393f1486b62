#include "find/photo.h"

#include "find/finder.h"

#include <string.h>

const float photo_surrounds[PHOTO_SURROUNDS] = {1, 2, 4};

/* Such a picture has as many pixels to a side as the photo, or so many. */
#define SURROUND_SIDE 640
#define NOTHING       114

weir_status photo_surround(const struct weir_image *photo, float surround,
                           struct photo_place *out_place, struct weir_image *out,
                           struct weir_error *err)
{
    float side = (float)WEIR_MAX(photo->width, photo->height);
    float scale = WEIR_MIN(WEIR_MAX(side, (float)SURROUND_SIDE) / (side * surround), 1);
    int width = (int)((float)photo->width * surround * scale),
        height = (int)((float)photo->height * surround * scale);
    float left = ((float)width - (float)photo->width * scale) / 2,
          top = ((float)height - (float)photo->height * scale) / 2;
    const struct weir_affine map = {{1 / scale, 0, -left / scale, 0, 1 / scale, -top / scale}};
    const struct weir_view view = weir_view_of(photo);
    WEIR_TRY(weir_image_init(out, WEIR_MAX(width, 1), WEIR_MAX(height, 1), photo->channels, err));
    weir_view_cut(&view, &map, NOTHING, out);
    *out_place = (struct photo_place){left, top, scale};
    return WEIR_OK;
}

struct weir_box photo_place_box(const struct photo_place *place, const struct weir_box *box)
{
    return (struct weir_box){(box->x - place->left) / place->scale,
                             (box->y - place->top) / place->scale, box->w / place->scale,
                             box->h / place->scale};
}

static float area_of(const struct weir_detection *detection)
{
    return detection->box.w * detection->box.h;
}

/* The largest face that is found where the photo is looked at so. */
static weir_status find_in(struct finder *finder, const struct weir_image *photo, float surround,
                           struct weir_detection *out, bool *out_is_there, struct weir_error *err)
{
    const struct weir_detection *found;
    size_t n;
    struct photo_place place;
    struct weir_detection largest = {0};
    WEIR_AUTO(weir_image_fini) struct weir_image wide = {0};
    WEIR_TRY(photo_surround(photo, surround, &place, &wide, err));
    const struct weir_view view = weir_view_of(&wide);
    WEIR_TRY(finder_find(finder, &view, &found, &n, err));
    for (size_t i = 0; i < n; i++) {
        largest = i == 0 || area_of(&found[i]) > area_of(&largest) ? found[i] : largest;
    }
    largest.box = photo_place_box(&place, &largest.box);
    for (size_t i = 0; i < WEIR_FACE_POINTS; i++) {
        largest.points[2 * i] = (largest.points[2 * i] - place.left) / place.scale;
        largest.points[2 * i + 1] = (largest.points[2 * i + 1] - place.top) / place.scale;
    }
    *out = largest;
    *out_is_there = n > 0;
    return WEIR_OK;
}

weir_status photo_find(struct finder *finder, const struct weir_image *photo,
                       struct weir_detection *out, bool *out_is_there, struct weir_error *err)
{
    *out_is_there = false;
    for (size_t i = 0; i < PHOTO_SURROUNDS && !*out_is_there; i++) {
        WEIR_TRY(find_in(finder, photo, photo_surrounds[i], out, out_is_there, err));
    }
    return WEIR_OK;
}

struct weir_face_align photo_align(const struct weir_stage_align *align, int width, int height,
                                   int channels)
{
    return (struct weir_face_align){.width = width,
                                    .height = height,
                                    .channels = channels,
                                    .by_box = strcmp(align->by, "box") == 0,
                                    .place = {.left = (float)align->left,
                                              .top = (float)align->top,
                                              .right = (float)align->right,
                                              .bottom = (float)align->bottom}};
}
