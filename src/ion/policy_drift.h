/**
 * Drift of a trial: does a version that is tried answer otherwise than the version that serves, in the
 * same time? What the policy canary looks at beside its other guards. Pure.
 *
 * *Outputs* are counts of answers by bin, of the likeliest class and of its margin (serve/protocol/outputs.h), as
 * JSON: {"classes":[…],"scores":[…]}, at most 64 each, zeros at the end left out. They are counters;
 * a window is their difference since a step came into effect.
 *
 * The question is weir_drift_test's (stats/drift.h): were both versions' answers one sample divided by
 * chance, how often would they be divided so unevenly? It is exact for the numbers at hand, and asked of
 * classes and scores apart. Looking again and again would find something sooner or later, so there are
 * few looks and each has its part of the rate: a step is looked at when the version has given `window`
 * answers, then at twice as many, and so on, WEIR_POLICY_LOOKS_MAX times at most. With n steps each test
 * has the rate / (n · LOOKS_MAX · 2): by Bonferroni all looks of all steps trip with `rate` at most where
 * nothing differs and requests are independent.
 */
#ifndef WEIR_ION_POLICY_DRIFT_H
#define WEIR_ION_POLICY_DRIFT_H

#include "base/arena.h"

#include <stdbool.h>
#include <stdint.h>

#define WEIR_POLICY_OUTPUT_BINS 64
#define WEIR_POLICY_LOOKS_MAX   8 /* of a step */

/** As JSON in the arena. WEIR_POLICY_OUTPUT_BINS counts each. */
char *weir_policy_outputs_text(const int64_t *classes, const int64_t *scores,
                               struct weir_arena *arena);

/** What came between two looks, bin by bin; all of `now` if a counter went back, or base is NULL or of
 *  another form. NULL if `now` is. */
char *weir_policy_outputs_since(const char *base, const char *now, struct weir_arena *arena);

/** Answers that are counted; 0 for NULL, and for a text of another form. */
int64_t weir_policy_outputs_n(const char *outputs);

struct weir_policy_drift {
    bool is_drifted;
    const char
        *what; /**< "classes" or "scores": of which the following are, the smaller p of both. */
    double p_value, effect;
    int64_t n, live_n;
};

/** At how many answers of the version a step is looked at for the (n_looks + 1)th time; 0: never again. */
int64_t weir_policy_look_at(int64_t window, int64_t n_looks);

/**
 * Compare. The draws depend on n_looks alone: of the same inputs comes the same answer.
 *
 * @param rate  Of each of the two tests: 0.00001 to 0.2.
 * @return false: one of the two has fewer answers than can be tested (20), or is of another form.
 * Cost: under 1 ms where nothing differs; at most some tenths of a second.
 */
bool weir_policy_drift_test(const char *live, const char *outputs, double rate, int64_t n_looks,
                            struct weir_policy_drift *out);

#endif
