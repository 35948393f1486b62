#include "base/hash.h"

#include <string.h>

#define FNV_PRIME 0x100000001b3u

uint64_t weir_hash_bytes(uint64_t hash, const void *bytes, size_t len)
{
    const unsigned char *at = bytes;
    for (size_t i = 0; i < len; i++) {
        hash = (hash ^ at[i]) * FNV_PRIME;
    }
    return hash;
}

uint64_t weir_hash_text(uint64_t hash, const char *text)
{
    return weir_hash_bytes(hash, text, strlen(text));
}
