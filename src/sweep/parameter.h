/**
 * Parameters of a sweep, and the space that they span.
 *
 * A trial is a point of the unit cube, one coordinate from 0 to 1 for each parameter; a kind of
 * parameter says what value a coordinate stands for. So methods know no kinds: they choose points.
 *
 * The kinds are a registry (base/kind.h). Everything here is pure.
 */
#ifndef WEIR_SWEEP_PARAMETER_H
#define WEIR_SWEEP_PARAMETER_H

#include "base/arena.h"
#include "base/json.h"
#include "base/kind.h"
#include "base/status.h"

/** Most parameters of a sweep, and most values of a choice. */
#define WEIR_SWEEP_PARAMETERS_MAX 64
#define WEIR_SWEEP_CHOICES_MAX    1024

struct weir_sweep_parameter {
    const char *name; /**< [A-Za-z_][A-Za-z0-9_]*, at most 63 bytes. */
    const struct weir_kind *kind;
    const void *options;
};

struct weir_sweep_space {
    struct weir_sweep_parameter *parameters;
    size_t n;
};

/** `ops` of a kind of parameters. */
struct weir_sweep_parameter_ops {
    bool is_choice; /**< Its values have no order: nothing lies between two of them. */
    /** What is wrong with the options together; NULL: nothing can be. */
    weir_status (*check)(const void *options, const char *where, struct weir_error *err);
    /** How many values there are, at most WEIR_SWEEP_CHOICES_MAX, for a grid or a choice; 0: it must be
     *  said how many a grid takes. */
    size_t (*n_values)(const void *options);
    /** The coordinate of value i of n. */
    double (*place)(const void *options, size_t i, size_t n);
    /** The value at a coordinate from 0 to 1. A new reference. */
    json_t *(*value)(const void *options, double at);
};

extern const struct weir_registry weir_sweep_parameters;

#define WEIR_KIND(name) extern const struct weir_kind weir_sweep_parameter_##name;
#include "sweep/parameters.def"
#undef WEIR_KIND

/**
 * Read {"lr": {"kind": "log_uniform", "min": 0.001, "max": 1}, "batch": [32, 64]}; a list is a choice.
 * @param object  Lives as long as the space.
 * @return INVALID, LIMIT with the place of what is wrong.
 */
weir_status weir_sweep_space_read(const json_t *object, const char *where, struct weir_arena *arena,
                                  struct weir_sweep_space *out,
                                  struct weir_error *err) WEIR_MUST_CHECK;

/** {"lr": 0.03, "batch": 64} of a point of space->n coordinates. A new reference. */
json_t *weir_sweep_space_values(const struct weir_sweep_space *space, const double *point);

/** n coordinates that are equally likely everywhere: a function of seed and trial alone. */
void weir_sweep_space_draw(const struct weir_sweep_space *space, uint64_t seed, int64_t trial,
                           double *out_point);

static inline const struct weir_sweep_parameter_ops *
weir_sweep_parameter_ops_of(const struct weir_sweep_parameter *parameter)
{
    return parameter->kind->ops;
}

#endif
