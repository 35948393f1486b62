/**
 * Packets of RTP in the order of their numbers (RFC 3550, appendix A.1).
 *
 * It holds packets that came before one that is missing, for a bounded time; then the missing one is lost. Through a
 * connection nothing overtakes, so the time is 0 there. Offer each packet as it comes, and take until there is none.
 *
 * One thread. At most RTSP_QUEUE_PACKETS are held; what comes further ahead makes all that are missing lost.
 */
#ifndef WEIR_RTSP_QUEUE_H
#define WEIR_RTSP_QUEUE_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RTSP_QUEUE_PACKETS 128

struct rtsp_packet {
    uint16_t number;
    uint8_t payload_type;
    bool has_marker;
    uint32_t rtp_time, source;
    const uint8_t *payload;
    size_t n;
    uint64_t received_ns;
};

struct rtsp_slot {
    struct rtsp_packet packet; /**< Its payload lies in `bytes`. */
    bool is_held;
    uint8_t *bytes;
    size_t cap;
};

struct rtsp_queue {
    uint64_t wait_ns; /**< How long a missing packet is waited for. */
    bool has_begun;
    bool has_jumped; /**< The last packet's number was far off: jump_to follows it. */
    uint16_t next, jump_to;
    size_t n_held;
    struct rtsp_slot slots[RTSP_QUEUE_PACKETS]; /**< By number. */
    uint64_t n_lost, n_late;                    /**< In all. */
};

/** The head of a packet. Pure. @return CORRUPT: it is none of RTP. */
weir_status rtsp_packet_parse(const uint8_t *bytes, size_t n,
                              struct rtsp_packet *out) WEIR_MUST_CHECK;

/** Copies the packet. One that comes twice or too late is counted and left. @return NOMEM. */
weir_status rtsp_queue_offer(struct rtsp_queue *queue,
                             const struct rtsp_packet *packet) WEIR_MUST_CHECK;

/**
 * The next packet, which stays. It lives until the next offer.
 *
 * @param now_ns   weir_mono_ns.
 * @return NULL: there is none yet.
 */
const struct rtsp_packet *rtsp_queue_peek(struct rtsp_queue *queue, uint64_t now_ns);

/** The packet of the last peek is done with. */
void rtsp_queue_pop(struct rtsp_queue *queue);

/** When the next peek gives something without another offer; 0: it does not. */
uint64_t rtsp_queue_due_ns(const struct rtsp_queue *queue);

/** Another sender begins: what is held is lost, and any number is the first. */
void rtsp_queue_restart(struct rtsp_queue *queue);

void rtsp_queue_fini(struct rtsp_queue *queue);

#endif
