/* Films against a plain model that has every frame: random passages, whose pictures have the colour of their number. */
#include "predict/film.h"

#include "base/rng.h"
#include "base/test_main.h"

#include <math.h>

#define N_PASSAGES 300
#define LONGEST    700
#define SIDE       6

static struct weir_error err;

/* A picture that says its number: in its colours, so that no other one has the same. */
static struct weir_image picture_of(int64_t number)
{
    struct weir_image image;
    ck_assert_int_eq(weir_image_init(&image, SIDE, SIDE, 3, &err), WEIR_OK);
    for (int i = 0; i < SIDE * SIDE; i++) {
        image.pixels[3 * i] = (uint8_t)(number & 255);
        image.pixels[3 * i + 1] = (uint8_t)(number >> 8);
        image.pixels[3 * i + 2] = 77;
    }
    return image;
}

static int64_t number_in(const struct weir_image *image)
{
    ck_assert_ptr_nonnull(image->pixels);
    return image->pixels[0] | image->pixels[1] << 8;
}

/* Which frames a film of n has, by the sentence of its header. */
static size_t model(const double *worths, int64_t n, bool *out_kept, int64_t *out_best)
{
    int64_t stride = 1, n_even = n;
    size_t n_kept = 0;
    *out_best = 0;
    while (n_even > FILM_FRAMES - 1) {
        stride *= 2;
        n_even = (n + stride - 1) / stride;
    }
    for (int64_t i = 0; i < n; i++) {
        *out_best = worths[i] > worths[*out_best] ? i : *out_best;
    }
    for (int64_t i = 0; i < n; i++) {
        out_kept[i] = i % stride == 0 || i == *out_best;
        n_kept += out_kept[i];
    }
    return n_kept;
}

static void compare(struct film *film, const double *worths, int64_t n)
{
    bool kept[LONGEST];
    int64_t best;
    size_t n_kept = model(worths, n, kept, &best), at = 0;
    ck_assert_uint_eq(film->n, n_kept);
    ck_assert_uint_le(film->n, FILM_FRAMES);
    ck_assert_int_eq(film_best(film)->number, best);
    for (int64_t i = 0; i < n; i++) {
        if (kept[i]) {
            const struct film_frame *frame = &film->frames[at++];
            ck_assert_int_eq(frame->number, i);
            ck_assert_int_eq(frame->time_ms, 1000 + i * 40);
            ck_assert_int_eq(number_in(&frame->picture), i);
        }
    }
    ck_assert_uint_eq(film_bytes(film), n_kept * SIDE * SIDE * 3);
}

START_TEST(a_film_has_the_best_frame_and_others_at_even_distances)
{
    const uint64_t seed = 20264;
    struct weir_rng rng;
    weir_rng_init(&rng, seed, 0);
    printf("seed %llu\n", (unsigned long long)seed);
    for (int k = 0; k < N_PASSAGES; k++) {
        static double worths[LONGEST];
        struct film film;
        int64_t n = 1 + (int64_t)weir_rng_below(&rng, k % 3 == 0 ? 30 : LONGEST);
        int64_t n_cut = 0;
        film_init(&film);
        ck_assert_ptr_null(film_best(&film));
        for (int64_t i = 0; i < n; i++) {
            /* Few different ones, so that there are equals. */
            worths[i] = (double)weir_rng_below(&rng, k % 2 == 0 ? 5 : 1000) / 1000;
            struct film_frame frame = {.time_ms = 1000 + i * 40, .score = NAN};
            bool is_wanted = film_wants(&film, worths[i]);
            n_cut += is_wanted;
            frame.picture = is_wanted ? picture_of(i) : (struct weir_image){0};
            film_add(&film, &frame, worths[i]);
            compare(&film, worths, i + 1);
        }
        /* The first ones, half as many each time the stride doubles, and each that was the best. */
        ck_assert_int_le(n_cut, 11 + 7 * (int64_t)log2((double)n) + 40);
        film_fini(&film);
        film_fini(&film);
    }
}

END_TEST

START_TEST(a_frame_without_a_picture_is_no_best_one)
{
    struct film film;
    film_init(&film);
    film_add(&film, &(struct film_frame){.time_ms = 1}, -1);
    ck_assert_int_eq(film_best(&film)->number, 0);
    film_add(&film, &(struct film_frame){.time_ms = 2, .picture = picture_of(1)}, 0);
    ck_assert_int_eq(film_best(&film)->number, 1);
    ck_assert_ptr_null(film.frames[0].picture.pixels);
    film_fini(&film);
    ck_assert_uint_eq(film.n, 2);
}

END_TEST

WEIR_TEST_MAIN("film", a_film_has_the_best_frame_and_others_at_even_distances,
               a_frame_without_a_picture_is_no_best_one)
