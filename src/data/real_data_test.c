/* Oracles: Fashion-MNIST's published labels, counts and mean; ORL's own layout and raw bytes. */
#include "data/data.h"

#include "base/test_main.h"

#include <stdio.h>
#include <unistd.h>

/** Path of real data; the whole program is skipped (77) where it is absent. */
static const char *shared(const char *name)
{
    static char path[512];
    const char *data = getenv("WEIR_SHARED_DATA");
    (void)snprintf(path, sizeof path, "%s/%s", data == NULL ? "" : data, name);
    return path;
}

START_TEST(fashion_mnist_has_its_published_first_labels)
{
    const char *path = shared("fashion-mnist");
    static const int32_t expected[] = {9, 0, 0, 3, 0, 2, 7, 2, 5, 5};
    struct weir_dataset *dataset;
    struct weir_dataset_options usual = {0}, test = {.split = "test"};
    ck_assert_int_eq(weir_dataset_open(path, &usual, &dataset, NULL), WEIR_OK);
    ck_assert_uint_eq(weir_dataset_n_samples(dataset), 60000);
    ck_assert_uint_eq(weir_dataset_n_classes(dataset), 10);
    for (size_t i = 0; i < 10; i++) {
        ck_assert_int_eq(weir_dataset_label(dataset, i), expected[i]);
    }
    unsigned count[10] = {0};
    double sum = 0;
    for (size_t i = 0; i < 60000; i++) {
        struct weir_image image;
        ck_assert_int_eq(weir_dataset_read(dataset, i, &image, NULL), WEIR_OK);
        for (int k = 0; k < 784; k++) {
            sum += image.pixels[k];
        }
        count[weir_dataset_label(dataset, i)]++;
    }
    for (int i = 0; i < 10; i++) {
        ck_assert_uint_eq(count[i], 6000);
    }
    ck_assert_double_eq_tol(sum / 60000 / 784 / 255, 0.2860, 5e-5); // the well-known mean
    weir_dataset_close(dataset);
    ck_assert_int_eq(weir_dataset_open(path, &test, &dataset, NULL), WEIR_OK);
    ck_assert_uint_eq(weir_dataset_n_samples(dataset), 10000);
    weir_dataset_close(dataset);
}

END_TEST

START_TEST(the_orl_faces_are_people_with_ten_pictures_each)
{
    const char *path = shared("orl_faces");
    struct weir_dataset *dataset;
    struct weir_dataset_options usual = {0};
    ck_assert_int_eq(weir_dataset_open(path, &usual, &dataset, NULL), WEIR_OK);
    // 40 people in all; some copies hold back a few for identification tests.
    size_t n_classes = weir_dataset_n_classes(dataset);
    ck_assert_uint_ge(n_classes, 20);
    ck_assert_uint_eq(weir_dataset_n_samples(dataset), 10 * n_classes);
    ck_assert_str_eq(weir_dataset_class_name(dataset, 1), "s10"); // bytewise
    size_t n_damaged;
    ck_assert_int_eq(weir_dataset_verify(dataset, NULL, NULL, &n_damaged, NULL), WEIR_OK);
    ck_assert_uint_eq(n_damaged, 0);
    weir_dataset_close(dataset);
}

END_TEST

START_TEST(jpeg_of_a_face_stays_close_to_the_pgm_bytes)
{
    const char *path = shared("orl_faces/s1/1.pgm");
    struct weir_arena arena;
    weir_arena_init(&arena, 0);
    char *bytes;
    size_t size;
    ck_assert_int_eq(weir_file_read(path, 1 << 20, &arena, &bytes, &size, NULL), WEIR_OK);
    struct weir_image image, back;
    ck_assert_int_eq(weir_image_load(path, &image, NULL), WEIR_OK);
    ck_assert_int_eq(image.width, 92);
    ck_assert_int_eq(image.height, 112);
    // The pixels are the file's last 92 x 112 bytes.
    ck_assert_mem_eq(image.pixels, bytes + size - 92 * 112, 92 * 112);
    struct weir_buf buf;
    weir_buf_init(&buf, 1 << 20);
    ck_assert_int_eq(weir_image_encode(&image, WEIR_IMAGE_FORMAT_JPEG, 90, &buf, NULL), WEIR_OK);
    ck_assert_uint_lt(buf.len, size / 2);
    ck_assert_int_eq(weir_image_decode(buf.data, buf.len, &back, NULL), WEIR_OK);
    double sum = 0;
    for (int i = 0; i < 92 * 112; i++) {
        sum += (image.pixels[i] - back.pixels[i]) * (image.pixels[i] - back.pixels[i]);
    }
    ck_assert_double_lt(sum / (92 * 112), 10); // 38 dB
    weir_buf_fini(&buf);
    weir_image_fini(&image);
    weir_image_fini(&back);
    weir_arena_fini(&arena);
}

END_TEST

int main(void)
{
    if (access(shared("fashion-mnist"), R_OK) != 0 || access(shared("orl_faces"), R_OK) != 0) {
        printf("skipped: no data under WEIR_SHARED_DATA\n");
        return 77;
    }
    const TTest *const tests[] = {fashion_mnist_has_its_published_first_labels,
                                  the_orl_faces_are_people_with_ten_pictures_each,
                                  jpeg_of_a_face_stays_close_to_the_pgm_bytes};
    return weir_test_run(weir_test_suite("real data", tests, 3));
}
