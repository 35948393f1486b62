#include "sched/forecast/completions.h"

#include <string.h>

#define DIGIT_BITS 11
#define DIGITS     (1 << DIGIT_BITS)

int completions_compare(const struct completion *l, const struct completion *r)
{
    if (l->at_ms != r->at_ms) {
        return l->at_ms < r->at_ms ? -1 : 1;
    }
    if (l->job != r->job) {
        return l->job < r->job ? -1 : 1;
    }
    return l->slot < r->slot ? -1 : l->slot > r->slot;
}

/* Digit by digit from the lowest: most ends are within days, which is few digits. */
void completions_sort(struct completion *completions, struct completion *scratch, int32_t n,
                      int64_t least)
{
    uint64_t all = 0;
    for (int32_t i = 0; i < n; i++) {
        all |= (uint64_t)(completions[i].at_ms - least);
    }
    struct completion *from = completions, *to = scratch;
    for (int shift = 0; shift < 64 && all >> shift != 0; shift += DIGIT_BITS) {
        int32_t starts[DIGITS] = {0}, sum = 0;
        for (int32_t i = 0; i < n; i++) {
            starts[(uint64_t)(from[i].at_ms - least) >> shift & (DIGITS - 1)]++;
        }
        for (int d = 0; d < DIGITS; d++) {
            int32_t count = starts[d];
            starts[d] = sum;
            sum += count;
        }
        for (int32_t i = 0; i < n; i++) {
            to[starts[(uint64_t)(from[i].at_ms - least) >> shift & (DIGITS - 1)]++] = from[i];
        }
        struct completion *swapped = from;
        from = to;
        to = swapped;
    }
    if (from != completions) {
        memcpy(completions, from, (size_t)n * sizeof *completions);
    }
}
