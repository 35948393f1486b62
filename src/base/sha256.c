#include "base/sha256.h"

#include "base/sha256_blocks.h"

#include <sodium.h>

_Static_assert(sizeof(crypto_hash_sha256_state) <= sizeof(struct weir_sha256_stream),
               "the library's state fits");

static crypto_hash_sha256_state *state_of(struct weir_sha256_stream *stream)
{
    return (crypto_hash_sha256_state *)(void *)stream->state;
}

void weir_sha256_begin(struct weir_sha256_stream *stream)
{
    (void)crypto_hash_sha256_init(state_of(stream));
}

/* Whole blocks go by the processor's instructions into the library's state, whose `count` is in bits; what
 * is before and behind them by the library. */
void weir_sha256_add(struct weir_sha256_stream *stream, const void *bytes, size_t len)
{
    crypto_hash_sha256_state *state = state_of(stream);
    const unsigned char *next = bytes;
    if (sha256_blocks_can() && len >= (size_t)2 * SHA256_BLOCK_BYTES) {
        size_t n_held = (size_t)(state->count >> 3) % SHA256_BLOCK_BYTES;
        size_t n_fill = n_held > 0 ? SHA256_BLOCK_BYTES - n_held : 0;
        (void)crypto_hash_sha256_update(state, next, n_fill);
        next += n_fill;
        len -= n_fill;
        size_t n_blocks = len / SHA256_BLOCK_BYTES;
        sha256_blocks(state->state, next, n_blocks);
        state->count += (uint64_t)n_blocks * SHA256_BLOCK_BYTES * 8;
        next += n_blocks * SHA256_BLOCK_BYTES;
        len -= n_blocks * SHA256_BLOCK_BYTES;
    }
    (void)crypto_hash_sha256_update(state, next, len);
}

void weir_sha256_end(struct weir_sha256_stream *stream, char out[WEIR_SHA256_TEXT_BYTES])
{
    unsigned char hash[crypto_hash_sha256_BYTES];
    (void)crypto_hash_sha256_final(state_of(stream), hash);
    (void)sodium_bin2hex(out, WEIR_SHA256_TEXT_BYTES, hash, sizeof hash);
}
