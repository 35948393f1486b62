/* Cameras of the network, over RTSP (rtsp/rtsp.h). */
#include "camera/input.h"

#include "base/arena.h"
#include "base/clock.h"
#include "rtsp/rtsp.h"

#include <stdlib.h>
#include <string.h>

#define OPEN_MS 15000

struct camera_input {
    struct camera_link *link;
    struct weir_rtsp *rtsp;
};

/* There is one host, which the parent knows: the names that come here are not passed on. */
static weir_status connect_to(void *context, const char *host, int port, int64_t deadline_ms,
                              int *out_fd, struct weir_error *err)
{
    int fds[2], ignored;
    (void)host;
    (void)port;
    (void)deadline_ms;
    WEIR_TRY(camera_link_ask(context, WEIR_VIDEO_CONNECTION, fds, &ignored, err));
    *out_fd = fds[0];
    return WEIR_OK;
}

static weir_status bind_pair(void *context, const char *host, int out_fds[2], int *out_port,
                             struct weir_error *err)
{
    (void)host;
    return camera_link_ask(context, WEIR_VIDEO_UDP_PAIR, out_fds, out_port, err);
}

static void close_input(struct camera_input *input)
{
    if (input != NULL) {
        weir_rtsp_close(input->rtsp);
        free(input);
    }
}

static weir_status open_input(const struct camera_setup *setup, struct camera_link *link,
                              struct camera_input **out, struct weir_error *err)
{
    struct weir_camera_host host;
    WEIR_TRY(weir_camera_host_read(setup->camera->address, "rtsp", 0, &host, err));
    const struct weir_rtsp_config config = {
        .url = setup->camera->address,
        .user = setup->password != NULL ? host.user : NULL,
        .password = setup->password,
        .transport = strcmp(setup->source->transport, "udp") == 0 ? WEIR_RTSP_UDP : WEIR_RTSP_TCP,
        .sockets = {.context = link, .connect = connect_to, .bind_pair = bind_pair},
    };
    struct camera_input *input = weir_xalloc(sizeof *input);
    *input = (struct camera_input){.link = link};
    weir_status status = weir_rtsp_open(&config, weir_mono_ms() + OPEN_MS, &input->rtsp, err);
    if (status != WEIR_OK) {
        close_input(input);
        return status;
    }
    *out = input;
    return WEIR_OK;
}

static struct camera_stream stream_of(const struct camera_input *input)
{
    static const enum AVCodecID codecs[] = {[WEIR_RTSP_H264] = AV_CODEC_ID_H264,
                                            [WEIR_RTSP_H265] = AV_CODEC_ID_HEVC,
                                            [WEIR_RTSP_JPEG] = AV_CODEC_ID_MJPEG};
    struct weir_rtsp_facts facts = weir_rtsp_facts(input->rtsp);
    return (struct camera_stream){.codec = codecs[facts.codec],
                                  .extra = facts.parameter_sets,
                                  .n_extra = facts.n_parameter_bytes,
                                  .is_intra = facts.codec == WEIR_RTSP_JPEG};
}

static weir_status next(struct camera_input *input, int64_t deadline_ms, struct camera_unit *out,
                        struct weir_error *err)
{
    struct weir_rtsp_unit unit;
    WEIR_TRY(weir_rtsp_next(input->rtsp, deadline_ms, &unit, err));
    *out = (struct camera_unit){.bytes = unit.bytes,
                                .n_bytes = unit.n_bytes,
                                .media_us = unit.media_us,
                                .wall_ms = unit.wall_ms,
                                .received_ns = unit.received_ns,
                                .n_lost_before = unit.n_lost_before,
                                .epoch = unit.epoch,
                                .is_key = unit.is_key};
    return WEIR_OK;
}

const struct camera_input_ops camera_input_rtsp = {
    .kind = "rtsp", .open = open_input, .stream = stream_of, .next = next, .close = close_input};
