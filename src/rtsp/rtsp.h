/**
 * RTSP: the pictures of a camera, still encoded, each as soon as its last packet is there.
 *
 * A reader speaks RTSP 1.0 (RFC 2326) with one camera and puts the packets of RTP (RFC 3550) together again. It
 * decodes nothing. Its nouns: a *unit* is one picture (an access unit of H.264 or H.265 in Annex B, or a JPEG file);
 * an *epoch* is a span in which the camera's clock runs evenly; a unit is *broken* if a packet of it is missing.
 *
 *     struct weir_rtsp *rtsp = NULL;
 *     WEIR_TRY(weir_rtsp_open(&config, weir_mono_ms() + 10000, &rtsp, err));
 *     while ((status = weir_rtsp_next(rtsp, weir_mono_ms() + 2000, &unit, err)) == WEIR_OK) { … }
 *     weir_rtsp_close(rtsp);
 *
 * A unit is given when the packet with the marker has been read, and not one picture later. Broken units are dropped,
 * and so are those behind them up to the next key frame (of JPEG each is one): what is given can be decoded.
 *
 * It opens no socket itself: the caller's functions do. It asks for one stream, the first video that it knows. Its
 * memory is bounded: a unit, 128 packets, an answer. What a camera or a stranger sends is at worst a sentence. No
 * message contains a user, a password, the path of the address, or text from the camera.
 *
 * Not supported, and refused by name: rtsps, redirects, H.264 packets of the interleaved mode, H.265 with decoding order
 * numbers or PACI packets, JPEG with tables of 16 bits, multicast.
 *
 * Threads: a reader belongs to one thread, and starts none.
 */
#ifndef WEIR_RTSP_RTSP_H
#define WEIR_RTSP_RTSP_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WEIR_RTSP_UNIT_MAX_BYTES    ((size_t)8 << 20)
#define WEIR_RTSP_MESSAGE_MAX_BYTES ((size_t)64 << 10)
#define WEIR_RTSP_URL_MAX_BYTES     1024

enum weir_rtsp_codec { WEIR_RTSP_H264, WEIR_RTSP_H265, WEIR_RTSP_JPEG };

enum weir_rtsp_transport {
    WEIR_RTSP_TCP, /**< Packets come through the connection of RTSP: none is lost on the way. */
    WEIR_RTSP_UDP, /**< Packets come by themselves: sooner, and not all. */
};

/** Where sockets come from. Each is non-blocking; the reader closes what it was given. */
struct weir_rtsp_sockets {
    void *context;
    /** A connection of TCP. The function keeps to the deadline (weir_mono_ms). */
    weir_status (*connect)(void *context, const char *host, int port, int64_t deadline_ms,
                           int *out_fd, struct weir_error *err);
    /** Two sockets of UDP for this host's packets, bound to *out_port, which is even, and the port after it, of an
     *  address that the host reaches. NULL: there is only TCP. */
    weir_status (*bind_pair)(void *context, const char *host, int out_fds[2], int *out_port,
                             struct weir_error *err);
};

struct weir_rtsp_config {
    /** rtsp://[USER[:PASSWORD]@]HOST[:PORT][/PATH]; "%40" in a password is "@". */
    const char *url;
    const char *user, *password; /**< In place of those of the url; NULL: those. */
    enum weir_rtsp_transport transport;
    struct weir_rtsp_sockets sockets;
};

/** What the camera says of its stream. The reader owns what is pointed to. */
struct weir_rtsp_facts {
    enum weir_rtsp_codec codec;
    /** Annex B, for the decoder; none: they come with the key frames. */
    const uint8_t *parameter_sets;
    size_t n_parameter_bytes;
    int width, height; /**< 0: not told. */
};

struct weir_rtsp_unit {
    const uint8_t *bytes; /**< Borrowed until the next call. */
    size_t n_bytes;
    uint32_t rtp_time; /**< By the camera's media clock; it wraps. */
    /** From 1. A new one says that the media clock, or the wall clock, has jumped by more than a second, or that
     *  another sender has begun. */
    uint32_t epoch;
    /** Since the first unit: by the camera's media clock within an epoch, by arrival from one to the next. It never
     *  goes back. */
    int64_t media_us;
    /** When it was taken, by the camera's wall clock (sender reports); 0: not told. It does not go back within an
     *  epoch. */
    int64_t wall_ms;
    uint64_t received_ns;   /**< weir_mono_ns when the unit's last packet was read. */
    uint64_t n_lost_before; /**< Packets sent since the unit before that are in no unit. */
    bool is_key;            /**< It can be decoded without others. */
};

struct weir_rtsp_counts {
    uint64_t n_packets; /**< That came. */
    uint64_t n_lost;    /**< That did not, as far as numbers tell. */
    uint64_t n_late;    /**< That came twice or too late, or are none of RTP. */
    uint64_t n_units;   /**< Given. */
    uint64_t n_dropped; /**< Units: broken, or before a key frame. */
};

struct weir_rtsp;

/**
 * Connects and asks the camera to play.
 *
 * @param config  Borrowed until the call returns.
 * @param deadline_ms  weir_mono_ms at which it gives up.
 * @return INVALID: the address; UNAUTH: user or password, which may be missing; NOT_FOUND: the path; UNSUPPORTED: what
 *         the camera has, or how it sends it; CORRUPT, LIMIT: its answers; UNAVAILABLE: it refuses now; TIMEOUT; PEER:
 *         the connection has ended; or an error of the sockets. Nothing is left open.
 */
weir_status weir_rtsp_open(const struct weir_rtsp_config *config, int64_t deadline_ms,
                           struct weir_rtsp **out, struct weir_error *err) WEIR_MUST_CHECK;

/**
 * The next unit. It keeps the session alive on the way.
 *
 * @return TIMEOUT: none is whole by the deadline; nothing is lost, call again. A camera that has fallen silent is
 *         this, too: the caller knows how long is too long. PEER: the camera has ended the
 *         connection or the stream; UNAUTH, CORRUPT, UNSUPPORTED, LIMIT, IO, NOMEM: as it says. After these only
 *         weir_rtsp_close makes sense.
 */
weir_status weir_rtsp_next(struct weir_rtsp *rtsp, int64_t deadline_ms,
                           struct weir_rtsp_unit *out_unit, struct weir_error *err) WEIR_MUST_CHECK;

struct weir_rtsp_facts weir_rtsp_facts(const struct weir_rtsp *rtsp);
struct weir_rtsp_counts weir_rtsp_counts(const struct weir_rtsp *rtsp);

/** Tells the camera, without waiting for its answer, and closes all sockets. NULL is accepted. */
void weir_rtsp_close(struct weir_rtsp *rtsp);

#endif
