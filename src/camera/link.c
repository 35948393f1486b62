#include "link.h"

#include "base/macros.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

static weir_status map_slots(struct camera_link *link, int fd, struct weir_error *err)
{
    void *bytes =
        mmap(NULL, link->n_slots * link->slot_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (bytes == MAP_FAILED) {
        return weir_error_set_errno(err, errno, "mapping %zu frames", link->n_slots);
    }
    link->bytes = bytes;
    return WEIR_OK;
}

weir_status camera_link_open(int socket, struct camera_link *out, char **out_setup,
                             struct weir_error *err)
{
    struct weir_video_message setup;
    int fds[2];
    weir_status status = weir_video_receive(socket, &setup, fds);
    if (status != WEIR_OK || setup.kind != WEIR_VIDEO_SETUP || fds[0] < 0 ||
        setup.slot > WEIR_VIDEO_SLOTS_MAX) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "expected a setup of this version at standard input: weir-camera "
                              "--serve is started by weir-worker");
    }
    *out = (struct camera_link){.socket = socket,
                                .n_slots = setup.slot,
                                .slot_bytes = (size_t)setup.frame.seq,
                                .learnt_us = setup.counts.period_us};
    status = map_slots(out, fds[0], err);
    (void)close(fds[0]);
    WEIR_TRY(status);
    char *text = malloc(WEIR_VIDEO_SETUP_MAX_BYTES);
    ssize_t n = text != NULL ? recv(socket, text, WEIR_VIDEO_SETUP_MAX_BYTES - 1, 0) : -1;
    if (n <= 0) {
        free(text);
        return weir_error_set(err, WEIR_ERR_PEER, "the setup did not come");
    }
    text[n] = '\0';
    *out_setup = text;
    return WEIR_OK;
}

static weir_status take(struct camera_link *link, const struct weir_video_message *message)
{
    if (message->kind == WEIR_VIDEO_FREE && message->slot < link->n_slots &&
        link->n_free < link->n_slots) {
        link->free[link->n_free++] = message->slot;
        return WEIR_OK;
    }
    return WEIR_ERR_CORRUPT;
}

weir_status camera_link_listen(struct camera_link *link, int wait_ms)
{
    struct pollfd poll_fd = {.fd = link->socket, .events = POLLIN};
    while (poll(&poll_fd, 1, wait_ms) > 0) {
        struct weir_video_message message;
        int fds[2];
        WEIR_TRY(weir_video_receive(link->socket, &message, fds));
        WEIR_TRY(take(link, &message));
        wait_ms = 0;
    }
    return WEIR_OK;
}

/* The answer to OPEN; free slots may be told before it. */
static weir_status await_opened(struct camera_link *link, struct weir_video_message *out,
                                int out_fds[2])
{
    for (;;) {
        WEIR_TRY(weir_video_receive(link->socket, out, out_fds));
        if (out->kind == WEIR_VIDEO_OPENED) {
            return WEIR_OK;
        }
        WEIR_TRY(take(link, out));
    }
}

weir_status camera_link_ask(struct camera_link *link, enum weir_video_thing thing, int out_fds[2],
                            int *out_port, struct weir_error *err)
{
    struct weir_video_message message = {.kind = WEIR_VIDEO_OPEN, .slot = thing};
    weir_status status = weir_video_send(link->socket, &message, NULL, 0, true);
    status = status != WEIR_OK ? status : await_opened(link, &message, out_fds);
    if (status != WEIR_OK) {
        return weir_error_set(err, status, "nobody opens it");
    }
    *out_port = message.port;
    return message.status == WEIR_OK ? WEIR_OK
                                     : weir_error_set(err, message.status, "%s", message.text);
}

uint8_t *camera_link_slot(struct camera_link *link)
{
    return link->n_free > 0 ? link->bytes + link->free[link->n_free - 1] * link->slot_bytes : NULL;
}

weir_status camera_link_give(struct camera_link *link, const struct weir_video_frame *frame)
{
    struct weir_video_message message = {
        .kind = WEIR_VIDEO_FRAME, .slot = link->free[link->n_free - 1], .frame = *frame};
    weir_status status = weir_video_send(link->socket, &message, NULL, 0, false);
    link->n_free -= status == WEIR_OK;
    return status == WEIR_ERR_UNAVAILABLE ? WEIR_OK
                                          : status; /* it does not listen: the slot stays free */
}

void camera_link_tell(struct camera_link *link, enum weir_video_message_kind kind,
                      weir_status status, const char *text, const struct weir_video_counts *counts)
{
    struct weir_video_message message = {.kind = kind, .status = status};
    if (counts != NULL) {
        message.counts = *counts;
    }
    (void)snprintf(message.text, sizeof message.text, "%s", text);
    /* The last word may wait for room. */
    (void)!weir_video_send(link->socket, &message, NULL, 0, kind == WEIR_VIDEO_END);
}
