/* Oracles: the split's law restated, brute force over thresholds, numpy's eigenvalues, and what
 * must not change the figures. */
#include "train/identification.h"

#include "base/rng.h"
#include "train/eigenfaces.h"
#include "train/split.h"
#include "train/test_support.h"

#include <math.h>

/* ---- split ---------------------------------------------------------------------------------- */

static void check_permutation(const uint32_t *numbers, uint32_t n)
{
    bool seen[64] = {false};
    for (uint32_t i = 0; i < n; i++) {
        ck_assert_uint_lt(numbers[i], n);
        ck_assert(!seen[numbers[i]]);
        seen[numbers[i]] = true;
    }
}

START_TEST(a_split_is_the_documented_shuffle_of_people_and_of_each_persons_photographs)
{
    uint32_t n_people = 3 + (uint32_t)_i, n_photos[64];
    struct train_split split, again;
    for (uint32_t p = 0; p < n_people; p++) {
        n_photos[p] = 6 + p % 7;
    }
    train_split_make(90 + (uint64_t)_i, n_photos, n_people, &fixture.arena, &split);
    train_split_make(90 + (uint64_t)_i, n_photos, n_people, &fixture.arena, &again);
    ck_assert_uint_eq(split.n_people, n_people);
    ck_assert_uint_eq(split.n_trained, (n_people - n_people % 3) / 3 * 2 + (n_people % 3 == 2));
    check_permutation(split.people, n_people); /* so nobody is both trained and unseen */
    ck_assert_mem_eq(split.people, again.people, n_people * sizeof *split.people);
    for (uint32_t p = 0; p < n_people; p++) {
        uint32_t expected[16];
        struct weir_rng rng;
        check_permutation(split.photos[p], n_photos[p]);
        for (uint32_t i = 0; i < n_photos[p]; i++) {
            expected[i] = i;
        }
        weir_rng_init(&rng, 90 + (uint64_t)_i, 1 + p);
        for (uint32_t i = n_photos[p] - 1; i > 0; i--) { /* Fisher-Yates, from the last down */
            uint32_t j = (uint32_t)weir_rng_below(&rng, i + 1), kept = expected[i];
            expected[i] = expected[j];
            expected[j] = kept;
        }
        ck_assert_mem_eq(split.photos[p], expected, n_photos[p] * sizeof *expected);
    }
}

END_TEST

/* ---- figures -------------------------------------------------------------------------------- */

enum { N_PROBES = 30, N_PEOPLE = 8 };

/** The best any threshold does that lets at most the allowed number of impostors in. */
static double best_tar(const float *scores, const uint32_t *persons, double rate)
{
    double best = 0;
    size_t n_impostors = (size_t)N_PROBES * (N_PEOPLE - 1);
    for (size_t t = 0; t < (size_t)N_PROBES * N_PEOPLE; t++) {
        if (t % N_PEOPLE == persons[t / N_PEOPLE]) {
            continue;
        }
        size_t n_false = 0, n_true = 0;
        for (size_t i = 0; i < (size_t)N_PROBES * N_PEOPLE; i++) {
            bool is_genuine = i % N_PEOPLE == persons[i / N_PEOPLE];
            n_false += !is_genuine && scores[i] > scores[t];
            n_true += is_genuine && scores[i] > scores[t];
        }
        if ((double)n_false <= rate * (double)n_impostors) {
            best = fmax(best, (double)n_true / N_PROBES);
        }
    }
    return best;
}

START_TEST(figures_are_those_of_brute_force)
{
    float scores[N_PROBES * N_PEOPLE];
    uint32_t persons[N_PROBES];
    double rates[] = {0, 0.01, 0.05, 0.3}, n_first = 0;
    struct weir_rng rng;
    weir_rng_init(&rng, 5, (uint64_t)_i);
    for (size_t i = 0; i < N_PROBES; i++) {
        persons[i] = (uint32_t)weir_rng_below(&rng, N_PEOPLE);
        size_t n_better = 0;
        for (size_t q = 0; q < N_PEOPLE; q++) {
            /* Few values, so that many are equal. */
            scores[i * N_PEOPLE + q] =
                (float)weir_rng_below(&rng, _i % 2 == 0 ? 12 : 100000) + (q == persons[i] ? 5 : 0);
        }
        for (size_t q = 0; q < N_PEOPLE; q++) {
            float own = scores[i * N_PEOPLE + persons[i]], other = scores[i * N_PEOPLE + q];
            n_better += other > own || (other == own && q < persons[i]);
        }
        n_first += n_better == 0;
    }
    for (size_t r = 0; r < WEIR_ARRAY_LEN(rates); r++) {
        struct recognition figures;
        ck_assert_int_eq(
            recognition_measure(scores, persons, N_PROBES, N_PEOPLE, rates[r], &figures), WEIR_OK);
        ck_assert_double_eq_tol(figures.rank1, n_first / N_PROBES, 1e-12);
        ck_assert_double_eq_tol(figures.tar, best_tar(scores, persons, rates[r]), 1e-12);
    }
}

END_TEST

START_TEST(a_score_is_the_nearest_of_the_enrolled)
{
    const float probe[] = {0.6f, 0.8f}, a[] = {1, 0}, b[] = {0, 1}, c[] = {-0.6f, -0.8f};
    const float *const enrolled[] = {c, a, b};
    ck_assert_float_eq_tol(recognition_score(probe, enrolled, 3, 2), 0.8f, 1e-6f);
    ck_assert_float_eq_tol(recognition_score(probe, enrolled, 2, 2), 0.6f, 1e-6f);
    ck_assert_float_eq_tol(recognition_score(probe, enrolled, 1, 2), -1.0f, 1e-6f);
}

END_TEST

START_TEST(means_and_deviations_are_over_the_seeds)
{
    struct identification_round rounds[4] = {0};
    struct identification_result result = {0};
    const double values[] = {0.5, 0.7, 0.9, 0.9};
    for (int i = 0; i < 4; i++) {
        rounds[i].figures[IDENTIFICATION_UNSEEN_ONE][IDENTIFICATION_PCA].tar = values[i];
    }
    identification_summarise(rounds, 4, &result);
    const struct identification_summary *s =
        &result.summaries[IDENTIFICATION_UNSEEN_ONE][IDENTIFICATION_PCA];
    ck_assert_double_eq_tol(s->mean.tar, 0.75, 1e-12);
    ck_assert_double_eq_tol(s->spread.tar, sqrt(0.0275), 1e-12);
    ck_assert_double_eq(s->mean.rank1, 0);
    ck_assert_double_eq(result.summaries[0][0].mean.tar, 0);
}

END_TEST

/* ---- eigenfaces ----------------------------------------------------------------------------- */

START_TEST(components_have_the_variances_that_numpy_finds)
{
    enum { N = 6, DIM = 5 };

    float values[N][DIM], projection[DIM];
    const float *pictures[N];
    struct eigenfaces faces;
    for (int k = 0; k < N; k++) {
        pictures[k] = values[k];
        for (int i = 0; i < DIM; i++) {
            values[k][i] = (float)(sin(1 + 7 * k + 0.3 * i * i) + (i == 2 ? 0.5 * k : 0));
        }
    }
    ck_assert_int_eq(eigenfaces_fit(pictures, N, DIM, DIM, &faces), WEIR_OK);
    /* numpy.linalg.eigvalsh(numpy.cov(X.T)); two sines and a ramp span three directions. */
    ck_assert_uint_eq(faces.n_components, 3);
    ck_assert_double_eq_tol(faces.variances[0], 2.04683181, 1e-6);
    ck_assert_double_eq_tol(faces.variances[1], 0.465380238, 1e-6);
    ck_assert_double_eq_tol(faces.variances[2], 0.0272360703, 1e-6);
    /* The first row of U * sqrt(n - 1) of numpy.linalg.svd; signs are anybody's choice. */
    eigenfaces_project(&faces, values[0], projection);
    ck_assert_double_eq_tol(fabs((double)projection[0]), 0.81387411, 1e-4);
    ck_assert_double_eq_tol(fabs((double)projection[1]), 1.30526892, 1e-4);
    ck_assert_double_eq_tol(fabs((double)projection[2]), 1.22984055, 1e-4);
    eigenfaces_fini(&faces);
}

END_TEST

START_TEST(projections_are_white_and_components_keep_the_whole_variance)
{
    enum { N = 20, DIM = 150 };

    static float values[N][DIM], projections[N][N];
    const float *pictures[N];
    struct weir_rng rng;
    struct eigenfaces faces;
    double total = 0, kept = 0;
    weir_rng_init(&rng, 8, 0);
    for (int k = 0; k < N; k++) {
        pictures[k] = values[k];
        for (int i = 0; i < DIM; i++) {
            values[k][i] = (float)(weir_rng_normal(&rng) * (1 + i % 9));
        }
    }
    ck_assert_int_eq(eigenfaces_fit(pictures, N, DIM, 50, &faces), WEIR_OK);
    ck_assert_uint_eq(faces.n_components, N - 1);
    for (size_t c = 0; c < N - 1; c++) {
        kept += faces.variances[c];
        ck_assert(c == 0 || faces.variances[c] <= faces.variances[c - 1]);
    }
    for (int k = 0; k < N; k++) {
        eigenfaces_project(&faces, values[k], projections[k]);
        for (int i = 0; i < DIM; i++) {
            double centred = (double)values[k][i] - (double)faces.mean[i];
            total += centred * centred / (N - 1);
        }
    }
    ck_assert_double_eq_tol(kept / total, 1, 1e-6);
    for (int a = 0; a < N - 1; a++) {
        for (int b = 0; b <= a; b++) {
            double sum = 0;
            for (int k = 0; k < N; k++) {
                sum += (double)projections[k][a] * (double)projections[k][b];
            }
            ck_assert_double_eq_tol(sum / (N - 1), a == b, 1e-4);
        }
    }
    eigenfaces_fini(&faces);
}

END_TEST

START_TEST(pictures_that_are_all_alike_have_no_components)
{
    const float picture[] = {1, 2, 3};
    const float *const pictures[] = {picture, picture, picture};
    struct eigenfaces faces;
    ck_assert_int_eq(eigenfaces_fit(pictures, 3, 3, 2, &faces), WEIR_ERR_INVALID);
}

END_TEST

/* ---- the protocol --------------------------------------------------------------------------- */

/** An embedding that trains in a moment. */
static void write_embedding(void)
{
    char text[512];
    (void)snprintf(text, sizeof text,
                   "input: [1, %d, %d]\nlayers:\n"
                   "  - {name: conv, type: conv, k: 4, kernel: 3, stride: 2, pad: 1}\n"
                   "  - {name: bn, type: batch_norm}\n"
                   "  - {name: relu, type: relu}\n"
                   "  - {name: fc, type: linear, k: 12}\n"
                   "loss: {type: margin}\n",
                   TEST_SIDE, TEST_SIDE);
    ck_assert_int_eq(weir_file_write_atomic(fixture.model, text, strlen(text), 0644, NULL),
                     WEIR_OK);
}

static struct identification_result measure(size_t first_seed, size_t n_seeds, int64_t n_threads)
{
    struct identification_result result;
    const struct identification_config config = {.model = fixture.model,
                                                 .backend = "reference",
                                                 .data = fixture.data,
                                                 .first_seed = first_seed,
                                                 .n_seeds = n_seeds,
                                                 .n_threads = n_threads};
    weir_status status = identification_run(&config, &result, &fixture.err);
    ck_assert_msg(status == WEIR_OK, "%s", fixture.err.message);
    return result;
}

START_TEST(threads_do_not_change_the_figures)
{
    write_embedding();
    struct identification_result one = measure(3, 2, 1), three = measure(3, 2, 3);
    ck_assert_mem_eq(&one, &three, sizeof one);
    ck_assert_uint_eq(one.n_people, TEST_CLASSES);
    ck_assert_uint_eq(one.n_trained, 2);
}

END_TEST

/* The figures of the trained people do not depend on what the unseen people look like. */
START_TEST(unseen_people_take_no_part_in_training)
{
    uint32_t n_photos[TEST_CLASSES];
    struct train_split split;
    write_embedding();
    for (int p = 0; p < TEST_CLASSES; p++) {
        n_photos[p] = TEST_PER_CLASS;
    }
    train_split_make(4, n_photos, TEST_CLASSES, &fixture.arena, &split);
    struct identification_result before = measure(4, 1, 1);
    for (uint32_t i = split.n_trained; i < TEST_CLASSES; i++) {
        for (int k = 0; k < TEST_PER_CLASS; k++) {
            char path[160], other[160];
            size_t len = 0;
            (void)snprintf(path, sizeof path, "%s/class-%u/%02d.pgm", fixture.data, split.people[i],
                           k);
            (void)snprintf(other, sizeof other, "%s/class-%u/%02d.pgm", fixture.data,
                           split.people[0], (k * 7 + (int)i) % TEST_PER_CLASS);
            const char *bytes = fixture_read(other, &len);
            ck_assert_int_eq(weir_file_write_atomic(path, bytes, len, 0644, NULL), WEIR_OK);
        }
    }
    struct identification_result after = measure(4, 1, 1);
    for (int m = 0; m < IDENTIFICATION_METHODS; m++) {
        ck_assert_mem_eq(&before.summaries[IDENTIFICATION_TRAINED][m],
                         &after.summaries[IDENTIFICATION_TRAINED][m],
                         sizeof before.summaries[0][0]);
        /* … and theirs are worse for it: they all look like one person now. */
        ck_assert_double_lt(after.summaries[IDENTIFICATION_UNSEEN_FIVE][m].mean.rank1, 0.9);
    }
}

END_TEST

START_TEST(data_that_is_too_small_and_classifiers_are_refused_by_name)
{
    struct identification_result result;
    struct identification_config config = {
        .model = fixture.model, .backend = "reference", .data = fixture.data, .n_seeds = 1};
    ck_assert_int_eq(identification_run(&config, &result, &fixture.err), WEIR_ERR_INVALID);
    ck_assert_ptr_nonnull(strstr(fixture.err.message, "classifier"));
    for (int k = 5; k < TEST_PER_CLASS; k++) {
        char path[160];
        (void)snprintf(path, sizeof path, "%s/class-2/%02d.pgm", fixture.data, k);
        ck_assert_int_eq(unlink(path), 0);
    }
    ck_assert_int_eq(identification_run(&config, &result, &fixture.err), WEIR_ERR_INVALID);
    ck_assert_ptr_nonnull(strstr(fixture.err.message, "class-2: 5 photographs"));
}

END_TEST

START_TEST(the_json_has_a_figure_for_each_group_and_method)
{
    struct identification_result result = {.n_seeds = 10, .n_people = 30};
    result.summaries[IDENTIFICATION_UNSEEN_FIVE][IDENTIFICATION_PIXEL_COSINE].mean.tar = 0.125;
    char *text = NULL;
    size_t len = 0;
    FILE *file = open_memstream(&text, &len);
    identification_print(&result, true, file);
    ck_assert_int_eq(fclose(file), 0);
    json_t *object = NULL;
    ck_assert_int_eq(weir_json_parse(text, len, "output", &object, NULL), WEIR_OK);
    const json_t *figures = json_object_get(json_object_get(object, "unseen_five"), "pixel_cosine");
    ck_assert_double_eq(json_real_value(json_object_get(figures, "tar")), 0.125);
    ck_assert_uint_eq(json_object_size(figures), 4);
    ck_assert_uint_eq(json_object_size(json_object_get(object, "unseen_one")), 3);
    ck_assert_int_eq(json_integer_value(json_object_get(object, "seeds")), 10);
    ck_assert_int_eq(json_integer_value(json_object_get(object, "people")), 30);
    json_decref(object);
    free(text);
}

END_TEST

int main(void)
{
    const TTest *const tests[] = {
        a_score_is_the_nearest_of_the_enrolled,
        means_and_deviations_are_over_the_seeds,
        components_have_the_variances_that_numpy_finds,
        projections_are_white_and_components_keep_the_whole_variance,
        pictures_that_are_all_alike_have_no_components,
        threads_do_not_change_the_figures,
        unseen_people_take_no_part_in_training,
        data_that_is_too_small_and_classifiers_are_refused_by_name,
        the_json_has_a_figure_for_each_group_and_method,
    };
    Suite *suite = suite_create("identification");
    TCase *tcase = tcase_create("identification");
    tcase_set_timeout(tcase, 120);
    tcase_add_checked_fixture(tcase, fixture_make, fixture_drop);
    tcase_add_loop_test(
        tcase, a_split_is_the_documented_shuffle_of_people_and_of_each_persons_photographs, 0, 12);
    tcase_add_loop_test(tcase, figures_are_those_of_brute_force, 0, 8);
    for (size_t i = 0; i < WEIR_ARRAY_LEN(tests); i++) {
        tcase_add_test(tcase, tests[i]);
    }
    suite_add_tcase(suite, tcase);
    return weir_test_run(suite);
}
