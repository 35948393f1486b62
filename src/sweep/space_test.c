/* Spaces: what a coordinate stands for, what a grid takes, and what makes no sense. */
#include "base/kind_laws.h"
#include "base/rng.h"
#include "base/test_main.h"
#include "sweep/method.h"
#include "sweep/parameter.h"

#include <math.h>

static struct weir_arena arena;

static struct weir_sweep_space space_of(const char *text, json_t **out_object)
{
    struct weir_sweep_space space;
    struct weir_error err = {0};
    *out_object = json_loads(text, 0, NULL);
    ck_assert_ptr_nonnull(*out_object);
    ck_assert_msg(weir_sweep_space_read(*out_object, "$.parameters", &arena, &space, &err) ==
                      WEIR_OK,
                  "%s", err.message);
    return space;
}

START_TEST(the_kinds_keep_the_laws_of_registries)
{
    kind_laws_check(&weir_sweep_parameters);
    kind_laws_check(&weir_sweep_methods);
}

END_TEST

/* A parameter, and what values it may have as text, in order: of a grid all of them. */
static const struct {
    const char *parameter;
    size_t n;
    double values[8];
} grids[] = {
    {"{\"kind\":\"uniform\",\"min\":0,\"max\":1,\"points\":3}", 3, {0, 0.5, 1}},
    {"{\"kind\":\"uniform\",\"min\":0,\"max\":1,\"points\":1}", 1, {0.5}},
    {"{\"kind\":\"uniform\",\"min\":0,\"max\":0.3,\"step\":0.1}", 4, {0, 0.1, 0.2, 0.3}},
    {"{\"kind\":\"uniform\",\"min\":1,\"max\":2,\"step\":0.4}", 3, {1, 1.4, 1.8}},
    {"{\"kind\":\"log_uniform\",\"min\":0.01,\"max\":1,\"points\":3}", 3, {0.01, 0.1, 1}},
    {"{\"kind\":\"int\",\"min\":-1,\"max\":2}", 4, {-1, 0, 1, 2}},
    {"{\"kind\":\"int\",\"min\":16,\"max\":64,\"step\":16}", 4, {16, 32, 48, 64}},
    {"{\"kind\":\"int\",\"min\":1,\"max\":5,\"log\":true}", 5, {1, 2, 3, 4, 5}},
    {"{\"kind\":\"int\",\"min\":1,\"max\":1000000,\"log\":true,\"points\":3}",
     3,
     {1, 1000, 1000000}},
    {"{\"kind\":\"choice\",\"values\":[3,1,2]}", 3, {3, 1, 2}},
    {"[3,1,2]", 3, {3, 1, 2}},
};

START_TEST(a_grid_takes_these_values)
{
    json_t *object;
    char *text = weir_arena_printf(&arena, "{\"x\":%s}", grids[_i].parameter);
    struct weir_sweep_space space = space_of(text, &object);
    const struct weir_sweep_parameter_ops *ops = weir_sweep_parameter_ops_of(space.parameters);
    const void *options = space.parameters[0].options;
    ck_assert_uint_eq(ops->n_values(options), grids[_i].n);
    for (size_t i = 0; i < grids[_i].n; i++) {
        double point = ops->place(options, i, grids[_i].n);
        json_t *values = weir_sweep_space_values(&space, &point);
        double value = json_number_value(json_object_get(values, "x"));
        ck_assert_double_eq_tol(value, grids[_i].values[i], 1e-9 * fabs(value) + 1e-12);
        json_decref(values);
    }
    json_decref(object);
}

END_TEST

/* Of 20,000 points by chance: all within their bounds, and each half of a range as often as the other. */
START_TEST(points_by_chance_fill_their_ranges_evenly)
{
    enum { N = 20000 };

    json_t *object;
    struct weir_sweep_space space =
        space_of("{\"u\":{\"kind\":\"uniform\",\"min\":-2,\"max\":6},"
                 "\"l\":{\"kind\":\"log_uniform\",\"min\":0.001,\"max\":10},"
                 "\"i\":{\"kind\":\"int\",\"min\":1,\"max\":6},\"c\":[\"a\",\"b\",\"c\"]}",
                 &object);
    int n_u = 0, n_l = 0, n_i[7] = {0}, n_c[3] = {0};
    for (int64_t trial = 1; trial <= N; trial++) {
        double point[4];
        weir_sweep_space_draw(&space, 7, trial, point);
        json_t *values = weir_sweep_space_values(&space, point);
        double u = json_number_value(json_object_get(values, "u"));
        double l = json_number_value(json_object_get(values, "l"));
        json_int_t i = json_integer_value(json_object_get(values, "i"));
        const char *c = json_string_value(json_object_get(values, "c"));
        ck_assert(u >= -2 && u <= 6 && l >= 0.001 && l <= 10 && i >= 1 && i <= 6);
        ck_assert(c[0] >= 'a' && c[0] <= 'c');
        n_u += u < 2;
        n_l += l < 0.1;
        n_i[i]++;
        n_c[c[0] - 'a']++;
        json_decref(values);
    }
    /* Five standard deviations of each count. */
    ck_assert_int_lt(abs(n_u - N / 2), 360);
    ck_assert_int_lt(abs(n_l - N / 2), 360);
    for (int k = 1; k <= 6; k++) {
        ck_assert_int_lt(abs(n_i[k] - N / 6), 270);
    }
    for (int k = 0; k < 3; k++) {
        ck_assert_int_lt(abs(n_c[k] - N / 3), 340);
    }
    json_decref(object);
}

END_TEST

START_TEST(a_coordinate_at_the_end_is_the_greatest_value)
{
    json_t *object;
    struct weir_sweep_space space =
        space_of("{\"a\":{\"kind\":\"uniform\",\"min\":0,\"max\":0.7},"
                 "\"b\":{\"kind\":\"log_uniform\",\"min\":0.3,\"max\":0.7},"
                 "\"c\":{\"kind\":\"int\",\"min\":1,\"max\":7},\"d\":[1,7]}",
                 &object);
    const double point[] = {1, 1, 1, 1};
    json_t *values = weir_sweep_space_values(&space, point);
    json_t *wanted = json_pack("{s:f,s:f,s:i,s:i}", "a", 0.7, "b", 0.7, "c", 7, "d", 7);
    ck_assert(json_equal(values, wanted));
    json_decref(values);
    json_decref(wanted);
    json_decref(object);
}

END_TEST

static const struct {
    const char *parameters, *said;
} refused[] = {
    {"{}", "$.parameters: expected an object"},
    {"{\"1x\":[1]}", "begins with no digit"},
    {"{\"a-b\":[1]}", "letters, digits"},
    {"{\"trial\":[1]}", "the sweep itself gives {{trial}}"},
    {"{\"lr\":[1],\"LR\":[2]}", "differ in capitals only"},
    {"{\"x\":[]}", "$.parameters.x: expected a list of 1 to"},
    {"{\"x\":[{}]}", "$.parameters.x[0]: expected a text"},
    {"{\"x\":{\"kind\":\"uniform\",\"min\":2,\"max\":1}}", "min, 2, is not less than max, 1"},
    {"{\"x\":{\"kind\":\"uniform\",\"min\":0,\"max\":1,\"step\":2}}", "$.parameters.x.step"},
    {"{\"x\":{\"kind\":\"log_uniform\",\"min\":0,\"max\":1}}", "above 0"},
    {"{\"x\":{\"kind\":\"int\",\"min\":0,\"max\":4,\"log\":true}}", "$.parameters.x.log"},
    {"{\"x\":{\"kind\":\"int\",\"min\":0,\"max\":4,\"step\":5}}", "more than max - min"},
    {"{\"x\":{\"kind\":\"unifrom\",\"min\":0,\"max\":1}}", "uniform"},
    {"{\"x\":{\"kind\":\"uniform\",\"max\":1}}", "min"},
    {"{\"x\":5}", "$.parameters.x"},
};

START_TEST(what_makes_no_sense_is_refused_with_its_place)
{
    struct weir_sweep_space space;
    struct weir_error err = {0};
    json_t *object = json_loads(refused[_i].parameters, 0, NULL);
    weir_status status = weir_sweep_space_read(object, "$.parameters", &arena, &space, &err);
    ck_assert_int_eq(status, WEIR_ERR_INVALID);
    ck_assert_msg(strstr(err.message, refused[_i].said) != NULL, "%s", err.message);
    json_decref(object);
}

END_TEST

static void set_up(void)
{
    weir_arena_init(&arena, 0);
}

static void tear_down(void)
{
    weir_arena_fini(&arena);
}

int main(void)
{
    Suite *suite = suite_create("space");
    TCase *tcase = tcase_create("space");
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_test(tcase, the_kinds_keep_the_laws_of_registries);
    tcase_add_loop_test(tcase, a_grid_takes_these_values, 0, WEIR_ARRAY_LEN(grids));
    tcase_add_test(tcase, points_by_chance_fill_their_ranges_evenly);
    tcase_add_test(tcase, a_coordinate_at_the_end_is_the_greatest_value);
    tcase_add_loop_test(tcase, what_makes_no_sense_is_refused_with_its_place, 0,
                        WEIR_ARRAY_LEN(refused));
    suite_add_tcase(suite, tcase);
    return weir_test_run(suite);
}
