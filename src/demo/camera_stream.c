/** A camera that streams people who walk by, one after the other, while somebody watches. */
#include "demo/cameras.h"
#include "demo/film.h"
#include "demo/stream.h"

#include <math.h>
#include <string.h>

#define JPEG_QUALITY 90
#define JPEG_BYTES   ((size_t)1 << 20)
#define PHOTO_STEPS  2 /* then they look a little different */
#define NOISE        5 /* grey levels, of a sensor */

static weir_status start(struct camera *camera, struct weir_error *err)
{
    struct walk *walk = &camera->walk;
    double fps = camera->demo->options->frames_per_second;
    walk->n_steps = (int64_t)ceil(FILM_PASSAGE_S * fps);
    walk->n_all = walk->n_steps + (int64_t)ceil(FILM_PAUSE_S * fps);
    weir_buf_init(&walk->jpeg, JPEG_BYTES);
    return film_wall((uint32_t)camera->index, &walk->wall, err);
}

static weir_status change_photo(struct camera *camera, struct weir_error *err)
{
    size_t len;
    struct weir_image photo = {0};
    WEIR_TRY(camera_photo(camera, camera->walk.person, &len, err));
    WEIR_TRY(weir_image_decode(camera->photo, len, &photo, err));
    weir_image_fini(&camera->walk.photo);
    camera->walk.photo = photo;
    return WEIR_OK;
}

static void add_noise(struct camera *camera, struct weir_image *picture)
{
    size_t n = (size_t)picture->width * (size_t)picture->height;
    for (size_t i = 0; i < n;) {
        for (uint64_t bits = weir_rng_u64(&camera->rng), k = 0; k < 16 && i < n; k++, i++) {
            int change = (int)(bits >> 4 * k & 15) * NOISE / 16 - NOISE / 2;
            for (int c = 0; c < 3; c++) {
                int value = picture->pixels[3 * i + (size_t)c] + change;
                picture->pixels[3 * i + (size_t)c] = (uint8_t)WEIR_MAX(0, WEIR_MIN(value, 255));
            }
        }
    }
}

/* The picture of this moment: somebody in it, or nobody. */
static weir_status show(struct camera *camera, struct weir_image *picture, struct weir_error *err)
{
    struct walk *walk = &camera->walk;
    bool is_there = walk->i_step > 0 && walk->i_step <= walk->n_steps;
    memcpy(picture->pixels, walk->wall.pixels, (size_t)FILM_WIDTH * FILM_HEIGHT * 3);
    if (is_there) {
        double at = (double)(walk->i_step - 1) / (double)WEIR_MAX(1, walk->n_steps - 1);
        size_t cloth = (size_t)(walk->person - camera->demo->people);
        WEIR_TRY(film_paint(&walk->photo, (uint32_t)cloth, at, picture, err));
    }
    add_noise(camera, picture);
    weir_buf_reset(&walk->jpeg);
    WEIR_TRY(weir_image_encode(picture, WEIR_IMAGE_FORMAT_JPEG, JPEG_QUALITY, &walk->jpeg, err));
    demo_streams_show(camera->demo->streams, camera->index, walk->jpeg.data, walk->jpeg.len);
    return WEIR_OK;
}

/* Somebody comes while somebody watches, and the ledger knows of it before. */
static weir_status tick(struct camera *camera, int64_t i_tick, struct weir_error *err)
{
    struct walk *walk = &camera->walk;
    struct demo *demo = camera->demo;
    bool is_free = walk->i_step == 0 && !atomic_load(&demo->is_stopping) &&
                   demo_streams_watchers(demo->streams, camera->index) > 0;
    (void)i_tick;
    if (is_free) {
        walk->person = camera_draw(camera, walk->person);
        WEIR_TRY(camera_note(camera, "passage", walk->n_passages++, walk->person, false, err));
    }
    if (is_free || walk->i_step > 0) {
        walk->i_step = walk->i_step < walk->n_all ? walk->i_step + 1 : 0;
    }
    if (walk->i_step > 0 && walk->i_step <= walk->n_steps && walk->i_step % PHOTO_STEPS == 1) {
        WEIR_TRY(change_photo(camera, err));
    }
    struct weir_image picture = {0};
    WEIR_TRY(weir_image_init(&picture, FILM_WIDTH, FILM_HEIGHT, 3, err));
    weir_status status = show(camera, &picture, err);
    weir_image_fini(&picture);
    return status;
}

static bool is_busy(const struct camera *camera)
{
    return camera->walk.i_step > 0;
}

static void end(struct camera *camera)
{
    weir_image_fini(&camera->walk.wall);
    weir_image_fini(&camera->walk.photo);
    weir_buf_fini(&camera->walk.jpeg);
}

const struct camera_kind camera_of_stream = {
    .start = start, .tick = tick, .is_busy = is_busy, .end = end};
