#include "base/arena.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ARENA_ALIGN             16
#define ARENA_FIRST_BYTES       ((size_t)1 << 10)
#define ARENA_BLOCK_BYTES       ((size_t)16 << 10)
#define ARENA_DEFAULT_MAX_BYTES ((size_t)256 << 20)

struct weir_arena_block {
    struct weir_arena_block *next;
    size_t used, cap;
    _Alignas(ARENA_ALIGN) unsigned char data[];
};

__attribute__((noreturn)) static void die(const char *why, size_t size)
{
    (void)fprintf(stderr, "weir: %s (%zu bytes wanted)\n", why, size);
    abort();
}

void weir_arena_init(struct weir_arena *arena, size_t max_bytes)
{
    *arena = (struct weir_arena){.max_bytes = max_bytes != 0 ? max_bytes : ARENA_DEFAULT_MAX_BYTES};
}

void weir_arena_fini(struct weir_arena *arena)
{
    if (arena == NULL) {
        return;
    }
    for (struct weir_arena_block *block = arena->head; block != NULL;) {
        struct weir_arena_block *next = block->next;
        free(block);
        block = next;
    }
    arena->head = NULL;
    arena->used_bytes = 0;
}

static struct weir_arena_block *block_add(struct weir_arena *arena, size_t size)
{
    /* As much again as there is: what is kept of each of many things takes little more than it needs. */
    size_t usual = WEIR_MIN(WEIR_MAX(arena->used_bytes, ARENA_FIRST_BYTES), ARENA_BLOCK_BYTES);
    size_t cap = WEIR_MAX(size, usual);
    struct weir_arena_block *block =
        cap <= SIZE_MAX - sizeof *block ? malloc(sizeof *block + cap) : NULL;
    if (block == NULL) {
        die("out of memory", size);
    }
    block->used = 0;
    block->cap = cap;
    arena->used_bytes += cap;
    /* A large block goes behind the current one, whose free space stays in use. */
    if (arena->head != NULL && cap > usual) {
        block->next = arena->head->next;
        arena->head->next = block;
    } else {
        block->next = arena->head;
        arena->head = block;
    }
    return block;
}

weir_status weir_arena_check(const struct weir_arena *arena, const char *what,
                             struct weir_error *err)
{
    if (arena->used_bytes <= arena->max_bytes) {
        return WEIR_OK;
    }
    return weir_error_set(err, WEIR_ERR_LIMIT,
                          "%s: more data than one step may hold in memory (%zu MiB): ask for less "
                          "at a time",
                          what, arena->max_bytes >> 20);
}

void *weir_arena_alloc(struct weir_arena *arena, size_t size)
{
    if (size > SIZE_MAX - ARENA_ALIGN) {
        die("size overflows", size);
    }
    size_t rounded = (WEIR_MAX(size, (size_t)1) + ARENA_ALIGN - 1) & ~(size_t)(ARENA_ALIGN - 1);
    struct weir_arena_block *block = arena->head;
    if (block == NULL || block->cap - block->used < rounded) {
        block = block_add(arena, rounded);
    }
    void *memory = block->data + block->used;
    block->used += rounded;
    memset(memory, 0, rounded);
    return memory;
}

void *weir_arena_calloc(struct weir_arena *arena, size_t n, size_t size)
{
    size_t total;
    if (__builtin_mul_overflow(n, size, &total)) {
        die("size overflows", n);
    }
    return weir_arena_alloc(arena, total);
}

char *weir_arena_memdup(struct weir_arena *arena, const void *bytes, size_t len)
{
    char *copy = weir_arena_alloc(arena, len + 1);
    if (len > 0) {
        memcpy(copy, bytes, len);
    }
    return copy;
}

char *weir_arena_strdup(struct weir_arena *arena, const char *text)
{
    return text == NULL ? NULL : weir_arena_memdup(arena, text, strlen(text));
}

char *weir_arena_vprintf(struct weir_arena *arena, const char *fmt, va_list args)
{
    va_list again;
    va_copy(again, args);
    int len = vsnprintf(NULL, 0, fmt, args);
    if (len < 0) {
        die("format failed", 0);
    }
    char *text = weir_arena_alloc(arena, (size_t)len + 1);
    (void)vsnprintf(text, (size_t)len + 1, fmt, again);
    va_end(again);
    return text;
}

char *weir_arena_printf(struct weir_arena *arena, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    char *text = weir_arena_vprintf(arena, fmt, args);
    va_end(args);
    return text;
}

void *weir_xalloc(size_t size)
{
    void *memory = calloc(1, WEIR_MAX(size, (size_t)1));
    if (memory == NULL) {
        die("out of memory", size);
    }
    return memory;
}

char *weir_xstrdup(const char *text)
{
    char *copy = strdup(text);
    if (copy == NULL) {
        die("out of memory", strlen(text));
    }
    return copy;
}
