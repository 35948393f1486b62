/**
 * SHA-256 of whole blocks by the processor's own instructions (SHA-NI), where it has them: several times as
 * fast as any other way, and files of gigabytes are hashed while they come.
 */
#ifndef WEIR_BASE_SHA256_BLOCKS_H
#define WEIR_BASE_SHA256_BLOCKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SHA256_BLOCK_BYTES 64

/** Has this processor the instructions? Looked up once. Any thread. */
bool sha256_blocks_can(void);

/** Take n_blocks of 64 bytes into the state (FIPS 180-4, section 6.2). Only if sha256_blocks_can. */
void sha256_blocks(uint32_t state[8], const unsigned char *bytes, size_t n_blocks);

#endif
