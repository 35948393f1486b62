#include "base/complaint.h"

#include "base/clock.h"

#include <stddef.h>

bool weir_complaint_is_due(struct weir_complaint *complaint, int64_t *out_n_unsaid)
{
    int64_t now_ms = weir_mono_ms(), said_ms = atomic_load(&complaint->said_ms);
    if ((said_ms != 0 && now_ms - said_ms < WEIR_COMPLAINT_MS) ||
        !atomic_compare_exchange_strong(&complaint->said_ms, &said_ms, now_ms)) {
        atomic_fetch_add(&complaint->n_unsaid, 1);
        return false;
    }
    int64_t n_unsaid = atomic_exchange(&complaint->n_unsaid, 0);
    if (out_n_unsaid != NULL) {
        *out_n_unsaid = n_unsaid;
    }
    return true;
}

bool weir_complaint_end(struct weir_complaint *complaint)
{
    atomic_store(&complaint->n_unsaid, 0);
    return atomic_exchange(&complaint->said_ms, 0) != 0;
}
