#include "http/pack.h"

#include "http/server_private.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <zlib.h>

#define LEVEL     3         /* of answers that are made again: above it more time than bytes */
#define GZIP_BITS (15 + 16) /* of zlib: the largest window, with gzip's head */

/* A weight of "0", "0." or "0.000" refuses; what is no weight does not. */
static bool is_refused(const char *params, size_t len)
{
    const char *q = memmem(params, len, "q=", 2);
    const char *end = params + len;
    if (q == NULL) {
        return false;
    }
    for (q += 2; q < end && (*q == '0' || *q == '.'); q++) {
    }
    return q == end || *q == ' ' || *q == '\t';
}

bool http_takes_gzip(const char *accept_encoding)
{
    bool is_taken = false;
    for (const char *item = accept_encoding; item != NULL && *item != '\0';) {
        item += strspn(item, " \t,");
        size_t len = strcspn(item, ","), name_len = strcspn(item, " \t;,");
        bool is_gzip = (name_len == 4 && strncasecmp(item, "gzip", 4) == 0) ||
                       (name_len == 6 && strncasecmp(item, "x-gzip", 6) == 0);
        bool is_taken_here = !is_refused(item + name_len, len - name_len);
        if (is_gzip) {
            return is_taken_here; /* what names it goes before what means all */
        }
        is_taken = is_taken || (name_len == 1 && *item == '*' && is_taken_here);
        item += len;
    }
    return is_taken;
}

char *http_gzip(const void *bytes, size_t len, int level, size_t *out_len)
{
    z_stream z = {0};
    if (len > UINT_MAX ||
        deflateInit2(&z, level, Z_DEFLATED, GZIP_BITS, 9, Z_DEFAULT_STRATEGY) != Z_OK) {
        return NULL;
    }
    char *packed = malloc(len + 1);
    z.next_in = (Bytef *)bytes;
    z.avail_in = (uInt)len;
    z.next_out = (Bytef *)packed;
    z.avail_out = packed != NULL ? (uInt)len : 0;
    bool is_smaller = packed != NULL && deflate(&z, Z_FINISH) == Z_STREAM_END;
    *out_len = z.total_out;
    (void)deflateEnd(&z);
    if (!is_smaller) {
        free(packed);
        return NULL;
    }
    char *fitted = realloc(packed, *out_len + 1);
    return fitted != NULL ? fitted : packed;
}

static bool is_text(const char *content_type)
{
    return content_type != NULL && (strncmp(content_type, "application/json", 16) == 0 ||
                                    (strncmp(content_type, "text/", 5) == 0 &&
                                     strncmp(content_type, "text/event-stream", 17) != 0));
}

bool response_is_whole(const struct http_exchange *x)
{
    const struct weir_http_response *response = &x->response;
    const char *method = x->request.method;
    return response->kind == ANSWER_READY && response->http_status == 200 &&
           !response->is_foreign && !response->is_kept_plain && response->body != NULL &&
           response->body_len >= PACK_MIN_BYTES &&
           (strcmp(method, "GET") == 0 || strcmp(method, "HEAD") == 0);
}

void response_pack(struct http_exchange *x)
{
    struct weir_http_response *response = &x->response;
    if (!response_is_whole(x) || response->body_len > PACK_MAX_BYTES ||
        !is_text(response_header(response, "Content-Type"))) {
        return;
    }
    weir_http_response_header(response, "Vary", "Accept-Encoding");
    if (!http_takes_gzip(weir_http_request_header(&x->request, "Accept-Encoding"))) {
        return;
    }
    size_t len;
    char *packed = http_gzip(response->body, response->body_len, LEVEL, &len);
    if (packed != NULL) {
        response_replace_body(response, packed, len);
    }
}
