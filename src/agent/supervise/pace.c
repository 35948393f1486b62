#include "agent/supervise/pace.h"

#include "base/macros.h"

#include <stdbool.h>

int64_t pace_wait_ms(struct pace *pace, int64_t now_ms)
{
    int64_t n_back = (now_ms - pace->since_ms) / PACE_TICK_MS;
    if (pace->n_spent <= n_back) {
        *pace = (struct pace){.since_ms = now_ms};
    } else {
        pace->n_spent -= n_back;
        pace->since_ms += n_back * PACE_TICK_MS;
    }
    bool is_spent = pace->n_spent >= PACE_BURST;
    pace->n_spent = WEIR_MIN(pace->n_spent, (int64_t)PACE_BURST) + 1;
    return is_spent ? PACE_TICK_MS : 0;
}
