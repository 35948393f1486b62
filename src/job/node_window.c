#include "job/node_window.h"

#include "base/clock.h"

weir_status weir_node_window_set(struct weir_node *node, int64_t from_ms, int64_t until_ms,
                                 int64_t now_ms, struct weir_error *err)
{
    int64_t most_ms = now_ms + WEIR_NODE_WINDOW_AHEAD_MAX_MS;
    if (from_ms == 0 && until_ms == 0) {
        node->closed_from_ms = node->closed_until_ms = 0;
        return WEIR_OK;
    }
    if (from_ms <= 0 || until_ms < 0 || from_ms > most_ms || until_ms > most_ms) {
        return weir_error_set(
            err, WEIR_ERR_INVALID,
            "$.closed_from_ms: a node closes at a time within a year from now, and "
            "opens again within one");
    }
    from_ms = from_ms > now_ms ? from_ms : now_ms;
    if (until_ms != 0 && until_ms <= from_ms) {
        return weir_error_set(
            err, WEIR_ERR_INVALID,
            "$.closed_until_ms: it is not after the time from which node %.60s is "
            "closed, or has passed",
            node->name);
    }
    node->closed_from_ms = from_ms;
    node->closed_until_ms = until_ms;
    return WEIR_OK;
}

bool weir_node_window_is_ahead(const struct weir_node *node, int64_t now_ms)
{
    return node->closed_from_ms > 0 &&
           (node->closed_until_ms == 0 || node->closed_until_ms > now_ms);
}

int64_t weir_node_window_next_ms(const struct weir_node *node, int64_t now_ms)
{
    if (node->closed_from_ms > now_ms) {
        return node->closed_from_ms;
    }
    return node->closed_until_ms > now_ms ? node->closed_until_ms : INT64_MAX;
}

char *weir_node_window_text(const struct weir_node *node, int64_t now_ms, struct weir_arena *arena)
{
    char from[WEIR_TIME_TEXT_BYTES], until[WEIR_TIME_TEXT_BYTES];
    if (!weir_node_window_is_ahead(node, now_ms)) {
        return NULL;
    }
    weir_time_format(node->closed_from_ms, from);
    weir_time_format(node->closed_until_ms, until);
    bool has_begun = node->closed_from_ms <= now_ms;
    return weir_arena_printf(arena, "%s%s%s%s", has_begun ? "is closed" : "closes at ",
                             has_begun ? "" : from, node->closed_until_ms != 0 ? " until " : "",
                             node->closed_until_ms != 0 ? until : "");
}
