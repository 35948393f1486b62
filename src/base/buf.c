#include "base/buf.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What `data` points to while nothing was written; never written to. */
static char empty[1] = "";

void weir_buf_init(struct weir_buf *buf, size_t max_bytes)
{
    *buf = (struct weir_buf){.data = empty, .max_bytes = max_bytes};
}

void weir_buf_fini(struct weir_buf *buf)
{
    if (buf->cap > 0) {
        free(buf->data);
    }
    weir_buf_init(buf, buf->max_bytes);
}

void weir_buf_reset(struct weir_buf *buf)
{
    buf->len = 0;
    buf->status = WEIR_OK;
    if (buf->cap > 0) {
        buf->data[0] = '\0';
    }
}

static weir_status reserve(struct weir_buf *buf, size_t more)
{
    if (buf->status != WEIR_OK) {
        return buf->status;
    }
    if (more > buf->max_bytes - buf->len) {
        return buf->status = WEIR_ERR_LIMIT;
    }
    size_t wanted = buf->len + more + 1;
    if (wanted <= buf->cap) {
        return WEIR_OK;
    }
    size_t cap = WEIR_MAX(wanted, WEIR_MIN(buf->cap * 2, buf->max_bytes + 1));
    cap = WEIR_MAX(cap, WEIR_MIN((size_t)64, buf->max_bytes + 1));
    char *data = realloc(buf->cap > 0 ? buf->data : NULL, cap);
    if (data == NULL) {
        return buf->status = WEIR_ERR_NOMEM;
    }
    buf->data = data;
    buf->cap = cap;
    buf->data[buf->len] = '\0';
    return WEIR_OK;
}

weir_status weir_buf_append(struct weir_buf *buf, const void *bytes, size_t len)
{
    WEIR_TRY(reserve(buf, len));
    if (len > 0) {
        memcpy(buf->data + buf->len, bytes, len);
    }
    buf->len += len;
    buf->data[buf->len] = '\0';
    return WEIR_OK;
}

weir_status weir_buf_puts(struct weir_buf *buf, const char *text)
{
    return weir_buf_append(buf, text, strlen(text));
}

weir_status weir_buf_printf(struct weir_buf *buf, const char *fmt, ...)
{
    va_list args, again;
    va_start(args, fmt);
    va_copy(again, args);
    int len = vsnprintf(NULL, 0, fmt, args);
    va_end(args);
    weir_status status = len < 0 ? WEIR_ERR_INVALID : reserve(buf, (size_t)len);
    if (status == WEIR_OK) {
        (void)vsnprintf(buf->data + buf->len, (size_t)len + 1, fmt, again);
        buf->len += (size_t)len;
    }
    va_end(again);
    return status;
}

void weir_buf_consume(struct weir_buf *buf, size_t len)
{
    size_t n = WEIR_MIN(len, buf->len);
    if (n > 0) {
        memmove(buf->data, buf->data + n, buf->len - n + 1);
        buf->len -= n;
    }
}

char *weir_buf_detach(struct weir_buf *buf, size_t *out_len)
{
    if (buf->cap == 0 && reserve(buf, 0) != WEIR_OK) {
        return NULL;
    }
    char *data = buf->data;
    if (out_len != NULL) {
        *out_len = buf->len;
    }
    weir_buf_init(buf, buf->max_bytes);
    return data;
}
