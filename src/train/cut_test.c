/* Photos of a training that a detector cuts: alike by any number of threads and in any rank, or refused with a sentence. */
#include "base/rng.h"
#include "find/detector_fixture.h"
#include "train/cut.h"
#include "train/task.h"

#include <string.h>
#include <unistd.h>

#define N_CLASSES 5
#define N_PHOTOS  12
#define SIDE      16

static char dir[64];
static struct weir_arena arena;
static struct weir_error err;

static const char *path_of(const char *rest)
{
    return weir_arena_printf(&arena, "%s/%s", dir, rest);
}

/* A photo with a bright square somewhere, or none. */
static void write_photo(struct weir_rng *rng, const char *path, bool has_face)
{
    struct weir_image photo;
    struct weir_buf bytes;
    ck_assert_int_eq(weir_image_init(&photo, 40 + (int)weir_rng_below(rng, 60),
                                     40 + (int)weir_rng_below(rng, 40), 1, NULL),
                     WEIR_OK);
    for (int i = 0; i < photo.width * photo.height; i++) {
        photo.pixels[i] = (uint8_t)weir_rng_below(rng, 40);
    }
    int at_x = (int)weir_rng_below(rng, 16), at_y = (int)weir_rng_below(rng, 16);
    for (int y = at_y; has_face && y < at_y + 24; y++) {
        for (int x = at_x; x < at_x + 24; x++) {
            photo.pixels[y * photo.width + x] = (uint8_t)(140 + weir_rng_below(rng, 116));
        }
    }
    weir_buf_init(&bytes, 1 << 20);
    ck_assert_int_eq(weir_image_encode(&photo, WEIR_IMAGE_FORMAT_PNM, 0, &bytes, NULL), WEIR_OK);
    ck_assert_int_eq(weir_file_write_atomic(path, bytes.data, bytes.len, 0644, NULL), WEIR_OK);
    weir_buf_fini(&bytes);
    weir_image_fini(&photo);
}

static void write_photos(bool have_faces)
{
    struct weir_rng rng;
    uint64_t seed;
    weir_random_bytes(&seed, sizeof seed);
    (void)printf("seed %llu\n", (unsigned long long)seed);
    weir_rng_init(&rng, seed, 0);
    for (int i = 0; i < N_CLASSES * N_PHOTOS; i++) {
        char rest[64];
        (void)snprintf(rest, sizeof rest, "data/p%d", i / N_PHOTOS);
        ck_assert_int_eq(weir_dir_make(path_of(rest), 0755, NULL), WEIR_OK);
        (void)snprintf(rest, sizeof rest, "data/p%d/%02d.pgm", i / N_PHOTOS, i % N_PHOTOS);
        write_photo(&rng, path_of(rest), have_faces && i % N_PHOTOS != 3);
    }
}

static void set_up(void)
{
    static const char model[] =
        "{\"input\": [1, 16, 16], \"layers\": [{\"name\": \"fc\", \"type\": \"linear\", \"k\": 8},"
        " {\"name\": \"unit\", \"type\": \"l2_normalise\"}], \"loss\": {\"type\": \"margin\"}}";
    weir_arena_init(&arena, 0);
    (void)snprintf(dir, sizeof dir, "/tmp/weir-cut-test-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(dir));
    detector_fixture_write(path_of("detector.onnx"));
    ck_assert_int_eq(
        weir_file_write_atomic(path_of("model.json"), model, strlen(model), 0644, NULL), WEIR_OK);
}

static void tear_down(void)
{
    ck_assert_int_eq(weir_dir_remove(dir, NULL), WEIR_OK);
    weir_arena_fini(&arena);
}

static struct weir_train_config config_of(const char *model, int64_t n_threads, int64_t rank)
{
    struct weir_train_config config;
    weir_training_defaults(&config, &arena);
    config.model.name = (char *)model;
    config.data.path = (char *)path_of("data");
    config.data.detector = (char *)path_of("detector.onnx");
    config.data.detect =
        (char *)"{\"as\": \"centernet\", \"threshold\": 0.55, \"width\": 96, \"height\": 64}";
    config.data.align = (char *)"{\"by\": \"box\"}";
    config.data.mirror_classes = true;
    config.group.threads = n_threads;
    config.group.workers = 2;
    config.group.rank = rank;
    return config;
}

static void must_open(struct train_task *task, const struct weir_train_config *config)
{
    ck_assert_msg(train_task_open(task, config, &err) == WEIR_OK, "%s", err.message);
}

static bool is_same_picture(const struct train_task *a, const struct train_task *b, size_t i)
{
    struct weir_image one, other;
    ck_assert_int_eq(weir_dataset_read(train_task_stream(a), i, &one, NULL), WEIR_OK);
    ck_assert_int_eq(weir_dataset_read(train_task_stream(b), i, &other, NULL), WEIR_OK);
    size_t n = (size_t)one.width * (size_t)one.height * (size_t)one.channels;
    bool is_same = one.width == other.width && one.height == other.height &&
                   one.channels == other.channels && memcmp(one.pixels, other.pixels, n) == 0;
    weir_image_fini(&one);
    weir_image_fini(&other);
    return is_same;
}

START_TEST(threads_and_ranks_find_the_same_places)
{
    write_photos(true);
    const char *model = path_of("model.json");
    const struct weir_train_config configs[] = {config_of(model, 1, 0), config_of(model, 7, 0),
                                                config_of(model, 2, 1), config_of(model, 3, -1)};
    struct train_task tasks[WEIR_ARRAY_LEN(configs)];
    for (size_t t = 0; t < WEIR_ARRAY_LEN(configs); t++) {
        must_open(&tasks[t], &configs[t]);
        ck_assert_str_eq(tasks[t].identity, tasks[0].identity);
        size_t n = weir_dataset_n_samples(train_task_stream(&tasks[t]));
        ck_assert_uint_eq(n, (size_t)2 * N_CLASSES * N_PHOTOS);
        for (size_t i = 0; i < n; i++) {
            ck_assert_msg(is_same_picture(&tasks[0], &tasks[t], i), "sample %zu of task %zu", i, t);
        }
    }
    for (size_t t = 0; t < WEIR_ARRAY_LEN(configs); t++) {
        train_task_close(&tasks[t]);
    }
}

END_TEST

START_TEST(a_cut_has_the_size_of_the_input_and_a_photo_without_a_face_stays_whole)
{
    write_photos(true);
    const struct weir_train_config config = config_of(path_of("model.json"), 2, -1);
    struct train_task task;
    size_t n_cut = 0;
    must_open(&task, &config);
    for (size_t i = 0; i < weir_dataset_n_samples(task.dataset); i++) {
        struct weir_image image;
        ck_assert_int_eq(weir_dataset_read(task.dataset, i, &image, NULL), WEIR_OK);
        bool is_cut = image.width == SIDE && image.height == SIDE;
        ck_assert(!is_cut || i % N_PHOTOS != 3);
        n_cut += is_cut;
        weir_image_fini(&image);
    }
    ck_assert_uint_gt(n_cut, 0);
    train_task_close(&task);
}

END_TEST

START_TEST(a_checkpoint_belongs_to_its_detector_and_options)
{
    write_photos(true);
    struct weir_train_config config = config_of(path_of("model.json"), 2, 0);
    struct train_task one, other;
    must_open(&one, &config);
    json_t *identity = json_loads(one.identity, 0, NULL);
    const json_t *cut = json_object_get(identity, "cut");
    char digest[WEIR_SHA256_TEXT_BYTES];
    ck_assert_int_eq(weir_file_sha256(config.data.detector, digest, &(uint64_t){0}, NULL), WEIR_OK);
    ck_assert_str_eq(json_string_value(json_object_get(cut, "digest")), digest);
    config.data.align = (char *)"{\"by\": \"box\", \"left\": 0.1}";
    must_open(&other, &config);
    ck_assert_str_ne(one.identity, other.identity);
    train_task_close(&other);
    config.data.detector = NULL;
    config.data.detect = config.data.align = NULL;
    must_open(&other, &config);
    ck_assert_ptr_null(strstr(other.identity, "\"cut\""));
    train_task_close(&other);
    train_task_close(&one);
    json_decref(identity);
}

END_TEST

START_TEST(a_parameter_server_looks_at_no_photo)
{
    write_photos(false);
    struct weir_train_config config = config_of(path_of("model.json"), 1, 2);
    struct train_task task;
    config.group.parameter_servers = 1;
    must_open(&task, &config);
    train_task_close(&task);
}

END_TEST

static void refuse(const struct weir_train_config *config, weir_status status, const char *said)
{
    struct train_task task;
    ck_assert_int_eq(train_task_open(&task, config, &err), status);
    ck_assert_msg(strstr(err.message, said) != NULL, "%s", err.message);
    train_task_close(&task);
}

START_TEST(what_cannot_be_cut_is_refused)
{
    static const char classifier[] =
        "{\"input\": [1, 16, 16], \"layers\": [{\"name\": \"fc\", \"type\": \"linear\", \"k\": "
        "\"classes\"}], \"loss\": {\"type\": \"softmax\"}}";
    write_photos(false);
    struct weir_train_config config = config_of(path_of("model.json"), 3, -1);
    refuse(&config, WEIR_ERR_INVALID, "finds no face in any of the 60 photos");
    config.data.detector = (char *)path_of("nowhere.onnx");
    refuse(&config, WEIR_ERR_NOT_FOUND, "detector: ");
    config.data.detector = (char *)path_of("model.json");
    refuse(&config, WEIR_ERR_INVALID, "detector ");
    const char *path = path_of("classifier.json");
    ck_assert_int_eq(weir_file_write_atomic(path, classifier, strlen(classifier), 0644, NULL),
                     WEIR_OK);
    config = config_of(path, 3, -1);
    config.data.mirror_classes = false;
    refuse(&config, WEIR_ERR_UNSUPPORTED, "learns none");
}

END_TEST

WEIR_TEST_MAIN_WITH("cut", set_up, tear_down, threads_and_ranks_find_the_same_places,
                    a_cut_has_the_size_of_the_input_and_a_photo_without_a_face_stays_whole,
                    a_checkpoint_belongs_to_its_detector_and_options,
                    a_parameter_server_looks_at_no_photo, what_cannot_be_cut_is_refused)
