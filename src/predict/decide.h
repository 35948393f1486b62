/** Decide: what a match means, given threshold and lists. Pure. */
#ifndef WEIR_PREDICT_DECIDE_H
#define WEIR_PREDICT_DECIDE_H

#include "predict/matcher.h"

#include <stddef.h>

enum verdict { VERDICT_GRANT, VERDICT_DENY, VERDICT_UNKNOWN, VERDICT_ERROR };

/** "grant", "deny", "unknown", "error". */
const char *verdict_text(enum verdict verdict);

/** Names in strcmp order (lists_sort). */
struct lists {
    const char **allow;
    size_t n_allow;
    const char **deny;
    size_t n_deny;
    enum verdict fallback; /**< Of a known person on no list. */
};

void lists_sort(struct lists *lists);

/**
 * Below the threshold (or without a score): unknown. Else, for the person `name`: on the deny list
 * → deny, also when on both; on the allow list → grant; on none → the fallback.
 */
enum verdict decide(double score, const char *name, double threshold, const struct lists *lists);

#endif
