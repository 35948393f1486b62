/** ASHA: Li, Jamieson, Rostamizadeh, Gonina, Ben-tzur, Hardt, Recht, Talwalkar: "A System for Massively
 *  Parallel Hyperparameter Tuning", MLSys 2020. Points by chance; the rungs (sweep/rungs.h) do the rest. */
#include "sweep/method/random.h"

struct sweep_asha {
    struct weir_sweep_rungs rungs;
};

static const struct weir_sweep_rungs *rungs_of(const void *options)
{
    return &((const struct sweep_asha *)options)->rungs;
}

static const struct weir_option options_of[] = {WEIR_SWEEP_RUNGS_OPTIONS(sweep_asha, rungs)};

static const struct weir_sweep_method_ops ops = {
    .rungs = rungs_of,
    .propose = sweep_propose_random,
};

const struct weir_kind weir_sweep_method_asha = {
    .name = "asha",
    .doc = "Points by chance, of which bad ones are stopped early: at each rung the best 1/eta of "
           "those "
           "that have come there go on. Nobody waits for others.",
    WEIR_KIND_OPTIONS(sweep_asha, options_of),
    .ops = &ops,
};
