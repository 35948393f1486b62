/**
 * Schedule: the learning rate as a pure function of the step.
 *
 *     struct weir_schedule schedule;
 *     struct weir_schedule_span span = {.learning_rate = 0.1, .epochs = 20, .warmup_epochs = 1,
 *                                       .steps_per_epoch = 375};
 *     weir_schedule_parse("cosine", &span, &schedule, err);
 *     double lr = weir_schedule_rate(&schedule, step);
 *
 * People write a schedule in epochs. It is kept in steps of the global batch. So it does not depend
 * on how many workers share the batch, and resuming needs only the number of the step.
 *
 * During warm-up (step < n_warmup) every schedule rises linearly: base * (step + 1) / n_warmup.
 * After it, with t = step - n_warmup and T = n_steps - n_warmup:
 *
 *     constant   base
 *     step       base * gamma^(number of milestones <= step)
 *     piecewise  the rate of the last milestone <= step; base before the first
 *     polynomial floor + (base - floor) * (1 - t / T)^power; floor from step n_steps on
 *     cosine     floor + (base - floor) * (1 + cos(pi * t / T)) / 2; floor from step n_steps on
 *
 * Sources: warm-up is Goyal et al. (arXiv 1706.02677, 2.2). cosine is Loshchilov and Hutter (ICLR
 * 2017, equation 5, without restarts). piecewise and polynomial are TensorFlow's
 * PiecewiseConstantDecay and PolynomialDecay; polynomial without floor is also PyTorch's
 * PolynomialLR.
 *
 * Any thread may call these functions. Nothing is allocated.
 */
#ifndef WEIR_NN_SCHEDULE_H
#define WEIR_NN_SCHEDULE_H

#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

#define WEIR_SCHEDULE_MILESTONES_MAX 16

struct weir_schedule_type;

struct weir_schedule {
    const struct weir_schedule_type *type;
    double base;       /**< Learning rate after warm-up. */
    double floor;      /**< cosine, polynomial: the final rate. Default 0. */
    double power;      /**< polynomial: > 0. Default 1: a line. */
    double gamma;      /**< step: factor at each milestone. Default 0.1. */
    uint64_t n_steps;  /**< Steps of the whole training, warm-up included. */
    uint64_t n_warmup; /**< Steps of warm-up. */
    /** step, piecewise: increasing; counted from the first step of training. */
    uint64_t milestones[WEIR_SCHEDULE_MILESTONES_MAX];
    size_t n_milestones;
    double rates[WEIR_SCHEDULE_MILESTONES_MAX]; /**< piecewise: the rate from each milestone on. */
    size_t n_rates;
};

/** One row of the table of schedules. */
struct weir_schedule_type {
    const char *name;
    const char *doc;  /**< One sentence, with the settings it takes. */
    const char *keys; /**< Settings, separated by blanks: "gamma milestones". */
    double (*rate)(const struct weir_schedule *schedule, uint64_t step); /**< After warm-up. */
};

/** All schedules, for help texts. Static. */
const struct weir_schedule_type *weir_schedule_types(size_t *out_n);

/** The training that a schedule covers. */
struct weir_schedule_span {
    double learning_rate;     /**< > 0. */
    double epochs;            /**< > 0. */
    double warmup_epochs;     /**< >= 0 and < epochs. */
    uint64_t steps_per_epoch; /**< > 0. */
};

/**
 * Reads a schedule: "NAME" or "NAME:key=value,key=value". The keys are:
 *
 *     cosine      floor (learning rate)
 *     polynomial  floor, power
 *     step        gamma, milestones (epochs, increasing, separated by "/": "milestones=30/60/80";
 *                 default: one half and three quarters of the epochs)
 *     piecewise   milestones, rates (>= 0, as many, separated by "/"); no defaults
 *
 * @return INVALID, naming the wrong part and what was expected.
 */
weir_status weir_schedule_parse(const char *text, const struct weir_schedule_span *span,
                                struct weir_schedule *out, struct weir_error *err) WEIR_MUST_CHECK;

/** Learning rate of step `step` (the first is 0). */
double weir_schedule_rate(const struct weir_schedule *schedule, uint64_t step);

#endif
