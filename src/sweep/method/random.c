#include "sweep/method/random.h"

#define ROUNDS 4

/* splitmix64: every bit of the answer depends on every bit of the question. */
static uint64_t mix(uint64_t x)
{
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

/* The i-th of the numbers 0 … n - 1 in an order that the seed chooses: a Feistel network over the next even number of
 * bits, walked on until it is below n. */
static uint64_t shuffled(uint64_t i, uint64_t n, uint64_t seed)
{
    unsigned half = 1;
    while (half < 31 && ((uint64_t)1 << (2 * half)) < n) {
        half++;
    }
    const uint64_t mask = ((uint64_t)1 << half) - 1;
    do {
        uint64_t left = i >> half, right = i & mask;
        for (uint64_t round = 0; round < ROUNDS; round++) {
            uint64_t next = left ^ (mix(seed ^ mix(right ^ (round << 32))) & mask);
            left = right;
            right = next;
        }
        i = left << half | right;
    } while (i >= n);
    return i;
}

/* How many points there are if every parameter is a choice; 0: a parameter is none, or they are too many to matter. */
static uint64_t count_points(const struct weir_sweep_space *space)
{
    uint64_t n = 1;
    for (size_t i = 0; i < space->n; i++) {
        const struct weir_sweep_parameter *one = &space->parameters[i];
        const struct weir_sweep_parameter_ops *ops = weir_sweep_parameter_ops_of(one);
        size_t n_here = ops->is_choice ? ops->n_values(one->options) : 0;
        if (n_here == 0 || n > ((uint64_t)1 << 62) / n_here) {
            return 0;
        }
        n *= n_here;
    }
    return n;
}

void sweep_propose_random(const struct weir_sweep_state *state, struct weir_arena *arena,
                          double *out_point)
{
    const struct weir_sweep_space *space = &state->doc.space;
    uint64_t n = count_points(space), seed = (uint64_t)state->doc.seed;
    (void)arena;
    if (n == 0) {
        weir_sweep_space_draw(space, seed, (int64_t)state->n_trials + 1, out_point);
        return;
    }
    uint64_t turn = state->n_trials / n;
    uint64_t rest = shuffled(state->n_trials % n, n, mix(seed ^ mix(turn)));
    for (size_t i = 0; i < space->n; i++) {
        const struct weir_sweep_parameter *one = &space->parameters[i];
        const struct weir_sweep_parameter_ops *ops = weir_sweep_parameter_ops_of(one);
        size_t n_here = ops->n_values(one->options);
        out_point[i] = ops->place(one->options, rest % n_here, n_here);
        rest /= n_here;
    }
}

static const struct weir_sweep_method_ops ops = {.propose = sweep_propose_random};

const struct weir_kind weir_sweep_method_random = {
    .name = "random",
    .doc = "Points by chance, each equally likely. Hard to beat where few parameters matter. Of "
           "lists alone no "
           "combination comes twice before all have come.",
    .ops = &ops,
};
