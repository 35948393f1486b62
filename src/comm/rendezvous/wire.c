#include "comm/rendezvous/wire.h"

#include <string.h>

static uint32_t load_u32(const uint8_t *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static void store_u32(uint8_t *p, uint32_t value)
{
    for (int i = 0; i < 4; i++) {
        p[i] = (uint8_t)(value >> 8 * i);
    }
}

weir_status wire_frame_parse(const uint8_t *data, size_t len, size_t max_payload,
                             struct wire_frame *out, size_t *out_used)
{
    if (len < WIRE_HEADER_BYTES) {
        return WEIR_ERR_END;
    }
    uint32_t payload = load_u32(data), kind = load_u32(data + 4);
    uint32_t type = kind & 0xffff, version = kind >> 16;
    if (version != WIRE_VERSION || type < WIRE_CHALLENGE || type > WIRE_ABORT) {
        return WEIR_ERR_CORRUPT;
    }
    if (payload > max_payload) {
        return WEIR_ERR_LIMIT;
    }
    if (len - WIRE_HEADER_BYTES < payload) {
        return WEIR_ERR_END;
    }
    *out = (struct wire_frame){
        .type = (enum wire_type)type, .payload = data + WIRE_HEADER_BYTES, .len = payload};
    *out_used = WIRE_HEADER_BYTES + payload;
    return WEIR_OK;
}

void wire_frame_header(enum wire_type type, size_t len, uint8_t out[WIRE_HEADER_BYTES])
{
    store_u32(out, (uint32_t)len);
    store_u32(out + 4, (uint32_t)type | (uint32_t)WIRE_VERSION << 16);
}

static const uint8_t *take(struct wire_reader *reader, size_t len)
{
    if (reader->is_bad || reader->left < len) {
        reader->is_bad = true;
        return NULL;
    }
    const uint8_t *p = reader->data;
    reader->data += len;
    reader->left -= len;
    return p;
}

uint32_t wire_get_u32(struct wire_reader *reader)
{
    const uint8_t *p = take(reader, 4);
    return p == NULL ? 0 : load_u32(p);
}

uint64_t wire_get_u64(struct wire_reader *reader)
{
    const uint8_t *p = take(reader, 8);
    return p == NULL ? 0 : (uint64_t)load_u32(p) | (uint64_t)load_u32(p + 4) << 32;
}

static void get_bytes(struct wire_reader *reader, void *out, size_t len)
{
    const uint8_t *p = take(reader, len);
    if (p == NULL) {
        memset(out, 0, len);
    } else {
        memcpy(out, p, len);
    }
}

void wire_get_text(struct wire_reader *reader, char *out, size_t size)
{
    out[0] = '\0';
    size_t len = wire_get_u32(reader);
    if (len >= size) {
        reader->is_bad = true;
        return;
    }
    const uint8_t *p = take(reader, len);
    if (p == NULL || memchr(p, 0, len) != NULL) {
        reader->is_bad = true;
        return;
    }
    memcpy(out, p, len);
    out[len] = '\0';
}

void wire_put_bytes(struct wire_writer *writer, const void *bytes, size_t len)
{
    if (writer->is_bad || writer->cap - writer->len < len) {
        writer->is_bad = true;
        return;
    }
    if (len > 0) {
        memcpy(writer->data + writer->len, bytes, len);
    }
    writer->len += len;
}

void wire_put_u32(struct wire_writer *writer, uint32_t value)
{
    uint8_t bytes[4];
    store_u32(bytes, value);
    wire_put_bytes(writer, bytes, sizeof bytes);
}

void wire_put_u64(struct wire_writer *writer, uint64_t value)
{
    wire_put_u32(writer, (uint32_t)value);
    wire_put_u32(writer, (uint32_t)(value >> 32));
}

void wire_put_text(struct wire_writer *writer, const char *text)
{
    size_t len = strlen(text);
    wire_put_u32(writer, (uint32_t)len);
    wire_put_bytes(writer, text, len);
}

static weir_status reader_end(const struct wire_reader *reader)
{
    return reader->is_bad || reader->left != 0 ? WEIR_ERR_CORRUPT : WEIR_OK;
}

weir_status wire_challenge_parse(const uint8_t *data, size_t len, struct wire_challenge *out)
{
    struct wire_reader reader = {.data = data, .left = len};
    get_bytes(&reader, out->instance, sizeof out->instance);
    get_bytes(&reader, out->nonce, sizeof out->nonce);
    return reader_end(&reader);
}

void wire_challenge_write(struct wire_writer *writer, const struct wire_challenge *challenge)
{
    wire_put_bytes(writer, challenge->instance, sizeof challenge->instance);
    wire_put_bytes(writer, challenge->nonce, sizeof challenge->nonce);
}

weir_status wire_join_parse(const uint8_t *data, size_t len, struct wire_join *out)
{
    struct wire_reader reader = {.data = data, .left = len};
    out->rank = wire_get_u32(&reader);
    out->size = wire_get_u32(&reader);
    out->n_servers = wire_get_u32(&reader);
    out->attempt = wire_get_u32(&reader);
    wire_get_text(&reader, out->job_id, sizeof out->job_id);
    get_bytes(&reader, out->nonce, sizeof out->nonce);
    get_bytes(&reader, out->mac, sizeof out->mac);
    return reader_end(&reader);
}

void wire_join_write(struct wire_writer *writer, const struct wire_join *join)
{
    wire_put_u32(writer, join->rank);
    wire_put_u32(writer, join->size);
    wire_put_u32(writer, join->n_servers);
    wire_put_u32(writer, join->attempt);
    wire_put_text(writer, join->job_id);
    wire_put_bytes(writer, join->nonce, sizeof join->nonce);
}

weir_status wire_problem_parse(const uint8_t *data, size_t len, struct wire_problem *out)
{
    struct wire_reader reader = {.data = data, .left = len};
    out->status = (int32_t)wire_get_u32(&reader);
    out->rank = wire_get_u32(&reader);
    wire_get_text(&reader, out->text, sizeof out->text);
    if (out->status >= 0) {
        return WEIR_ERR_CORRUPT; /* a problem with status OK would be taken for success */
    }
    return reader_end(&reader);
}

void wire_problem_write(struct wire_writer *writer, const struct wire_problem *problem)
{
    wire_put_u32(writer, (uint32_t)problem->status);
    wire_put_u32(writer, problem->rank);
    wire_put_text(writer, problem->text);
}
