#include "retain/pace.h"

#include "base/macros.h"

#include <stdbool.h>

#define FIRST_ENTRIES 128

static int64_t most_rows(const struct retain_pace *pace)
{
    return WEIR_MAX((int64_t)1, PACE_ENTRIES_MAX / pace->n_entries);
}

int64_t retain_pace_rows(const struct retain_pace *pace)
{
    int64_t n = pace->n_rows > 0 ? pace->n_rows : FIRST_ENTRIES / pace->n_entries;
    return WEIR_MIN(most_rows(pace), WEIR_MAX((int64_t)1, n));
}

void retain_pace_note(struct retain_pace *pace, int64_t n_removed, int64_t took_us)
{
    int64_t n = retain_pace_rows(pace);
    if (took_us > PACE_AIM_US) {
        /* What was removed took so long, not what might have been. */
        int64_t n_long = WEIR_MAX((int64_t)1, WEIR_MIN(n, n_removed));
        pace->too_many = n_long;
        n = n_long / (took_us > PACE_STEP_MAX_US ? 4 : 2);
    } else if (n_removed >= n && took_us < PACE_AIM_US / 2) {
        int64_t grown = n + n / 8 + 1;
        bool is_near = pace->too_many > 0 && grown >= pace->too_many;
        n = is_near ? n + 1 : grown;
        if (n > pace->too_many) {
            pace->too_many = 0; /* it was not the number: somebody had the processor */
        }
    }
    pace->n_rows = WEIR_MIN(most_rows(pace), WEIR_MAX((int64_t)1, n));
}
