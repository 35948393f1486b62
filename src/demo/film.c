#include "demo/film.h"

#include "base/macros.h"

#include <math.h>

#define PHOTO_HEIGHT 120
#define EDGE         12 /* pixels over which a photo becomes the wall */
#define TOP          80
#define WALL         62 /* as dark as the photos' own background */

/* A grey of the photo in the colours of skin, or of cloth: red and blue move, the grey stays (BT.601). */
static void put(uint8_t *pixel, float grey, float red, float blue)
{
    const float rgb[] = {grey + 1.402F * red, grey - 0.714F * red - 0.344F * blue,
                         grey + 1.772F * blue};
    for (int c = 0; c < 3; c++) {
        pixel[c] = (uint8_t)WEIR_MAX(0.0F, WEIR_MIN(rgb[c], 255.0F));
    }
}

weir_status film_wall(uint32_t number, struct weir_image *out, struct weir_error *err)
{
    WEIR_TRY(weir_image_init(out, FILM_WIDTH, FILM_HEIGHT, 3, err));
    const int frame = 60 + 90 * (int)(number % 4), floor_at = FILM_HEIGHT - 40;
    for (int y = 0; y < FILM_HEIGHT; y++) {
        for (int x = 0; x < FILM_WIDTH; x++) {
            int from_left = x - frame;
            bool is_leaf = from_left > 0 && from_left < 110 && y > 24 && y < floor_at;
            bool is_edge = is_leaf && (from_left < 5 || from_left > 105 || y < 29);
            float grey = WALL + 10.0F * (float)x / FILM_WIDTH - 8.0F * (float)y / FILM_HEIGHT;
            grey = is_edge ? 40 : is_leaf ? grey + 9 : y > floor_at ? 46 : grey;
            put(out->pixels + 3 * (y * FILM_WIDTH + x), grey, is_leaf ? 2 : -3, is_leaf ? -3 : 4);
        }
    }
    return WEIR_OK;
}

/* How much of a photo of w × h is there at this place: all, but for its left, right and upper edge. */
static float share_at(int x, int y, int w)
{
    int edge = WEIR_MIN(WEIR_MIN(x, w - 1 - x), y);
    return WEIR_MIN(1.0F, (float)edge / EDGE);
}

static void paint_body(struct weir_image *picture, int left, int top, int w, uint32_t cloth)
{
    const float red = (float)(cloth * 37 % 24) - 12, blue = (float)(cloth * 53 % 24) - 12;
    for (int y = top; y < picture->height; y++) {
        int wider = WEIR_MIN(24, (y - top) / 3);
        for (int x = WEIR_MAX(0, left - wider); x < WEIR_MIN(left + w + wider, picture->width);
             x++) {
            put(picture->pixels + 3 * (y * picture->width + x), 72, red, blue);
        }
    }
}

static void paint_photo(const struct weir_image *photo, int left, struct weir_image *picture)
{
    for (int y = 0; y < photo->height && TOP + y < picture->height; y++) {
        for (int x = 0; x < photo->width; x++) {
            if (left + x < 0 || left + x >= picture->width) {
                continue;
            }
            uint8_t *pixel = picture->pixels + 3 * ((TOP + y) * picture->width + left + x), skin[3];
            float grey = photo->pixels[y * photo->width + x], share = share_at(x, y, photo->width);
            float warm = WEIR_MAX(0.0F, WEIR_MIN((grey - 80) / 60, 1.0F)); /* bright is skin */
            put(skin, grey, 9 * warm, 4 - 13 * warm);
            for (int c = 0; c < 3; c++) {
                pixel[c] = (uint8_t)lrintf((float)pixel[c] * (1 - share) + (float)skin[c] * share);
            }
        }
    }
}

weir_status film_paint(const struct weir_image *photo, uint32_t cloth, double at,
                       struct weir_image *picture, struct weir_error *err)
{
    struct weir_image grey = {0}, sized = {0};
    int width = WEIR_MAX(1, photo->width * PHOTO_HEIGHT / photo->height);
    width = WEIR_MIN(width, picture->width);
    WEIR_TRY(weir_image_convert(photo, 1, &grey, err));
    weir_status status = weir_image_resize(&grey, width, PHOTO_HEIGHT, &sized, err);
    weir_image_fini(&grey);
    if (status != WEIR_OK) {
        return status;
    }
    int left = (int)lrint((0.15 + 0.7 * at) * picture->width) - width / 2;
    paint_body(picture, left, TOP + PHOTO_HEIGHT - 6, width, cloth);
    paint_photo(&sized, left, picture);
    weir_image_fini(&sized);
    return WEIR_OK;
}
