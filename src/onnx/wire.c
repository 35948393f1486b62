#include "wire.h"

#include <stdbool.h>
#include <string.h>

#define VARINT_BYTES_MAX 10

static weir_status cut_short(struct weir_error *err)
{
    return weir_error_set(err, WEIR_ERR_CORRUPT, "it ends in the middle of a field");
}

static weir_status read_varint(struct wire *wire, uint64_t *out, struct weir_error *err)
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

static weir_status read_fixed(struct wire *wire, size_t n_bytes, uint64_t *out,
                              struct weir_error *err)
{
    uint64_t value = 0;
    if (wire_len(wire) < n_bytes) {
        return cut_short(err);
    }
    memcpy(&value, wire->at, n_bytes); /* little endian, as this machine */
    wire->at += n_bytes;
    *out = value;
    return WEIR_OK;
}

static weir_status read_bytes(struct wire *wire, struct wire *out, struct weir_error *err)
{
    uint64_t len;
    WEIR_TRY(read_varint(wire, &len, err));
    if (len > wire_len(wire)) {
        return cut_short(err);
    }
    *out = (struct wire){wire->at, wire->at + len};
    wire->at += len;
    return WEIR_OK;
}

static weir_status read_value(struct wire *wire, enum wire_type type, uint64_t *out,
                              struct weir_error *err)
{
    return type == WIRE_VARINT ? read_varint(wire, out, err)
                               : read_fixed(wire, type == WIRE_FIXED64 ? 8 : 4, out, err);
}

weir_status wire_next(struct wire *wire, struct wire_field *out, struct weir_error *err)
{
    uint64_t key;
    if (wire->at == wire->end) {
        return WEIR_ERR_END;
    }
    WEIR_TRY(read_varint(wire, &key, err));
    *out = (struct wire_field){.number = (uint32_t)(key >> 3), .type = (enum wire_type)(key & 7)};
    if (out->number == 0 || key >> 32 != 0) {
        return weir_error_set(err, WEIR_ERR_CORRUPT, "a field has the number %llu",
                              (unsigned long long)(key >> 3));
    }
    switch (out->type) {
    case WIRE_VARINT:
    case WIRE_FIXED64:
    case WIRE_FIXED32:
        return read_value(wire, out->type, &out->value, err);
    case WIRE_BYTES:
        return read_bytes(wire, &out->bytes, err);
    default:
        return weir_error_set(err, WEIR_ERR_CORRUPT, "field %u has the unknown type %d",
                              out->number, (int)out->type);
    }
}

weir_status wire_number(struct wire_field *field, enum wire_type type, uint64_t *out,
                        struct weir_error *err)
{
    if (field->type == WIRE_BYTES) {
        return field->bytes.at == field->bytes.end ? WEIR_ERR_END
                                                   : read_value(&field->bytes, type, out, err);
    }
    if (field->type != type) {
        return weir_error_set(err, WEIR_ERR_CORRUPT, "field %u has type %d, not %d", field->number,
                              (int)field->type, (int)type);
    }
    *out = field->value;
    field->type = WIRE_BYTES; /* taken: its bytes are empty */
    return WEIR_OK;
}

float wire_float(uint64_t bits)
{
    uint32_t low = (uint32_t)bits;
    float value;
    memcpy(&value, &low, sizeof value);
    return value;
}

double wire_double(uint64_t bits)
{
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}
