/** The rules of the optimisers over one run of elements. The formulas are in optimizer.h. */
#ifndef WEIR_NN_OPTIMIZER_RULES_H
#define WEIR_NN_OPTIMIZER_RULES_H

#include "nn/optimizer.h"

#define OPTIMIZER_STATES_MAX 2

/** The scalars of one step, computed once per call in double. */
struct step_scalars {
    float lr, momentum, alpha, beta1, beta2, epsilon;
    /** 1 - alpha, 1 - beta1, 1 - beta2, rounded once: 1 - 0.999f would be off by 1e-5. */
    float rest_alpha, rest1, rest2;
    float step_size; /**< adam: lr / (1 - beta1^t) */
    float bc1;       /**< 1 - beta1^t */
    float sqrt_bc2;  /**< sqrt(1 - beta2^t) */
    float scale;     /**< Factor of the gradients; below 1 where their norm is clipped. */
};

/** The factors of a run of elements. */
struct run_traits {
    float decay;
    float trust; /**< lars, lamb: factor of the learning rate of the run's tensor. */
};

struct optimizer_rule {
    const char *name; /**< Name of the type. */
    size_t n_states;
    bool has_momentum, is_nesterov;
    const char *states[OPTIMIZER_STATES_MAX];
    /** lamb: makes the new moments, which update then only reads. NULL: none. @return The sum of
     *  the squares of the directions, in double, in an order that depends on n only. */
    double (*prepare)(const struct step_scalars *scalars, const struct run_traits *run, size_t n,
                      const float *restrict w, const float *restrict g, float *const *states);
    void (*update)(const struct step_scalars *scalars, const struct run_traits *run, size_t n,
                   float *restrict w, const float *restrict g, float *const *states);
};

/** The rules for one level of processors. The bits are the same at every level. */
struct optimizer_rule_table {
    const struct optimizer_rule *rules;
    size_t n_rules;
    /** Sum of squares in double, in an order that depends on n only. */
    double (*square_sum)(const float *x, size_t n);
};

/** The tables by level of processor (cpu_level.h). */
extern const struct optimizer_rule_table optimizer_rules_v1, optimizer_rules_v3, optimizer_rules_v4;

/** The table for this machine. */
const struct optimizer_rule_table *optimizer_rules_of_machine(void);

/** The rule of a checked configuration in a table. Static. */
const struct optimizer_rule *optimizer_rule_in(const struct optimizer_rule_table *table,
                                               const struct weir_optimizer_config *config);

#endif
