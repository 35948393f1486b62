/**
 * For tests: memory that runs out at a chosen allocation.
 *
 * A program links one of two counters (cmake/weir_library.cmake, weir_alloc_sweep): the allocations
 * of our own code alone, or those of the whole process, libraries included. A sweep is then
 *
 *     for (long n = 0, was_hit = true; was_hit; n++) {
 *         test_alloc_fail(n);
 *         weir_status status = what_is_tested();
 *         was_hit = test_alloc_end();
 *         ck_assert(status == (was_hit ? WEIR_ERR_NOMEM : WEIR_OK));
 *     }
 *
 * Check allocates as well: no ck_assert between the two calls. All threads of the process count.
 */
#ifndef WEIR_BASE_TEST_ALLOC_H
#define WEIR_BASE_TEST_ALLOC_H

#include <stdbool.h>

/** From now on count allocations, and let number `n` (0 is the next one) fail, once; −1: none. */
void test_alloc_fail(long n);

/** Back to normal. @return whether the failure took place. */
bool test_alloc_end(void);

/** Allocations counted between the last test_alloc_fail and test_alloc_end. */
long test_alloc_count(void);

/** For the two counters: count one. @return true if it must fail; errno is ENOMEM then. */
bool test_alloc_must_fail(void);

#endif
