/**
 * Arena: memory of one request, one parse or one job, freed whole.
 *
 * Strings and records that a control-plane function returns live in the arena its caller passed.
 * Nothing is freed singly. An arena has a maximum; beyond it, and when memory is out, the program
 * aborts with a message (a program's arena holds bounded input). Libraries that must survive lack
 * of memory (nn, comm, data, sched, store) use malloc and WEIR_ERR_NOMEM for bulk data instead. Not
 * thread-safe: an arena belongs to one thread at a time.
 */
#ifndef WEIR_BASE_ARENA_H
#define WEIR_BASE_ARENA_H

#include "base/macros.h"

#include <stdarg.h>
#include <stddef.h>

struct weir_arena {
    struct weir_arena_block *head;
    size_t used_bytes; /**< Sum over all blocks; compared with max_bytes. */
    size_t max_bytes;
};

/** Empty arena in caller memory; allocates nothing yet. max_bytes 0 means 256 MiB. */
void weir_arena_init(struct weir_arena *arena, size_t max_bytes);

/** Free all memory. The arena can be used again. NULL is accepted. */
void weir_arena_fini(struct weir_arena *arena);

/** `size` zeroed bytes aligned to 16. Never NULL. */
void *weir_arena_alloc(struct weir_arena *arena, size_t size);

/** `n` zeroed elements; aborts if n * size overflows. Never NULL. */
void *weir_arena_calloc(struct weir_arena *arena, size_t n, size_t size);

/** Copy of a string; NULL gives NULL. */
char *weir_arena_strdup(struct weir_arena *arena, const char *text);

/** Copy of `len` bytes, with a terminating NUL added. */
char *weir_arena_memdup(struct weir_arena *arena, const void *bytes, size_t len);

/** Formatted string of any length. */
char *weir_arena_printf(struct weir_arena *arena, const char *fmt, ...) WEIR_PRINTF(2, 3);

#define WEIR_ARENA_NEW(arena, type)      ((type *)weir_arena_alloc((arena), sizeof(type)))
#define WEIR_ARENA_ARRAY(arena, n, type) ((type *)weir_arena_calloc((arena), (n), sizeof(type)))

/** malloc that aborts with a message when memory is out: for programs, `server` and `api` only. */
void *weir_xalloc(size_t size);
char *weir_xstrdup(const char *text);

#endif
