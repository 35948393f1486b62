/** Decide: what a match means, given threshold and lists. Pure. */
#ifndef WEIR_PREDICT_DECIDE_H
#define WEIR_PREDICT_DECIDE_H

#include "predict/matcher.h"

#include <stdbool.h>
#include <stddef.h>

enum verdict { VERDICT_GRANT, VERDICT_DENY, VERDICT_UNKNOWN, VERDICT_ERROR, VERDICT_LABEL };

/** "grant", "deny", "unknown", "error", "label". */
const char *verdict_text(enum verdict verdict);

/** Names in strcmp order (lists_sort). */
struct lists {
    const char **allow;
    size_t n_allow;
    const char **deny;
    size_t n_deny;
    const char **locked; /**< Doors that are locked down by hand. */
    size_t n_locked;
    enum verdict fallback; /**< Of a known person on no list. */
};

void lists_sort(struct lists *lists);

/** From which scores on a face counts as somebody's. */
struct thresholds {
    double known;
    double barred; /**< For people on the deny list. */
};

/** Is the person (NULL: nobody) on the deny list? */
bool lists_bar(const struct lists *lists, const char *name);

/** What holds for a person who is recognised. */
enum verdict decide_person(const char *name, const struct lists *lists);

/** The one that holds for the person `name` (NULL: nobody). */
double decide_threshold(const char *name, const struct thresholds *thresholds,
                        const struct lists *lists);

/**
 * Below the threshold that holds for the person `name` (or without a score): unknown. Else: on the
 * deny list → deny, also when on both; on the allow list → grant; on none → the fallback.
 */
enum verdict decide(double score, const char *name, const struct thresholds *thresholds,
                    const struct lists *lists);

/** Of a classifier's likeliest label: below the threshold (or without a score), or a label that
 *  stands for none of the others: unknown. Else: label. */
enum verdict decide_label(double score, double threshold, bool is_rejected);

#endif
