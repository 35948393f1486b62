#include "base/protobuf.h"

#include <string.h>

#define VARINT_BYTES_MAX 10

static weir_status cut_short(struct weir_error *err)
{
    return weir_error_set(err, WEIR_ERR_CORRUPT, "it ends in the middle of a field");
}

static weir_status read_varint(struct weir_protobuf *wire, uint64_t *out, struct weir_error *err)
{
    uint64_t value = 0;
    for (int i = 0; i < VARINT_BYTES_MAX; i++) {
        if (wire->at == wire->end) {
            return cut_short(err);
        }
        uint8_t byte = *wire->at++;
        value |= (uint64_t)(byte & 0x7f) << (7 * i);
        if ((byte & 0x80) == 0) {
            *out = value;
            return WEIR_OK;
        }
    }
    return weir_error_set(err, WEIR_ERR_CORRUPT, "a number has more than %d bytes",
                          VARINT_BYTES_MAX);
}

static weir_status read_fixed(struct weir_protobuf *wire, size_t n_bytes, uint64_t *out,
                              struct weir_error *err)
{
    uint64_t value = 0;
    if (weir_protobuf_len(wire) < n_bytes) {
        return cut_short(err);
    }
    memcpy(&value, wire->at, n_bytes); /* little endian, as this machine */
    wire->at += n_bytes;
    *out = value;
    return WEIR_OK;
}

static weir_status read_bytes(struct weir_protobuf *wire, struct weir_protobuf *out,
                              struct weir_error *err)
{
    uint64_t len;
    WEIR_TRY(read_varint(wire, &len, err));
    if (len > weir_protobuf_len(wire)) {
        return cut_short(err);
    }
    *out = (struct weir_protobuf){wire->at, wire->at + len};
    wire->at += len;
    return WEIR_OK;
}

static weir_status read_value(struct weir_protobuf *wire, enum weir_protobuf_type type,
                              uint64_t *out, struct weir_error *err)
{
    return type == WEIR_PROTOBUF_VARINT
               ? read_varint(wire, out, err)
               : read_fixed(wire, type == WEIR_PROTOBUF_FIXED64 ? 8 : 4, out, err);
}

weir_status weir_protobuf_next(struct weir_protobuf *wire, struct weir_protobuf_field *out,
                               struct weir_error *err)
{
    uint64_t key;
    if (wire->at == wire->end) {
        return WEIR_ERR_END;
    }
    WEIR_TRY(read_varint(wire, &key, err));
    *out = (struct weir_protobuf_field){.number = (uint32_t)(key >> 3),
                                        .type = (enum weir_protobuf_type)(key & 7)};
    if (out->number == 0 || key >> 32 != 0) {
        return weir_error_set(err, WEIR_ERR_CORRUPT, "a field has the number %llu",
                              (unsigned long long)(key >> 3));
    }
    switch (out->type) {
    case WEIR_PROTOBUF_VARINT:
    case WEIR_PROTOBUF_FIXED64:
    case WEIR_PROTOBUF_FIXED32:
        return read_value(wire, out->type, &out->value, err);
    case WEIR_PROTOBUF_BYTES:
        return read_bytes(wire, &out->bytes, err);
    default:
        return weir_error_set(err, WEIR_ERR_CORRUPT, "field %u has the unknown type %d",
                              out->number, (int)out->type);
    }
}

weir_status weir_protobuf_number(struct weir_protobuf_field *field, enum weir_protobuf_type type,
                                 uint64_t *out, struct weir_error *err)
{
    if (field->type == WEIR_PROTOBUF_BYTES) {
        return field->bytes.at == field->bytes.end ? WEIR_ERR_END
                                                   : read_value(&field->bytes, type, out, err);
    }
    if (field->type != type) {
        return weir_error_set(err, WEIR_ERR_CORRUPT, "field %u has type %d, not %d", field->number,
                              (int)field->type, (int)type);
    }
    *out = field->value;
    field->type = WEIR_PROTOBUF_BYTES; /* taken: its bytes are empty */
    return WEIR_OK;
}

float weir_protobuf_float(uint64_t bits)
{
    uint32_t low = (uint32_t)bits;
    float value;
    memcpy(&value, &low, sizeof value);
    return value;
}

double weir_protobuf_double(uint64_t bits)
{
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static size_t varint_encode(uint64_t value, uint8_t out[VARINT_BYTES_MAX])
{
    size_t n = 0;
    for (; value > 0x7f; value >>= 7) {
        out[n++] = (uint8_t)(value | 0x80);
    }
    out[n++] = (uint8_t)value;
    return n;
}

static void put_varint(struct weir_buf *buf, uint64_t value)
{
    uint8_t bytes[VARINT_BYTES_MAX];
    (void)weir_buf_append(buf, bytes, varint_encode(value, bytes));
}

static void put_key(struct weir_buf *buf, uint32_t number, enum weir_protobuf_type type)
{
    put_varint(buf, (uint64_t)number << 3 | (uint64_t)type);
}

void weir_protobuf_put_varint(struct weir_buf *buf, uint32_t number, uint64_t value)
{
    put_key(buf, number, WEIR_PROTOBUF_VARINT);
    put_varint(buf, value);
}

void weir_protobuf_put_fixed64(struct weir_buf *buf, uint32_t number, uint64_t value)
{
    put_key(buf, number, WEIR_PROTOBUF_FIXED64);
    (void)weir_buf_append(buf, &value, sizeof value); /* little endian, as this machine */
}

void weir_protobuf_put_float(struct weir_buf *buf, uint32_t number, float value)
{
    put_key(buf, number, WEIR_PROTOBUF_FIXED32);
    (void)weir_buf_append(buf, &value, sizeof value);
}

/** Only the key and the length of a field of `len` bytes, which the caller sends behind it. */
static void put_header(struct weir_buf *buf, uint32_t number, size_t len)
{
    put_key(buf, number, WEIR_PROTOBUF_BYTES);
    put_varint(buf, len);
}

void weir_protobuf_put_bytes(struct weir_buf *buf, uint32_t number, const void *bytes, size_t len)
{
    put_header(buf, number, len);
    (void)weir_buf_append(buf, bytes, len);
}

void weir_protobuf_put_text(struct weir_buf *buf, uint32_t number, const char *text)
{
    weir_protobuf_put_bytes(buf, number, text, strlen(text));
}

void weir_protobuf_put_packed(struct weir_buf *buf, uint32_t number, const uint64_t *values,
                              size_t n)
{
    if (n > 0) {
        size_t begun = weir_protobuf_begin(buf, number);
        for (size_t i = 0; i < n; i++) {
            put_varint(buf, values[i]);
        }
        weir_protobuf_end(buf, begun);
    }
}

size_t weir_protobuf_begin(struct weir_buf *buf, uint32_t number)
{
    put_key(buf, number, WEIR_PROTOBUF_BYTES);
    return buf->len;
}

void weir_protobuf_end(struct weir_buf *buf, size_t begun)
{
    uint8_t bytes[VARINT_BYTES_MAX];
    size_t len = buf->len - begun;
    size_t n = varint_encode(len, bytes);
    if (weir_buf_append(buf, bytes, n) == WEIR_OK && buf->status == WEIR_OK) {
        memmove(buf->data + begun + n, buf->data + begun, len);
        memcpy(buf->data + begun, bytes, n);
    }
}
