/**
 * The wire format of the rendezvous: length-prefixed frames with little-endian fields.
 *
 *     u32 payload bytes | u16 type | u16 version | payload
 *
 * Parsers take bytes from unauthenticated peers: they never read past the given length and never
 * allocate.
 */
#ifndef WEIR_COMM_WIRE_H
#define WEIR_COMM_WIRE_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    WIRE_VERSION = 1,
    WIRE_HEADER_BYTES = 8,
    WIRE_MAX_PAYLOAD = 4 << 20, /**< 256 ranks with 16 KiB each. */
    WIRE_MAX_HELLO = 1024,      /**< Payload limit before the peer is authenticated. */
    WIRE_NONCE_BYTES = 32,
    WIRE_MAC_BYTES = 32,
    WIRE_JOB_ID_BYTES = 128,
    WIRE_TEXT_BYTES = 256,
};

enum wire_type {
    WIRE_CHALLENGE = 1, /**< server → client: instance, nonce */
    WIRE_JOIN,          /**< client → server: rank and job, nonce, MAC */
    WIRE_ACCEPT,        /**< server → client: MAC */
    WIRE_REFUSE,        /**< server → client: status, sentence */
    WIRE_DATA,          /**< MAC, then the caller's bytes */
    WIRE_ABORT,         /**< MAC, then status, rank, sentence */
};

struct wire_frame {
    enum wire_type type;
    const uint8_t *payload; /**< Points into the parsed bytes. */
    size_t len;
};

/**
 * Parse the first frame in data.
 *
 * @param max_payload  Longer frames are LIMIT, even before their payload has arrived.
 * @param out_used     Bytes of the frame.
 * @return WEIR_ERR_END if more bytes are needed; LIMIT; CORRUPT (unknown version or type).
 */
weir_status wire_frame_parse(const uint8_t *data, size_t len, size_t max_payload,
                             struct wire_frame *out, size_t *out_used) WEIR_MUST_CHECK;

/** Header of a frame whose payload has `len` bytes. */
void wire_frame_header(enum wire_type type, size_t len, uint8_t out[WIRE_HEADER_BYTES]);

/** Reads fields one by one. After the first missing one is_bad is set, and all later ones are
 *  zero. */
struct wire_reader {
    const uint8_t *data;
    size_t left;
    bool is_bad;
};

uint32_t wire_get_u32(struct wire_reader *reader);
uint64_t wire_get_u64(struct wire_reader *reader);

/** u32 length and characters; a text longer than size - 1, or with a NUL inside, is bad. */
void wire_get_text(struct wire_reader *reader, char *out, size_t size);

/** Writes fields one by one. Beyond cap is_bad is set, and nothing more is written. */
struct wire_writer {
    uint8_t *data;
    size_t cap, len;
    bool is_bad;
};

void wire_put_u32(struct wire_writer *writer, uint32_t value);
void wire_put_u64(struct wire_writer *writer, uint64_t value);
void wire_put_bytes(struct wire_writer *writer, const void *bytes, size_t len);
void wire_put_text(struct wire_writer *writer, const char *text);

/* ---- messages ------------------------------------------------------------------------------- */

struct wire_challenge {
    uint8_t instance[WIRE_NONCE_BYTES]; /**< Which rank 0 this is: published with its address. */
    uint8_t nonce[WIRE_NONCE_BYTES];
};

struct wire_join {
    uint32_t rank, size, n_servers, attempt;
    char job_id[WIRE_JOB_ID_BYTES];
    uint8_t nonce[WIRE_NONCE_BYTES];
    uint8_t mac[WIRE_MAC_BYTES];
};

/** A refusal or an abort; rank is WIRE_NO_RANK if no rank is at fault. */
struct wire_problem {
    int32_t status;
    uint32_t rank;
    char text[WIRE_TEXT_BYTES];
};

#define WIRE_NO_RANK UINT32_MAX

/** Each reads exactly the whole payload. @return CORRUPT otherwise. */
weir_status wire_challenge_parse(const uint8_t *data, size_t len,
                                 struct wire_challenge *out) WEIR_MUST_CHECK;
weir_status wire_join_parse(const uint8_t *data, size_t len, struct wire_join *out) WEIR_MUST_CHECK;
weir_status wire_problem_parse(const uint8_t *data, size_t len,
                               struct wire_problem *out) WEIR_MUST_CHECK;

void wire_challenge_write(struct wire_writer *writer, const struct wire_challenge *challenge);

/** All fields but the MAC, which covers them; the caller appends it. */
void wire_join_write(struct wire_writer *writer, const struct wire_join *join);
void wire_problem_write(struct wire_writer *writer, const struct wire_problem *problem);

#endif
