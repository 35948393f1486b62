/**
 * Back-off: how long to wait before the same is tried again, so that those who wait do not step together.
 *
 *     struct weir_backoff backoff = {.base_ms = 100, .max_ms = 5000};
 *     while (!try_it()) { pause_ms(weir_backoff_next_ms(&backoff)); }
 */
#ifndef WEIR_BASE_BACKOFF_H
#define WEIR_BASE_BACKOFF_H

#include <stdint.h>

/** Exponential back-off with full jitter: the k-th delay is uniform in [base/2, base] · 2^k, at
 * most max. */
struct weir_backoff {
    int64_t base_ms, max_ms;
    unsigned n_tries;
    uint64_t seed; /**< Philox key; 0 is replaced by random bits at the first use. */
};

int64_t weir_backoff_next_ms(struct weir_backoff *backoff);
void weir_backoff_reset(struct weir_backoff *backoff);

#endif
