/* Counts what our own objects ask for: the linker hands their calls to this file (--wrap), those of
 * shared libraries stay as they are. */
#include "base/test_alloc.h"

#include <stddef.h>
#include <sys/mman.h>

void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t size);
void *__real_aligned_alloc(size_t alignment, size_t size);
char *__real_strdup(const char *text);
void *__real_mmap(void *at, size_t size, int protection, int flags, int fd, off_t offset);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t size);
void *__wrap_aligned_alloc(size_t alignment, size_t size);
char *__wrap_strdup(const char *text);
void *__wrap_mmap(void *at, size_t size, int protection, int flags, int fd, off_t offset);

void *__wrap_malloc(size_t size)
{
    return test_alloc_must_fail() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t n, size_t size)
{
    return test_alloc_must_fail() ? NULL : __real_calloc(n, size);
}

void *__wrap_realloc(void *p, size_t size)
{
    return test_alloc_must_fail() ? NULL : __real_realloc(p, size);
}

void *__wrap_aligned_alloc(size_t alignment, size_t size)
{
    return test_alloc_must_fail() ? NULL : __real_aligned_alloc(alignment, size);
}

char *__wrap_strdup(const char *text)
{
    return test_alloc_must_fail() ? NULL : __real_strdup(text);
}

void *__wrap_mmap(void *at, size_t size, int protection, int flags, int fd, off_t offset)
{
    return test_alloc_must_fail() ? MAP_FAILED
                                  : __real_mmap(at, size, protection, flags, fd, offset);
}
