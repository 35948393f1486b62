/* Scenes: what they show is where they say, whoever reads them, and what they are measured on is not what is learnt from. */
#include "data/scenes.h"

#include "data/scenes_private.h"
#include "data/test_folder.h"

#include <math.h>
#include <stdlib.h>

#define N_FACES 6

static void put_picture(const char *name, int width, int height, int grey)
{
    struct weir_image image = {0};
    struct weir_buf buf;
    weir_buf_init(&buf, 1 << 20);
    ck_assert_int_eq(weir_image_init(&image, width, height, 1, NULL), WEIR_OK);
    memset(image.pixels, grey, (size_t)width * (size_t)height);
    ck_assert_int_eq(weir_image_encode(&image, WEIR_IMAGE_FORMAT_PNM, 0, &buf, NULL), WEIR_OK);
    put(name, buf.data, buf.len);
    weir_image_fini(&image);
    weir_buf_fini(&buf);
}

/* Faces of one grey, all of the same size. */
static struct weir_dataset *open_plain(const char *kind, int grey, int n)
{
    char name[96], path[128];
    struct weir_dataset *dataset = NULL;
    for (int i = 0; i < n; i++) {
        (void)snprintf(name, sizeof name, "%s/one/%d.pgm", kind, i);
        put_picture(name, 46, 56, grey);
    }
    (void)snprintf(path, sizeof path, "%s/%s", folder, kind);
    ck_assert_int_eq(weir_dataset_open(path, &(struct weir_dataset_options){0}, &dataset, NULL),
                     WEIR_OK);
    return dataset;
}

static struct weir_dataset *open_scenes(const char *kind, int grey,
                                        const struct weir_scenes_options *options)
{
    struct weir_dataset *scenes = NULL;
    struct weir_error err = {0};
    weir_status status =
        weir_dataset_open_scenes(open_plain(kind, grey, N_FACES), NULL, options, &scenes, &err);
    ck_assert_msg(status == WEIR_OK, "%s", err.message);
    return scenes;
}

static const struct weir_scenes_options usual = {
    .width = 160, .height = 96, .n = 64, .box = {0.078F, 0.140F, 0.911F, 0.967F}};

static struct weir_image scene_read(struct weir_dataset *dataset, size_t i)
{
    struct weir_image image = {0};
    ck_assert_int_eq(weir_dataset_read(dataset, i, &image, NULL), WEIR_OK);
    return image;
}

START_TEST(a_scene_is_a_function_of_its_number)
{
    struct weir_scenes_options options = usual;
    struct weir_dataset *a, *b, *other;
    make_folder();
    a = open_scenes("a", 100, &options);
    options.cache_bytes = 1 << 20;
    b = open_scenes("a", 100, &options);
    options.seed = 9;
    other = open_scenes("a", 100, &options);
    ck_assert_uint_eq(weir_dataset_n_samples(a), 64);
    ck_assert_uint_eq(weir_dataset_n_classes(a), 1);
    for (size_t i = 0; i < 8; i++) {
        struct weir_image one = scene_read(a, i), same = scene_read(b, 7 - i),
                          again = scene_read(b, i);
        struct weir_image next = scene_read(a, i + 1), seeded = scene_read(other, i);
        size_t n = (size_t)one.width * (size_t)one.height;
        ck_assert_uint_eq(n, 160 * 96);
        ck_assert_mem_eq(one.pixels, again.pixels, n);
        ck_assert(memcmp(one.pixels, next.pixels, n) != 0);
        ck_assert(memcmp(one.pixels, seeded.pixels, n) != 0);
        weir_image_fini(&one);
        weir_image_fini(&same);
        weir_image_fini(&again);
        weir_image_fini(&next);
        weir_image_fini(&seeded);
    }
    weir_dataset_close(a);
    weir_dataset_close(b);
    weir_dataset_close(other);
    remove_folder();
}

END_TEST

/* Pixels from the middle on, to the left or right, by how much the two scenes differ: to where it is half of the middle's. */
static int reach(const int *difference, int width, int x, int y, int step)
{
    int middle = difference[y * width + x], n = 0;
    while (x + n * step >= 0 && x + n * step < width &&
           2 * difference[y * width + x + n * step] > middle) {
        n++;
    }
    return n;
}

/* The same scenes of black and of white faces differ where faces are: that width, against what the scene says. */
START_TEST(a_face_is_where_the_scene_says)
{
    const struct weir_scenes_options options = {
        .width = 320, .height = 192, .n = 25, .box = usual.box, .seed = (uint64_t)_i};
    int difference[320 * 192], n_faces = 0, n_right = 0;
    make_folder();
    struct weir_dataset *black = open_scenes("black", 0, &options);
    struct weir_dataset *white = open_scenes("white", 255, &options);
    for (size_t i = 0; i < options.n; i++) {
        struct weir_scene_face faces[WEIR_SCENE_FACES_MAX];
        struct weir_image a = scene_read(black, i), b = scene_read(white, i);
        size_t n = 0;
        ck_assert_int_eq(weir_scene_look(white, i, faces, &n, NULL), WEIR_OK);
        for (int p = 0; p < 320 * 192; p++) {
            difference[p] = abs((int)a.pixels[p] - (int)b.pixels[p]);
        }
        for (size_t k = 0; k < n; k++) {
            const struct weir_scene_face *face = &faces[k];
            int x = (int)(face->x + face->w / 2), y = (int)(face->y + face->h / 2);
            if (face->visible < 1 || face->w < 24 || x < 0 || y < 0 || x >= 320 || y >= 192) {
                continue;
            }
            double width = reach(difference, 320, x, y, 1) + reach(difference, 320, x, y, -1) - 1;
            n_faces++;
            n_right += fabs(width / (double)face->w - 1.02) < 0.12;
            for (int p = 0; p < WEIR_SCENE_POINTS;
                 p += 2) { /* eyes above mouth, left before right */
                ck_assert(face->points[p] > face->x && face->points[p] < face->x + face->w);
            }
            ck_assert(face->points[0] < face->points[2] && face->points[6] < face->points[8]);
            ck_assert(face->points[1] < face->points[7] && face->points[3] < face->points[9]);
        }
        weir_image_fini(&a);
        weir_image_fini(&b);
    }
    weir_dataset_close(black);
    weir_dataset_close(white);
    remove_folder();
    /* Another head may stand behind one and make it look wider. */
    ck_assert_msg(n_faces > 8 && n_right >= n_faces * 8 / 10, "seed %d: %d of %d", _i, n_right,
                  n_faces);
}

END_TEST

START_TEST(what_is_measured_with_is_not_learnt_from)
{
    make_folder();
    for (int n = 5; n < 24; n++) {
        char kind[16];
        bool is_learnt[24] = {false}, is_measured[24] = {false};
        (void)snprintf(kind, sizeof kind, "b%d", n);
        struct scenes scenes = {.backgrounds = open_plain(kind, 90, n)};
        struct weir_rng rng;
        weir_rng_init(&rng, 3, (uint64_t)n);
        for (int i = 0; i < 2000; i++) {
            scenes.options.part = WEIR_SCENES_LEARNT;
            is_learnt[scenes_background(&scenes, &rng)] = true;
            scenes.options.part = WEIR_SCENES_MEASURED;
            is_measured[scenes_background(&scenes, &rng)] = true;
        }
        for (int i = 0; i < n; i++) {
            ck_assert_msg(is_learnt[i] != is_measured[i], "photograph %d of %d", i, n);
        }
        weir_dataset_close(scenes.backgrounds);
    }
    remove_folder();
}

END_TEST

START_TEST(what_cannot_be_composed_is_said)
{
    struct weir_scenes_options options = usual;
    struct weir_dataset *scenes = NULL;
    struct weir_face_box box;
    struct weir_error err = {0};
    make_folder();
    options.width = 8;
    ck_assert_int_eq(weir_dataset_open_scenes(open_plain("f", 9, 2), NULL, &options, &scenes, &err),
                     WEIR_ERR_INVALID);
    ck_assert_ptr_nonnull(strstr(err.message, "32 to 4096"));
    options.width = 64;
    options.part = WEIR_SCENES_MEASURED;
    ck_assert_int_eq(weir_dataset_open_scenes(open_plain("f", 9, 2), open_plain("g", 9, 4),
                                              &options, &scenes, &err),
                     WEIR_ERR_INVALID);
    ck_assert_ptr_nonnull(strstr(err.message, "too few"));
    ck_assert_int_eq(weir_face_box_parse("0.1,0.2,0.8,0.9", &box, &err), WEIR_OK);
    ck_assert_float_eq_tol(box.bottom, 0.9F, 1e-6F);
    static const char *const wrong[] = {"", "1,2,3", "0.5,0,0.4,1", "0,0,1,1.5", "0,0,1,1x", "a"};
    for (size_t i = 0; i < WEIR_ARRAY_LEN(wrong); i++) {
        ck_assert_int_eq(weir_face_box_parse(wrong[i], &box, &err), WEIR_ERR_INVALID);
    }
    /* A picture of a face that cannot be read is named. */
    options = usual;
    struct weir_dataset *faces = open_plain("h", 9, 1);
    put("h/one/0.pgm", "P5 no", 5);
    ck_assert_int_eq(weir_dataset_open_scenes(faces, NULL, &options, &scenes, &err), WEIR_OK);
    weir_status status = WEIR_OK;
    for (size_t i = 0; i < 16 && status == WEIR_OK; i++) {
        struct weir_image image = {0};
        status = weir_dataset_read(scenes, i, &image, &err);
        weir_image_fini(&image);
    }
    ck_assert_int_eq(status, WEIR_ERR_CORRUPT);
    ck_assert_ptr_nonnull(strstr(err.message, "h/one/0.pgm"));
    weir_dataset_close(scenes);
    remove_folder();
}

END_TEST

WEIR_TEST_LOOPS_MAIN("scenes", {a_scene_is_a_function_of_its_number, 0},
                     {a_face_is_where_the_scene_says, 3},
                     {what_is_measured_with_is_not_learnt_from, 0},
                     {what_cannot_be_composed_is_said, 0})
