/* Oracles: `sha256sum` of the shell for digests, Fashion-MNIST's published labels, ORL's own
 * layout. */
#include "data/dataset.h"

#include "data/dataset_private.h"
#include "data/image_test_data.h"
#include "data/test_folder.h"

#include <sys/stat.h>
#include <unistd.h>

static struct weir_dataset *open_folder(size_t cache_bytes)
{
    struct weir_dataset *dataset = NULL;
    struct weir_error err = {0};
    struct weir_dataset_options options = {.cache_bytes = cache_bytes};
    ck_assert_msg(weir_dataset_open(folder, &options, &dataset, &err) == WEIR_OK, "%s",
                  err.message);
    return dataset;
}

START_TEST(a_folder_per_class_is_read_in_bytewise_order)
{
    static const char *const names[] = {"b/2.png",     "b/10.png",   "B/x.JPG",      "a b/1.pgm",
                                        "a b/.hidden", ".git/1.png", "b/deep/1.png", "a b/noname",
                                        "b/notes.txt", "README.png", "@eaDir/1.png", "b/thumbs.db",
                                        "b/._2.png"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        bool is_text = strstr(names[i], ".txt") != NULL;
        put(names[i], is_text ? (const void *)"hello world" : png_grey_file,
            is_text ? 11 : sizeof png_grey_file);
    }
    char path[128];
    (void)snprintf(path, sizeof path, "%s/empty class", folder);
    ck_assert_int_eq(mkdir(path, 0755), 0);

    struct weir_dataset *dataset = open_folder(0);
    static const char *const classes[] = {"B", "a b", "b", "empty class"};
    static const char *const files[] = {"B/x.JPG", "a b/1.pgm", "a b/noname", "b/10.png",
                                        "b/2.png"};
    static const int32_t labels[] = {0, 1, 1, 2, 2};
    ck_assert_uint_eq(weir_dataset_n_classes(dataset), 4);
    ck_assert_uint_eq(weir_dataset_n_samples(dataset), 5);
    for (size_t i = 0; i < 4; i++) {
        ck_assert_str_eq(weir_dataset_class_name(dataset, i), classes[i]);
    }
    for (size_t i = 0; i < 5; i++) {
        char name[WEIR_SAMPLE_NAME_BYTES];
        ck_assert_str_eq(weir_dataset_sample_name(dataset, i, name), files[i]);
        ck_assert_int_eq(weir_dataset_label(dataset, i), labels[i]);
        struct weir_image image; // by content: "x.JPG" is a PNG
        ck_assert_int_eq(weir_dataset_read(dataset, i, &image, NULL), WEIR_OK);
        ck_assert_mem_eq(image.pixels, png_grey_pixels, sizeof png_grey_pixels);
        weir_image_fini(&image);
    }
    ck_assert_int_eq(weir_dataset_label(dataset, 5), -1);
    ck_assert_ptr_null(weir_dataset_class_name(dataset, 4));
    weir_dataset_close(dataset);
}

END_TEST

static void note_damage(void *context, size_t i_sample, const struct weir_error *err)
{
    char *text = context;
    size_t len = strlen(text);
    (void)snprintf(text + len, 1000 - len, "%zu %s %s\n", i_sample, weir_status_name(err->status),
                   err->message + strlen(folder) + 1);
}

START_TEST(verify_names_each_damaged_file_and_reads_on)
{
    put("a/1.png", png_rgb_file, sizeof png_rgb_file - 30);
    put("a/2.png", png_rgb_file, sizeof png_rgb_file);
    put("a/3.png", "", 0);
    put("b/1.jpg", jpeg_rgb420_file, sizeof jpeg_rgb420_file - 50);
    struct weir_dataset *dataset = open_folder(0);
    char text[1000] = "";
    size_t n_damaged;
    ck_assert_int_eq(weir_dataset_verify(dataset, note_damage, text, &n_damaged, NULL), WEIR_OK);
    ck_assert_uint_eq(n_damaged, 3);
    ck_assert_ptr_nonnull(strstr(text, "0 CORRUPT a/1.png: PNG: truncated"));
    ck_assert_ptr_nonnull(strstr(text, "2 UNSUPPORTED a/3.png: empty file"));
    ck_assert_ptr_nonnull(strstr(text, "3 CORRUPT b/1.jpg: JPEG: "));
    weir_dataset_close(dataset);
}

END_TEST

START_TEST(a_damaged_sample_is_told_of_once_also_where_it_is_shown_mirrored)
{
    put("a/1.png", png_rgb_file, sizeof png_rgb_file);
    put("b/1.png", png_rgb_file, sizeof png_rgb_file);
    struct weir_dataset *dataset = open_folder(0), *mirrored;
    ck_assert_int_eq(weir_dataset_open_mirrored(dataset, &mirrored, NULL), WEIR_OK);
    ck_assert(dataset_tell_once(dataset, 1));
    ck_assert(!dataset_tell_once(dataset, 1));
    ck_assert(dataset_tell_once(mirrored, 0));
    ck_assert(!dataset_tell_once(mirrored, 2)); /* the first one again */
    ck_assert(!dataset_tell_once(dataset, 0));
    weir_dataset_close(mirrored);
    weir_dataset_close(dataset);
}

END_TEST

START_TEST(the_digest_is_what_sha256sum_prints)
{
    put("s-1/a.pgm", "P5 1 1 255\nA", 12);
    put("s/b.pgm", "P5 1 1 255\nB", 12); // "s-1/" sorts before "s/"
    put("s/a.pgm", "P5 1 1 255\nC", 12);
    struct weir_dataset *dataset = open_folder(0);
    char digest[WEIR_SHA256_TEXT_BYTES], command[256], expected[WEIR_SHA256_TEXT_BYTES] = "";
    ck_assert_int_eq(weir_dataset_digest(dataset, digest, NULL), WEIR_OK);
    (void)snprintf(command, sizeof command,
                   "cd %s && find * -type f | LC_ALL=C sort | xargs sha256sum | sha256sum", folder);
    FILE *pipe = popen(command, "r");
    ck_assert_ptr_nonnull(pipe);
    ck_assert_uint_eq(fread(expected, 1, 64, pipe), 64);
    (void)pclose(pipe);
    ck_assert_str_eq(digest, expected);
    weir_dataset_close(dataset);
    put("s/a.pgm", "P5 1 1 255\nD", 12);
    dataset = open_folder(0);
    ck_assert_int_eq(weir_dataset_digest(dataset, digest, NULL), WEIR_OK);
    ck_assert_str_ne(digest, expected);
    weir_dataset_close(dataset);
}

END_TEST

START_TEST(the_cache_keeps_what_fits_and_gives_views)
{
    put("a/1.pgm", "P5 1 1 255\nA", 12);
    put("a/2.pgm", "P5 1 1 255\nB", 12);
    struct weir_dataset *dataset = open_folder(sizeof(struct weir_image) + 1); // room for one
    struct weir_image first, second, again;
    ck_assert_int_eq(weir_dataset_read(dataset, 0, &first, NULL), WEIR_OK);
    ck_assert_int_eq(weir_dataset_read(dataset, 1, &second, NULL), WEIR_OK);
    ck_assert(first.is_view);
    ck_assert(!second.is_view);
    put("a/1.pgm", "P5 1 1 255\nX", 12); // no longer read
    ck_assert_int_eq(weir_dataset_read(dataset, 0, &again, NULL), WEIR_OK);
    ck_assert_ptr_eq(again.pixels, first.pixels);
    ck_assert_int_eq(again.pixels[0], 'A');
    weir_image_fini(&again);
    weir_image_fini(&first);
    weir_image_fini(&second);
    weir_dataset_close(dataset);
}

END_TEST

START_TEST(a_list_keeps_the_callers_order_and_labels)
{
    put("x.pgm", "P5 1 1 255\nX", 12);
    put("y.pgm", "P5 1 1 255\nY", 12);
    char x[128], y[128];
    (void)snprintf(x, sizeof x, "%s/x.pgm", folder);
    (void)snprintf(y, sizeof y, "%s/y.pgm", folder);
    struct weir_dataset_item items[] = {{y, 1}, {x, 0}, {y, 0}};
    static const char *const classes[] = {"no", "yes"};
    struct weir_dataset *dataset;
    ck_assert_int_eq(weir_dataset_open_list(items, 3, classes, 2, 0, &dataset, NULL), WEIR_OK);
    static const char pixels[] = "YXY";
    for (size_t i = 0; i < 3; i++) {
        struct weir_image image;
        ck_assert_int_eq(weir_dataset_read(dataset, i, &image, NULL), WEIR_OK);
        ck_assert_int_eq(image.pixels[0], pixels[i]);
        ck_assert_int_eq(weir_dataset_label(dataset, i), items[i].label);
        weir_image_fini(&image);
    }
    weir_dataset_close(dataset);
    items[2].label = 2;
    ck_assert_int_eq(weir_dataset_open_list(items, 3, classes, 2, 0, &dataset, NULL),
                     WEIR_ERR_INVALID);
    ck_assert_int_eq(weir_dataset_open_list(items, 0, classes, 2, 0, &dataset, NULL),
                     WEIR_ERR_INVALID);
}

END_TEST

static const uint8_t idx_images[] = {0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 2,  0,  0,
                                     0, 3, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
static const uint8_t idx_labels[] = {0, 0, 8, 1, 0, 0, 0, 2, 3, 1};

/** Are these the same but for left and right? */
static bool is_mirror(const struct weir_image *a, const struct weir_image *b)
{
    bool is_same = a->width == b->width && a->height == b->height && a->channels == b->channels;
    for (int y = 0; is_same && y < a->height; y++) {
        for (int x = 0; is_same && x < a->width; x++) {
            is_same = memcmp(a->pixels + (y * a->width + x) * a->channels,
                             b->pixels + (y * a->width + a->width - 1 - x) * a->channels,
                             (size_t)a->channels) == 0;
        }
    }
    return is_same;
}

START_TEST(a_mirrored_view_doubles_samples_and_classes)
{
    static const unsigned char three[] = "P5 3 2 255\n\1\2\3\4\5\6";
    put("ann/1.png", png_grey_file, sizeof png_grey_file);
    put("ann/2.pgm", three, sizeof three - 1);
    put("bob/1.ppm", "P6 2 1 255\nabcdef", 17);
    struct weir_dataset *base = open_folder(1 << 20), *view = NULL;
    ck_assert_int_eq(weir_dataset_open_mirrored(base, &view, NULL), WEIR_OK);
    ck_assert_uint_eq(weir_dataset_n_samples(view), 6);
    ck_assert_uint_eq(weir_dataset_n_classes(view), 4);
    ck_assert_str_eq(weir_dataset_class_name(view, 1), "bob");
    ck_assert_str_eq(weir_dataset_class_name(view, 3), "bob (mirrored)");
    for (size_t i = 0; i < 3; i++) {
        struct weir_image plain, same, mirrored;
        char name[WEIR_SAMPLE_NAME_BYTES], twin[WEIR_SAMPLE_NAME_BYTES];
        ck_assert_int_eq(weir_dataset_label(view, i), weir_dataset_label(base, i));
        ck_assert_int_eq(weir_dataset_label(view, 3 + i), weir_dataset_label(base, i) + 2);
        ck_assert_int_eq(weir_dataset_read(base, i, &plain, NULL), WEIR_OK);
        ck_assert_int_eq(weir_dataset_read(view, i, &same, NULL), WEIR_OK);
        ck_assert_int_eq(weir_dataset_read(view, 3 + i, &mirrored, NULL), WEIR_OK);
        ck_assert_ptr_eq(plain.pixels, same.pixels); /* the same picture in the base's cache */
        ck_assert(is_mirror(&plain, &mirrored) && !mirrored.is_view);
        (void)weir_dataset_sample_name(base, i, name);
        ck_assert_str_eq(weir_dataset_sample_name(view, i, twin), name);
        ck_assert_str_ne(weir_dataset_sample_name(view, 3 + i, twin), name);
        weir_image_fini(&plain);
        weir_image_fini(&same);
        weir_image_fini(&mirrored);
    }
    struct weir_image none;
    ck_assert_int_eq(weir_dataset_read(view, 6, &none, NULL), WEIR_ERR_INVALID);
    char digest[WEIR_SHA256_TEXT_BYTES], view_digest[WEIR_SHA256_TEXT_BYTES];
    ck_assert_int_eq(weir_dataset_digest(base, digest, NULL), WEIR_OK);
    ck_assert_int_eq(weir_dataset_digest(view, view_digest, NULL), WEIR_OK);
    ck_assert_str_eq(digest, view_digest);
    weir_dataset_close(view);
    weir_dataset_close(base);
}

END_TEST

/* Odd samples become one pixel; the third cannot be shown. */
static weir_status show_odd(const void *context, size_t i_sample, struct weir_image *in_out,
                            struct weir_error *err)
{
    if (i_sample == 2) {
        return weir_error_set(err, WEIR_ERR_UNSUPPORTED, "not this one");
    }
    if (i_sample % 2 == 1) {
        weir_image_fini(in_out);
        WEIR_TRY(weir_image_init(in_out, 1, 1, 1, err));
        in_out->pixels[0] = *(const uint8_t *)context;
    }
    return WEIR_OK;
}

START_TEST(a_view_shows_what_its_function_makes_of_the_base)
{
    static const unsigned char three[] = "P5 3 2 255\n\1\2\3\4\5\6";
    const uint8_t grey = 77;
    put("ann/1.pgm", three, sizeof three - 1);
    put("ann/2.pgm", three, sizeof three - 1);
    put("bob/1.ppm", "P6 2 1 255\nabcdef", 17);
    struct weir_dataset *base = open_folder(1 << 20), *view = NULL, *mirrored = NULL;
    struct weir_image plain, shown;
    struct weir_error err;
    char name[WEIR_SAMPLE_NAME_BYTES], same[WEIR_SAMPLE_NAME_BYTES];
    char digest[WEIR_SHA256_TEXT_BYTES], view_digest[WEIR_SHA256_TEXT_BYTES];
    ck_assert_int_eq(weir_dataset_open_view(base, show_odd, &grey, &view, NULL), WEIR_OK);
    ck_assert_int_eq(weir_dataset_open_mirrored(view, &mirrored, NULL), WEIR_OK);
    ck_assert_uint_eq(weir_dataset_n_samples(view), 3);
    ck_assert_str_eq(weir_dataset_class_name(view, 1), "bob");
    ck_assert_int_eq(weir_dataset_label(view, 2), 1);
    (void)weir_dataset_sample_name(base, 1, name);
    ck_assert_str_eq(weir_dataset_sample_name(view, 1, same), name);
    ck_assert_int_eq(weir_dataset_read(base, 0, &plain, NULL), WEIR_OK);
    ck_assert_int_eq(weir_dataset_read(view, 0, &shown, NULL), WEIR_OK);
    ck_assert_ptr_eq(plain.pixels, shown.pixels);
    for (int i = 0; i < 2; i++) { /* The base's cache stays as it is. */
        ck_assert_int_eq(weir_dataset_read(mirrored, i == 0 ? 1 : 4, &shown, NULL), WEIR_OK);
        ck_assert(shown.width == 1 && shown.pixels[0] == grey);
        weir_image_fini(&shown);
    }
    ck_assert_int_eq(weir_dataset_read(base, 1, &plain, NULL), WEIR_OK);
    ck_assert_int_eq(plain.width, 3);
    ck_assert_int_eq(weir_dataset_read(view, 2, &shown, &err), WEIR_ERR_UNSUPPORTED);
    ck_assert_int_eq(weir_dataset_digest(base, digest, NULL), WEIR_OK);
    ck_assert_int_eq(weir_dataset_digest(mirrored, view_digest, NULL), WEIR_OK);
    ck_assert_str_eq(digest, view_digest);
    ck_assert(dataset_tell_once(mirrored, 4) && !dataset_tell_once(base, 1));
    weir_dataset_close(mirrored);
    weir_dataset_close(view);
    weir_dataset_close(base);
}

END_TEST

START_TEST(an_idx_pair_is_found_raw_or_gzip_by_split)
{
    put_gzip("train-images-idx3-ubyte.gz", idx_images, sizeof idx_images);
    put("train-labels-idx1-ubyte", idx_labels, sizeof idx_labels);
    struct weir_dataset *dataset = open_folder(0);
    ck_assert_uint_eq(weir_dataset_n_samples(dataset), 2);
    ck_assert_uint_eq(weir_dataset_n_classes(dataset), 4);
    struct weir_image image;
    ck_assert_int_eq(weir_dataset_read(dataset, 1, &image, NULL), WEIR_OK);
    ck_assert_int_eq(image.width, 3);
    ck_assert_int_eq(image.height, 2);
    ck_assert_mem_eq(image.pixels, idx_images + 16 + 6, 6);
    ck_assert_int_eq(weir_dataset_label(dataset, 0), 3);
    char name[WEIR_SAMPLE_NAME_BYTES];
    ck_assert_str_eq(weir_dataset_sample_name(dataset, 1, name), "train-images-idx3-ubyte.gz[1]");
    weir_dataset_close(dataset);
    struct weir_error err;
    struct weir_dataset_options test = {.kind = WEIR_DATASET_IDX, .split = "test"};
    ck_assert_int_eq(weir_dataset_open(folder, &test, &dataset, &err), WEIR_ERR_NOT_FOUND);
    ck_assert_ptr_nonnull(strstr(err.message, "t10k-images-idx3-ubyte"));
}

END_TEST

static weir_status open_pair(const void *images, size_t n_images, const void *labels,
                             size_t n_labels)
{
    char images_path[128], labels_path[128];
    put("i", images, n_images);
    put("l", labels, n_labels);
    (void)snprintf(images_path, sizeof images_path, "%s/i", folder);
    (void)snprintf(labels_path, sizeof labels_path, "%s/l", folder);
    struct weir_dataset *dataset = NULL;
    struct weir_error err = {0};
    weir_status status = weir_dataset_open_idx(images_path, labels_path, &dataset, &err);
    ck_assert((status == WEIR_OK) == (dataset != NULL));
    ck_assert(status == WEIR_OK || strstr(err.message, folder) != NULL);
    weir_dataset_close(dataset);
    return status;
}

START_TEST(damaged_idx_files_are_refused_by_name)
{
    size_t n = sizeof idx_images, m = sizeof idx_labels;
    ck_assert_int_eq(open_pair(idx_images, n, idx_labels, m), WEIR_OK);
    for (size_t size = 0; size < n; size++) {
        ck_assert_int_eq(open_pair(idx_images, size, idx_labels, m), WEIR_ERR_CORRUPT);
    }
    ck_assert_int_eq(open_pair(idx_images, n, idx_labels, m - 1), WEIR_ERR_CORRUPT);
    uint8_t longer[sizeof idx_images + 1] = {0};
    memcpy(longer, idx_images, n);
    ck_assert_int_eq(open_pair(longer, n + 1, idx_labels, m), WEIR_ERR_CORRUPT);
    uint8_t three[] = {0, 0, 8, 1, 0, 0, 0, 3, 3, 1, 0};
    ck_assert_int_eq(open_pair(idx_images, n, three, sizeof three), WEIR_ERR_CORRUPT);
    memset(longer + 4, 0xff, 12); // 2^96 bytes
    ck_assert_int_eq(open_pair(longer, n, idx_labels, m), WEIR_ERR_LIMIT);
    memset(longer + 4, 0, 4);
    ck_assert_int_eq(open_pair(longer, n, idx_labels, m), WEIR_ERR_CORRUPT);
}

END_TEST

START_TEST(a_gzip_with_a_wrong_checksum_is_refused)
{
    put_gzip("g", idx_images, sizeof idx_images);
    char path[128], *bytes;
    size_t size;
    (void)snprintf(path, sizeof path, "%s/g", folder);
    struct weir_arena arena;
    weir_arena_init(&arena, 0);
    ck_assert_int_eq(weir_file_read(path, 1000, &arena, &bytes, &size, NULL), WEIR_OK);
    ck_assert_int_eq(open_pair(bytes, size, idx_labels, sizeof idx_labels), WEIR_OK);
    for (size_t cut = 1; cut < size; cut++) {
        ck_assert_int_eq(open_pair(bytes, size - cut, idx_labels, sizeof idx_labels),
                         WEIR_ERR_CORRUPT);
    }
    bytes[size - 8] ^= 1; // CRC-32
    ck_assert_int_eq(open_pair(bytes, size, idx_labels, sizeof idx_labels), WEIR_ERR_CORRUPT);
    weir_arena_fini(&arena);
}

END_TEST

START_TEST(what_is_no_dataset_is_refused_with_a_sentence)
{
    struct weir_dataset *dataset;
    struct weir_error err = {0};
    struct weir_dataset_options usual = {0};
    ck_assert_int_eq(weir_dataset_open(folder, &usual, &dataset, &err), WEIR_ERR_INVALID);
    ck_assert_ptr_nonnull(strstr(err.message, "one sub-folder per class"));
    put("file", "x", 1);
    char path[128];
    (void)snprintf(path, sizeof path, "%s/file", folder);
    ck_assert_int_eq(weir_dataset_open(path, &usual, &dataset, &err), WEIR_ERR_INVALID);
    (void)snprintf(path, sizeof path, "%s/none", folder);
    ck_assert_int_eq(weir_dataset_open(path, &usual, &dataset, &err), WEIR_ERR_NOT_FOUND);
    ck_assert_ptr_nonnull(strstr(err.message, path));
}

END_TEST

WEIR_TEST_MAIN_WITH("dataset", make_folder, remove_folder,
                    a_folder_per_class_is_read_in_bytewise_order,
                    verify_names_each_damaged_file_and_reads_on,
                    a_damaged_sample_is_told_of_once_also_where_it_is_shown_mirrored,
                    the_digest_is_what_sha256sum_prints, the_cache_keeps_what_fits_and_gives_views,
                    a_list_keeps_the_callers_order_and_labels,
                    an_idx_pair_is_found_raw_or_gzip_by_split,
                    damaged_idx_files_are_refused_by_name, a_gzip_with_a_wrong_checksum_is_refused,
                    a_mirrored_view_doubles_samples_and_classes,
                    a_view_shows_what_its_function_makes_of_the_base,
                    what_is_no_dataset_is_refused_with_a_sentence)
