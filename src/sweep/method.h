/**
 * Methods: which point a sweep tries next.
 *
 * The kinds are a registry (base/kind.h), each a file src/sweep/method/NAME.c. What a method chooses is
 * a function of the document, its seed, the number of the trial, and what the earlier ones came to:
 * no clock, no other chance. Pure.
 */
#ifndef WEIR_SWEEP_METHOD_H
#define WEIR_SWEEP_METHOD_H

#include "sweep/sweep.h"

/** `ops` of a kind of methods. */
struct weir_sweep_method_ops {
    /** How many trials there are to make in all, when the document is read. @return INVALID, LIMIT.
     *  NULL: as many as are wanted. */
    weir_status (*n_points)(const struct weir_sweep_doc *doc, int64_t *out, struct weir_error *err);
    /** Rungs of its own, among its options; NULL: it has none. */
    const struct weir_sweep_rungs *(*rungs)(const void *options);
    /** The point of the next trial, whose number is state->n_trials + 1. */
    void (*propose)(const struct weir_sweep_state *state, struct weir_arena *arena,
                    double *out_point);
};

extern const struct weir_registry weir_sweep_methods;

#define WEIR_KIND(name) extern const struct weir_kind weir_sweep_method_##name;
#include "sweep/methods.def"
#undef WEIR_KIND

static inline const struct weir_sweep_method_ops *
weir_sweep_method_ops_of(const struct weir_sweep_doc *doc)
{
    return doc->method.kind->ops;
}

#endif
