/* Cameras that send JPEG pictures over HTTP: a stream, or one for each request. */
#include "camera/http.h"
#include "camera/input.h"

#include "base/arena.h"
#include "base/clock.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct camera_input {
    struct camera_link *link;
    struct weir_camera_host host;
    struct camera_http http;
    int64_t period_ms; /**< Between two single pictures; 0: a stream, as far as is known. */
    double fps;
    int64_t due_ms, begun_ms;
};

static void hang_up(struct camera_input *input)
{
    if (input->http.fd >= 0) {
        (void)close(input->http.fd);
    }
    camera_http_begin(&input->http, -1);
}

static weir_status call(struct camera_input *input, struct weir_error *err)
{
    int fds[2], port;
    hang_up(input);
    WEIR_TRY(camera_link_ask(input->link, WEIR_VIDEO_CONNECTION, fds, &port, err));
    camera_http_begin(&input->http, fds[0]);
    return WEIR_OK;
}

static void close_input(struct camera_input *input)
{
    hang_up(input);
    camera_http_fini(&input->http);
    free(input);
}

static weir_status open_input(const struct camera_setup *setup, struct camera_link *link,
                              struct camera_input **out, struct weir_error *err)
{
    struct camera_input *input = weir_xalloc(sizeof *input);
    *input = (struct camera_input){.link = link};
    input->period_ms = (int64_t)(setup->source->period_s * 1000);
    input->fps = setup->source->fps;
    weir_status status =
        weir_camera_host_read(setup->camera->address, "http", 80, &input->host, err);
    camera_http_init(&input->http, input->host.host,
                     input->host.path != NULL && input->host.path[0] != '\0' ? input->host.path
                                                                             : "/",
                     input->host.user, setup->password);
    status = status != WEIR_OK ? status : call(input, err);
    if (status != WEIR_OK) {
        close_input(input);
        return status;
    }
    input->begun_ms = input->due_ms = weir_mono_ms();
    *out = input;
    return WEIR_OK;
}

static struct camera_stream stream_of(const struct camera_input *input)
{
    (void)input;
    return (struct camera_stream){.codec = AV_CODEC_ID_MJPEG, .is_intra = true};
}

static weir_status wait_due(struct camera_input *input, int64_t deadline_ms, struct weir_error *err)
{
    while (input->due_ms > weir_mono_ms()) {
        int64_t wait_ms = WEIR_MIN(input->due_ms, deadline_ms) - weir_mono_ms();
        if (wait_ms <= 0) {
            return WEIR_ERR_TIMEOUT;
        }
        if (camera_link_listen(input->link, (int)wait_ms) != WEIR_OK) {
            return weir_error_set(err, WEIR_ERR_PEER, "nobody takes its frames");
        }
    }
    return WEIR_OK;
}

/* An address that was taken for a stream, and gives single pictures, is asked as often as frames are wanted. */
static int64_t period_of(const struct camera_input *input)
{
    bool is_stream = input->http.boundary[0] != '\0';
    int64_t wanted_ms = input->fps > 0 ? (int64_t)(1000 / input->fps) : 1;
    return is_stream || input->period_ms > 0 ? input->period_ms : WEIR_MAX(wanted_ms, 1);
}

static weir_status next(struct camera_input *input, int64_t deadline_ms, struct camera_unit *out,
                        struct weir_error *err)
{
    WEIR_TRY(wait_due(input, deadline_ms, err));
    if (input->http.fd < 0) {
        WEIR_TRY(call(input, err));
    }
    const uint8_t *bytes;
    size_t n;
    bool was_asked = input->http.is_asked;
    weir_status status = camera_http_next(&input->http, deadline_ms, &bytes, &n, err);
    if (status == WEIR_ERR_CONFLICT) {
        WEIR_TRY(call(input, err));
        status = camera_http_next(&input->http, deadline_ms, &bytes, &n, err);
    } else if (status == WEIR_ERR_PEER && input->period_ms > 0 && !was_asked) {
        hang_up(input); /* it had kept the connection for a while, and then not */
        return WEIR_ERR_TIMEOUT;
    }
    WEIR_TRY(status);
    int64_t now_ms = weir_mono_ms();
    input->period_ms = period_of(input);
    *out = (struct camera_unit){.bytes = bytes,
                                .n_bytes = n,
                                .media_us = (now_ms - input->begun_ms) * 1000,
                                .received_ns = weir_mono_ns(),
                                .is_key = true};
    input->due_ms = input->period_ms > 0 ? WEIR_MAX(input->due_ms + input->period_ms, now_ms) : 0;
    if (input->period_ms > 0 && input->http.is_last) {
        (void)close(input->http.fd); /* its bytes stay until the next call */
        input->http.fd = -1;
    }
    return WEIR_OK;
}

const struct camera_input_ops camera_input_mjpeg = {
    .kind = "mjpeg", .open = open_input, .stream = stream_of, .next = next, .close = close_input};
