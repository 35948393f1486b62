/* Many features at once: no more false alarms per window than asked, and each kind of fault is found
 * and named. */
#include "stats/feature.h"

#include "base/rng.h"
#include "base/test_main.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define N_FEATURES 100
#define N_TRAINED  1000

static struct weir_rng rng;
static struct weir_arena arena;

static void set_up(void)
{
    weir_arena_init(&arena, 0);
}

static void tear_down(void)
{
    weir_arena_fini(&arena);
}

/* Feature i is normal, skewed or of few values, by turns. */
static double draw(int i)
{
    double x = weir_rng_normal(&rng);
    return i % 3 == 0 ? x : i % 3 == 1 ? exp(x) : floor(3 * weir_rng_f64(&rng));
}

/* A baseline of one column of numbers, as a training writes it. */
static json_t *number_json(const double *values, size_t n)
{
    struct weir_histogram hist;
    ck_assert_int_eq(weir_histogram_from_values(&hist, values, n), WEIR_OK);
    return json_pack("{s:s,s:o}", "kind", "number", "histogram", weir_histogram_to_json(&hist));
}

static struct weir_features make_features(int n)
{
    struct weir_features features;
    struct weir_error err = {0};
    double values[N_TRAINED];
    json_t *named = json_object();
    for (int i = 0; i < n; i++) {
        char name[16];
        for (int k = 0; k < N_TRAINED; k++) {
            values[k] = draw(i);
        }
        (void)snprintf(name, sizeof name, "f%d", i);
        json_object_set_new(named, name, number_json(values, N_TRAINED));
    }
    json_t *baseline = json_pack("{s:o}", "features", named);
    weir_status status = weir_features_parse(baseline, &arena, &features, &err);
    json_decref(baseline);
    ck_assert_msg(status == WEIR_OK, "%s", err.message);
    return features;
}

static size_t n_found(const struct weir_features *features, json_t *window, uint64_t seed,
                      struct weir_finding **out)
{
    size_t n, n_drifted = 0;
    struct weir_error err = {0};
    weir_status status = weir_features_test(features, window, 0, seed, &arena, out, &n, &err);
    json_decref(window);
    ck_assert_msg(status == WEIR_OK, "%s", err.message);
    for (size_t i = 0; i < n; i++) {
        n_drifted += (*out)[i].is_drifted;
    }
    return n_drifted;
}

static json_t *draw_window(int n_features, int n, double shift_of_first)
{
    json_t *named = json_object();
    for (int i = 0; i < n_features; i++) {
        char name[16];
        json_t *values = json_array();
        for (int k = 0; k < n; k++) {
            json_array_append_new(values, json_real(draw(i) + (i == 0 ? shift_of_first : 0)));
        }
        (void)snprintf(name, sizeof name, "f%d", i);
        json_object_set_new(named, name, json_pack("{s:o}", "values", values));
    }
    return json_pack("{s:o}", "features", named);
}

START_TEST(a_hundred_features_give_one_false_alarm_in_a_hundred_windows_at_most)
{
    enum { TRIALS = WEIR_TEST_TIMES(60, 20) };

    int n_alarms = 0;
    for (uint64_t trial = 0; trial < TRIALS; trial++) {
        struct weir_finding *found;
        weir_rng_init(&rng, 11, trial);
        struct weir_features features = make_features(N_FEATURES);
        n_alarms += n_found(&features, draw_window(N_FEATURES, 100, 0), trial, &found) > 0;
        weir_arena_fini(&arena);
        weir_arena_init(&arena, 0);
    }
    printf("seed 11: %d of %d windows of %d features alarmed\n", n_alarms, TRIALS, N_FEATURES);
    ck_assert_int_le(n_alarms, 1 + (int)(TRIALS / 30)); /* 1 % and four deviations */
}

END_TEST

START_TEST(one_of_a_hundred_features_that_moves_is_found_and_named)
{
    struct weir_finding *found;
    weir_rng_init(&rng, 12, 0);
    struct weir_features features = make_features(N_FEATURES);
    ck_assert_uint_ge(n_found(&features, draw_window(N_FEATURES, 200, 1), 1, &found), 1);
    ck_assert_str_eq(found[0].feature->name, "f0");
    ck_assert(found[0].is_drifted);
    ck_assert_str_eq(found[0].statistic, "location");
    ck_assert_double_gt(found[0].effect, 0.3);
}

END_TEST

static const struct weir_finding *find(const struct weir_finding *found, size_t n,
                                       enum weir_finding_kind kind)
{
    for (size_t i = 0; i < n; i++) {
        if (found[i].kind == kind) {
            return &found[i];
        }
    }
    ck_abort_msg("no finding of the kind %s", weir_finding_kind_name(kind));
    return NULL;
}

static json_t *parsed(const char *text)
{
    json_t *value = json_loads(text, 0, NULL);
    ck_assert_ptr_nonnull(value);
    return value;
}

START_TEST(missing_values_new_categories_and_values_out_of_range_have_names_of_their_own)
{
    static const char text[] =
        "{\"features\":{\"city\":{\"kind\":\"category\",\"counts\":{\"paris\":600,\"rome\":400},"
        "\"other\":2,\"missing\":5}}}";
    struct weir_features features;
    struct weir_finding *found;
    json_t *baseline = parsed(text);
    ck_assert_int_eq(weir_features_parse(baseline, &arena, &features, NULL), WEIR_OK);
    json_decref(baseline);
    ck_assert_uint_eq(
        n_found(&features,
                parsed("{\"features\":{\"city\":{\"counts\":{\"paris\":62,\"rome\":38}}}}"), 1,
                &found),
        0);
    (void)n_found(&features,
                  parsed("{\"features\":{\"city\":{\"counts\":{\"paris\":55,\"rome\":33,\"oslo\":9,"
                         "\"bern\":3}}}}"),
                  1, &found);
    ck_assert(find(found, 3, WEIR_FINDING_CATEGORY)->is_drifted);
    ck_assert(!find(found, 3, WEIR_FINDING_MISSING)->is_drifted);
    ck_assert_double_eq_tol(find(found, 3, WEIR_FINDING_CATEGORY)->value, 0.12, 1e-12);
    (void)n_found(
        &features,
        parsed("{\"features\":{\"city\":{\"counts\":{\"paris\":55,\"rome\":35},\"missing\":10}}}"),
        1, &found);
    ck_assert(find(found, 3, WEIR_FINDING_MISSING)->is_drifted);
    ck_assert(!find(found, 3, WEIR_FINDING_CATEGORY)->is_drifted);

    weir_rng_init(&rng, 13, 0);
    struct weir_features numbers = make_features(1);
    json_t *window = draw_window(1, 97, 0);
    json_t *values =
        json_object_get(json_object_get(json_object_get(window, "features"), "f0"), "values");
    for (int i = 0; i < 3; i++) {
        json_array_append_new(values, json_integer(50));
    }
    (void)n_found(&numbers, window, 1, &found);
    ck_assert(find(found, 3, WEIR_FINDING_RANGE)->is_drifted);
    ck_assert_double_eq_tol(find(found, 3, WEIR_FINDING_RANGE)->value, 0.03, 0.011);
}

END_TEST

/* A window that was counted by whoever sends it gives the same as its values. */
START_TEST(a_counted_window_is_as_good_as_its_values)
{
    struct weir_finding *by_values, *by_counts;
    struct weir_histogram counted;
    weir_rng_init(&rng, 14, 0);
    struct weir_features features = make_features(1);
    json_t *window = draw_window(1, 200, 0.4), *value;
    size_t i;
    weir_histogram_init_like(&counted, &features.items[0].baseline);
    json_array_foreach(
        json_object_get(json_object_get(json_object_get(window, "features"), "f0"), "values"), i,
        value)
    {
        weir_histogram_add(&counted, json_number_value(value));
    }
    (void)n_found(&features, window, 5, &by_values);
    (void)n_found(
        &features,
        json_pack("{s:{s:{s:o}}}", "features", "f0", "histogram", weir_histogram_to_json(&counted)),
        5, &by_counts);
    ck_assert_double_eq(by_values[0].p_value, by_counts[0].p_value);
    ck_assert_double_eq(by_values[0].value, by_counts[0].value);
}

END_TEST

/* A thousand features that differ a little in as many values as may be counted: draws for each would
 * take hours. */
START_TEST(a_hostile_window_is_answered_with_bounded_work)
{
    struct weir_features features;
    struct weir_finding *found;
    struct weir_error err = {0};
    size_t n;
    json_t *trained = json_object(), *named = json_object();
    for (int i = 0; i < WEIR_FEATURES_MAX; i++) {
        char name[16];
        (void)snprintf(name, sizeof name, "f%d", i);
        json_t *before = json_object(), *now = json_object();
        for (int k = 0; k < WEIR_FEATURE_CATEGORIES; k++) {
            char category[16];
            (void)snprintf(category, sizeof category, "c%d", k);
            json_object_set_new(before, category, json_integer(150000));
            json_object_set_new(now, category, json_integer(150000 + (k % 2 == 0 ? 1500 : 0)));
        }
        json_object_set_new(trained, name,
                            json_pack("{s:s,s:o}", "kind", "category", "counts", before));
        json_object_set_new(named, name, json_pack("{s:o}", "counts", now));
    }
    json_t *baseline = json_pack("{s:o}", "features", trained);
    json_t *window = json_pack("{s:o}", "features", named);
    ck_assert_int_eq(weir_features_parse(baseline, &arena, &features, NULL), WEIR_OK);
    struct timespec from, until;
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &from);
    weir_status status = weir_features_test(&features, window, 1e-4, 0, &arena, &found, &n, &err);
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &until);
    ck_assert_msg(status == WEIR_OK, "%s", err.message);
    double seconds =
        difftime(until.tv_sec, from.tv_sec) + 1e-9 * (double)(until.tv_nsec - from.tv_nsec);
    printf("%zu questions in %.2f s\n", n, seconds);
    ck_assert_double_lt(seconds, 60); /* 2, or several times that where sanitizers watch */
    ck_assert_uint_eq(n, 3 * WEIR_FEATURES_MAX);
    json_decref(window);
    json_decref(baseline);
}

END_TEST

START_TEST(counts_that_no_window_can_have_are_refused)
{
    static const char *const windows[] = {
        "{\"features\":{\"a\":{\"counts\":{\"x\":10000001}}}}",
        "{\"features\":{\"a\":{\"counts\":{\"x\":6000000,\"y\":6000000}}}}",
        "{\"features\":{\"a\":{\"counts\":{\"x\":6000000},\"missing\":6000000}}}",
        ("{\"features\":{\"b\":{\"histogram\":{\"edges\":[1],\"counts\":[9000000,9000000],"
         "\"mean\":1,\"m2\":1}}}}"),
    };
    struct weir_features features;
    struct weir_finding *found;
    size_t n;
    json_t *baseline = parsed("{\"features\":{\"a\":{\"kind\":\"category\",\"counts\":{\"x\":50}},"
                              "\"b\":{\"kind\":\"number\",\"histogram\":{\"edges\":[1],"
                              "\"counts\":[30,30],\"mean\":1,\"m2\":1}}}}");
    ck_assert_int_eq(weir_features_parse(baseline, &arena, &features, NULL), WEIR_OK);
    json_decref(baseline);
    for (size_t i = 0; i < WEIR_ARRAY_LEN(windows); i++) {
        struct weir_error err = {0};
        json_t *value = parsed(windows[i]);
        weir_status status = weir_features_test(&features, value, 0, 0, &arena, &found, &n, &err);
        ck_assert_msg(status == WEIR_ERR_LIMIT, "%s: %s", windows[i], err.message);
        ck_assert_int_eq(err.message[0], '$');
        json_decref(value);
    }
    baseline = parsed("{\"features\":{\"a\":{\"kind\":\"category\",\"counts\":{\"x\":6000000,"
                      "\"y\":6000000}}}}");
    ck_assert_int_eq(weir_features_parse(baseline, &arena, &features, NULL), WEIR_ERR_LIMIT);
    json_decref(baseline);
}

END_TEST

START_TEST(what_is_no_baseline_or_window_is_refused_with_its_place)
{
    static const char *const baselines[] = {
        "{}",
        "{\"features\":[]}",
        "{\"features\":{\"a\":{}}}",
        "{\"features\":{\"a\":{\"kind\":\"colour\"}}}",
        "{\"features\":{\"a\":{\"kind\":\"number\"}}}",
        "{\"features\":{\"\":{\"kind\":\"category\",\"counts\":{\"x\":1}}}}",
        "{\"features\":{\"a\":{\"kind\":\"category\",\"counts\":{}}}}",
        "{\"features\":{\"a\":{\"kind\":\"category\",\"counts\":{\"x\":-1}}}}",
        "{\"features\":{\"a\":{\"kind\":\"category\",\"counts\":{\"x\":1},\"other\":1.5}}}",
    };
    static const char *const windows[] = {
        "{}",
        "{\"features\":{\"none\":{\"values\":[]}}}",
        "{\"features\":{\"f0\":{\"values\":[\"x\"]}}}",
        "{\"features\":{\"f0\":{}}}",
        "{\"features\":{\"f0\":{\"histogram\":{\"edges\":[1,2],\"counts\":[1,2,3]}}}}",
    };
    struct weir_features features;
    struct weir_finding *found;
    size_t n;
    for (size_t i = 0; i < WEIR_ARRAY_LEN(baselines); i++) {
        struct weir_error err = {0};
        json_t *value = parsed(baselines[i]);
        ck_assert_msg(weir_features_parse(value, &arena, &features, &err) == WEIR_ERR_INVALID, "%s",
                      baselines[i]);
        ck_assert_int_eq(err.message[0], '$');
        json_decref(value);
    }
    weir_rng_init(&rng, 15, 0);
    features = make_features(1);
    for (size_t i = 0; i < WEIR_ARRAY_LEN(windows); i++) {
        struct weir_error err = {0};
        json_t *value = parsed(windows[i]);
        ck_assert_msg(weir_features_test(&features, value, 0, 0, &arena, &found, &n, &err) ==
                          WEIR_ERR_INVALID,
                      "%s", windows[i]);
        ck_assert_int_eq(err.message[0], '$');
        json_decref(value);
    }
}

END_TEST

WEIR_TEST_MAIN_WITH("feature", set_up, tear_down,
                    a_hundred_features_give_one_false_alarm_in_a_hundred_windows_at_most,
                    one_of_a_hundred_features_that_moves_is_found_and_named,
                    missing_values_new_categories_and_values_out_of_range_have_names_of_their_own,
                    a_counted_window_is_as_good_as_its_values,
                    a_hostile_window_is_answered_with_bounded_work,
                    counts_that_no_window_can_have_are_refused,
                    what_is_no_baseline_or_window_is_refused_with_its_place)
