/*
 * Counts what the whole process asks for, codecs and the C library included: the program's malloc
 * comes before everybody else's. Behind it stands the C library's, or the address sanitizer's
 * (which then still finds leaks). The thread sanitizer allocates before it is ready to be called:
 * there nothing is counted, and a sweep ends at once.
 */
#include "base/test_alloc.h"

#include <stddef.h>
#include <string.h>

#if !defined(__SANITIZE_THREAD__)

#if defined(__SANITIZE_ADDRESS__)
#define REAL(name) __interceptor_##name
#else
#define REAL(name) __libc_##name
#endif

#define PUBLIC __attribute__((visibility("default")))

void *REAL(malloc)(size_t size);
void *REAL(calloc)(size_t n, size_t size);
void *REAL(realloc)(void *p, size_t size);
void *REAL(memalign)(size_t alignment, size_t size);
PUBLIC void *malloc(size_t size);
PUBLIC void *calloc(size_t n, size_t size);
PUBLIC void *realloc(void *p, size_t size);
PUBLIC void *aligned_alloc(size_t alignment, size_t size);
PUBLIC char *strdup(const char *text);

PUBLIC void *malloc(size_t size)
{
    return test_alloc_must_fail() ? NULL : REAL(malloc)(size);
}

PUBLIC void *calloc(size_t n, size_t size)
{
    return test_alloc_must_fail() ? NULL : REAL(calloc)(n, size);
}

PUBLIC void *realloc(void *p, size_t size)
{
    return test_alloc_must_fail() ? NULL : REAL(realloc)(p, size);
}

PUBLIC void *aligned_alloc(size_t alignment, size_t size)
{
    return test_alloc_must_fail() ? NULL : REAL(memalign)(alignment, size);
}

/* The sanitizer's own one would not ask malloc. */
PUBLIC char *strdup(const char *text)
{
    size_t size = strlen(text) + 1;
    char *copy = malloc(size);
    return copy == NULL ? NULL : memcpy(copy, text, size);
}

#endif
