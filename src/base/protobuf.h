/**
 * Protobuf: the encoding of protocol buffers (protobuf.dev/programming-guides/encoding), read field
 * by field inside of given bytes, and written into a buffer. Reading allocates nothing and reads
 * nothing outside; it copies nothing either: texts and messages are places in the given bytes.
 *
 *     struct weir_protobuf_field field;
 *     while ((status = weir_protobuf_next(&message, &field, err)) == WEIR_OK) {
 *         switch (field.number) …
 *     }
 *     // END: the message is read
 *
 *     weir_protobuf_put_text(&buf, 1, name);
 *     size_t at = weir_protobuf_begin(&buf, 5);       a message inside
 *     weir_protobuf_put_varint(&buf, 1, 7);
 *     weir_protobuf_end(&buf, at);
 *     if (buf.status != WEIR_OK) …                    write many times, check once (buf.h)
 */
#ifndef WEIR_BASE_PROTOBUF_H
#define WEIR_BASE_PROTOBUF_H

#include "base/buf.h"
#include "base/macros.h"
#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

/** What is left to read of a message. */
struct weir_protobuf {
    const uint8_t *at, *end;
};

enum weir_protobuf_type {
    WEIR_PROTOBUF_VARINT = 0,
    WEIR_PROTOBUF_FIXED64 = 1,
    WEIR_PROTOBUF_BYTES = 2,
    WEIR_PROTOBUF_FIXED32 = 5,
};

struct weir_protobuf_field {
    uint32_t number;
    enum weir_protobuf_type type;
    uint64_t value;             /**< VARINT, FIXED64, FIXED32. */
    struct weir_protobuf bytes; /**< BYTES: a text, a message, or packed numbers. */
};

/** The next field. END behind the last; CORRUPT if the bytes are no field. */
weir_status weir_protobuf_next(struct weir_protobuf *wire, struct weir_protobuf_field *out,
                               struct weir_error *err) WEIR_MUST_CHECK;

/**
 * The next number of a repeated field, whose numbers come one by one or packed. It takes the number
 * out of `field`.
 * @return END when the field has no more.
 */
weir_status weir_protobuf_number(struct weir_protobuf_field *field, enum weir_protobuf_type type,
                                 uint64_t *out, struct weir_error *err) WEIR_MUST_CHECK;

static inline size_t weir_protobuf_len(const struct weir_protobuf *wire)
{
    return (size_t)(wire->end - wire->at);
}

/** Bits as an f32. */
float weir_protobuf_float(uint64_t bits);
double weir_protobuf_double(uint64_t bits);

/**
 * Writing. A field that has its default (0, "") need not be written; these write it all the same.
 * Failures stay in buf->status.
 */
void weir_protobuf_put_varint(struct weir_buf *buf, uint32_t number, uint64_t value);
void weir_protobuf_put_fixed64(struct weir_buf *buf, uint32_t number, uint64_t value);
void weir_protobuf_put_float(struct weir_buf *buf, uint32_t number, float value);
void weir_protobuf_put_bytes(struct weir_buf *buf, uint32_t number, const void *bytes, size_t len);
void weir_protobuf_put_text(struct weir_buf *buf, uint32_t number, const char *text);

/** Numbers of one repeated field, packed. None: nothing is written. */
void weir_protobuf_put_packed(struct weir_buf *buf, uint32_t number, const uint64_t *values,
                              size_t n);

/**
 * A message in a field: what is written until _end is inside of it.
 * @return Where it began, for _end. Cost of _end: the message's bytes are moved once.
 */
size_t weir_protobuf_begin(struct weir_buf *buf, uint32_t number);
void weir_protobuf_end(struct weir_buf *buf, size_t begun);

#endif
