/*
 * Memory that runs out, in the whole process: every allocation of ours, of zlib, libpng and libjpeg
 * and of the C library is made to fail in turn. Each failure must come back as NOMEM, leave nothing
 * behind (the address sanitizer looks), and the same call must succeed right after it with the
 * result that it has when nothing fails.
 */
#include "data/data.h"

#include "base/test_alloc.h"
#include "data/image_test_data.h"
#include "data/test_folder.h"

/** What is swept. *out_digest: of what it made, to compare with a run without failure. */
typedef weir_status (*swept_fn)(const void *context, uint64_t *out_digest);

static uint64_t digest_of(uint64_t digest, const void *bytes, size_t n)
{
    return crc32_z(digest, bytes, n);
}

/* Failures that are made up for, at the cost of time alone: libjpeg asks again for less, twice per
 * picture; a stream of the C library that gets no buffer does without. */
#define SPARED_PER_JPEG   2
#define SPARED_PER_STREAM 1

/** @param n_spared_most  How many failures may be made up for. */
static void sweep(const char *what, swept_fn function, const void *context, long n_spared_most)
{
#if !defined(__SANITIZE_THREAD__) /* nothing is counted there */
    uint64_t expected = 0, digest = 0;
    ck_assert_int_eq(function(context, &expected), WEIR_OK);
    long n = 0, n_spared = 0;
    for (bool was_hit = true; was_hit; n++) {
        test_alloc_fail(n);
        weir_status status = function(context, &digest);
        was_hit = test_alloc_end();
        ck_assert_msg(status == WEIR_ERR_NOMEM || status == WEIR_OK, "%s, allocation %ld: %s", what,
                      n, weir_status_name(status));
        n_spared += was_hit && status == WEIR_OK;
        ck_assert(was_hit || status == WEIR_OK);
        ck_assert_msg(status != WEIR_OK || digest == expected, "%s, allocation %ld", what, n);
        ck_assert_msg(function(context, &digest) == WEIR_OK && digest == expected,
                      "%s, after the failure of allocation %ld", what, n);
    }
    printf("%s: %ld allocations, %ld made up for\n", what, n - 1, n_spared);
    ck_assert_int_gt(n, 1); /* or nothing was swept */
    ck_assert_int_le(n_spared, n_spared_most);
#else
    (void)what, (void)function, (void)context, (void)n_spared_most;
#endif
}

/* ---- pictures -------------------------------------------------------------------------------- */

struct file {
    const char *name;
    const void *bytes;
    size_t size;
};

/* In folders: 8 pictures, 3 of them JPEG. */
#define N_FILES ((long)WEIR_ARRAY_LEN(files))
#define N_JPEGS 3
static const struct file files[] = {
    {"grey.png", png_grey_file, sizeof png_grey_file},
    {"palette.png", png_palette_file, sizeof png_palette_file},
    {"adam7.png", png_adam7_file, sizeof png_adam7_file},
    {"grey.jpg", jpeg_grey_file, sizeof jpeg_grey_file},
    {"progressive.jpg", jpeg_progressive_file, sizeof jpeg_progressive_file},
    {"cmyk.jpg", jpeg_cmyk_file, sizeof jpeg_cmyk_file},
    {"grey.pgm", "P5 2 2 255\nABCD", 15},
    {"text.pgm", "P2 2 2 255\n1 2 3 4\n", 19},
};

static uint64_t digest_of_image(const struct weir_image *image)
{
    return digest_of((uint64_t)image->width, image->pixels,
                     (size_t)image->width * (size_t)image->height * (size_t)image->channels);
}

static weir_status decode(const void *context, uint64_t *out_digest)
{
    const struct file *file = context;
    struct weir_image image;
    WEIR_TRY(weir_image_decode(file->bytes, file->size, &image, NULL));
    *out_digest = digest_of_image(&image);
    weir_image_fini(&image);
    return WEIR_OK;
}

START_TEST(every_failed_allocation_of_a_decoder_is_reported)
{
    bool is_jpeg = strstr(files[_i].name, ".jpg") != NULL;
    sweep(files[_i].name, decode, &files[_i], is_jpeg ? SPARED_PER_JPEG : 0);
}

END_TEST

static const enum weir_image_format formats[] = {WEIR_IMAGE_FORMAT_PNM, WEIR_IMAGE_FORMAT_PNG,
                                                 WEIR_IMAGE_FORMAT_JPEG};

static weir_status encode(const void *context, uint64_t *out_digest)
{
    static uint8_t pixels[40 * 30 * 3];
    for (size_t i = 0; i < sizeof pixels; i++) {
        pixels[i] = (uint8_t)(i * i % 251);
    }
    struct weir_image image = {40, 30, 3, pixels, true};
    struct weir_buf buf;
    weir_buf_init(&buf, 1 << 20);
    weir_status status =
        weir_image_encode(&image, *(const enum weir_image_format *)context, 80, &buf, NULL);
    *out_digest = digest_of(buf.len, buf.data, buf.len);
    weir_buf_fini(&buf);
    return status;
}

START_TEST(every_failed_allocation_of_an_encoder_is_reported)
{
    sweep("encoder", encode, &formats[_i],
          formats[_i] == WEIR_IMAGE_FORMAT_JPEG ? SPARED_PER_JPEG : 0);
}

END_TEST

static weir_status change(const void *context, uint64_t *out_digest)
{
    const struct weir_image *image = context;
    struct weir_image small = {0}, mirrored = {0}, cut = {0}, grey = {0};
    weir_status status;
    WEIR_TRY_GOTO(weir_image_resize(image, 3, 2, &small, NULL), status, fini);
    WEIR_TRY_GOTO(weir_image_mirror(&small, &mirrored, NULL), status, fini);
    WEIR_TRY_GOTO(weir_image_crop(&mirrored, 1, 0, 2, 2, &cut, NULL), status, fini);
    WEIR_TRY_GOTO(weir_image_convert(&cut, 1, &grey, NULL), status, fini);
    *out_digest = digest_of_image(&grey);
fini:
    weir_image_fini(&small);
    weir_image_fini(&mirrored);
    weir_image_fini(&cut);
    weir_image_fini(&grey);
    return status;
}

static const struct weir_input input = {.c = 3, .h = 9, .w = 7, .std = {1, 1, 1}};

static weir_status augment(const void *context, uint64_t *out_digest)
{
    static float scratch[4096], tensor[3 * 9 * 7];
    *out_digest = 0;
    for (int policy = 0; policy < WEIR_AUGMENT_COUNT; policy++) {
        WEIR_TRY(weir_augment_apply((enum weir_augment)policy, (struct weir_augment_key){1, 2, 3},
                                    context, &input, scratch, tensor, NULL));
        *out_digest = digest_of(*out_digest, tensor, sizeof tensor);
    }
    return WEIR_OK;
}

START_TEST(every_failed_allocation_of_a_change_is_reported)
{
    uint8_t pixels[8 * 8 * 3];
    for (size_t i = 0; i < sizeof pixels; i++) {
        pixels[i] = (uint8_t)(i * 5);
    }
    struct weir_image image = {8, 8, 3, pixels, true};
    ck_assert_uint_le(weir_augment_scratch_len(&input), 4096);
    sweep("resize, mirror, crop, convert", change, &image, 0);
    sweep("augmentation", augment, &image, 0);
}

END_TEST

/* ---- datasets -------------------------------------------------------------------------------- */

/** Everything that can be asked of a dataset, twice: the second time from the cache. */
static weir_status ask(struct weir_dataset *dataset, uint64_t *out_digest)
{
    char text[WEIR_SHA256_TEXT_BYTES];
    size_t n_damaged = 0;
    WEIR_TRY(weir_dataset_verify(dataset, NULL, NULL, &n_damaged, NULL));
    WEIR_TRY(weir_dataset_digest(dataset, text, NULL));
    *out_digest = digest_of(n_damaged, text, sizeof text);
    for (size_t i = 0; i < weir_dataset_n_samples(dataset); i++) {
        struct weir_image image;
        char name[WEIR_SAMPLE_NAME_BYTES];
        WEIR_TRY(weir_dataset_read(dataset, i, &image, NULL));
        *out_digest = digest_of(*out_digest + digest_of_image(&image), name,
                                strlen(weir_dataset_sample_name(dataset, i, name)));
        weir_image_fini(&image);
    }
    return WEIR_OK;
}

static weir_status open_and_ask(const void *context, uint64_t *out_digest)
{
    struct weir_dataset *dataset = NULL;
    WEIR_TRY(weir_dataset_open(folder, context, &dataset, NULL));
    struct weir_dataset *view = NULL;
    weir_status status = weir_dataset_open_mirrored(dataset, &view, NULL);
    if (status == WEIR_OK) {
        status = ask(view, out_digest);
    }
    weir_dataset_close(view);
    weir_dataset_close(dataset);
    return status;
}

static void put_pictures(void)
{
    for (size_t i = 0; i < WEIR_ARRAY_LEN(files); i++) {
        char name[64];
        (void)snprintf(name, sizeof name, "class %zu/%s", i % 3, files[i].name);
        put(name, files[i].bytes, files[i].size);
    }
}

START_TEST(every_failed_allocation_of_a_folder_dataset_is_reported)
{
    put_pictures();
    /* Verified and read, each as it is and mirrored; digested once. */
    sweep("folder", open_and_ask, &(struct weir_dataset_options){0},
          4 * N_JPEGS * SPARED_PER_JPEG + N_FILES * SPARED_PER_STREAM);
}

END_TEST

START_TEST(a_picture_that_does_not_get_into_the_cache_is_read_again)
{
    put_pictures();
    sweep("folder with cache", open_and_ask, &(struct weir_dataset_options){.cache_bytes = 1 << 20},
          N_FILES + 2 * N_JPEGS * SPARED_PER_JPEG + N_FILES * SPARED_PER_STREAM);
}

END_TEST

static const uint8_t idx_images[] = {0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0,   2,   0,   0,
                                     0, 3, 1, 2, 3, 4, 5, 6, 7, 8, 100, 200, 255, 0};
static const uint8_t idx_labels[] = {0, 0, 8, 1, 0, 0, 0, 2, 3, 1};

START_TEST(every_failed_allocation_of_an_idx_dataset_is_reported)
{
    put_gzip("train-images-idx3-ubyte.gz", idx_images, sizeof idx_images);
    put("train-labels-idx1-ubyte", idx_labels, sizeof idx_labels);
    sweep("IDX", open_and_ask, &(struct weir_dataset_options){0}, 2 * SPARED_PER_STREAM);
}

END_TEST

static weir_status open_list(const void *context, uint64_t *out_digest)
{
    (void)context;
    static const char *const classes[] = {"a", "b"};
    static char paths[2][128];
    (void)snprintf(paths[0], sizeof paths[0], "%s/class 0/grey.png", folder);
    (void)snprintf(paths[1], sizeof paths[1], "%s/class 0/grey.jpg", folder);
    const struct weir_dataset_item items[] = {{paths[0], 1}, {paths[1], 0}};
    struct weir_dataset *dataset = NULL;
    WEIR_TRY(weir_dataset_open_list(items, 2, classes, 2, 0, &dataset, NULL));
    weir_status status = ask(dataset, out_digest);
    weir_dataset_close(dataset);
    return status;
}

START_TEST(every_failed_allocation_of_a_list_is_reported)
{
    put_pictures();
    sweep("list", open_list, NULL, 2 * SPARED_PER_JPEG + 2 * SPARED_PER_STREAM);
}

END_TEST

/* ---- scenes ---------------------------------------------------------------------------------- */

#define N_SCENES 3

static weir_status compose(const void *context, uint64_t *out_digest)
{
    const struct weir_scenes_options options = {.width = 32,
                                                .height = 32,
                                                .n = N_SCENES,
                                                .box = weir_face_box_usual,
                                                .cache_bytes = 1 << 20};
    struct weir_dataset *faces = NULL, *scenes = NULL;
    struct weir_scene_face shown[WEIR_SCENE_FACES_MAX];
    WEIR_TRY(weir_dataset_open(folder, context, &faces, NULL));
    WEIR_TRY(weir_dataset_open_scenes(faces, NULL, &options, &scenes, NULL));
    weir_status status = WEIR_OK;
    *out_digest = 0;
    for (size_t i = 0; i < N_SCENES && status == WEIR_OK; i++) {
        struct weir_image image = {0};
        size_t n = 0;
        status = weir_scene_look(scenes, i, shown, &n, NULL);
        if (status == WEIR_OK) {
            status = weir_dataset_read(scenes, i, &image, NULL);
        }
        *out_digest += status == WEIR_OK ? digest_of_image(&image) + n : 0;
        weir_image_fini(&image);
    }
    weir_dataset_close(scenes);
    return status;
}

START_TEST(every_failed_allocation_of_a_scene_is_reported)
{
    put("faces/one.png", files[0].bytes, files[0].size);
    sweep("scenes", compose, &(struct weir_dataset_options){0},
          N_SCENES * (2 * SPARED_PER_JPEG + 1)); /* encoded and decoded; kept or not */
}

END_TEST

/* ---- loader ---------------------------------------------------------------------------------- */

static weir_status load_an_epoch(const void *context, uint64_t *out_digest)
{
    struct weir_loader_config config = {.input = input,
                                        .batch = 3,
                                        .seed = 5,
                                        .n_epochs = 1,
                                        .shuffle = true,
                                        .tail = WEIR_TAIL_PAD,
                                        .augment = WEIR_AUGMENT_FACE,
                                        .on_damage = WEIR_ON_DAMAGE_SKIP};
    struct weir_dataset *const *dataset = context;
    struct weir_loader *loader = NULL;
    struct weir_batch batch;
    WEIR_TRY(weir_loader_create(*dataset, &config, &loader, NULL));
    *out_digest = 0;
    weir_status status;
    while ((status = weir_loader_next(loader, &batch, NULL)) == WEIR_OK) {
        size_t n_bytes = sizeof(float) * batch.n_slots * 3 * 9 * 7;
        *out_digest = digest_of(*out_digest, batch.images, n_bytes);
        *out_digest = digest_of(*out_digest, batch.labels, sizeof(int32_t) * batch.n_slots);
    }
    weir_loader_destroy(loader);
    return status == WEIR_ERR_END ? WEIR_OK : status;
}

/* Without threads: those of the sanitizer allocate too when they start. loader_test has them. */
START_TEST(a_codec_without_memory_is_no_damaged_file_to_the_loader)
{
    put_pictures();
    struct weir_dataset *dataset = NULL;
    struct weir_dataset_options options = {0};
    ck_assert_int_eq(weir_dataset_open(folder, &options, &dataset, NULL), WEIR_OK);
    sweep("loader", load_an_epoch, &dataset, N_JPEGS * SPARED_PER_JPEG);
    weir_dataset_close(dataset);
}

END_TEST

int main(void)
{
    Suite *suite = suite_create("alloc");
    TCase *tcase = tcase_create("alloc");
    tcase_set_timeout(tcase, 120);
    tcase_add_checked_fixture(tcase, make_folder, remove_folder);
    tcase_add_loop_test(tcase, every_failed_allocation_of_a_decoder_is_reported, 0,
                        (int)WEIR_ARRAY_LEN(files));
    tcase_add_loop_test(tcase, every_failed_allocation_of_an_encoder_is_reported, 0,
                        (int)WEIR_ARRAY_LEN(formats));
    tcase_add_test(tcase, every_failed_allocation_of_a_change_is_reported);
    tcase_add_test(tcase, every_failed_allocation_of_a_folder_dataset_is_reported);
    tcase_add_test(tcase, a_picture_that_does_not_get_into_the_cache_is_read_again);
    tcase_add_test(tcase, every_failed_allocation_of_an_idx_dataset_is_reported);
    tcase_add_test(tcase, every_failed_allocation_of_a_list_is_reported);
    tcase_add_test(tcase, every_failed_allocation_of_a_scene_is_reported);
    tcase_add_test(tcase, a_codec_without_memory_is_no_damaged_file_to_the_loader);
    suite_add_tcase(suite, tcase);
    return weir_test_run(suite);
}
