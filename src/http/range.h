/**
 * Parts of a file that a request asks for (RFC 9110, section 14): one range of bytes, as a client that
 * goes on with a download sends it. Several ranges in one request are answered with the whole file, as
 * the RFC allows. Pure.
 */
#ifndef WEIR_HTTP_RANGE_H
#define WEIR_HTTP_RANGE_H

#include <stdbool.h>
#include <stdint.h>

enum http_range {
    HTTP_RANGE_NONE, /**< No range, several, or a form that is not understood: send all. */
    HTTP_RANGE_PART, /**< Send these bytes, as 206. */
    HTTP_RANGE_BAD,  /**< It begins behind the end: 416. */
};

/**
 * Read the value of a Range header for a file of `size` bytes. NULL is none.
 * @param out_offset, out_len  Of a part: within the file, and at least one byte.
 */
enum http_range http_range_parse(const char *text, uint64_t size, uint64_t *out_offset,
                                 uint64_t *out_len);

/**
 * Is `etag` (with its quotes) one of those in the value of If-None-Match? "*" is all; a weak one is the
 * same as its strong one (section 8.8.3.2).
 */
bool http_etag_is_listed(const char *list, const char *etag);

#endif
