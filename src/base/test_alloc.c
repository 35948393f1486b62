#include "base/test_alloc.h"

#include <errno.h>
#include <stdatomic.h>

static atomic_long n_allocations, fail_at = -1;
static atomic_bool is_armed;

bool test_alloc_must_fail(void)
{
    if (!atomic_load(&is_armed) || atomic_fetch_add(&n_allocations, 1) != atomic_load(&fail_at)) {
        return false;
    }
    errno = ENOMEM;
    return true;
}

void test_alloc_fail(long n)
{
    atomic_store(&n_allocations, 0);
    atomic_store(&fail_at, n);
    atomic_store(&is_armed, true);
}

bool test_alloc_end(void)
{
    atomic_store(&is_armed, false);
    long at = atomic_load(&fail_at);
    return at >= 0 && atomic_load(&n_allocations) > at;
}

long test_alloc_count(void)
{
    return atomic_load(&n_allocations);
}
