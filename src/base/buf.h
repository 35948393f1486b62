/**
 * Growable byte buffer with a declared maximum; always NUL-terminated, so `data` is also a string.
 *
 *     struct weir_buf buf;
 *     weir_buf_init(&buf, 1 << 20);
 *     weir_buf_printf(&buf, "step %d\n", step);
 *     …
 *     weir_buf_fini(&buf);
 *
 * A write that would pass the maximum, or finds no memory, changes nothing and sets `status`
 * (LIMIT or NOMEM), which then stays: write many times, check once.
 */
#ifndef WEIR_BASE_BUF_H
#define WEIR_BASE_BUF_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>

struct weir_buf {
    char *data; /**< len bytes and a NUL; "" while empty. Owned; moves when it grows. */
    size_t len;
    size_t cap;
    size_t max_bytes;
    weir_status status; /**< First failure, or WEIR_OK. */
};

void weir_buf_init(struct weir_buf *buf, size_t max_bytes);
void weir_buf_fini(struct weir_buf *buf);

/** Forget the content and the status; keep the memory. */
void weir_buf_reset(struct weir_buf *buf);

weir_status weir_buf_append(struct weir_buf *buf, const void *bytes, size_t len);
weir_status weir_buf_puts(struct weir_buf *buf, const char *text);
weir_status weir_buf_printf(struct weir_buf *buf, const char *fmt, ...) WEIR_PRINTF(2, 3);

/** Remove the first `len` bytes (all if there are fewer). Cost: moves the rest. */
void weir_buf_consume(struct weir_buf *buf, size_t len);

/** Hand the memory to the caller (free() it); the buffer is empty after. Never NULL unless NOMEM.
 */
char *weir_buf_detach(struct weir_buf *buf, size_t *out_len);

#endif
