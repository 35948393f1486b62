/*
 * A training sees its photos as the gallery cuts them: two ways that share the detector's file and what the stages say, compared by the
 * embeddings of what they cut. Photos are drawn at random, some without a face, some so that it is found only in the surround.
 */
#include "base/rng.h"
#include "find/detector_fixture.h"
#include "predict/photo_set.h"
#include "predict/test_support.h"
#include "train/task.h"

#include <string.h>

#define N_PEOPLE 6
#define N_PHOTOS 8
#define DETECT   "{\"as\": \"centernet\", \"threshold\": 0.55, \"width\": 96, \"height\": 64}"
#define MODEL                                                                                      \
    "{\"input\": [1, 16, 16], \"layers\": [{\"name\": \"fc\", \"type\": \"linear\", \"k\": 8},"    \
    " {\"name\": \"unit\", \"type\": \"l2_normalise\"}], \"loss\": {\"type\": \"margin\"}}"

static struct test_dir dir;
static struct weir_arena arena;
static struct weir_error err;
static json_t *manifest;

/* ---- photos ---------------------------------------------------------------------------------- */

static void brighten(struct weir_image *photo, struct weir_rng *rng, int at_x, int at_y, int side)
{
    for (int y = WEIR_MAX(at_y, 0); y < WEIR_MIN(at_y + side, photo->height); y++) {
        for (int x = WEIR_MAX(at_x, 0); x < WEIR_MIN(at_x + side, photo->width); x++) {
            for (int c = 0; c < photo->channels; c++) {
                photo->pixels[(y * photo->width + x) * photo->channels + c] =
                    (uint8_t)(130 + weir_rng_below(rng, 126));
            }
        }
    }
}

static void write_photo(struct weir_rng *rng, int person, int number)
{
    struct weir_image photo;
    struct weir_buf bytes;
    char digest[WEIR_SHA256_TEXT_BYTES];
    const int channels = weir_rng_below(rng, 2) == 0 ? 1 : 3;
    ck_assert_int_eq(weir_image_init(&photo, 24 + (int)weir_rng_below(rng, 140),
                                     24 + (int)weir_rng_below(rng, 100), channels, NULL),
                     WEIR_OK);
    size_t n = (size_t)photo.width * (size_t)photo.height * (size_t)channels;
    for (size_t i = 0; i < n; i++) {
        photo.pixels[i] = (uint8_t)weir_rng_below(rng, 40);
    }
    for (uint64_t i = weir_rng_below(rng, 3); i > 0; i--) {
        brighten(&photo, rng, (int)weir_rng_below(rng, (uint64_t)photo.width) - 8,
                 (int)weir_rng_below(rng, (uint64_t)photo.height) - 8,
                 8 + (int)weir_rng_below(rng, 48));
    }
    weir_buf_init(&bytes, 1 << 20);
    ck_assert_int_eq(weir_image_encode(&photo, WEIR_IMAGE_FORMAT_PNM, 0, &bytes, NULL), WEIR_OK);
    ck_assert_int_eq(weir_dir_make(test_path(&dir, "people/p%d", person), 0755, &err), WEIR_OK);
    test_write_file(test_path(&dir, "people/p%d/%d.ppm", person, number), bytes.data, bytes.len);
    weir_sha256(bytes.data, bytes.len, digest);
    json_array_append_new(json_object_get(manifest, "files"),
                          json_pack("{s:o,s:o,s:s}", "class", json_sprintf("p%d", person), "file",
                                    json_sprintf("%d.ppm", number), "sha256", digest));
    weir_buf_fini(&bytes);
    weir_image_fini(&photo);
}

static void set_up(void)
{
    weir_arena_init(&arena, 0);
    test_dir_make(&dir);
    detector_fixture_write(test_path(&dir, "detector.onnx"));
    test_write_file(test_path(&dir, "model.json"), MODEL, strlen(MODEL));
    manifest = json_pack("{s:[]}", "files");
}

static void tear_down(void)
{
    json_decref(manifest);
    test_dir_drop(&dir);
    weir_arena_fini(&arena);
}

/* ---- the two ways ---------------------------------------------------------------------------- */

/* Some share of a side, in hundredths. */
static unsigned part(struct weir_rng *rng, unsigned from)
{
    return from + (unsigned)weir_rng_below(rng, 30);
}

/* A way to cut: by points that there are none of, or by the box, somewhere in the cut. */
static const char *some_align(struct weir_rng *rng)
{
    return weir_rng_below(rng, 4) == 0
               ? "{}"
               : weir_arena_printf(
                     &arena,
                     "{\"by\": \"box\", \"left\": 0.%02u, \"top\": 0.%02u, \"right\": 0.%02u, "
                     "\"bottom\": 0.%02u}",
                     part(rng, 0), part(rng, 0), part(rng, 70), part(rng, 70));
}

static void open_training(struct train_task *task, struct weir_train_config *config,
                          const char *align)
{
    weir_training_defaults(config, &arena);
    config->model.name = weir_arena_strdup(&arena, test_path(&dir, "model.json"));
    config->data.path = weir_arena_strdup(&arena, test_path(&dir, "people"));
    config->data.detector = weir_arena_strdup(&arena, test_path(&dir, "detector.onnx"));
    config->data.detect = (char *)DETECT;
    config->data.align = (char *)align;
    config->group.threads = 2;
    ck_assert_msg(train_task_open(task, config, &err) == WEIR_OK, "%s", err.message);
}

/* The gallery's vectors, person by person and file by file, as a training numbers its photos. */
static void embed_as_gallery(const char *model_path, const char *align, struct photo_set *out,
                             size_t *out_dim)
{
    struct weir_stage_chain chain;
    struct embedder *embedder;
    json_t *list = json_pack("[s,o,o,s,s,s]", "decode", json_loads(DETECT, 0, NULL),
                             json_loads(align, 0, NULL), "embed", "match", "decide");
    json_object_update_new(json_array_get(list, 1),
                           json_pack("{s:s,s:s}", "kind", "detect", "model", "squares"));
    json_object_set_new(json_array_get(list, 2), "kind", json_string("align"));
    ck_assert_msg(weir_stages_read(list, true, "$", &arena, &chain, &err) == WEIR_OK, "%s",
                  err.message);
    const struct embedder_config config = {
        .model_path = model_path,
        .model = {.name = "face", .id = "m", .blob = "m", .version = 1},
        .detector_path = weir_arena_strdup(&arena, test_path(&dir, "detector.onnx")),
        .detector = {.name = "squares", .id = "d", .blob = "d", .version = 2},
        .chain = &chain,
        .store_path = weir_arena_strdup(&arena, test_path(&dir, "embeddings")),
        .cache_dir = dir.path};
    const struct photo_source source = {
        .what = "gallery", .manifest = manifest, .photo_dir = test_path(&dir, "people")};
    ck_assert_msg(embedder_open(&config, &embedder, &err) == WEIR_OK, "%s", err.message);
    ck_assert_msg(embedder_add(embedder, &source, NULL, out, &err) == WEIR_OK, "%s", err.message);
    *out_dim = embedder_dim(embedder);
    embedder_close(embedder);
    json_decref(list);
}

static void compare(struct train_task *task, const char *model_path, const struct photo_set *set,
                    size_t dim)
{
    const struct model_name name = {.name = "face", .id = "m", .blob = "m", .version = 1};
    struct model *model;
    size_t n_cut = 0;
    ck_assert_uint_eq(set->n, weir_dataset_n_samples(task->dataset));
    ck_assert_msg(model_load(model_path, &name, 8, &model, &err) == WEIR_OK, "%s", err.message);
    for (size_t i = 0; i < set->n; i++) {
        struct weir_image seen;
        const float *vector;
        ck_assert_int_eq(weir_dataset_read(task->dataset, i, &seen, &err), WEIR_OK);
        n_cut += seen.width == TEST_SIDE && seen.height == TEST_SIDE;
        ck_assert_int_eq(model_put(model, i % 8, &seen, NULL, &err), WEIR_OK);
        ck_assert_int_eq(model_run(model, 8, &vector, &err), WEIR_OK);
        ck_assert_msg(memcmp(vector + i % 8 * dim, set->vectors + i * dim, dim * sizeof *vector) ==
                          0,
                      "photo %zu differs", i);
        weir_image_fini(&seen);
    }
    ck_assert_uint_eq(n_cut, set->n - set->n_whole);
    model_unref(model);
}

START_TEST(a_training_sees_what_the_gallery_cuts)
{
    struct weir_rng rng;
    struct train_task task;
    struct weir_train_config config;
    struct photo_set set;
    size_t dim;
    uint64_t seed;
    weir_random_bytes(&seed, sizeof seed);
    (void)printf("seed %llu\n", (unsigned long long)seed);
    weir_rng_init(&rng, seed, (uint64_t)_i);
    for (int i = 0; i < N_PEOPLE * N_PHOTOS; i++) {
        write_photo(&rng, i / N_PHOTOS, i % N_PHOTOS);
    }
    const char *align = some_align(&rng);
    const char *model_path = weir_arena_strdup(&arena, test_path(&dir, "model"));
    test_write_model(model_path, seed, NULL);
    open_training(&task, &config, align);
    embed_as_gallery(model_path, align, &set, &dim);
    compare(&task, model_path, &set, dim);
    ck_assert_uint_gt(set.n_whole, 0);
    ck_assert_uint_lt(set.n_whole, set.n);
    photo_set_fini(&set);
    train_task_close(&task);
}

END_TEST

int main(void)
{
    Suite *suite = suite_create("photo_cut");
    TCase *tcase = tcase_create("photo_cut");
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_loop_test(tcase, a_training_sees_what_the_gallery_cuts, 0, 4);
    suite_add_tcase(suite, tcase);
    return weir_test_run(suite);
}
