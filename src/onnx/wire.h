/**
 * Wire: reads the encoding of protocol buffers, field by field, inside of given bytes
 * (protobuf.dev/programming-guides/encoding). It allocates nothing and reads nothing outside.
 *
 *     struct wire_field field;
 *     while ((status = wire_next(&message, &field, err)) == WEIR_OK) { switch (field.number) … }
 *     // END: the message is read
 */
#ifndef WEIR_ONNX_WIRE_H
#define WEIR_ONNX_WIRE_H

#include "base/macros.h"
#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

/** What is left to read of a message. */
struct wire {
    const uint8_t *at, *end;
};

enum wire_type {
    WIRE_VARINT = 0,
    WIRE_FIXED64 = 1,
    WIRE_BYTES = 2,
    WIRE_FIXED32 = 5,
};

struct wire_field {
    uint32_t number;
    enum wire_type type;
    uint64_t value;    /**< VARINT, FIXED64, FIXED32. */
    struct wire bytes; /**< BYTES: a text, a message, or packed numbers. */
};

/** The next field. END behind the last; CORRUPT if the bytes are no field. */
weir_status wire_next(struct wire *wire, struct wire_field *out,
                      struct weir_error *err) WEIR_MUST_CHECK;

/**
 * The next number of a repeated field, whose numbers come one by one or packed. It takes the number
 * out of `field`.
 * @return END when the field has no more.
 */
weir_status wire_number(struct wire_field *field, enum wire_type type, uint64_t *out,
                        struct weir_error *err) WEIR_MUST_CHECK;

static inline size_t wire_len(const struct wire *wire)
{
    return (size_t)(wire->end - wire->at);
}

/** Bits as an f32. */
float wire_float(uint64_t bits);
double wire_double(uint64_t bits);

#endif
