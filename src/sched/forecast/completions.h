/** The completions of jobs in the order in which they are expected. */
#ifndef WEIR_SCHED_COMPLETIONS_H
#define WEIR_SCHED_COMPLETIONS_H

#include <stdint.h>

/** The expected end of a running job, or of a slot. */
struct completion {
    int64_t at_ms;
    int32_t job, slot; /**< Slot -1: a running job. */
};

/** Negative if l is before r: by time, job and slot. */
int completions_compare(const struct completion *l, const struct completion *r);

/**
 * Sort by time; equal times keep their order. `least` is no later than any; scratch has room for n.
 * Cost: linear.
 */
void completions_sort(struct completion *completions, struct completion *scratch, int32_t n,
                      int64_t least);

#endif
