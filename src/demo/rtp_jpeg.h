/**
 * A JPEG file as packets of RTP (RFC 2435), each behind the four bytes that it has inside a connection of RTSP (RFC 2326, 10.12).
 * Pure.
 */
#ifndef WEIR_DEMO_RTP_JPEG_H
#define WEIR_DEMO_RTP_JPEG_H

#include "base/buf.h"

#include <stdint.h>

/** Where a sender stands: one for each receiver. */
struct rtp_jpeg {
    uint32_t source; /**< The sender's number (SSRC). */
    uint16_t n_sent; /**< The next packet's number. */
    uint8_t channel; /**< Of the connection. */
};

/**
 * Append a picture's packets to `out`.
 *
 * @param jpeg  A file as weir_image_encode makes one of an RGB picture: baseline, 4:2:0, the standard's Huffman tables. Width and height
 *              are multiples of 16, at most 2,040.
 * @param time  When it was taken, in ticks of 90 kHz.
 * @return UNSUPPORTED: another kind of file; LIMIT, NOMEM: `out` has a part of the packets.
 */
weir_status rtp_jpeg_put(struct rtp_jpeg *rtp, const void *jpeg, size_t n, uint32_t time,
                         struct weir_buf *out, struct weir_error *err) WEIR_MUST_CHECK;

#endif
