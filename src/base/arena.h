/**
 * Arena: memory of one request, one parse or one job, freed whole.
 *
 * Strings and records that a control-plane function returns live in the arena its caller passed.
 * Nothing is freed singly. Not thread-safe: an arena belongs to one thread at a time.
 *
 * An arena has a maximum that is checked where data enters it: code that copies input of unknown size
 * into an arena (rows of the store, fields of a body) calls weir_arena_check after each piece and
 * fails with LIMIT. So a request that needs too much fails, and the process goes on. A single
 * allocation never fails and never looks at the maximum; its size follows from input that was
 * bounded before. The program aborts only when malloc itself finds no memory. Libraries that must
 * survive that (nn, comm, data, sched, store) use malloc and WEIR_ERR_NOMEM for bulk data.
 */
#ifndef WEIR_BASE_ARENA_H
#define WEIR_BASE_ARENA_H

#include "base/macros.h"
#include "base/status.h"

#include <stdarg.h>
#include <stddef.h>

struct weir_arena {
    struct weir_arena_block *head;
    size_t used_bytes; /**< Sum over all blocks; weir_arena_check compares it with max_bytes. */
    size_t max_bytes;
};

/** Empty arena in caller memory; allocates nothing yet. max_bytes 0 means 256 MiB. */
void weir_arena_init(struct weir_arena *arena, size_t max_bytes);

/** Free all memory. The arena can be used again. NULL is accepted. */
void weir_arena_fini(struct weir_arena *arena);

/**
 * Does the arena hold at most max_bytes? To be asked after each piece of input copied into it.
 * @param what  What was being read, for the message: "job".
 * @return LIMIT with a sentence if not. What the arena holds stays valid.
 */
weir_status weir_arena_check(const struct weir_arena *arena, const char *what,
                             struct weir_error *err) WEIR_MUST_CHECK;

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
char *weir_arena_vprintf(struct weir_arena *arena, const char *fmt, va_list args) WEIR_PRINTF(2, 0);

#define WEIR_ARENA_NEW(arena, type)      ((type *)weir_arena_alloc((arena), sizeof(type)))
#define WEIR_ARENA_ARRAY(arena, n, type) ((type *)weir_arena_calloc((arena), (n), sizeof(type)))

/** malloc that aborts with a message when memory is out: for programs, `server` and `api` only. */
void *weir_xalloc(size_t size);
char *weir_xstrdup(const char *text);

#endif
