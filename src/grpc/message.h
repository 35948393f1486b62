/** Message: gRPC's framing of messages, and its texts in headers. Pure. */
#ifndef WEIR_GRPC_MESSAGE_H
#define WEIR_GRPC_MESSAGE_H

#include "base/buf.h"
#include "base/status.h"

#include <stdint.h>

#define MESSAGE_PREFIX_BYTES 5

/**
 * The one message in the bytes of a call.
 * @return INVALID for what is not one whole message; UNSUPPORTED for a compressed one; LIMIT.
 */
weir_status grpc_message_read(const uint8_t *bytes, size_t len, size_t max_bytes,
                              const uint8_t **out_message, size_t *out_len,
                              struct weir_error *err) WEIR_MUST_CHECK;

/** Once the prefix has come: how long all of it will be. LIMIT, over max_bytes. */
weir_status grpc_message_check_prefix(const uint8_t *bytes, size_t len, size_t max_bytes,
                                      struct weir_error *err) WEIR_MUST_CHECK;

void grpc_message_prefix(size_t len, uint8_t out[MESSAGE_PREFIX_BYTES]);

/** "100m" is 100; at most what fits a day. @return INVALID. */
weir_status grpc_message_read_timeout(const char *text, int64_t *out_ms) WEIR_MUST_CHECK;

/** As grpc-message wants a text: percent-encoded but for printable ASCII. Cut where out is full. */
void grpc_message_encode_text(const char *text, char *out, size_t size);

#endif
