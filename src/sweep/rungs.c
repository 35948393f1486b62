#include "sweep/rungs.h"

#include <math.h>

weir_status weir_sweep_rungs_check(const struct weir_sweep_rungs *rungs, const char *where,
                                   struct weir_error *err)
{
    return rungs->max_resource == 0 || rungs->min_resource < rungs->max_resource
               ? WEIR_OK
               : weir_error_set(err, WEIR_ERR_INVALID,
                                "%s: min_resource, %g, is not less than max_resource, %g", where,
                                rungs->min_resource, rungs->max_resource);
}

double weir_sweep_rungs_level(const struct weir_sweep_rungs *rungs, size_t k)
{
    double level = rungs->min_resource * pow((double)rungs->eta, (double)k);
    bool is_there = rungs->eta >= 2 && k < WEIR_SWEEP_RUNGS_MAX && isfinite(level) &&
                    (rungs->max_resource == 0 || level < rungs->max_resource);
    return is_there ? level : INFINITY;
}

bool weir_sweep_is_better(double left, double right, bool maximizes)
{
    if (isnan(left) || isnan(right)) {
        return !isnan(left) && isnan(right);
    }
    return maximizes ? left > right : left < right;
}

size_t weir_sweep_rungs_rank(const double *values, size_t n, size_t own, bool maximizes)
{
    size_t rank = 1;
    for (size_t i = 0; i < n; i++) {
        bool is_first = weir_sweep_is_better(values[i], values[own], maximizes) ||
                        (i < own && !weir_sweep_is_better(values[own], values[i], maximizes));
        rank += i != own && is_first;
    }
    return rank;
}

bool weir_sweep_rungs_goes_on(const struct weir_sweep_rungs *rungs, const double *values, size_t n,
                              size_t own, bool maximizes, size_t *out_rank)
{
    size_t rank = weir_sweep_rungs_rank(values, n, own, maximizes);
    size_t n_go_on = n / (size_t)rungs->eta;
    if (!weir_sweep_rungs_wait(rungs)) { /* who is not stopped now is the best one so far */
        n_go_on = WEIR_MAX(n_go_on, (size_t)1);
    }
    if (out_rank != NULL) {
        *out_rank = rank;
    }
    return rank <= n_go_on;
}
