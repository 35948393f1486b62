/**
 * TPE: Bergstra, Bardenet, Bengio, Kégl: "Algorithms for Hyper-Parameter Optimization", NeurIPS 2011,
 * section 4. The trials so far are divided into the best and the others; l(x) is a density of where the
 * best lie, g(x) of where the others do, and the next point is, of some drawn from l, the one with the
 * greatest l(x) / g(x), which has the greatest expected improvement (equation 6).
 *
 * Each coordinate has densities of its own: a mixture of normal distributions, cut off at 0 and 1,
 * one at each trial, as wide as the gap to its farther neighbour, and a wide one for all that was not
 * tried; of a choice, how often each value occurred, and one more.
 *
 * Trials that are not over count among the others, so that several at the same time differ.
 */
#include "sweep/method/random.h"

#include "base/rng.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define DRAWS      0x74706531u /* the stream of random numbers that candidates come from */
#define N_TRIES    64          /* for a normal value within 0 to 1 */
#define BEST_MAX   25
#define WIDTH_MAX  1.0
#define PRIOR_MEAN 0.5

struct sweep_tpe {
    int64_t startup, candidates;
    double gamma;
};

/** A trial as it is ranked. */
struct ranked {
    const struct weir_sweep_trial_state *trial;
    size_t n_rungs; /**< SIZE_MAX: it has run to its end. */
    bool is_over, maximizes;
};

/** Density of one coordinate. */
struct density {
    size_t n; /**< Normal distributions, or values of a choice. */
    double *means, *widths, *areas;
    double *weights; /**< Of a choice's values; NULL: it is none. */
    double total;
};

/* ---- who is best ----------------------------------------------------------------------------- */

/* What ran to its end before what was stopped, that by how far it came, and then by its value; what
 * runs comes last. */
static int compare(const void *a, const void *b)
{
    const struct ranked *left = a, *right = b;
    if (left->is_over != right->is_over) {
        return left->is_over ? -1 : 1;
    }
    if (left->n_rungs != right->n_rungs) {
        return left->n_rungs > right->n_rungs ? -1 : 1;
    }
    double l = left->trial->row.value, r = right->trial->row.value;
    if (weir_sweep_is_better(l, r, left->maximizes) ||
        weir_sweep_is_better(r, l, left->maximizes)) {
        return weir_sweep_is_better(l, r, left->maximizes) ? -1 : 1;
    }
    return left->trial->row.number < right->trial->row.number ? -1 : 1;
}

/* The trials with a value or under way, best first. @return How many are over. */
static size_t rank_trials(const struct weir_sweep_state *state, struct ranked *out, size_t *out_n)
{
    size_t n = 0, n_over = 0;
    for (size_t i = 0; i < state->n_trials; i++) {
        const struct weir_sweep_trial_state *trial = &state->trials[i];
        bool is_open = weir_sweep_trial_is_open(&trial->row);
        bool is_stopped = strcmp(trial->row.state, "STOPPED") == 0;
        bool has_value = !isnan(trial->row.value) && strcmp(trial->row.state, "FAILED") != 0;
        if (is_open || has_value) {
            out[n++] = (struct ranked){trial, is_stopped ? trial->n_rungs : SIZE_MAX, !is_open,
                                       state->doc.maximizes};
            n_over += !is_open;
        }
    }
    qsort(out, n, sizeof *out, compare);
    *out_n = n;
    return n_over;
}

/* ---- densities ------------------------------------------------------------------------------- */

static double normal_below(double x)
{
    return 0.5 * erfc(-x / sqrt(2));
}

static int compare_doubles(const void *a, const void *b)
{
    double left = *(const double *)a, right = *(const double *)b;
    return left < right ? -1 : left > right;
}

static void add_normal(struct density *density, double mean, double width)
{
    density->means[density->n] = mean;
    density->widths[density->n] = width;
    density->areas[density->n] =
        normal_below((1 - mean) / width) - normal_below((0 - mean) / width);
    density->n++;
}

/* Section 4.2 of the paper: as wide as the greater distance to a neighbour, within bounds. */
static void fit_normals(struct density *density, const struct ranked *trials, size_t n, size_t i,
                        struct weir_arena *arena)
{
    double *places = WEIR_ARENA_ARRAY(arena, n + 1, double);
    density->means = WEIR_ARENA_ARRAY(arena, n + 1, double);
    density->widths = WEIR_ARENA_ARRAY(arena, n + 1, double);
    density->areas = WEIR_ARENA_ARRAY(arena, n + 1, double);
    for (size_t k = 0; k < n; k++) {
        places[k] = trials[k].trial->point[i];
    }
    qsort(places, n, sizeof *places, compare_doubles);
    double least = WIDTH_MAX / (double)WEIR_MIN((size_t)100, n + 2);
    for (size_t k = 0; k < n; k++) {
        double left = places[k] - (k > 0 ? places[k - 1] : 0);
        double right = (k + 1 < n ? places[k + 1] : 1) - places[k];
        add_normal(density, places[k], fmin(fmax(fmax(left, right), least), WIDTH_MAX));
    }
    add_normal(density, PRIOR_MEAN, WIDTH_MAX);
}

static size_t choice_at(double at, size_t n)
{
    return WEIR_MIN((size_t)(at * (double)n), n - 1);
}

static void fit_choice(struct density *density, const struct ranked *trials, size_t n, size_t i,
                       size_t n_values, struct weir_arena *arena)
{
    density->n = n_values;
    density->weights = WEIR_ARENA_ARRAY(arena, n_values, double);
    for (size_t k = 0; k < n_values; k++) {
        density->weights[k] = 1;
    }
    for (size_t k = 0; k < n; k++) {
        density->weights[choice_at(trials[k].trial->point[i], n_values)] += 1;
    }
    density->total = (double)(n + n_values);
}

static struct density fit(const struct weir_sweep_space *space, const struct ranked *trials,
                          size_t n, size_t i, struct weir_arena *arena)
{
    struct density density = {0};
    const struct weir_sweep_parameter *parameter = &space->parameters[i];
    const struct weir_sweep_parameter_ops *ops = weir_sweep_parameter_ops_of(parameter);
    if (ops->is_choice) {
        fit_choice(&density, trials, n, i, ops->n_values(parameter->options), arena);
    } else {
        fit_normals(&density, trials, n, i, arena);
    }
    return density;
}

static double density_at(const struct density *density, double at)
{
    if (density->weights != NULL) {
        return density->weights[choice_at(at, density->n)] / density->total;
    }
    double sum = 0;
    for (size_t k = 0; k < density->n; k++) {
        double z = (at - density->means[k]) / density->widths[k];
        sum += exp(-0.5 * z * z) / (density->widths[k] * density->areas[k]);
    }
    return sum / (double)density->n; /* the constant factor is that of every density */
}

static double draw(const struct density *density, struct weir_rng *rng)
{
    if (density->weights != NULL) {
        double left = weir_rng_f64(rng) * density->total;
        size_t k = 0;
        while (k + 1 < density->n && left >= density->weights[k]) {
            left -= density->weights[k++];
        }
        return ((double)k + 0.5) / (double)density->n;
    }
    size_t k = (size_t)weir_rng_below(rng, density->n);
    for (int i = 0; i < N_TRIES; i++) {
        double at = density->means[k] + density->widths[k] * weir_rng_normal(rng);
        if (at >= 0 && at <= 1) {
            return at;
        }
    }
    return weir_rng_f64(rng);
}

/* ---- the method ------------------------------------------------------------------------------ */

static void propose(const struct weir_sweep_state *state, struct weir_arena *arena,
                    double *out_point)
{
    const struct sweep_tpe *tpe = state->doc.method.options;
    const struct weir_sweep_space *space = &state->doc.space;
    struct ranked *trials = WEIR_ARENA_ARRAY(arena, state->n_trials + 1, struct ranked);
    size_t n, n_over = rank_trials(state, trials, &n);
    struct weir_rng rng;
    if ((int64_t)n_over < tpe->startup) {
        sweep_propose_random(state, arena, out_point);
        return;
    }
    size_t n_best = WEIR_MIN((size_t)ceil(tpe->gamma * (double)n_over), (size_t)BEST_MAX);
    weir_rng_init(&rng, (uint64_t)state->doc.seed,
                  (uint64_t)DRAWS << 32 | (uint64_t)(state->n_trials + 1));
    for (size_t i = 0; i < space->n; i++) {
        struct density best = fit(space, trials, n_best, i, arena);
        struct density others = fit(space, trials + n_best, n - n_best, i, arena);
        double greatest = -1;
        for (int64_t k = 0; k < tpe->candidates; k++) {
            double at = draw(&best, &rng);
            double ratio = density_at(&best, at) / density_at(&others, at);
            if (ratio > greatest) {
                greatest = ratio;
                out_point[i] = at;
            }
        }
    }
}

static const struct weir_option options_of[] = {
    WEIR_OPT_JSON(sweep_tpe, startup, "startup", INT, 0, "10", 1, WEIR_SWEEP_TRIALS_MAX,
                  "Trials by chance to begin with: so many must be over"),
    WEIR_OPT_JSON(sweep_tpe, gamma, "gamma", F64, 0, "0.15", 0.01, 0.9,
                  "Which part of the trials are the best ones"),
    WEIR_OPT_JSON(sweep_tpe, candidates, "candidates", INT, 0, "24", 1, 10000,
                  "Of so many points that look good, the one that looks best is tried"),
};

static const struct weir_sweep_method_ops ops = {.propose = propose};

const struct weir_kind weir_sweep_method_tpe = {
    .name = "tpe",
    .doc = "Points where the best trials so far lie and the others do not (a tree of Parzen "
           "estimators). Needs fewer trials than chance; learns from those that are over.",
    WEIR_KIND_OPTIONS(sweep_tpe, options_of),
    .ops = &ops,
};
