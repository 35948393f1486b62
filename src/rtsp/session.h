/** A reader of RTSP from within: what opening, reading and closing share. One thread. */
#ifndef WEIR_RTSP_SESSION_H
#define WEIR_RTSP_SESSION_H

#include "base/peers.h"
#include "dialogue.h"
#include "sdp.h"
#include "stream.h"

struct weir_rtsp {
    struct rtsp_dialogue dialogue;
    struct rtsp_stream stream;
    struct rtsp_sdp sdp; /**< Its texts are of no use any more. */
    enum weir_rtsp_transport transport;
    int udp[2];                                /**< For RTP and RTCP; -1: none. */
    int udp_port, server_port;                 /**< The first of the pair. 0: not told. */
    unsigned channels[2];                      /**< For RTP and RTCP. */
    unsigned char camera[WEIR_PEER_KEY_BYTES]; /**< Its address: datagrams of others are left. */
    uint8_t *datagram;                         /**< RTSP_DATAGRAM_BYTES; NULL over TCP. */
    char url[RTSP_URL_BYTES];                  /**< The address of all streams together. */
    bool has_get_parameter;                    /**< For keeping alive; else OPTIONS. */
    /** The last request to keep alive was sent again, with a new challenge. */
    bool is_asked_again;
    int64_t timeout_ms, alive_ms; /**< How long a session lasts unused; when it was kept alive. */
    int64_t report_ms;            /**< When the last report was sent. */
};

#define RTSP_DATAGRAM_BYTES 65536

/** Everything up to the first packet; rtsp is all zeros but for dialogue, udp and transport. */
weir_status rtsp_session_start(struct weir_rtsp *rtsp, const struct weir_rtsp_sockets *sockets,
                               int64_t deadline_ms, struct weir_error *err) WEIR_MUST_CHECK;

/** Follows the challenge of an answer 401. @return UNAUTH, UNSUPPORTED with a sentence. */
weir_status rtsp_session_challenge(struct weir_rtsp *rtsp, const struct rtsp_message *answer,
                                   struct weir_error *err) WEIR_MUST_CHECK;

/** A piece that is no answer; before the stream is there it is left. @return NOMEM. */
weir_status rtsp_session_packet(struct weir_rtsp *rtsp,
                                const struct rtsp_piece *piece) WEIR_MUST_CHECK;

/** Wait until there is something to read, or for at most that long; write what waits, and read from the connection. */
weir_status rtsp_session_wait(struct weir_rtsp *rtsp, int64_t wait_ms,
                              struct weir_error *err) WEIR_MUST_CHECK;

/** So often: a camera that hears nothing ends the session. */
#define RTSP_REPORT_MS 5000

/** A receiver report over UDP (receiver.h): it says what has come, keeps the way back open, and that somebody watches. */
void rtsp_session_report(struct weir_rtsp *rtsp);

#endif
