#include "http/known.h"

#include "base/file.h"
#include "http/pack.h"
#include "http/range.h"
#include "http/server_private.h"

#include <stdio.h>
#include <string.h>

#define ETAG_DIGITS 32

void response_name(struct http_exchange *x)
{
    struct weir_http_response *response = &x->response;
    const char *type = response_header(response, "Content-Type");
    if (!response_is_whole(x) || response->body_len > KNOWN_MAX_BYTES || type == NULL ||
        strncmp(type, "application/json", 16) != 0 ||
        response_header(response, "Cache-Control") != NULL) {
        return;
    }
    char digest[WEIR_SHA256_TEXT_BYTES], etag[ETAG_DIGITS + 5];
    weir_sha256(response->body, response->body_len, digest);
    /* Weak: it is the same of the packed form. */
    (void)snprintf(etag, sizeof etag, "W/\"%.*s\"", ETAG_DIGITS, digest);
    const char *known = weir_http_request_header(&x->request, "If-None-Match");
    if (known != NULL && http_etag_is_listed(known, etag + 2)) {
        weir_http_response_static(response, 304, NULL, "", 0);
    }
    weir_http_response_header(response, "ETag", etag);
    weir_http_response_header(response, "Cache-Control", "private, no-cache");
}
