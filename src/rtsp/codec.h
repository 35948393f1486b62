/**
 * Codecs: how the payloads of packets become a unit. A codec is a row of a table, with a file of its own.
 *
 * A unit grows in a `struct rtsp_unit`: begin it, take the payloads in the order of their numbers, and see that it is
 * whole. One thread; the buffer is the caller's.
 */
#ifndef WEIR_RTSP_CODEC_H
#define WEIR_RTSP_CODEC_H

#include "base/buf.h"
#include "rtsp.h"

/** What a fragmented picture of JPEG keeps between packets, and from one picture to the next (RFC 2435). */
struct rtsp_jpeg {
    int width, height; /**< As the camera's description says; 0: it does not. */
    uint32_t n_scan;   /**< Bytes of the unit's scan. */
    uint8_t q;         /**< The factor that the tables are of; 0: there are none. */
    uint8_t tables[128];
};

struct rtsp_unit {
    struct weir_buf bytes;
    bool has_picture; /**< There are pixels in it, not just parameter sets. */
    bool is_key;
    bool begins; /**< Its first packet is one that a unit begins with. */
    /** It refers to what is before the key that was last sent: without that it is not shown. */
    bool is_skipped;
    bool is_in_fragment; /**< The end of a NAL unit or a picture is still to come. */
    struct rtsp_jpeg jpeg;
};

struct rtsp_codec {
    const char *name; /**< As in "a=rtpmap". */
    bool is_alone;    /**< Each picture can be decoded without others. */
    /** @return CORRUPT, LIMIT: the unit is of no use; NOMEM; UNSUPPORTED with a sentence: the stream is of no use. */
    weir_status (*take)(struct rtsp_unit *unit, const uint8_t *payload, size_t n,
                        struct weir_error *err);
    /** What a whole unit still needs at its end; NULL: nothing. */
    weir_status (*end)(struct rtsp_unit *unit);
};

/** By enum weir_rtsp_codec. */
extern const struct rtsp_codec *const rtsp_codecs[3];
extern const struct rtsp_codec rtsp_codec_h264, rtsp_codec_h265, rtsp_codec_jpeg;

/** Forget what the unit has; keep its memory, and what goes from one to the next. */
void rtsp_unit_begin(struct rtsp_unit *unit);

/** Annex B: a start code and a NAL unit. */
weir_status rtsp_unit_put_nal(struct rtsp_unit *unit, const uint8_t *nal, size_t n) WEIR_MUST_CHECK;

/** The NAL units of an aggregation: each after its length of 16 bits. @param put  Takes one. */
weir_status rtsp_unit_put_all(struct rtsp_unit *unit, const uint8_t *bytes, size_t n,
                              weir_status (*put)(struct rtsp_unit *unit, const uint8_t *nal,
                                                 size_t n)) WEIR_MUST_CHECK;

#endif
