/**
 * Answers that a client has already (RFC 9110, section 13): each whole answer to GET that is JSON in memory, from
 * PACK_MIN_BYTES to KNOWN_MAX_BYTES, has an ETag made of its bytes, and a client that sends that back (If-None-Match) is told
 * 304 without them. A client may keep it for itself, and asks each time (Cache-Control: private, no-cache).
 *
 * What answers hold of a secret is kept by nobody: those are marked (weir_http_response_keep_plain).
 */
#ifndef WEIR_HTTP_KNOWN_H
#define WEIR_HTTP_KNOWN_H

#include <stddef.h>

#define KNOWN_MAX_BYTES ((size_t)4 << 20)

struct http_exchange;

/** Name the exchange's answer, or make it 304. On a handler thread, before it is packed. Cost: a SHA-256 of it, 3 ms a
 *  megabyte. */
void response_name(struct http_exchange *x);

#endif
