/**
 * Line: a program's end of a stream: frames in, frames out, over a connection that it made to the server.
 *
 * It is polled: weir_line_events says for what, and weir_line_flush and weir_line_next do what can be done
 * without waiting. Nothing is read before the frame that was read last has been dealt with, so that whoever does
 * not take what comes holds up who sends it. One thread.
 */
#ifndef WEIR_VISIT_LINE_H
#define WEIR_VISIT_LINE_H

#include "client/client.h"
#include "visit/frame.h"

#include <poll.h>

#define WEIR_LINE_BYTES ((size_t)32 << 10)

struct weir_http_tunnel;

struct weir_line {
    struct weir_http_tunnel *tunnel; /**< NULL: it is not open. */
    struct weir_frames frames;       /**< Of the other side; the one that weir_line_next gave. */
    struct weir_frame_box box;       /**< What is to be sent. */
    bool is_over;                    /**< The connection is. */
    size_t begin, end;               /**< Of bytes that were received, and not looked at. */
    char payload[WEIR_FRAME_MAX_BYTES + 1];
    char bytes[WEIR_LINE_BYTES];
};

/**
 * Ask for a stream at `path`.
 * @param secret  Of the stream: this is the node's end; NULL: it is the person's.
 * @return as weir_client_upgrade; there is nothing to close then.
 */
weir_status weir_line_open(struct weir_line *line, struct weir_client *client, const char *path,
                           const char *secret, struct weir_error *err) WEIR_MUST_CHECK;
void weir_line_close(struct weir_line *line);

/** Send what can be sent. False, from then on: the connection is over. */
bool weir_line_flush(struct weir_line *line);

/** The next frame: line->frames, its payload ends with a NUL. False: there is none now, or the connection is over. What is
 *  no frame ends the connection. */
bool weir_line_next(struct weir_line *line);

/** What to poll its descriptor for; `is_reading`: the next frame is wanted. */
struct pollfd weir_line_poll(const struct weir_line *line, bool is_reading);

#endif
