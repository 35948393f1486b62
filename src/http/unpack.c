#include "http/unpack.h"

#include "base/macros.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <zlib.h>

#define PIECE_BYTES 65536
#define HEAD_BYTES  2 /* tell a stream of zlib from a bare one */

struct unpack {
    z_stream stream;
    unsigned char head[HEAD_BYTES];
    size_t n_head;
    bool is_gzip, is_begun, is_ended;
};

bool unpack_knows(const char *encoding)
{
    return encoding != NULL &&
           (strcasecmp(encoding, "gzip") == 0 || strcasecmp(encoding, "x-gzip") == 0 ||
            strcasecmp(encoding, "deflate") == 0);
}

struct unpack *unpack_open(const char *encoding)
{
    struct unpack *unpack = calloc(1, sizeof *unpack);
    if (unpack != NULL) {
        unpack->is_gzip = strcasecmp(encoding, "deflate") != 0;
    }
    return unpack;
}

static weir_status fail(const struct unpack *unpack, struct weir_error *err)
{
    const char *why = unpack->stream.msg;
    return weir_error_set(
        err, WEIR_ERR_INVALID, "the body is not %s, as its Content-Encoding says%s%s",
        unpack->is_gzip ? "gzip" : "deflate", why != NULL ? ": " : "", why != NULL ? why : "");
}

static weir_status begin(struct unpack *unpack, struct weir_error *err)
{
    const unsigned char *head = unpack->head;
    bool is_zlib = (head[0] & 15) == Z_DEFLATED && (head[0] * 256 + head[1]) % 31 == 0;
    int bits = unpack->is_gzip ? MAX_WBITS + 16 : is_zlib ? MAX_WBITS : -MAX_WBITS;
    if (inflateInit2(&unpack->stream, bits) != Z_OK) {
        return weir_error_set(err, WEIR_ERR_NOMEM, "no memory to unpack the body");
    }
    unpack->is_begun = true;
    return WEIR_OK;
}

static weir_status inflate_all(struct unpack *unpack, const unsigned char *bytes, size_t len,
                               unpack_take_fn take, void *context, struct weir_error *err)
{
    unsigned char piece[PIECE_BYTES];
    z_stream *stream = &unpack->stream;
    stream->next_in = (unsigned char *)bytes; /* read only */
    stream->avail_in = (uInt)len;
    do {
        if (unpack->is_ended) {
            if (!unpack->is_gzip || inflateReset(stream) != Z_OK) {
                return weir_error_set(err, WEIR_ERR_INVALID,
                                      "the body goes on behind the end of its %s",
                                      unpack->is_gzip ? "gzip" : "deflate");
            }
            unpack->is_ended = false; /* another member */
        }
        stream->next_out = piece;
        stream->avail_out = sizeof piece;
        int rc = inflate(stream, Z_NO_FLUSH);
        if (rc != Z_OK && rc != Z_STREAM_END && rc != Z_BUF_ERROR) {
            return fail(unpack, err);
        }
        unpack->is_ended = rc == Z_STREAM_END;
        size_t n = sizeof piece - stream->avail_out;
        if (n > 0 && !take(context, (const char *)piece, n)) {
            return WEIR_OK;
        }
    } while (stream->avail_in > 0 || (stream->avail_out == 0 && !unpack->is_ended));
    return WEIR_OK;
}

weir_status unpack_add(struct unpack *unpack, const char *bytes, size_t len, unpack_take_fn take,
                       void *context, struct weir_error *err)
{
    size_t n = WEIR_MIN(len, HEAD_BYTES - unpack->n_head);
    if (!unpack->is_begun) {
        memcpy(unpack->head + unpack->n_head, bytes, n);
        unpack->n_head += n;
        if (unpack->n_head < HEAD_BYTES) {
            return WEIR_OK;
        }
        WEIR_TRY(begin(unpack, err));
        WEIR_TRY(inflate_all(unpack, unpack->head, HEAD_BYTES, take, context, err));
        bytes += n;
        len -= n;
    }
    return len > 0 ? inflate_all(unpack, (const unsigned char *)bytes, len, take, context, err)
                   : WEIR_OK;
}

weir_status unpack_end(const struct unpack *unpack, struct weir_error *err)
{
    return unpack->is_ended || unpack->n_head == 0
               ? WEIR_OK
               : weir_error_set(err, WEIR_ERR_INVALID, "the body is cut off: its %s has no end",
                                unpack->is_gzip ? "gzip" : "deflate");
}

void unpack_close(struct unpack *unpack)
{
    if (unpack != NULL && unpack->is_begun) {
        (void)inflateEnd(&unpack->stream);
    }
    free(unpack);
}
