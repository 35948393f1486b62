#include "control/small.h"

#include "base/macros.h"

#include <stdbool.h>

/* Do all that are not small have whole CPUs, and ask for them? */
static bool is_whole(const struct small_node *node, const struct small_waits *waits)
{
    bool is = node->large % 1000 == 0;
    for (size_t i = 0; i < waits->n_large && is; i++) {
        is = waits->large[i] % 1000 == 0;
    }
    return is;
}

int64_t control_small_room(const struct small_node *node, const struct small_waits *waits)
{
    const int64_t most = CONTROL_SMALL_ROOM_MILLIS;
    int64_t taken = WEIR_MIN(node->small, most), open = WEIR_MIN(node->small + waits->small, most);
    int64_t free_milli = node->own - node->large;
    if (waits->n_large == 0 || is_whole(node, waits)) {
        return open;
    }
    if (waits->large[0] <= free_milli) {
        return taken;
    }
    int64_t short_of_it = waits->large[0] - free_milli + node->small - 1;
    return WEIR_MAX(WEIR_MIN(open, short_of_it), taken);
}
