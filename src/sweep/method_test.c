/* What the methods come to, against what is known without them. */
#include "sweep/sweep_fixture.h"

#include <stdlib.h>

#define N_SEEDS 40
#define R       27

static struct sweep_world world;

static double number_of(const json_t *values, const char *name)
{
    return json_number_value(json_object_get(values, name));
}

static double nothing(const json_t *values, double resource, int64_t trial)
{
    (void)values;
    (void)resource;
    (void)trial;
    return 0;
}

START_TEST(a_grid_has_every_combination_once)
{
    int n[3][4][2] = {{{0}}};
    world_open(
        &world,
        "{\"name\":\"s\",\"job\":{\"kind\":\"command\",\"spec\":{}},\"goal\":{\"metric\":\"l\","
        "\"direction\":\"minimize\"},\"parameters\":{\"a\":[0,1,2],\"b\":{\"kind\":\"int\","
        "\"min\":0,\"max\":3},\"c\":{\"kind\":\"uniform\",\"min\":0,\"max\":1,\"points\":2}},"
        "\"method\":{\"kind\":\"grid\"},\"parallel\":5}",
        nothing, 1);
    world_run(&world);
    ck_assert_uint_eq(world.state.n_trials, 24);
    for (size_t i = 0; i < 24; i++) {
        const json_t *values = world.jobs[i + 1].values;
        n[(int)number_of(values, "a")][(int)number_of(values, "b")][(int)number_of(values, "c")]++;
    }
    for (int i = 0; i < 24; i++) {
        ck_assert_int_eq(n[i / 8][i / 2 % 4][i % 2], 1);
    }
    world_close(&world);
}

END_TEST

/* Two values and two trials tried one of them twice: chance over lists takes each combination once before any again. */
START_TEST(chance_tries_each_combination_of_lists_once_before_any_twice)
{
    int n_first = 0;
    for (uint64_t seed = 1; seed <= 30; seed++) {
        char document[400];
        int n[7][3] = {{0}};
        size_t n_values = 1 + seed % 7, n_points = 3 * n_values;
        (void)snprintf(
            document, sizeof document,
            "{\"name\":\"s\",\"job\":{\"kind\":\"command\",\"spec\":{}},\"goal\":{\"metric\":\"l\","
            "\"direction\":\"minimize\"},\"parameters\":{\"a\":%.*s],\"b\":[0,1,2]},"
            "\"method\":{\"kind\":\"random\"},\"trials\":%zu,\"parallel\":2}",
            (int)(2 * n_values), "[0,1,2,3,4,5,6", 2 * n_points);
        world_open(&world, document, nothing, seed);
        world_run(&world);
        ck_assert_uint_eq(world.state.n_trials, 2 * n_points);
        for (size_t i = 0; i < 2 * n_points; i++) {
            const json_t *values = world.jobs[i + 1].values;
            int *cell = &n[(int)number_of(values, "a")][(int)number_of(values, "b")];
            ++*cell;
            ck_assert_msg(*cell == (i < n_points ? 1 : 2), "seed %d, trial %zu", (int)seed, i + 1);
            n_first += i == 0 && number_of(values, "b") == 0;
        }
        world_close(&world);
    }
    ck_assert_int_ge(n_first, 3); /* 10 of 30 are to be expected: the order is by chance */
    ck_assert_int_le(n_first, 19);
}

END_TEST

/* ---- ASHA and chance ------------------------------------------------------------------------- */

/* A training in small: it ends the better the nearer its parameters are to good ones, comes there by a
 * power law, and the curves cross, as those of large learning rates begin faster. A function of what it
 * is given; the noise is that of the trial. */
static double training(const json_t *values, double resource, int64_t trial)
{
    struct weir_rng rng;
    double lr = log10(number_of(values, "lr")), momentum = number_of(values, "momentum");
    double depth = number_of(values, "depth");
    double end = 0.1 + 0.2 * (lr + 2) * (lr + 2) + 0.6 * (momentum - 0.8) * (momentum - 0.8) +
                 0.02 * (depth - 4) * (depth - 4);
    weir_rng_init(&rng, (uint64_t)trial, (uint64_t)resource);
    double speed = 0.8 + 0.1 * lr;
    return end + 1.5 * pow(resource, -speed) + 0.01 * weir_rng_normal(&rng);
}

#define TRAINING                                                                                   \
    "{\"name\":\"s\",\"seed\":%d,\"job\":{\"kind\":\"command\",\"spec\":{}},\"goal\":{\"metric\":" \
    "\"loss\",\"direction\":\"minimize\"},\"parameters\":{\"lr\":{\"kind\":\"log_uniform\","       \
    "\"min\":0.00001,\"max\":1},\"momentum\":{\"kind\":\"uniform\",\"min\":0,\"max\":1},"          \
    "\"depth\":{\"kind\":\"int\",\"min\":1,\"max\":8}},\"trials\":64,\"parallel\":%d,\"method\":%" \
    "s}"

static double run_training(int seed, int n_parallel, const char *method, int64_t *out_work)
{
    char text[1024];
    (void)snprintf(text, sizeof text, TRAINING, seed, n_parallel, method);
    world_open(&world, text, training, R);
    world_run(&world);
    double best = world.state.sweep.best_value;
    *out_work = world.work;
    ck_assert_int_eq(world.state.sweep.n_failed, 0);
    world_close(&world);
    return best;
}

/* For each seed both draw the same 64 points; so ASHA can at best be equal, and is if it stops none that
 * would have been the best. */
START_TEST(asha_reaches_what_chance_does_with_a_third_of_the_work)
{
    int n_reached = 0;
    double sum = 0;
    int64_t most_work = 0;
    for (int seed = 1; seed <= N_SEEDS; seed++) {
        int64_t random_work, asha_work;
        double random = run_training(seed, 8, "{\"kind\":\"random\"}", &random_work);
        double asha = run_training(seed, 8, "{\"kind\":\"asha\",\"max_resource\":27}", &asha_work);
        ck_assert_int_eq(random_work, 64 * R);
        ck_assert_msg(3 * asha_work <= random_work, "seed %d: %d", seed, (int)asha_work);
        ck_assert_msg(asha >= random - 1e-9, "seed %d", seed);
        n_reached += asha <= random + 0.01;
        sum += asha - random;
        most_work = WEIR_MAX(most_work, asha_work);
    }
    printf("ASHA: reached in %d of %d seeds (1 to %d), %.4f worse on average, at most %d of %d "
           "steps\n",
           n_reached, N_SEEDS, N_SEEDS, sum / N_SEEDS, (int)most_work, 64 * R);
    ck_assert_int_ge(10 * n_reached, 9 * N_SEEDS);
    ck_assert_double_lt(sum / N_SEEDS, 0.01);
}

END_TEST

/* ---- TPE and chance -------------------------------------------------------------------------- */

/* Branin's function (minimum 0.397887), and a choice of which one value adds nothing. */
static double branin(const json_t *values, double resource, int64_t trial)
{
    (void)resource;
    (void)trial;
    double x = number_of(values, "x"), y = number_of(values, "y"), pi = acos(-1);
    double u = y - 5.1 / (4 * pi * pi) * x * x + 5 / pi * x - 6;
    double c = number_of(values, "c");
    return u * u + 10 * (1 - 1 / (8 * pi)) * cos(x) + 10 + c * c;
}

static double run_branin(int seed, const char *method)
{
    char text[1024];
    (void)snprintf(
        text, sizeof text,
        "{\"name\":\"s\",\"seed\":%d,\"job\":{\"kind\":\"command\",\"spec\":{}},\"goal\":{"
        "\"metric\":\"l\",\"direction\":\"minimize\"},\"parameters\":{\"x\":{\"kind\":"
        "\"uniform\",\"min\":-5,\"max\":10},\"y\":{\"kind\":\"uniform\",\"min\":0,\"max\":15},"
        "\"c\":[2,3,0,1,4]},\"trials\":60,\"parallel\":2,\"method\":%s}",
        seed, method);
    world_open(&world, text, branin, 1);
    world_run(&world);
    double best = world.state.sweep.best_value;
    world_close(&world);
    return best;
}

static int compare_doubles(const void *a, const void *b)
{
    double left = *(const double *)a, right = *(const double *)b;
    return left < right ? -1 : left > right;
}

START_TEST(tpe_finds_better_points_than_chance)
{
    double random[40], tpe[40];
    int n_better = 0;
    for (int i = 0; i < N_SEEDS; i++) {
        random[i] = run_branin(i + 1, "{\"kind\":\"random\"}");
        tpe[i] = run_branin(i + 1, "{\"kind\":\"tpe\"}");
        n_better += tpe[i] < random[i];
    }
    qsort(random, (size_t)N_SEEDS, sizeof *random, compare_doubles);
    qsort(tpe, (size_t)N_SEEDS, sizeof *tpe, compare_doubles);
    printf("TPE: better in %d of %d seeds (1 to %d); median %.3f, of chance %.3f\n", n_better,
           N_SEEDS, N_SEEDS, tpe[N_SEEDS / 2], random[N_SEEDS / 2]);
    ck_assert_int_ge(10 * n_better, 7 * N_SEEDS);
    ck_assert_double_lt(tpe[N_SEEDS / 2] - 0.397887, 0.6 * (random[N_SEEDS / 2] - 0.397887));
}

END_TEST

START_TEST(the_same_seed_tries_the_same)
{
    int64_t work[2];
    for (int i = 0; i < 3; i++) {
        static const char *const methods[] = {"{\"kind\":\"random\"}",
                                              "{\"kind\":\"asha\",\"max_resource\":27}",
                                              "{\"kind\":\"tpe\"}"};
        double first = run_training(5, 4, methods[i], &work[0]);
        double second = run_training(5, 4, methods[i], &work[1]);
        ck_assert(first == second && work[0] == work[1]);
        ck_assert(run_training(6, 4, methods[i], &work[1]) != first);
    }
}

END_TEST

WEIR_TEST_MAIN("sweep_method", a_grid_has_every_combination_once,
               chance_tries_each_combination_of_lists_once_before_any_twice,
               asha_reaches_what_chance_does_with_a_third_of_the_work,
               tpe_finds_better_points_than_chance, the_same_seed_tries_the_same)
