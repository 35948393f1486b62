/**
 * The rules of the optimisers over one run of elements. For the domain's own files; the formulas
 * are in optimizer.h.
 */
#ifndef WEIR_NN_OPTIMIZER_RULES_H
#define WEIR_NN_OPTIMIZER_RULES_H

#include "nn/optimizer.h"

#define OPTIMIZER_STATES_MAX 2

/** What an update of one step needs besides the slabs; worked out once per call, in double. */
struct step_scalars {
    float lr, momentum, alpha, beta1, beta2, epsilon;
    /** 1 - alpha and so on: rounded once, 1 - 0.999f would be off by 1e-5. */
    float rest_alpha, rest1, rest2;
    float step_size; /**< adam: lr / (1 - beta1^t) */
    float bc1;       /**< 1 - beta1^t */
    float sqrt_bc2;  /**< sqrt(1 - beta2^t) */
    float scale;     /**< Of the gradients: below 1 where their norm is clipped. */
};

/** How a run of elements takes part. */
struct run_traits {
    float decay;
    float trust; /**< lars, lamb: what the rate of the run's tensor is multiplied by. */
};

struct optimizer_rule {
    const char *name; /**< Of the type. */
    size_t n_states;
    bool has_momentum, is_nesterov;
    const char *states[OPTIMIZER_STATES_MAX];
    /** lamb: new moments, which the update then only reads. @return The sum of the squares of the
     *  directions that they make, in double, in an order that depends on n only. NULL: none. */
    double (*prepare)(const struct step_scalars *scalars, const struct run_traits *run, size_t n,
                      const float *restrict w, const float *restrict g, float *const *states);
    void (*update)(const struct step_scalars *scalars, const struct run_traits *run, size_t n,
                   float *restrict w, const float *restrict g, float *const *states);
};

/** The rules for one level of processors. The bits are the same at every level. */
struct optimizer_rule_table {
    const struct optimizer_rule *rules;
    size_t n_rules;
    /** In double, in an order that depends on n only. */
    double (*square_sum)(const float *x, size_t n);
};

/** Which of them a machine runs: cpu_level.h. */
extern const struct optimizer_rule_table optimizer_rules_v1, optimizer_rules_v3, optimizer_rules_v4;

/** The table for this machine. */
const struct optimizer_rule_table *optimizer_rules_of_machine(void);

/** The rule of a configuration that was checked, of a table. Static. */
const struct optimizer_rule *optimizer_rule_in(const struct optimizer_rule_table *table,
                                               const struct weir_optimizer_config *config);

#endif
