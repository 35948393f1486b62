#include "base/sha256.h"

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

void weir_sha256_add(struct weir_sha256_stream *stream, const void *bytes, size_t len)
{
    (void)crypto_hash_sha256_update(state_of(stream), bytes, len);
}

void weir_sha256_end(struct weir_sha256_stream *stream, char out[WEIR_SHA256_TEXT_BYTES])
{
    unsigned char hash[crypto_hash_sha256_BYTES];
    (void)crypto_hash_sha256_final(state_of(stream), hash);
    (void)sodium_bin2hex(out, WEIR_SHA256_TEXT_BYTES, hash, sizeof hash);
}
