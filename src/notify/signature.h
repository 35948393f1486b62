/** The signature of a webhook's body: HMAC-SHA256 over "TIME.BODY". Pure. */
#ifndef WEIR_NOTIFY_SIGNATURE_H
#define WEIR_NOTIFY_SIGNATURE_H

#include <stddef.h>

#define NOTIFY_SIGNATURE_BYTES 65 /**< 64 hexadecimal digits and a NUL. */

void notify_signature(const char *secret, const char *time, const char *body, size_t body_len,
                      char out[NOTIFY_SIGNATURE_BYTES]);

#endif
