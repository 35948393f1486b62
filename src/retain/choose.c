#include "retain/choose.h"

#include <stdlib.h>
#include <string.h>

static int by_age(const void *a, const void *b)
{
    const struct retain_item *left = a, *right = b;
    if (left->time_ms != right->time_ms) {
        return left->time_ms < right->time_ms ? -1 : 1;
    }
    return strcmp(left->name, right->name);
}

size_t retain_choose(struct retain_item *items, size_t n, const struct weir_retain_limit *limit,
                     int64_t now_ms)
{
    int64_t total = 0;
    size_t n_going = 0;
    if (n > 0) {
        qsort(items, n, sizeof *items, by_age);
    }
    for (size_t i = 0; i < n; i++) {
        total += items[i].bytes;
    }
    for (size_t i = 0; i < n; i++) {
        int64_t keep_ms = items[i].has_keep ? items[i].keep_ms : limit->keep_ms;
        bool is_old = keep_ms >= 0 && now_ms - items[i].time_ms >= keep_ms;
        bool is_over = limit->max_bytes >= 0 && total > limit->max_bytes && !items[i].has_no_size;
        items[i].goes = !items[i].is_needed && (is_old || is_over);
        if (items[i].goes) {
            total -= items[i].bytes;
            n_going++;
        }
    }
    return n_going;
}
