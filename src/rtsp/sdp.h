/** What a camera says of its streams (SDP, RFC 8866): the one stream that is taken of it. Pure. */
#ifndef WEIR_RTSP_SDP_H
#define WEIR_RTSP_SDP_H

#include "rtsp.h"
#include "text.h"

#define RTSP_PARAMETER_SETS_MAX_BYTES 4096

struct rtsp_sdp {
    enum weir_rtsp_codec codec;
    int payload_type;
    struct rtsp_text control;         /**< Address of the stream; empty: that of the whole. */
    struct rtsp_text session_control; /**< Address of the whole; empty: none. */
    int width, height;                /**< 0: not told. */
    uint8_t parameter_sets[RTSP_PARAMETER_SETS_MAX_BYTES]; /**< Annex B. */
    size_t n_parameter_bytes;
};

/**
 * The first video in a codec that is known; one that the camera would receive only if there is no other.
 *
 * @param out  Its texts point into `text`.
 * @return UNSUPPORTED with a sentence that names what there is instead, or what of it is not supported.
 */
weir_status rtsp_sdp_parse(struct rtsp_text text, struct rtsp_sdp *out,
                           struct weir_error *err) WEIR_MUST_CHECK;

#endif
