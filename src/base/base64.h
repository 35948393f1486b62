/** Base64 (RFC 4648, section 4, with padding): bytes inside JSON. */
#ifndef WEIR_BASE_BASE64_H
#define WEIR_BASE_BASE64_H

#include "base/status.h"

#include <stddef.h>

/** Bytes that the text of `len` bytes takes, its NUL included. */
#define WEIR_BASE64_TEXT_BYTES(len) (((len) + 2) / 3 * 4 + 1)

/** @param out  WEIR_BASE64_TEXT_BYTES(len) bytes. Returns out. */
char *weir_base64_encode(const void *bytes, size_t len, char *out);

/** Decode the whole text. @return INVALID if it is no base64, or says more than `size` bytes. */
weir_status weir_base64_decode(const char *text, void *out, size_t size,
                               size_t *out_len) WEIR_MUST_CHECK;

#endif
