#include "slab.h"

#include <sys/mman.h>

#define HUGE_PAGE_BYTES ((size_t)2 << 20)

_Bool slab_map(struct slab *slab, size_t size_bytes)
{
    /* Whole huge pages, or the tail of the slab would be thousands of small ones. */
    size_t unit = size_bytes >= HUGE_PAGE_BYTES ? HUGE_PAGE_BYTES : 4096;
    size_t mapped = (size_bytes + unit - 1) / unit * unit;
    *slab = (struct slab){NULL, 0, 0};
    if (mapped == 0) {
        return 1;
    }
    void *base = mmap(NULL, mapped, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base == MAP_FAILED) {
        return 0;
    }
    if (unit == HUGE_PAGE_BYTES) {
        madvise(base, mapped, MADV_HUGEPAGE); /* a hint: without it everything works, slower */
    }
    *slab = (struct slab){base, mapped, 0};
    return 1;
}

void slab_unmap(struct slab *slab)
{
    if (slab->base) {
        munmap(slab->base, slab->size_bytes);
    }
    *slab = (struct slab){NULL, 0, 0};
}

void slab_populate(const struct slab *slab)
{
    for (size_t at = 0; at < slab->size_bytes; at += 4096) {
        ((volatile char *)slab->base)[at] = 0;
    }
}

void *slab_take(struct slab *slab, size_t size_bytes)
{
    size_t at = (slab->used_bytes + 63) / 64 * 64;
    slab->used_bytes = at + size_bytes;
    return slab->base ? slab->base + at : NULL;
}
