/** Link: weir-camera's side of the wire to the process that has started it, and its slots. One thread. */
#ifndef WEIR_CAMERA_LINK_H
#define WEIR_CAMERA_LINK_H

#include "video/wire.h"

struct camera_link {
    int socket;
    uint8_t *bytes; /**< The slots' memory. */
    size_t n_slots, slot_bytes;
    uint32_t free[WEIR_VIDEO_SLOTS_MAX]; /**< Those that may be written into. */
    size_t n_free;
    int64_t learnt_us; /**< The camera's period, of connections before; 0: not known. */
};

/** Take the setup: maps the slots. @param out_setup  JSON with a NUL; free() it. */
weir_status camera_link_open(int socket, struct camera_link *out, char **out_setup,
                             struct weir_error *err) WEIR_MUST_CHECK;

/** Take what the parent has said by now; waits up to wait_ms for the first of it. @return PEER: it has gone. */
weir_status camera_link_listen(struct camera_link *link, int wait_ms) WEIR_MUST_CHECK;

/** Have something opened. @param out_fds  Room for two. @return The parent's answer. */
weir_status camera_link_ask(struct camera_link *link, enum weir_video_thing thing, int out_fds[2],
                            int *out_port, struct weir_error *err) WEIR_MUST_CHECK;

/** A free slot's memory; NULL: there is none. It stays free until it is given. */
uint8_t *camera_link_slot(struct camera_link *link);

/** The slot of camera_link_slot is the parent's. @return PEER, IO. */
weir_status camera_link_give(struct camera_link *link,
                             const struct weir_video_frame *frame) WEIR_MUST_CHECK;

/** LIVE, REPORT, END. What does not arrive is not repeated. */
void camera_link_tell(struct camera_link *link, enum weir_video_message_kind kind,
                      weir_status status, const char *text, const struct weir_video_counts *counts);

#endif
