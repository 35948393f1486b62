/**
 * Streams: cameras over RTSP, of pictures that this program gives. It is what a camera of the network is to those who watch it, and small:
 * JPEG through the connection (RFC 2326, 2435), no UDP, one stream a camera, Basic authentication.
 *
 *     WEIR_TRY(demo_streams_open(&options, &streams, &port, err));   // rtsp://HOST:PORT/NAME of each camera
 *     demo_streams_show(streams, i_camera, jpeg, n);                 // as often as there is a picture
 *     demo_streams_close(streams);
 *
 * A thread of its own answers those who watch. The newest picture of a camera wins, and a watcher that takes nothing in is let go. At most
 * DEMO_WATCHERS_MAX watch at once; further ones wait until one leaves.
 */
#ifndef WEIR_DEMO_STREAM_H
#define WEIR_DEMO_STREAM_H

#include "base/status.h"

#include <stddef.h>

#define DEMO_WATCHERS_MAX 32

struct demo_streams;

struct demo_streams_options {
    const char *listen; /**< HOST:PORT; port 0: any free one. */
    const char *login;  /**< USER:PASSWORD that a watcher has to know; NULL: anybody may watch. */
    const char *const *names; /**< What the n cameras are called. Borrowed until it is closed. */
    size_t n;
};

/** @return As weir_listen_open; IO. */
weir_status demo_streams_open(const struct demo_streams_options *options, struct demo_streams **out,
                              int *out_port, struct weir_error *err) WEIR_MUST_CHECK;

/** A camera's next picture, a file of JPEG as rtp_jpeg_put takes them; copied. Any thread. */
void demo_streams_show(struct demo_streams *streams, size_t i_camera, const void *jpeg, size_t n);

/** How many watch this camera now. Any thread. */
size_t demo_streams_watchers(struct demo_streams *streams, size_t i_camera);

/** Hang up and end. NULL is accepted. */
void demo_streams_close(struct demo_streams *streams);

#endif
