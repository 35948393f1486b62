/**
 * Wire: what a process and the weir-camera that it has started say to each other, through a pair of sockets that keeps messages apart
 * (SOCK_SEQPACKET).
 *
 *     parent ─▸ SETUP (a descriptor of the slots), then the setup as JSON · FREE (a slot to write into) · OPENED (descriptors, or why not)
 *     weir-camera ─▸ OPEN · LIVE · FRAME (a slot that is the parent's until it is free again) · REPORT · END
 *
 * A slot belongs to one side at a time, and it changes sides by a message: no word of the shared memory is believed. The parent takes
 * what weir-camera says as a stranger's word, for what a camera sends may have made it its own.
 */
#ifndef WEIR_VIDEO_WIRE_H
#define WEIR_VIDEO_WIRE_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WEIR_VIDEO_PROTOCOL        1
#define WEIR_VIDEO_SETUP_MAX_BYTES ((size_t)64 << 10)
#define WEIR_VIDEO_TEXT_BYTES      512
#define WEIR_VIDEO_SIDE_MAX        16384
#define WEIR_VIDEO_SLOTS_MAX       64

enum weir_video_message_kind {
    WEIR_VIDEO_SETUP,
    WEIR_VIDEO_FREE,
    WEIR_VIDEO_OPENED,
    WEIR_VIDEO_OPEN, /**< slot: an enum weir_video_thing. */
    WEIR_VIDEO_LIVE, /**< There is a first frame that can be given; text: the codec. */
    WEIR_VIDEO_FRAME,
    WEIR_VIDEO_REPORT, /**< It is alive; the counts. At least once in WEIR_VIDEO_REPORT_MS. */
    WEIR_VIDEO_END,    /**< status, text: why it ends. END: the file is over. */
};

#define WEIR_VIDEO_REPORT_MS 1000

/** What weir-camera may ask for. It names no address: there is one of each, of its camera. */
enum weir_video_thing { WEIR_VIDEO_CONNECTION, WEIR_VIDEO_UDP_PAIR, WEIR_VIDEO_FILE };

/** A frame in a slot: I420, planes without gaps. */
struct weir_video_frame {
    int64_t seq;      /**< Place in the stream, from 0: frames that were not decoded are counted. */
    int64_t wall_ms;  /**< When it was taken, by the camera's own clock; 0: not known. */
    int64_t media_us; /**< By the stream's clock since its begin. */
    uint64_t received_ns; /**< weir_mono_ns when its last byte was read. */
    uint32_t epoch;       /**< A new one: the camera's clock has jumped. */
    int32_t width, height;
    int32_t is_full_range;
    int32_t condition; /**< enum weir_condition_kind. */
    float motion;      /**< Share of the picture that moves, 0 to 1. */
};

/** Since the connection's begin. */
struct weir_video_counts {
    uint64_t n_units; /**< Encoded pictures that came. */
    uint64_t n_decoded;
    uint64_t n_skipped; /**< Not asked for: between two of `fps`, no key frame, nothing moves. */
    uint64_t n_dropped; /**< No slot was free: the reader is behind. */
    uint64_t n_damaged; /**< Broken, or not to be decoded. */
    uint64_t n_lost;    /**< Packets, or before the first key frame. */
    int64_t period_us;  /**< A unit comes so often; 0: not known yet. */
    /** By how much the camera's clock is ahead of ours; 0 if it tells none. */
    int64_t clock_off_ms;
};

struct weir_video_message {
    uint32_t protocol; /**< WEIR_VIDEO_PROTOCOL; set by weir_video_send. */
    uint32_t kind;
    uint32_t slot;
    int32_t status;
    int32_t port;
    struct weir_video_frame frame;
    struct weir_video_counts counts;
    char text[WEIR_VIDEO_TEXT_BYTES];
};

/**
 * Send a message, with up to two descriptors, which stay the caller's. Any thread; it waits for room only if may_wait.
 * @return UNAVAILABLE: no room; PEER: the other side has gone; IO.
 */
weir_status weir_video_send(int socket, struct weir_video_message *message, const int *fds,
                            size_t n_fds, bool may_wait) WEIR_MUST_CHECK;

/**
 * Receive a message. Waits if the socket blocks.
 * @param fds  Room for two, closed on exec; those that did not come are -1.
 * @return UNAVAILABLE: there is none; PEER: the other side has gone; CORRUPT: no message of this protocol.
 */
weir_status weir_video_receive(int socket, struct weir_video_message *out,
                               int fds[2]) WEIR_MUST_CHECK;

/** Bytes of a picture of this size, as a slot holds it; 0: no such size. Pure. */
size_t weir_video_frame_bytes(int64_t width, int64_t height);

#endif
