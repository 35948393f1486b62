/** Points by chance: what methods begin with, or have nothing better than. */
#ifndef WEIR_SWEEP_METHOD_RANDOM_H
#define WEIR_SWEEP_METHOD_RANDOM_H

#include "sweep/method.h"

/** `propose` of a method: a point that is equally likely everywhere. */
void sweep_propose_random(const struct weir_sweep_state *state, struct weir_arena *arena,
                          double *out_point);

#endif
