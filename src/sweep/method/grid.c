#include "sweep/method.h"

/* How many values of a parameter are tried; 0: nobody has said. */
static size_t n_values(const struct weir_sweep_parameter *parameter)
{
    return weir_sweep_parameter_ops_of(parameter)->n_values(parameter->options);
}

static weir_status n_points(const struct weir_sweep_doc *doc, int64_t *out, struct weir_error *err)
{
    int64_t n = 1;
    for (size_t i = 0; i < doc->space.n; i++) {
        const struct weir_sweep_parameter *one = &doc->space.parameters[i];
        size_t n_here = n_values(one);
        if (n_here == 0) {
            return weir_error_set(err, WEIR_ERR_INVALID,
                                  "$.parameters.%s: a grid takes so many values of it as `points` "
                                  "says: say it, or give a list of values",
                                  one->name);
        }
        if (n > INT64_MAX / (int64_t)n_here) {
            return weir_error_set(err, WEIR_ERR_LIMIT,
                                  "$.parameters: the grid has more points than can be counted");
        }
        n *= (int64_t)n_here;
    }
    *out = n;
    return WEIR_OK;
}

/* The number of the trial, from 0, with the last parameter as its lowest digit. */
static void propose(const struct weir_sweep_state *state, struct weir_arena *arena,
                    double *out_point)
{
    const struct weir_sweep_space *space = &state->doc.space;
    size_t rest = state->n_trials;
    (void)arena;
    for (size_t i = space->n; i-- > 0;) {
        const struct weir_sweep_parameter *one = &space->parameters[i];
        size_t n = n_values(one);
        out_point[i] = weir_sweep_parameter_ops_of(one)->place(one->options, rest % n, n);
        rest /= n;
    }
}

static const struct weir_sweep_method_ops ops = {.n_points = n_points, .propose = propose};

const struct weir_kind weir_sweep_method_grid = {
    .name = "grid",
    .doc = "Every combination of the parameters' values, once; the last parameter changes fastest.",
    .ops = &ops,
};
