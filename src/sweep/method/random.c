#include "sweep/method/random.h"

void sweep_propose_random(const struct weir_sweep_state *state, struct weir_arena *arena,
                          double *out_point)
{
    (void)arena;
    weir_sweep_space_draw(&state->doc.space, (uint64_t)state->doc.seed,
                          (int64_t)state->n_trials + 1, out_point);
}

static const struct weir_sweep_method_ops ops = {.propose = sweep_propose_random};

const struct weir_kind weir_sweep_method_random = {
    .name = "random",
    .doc = "Points by chance, each equally likely. Hard to beat where few parameters matter.",
    .ops = &ops,
};
