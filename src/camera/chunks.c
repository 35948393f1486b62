#include "chunks.h"

#include "base/macros.h"

#include <string.h>

static int digit_of(char c)
{
    static const char digits[] = "0123456789abcdef";
    char lower = c >= 'A' && c <= 'F' ? (char)(c - 'A' + 'a') : c;
    const char *at = lower != '\0' ? strchr(digits, lower) : NULL;
    return at != NULL ? (int)(at - digits) : -1;
}

/* The size's line has ended. */
static weir_status begin_chunk(struct camera_chunks *chunks)
{
    bool is_last = chunks->n_left == 0;
    if (chunks->n_digits == 0) {
        return WEIR_ERR_CORRUPT;
    }
    chunks->state = is_last ? CHUNKS_TRAILER : CHUNKS_DATA;
    chunks->n_digits = 0;
    return WEIR_OK;
}

static weir_status take_size(struct camera_chunks *chunks, char c, size_t most)
{
    int digit = digit_of(c);
    if (digit >= 0) {
        chunks->n_left = chunks->n_left * 16 + (size_t)digit;
        chunks->n_digits++;
        return chunks->n_left <= most ? WEIR_OK : WEIR_ERR_LIMIT;
    }
    if (c == '\n') {
        return begin_chunk(chunks);
    }
    if (chunks->n_digits == 0 || (c != '\r' && c != ';' && c != ' ' && c != '\t')) {
        return WEIR_ERR_CORRUPT;
    }
    chunks->state = CHUNKS_EXTENSION;
    return WEIR_OK;
}

/* A character of all that is not data. */
static weir_status take_between(struct camera_chunks *chunks, char c, size_t most)
{
    switch (chunks->state) {
    case CHUNKS_SIZE:
        return take_size(chunks, c, most);
    case CHUNKS_EXTENSION:
        return c == '\n' ? begin_chunk(chunks) : WEIR_OK;
    case CHUNKS_END:
        if (c == '\n') {
            chunks->state = CHUNKS_SIZE;
        }
        return c == '\n' || c == '\r' ? WEIR_OK : WEIR_ERR_CORRUPT;
    case CHUNKS_TRAILER:
    case CHUNKS_DATA:
        break;
    }
    if (c == '\n') {
        chunks->is_over = chunks->n_digits == 0;
        chunks->n_digits = 0;
    } else {
        chunks->n_digits += c != '\r';
    }
    return WEIR_OK;
}

weir_status camera_chunks_take(struct camera_chunks *chunks, const char *bytes, size_t n,
                               size_t most, struct weir_buf *out)
{
    for (size_t i = 0; i < n && !chunks->is_over;) {
        if (chunks->state != CHUNKS_DATA) {
            WEIR_TRY(take_between(chunks, bytes[i++], most));
            continue;
        }
        size_t n_data = WEIR_MIN(n - i, chunks->n_left);
        WEIR_TRY(weir_buf_append(out, bytes + i, n_data));
        i += n_data;
        chunks->n_left -= n_data;
        chunks->state = chunks->n_left == 0 ? CHUNKS_END : CHUNKS_DATA;
    }
    return WEIR_OK;
}
