#include "region.h"

#include "base/grow.h"
#include "base/macros.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define ALIGN       ((size_t)64)
#define HUGE_PAGE   ((size_t)2 << 20)
#define LEAST_BYTES ((size_t)1 << 20)
#define FRONT_BYTES ALIGN /* Before the first block: oneDNN's pools of bytes read a few in front. */

weir_status region_open(struct region *region, size_t most_bytes, struct weir_error *err)
{
    *region = (struct region){.base = NULL};
    for (size_t n = WEIR_MAX(most_bytes, LEAST_BYTES); n >= LEAST_BYTES; n /= 2) {
        n = (n + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;
        void *base = mmap(NULL, n, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (base != MAP_FAILED) {
            (void)madvise(base, n, MADV_HUGEPAGE); /* a hint */
            region->base = base;
            region->n_bytes = n;
            return WEIR_OK;
        }
        if (n == HUGE_PAGE) {
            break;
        }
    }
    return weir_error_set(err, WEIR_ERR_NOMEM, "no memory for a model's run");
}

void region_close(struct region *region)
{
    if (region->base != NULL) {
        (void)munmap(region->base, region->n_bytes);
    }
    free(region->live);
    *region = (struct region){.base = NULL};
}

void region_begin(struct region *region)
{
    region->n_live = 0;
}

/* The first gap that is large enough, and the index at which a block there is to stand. */
static size_t find_gap(const struct region *region, size_t n_bytes, size_t *out_i)
{
    size_t at = FRONT_BYTES, i = 0;
    for (; i < region->n_live; i++) {
        const struct region_block *block = region->live[i];
        if (block->offset - at >= n_bytes) {
            break;
        }
        at = block->offset + block->n_bytes;
    }
    *out_i = i;
    return at;
}

weir_status region_take(struct region *region, size_t n_bytes, struct region_block *block,
                        struct weir_error *err)
{
    size_t i, whole = n_bytes < region->n_bytes ? (n_bytes / ALIGN + 1) * ALIGN : region->n_bytes;
    size_t at = find_gap(region, whole, &i);
    if (at > region->n_bytes - whole || n_bytes >= region->n_bytes) {
        return weir_error_set(err, WEIR_ERR_LIMIT,
                              "a run needs more than the %zu MiB that it may hold",
                              region->n_bytes >> 20);
    }
    if (weir_grow(&region->live, sizeof(struct region_block *), region->n_live,
                  &region->live_cap) != WEIR_OK) {
        return weir_error_set(err, WEIR_ERR_NOMEM, "no memory for a model's run");
    }
    memmove(region->live + i + 1, region->live + i,
            (region->n_live - i) * sizeof(struct region_block *));
    region->live[i] = block;
    region->n_live++;
    *block = (struct region_block){.offset = at, .n_bytes = whole, .n_references = 1};
    region->peak_bytes = WEIR_MAX(region->peak_bytes, at + whole);
    return WEIR_OK;
}

void region_give(struct region *region, struct region_block *block)
{
    if (--block->n_references > 0) {
        return;
    }
    for (size_t i = 0; i < region->n_live; i++) {
        if (region->live[i] == block) {
            region->n_live--;
            memmove(region->live + i, region->live + i + 1,
                    (region->n_live - i) * sizeof(struct region_block *));
            return;
        }
    }
}

bool region_has(const struct region *region, const void *address)
{
    return (const char *)address >= region->base &&
           (const char *)address < region->base + region->n_bytes;
}
