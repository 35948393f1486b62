#include "session.h"

#include "base/clock.h"

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

enum { DEFAULT_TIMEOUT_S = 60, HEADERS_BYTES = 128, UDP_ROOM_BYTES = 4 << 20 };

/* How long a missing packet is waited for over UDP: what overtakes in a network does so within a few ms. */
#define REORDER_NS ((uint64_t)50000000)

/* What an answer's code means to a person. */
static weir_status say_refusal(const struct weir_rtsp *rtsp, const char *method, int code,
                               struct weir_error *err)
{
    static const struct {
        int code;
        weir_status status;
        const char *text;
    } known[] = {
        {403, WEIR_ERR_DENIED, "the camera does not let this user watch"},
        {404, WEIR_ERR_NOT_FOUND,
         "the camera has no stream at the path of this address: the camera's manual says which"},
        {453, WEIR_ERR_UNAVAILABLE, "the camera has no bandwidth left: do too many others watch?"},
        {454, WEIR_ERR_PEER, "the camera has ended the session"},
        {503, WEIR_ERR_UNAVAILABLE,
         "the camera takes nobody now: is it starting, or do too many others watch?"},
    };

    for (size_t i = 0; i < WEIR_ARRAY_LEN(known); i++) {
        if (known[i].code == code) {
            return weir_error_set(err, known[i].status, "%s", known[i].text);
        }
    }
    if (code == 461) {
        bool is_udp = rtsp->transport == WEIR_RTSP_UDP;
        return weir_error_set(err, WEIR_ERR_UNSUPPORTED,
                              "the camera does not send over %s: set transport to %s",
                              is_udp ? "UDP" : "TCP", is_udp ? "tcp" : "udp");
    }
    if (code >= 300 && code < 400) {
        return weir_error_set(err, WEIR_ERR_UNSUPPORTED,
                              "the camera refers to another address, which is not followed: set "
                              "that address as its url");
    }
    return weir_error_set(err, code >= 500 ? WEIR_ERR_UNAVAILABLE : WEIR_ERR_UNSUPPORTED,
                          "the camera answers %d to %s", code, method);
}

weir_status rtsp_session_challenge(struct weir_rtsp *rtsp, const struct rtsp_message *answer,
                                   struct weir_error *err)
{
    if (rtsp->dialogue.address.user[0] == '\0') {
        return weir_error_set(err, WEIR_ERR_UNAUTH,
                              "the camera wants a user and a password: set them");
    }
    weir_status status = rtsp_auth_challenge(&rtsp->dialogue.auth, answer);
    return status == WEIR_OK
               ? WEIR_OK
               : weir_error_set(err, status,
                                "the camera wants a kind of authentication that is not "
                                "supported: set it to Digest or Basic");
}

weir_status rtsp_session_packet(struct weir_rtsp *rtsp, const struct rtsp_piece *piece)
{
    if (rtsp->stream.codec == NULL || rtsp->transport != WEIR_RTSP_TCP) {
        return WEIR_OK;
    }
    if (piece->channel == rtsp->channels[0]) {
        return rtsp_stream_offer(&rtsp->stream, piece->bytes, piece->n, rtsp->dialogue.read_ns);
    }
    if (piece->channel == rtsp->channels[1]) {
        rtsp_stream_report(&rtsp->stream, piece->bytes, piece->n, weir_mono_ns());
    }
    return WEIR_OK;
}

weir_status rtsp_session_wait(struct weir_rtsp *rtsp, int64_t wait_ms, struct weir_error *err)
{
    struct pollfd fds[] = {{.fd = rtsp->dialogue.fd, .events = POLLIN},
                           {.fd = rtsp->udp[0], .events = POLLIN},
                           {.fd = rtsp->udp[1], .events = POLLIN}};
    if (rtsp->dialogue.out.len > 0) {
        fds[0].events |= POLLOUT;
    }
    int n = poll(fds, WEIR_ARRAY_LEN(fds), (int)WEIR_MAX(0, WEIR_MIN(wait_ms, 60000)));
    if (n < 0 && errno != EINTR) {
        return weir_error_set_errno(err, errno, "cannot wait for the camera");
    }
    if (n <= 0 || fds[0].revents == 0) {
        return WEIR_OK;
    }
    WEIR_TRY(rtsp_dialogue_flush(&rtsp->dialogue, err));
    return rtsp_dialogue_fill(&rtsp->dialogue, err);
}

static weir_status wait_for_answer(struct weir_rtsp *rtsp, const char *method, int64_t deadline_ms,
                                   struct rtsp_message *out, struct weir_error *err)
{
    for (;;) {
        struct rtsp_piece piece;
        WEIR_TRY(rtsp_dialogue_take(&rtsp->dialogue, &piece, err));
        if (piece.kind == RTSP_PIECE_ANSWER && piece.message.code >= 200) {
            *out = piece.message;
            return WEIR_OK;
        }
        if (piece.kind == RTSP_PIECE_PACKET) {
            WEIR_TRY(rtsp_session_packet(rtsp, &piece));
        }
        int64_t now_ms = weir_mono_ms();
        if (now_ms >= deadline_ms) {
            return weir_error_set(err, WEIR_ERR_TIMEOUT, "the camera does not answer %s in time",
                                  method);
        }
        if (piece.kind == RTSP_PIECE_NONE) {
            WEIR_TRY(rtsp_session_wait(rtsp, deadline_ms - now_ms, err));
        }
    }
}

/* A request and its answer; once more if the camera wants a proof. The answer lives until the next call. */
static weir_status ask(struct weir_rtsp *rtsp, const char *method, const char *url,
                       const char *headers, int64_t deadline_ms, struct rtsp_message *out,
                       struct weir_error *err)
{
    for (int i = 0; i < 2; i++) {
        WEIR_TRY(rtsp_dialogue_send(&rtsp->dialogue, method, url, headers, err));
        WEIR_TRY(wait_for_answer(rtsp, method, deadline_ms, out, err));
        if (out->code < 300) {
            return WEIR_OK;
        }
        if (out->code != 401) {
            return say_refusal(rtsp, method, out->code, err);
        }
        WEIR_TRY(rtsp_session_challenge(rtsp, out, err));
    }
    return weir_error_set(err, WEIR_ERR_UNAUTH, "the camera refuses the user or the password");
}

static weir_status ask_options(struct weir_rtsp *rtsp, int64_t deadline_ms, struct weir_error *err)
{
    struct rtsp_message answer;
    struct rtsp_text methods = {"", 0}, unused;
    WEIR_TRY(ask(rtsp, "OPTIONS", rtsp->dialogue.address.url, "", deadline_ms, &answer, err));
    (void)rtsp_message_header(&answer, "Public", 0, &methods);
    rtsp->has_get_parameter = rtsp_text_find(methods, ',', "GET_PARAMETER", &unused);
    return WEIR_OK;
}

static weir_status part_url(const char *base, struct rtsp_text control, char out[RTSP_URL_BYTES],
                            struct weir_error *err)
{
    if (rtsp_address_of_part(base, control, out) != WEIR_OK) {
        return weir_error_set(err, WEIR_ERR_CORRUPT,
                              "the camera names a part of its stream by an address that is none");
    }
    return WEIR_OK;
}

/* What there is. out_url: of the stream. */
static weir_status describe(struct weir_rtsp *rtsp, int64_t deadline_ms,
                            char out_url[RTSP_URL_BYTES], struct weir_error *err)
{
    char base[RTSP_URL_BYTES];
    struct rtsp_message answer;
    struct rtsp_text given = {"", 0};
    WEIR_TRY(ask(rtsp, "DESCRIBE", rtsp->dialogue.address.url, "Accept: application/sdp\r\n",
                 deadline_ms, &answer, err));
    if (!rtsp_message_header(&answer, "Content-Base", 0, &given)) {
        (void)rtsp_message_header(&answer, "Content-Location", 0, &given);
    }
    WEIR_TRY(part_url(rtsp->dialogue.address.url, given, base, err));
    WEIR_TRY(rtsp_sdp_parse(answer.body, &rtsp->sdp, err));
    WEIR_TRY(part_url(base, rtsp->sdp.session_control, rtsp->url, err));
    return part_url(base, rtsp->sdp.control, out_url, err);
}

/* What the camera says of the way that packets take. */
static weir_status follow_transport(struct weir_rtsp *rtsp, struct rtsp_text transport,
                                    struct weir_error *err)
{
    struct rtsp_text value = {"", 0};
    bool is_tcp = rtsp_text_begins(transport, "RTP/AVP/TCP");
    if (is_tcp != (rtsp->transport == WEIR_RTSP_TCP) ||
        rtsp_text_find(transport, ';', "multicast", &value)) {
        return weir_error_set(err, WEIR_ERR_UNSUPPORTED,
                              "the camera wants to send over %s, which it was not asked to",
                              is_tcp ? "TCP" : "UDP");
    }
    if (rtsp_text_find(transport, ';', is_tcp ? "interleaved" : "server_port", &value)) {
        struct rtsp_text first = rtsp_text_cut(&value, '-');
        int64_t number = rtsp_text_number(first, is_tcp ? 255 : 65535);
        int64_t second = rtsp_text_number(value, 255);
        rtsp->server_port = is_tcp ? 0 : (int)WEIR_MAX(number, 0);
        if (is_tcp && number >= 0) {
            rtsp->channels[0] = (unsigned)number;
            rtsp->channels[1] = (unsigned)(second >= 0 ? second : number + 1);
        }
    }
    return WEIR_OK;
}

static weir_status set_up(struct weir_rtsp *rtsp, const char *url, int64_t deadline_ms,
                          struct weir_error *err)
{
    char headers[HEADERS_BYTES];
    struct rtsp_message answer;
    struct rtsp_text text = {"", 0}, timeout = {"", 0};
    if (rtsp->transport == WEIR_RTSP_TCP) {
        (void)snprintf(headers, sizeof headers,
                       "Transport: RTP/AVP/TCP;unicast;interleaved=0-1\r\n");
    } else {
        (void)snprintf(headers, sizeof headers, "Transport: RTP/AVP;unicast;client_port=%d-%d\r\n",
                       rtsp->udp_port, rtsp->udp_port + 1);
    }
    WEIR_TRY(ask(rtsp, "SETUP", url, headers, deadline_ms, &answer, err));
    if (!rtsp_message_header(&answer, "Transport", 0, &text)) {
        return weir_error_set(err, WEIR_ERR_CORRUPT, "the camera does not say how it sends");
    }
    WEIR_TRY(follow_transport(rtsp, text, err));
    text = (struct rtsp_text){"", 0};
    (void)rtsp_message_header(&answer, "Session", 0, &text);
    (void)rtsp_text_find(text, ';', "timeout", &timeout);
    int64_t timeout_s = rtsp_text_number(timeout, 86400);
    rtsp->timeout_ms = 1000 * (timeout_s > 0 ? timeout_s : DEFAULT_TIMEOUT_S);
    if (rtsp_text_copy(rtsp_text_trim(rtsp_text_cut(&text, ';')), rtsp->dialogue.session,
                       sizeof rtsp->dialogue.session) != WEIR_OK) {
        return weir_error_set(err, WEIR_ERR_CORRUPT, "the camera gives the session no usable name");
    }
    return WEIR_OK;
}

void rtsp_session_report(struct weir_rtsp *rtsp)
{
    uint8_t report[RTSP_RECEIVER_BYTES];
    struct sockaddr_storage address = {0};
    socklen_t n = sizeof address;
    rtsp->report_ms = weir_mono_ms();
    if (rtsp->server_port == 0 ||
        getpeername(rtsp->dialogue.fd, (struct sockaddr *)&address, &n) != 0) {
        return;
    }
    size_t n_report = rtsp_receiver_write(&rtsp->stream.receiver, weir_mono_ns(), report);
    for (int i = 0; i < 2; i++) {
        in_port_t port = htons((uint16_t)(rtsp->server_port + i));
        if (address.ss_family == AF_INET6) {
            ((struct sockaddr_in6 *)&address)->sin6_port = port;
        } else {
            ((struct sockaddr_in *)&address)->sin_port = port;
        }
        (void)sendto(rtsp->udp[i], report, n_report, MSG_NOSIGNAL, (struct sockaddr *)&address, n);
    }
}

/* Sockets for datagrams. */
static weir_status open_udp(struct weir_rtsp *rtsp, const struct weir_rtsp_sockets *sockets,
                            struct weir_error *err)
{
    struct sockaddr_storage camera = {0};
    socklen_t n = sizeof camera;
    if (sockets->bind_pair == NULL) {
        return weir_error_set(err, WEIR_ERR_UNSUPPORTED,
                              "UDP is not to be had here: set transport to tcp");
    }
    if (getpeername(rtsp->dialogue.fd, (struct sockaddr *)&camera, &n) != 0) {
        return weir_error_set_errno(err, errno, "the camera has closed the connection");
    }
    weir_peer_key((struct sockaddr *)&camera, rtsp->camera);
    rtsp->datagram = malloc(RTSP_DATAGRAM_BYTES);
    if (rtsp->datagram == NULL) {
        return WEIR_ERR_NOMEM;
    }
    WEIR_TRY(sockets->bind_pair(sockets->context, rtsp->dialogue.address.host, rtsp->udp,
                                &rtsp->udp_port, err));
    /* A key frame comes as one burst; a kernel that does not grant so much takes what it does. */
    int room_bytes = UDP_ROOM_BYTES;
    (void)setsockopt(rtsp->udp[0], SOL_SOCKET, SO_RCVBUF, &room_bytes, sizeof room_bytes);
    return WEIR_OK;
}

weir_status rtsp_session_start(struct weir_rtsp *rtsp, const struct weir_rtsp_sockets *sockets,
                               int64_t deadline_ms, struct weir_error *err)
{
    char url[RTSP_URL_BYTES];
    struct rtsp_message answer;
    WEIR_TRY(ask_options(rtsp, deadline_ms, err));
    WEIR_TRY(describe(rtsp, deadline_ms, url, err));
    if (rtsp->transport == WEIR_RTSP_UDP) {
        WEIR_TRY(open_udp(rtsp, sockets, err));
    }
    rtsp->channels[1] = 1;
    WEIR_TRY(set_up(rtsp, url, deadline_ms, err));
    rtsp_stream_init(&rtsp->stream, rtsp->sdp.codec, rtsp->sdp.payload_type,
                     rtsp->transport == WEIR_RTSP_UDP ? REORDER_NS : 0);
    rtsp->stream.unit.jpeg.width = rtsp->sdp.width;
    rtsp->stream.unit.jpeg.height = rtsp->sdp.height;
    rtsp_session_report(rtsp);
    WEIR_TRY(ask(rtsp, "PLAY", rtsp->url, "Range: npt=0.000-\r\n", deadline_ms, &answer, err));
    rtsp->alive_ms = weir_mono_ms();
    return WEIR_OK;
}
