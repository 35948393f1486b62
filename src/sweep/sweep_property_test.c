/* Random histories of sweeps: laws that hold after every step, an oracle for rungs that is written anew
 * here, and a step that is taken twice. */
#include "sweep/sweep_fixture.h"

#include <stdlib.h>

#define N_SEEDS WEIR_TEST_TIMES(60, 10)

#define REQUIRE(condition) ck_assert_msg(condition, "seed %d, step %d: " #condition, seed, i_step)

static struct sweep_world world;
static struct weir_rng rng;
static int seed, i_step;

static double curve(const json_t *values, double resource, int64_t trial)
{
    struct weir_rng noise;
    weir_rng_init(&noise, (uint64_t)seed, (uint64_t)trial << 20 | (uint64_t)resource);
    double x = json_number_value(json_object_get(values, "x"));
    uint64_t kind = weir_rng_below(&noise, 20);
    return kind == 0 ? (double)NAN : kind == 1 ? 1 : x + weir_rng_f64(&noise);
}

static void open_random(void)
{
    static const char *const methods[] = {"\"random\"}",
                                          "\"asha\",\"max_resource\":20,\"eta\":3}",
                                          "\"asha\",\"min_resource\":2,\"eta\":2}",
                                          "\"asha\",\"max_resource\":20,\"at_rung\":\"wait\"}",
                                          "\"asha\",\"eta\":2,\"at_rung\":\"wait\"}",
                                          ("\"asha\",\"eta\":2,\"max_resource\":9,"
                                           "\"at_rung\":\"wait\"}"),
                                          "\"tpe\",\"startup\":4}",
                                          "\"tpe\",\"startup\":4},\"early_stop\":{\"eta\":4}",
                                          "\"grid\"}"};
    char text[1024];
    const char *method = methods[weir_rng_below(&rng, WEIR_ARRAY_LEN(methods))];
    (void)snprintf(
        text, sizeof text,
        "{\"name\":\"s\",\"seed\":%d,\"job\":{\"kind\":\"command\",\"spec\":{}},\"goal\":{"
        "\"metric\":\"l\",\"direction\":\"%s\",\"value\":\"%s\"},\"parameters\":{\"x\":{"
        "\"kind\":\"uniform\",\"min\":0,\"max\":1,\"points\":9},\"c\":[1,2,3]},\"trials\":%d,"
        "\"parallel\":%d,\"max_failures\":%d,\"time_s\":%d,\"method\":{\"kind\":%s}",
        seed, weir_rng_below(&rng, 2) ? "minimize" : "maximize",
        weir_rng_below(&rng, 2) ? "last" : "best", 1 + (int)weir_rng_below(&rng, 40),
        1 + (int)weir_rng_below(&rng, 8), 1 + (int)weir_rng_below(&rng, 20),
        weir_rng_below(&rng, 4) ? 0 : 300, method);
    world_open(&world, text, curve, 1 + (int64_t)weir_rng_below(&rng, 30));
}

static bool is_state(int64_t trial, const char *state)
{
    return strcmp(world.state.trials[trial - 1].row.state, state) == 0;
}

static int64_t n_gone_on_before;

static void check_laws(void)
{
    const struct weir_sweep *sweep = &world.state.sweep;
    int64_t n_open = 0, n_jobs = 0, n_gone_on = 0, n_stopping = 0;
    REQUIRE((int64_t)world.state.n_trials <= world.state.doc.n_trials);
    for (int64_t i = 1; i <= (int64_t)world.state.n_trials; i++) {
        const struct weir_sweep_trial_state *trial = &world.state.trials[i - 1];
        const struct sweep_job *job = &world.jobs[i];
        bool is_open = weir_sweep_trial_is_open(&trial->row);
        n_open += weir_sweep_trial_is_under_way(&trial->row);
        n_jobs += job->is_there && !job->is_over && !job->is_held;
        n_stopping += is_state(i, "STOPPING");
        REQUIRE(trial->row.number == i);
        REQUIRE(job->n_made <= 1 && job->n_stopped <= 1);
        REQUIRE((trial->row.job != NULL) == job->is_there);
        REQUIRE(is_open == (trial->row.ended_ms == 0));
        REQUIRE(is_open || !job->is_there || job->is_over); /* none is left running, or waiting */
        REQUIRE(!is_state(i, "PAUSED") || job->is_held || job->is_over);
        REQUIRE(!is_state(i, "RUNNING") || !job->is_told_to_wait);
        n_gone_on += job->n_gone_on;
        REQUIRE(!is_state(i, "WANTED") || job->is_wanted); /* none is lost */
        REQUIRE(!is_state(i, "STOPPING") || trial->row.ends_as != NULL);
    }
    /* Those that waited at a rung end together: their jobs do not run. */
    int64_t n_more = weir_sweep_rungs_wait(&world.state.doc.rungs) ? n_stopping : 0;
    REQUIRE(n_open == sweep->n_open && n_open - n_more <= world.state.doc.n_parallel);
    REQUIRE(n_jobs <= world.state.doc.n_parallel);
    REQUIRE(!weir_sweep_is_over(sweep) || (n_open == 0 && sweep->n_paused == 0));
    REQUIRE(strcmp(sweep->state, "RUNNING") == 0 || n_gone_on == n_gone_on_before);
    n_gone_on_before = n_gone_on;
    REQUIRE((strcmp(sweep->state, "PAUSED") == 0) == (sweep->paused_ms != 0));
    REQUIRE(strcmp(sweep->state, "RUNNING") != 0 || n_open > 0);
}

/* ---- the oracle of rungs --------------------------------------------------------------------- */

static double value_to_sort(double value)
{
    if (isnan(value)) {
        return INFINITY;
    }
    return world.state.doc.maximizes ? -value : value;
}

/* Trials in the order in which they came to each rung, as told by what was seen. A trial is stopped there
 * if and only if at least so many before it were better as may go on. */
#define LOG_MAX 100000

static struct {
    size_t rung;
    int64_t trial;
    double value;
    bool goes_on;
} log_of[LOG_MAX];

static size_t n_log;
static int64_t n_promoted;

static void check_rungs(size_t n_before)
{
    if (weir_sweep_rungs_wait(&world.state.doc.rungs)) {
        return; /* who goes on from there is checked when it does */
    }
    for (size_t i = n_before; i < n_log; i++) {
        size_t n = 0, n_better = 0;
        for (size_t k = 0; k <= i; k++) {
            if (log_of[k].rung == log_of[i].rung) {
                double theirs = value_to_sort(log_of[k].value),
                       own = value_to_sort(log_of[i].value);
                n++;
                n_better += k != i &&
                            (theirs < own || (theirs == own && log_of[k].trial < log_of[i].trial));
            }
        }
        size_t eta = (size_t)world.state.doc.rungs.eta;
        size_t may_go_on = n / eta > 1 ? n / eta : 1;
        REQUIRE((n_better < may_go_on) == log_of[i].goes_on);
    }
}

/* ---- the oracle of promotions ---------------------------------------------------------------- */

/* How many of those that have come to rung k are better there than the trial. */
static size_t n_better_at(size_t k, int64_t number, size_t *out_n)
{
    double own = value_to_sort(world.state.trials[number - 1].rung_values[k]);
    size_t n_better = 0;
    *out_n = 0;
    for (int64_t i = 1; i <= (int64_t)world.state.n_trials; i++) {
        const struct weir_sweep_trial_state *trial = &world.state.trials[i - 1];
        if (trial->n_rungs > k) {
            double value = value_to_sort(trial->rung_values[k]);
            n_better += i != number && (value < own || (value == own && i < number));
            (*out_n)++;
        }
    }
    return n_better;
}

/* The one that waits at the highest rung where it is among the best 1/eta, the best of them; 0: none. */
static int64_t expect_promotion(void)
{
    int64_t found = 0;
    size_t found_rung = 0, found_better = 0;
    for (int64_t i = 1; i <= (int64_t)world.state.n_trials; i++) {
        size_t n_rungs = world.state.trials[i - 1].n_rungs, n = 0;
        if (!is_state(i, "PAUSED")) {
            continue;
        }
        size_t n_better = n_better_at(n_rungs - 1, i, &n);
        bool is_good = n_better + 1 <= n / (size_t)world.state.doc.rungs.eta;
        bool is_first = found == 0 || n_rungs > found_rung ||
                        (n_rungs == found_rung && n_better < found_better);
        if (is_good && is_first) {
            found = i;
            found_rung = n_rungs;
            found_better = n_better;
        }
    }
    return found;
}

/* After each step no slot is left free while one could go on; only the very last may go on though it is
 * not among the best 1/eta. */
static void check_promotions(void)
{
    bool can_go_on = strcmp(world.state.sweep.state, "RUNNING") == 0 &&
                     world.state.sweep.n_open < world.state.doc.n_parallel;
    REQUIRE(!can_go_on || expect_promotion() == 0);
    for (size_t i = 0; i < world.last.n; i++) {
        const struct weir_sweep_action *action = &world.last.items[i];
        size_t k = world.state.trials[action->trial > 0 ? action->trial - 1 : 0].n_rungs - 1, n = 0;
        if (action->type == WEIR_SWEEP_ACTION_GO_ON) {
            size_t n_better = n_better_at(k, action->trial, &n);
            bool is_last = (int64_t)world.state.n_trials == world.state.doc.n_trials &&
                           n_better == 0 && world.state.sweep.n_open == 1;
            REQUIRE(n_better + 1 <= n / (size_t)world.state.doc.rungs.eta || is_last);
            n_promoted++;
        }
    }
    world.last.n = 0;
}

/* Look at one trial, and note which rungs it came to. */
static void look_at(int64_t number)
{
    struct weir_sweep_trial_state *trial = &world.state.trials[number - 1];
    size_t n_rungs = trial->n_rungs, n_before = n_log;
    struct weir_sweep_observation seen = world_observe(&world, number);
    bool was_running = is_state(number, "RUNNING");
    world_apply(&world, &(struct weir_sweep_event){.type = WEIR_SWEEP_EVENT_TICK,
                                                   .observations = &seen,
                                                   .n_observations = 1});
    bool is_stopped = trial->row.reason != NULL && strncmp(trial->row.reason, "number ", 7) == 0;
    for (size_t k = n_rungs; k < trial->n_rungs && n_log < LOG_MAX; k++) {
        log_of[n_log].rung = k;
        log_of[n_log].trial = number;
        log_of[n_log].value = trial->rung_values[k];
        log_of[n_log].goes_on = !(is_stopped && was_running && k + 1 == trial->n_rungs);
        n_log++;
    }
    check_rungs(n_before);
}

static void do_something(void)
{
    int64_t n = (int64_t)world.state.n_trials;
    int64_t trial = 1 + (int64_t)weir_rng_below(&rng, (uint64_t)n);
    struct sweep_job *job = &world.jobs[trial];
    switch (weir_rng_below(&rng, 100)) {
    case 0:
        if (strcmp(world.state.sweep.state, "RUNNING") == 0 && weir_rng_below(&rng, 8) == 0) {
            world_apply(&world,
                        &(struct weir_sweep_event){.type = WEIR_SWEEP_EVENT_STOP, .note = "ann"});
        }
        break;
    case 1: /* a job fails, is cancelled by somebody, or its record is gone */
        if (job->is_there && !job->is_over && weir_rng_below(&rng, 4) == 0) {
            static const char *const ends[] = {"FAILED", "CANCELLED", NULL};
            job->is_over = true;
            job->state = ends[weir_rng_below(&rng, 3)];
        }
        break;
    case 2: /* told twice that it was started: by an outbox that was killed in between */
        if (job->is_there) {
            world_apply(&world, &(struct weir_sweep_event){.type = WEIR_SWEEP_EVENT_STARTED,
                                                           .trial = trial,
                                                           .job = "other",
                                                           .run = "other"});
            REQUIRE(strcmp(world.state.trials[trial - 1].row.job, "other") != 0);
        }
        break;
    case 4:
        if (weir_rng_below(&rng, 4) == 0) {
            bool is_paused = strcmp(world.state.sweep.state, "PAUSED") == 0;
            bool is_running = strcmp(world.state.sweep.state, "RUNNING") == 0;
            if (is_paused || is_running) {
                world_apply(&world,
                            &(struct weir_sweep_event){.type = is_paused ? WEIR_SWEEP_EVENT_RESUME
                                                                         : WEIR_SWEEP_EVENT_PAUSE,
                                                       .note = "ann"});
            }
        }
        break;
    case 3:
        world.now_ms += 1000;
        world_apply(&world, &(struct weir_sweep_event){.type = WEIR_SWEEP_EVENT_TICK});
        break;
    default:
        if (job->is_wanted) {
            world_start(&world, trial);
        } else if (weir_rng_below(&rng, 3) > 0) {
            world_work(&world);
        } else if (job->is_there && weir_sweep_trial_is_open(&world.state.trials[trial - 1].row)) {
            look_at(trial);
        }
    }
}

START_TEST(whatever_happens_no_trial_is_lost_or_doubled)
{
    static const char *const fixed = "WEIR_SEED";
    int first = getenv(fixed) != NULL ? (int)strtol(getenv(fixed), NULL, 10) : 1;
    int last = getenv(fixed) != NULL ? first : N_SEEDS;
    int64_t n_steps = 0, n_judged = 0;
    for (seed = first; seed <= last; seed++) {
        weir_rng_init(&rng, (uint64_t)seed, 1);
        n_log = 0;
        n_gone_on_before = 0;
        open_random();
        for (i_step = 0; !weir_sweep_is_over(&world.state.sweep); i_step++) {
            ck_assert_msg(i_step < 200000, "seed %d: it does not end", seed);
            do_something();
            check_laws();
            check_promotions();
        }
        REQUIRE(strcmp(world.state.sweep.state, "STOPPING") != 0);
        n_steps += i_step;
        n_judged += (int64_t)n_log;
        world_close(&world);
    }
    printf("seeds %d to %d: %d steps, %d times judged at a rung, %d times promoted\n", first, last,
           (int)n_steps, (int)n_judged, (int)n_promoted);
}

END_TEST

WEIR_TEST_MAIN("sweep_property", whatever_happens_no_trial_is_lost_or_doubled)
