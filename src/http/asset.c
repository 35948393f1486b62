/** Files in the program's memory: packed once, and known again by their bytes. */
#include "http/http.h"

#include "base/file.h"
#include "http/pack.h"
#include "http/range.h"
#include "http/server_private.h"

#include <pthread.h>
#include <string.h>

#define LEVEL       9 /* once for all answers */
#define MIN_DIGITS  8 /* of a digest, to mean these bytes */
#define ETAG_DIGITS 32

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void fill(struct weir_http_asset *asset)
{
    pthread_mutex_lock(&lock);
    if (asset->digest[0] == '\0') {
        asset->packed = http_gzip(asset->bytes, (size_t)(asset->end - asset->bytes), LEVEL,
                                  &asset->n_packed_bytes);
        weir_sha256(asset->bytes, (size_t)(asset->end - asset->bytes), asset->digest);
    }
    pthread_mutex_unlock(&lock);
}

/* The address says which bytes it means, and these are they. */
static bool is_named(const struct weir_http_request *request, const struct weir_http_asset *asset)
{
    const char *wanted = weir_http_request_query(request, "v");
    return wanted != NULL && strlen(wanted) >= MIN_DIGITS &&
           strncmp(asset->digest, wanted, strlen(wanted)) == 0;
}

void weir_http_response_asset(struct weir_http_response *response,
                              const struct weir_http_request *request,
                              struct weir_http_asset *asset)
{
    char etag[ETAG_DIGITS + 5];
    fill(asset);
    /* Weak: it is the same of both forms. */
    (void)snprintf(etag, sizeof etag, "W/\"%.*s\"", ETAG_DIGITS, asset->digest);
    const char *known = weir_http_request_header(request, "If-None-Match");
    const char *encoding = weir_http_request_header(request, "Accept-Encoding");
    if (known != NULL && http_etag_is_listed(known, etag + 2)) {
        weir_http_response_static(response, 304, NULL, "", 0);
    } else if (asset->packed != NULL && http_takes_gzip(encoding)) {
        weir_http_response_static(response, 200, asset->content_type, asset->packed,
                                  asset->n_packed_bytes);
        weir_http_response_header(response, "Content-Encoding", "gzip");
    } else {
        weir_http_response_static(response, 200, asset->content_type, asset->bytes,
                                  (size_t)(asset->end - asset->bytes));
    }
    weir_http_response_keep_plain(response); /* it is as it is to be */
    weir_http_response_header(response, "ETag", etag);
    weir_http_response_header(response, "Vary", "Accept-Encoding");
    weir_http_response_header(response, "Cache-Control",
                              is_named(request, asset) ? "private, max-age=31536000, immutable"
                                                       : "private, no-cache");
}
