#include "message.h"

#include <stdlib.h>
#include <string.h>

static uint32_t length_of(const uint8_t *bytes)
{
    return (uint32_t)bytes[1] << 24 | (uint32_t)bytes[2] << 16 | (uint32_t)bytes[3] << 8 | bytes[4];
}

weir_status grpc_message_check_prefix(const uint8_t *bytes, size_t len, size_t max_bytes,
                                      struct weir_error *err)
{
    if (len < MESSAGE_PREFIX_BYTES) {
        return WEIR_OK;
    }
    if (bytes[0] != 0) {
        return weir_error_set(
            err, bytes[0] == 1 ? WEIR_ERR_UNSUPPORTED : WEIR_ERR_INVALID,
            bytes[0] == 1
                ? "compressed messages are not supported: send them as they are (identity)"
                : "the message does not begin as gRPC's do");
    }
    if (length_of(bytes) > max_bytes) {
        return weir_error_set(err, WEIR_ERR_LIMIT, "a message of %u bytes; at most %zu are allowed",
                              (unsigned)length_of(bytes), max_bytes);
    }
    return WEIR_OK;
}

weir_status grpc_message_read(const uint8_t *bytes, size_t len, size_t max_bytes,
                              const uint8_t **out_message, size_t *out_len, struct weir_error *err)
{
    WEIR_TRY(grpc_message_check_prefix(bytes, len, max_bytes, err));
    if (len < MESSAGE_PREFIX_BYTES || len - MESSAGE_PREFIX_BYTES < length_of(bytes)) {
        return weir_error_set(err, WEIR_ERR_INVALID, "the call ends before its message is whole");
    }
    if (len - MESSAGE_PREFIX_BYTES > length_of(bytes)) {
        return weir_error_set(err, WEIR_ERR_INVALID, "the call has more than one message");
    }
    *out_message = bytes + MESSAGE_PREFIX_BYTES;
    *out_len = length_of(bytes);
    return WEIR_OK;
}

void grpc_message_prefix(size_t len, uint8_t out[MESSAGE_PREFIX_BYTES])
{
    out[0] = 0;
    for (int i = 0; i < 4; i++) {
        out[1 + i] = (uint8_t)(len >> (8 * (3 - i)));
    }
}

weir_status grpc_message_read_timeout(const char *text, int64_t *out_ms)
{
    static const struct {
        char unit;
        int64_t ns;
    } units[] = {{'H', 3600000000000}, {'M', 60000000000}, {'S', 1000000000},
                 {'m', 1000000},       {'u', 1000},        {'n', 1}};

    size_t n_digits = strspn(text, "0123456789");
    if (n_digits == 0 || n_digits > 8 || text[n_digits] == '\0' || text[n_digits + 1] != '\0') {
        return WEIR_ERR_INVALID;
    }
    int64_t value = strtoll(text, NULL, 10);
    for (size_t i = 0; i < WEIR_ARRAY_LEN(units); i++) {
        if (units[i].unit == text[n_digits]) {
            const int64_t day_ms = 24 * 3600 * 1000;
            if (value > day_ms * 1000000 / units[i].ns) {
                *out_ms = day_ms;
            } else {
                *out_ms = value * units[i].ns / 1000000;
            }
            return WEIR_OK;
        }
    }
    return WEIR_ERR_INVALID;
}

void grpc_message_encode_text(const char *text, char *out, size_t size)
{
    static const char hex[] = "0123456789ABCDEF";
    size_t n = 0;
    for (const unsigned char *c = (const unsigned char *)text; *c != '\0' && n + 4 <= size; c++) {
        if (*c >= 0x20 && *c < 0x7f && *c != '%') {
            out[n++] = (char)*c;
        } else {
            out[n++] = '%';
            out[n++] = hex[*c >> 4];
            out[n++] = hex[*c & 15];
        }
    }
    out[n] = '\0';
}
