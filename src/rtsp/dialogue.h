/**
 * A dialogue: the connection to a camera, as messages of RTSP and packets between them.
 *
 * It never waits: what cannot be written yet is written later (rtsp_dialogue_flush), what has not come yet is no piece.
 * One thread.
 */
#ifndef WEIR_RTSP_DIALOGUE_H
#define WEIR_RTSP_DIALOGUE_H

#include "address.h"
#include "auth.h"
#include "message.h"

#define RTSP_SESSION_BYTES 256

struct rtsp_dialogue {
    int fd; /**< The dialogue closes it. */
    struct rtsp_address address;
    struct rtsp_auth auth;
    uint8_t *in; /**< What has come, from begin to end. */
    size_t begin, end;
    uint64_t read_ns; /**< When the last of it came. */
    struct weir_buf out;
    unsigned n_sent;                  /**< Requests: the number of the last. */
    char session[RTSP_SESSION_BYTES]; /**< Empty: none yet. */
};

enum rtsp_piece_kind {
    RTSP_PIECE_NONE,
    RTSP_PIECE_PACKET,  /**< It came on a channel. */
    RTSP_PIECE_ANSWER,  /**< To the last request. */
    RTSP_PIECE_SKIPPED, /**< Nothing that anybody waits for. */
};

struct rtsp_piece {
    enum rtsp_piece_kind kind;
    unsigned channel;
    const uint8_t *bytes; /**< Lives until the next fill. */
    size_t n;
    struct rtsp_message message;
};

/** @param fd  Non-blocking; the dialogue's from here on, also if it fails. @return NOMEM. */
weir_status rtsp_dialogue_init(struct rtsp_dialogue *dialogue, int fd,
                               const struct rtsp_address *address) WEIR_MUST_CHECK;
void rtsp_dialogue_fini(struct rtsp_dialogue *dialogue);

/** A request. @param headers  Further ones, each with its line's end. @return PEER: the camera takes nothing any more. */
weir_status rtsp_dialogue_send(struct rtsp_dialogue *dialogue, const char *method, const char *url,
                               const char *headers, struct weir_error *err) WEIR_MUST_CHECK;

/** Write what waits, as far as it goes. @return PEER: the connection has ended. */
weir_status rtsp_dialogue_flush(struct rtsp_dialogue *dialogue,
                                struct weir_error *err) WEIR_MUST_CHECK;

/** Read what has come, if anything has. @return PEER: the connection has ended. */
weir_status rtsp_dialogue_fill(struct rtsp_dialogue *dialogue,
                               struct weir_error *err) WEIR_MUST_CHECK;

/** The next piece of what has been read. Requests of the camera are refused on the way. @return CORRUPT, LIMIT, PEER. */
weir_status rtsp_dialogue_take(struct rtsp_dialogue *dialogue, struct rtsp_piece *out,
                               struct weir_error *err) WEIR_MUST_CHECK;

#endif
