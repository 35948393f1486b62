#include "md5.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { BLOCK_BYTES = 64 };

/* Section 3.4: 64 steps in four rounds. The constants are floor(2^32 |sin i|), i from 1. */
static void add_block(uint32_t sum[4], const uint8_t block[BLOCK_BYTES])
{
    static const uint8_t shifts[4][4] = {
        {7, 12, 17, 22}, {5, 9, 14, 20}, {4, 11, 16, 23}, {6, 10, 15, 21}};
    uint32_t a = sum[0], b = sum[1], c = sum[2], d = sum[3];
    for (unsigned i = 0; i < 64; i++) {
        unsigned round = i / 16, word = 0;
        uint32_t f = 0;
        switch (round) {
        case 0:
            f = (b & c) | (~b & d);
            word = i;
            break;
        case 1:
            f = (b & d) | (c & ~d);
            word = 5 * i + 1;
            break;
        case 2:
            f = b ^ c ^ d;
            word = 3 * i + 5;
            break;
        default:
            f = c ^ (b | ~d);
            word = 7 * i;
            break;
        }
        const uint8_t *p = block + word % 16 * 4;
        uint32_t x = p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
        uint32_t turned = a + f + x + (uint32_t)(4294967296.0 * fabs(sin(i + 1.0)));
        unsigned shift = shifts[round][i % 4];
        a = d;
        d = c;
        c = b;
        b += turned << shift | turned >> (32 - shift);
    }
    sum[0] += a;
    sum[1] += b;
    sum[2] += c;
    sum[3] += d;
}

void rtsp_md5(const void *data, size_t len, char out[RTSP_MD5_TEXT_BYTES])
{
    uint32_t sum[4] = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476};
    const uint8_t *bytes = data;
    size_t n_whole = len / BLOCK_BYTES * BLOCK_BYTES, n_left = len - n_whole;
    for (size_t i = 0; i < n_whole; i += BLOCK_BYTES) {
        add_block(sum, bytes + i);
    }
    uint8_t tail[2 * BLOCK_BYTES] = {0};
    size_t n_tail = n_left + 9 > BLOCK_BYTES ? 2 * BLOCK_BYTES : BLOCK_BYTES;
    if (n_left > 0) {
        memcpy(tail, bytes + n_whole, n_left);
    }
    tail[n_left] = 0x80;
    for (unsigned i = 0; i < 8; i++) {
        tail[n_tail - 8 + i] = (uint8_t)((uint64_t)len * 8 >> 8 * i);
    }
    for (size_t i = 0; i < n_tail; i += BLOCK_BYTES) {
        add_block(sum, tail + i);
    }
    for (unsigned i = 0; i < 16; i++) {
        (void)snprintf(out + (size_t)2 * i, 3, "%02x", sum[i / 4] >> 8 * (i % 4) & 0xff);
    }
}
