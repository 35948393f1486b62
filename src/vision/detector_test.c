/* How a picture becomes a model's input, and boxes find their way back; which kind is taken; what is refused. */
#include "vision/detector.h"
#include "vision/view.h"

#include "base/test_main.h"
#include "base/test_seed.h"

#include <math.h>
#include <string.h>

static struct weir_rng rng;
static struct weir_error err;

/* A model: its ports, and the detector that is made of them. */
struct bench {
    int64_t in[4];
    bool is_u8;
    struct weir_detector_port outputs[16];
    int64_t dims[16][5];
    size_t n;
    struct weir_detector_options options;
    const char *of_kind;
    struct weir_detector *detector;
    const char *why;
};

static struct bench bench_of(int height, int width)
{
    return (struct bench){.in = {1, 3, height, width},
                          .options = {.threshold = NAN, .overlap = NAN}};
}

/* dims: up to 5, 0 at the end. */
static void add_output(struct bench *bench, const char *name, const int64_t *dims)
{
    size_t rank = 0;
    for (; dims[rank] != 0; rank++) {
        bench->dims[bench->n][rank] = dims[rank];
    }
    bench->outputs[bench->n] =
        (struct weir_detector_port){name, bench->dims[bench->n], rank, false};
    bench->n++;
}

#define OUTPUT(bench, name, ...) add_output((bench), (name), (const int64_t[]){__VA_ARGS__, 0})

static weir_status make(struct bench *bench)
{
    const struct weir_detector_port input = {"images", bench->in, 4, bench->is_u8};
    json_t *json = bench->of_kind != NULL ? json_loads(bench->of_kind, 0, NULL) : NULL;
    for (size_t i = 0; i < bench->n; i++) {
        bench->outputs[i].dims = bench->dims[i]; /* the bench may have been copied */
    }
    bench->options.of_kind = json;
    weir_status status = weir_detector_create(&bench->options, &input, 1, bench->outputs, bench->n,
                                              &bench->detector, &bench->why, &err);
    json_decref(json);
    return status;
}

/* ---- where things are ------------------------------------------------------------------------------ */

/* A dark picture with one bright rectangle. */
struct scene {
    uint8_t *pixels;
    int width, height;
    int x, y, w, h;
};

static struct weir_view scene_init(struct scene *scene, int width, int height, int least)
{
    *scene = (struct scene){.width = width, .height = height};
    scene->w = least + (int)weir_rng_below(&rng, (uint64_t)least);
    scene->h = least + (int)weir_rng_below(&rng, (uint64_t)least);
    scene->x = (int)weir_rng_below(&rng, (uint64_t)(width - scene->w));
    scene->y = (int)weir_rng_below(&rng, (uint64_t)(height - scene->h));
    scene->pixels = calloc((size_t)width, (size_t)height);
    for (int y = scene->y; y < scene->y + scene->h; y++) {
        memset(scene->pixels + y * width + scene->x, 255, (size_t)scene->w);
    }
    return (struct weir_view){WEIR_VIEW_GREY, width, height, {scene->pixels}, {width}, true};
}

/* The model's part, done by looking: the bright rectangle in the input as a row of x1, y1, x2, y2, score, class. */
static bool see(const float *input, int width, int height, float row[6])
{
    int left = width, top = height, right = -1, bottom = -1;
    for (int i = 0; i < width * height; i++) {
        if (input[i] > 0.5f) {
            int x = i % width, y = i / width;
            left = x < left ? x : left;
            top = y < top ? y : top;
            right = x > right ? x : right;
            bottom = y > bottom ? y : bottom;
        }
    }
    const float seen[] = {(float)left, (float)top, (float)right + 1, (float)bottom + 1, 0.9f, 0};
    memcpy(row, seen, sizeof seen);
    return right >= 0;
}

/* Look at all tiles. @return How many were found. */
static size_t look(struct bench *bench, const struct weir_view *view, size_t *out_n_tiles,
                   const struct weir_detection **out)
{
    int64_t dims[4];
    size_t n_tiles = weir_detector_look(bench->detector, view);
    weir_detector_shape(bench->detector, dims);
    ck_assert(dims[0] == 1 && dims[1] == 3);
    float *input = malloc((size_t)(3 * dims[2] * dims[3]) * sizeof *input);
    for (size_t i = 0; i < n_tiles; i++) {
        float row[6];
        weir_detector_put(bench->detector, i, input);
        int64_t shape[] = {1, see(input, (int)dims[3], (int)dims[2], row), 6};
        const struct weir_detector_output output = {"output0", shape, 3, row};
        row[4] = i == 0 ? 0.85f : 0.9f; /* a closer look is surer */
        ck_assert_int_eq(weir_detector_take(bench->detector, i, &output, 1, &err), WEIR_OK);
    }
    free(input);
    *out_n_tiles = n_tiles;
    return weir_detector_found(bench->detector, out);
}

static void expect_scene(const struct scene *scene, const struct weir_detection *found, size_t n,
                         double tolerance)
{
    ck_assert_uint_eq(n, 1);
    ck_assert_double_eq_tol(found->box.x, scene->x, tolerance);
    ck_assert_double_eq_tol(found->box.y, scene->y, tolerance);
    ck_assert_double_eq_tol(found->box.w, scene->w, 2 * tolerance);
    ck_assert_double_eq_tol(found->box.h, scene->h, 2 * tolerance);
}

START_TEST(what_is_seen_in_the_input_is_found_there_in_the_picture)
{
    static const char *const fits[] = {"{\"fit\":\"stretch\"}", "{\"fit\":\"centre\",\"pad\":0}",
                                       "{\"fit\":\"corner\",\"pad\":0}"};
    test_seed(&rng);
    for (int trial = 0; trial < 30; trial++) {
        struct scene scene;
        size_t n_tiles;
        const struct weir_detection *found;
        struct bench bench =
            bench_of(160 + (int)weir_rng_below(&rng, 100), 160 + (int)weir_rng_below(&rng, 100));
        struct weir_view view = scene_init(&scene, 200 + (int)weir_rng_below(&rng, 400),
                                           200 + (int)weir_rng_below(&rng, 400), 40);
        OUTPUT(&bench, "output0", 1, 300, 6);
        bench.of_kind = fits[trial % 3];
        ck_assert_msg(make(&bench) == WEIR_OK, "%s", err.message);
        size_t n = look(&bench, &view, &n_tiles, &found);
        ck_assert_uint_eq(n_tiles, 1);
        double a = fmax((double)view.width / (double)bench.in[3],
                        (double)view.height / (double)bench.in[2]);
        expect_scene(&scene, found, n, 0.51 * a + 0.5);
        weir_detector_destroy(bench.detector);
        free(scene.pixels);
    }
}

END_TEST

START_TEST(small_things_are_found_in_tiles_and_once)
{
    test_seed(&rng);
    for (int trial = 0; trial < WEIR_TEST_TIMES(40, 12); trial++) {
        struct scene scene;
        size_t n_tiles;
        const struct weir_detection *found;
        struct bench bench = bench_of(192, 256);
        struct weir_view view = scene_init(&scene, 1000 + (int)weir_rng_below(&rng, 900),
                                           700 + (int)weir_rng_below(&rng, 400), 20);
        OUTPUT(&bench, "output0", 1, 300, 6);
        bench.of_kind = "{\"pad\":0}";
        bench.options.min_size = 20;
        bench.options.tiles_max = trial % 2 == 0 ? 63 : 9;
        ck_assert_msg(make(&bench) == WEIR_OK, "%s", err.message);
        size_t n = look(&bench, &view, &n_tiles, &found);
        ck_assert_uint_gt(n_tiles, 4);
        ck_assert_uint_le(n_tiles, (size_t)bench.options.tiles_max + 1);
        expect_scene(&scene, found, n, trial % 2 == 0 ? 2 : 6);
        ck_assert_float_eq(found->score, 0.9f); /* a tile has it whole */
        weir_detector_destroy(bench.detector);
        free(scene.pixels);
    }
}

END_TEST

/* A bright picture is half as high as wide, or half as wide as high: which part of a square input is bright? */
START_TEST(what_is_left_of_the_input_is_padded)
{
    static const struct {
        const char *of_kind;
        int begin, end;
    } rows[] = {{"{\"fit\":\"stretch\"}", 0, 64},
                {"{\"fit\":\"centre\"}", 16, 48},
                {"{\"fit\":\"corner\"}", 0, 32}};

    uint8_t pixels[100 * 50];
    float input[3 * 64 * 64];
    memset(pixels, 255, sizeof pixels);
    for (size_t i = 0; i < 2 * sizeof rows / sizeof rows[0]; i++) {
        bool is_tall = i % 2 == 1;
        int width = is_tall ? 50 : 100;
        struct weir_view view = {WEIR_VIEW_GREY, width, 5000 / width, {pixels}, {width}, true};
        struct bench bench = bench_of(64, 64);
        OUTPUT(&bench, "output0", 1, 300, 6);
        bench.of_kind = rows[i / 2].of_kind;
        ck_assert_int_eq(make(&bench), WEIR_OK);
        (void)weir_detector_look(bench.detector, &view);
        weir_detector_put(bench.detector, 0, input);
        for (int k = 0; k < 3 * 64 * 64; k++) {
            int at = is_tall ? k % 64 : k / 64 % 64;
            bool is_bright = at >= rows[i / 2].begin && at < rows[i / 2].end;
            ck_assert_float_eq_tol(input[k], is_bright ? 1 : 114 / 255.0f, 1e-5f);
        }
        weir_detector_destroy(bench.detector);
    }
}

END_TEST

static void expect_size(int32_t min_size, int32_t width, int view_width, int view_height,
                        int64_t expected_width, int64_t expected_height)
{
    struct bench bench = bench_of(-1, -1);
    struct weir_view view = {.form = WEIR_VIEW_GREY, .width = view_width, .height = view_height};
    int64_t dims[4];
    OUTPUT(&bench, "output0", 1, 300, 6);
    bench.options.min_size = min_size;
    bench.options.width = width;
    ck_assert_int_eq(make(&bench), WEIR_OK);
    ck_assert_uint_eq(weir_detector_look(bench.detector, &view), 1);
    weir_detector_shape(bench.detector, dims);
    ck_assert_int_eq(dims[3], expected_width);
    ck_assert_int_eq(dims[2], expected_height);
    weir_detector_destroy(bench.detector);
}

START_TEST(a_free_input_is_as_large_as_small_things_need)
{
    expect_size(0, 0, 1920, 1080, 640, 384);
    expect_size(0, 0, 320, 200, 320, 224);     /* never larger than the picture */
    expect_size(32, 0, 1920, 1080, 960, 544);  /* 16 of the input's pixels are enough */
    expect_size(4, 0, 1920, 1080, 2048, 2048); /* at most */
    expect_size(0, 500, 1920, 1080, 512, 384);
}

END_TEST

/* ---- the input's numbers --------------------------------------------------------------------------------- */

/* A picture of one colour: what does the model see of it? */
static void expect_input(struct bench *bench, const float expected[3])
{
    uint8_t pixels[64 * 64 * 3];
    float input[64 * 64 * 3];
    int64_t dims[4];
    for (size_t i = 0; i < sizeof pixels; i++) {
        pixels[i] = (uint8_t[]){10, 100, 200}[i % 3];
    }
    struct weir_view view = {WEIR_VIEW_RGB, 64, 64, {pixels}, {64 * 3}, true};
    ck_assert_msg(make(bench) == WEIR_OK, "%s", err.message);
    (void)weir_detector_look(bench->detector, &view);
    weir_detector_shape(bench->detector, dims);
    ck_assert(dims[0] == 1 && memcmp(dims + 1, bench->in + 1, 3 * sizeof dims[0]) == 0);
    weir_detector_put(bench->detector, 0, input);
    for (size_t i = 0; i < 64 * 64 * 3; i++) {
        size_t c = bench->in[1] == 3 ? i / (64 * 64) : i % 3;
        float got = bench->is_u8 ? ((uint8_t *)input)[i] : input[i];
        ck_assert_float_eq_tol(got, expected[c], 1e-4f);
    }
    weir_detector_destroy(bench->detector);
}

START_TEST(inputs_are_in_the_order_and_scale_of_the_kind)
{
    struct bench face = bench_of(64, 64), list = bench_of(64, 64), bytes = bench_of(64, 64);
    OUTPUT(&face, "loc", 1, 168, 4);
    OUTPUT(&face, "conf", 1, 168, 2);
    OUTPUT(&face, "landms", 1, 168, 10);
    expect_input(&face, (const float[]){200 - 104, 100 - 117, 10 - 123});
    face.of_kind = "{\"colours\":\"rgb\",\"scale\":0.5,\"mean\":1,\"std\":[1,2,4]}";
    expect_input(&face, (const float[]){4, 24.5f, 24.75f});
    OUTPUT(&list, "output0", 1, 300, 6);
    expect_input(&list, (const float[]){10 / 255.0f, 100 / 255.0f, 200 / 255.0f});
    OUTPUT(&bytes, "detection_boxes", 1, 100, 4);
    OUTPUT(&bytes, "detection_classes", 1, 100);
    OUTPUT(&bytes, "detection_scores", 1, 100);
    OUTPUT(&bytes, "num_detections", 1);
    memcpy(bytes.in, (const int64_t[]){1, 64, 64, 3}, sizeof bytes.in);
    expect_input(&bytes, (const float[]){10 / 127.5f - 1, 100 / 127.5f - 1, 200 / 127.5f - 1});
    bytes.is_u8 = true;
    expect_input(&bytes, (const float[]){10, 100, 200});
}

END_TEST

/* ---- which kind, and what is refused ------------------------------------------------------------------------ */

static void expect_refusal(struct bench *bench, weir_status status, const char *part)
{
    memset(&err, 0, sizeof err);
    ck_assert_int_eq(make(bench), status);
    ck_assert_msg(strstr(err.message, part) != NULL, "%s", err.message);
}

START_TEST(what_does_not_fit_is_said_in_a_sentence)
{
    struct bench none = bench_of(64, 64), named = bench_of(64, 64), list = bench_of(64, 64);
    OUTPUT(&none, "logits", 1, 1000);
    expect_refusal(&none, WEIR_ERR_UNSUPPORTED,
                   "no kind of detector that is known: logits [1,1000]; say which of yunet");
    OUTPUT(&named, "p", -1, 10, 2);
    named.options.kind = "yunet";
    expect_refusal(&named, WEIR_ERR_INVALID, "yunet takes 12 outputs: cls_8, cls_16, cls_32");
    expect_refusal(&named, WEIR_ERR_INVALID, "this model has p [?,10,2]");
    named.options.kind = "mtcnn";
    expect_refusal(&named, WEIR_ERR_UNSUPPORTED, "three models that feed each other");
    named.options.kind = "yolu";
    expect_refusal(&named, WEIR_ERR_INVALID, "did you mean yolo?");
    OUTPUT(&list, "output0", 1, 300, 6);

    static const struct {
        const char *of_kind, *part;
    } rows[] = {
        {"{\"mean\":\"x\"}", "detector.mean: expected a number"},
        {"{\"std\":0}", "detector.std: expected a number above 0"},
        {"{\"std\":[1,2]}", "detector.std: expected"},
        {"{\"fit\":\"middle\"}", "detector.fit: "},
        {"{\"classes\":[-1]}", "detector.classes[0]: expected a number from 0 on"},
        {"{\"outputs\":[\"output1\"]}",
         "the model has no output \"output1\"; it has output0 [1,300,6]"},
        {"{\"pad\":300}", "detector.pad: "},
        {"{\"versoin\":\"v8\"}", "detector.versoin: unknown option; did you mean version?"},
    };

    list.options.kind = "yolo";
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        list.of_kind = rows[i].of_kind;
        expect_refusal(&list, WEIR_ERR_INVALID, rows[i].part);
    }
    list.of_kind = "{\"mean\":1}";
    list.is_u8 = true;
    expect_refusal(&list, WEIR_ERR_INVALID, "the model takes bytes");
    list.of_kind = "{\"colours\":\"bgr\"}";
    list.in[1] = 1;
    expect_refusal(&list, WEIR_ERR_INVALID, "detector.colours: the model takes grey pictures");
    list.of_kind = NULL;
    list.in[1] = 4;
    expect_refusal(&list, WEIR_ERR_INVALID, "the detector's input is images [1,4,64,64]");
    list.in[1] = 3;
    list.options.threshold = 2;
    expect_refusal(&list, WEIR_ERR_INVALID, "detector.threshold: expected 0 to 1");
}

END_TEST

START_TEST(a_model_that_takes_more_than_the_picture_is_refused)
{
    const int64_t in[] = {1, 3, 64, 64}, sizes[] = {1, 2}, out[] = {1, 300, 4};
    const struct weir_detector_port inputs[] = {{"images", in, 4, false},
                                                {"orig_target_sizes", sizes, 2, false}};
    const struct weir_detector_port outputs[] = {{"boxes", out, 3, false}};
    const struct weir_detector_options options = {.threshold = NAN, .overlap = NAN};
    struct weir_detector *detector;
    const char *why;
    ck_assert_int_eq(weir_detector_create(&options, inputs, 2, outputs, 1, &detector, &why, &err),
                     WEIR_ERR_UNSUPPORTED);
    ck_assert_ptr_nonnull(strstr(err.message, "takes \"orig_target_sizes\" beside the picture"));
    ck_assert_int_eq(weir_detector_create(&options, inputs, 0, outputs, 1, &detector, &why, &err),
                     WEIR_ERR_INVALID);
}

END_TEST

START_TEST(the_guess_is_said)
{
    struct bench bench = bench_of(64, 64), heads = bench_of(-1, -1);
    OUTPUT(&bench, "output0", 1, 84, 84);
    ck_assert_int_eq(make(&bench), WEIR_OK);
    ck_assert_str_eq(bench.why, "Taken for yolo: version v8: its output has more places than "
                                "channels, channels first.");
    weir_detector_destroy(bench.detector);
    bench.of_kind = "{\"version\":\"yolox\"}";
    ck_assert_int_eq(make(&bench), WEIR_OK);
    ck_assert_ptr_nonnull(strstr(bench.why, "version yolox"));
    weir_detector_destroy(bench.detector);
    OUTPUT(&heads, "d", 1, -1, 85);
    ck_assert_int_eq(make(&heads), WEIR_OK);
    ck_assert_ptr_nonnull(strstr(heads.why, "version v5: its output has rows, and not one for each "
                                            "place (if it is YOLOX, say version: yolox)"));
    weir_detector_destroy(heads.detector);
    heads.options.kind = "yolo";
    ck_assert_int_eq(make(&heads), WEIR_OK);
    ck_assert_ptr_nonnull(strstr(heads.why, "as it is asked for"));
    weir_detector_destroy(heads.detector);
}

END_TEST

START_TEST(outputs_that_are_named_are_those_that_are_decoded)
{
    struct bench bench = bench_of(64, 64);
    struct weir_view view = {.form = WEIR_VIEW_GREY, .width = 64, .height = 64};
    const float unused[] = {1}, row[] = {8, 16, 24, 40, 0.9f, 3};
    const int64_t dims[] = {1, 1, 6}, one[] = {1};
    const struct weir_detector_output outputs[] = {{"debug", one, 1, unused},
                                                   {"dets", dims, 3, row}};
    const struct weir_detection *found;
    OUTPUT(&bench, "debug", 1);
    OUTPUT(&bench, "dets", 1, 300, 6);
    expect_refusal(&bench, WEIR_ERR_UNSUPPORTED, "no kind");
    for (int trial = 0; trial < 3; trial++) {
        bench.of_kind = trial == 0   ? "{\"outputs\":[\"dets\"]}"
                        : trial == 1 ? "{\"outputs\":[\"dets\"],\"classes\":[1,3]}"
                                     : "{\"outputs\":[\"dets\"],\"classes\":[1,2]}";
        ck_assert_msg(make(&bench) == WEIR_OK, "%s", err.message);
        (void)weir_detector_look(bench.detector, &view);
        ck_assert_int_eq(weir_detector_take(bench.detector, 0, outputs, 2, &err), WEIR_OK);
        ck_assert_uint_eq(weir_detector_found(bench.detector, &found), trial < 2 ? 1 : 0);
        ck_assert(trial == 2 || (found->class_id == 3 && found->box.w == 16 && found->box.y == 16));
        weir_detector_destroy(bench.detector);
    }
}

END_TEST

START_TEST(of_a_million_boxes_the_best_are_kept)
{
    enum { N = 1000000 };

    struct bench bench = bench_of(64, 64);
    struct weir_view view = {.form = WEIR_VIEW_GREY, .width = 64, .height = 64};
    const int64_t dims[] = {1, N, 6};
    float *rows = malloc((size_t)N * 6 * sizeof *rows);
    const struct weir_detection *found;
    test_seed(&rng);
    for (size_t i = 0; i < N; i++) { /* scores are a permutation: 7919 is prime to N */
        const float row[] = {1, 1, 9, 9, (float)(i * 7919 % N + 1) / N, (float)(i % 4000)};
        memcpy(rows + 6 * i, row, sizeof row);
    }
    const struct weir_detector_output output = {"output0", dims, 3, rows};
    OUTPUT(&bench, "output0", 1, 300, 6);
    bench.options.threshold = 0;
    ck_assert_int_eq(make(&bench), WEIR_OK);
    (void)weir_detector_look(bench.detector, &view);
    ck_assert_int_eq(weir_detector_take(bench.detector, 0, &output, 1, &err), WEIR_OK);
    ck_assert_uint_eq(weir_detector_found(bench.detector, &found), WEIR_DETECTIONS_MAX);
    for (size_t i = 0; i < WEIR_DETECTIONS_MAX; i++) {
        ck_assert_float_eq(found[i].score, (float)(N - i) / N);
    }
    weir_detector_destroy(bench.detector);
    free(rows);
}

END_TEST

WEIR_TEST_MAIN("detector", what_is_seen_in_the_input_is_found_there_in_the_picture,
               what_is_left_of_the_input_is_padded, small_things_are_found_in_tiles_and_once,
               a_free_input_is_as_large_as_small_things_need,
               inputs_are_in_the_order_and_scale_of_the_kind,
               what_does_not_fit_is_said_in_a_sentence,
               a_model_that_takes_more_than_the_picture_is_refused, the_guess_is_said,
               outputs_that_are_named_are_those_that_are_decoded,
               of_a_million_boxes_the_best_are_kept)
