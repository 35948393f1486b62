#include "job/place.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/** Append to the reason; what does not fit is cut. */
static void say(char reason[WEIR_PLACE_REASON_BYTES], const char *fmt, int64_t number,
                const char *text)
{
    size_t len = strlen(reason);
    (void)snprintf(reason + len, WEIR_PLACE_REASON_BYTES - len, "%s%" PRId64 "%s", fmt, number,
                   text);
}

static void explain(const int64_t *slots, size_t n_tasks, const struct weir_place_node *nodes,
                    size_t n_nodes, char reason[WEIR_PLACE_REASON_BYTES])
{
    int64_t needed = 0, largest = 0;
    size_t n_live = 0;
    for (size_t i = 0; i < n_tasks; i++) {
        needed = slots[i] > needed ? slots[i] : needed;
    }
    for (size_t i = 0; i < n_nodes; i++) {
        if (nodes[i].is_live) {
            n_live++;
            largest = nodes[i].cpu_slots > largest ? nodes[i].cpu_slots : largest;
        }
    }
    reason[0] = '\0';
    if (n_nodes == 0) {
        (void)snprintf(reason, WEIR_PLACE_REASON_BYTES, "no node has registered yet");
        return;
    }
    if (n_live == 0) {
        say(reason, "no node is ready: ", (int64_t)n_nodes,
            " known, all lost, draining, or not heard of since the server started");
        return;
    }
    const char *unit = needed == 1 ? " CPU slot" : " CPU slots";
    if (n_tasks > 1) {
        say(reason, "needs ", (int64_t)n_tasks, " tasks together, each of up to ");
        say(reason, "", needed, unit);
    } else {
        say(reason, "needs ", needed, unit);
    }
    if (needed > largest) {
        say(reason, ", but the largest node has ", largest, "");
        return;
    }
    for (size_t i = 0; i < n_nodes; i++) {
        if (nodes[i].is_live) {
            say(reason, ", ", nodes[i].cpu_free, " free on ");
            size_t len = strlen(reason);
            (void)snprintf(reason + len, WEIR_PLACE_REASON_BYTES - len, "%s%s", nodes[i].name,
                           nodes[i].is_full ? " (no room for more tasks' files)" : "");
        }
    }
}

bool weir_place(const int64_t *slots, size_t n_tasks, struct weir_place_node *nodes, size_t n_nodes,
                size_t *out_node, char reason[WEIR_PLACE_REASON_BYTES])
{
    size_t n_placed = 0;
    for (; n_placed < n_tasks; n_placed++) {
        size_t i_node = 0;
        while (i_node < n_nodes && !(nodes[i_node].is_live && !nodes[i_node].is_full &&
                                     nodes[i_node].cpu_free >= slots[n_placed])) {
            i_node++;
        }
        if (i_node == n_nodes) {
            break;
        }
        nodes[i_node].cpu_free -= slots[n_placed];
        out_node[n_placed] = i_node;
    }
    if (n_placed == n_tasks) {
        return true;
    }
    for (size_t i = 0; i < n_placed; i++) {
        nodes[out_node[i]].cpu_free += slots[i];
    }
    explain(slots, n_tasks, nodes, n_nodes, reason);
    return false;
}
