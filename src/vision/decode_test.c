/* What each kind decodes, against what was encoded; and numbers that no model should give. */
#include "vision/decode_fixture.h"

#include "base/kind_laws.h"
#include "base/test_main.h"
#include "base/test_seed.h"

#include <math.h>
#include <string.h>

static struct weir_rng rng;

START_TEST(detectors_keep_the_laws_of_registries)
{
    kind_laws_check(&weir_detectors);
    ck_assert_uint_eq(fixture_n_encoders, 31); /* the loops below */
}

END_TEST

static struct weir_detector *make(const struct encoder *encoder, const struct scene *scene,
                                  const struct fixture *fixture, bool is_named)
{
    const int64_t dims[] = {1, 3, scene->height, scene->width};
    const struct weir_detector_port input = {"input", dims, 4, false};
    struct weir_detector_port outputs[FIXTURE_OUTPUTS_MAX];
    struct weir_detector *detector;
    struct weir_error err = {0};
    const char *why;
    for (size_t i = 0; i < fixture->n; i++) {
        outputs[i] = (struct weir_detector_port){fixture->outputs[i].name, fixture->dims[i],
                                                 fixture->outputs[i].rank, false};
    }
    json_t *of_kind = encoder->options != NULL ? json_loads(encoder->options, 0, NULL) : NULL;
    struct weir_detector_options options = {.kind = is_named ? encoder->kind : NULL,
                                            .of_kind = of_kind,
                                            .threshold = 0.5f,
                                            .overlap = NAN};
    weir_status status =
        weir_detector_create(&options, &input, 1, outputs, fixture->n, &detector, &why, &err);
    json_decref(of_kind);
    ck_assert_msg(status == WEIR_OK, "%s: %s", encoder->name, err.message);
    ck_assert_msg(strstr(why, encoder->kind) != NULL, "%s: %s", encoder->name, why);
    return detector;
}

static void compare(const struct encoder *encoder, const struct scene *scene,
                    const struct weir_detection *found, size_t n)
{
    ck_assert_msg(n == scene->n, "%s, %dx%d: %zu of %zu", encoder->name, scene->width,
                  scene->height, n, scene->n);
    for (size_t i = 0; i < n; i++) {
        const struct thing *thing = &scene->things[i];
        const struct weir_box *box = &found[i].box;
        const double got[] = {box->x, box->y, box->x + box->w, box->y + box->h};
        ck_assert_msg(found[i].class_id == thing->class_id, "%s: class %d of %d", encoder->name,
                      found[i].class_id, thing->class_id);
        ck_assert_double_eq_tol(found[i].score, thing->score, 1e-5);
        for (size_t k = 0; k < 4; k++) {
            ck_assert_msg(fabs(got[k] - thing->box[k]) < 1e-3, "%s [%zu][%zu]: %.9g, not %.9g",
                          encoder->name, i, k, got[k], thing->box[k]);
        }
        ck_assert_msg(found[i].has_points == encoder->has_points, "%s", encoder->name);
        for (size_t k = 0; k < 10 && encoder->has_points; k++) {
            ck_assert_msg(fabs(found[i].points[k] - thing->points[k]) < 1e-3,
                          "%s: point %zu: %g, not %g", encoder->name, k, (double)found[i].points[k],
                          thing->points[k]);
        }
    }
}

START_TEST(what_was_encoded_is_decoded)
{
    const struct encoder *encoder = &fixture_encoders[_i];
    test_seed(&rng);
    for (int trial = 0; trial < WEIR_TEST_TIMES(20, 5); trial++) {
        struct scene scene;
        struct fixture fixture;
        const struct weir_detection *found;
        struct weir_error err = {0};
        fixture_scene(encoder, &rng, &scene);
        fixture_encode(encoder, &rng, &scene, &fixture);
        struct weir_detector *detector = make(encoder, &scene, &fixture, trial % 2 == 1);
        struct weir_view view = {
            .form = WEIR_VIEW_GREY, .width = scene.width, .height = scene.height};
        ck_assert_uint_eq(weir_detector_look(detector, &view), 1);
        ck_assert_msg(weir_detector_take(detector, 0, fixture.outputs, fixture.n, &err) == WEIR_OK,
                      "%s: %s", encoder->name, err.message);
        size_t n = weir_detector_found(detector, &found);
        compare(encoder, &scene, found, n);
        weir_detector_destroy(detector);
        fixture_fini(&fixture);
    }
}

END_TEST

static float hostile(void)
{
    static const float values[] = {NAN,   INFINITY, -INFINITY, 3e38f, -3e38f, 1e-45f, 0,
                                   0.99f, 100,      -100,      1e9f,  -1e9f,  1,      0.75f};
    return values[weir_rng_below(&rng, sizeof values / sizeof values[0])];
}

static void check_found(const struct weir_detection *found, size_t n, const struct weir_view *view)
{
    ck_assert_uint_le(n, WEIR_DETECTIONS_MAX);
    for (size_t i = 0; i < n; i++) {
        const struct weir_box *box = &found[i].box;
        ck_assert(found[i].score >= 0 && found[i].score <= 1 && found[i].class_id >= 0);
        ck_assert(box->x >= 0 && box->y >= 0 && box->w > 0 && box->h > 0);
        ck_assert(box->x + box->w <= (float)view->width + 0.01f &&
                  box->y + box->h <= (float)view->height + 0.01f);
        for (size_t k = 0; k < 10; k++) {
            ck_assert(isfinite(found[i].points[k]));
        }
    }
}

static void check_all(struct weir_detector *detector, const struct weir_view *view)
{
    const struct weir_detection *found;
    size_t n = weir_detector_found(detector, &found);
    check_found(found, n, view);
}

/* Numbers of no model, then shapes of no model: finite boxes in the picture, or a sentence. */
START_TEST(hostile_outputs_end_well)
{
    const struct encoder *encoder = &fixture_encoders[_i];
    test_seed(&rng);
    for (int trial = 0; trial < WEIR_TEST_TIMES(12, 4); trial++) {
        struct scene scene;
        struct fixture fixture;
        struct weir_error err = {0};
        fixture_scene(encoder, &rng, &scene);
        fixture_encode(encoder, &rng, &scene, &fixture);
        struct weir_detector *detector = make(encoder, &scene, &fixture, true);
        struct weir_view view = {.form = WEIR_VIEW_GREY, .width = 640, .height = 333};
        for (size_t k = 0; k < fixture.n; k++) {
            size_t n = 1;
            for (size_t i = 0; i < fixture.outputs[k].rank; i++) {
                n *= (size_t)fixture.dims[k][i];
            }
            for (size_t i = 0; i < n; i++) {
                fixture.values[k][i] = hostile();
            }
        }
        (void)weir_detector_look(detector, &view);
        ck_assert_int_eq(weir_detector_take(detector, 0, fixture.outputs, fixture.n, &err),
                         WEIR_OK);
        check_all(detector, &view);
        (void)weir_detector_look(detector, &view);
        size_t k = weir_rng_below(&rng, fixture.n);
        int64_t *dim = &fixture.dims[k][weir_rng_below(&rng, fixture.outputs[k].rank)];
        static const int64_t dims[] = {0, -1, 1, 2, INT64_MAX, INT64_MIN, 77};
        int64_t before = *dim, now = dims[weir_rng_below(&rng, 7)];
        if (now <= before) { /* never more than there is memory for */
            *dim = now;
            weir_status status = weir_detector_take(detector, 0, fixture.outputs, fixture.n, &err);
            ck_assert_msg(status == WEIR_OK ||
                              (status == WEIR_ERR_INVALID && strlen(err.message) > 20),
                          "%s: %d %s", encoder->name, status, err.message);
            check_all(detector, &view);
        }
        ck_assert_int_eq(weir_detector_take(detector, 0, fixture.outputs, fixture.n + 1, &err),
                         WEIR_ERR_INVALID);
        weir_detector_destroy(detector);
        fixture_fini(&fixture);
    }
}

END_TEST

WEIR_TEST_LOOPS_MAIN("decode", {detectors_keep_the_laws_of_registries, 0},
                     {what_was_encoded_is_decoded, 29}, {hostile_outputs_end_well, 29})
