/** Which of many things go, by age and by size: pure. */
#ifndef WEIR_RETAIN_CHOOSE_H
#define WEIR_RETAIN_CHOOSE_H

#include "retain/retain.h"

#include <stdbool.h>

struct retain_item {
    int64_t time_ms; /**< When it ended or was last written; in the future: now. */
    int64_t bytes;
    bool is_needed;   /**< Must stay, but counts. */
    bool has_no_size; /**< Goes by its age alone, but counts. */
    bool has_keep;    /**< Its project has an age of its own: */
    int64_t keep_ms;  /**< this one, instead of the limit's. */
    bool is_left;     /**< Holds decisions that nobody ships any more. */
    bool goes;        /**< Out. */
    const char *name;
    const char *project; /**< Whose it is, or NULL. */
};

/**
 * Sort the items, oldest first (ties by name), and set `goes`: what is older than its age or the
 * limit's, and then the oldest until the rest is within its size. What is needed never goes.
 * @return How many go.
 */
size_t retain_choose(struct retain_item *items, size_t n, const struct weir_retain_limit *limit,
                     int64_t now_ms);

#endif
