#include "rtsp.h"

#include "base/clock.h"
#include "session.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* Packets that are still taken after the deadline: what has come counts, a flood does not hold the caller. */
enum { LATE_MAX = 1024 };

/* Sentences say which camera; the address without its path. */
static weir_status say_where(const struct weir_rtsp *rtsp, weir_status status,
                             struct weir_error *err)
{
    const struct rtsp_address *address = &rtsp->dialogue.address;
    if (status == WEIR_ERR_NOMEM) {
        (void)weir_error_set(err, status, "out of memory");
    }
    return weir_error_prefix(err, "%s:%d: ", address->host, address->port);
}

static weir_status read_config(const struct weir_rtsp_config *config, struct rtsp_address *out,
                               struct weir_error *err)
{
    WEIR_TRY(rtsp_address_parse(config->url, out, err));
    const char *const given[] = {config->user, config->password};
    char *const places[] = {out->user, out->password};
    for (size_t i = 0; i < WEIR_ARRAY_LEN(given); i++) {
        if (given[i] != NULL &&
            rtsp_text_copy(rtsp_text_of(given[i]), places[i], RTSP_CREDENTIAL_BYTES) != WEIR_OK) {
            return weir_error_set(err, WEIR_ERR_INVALID,
                                  "the camera's %s must have fewer than %d bytes, and no control "
                                  "characters",
                                  i == 0 ? "user" : "password", RTSP_CREDENTIAL_BYTES);
        }
    }
    if (strchr(out->user, ':') != NULL) {
        return weir_error_set(err, WEIR_ERR_INVALID, "the camera's user must not contain \":\"");
    }
    return WEIR_OK;
}

/* Everything that can fail once there is a reader, which owns fd. */
static weir_status start(struct weir_rtsp *rtsp, int fd, const struct rtsp_address *address,
                         const struct weir_rtsp_sockets *sockets, int64_t deadline_ms,
                         struct weir_error *err)
{
    WEIR_TRY(rtsp_dialogue_init(&rtsp->dialogue, fd, address));
    return rtsp_session_start(rtsp, sockets, deadline_ms, err);
}

weir_status weir_rtsp_open(const struct weir_rtsp_config *config, int64_t deadline_ms,
                           struct weir_rtsp **out, struct weir_error *err)
{
    struct rtsp_address address;
    int fd = -1;
    WEIR_TRY(read_config(config, &address, err));
    WEIR_TRY(config->sockets.connect(config->sockets.context, address.host, address.port,
                                     deadline_ms, &fd, err));
    struct weir_rtsp *rtsp = calloc(1, sizeof *rtsp);
    if (rtsp == NULL) {
        (void)close(fd);
        return weir_error_set(err, WEIR_ERR_NOMEM, "out of memory");
    }
    rtsp->transport = config->transport;
    rtsp->udp[0] = rtsp->udp[1] = -1;
    weir_status status = start(rtsp, fd, &address, &config->sockets, deadline_ms, err);
    if (status != WEIR_OK) {
        (void)say_where(rtsp, status, err);
        weir_rtsp_close(rtsp);
        return status;
    }
    *out = rtsp;
    return WEIR_OK;
}

/* Ask for something from time to time, or the camera ends the session. */
static weir_status keep_alive(struct weir_rtsp *rtsp, struct weir_error *err)
{
    rtsp->alive_ms = weir_mono_ms();
    return rtsp_dialogue_send(
        &rtsp->dialogue, rtsp->has_get_parameter ? "GET_PARAMETER" : "OPTIONS", rtsp->url, "", err);
}

/* The answer to that. */
static weir_status hear_answer(struct weir_rtsp *rtsp, const struct rtsp_message *answer,
                               struct weir_error *err)
{
    if (answer->code == 454) {
        return weir_error_set(err, WEIR_ERR_PEER, "the camera has ended the session");
    }
    if (answer->code == 401 && rtsp->is_asked_again) {
        return weir_error_set(err, WEIR_ERR_UNAUTH,
                              "the camera refuses the user or the password now");
    }
    if (answer->code == 401) {
        WEIR_TRY(rtsp_session_challenge(rtsp, answer, err));
        rtsp->is_asked_again = true;
        return keep_alive(rtsp, err);
    }
    rtsp->is_asked_again = false;
    if (answer->code >= 400) {
        rtsp->has_get_parameter = false; /* it was named, and is not known */
    }
    return WEIR_OK;
}

/* One datagram of the camera's, if there is one. Those of others are left. */
static weir_status take_datagram(struct weir_rtsp *rtsp, int i, bool *out_has_one)
{
    struct sockaddr_storage from = {0};
    socklen_t n_from = sizeof from;
    unsigned char key[WEIR_PEER_KEY_BYTES];
    ssize_t n = recvfrom(rtsp->udp[i], rtsp->datagram, RTSP_DATAGRAM_BYTES, 0,
                         (struct sockaddr *)&from, &n_from);
    *out_has_one = n >= 0;
    weir_peer_key((struct sockaddr *)&from, key);
    if (n <= 0 || memcmp(key, rtsp->camera, sizeof key) != 0) {
        return WEIR_OK;
    }
    if (i == 0) {
        return rtsp_stream_offer(&rtsp->stream, rtsp->datagram, (size_t)n, weir_mono_ns());
    }
    rtsp_stream_report(&rtsp->stream, rtsp->datagram, (size_t)n, weir_mono_ns());
    return WEIR_OK;
}

/* One thing that has come, if there is one. */
static weir_status take_one(struct weir_rtsp *rtsp, bool *out_has_one, struct weir_error *err)
{
    struct rtsp_piece piece;
    WEIR_TRY(rtsp_dialogue_take(&rtsp->dialogue, &piece, err));
    *out_has_one = piece.kind != RTSP_PIECE_NONE;
    if (piece.kind == RTSP_PIECE_PACKET) {
        return rtsp_session_packet(rtsp, &piece);
    }
    if (piece.kind == RTSP_PIECE_ANSWER) {
        return hear_answer(rtsp, &piece.message, err);
    }
    for (int i = 1; i >= 0 && !*out_has_one && rtsp->udp[i] >= 0; i--) {
        WEIR_TRY(take_datagram(rtsp, i, out_has_one));
    }
    return WEIR_OK;
}

/* Until something comes, a missing packet is given up, the session wants to be kept alive, or the deadline. */
static weir_status wait_on(struct weir_rtsp *rtsp, int64_t deadline_ms, struct weir_error *err)
{
    int64_t now_ms = weir_mono_ms(), report_at_ms = rtsp->report_ms + RTSP_REPORT_MS;
    int64_t alive_at_ms = rtsp->alive_ms + rtsp->timeout_ms / 2;
    if (now_ms >= alive_at_ms) {
        WEIR_TRY(keep_alive(rtsp, err));
        alive_at_ms = now_ms + rtsp->timeout_ms / 2;
    }
    if (now_ms >= report_at_ms) {
        rtsp_session_report(rtsp);
        report_at_ms = now_ms + RTSP_REPORT_MS;
    }
    int64_t until_ms = WEIR_MIN(WEIR_MIN(deadline_ms, alive_at_ms), report_at_ms);
    uint64_t due_ns = rtsp_queue_due_ns(&rtsp->stream.queue);
    if (due_ns > 0) {
        until_ms = WEIR_MIN(until_ms, (int64_t)(due_ns / 1000000) + 1);
    }
    return rtsp_session_wait(rtsp, until_ms - now_ms, err);
}

static weir_status read_unit(struct weir_rtsp *rtsp, int64_t deadline_ms,
                             struct weir_rtsp_unit *out, struct weir_error *err)
{
    bool has_waited = false;
    for (unsigned n_late = 0;;) {
        weir_status status = rtsp_stream_take(&rtsp->stream, weir_mono_ns(), out, err);
        if (status != WEIR_ERR_TIMEOUT) {
            return status;
        }
        if (rtsp->stream.has_ended) {
            return weir_error_set(err, WEIR_ERR_PEER, "the camera has ended the stream");
        }
        bool has_one = false, is_late = weir_mono_ms() >= deadline_ms;
        WEIR_TRY(take_one(rtsp, &has_one, err));
        if (is_late && (has_one ? ++n_late > LATE_MAX : has_waited)) {
            return weir_error_set(err, WEIR_ERR_TIMEOUT, "the camera sends no picture");
        }
        if (!has_one) {
            WEIR_TRY(wait_on(rtsp, deadline_ms, err));
            has_waited = true;
        }
    }
}

weir_status weir_rtsp_next(struct weir_rtsp *rtsp, int64_t deadline_ms,
                           struct weir_rtsp_unit *out_unit, struct weir_error *err)
{
    weir_status status = read_unit(rtsp, deadline_ms, out_unit, err);
    if (status != WEIR_OK) {
        (void)say_where(rtsp, status, err);
    }
    return status;
}

struct weir_rtsp_facts weir_rtsp_facts(const struct weir_rtsp *rtsp)
{
    return (struct weir_rtsp_facts){
        .codec = rtsp->sdp.codec,
        .parameter_sets = rtsp->sdp.parameter_sets,
        .n_parameter_bytes = rtsp->sdp.n_parameter_bytes,
        .width = rtsp->sdp.width,
        .height = rtsp->sdp.height,
    };
}

struct weir_rtsp_counts weir_rtsp_counts(const struct weir_rtsp *rtsp)
{
    return rtsp_stream_counts(&rtsp->stream);
}

void weir_rtsp_close(struct weir_rtsp *rtsp)
{
    if (rtsp == NULL) {
        return;
    }
    if (rtsp->dialogue.session[0] != '\0' &&
        rtsp_dialogue_send(&rtsp->dialogue, "TEARDOWN", rtsp->url, "", NULL) == WEIR_OK) {
        (void)shutdown(rtsp->dialogue.fd, SHUT_WR);
    }
    for (size_t i = 0; i < WEIR_ARRAY_LEN(rtsp->udp); i++) {
        if (rtsp->udp[i] >= 0) {
            (void)close(rtsp->udp[i]);
        }
    }
    if (rtsp->stream.codec != NULL) {
        rtsp_stream_fini(&rtsp->stream);
    }
    rtsp_dialogue_fini(&rtsp->dialogue);
    free(rtsp->datagram);
    free(rtsp);
}
