/*
 * A reader against a camera that is made here: a thread that answers requests by a script of what it is like, on a port
 * of the kernel's choice. It checks what it is asked by its own reading of it.
 */
#include "rtsp.h"

#include "auth.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/listen.h"
#include "base/test_main.h"
#include "md5.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>

enum { N_PICTURES = 5, TEXT_BYTES = 4096 };

/* What the camera is like. All zeros: it lets everybody watch, over TCP. */
struct script {
    const char *challenge; /* for 401; NULL: it wants no proof */
    const char *answer;    /* "METHOD 404": it answers that, to that */
    const char *banner;    /* in place of every answer */
    bool is_silent;        /* it answers nothing */
    bool is_in_pieces;     /* it writes byte by byte */
    bool wants_stale;      /* the first request to keep alive is refused with a new nonce */
    bool says_bye;         /* in the end, by RTCP */
    int timeout_s;
};

struct camera {
    struct script script;
    int listener, port, fd;
    pthread_t thread;
    int client_port, n_kept_alive;
    bool has_torn_down, has_seen_secret;
    const char *nonce;
    unsigned long n_proofs; /* as the last one counts itself */
};

static void say(struct camera *camera, const void *bytes, size_t n)
{
    size_t step = camera->script.is_in_pieces ? 1 : n;
    for (size_t i = 0; i < n; i += step) {
        (void)!send(camera->fd, (const char *)bytes + i, WEIR_MIN(step, n - i), MSG_NOSIGNAL);
    }
}

/* A key picture of one slice, as a packet of RTP. */
static size_t picture_of(int i, uint8_t out[64])
{
    const uint8_t bytes[] = {0x80,
                             0x80 | 96,
                             0,
                             (uint8_t)i,
                             0,
                             0,
                             (uint8_t)(i * 9000 >> 8),
                             (uint8_t)(i * 9000),
                             1,
                             2,
                             3,
                             4,
                             0x65,
                             0x80,
                             (uint8_t)i,
                             'x'};
    memcpy(out, bytes, sizeof bytes);
    return sizeof bytes;
}

static const uint8_t bye[] = {'$', 3, 0, 8, 0x81, 203, 0, 1, 1, 2, 3, 4};

static void send_pictures(struct camera *camera)
{
    static const char request[] = "OPTIONS * RTSP/1.0\r\nCSeq: 1\r\n\r\n";
    static const uint8_t audio[] = {'$', 7, 0, 3, 1, 2, 3};
    for (int i = 0; i < N_PICTURES; i++) {
        uint8_t frame[68] = {'$', 2};
        size_t n = picture_of(i, frame + 4);
        frame[3] = (uint8_t)n;
        say(camera, frame, 4 + n);
        say(camera, audio, sizeof audio);
        say(camera, request, sizeof request - 1);
    }
    if (camera->script.says_bye) {
        say(camera, bye, sizeof bye);
    }
}

/* From two sockets: the camera's pictures in pairs the wrong way round, a stranger's between. */
static void send_datagrams(struct camera *camera)
{
    static const int order[N_PICTURES] = {0, 2, 1, 4, 3};
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)camera->client_port)};
    struct sockaddr_in stranger = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(0x7f000002)};
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    WEIR_AUTO(weir_fd_auto_close) int own = socket(AF_INET, SOCK_DGRAM, 0);
    WEIR_AUTO(weir_fd_auto_close) int other = socket(AF_INET, SOCK_DGRAM, 0);
    (void)bind(other, (struct sockaddr *)&stranger, sizeof stranger);
    for (int i = 0; i < N_PICTURES; i++) {
        uint8_t packet[64];
        size_t n = picture_of(i + 100, packet);
        (void)sendto(other, packet, n, 0, (struct sockaddr *)&to, sizeof to);
        n = picture_of(order[i], packet);
        (void)sendto(own, packet, n, 0, (struct sockaddr *)&to, sizeof to);
    }
}

static bool has(const char *request, const char *text)
{
    return strstr(request, text) != NULL;
}

/* Is the proof right? By the formulas, from the request's own words. The password is "se cret". */
static bool is_proven(struct camera *camera, const char *request, const char *method)
{
    const char *proof = strstr(request, "Authorization: ");
    if (camera->script.challenge == NULL) {
        return true;
    }
    if (proof == NULL) {
        return false;
    }
    if (has(camera->script.challenge, "Basic")) {
        return has(proof, "Basic YWRhOnNlIGNyZXQ=\r\n"); /* ada:se cret */
    }
    char uri[512] = "", nc[16] = "", cnonce[64] = "", text[1024], a[33], b[33], expected[64];
    (void)sscanf(strstr(proof, "uri=\"") + 5, "%511[^\"]", uri);
    (void)snprintf(text, sizeof text, "ada:door:se cret");
    rtsp_md5(text, strlen(text), a);
    if (has(proof, "cnonce=")) {
        (void)sscanf(strstr(proof, "cnonce=\"") + 8, "%63[^\"]", cnonce);
    }
    if (has(camera->script.challenge, "MD5-sess")) {
        (void)snprintf(text, sizeof text, "%s:%s:%s", a, camera->nonce, cnonce);
        rtsp_md5(text, strlen(text), a);
    }
    (void)snprintf(text, sizeof text, "%s:%s", method, uri);
    rtsp_md5(text, strlen(text), b);
    if (has(camera->script.challenge, "qop")) {
        (void)sscanf(strstr(proof, "nc=") + 3, "%15[0-9a-f]", nc);
        if (strtoul(nc, NULL, 16) != camera->n_proofs + 1) {
            return false;
        }
        (void)snprintf(text, sizeof text, "%s:%s:%s:%s:auth:%s", a, camera->nonce, nc, cnonce, b);
    } else {
        (void)snprintf(text, sizeof text, "%s:%s:%s", a, camera->nonce, b);
    }
    rtsp_md5(text, strlen(text), a);
    camera->n_proofs++;
    (void)snprintf(expected, sizeof expected, "response=\"%s\"", a);
    return has(proof, expected) && has(request, uri);
}

/* What is answered, behind "RTSP/1.0 " and before the end of the head. */
static void answer_of(struct camera *camera, const char *request, const char *method,
                      char out[TEXT_BYTES])
{
    static const char sdp[] = "v=0\r\ns=x\r\na=control:*\r\nm=video 0 RTP/AVP 96\r\n"
                              "a=rtpmap:96 H264/90000\r\na=control:track1\r\n"
                              "a=fmtp:96 sprop-parameter-sets=Z0LgHw==,aM4xsg==\r\n";
    const char *planned = camera->script.answer;
    size_t n = strlen(method);
    char address[64];
    (void)snprintf(address, sizeof address, "rtsp://127.0.0.1:%d/cam", camera->port);
    if (planned != NULL && strncmp(planned, method, n) == 0 && planned[n] == ' ') {
        (void)snprintf(out, TEXT_BYTES, "%s for ada and se cret\r\nLocation: rtsp://x/\r\n",
                       planned + n + 1);
    } else if (strcmp(method, "OPTIONS") == 0) {
        (void)snprintf(out, TEXT_BYTES, "200 OK\r\nPublic: DESCRIBE, GET_PARAMETER, PLAY\r\n");
    } else if (strcmp(method, "DESCRIBE") == 0) {
        (void)snprintf(out, TEXT_BYTES,
                       "200 OK\r\nContent-Base: %s/\r\nContent-Type: application/sdp\r\n"
                       "Content-Length: %zu\r\n\r\n%s",
                       address, sizeof sdp - 1, sdp);
    } else if (strcmp(method, "SETUP") == 0 && has(request, "/cam/track1 RTSP")) {
        const char *port = strstr(request, "client_port=");
        camera->client_port =
            port == NULL ? 0 : (int)strtol(port + strlen("client_port="), NULL, 10);
        (void)snprintf(out, TEXT_BYTES, "200 OK\r\nSession: 12 ;timeout=%d\r\nTransport: %s\r\n",
                       camera->script.timeout_s,
                       port != NULL ? "RTP/AVP;unicast;client_port=1-2;server_port=9-10"
                                    : "RTP/AVP/TCP;unicast;interleaved=2-3");
    } else if (has(request, "Session: 12\r\n") && has(request, "/cam/ RTSP")) {
        (void)snprintf(out, TEXT_BYTES, "200 OK\r\nSession: 12\r\n");
    } else {
        (void)snprintf(out, TEXT_BYTES, "454 Session Not Found\r\n");
    }
}

static void answer(struct camera *camera, const char *request)
{
    char method[32] = "", text[TEXT_BYTES], whole[2 * TEXT_BYTES];
    const char *number = strstr(request, "CSeq: ");
    (void)sscanf(request, "%31s", method);
    camera->has_seen_secret = camera->has_seen_secret || has(request, "se cret");
    camera->has_torn_down = camera->has_torn_down || strcmp(method, "TEARDOWN") == 0;
    bool is_alive = strcmp(method, "GET_PARAMETER") == 0;
    if (is_alive && camera->script.wants_stale) {
        camera->script.wants_stale = false;
        camera->nonce = "second";
        camera->n_proofs = 0;
    }
    if (is_proven(camera, request, method)) {
        answer_of(camera, request, method, text);
        camera->n_kept_alive += is_alive;
    } else {
        (void)snprintf(text, sizeof text,
                       "401 Unauthorized\r\nWWW-Authenticate: %s, nonce=\"%s\"\r\n",
                       camera->script.challenge, camera->nonce);
    }
    int n = snprintf(whole, sizeof whole, "RTSP/1.0 %.3s OK\r\nCSeq: %d%s%s", text,
                     number == NULL ? 0 : (int)strtol(number + 6, NULL, 10), strchr(text, '\r'),
                     has(text, "\r\n\r\n") ? "" : "\r\n");
    say(camera, camera->script.banner != NULL ? camera->script.banner : whole,
        camera->script.banner != NULL ? strlen(camera->script.banner) : (size_t)n);
    if (is_alive && camera->n_kept_alive > 0) {
        say(camera, bye, sizeof bye);
    } else if (strcmp(method, "PLAY") == 0) {
        if (camera->client_port > 0) {
            send_datagrams(camera);
        } else {
            send_pictures(camera);
        }
    }
}

/* Requests until the other side ends, or for its last word. Answers to its own requests are read, too. */
static void *run_camera(void *context)
{
    struct camera *camera = context;
    struct pollfd waits = {.fd = camera->listener, .events = POLLIN};
    char text[TEXT_BYTES + 1];
    size_t n = 0;
    (void)poll(&waits, 1, 10000);
    camera->fd = accept(camera->listener, NULL, NULL);
    int is_at_once = 1;
    (void)setsockopt(camera->fd, IPPROTO_TCP, TCP_NODELAY, &is_at_once, sizeof is_at_once);
    for (;;) {
        ssize_t n_more = recv(camera->fd, text + n, TEXT_BYTES - n, 0);
        if (n_more <= 0) {
            break;
        }
        n += (size_t)n_more;
        text[n] = '\0';
        for (char *end; (end = strstr(text, "\r\n\r\n")) != NULL;) {
            char after = end[4];
            end[4] = '\0';
            if (strncmp(text, "RTSP/", 5) != 0 && !camera->script.is_silent) {
                answer(camera, text);
            }
            end[4] = after;
            n -= (size_t)(end + 4 - text);
            memmove(text, end + 4, n + 1);
        }
        if (camera->script.says_bye && camera->has_torn_down) {
            break;
        }
    }
    (void)close(camera->fd);
    return NULL;
}

static void start(struct camera *camera, const struct script *script)
{
    struct weir_error err = {0};
    *camera = (struct camera){.script = *script, .nonce = "first"};
    camera->script.timeout_s = script->timeout_s > 0 ? script->timeout_s : 60;
    ck_assert_int_eq(
        weir_listen_open("127.0.0.1:0", "a test", &camera->listener, &camera->port, &err), WEIR_OK);
    ck_assert_int_eq(pthread_create(&camera->thread, NULL, run_camera, camera), 0);
}

static void stop(struct camera *camera)
{
    (void)pthread_join(camera->thread, NULL);
    (void)close(camera->listener);
    ck_assert(!camera->has_seen_secret);
}

static weir_status connect_here(void *context, const char *host, int port, int64_t deadline_ms,
                                int *out_fd, struct weir_error *err)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    (void)context;
    ck_assert_int_gt(deadline_ms, 0);
    ck_assert_int_eq(inet_pton(AF_INET, host, &to.sin_addr), 1);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connect(fd, (struct sockaddr *)&to, sizeof to) != 0) {
        (void)close(fd);
        return weir_error_set_errno(err, errno, "cannot connect");
    }
    (void)fcntl(fd, F_SETFL, O_NONBLOCK);
    *out_fd = fd;
    return WEIR_OK;
}

/* Neighbours of which the first is even: tried until the kernel's choice is. */
static weir_status bind_here(void *context, const char *host, int out_fds[2], int *out_port,
                             struct weir_error *err)
{
    (void)context;
    (void)host;
    for (int i = 0; i < 100; i++) {
        struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        socklen_t n = sizeof at;
        int fds[] = {socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0),
                     socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0)};
        ck_assert_int_eq(bind(fds[0], (struct sockaddr *)&at, sizeof at), 0);
        ck_assert_int_eq(getsockname(fds[0], (struct sockaddr *)&at, &n), 0);
        int port = ntohs(at.sin_port);
        at.sin_port = htons((uint16_t)(port + 1));
        if (port % 2 == 0 && bind(fds[1], (struct sockaddr *)&at, sizeof at) == 0) {
            memcpy(out_fds, fds, sizeof fds);
            *out_port = port;
            return WEIR_OK;
        }
        (void)close(fds[0]);
        (void)close(fds[1]);
    }
    return weir_error_set(err, WEIR_ERR_CONFLICT, "no ports");
}

static weir_status open_it(const struct camera *camera, enum weir_rtsp_transport transport,
                           const char *login, int64_t timeout_ms, struct weir_rtsp **out,
                           struct weir_error *err)
{
    char url[256];
    (void)snprintf(url, sizeof url, "rtsp://%s127.0.0.1:%d/cam", login, camera->port);
    const struct weir_rtsp_config config = {
        .url = url,
        .transport = transport,
        .sockets = {.connect = connect_here, .bind_pair = bind_here},
    };
    return weir_rtsp_open(&config, weir_mono_ms() + timeout_ms, out, err);
}

static void check_pictures(struct weir_rtsp *rtsp)
{
    for (int i = 0; i < N_PICTURES; i++) {
        uint8_t packet[64];
        struct weir_rtsp_unit unit;
        struct weir_error err = {0};
        size_t n = picture_of(i, packet) - 12;
        weir_status status = weir_rtsp_next(rtsp, weir_mono_ms() + 10000, &unit, &err);
        ck_assert_msg(status == WEIR_OK, "%s", err.message);
        ck_assert_uint_eq(unit.n_bytes, 4 + n);
        ck_assert_mem_eq(unit.bytes + 4, packet + 12, n);
        ck_assert_uint_eq(unit.rtp_time, (uint32_t)i * 9000 & 0xffff);
        ck_assert(unit.is_key && unit.n_lost_before == 0);
    }
}

/* All ways to prove it, over TCP and by byte; and the end. */
START_TEST(pictures_come_over_tcp)
{
    static const struct script scripts[] = {
        {.says_bye = true},
        {.is_in_pieces = true},
        {.challenge = "Basic realm=\"door\""},
        {.challenge = "Digest realm=\"door\"", .says_bye = true},
        {.challenge = "Digest realm=\"door\", algorithm=MD5, qop=\"auth,auth-int\""},
        {.challenge = "Digest realm=\"door\",algorithm=MD5-sess,qop=\"auth\""},
    };
    struct camera camera;
    struct weir_rtsp *rtsp = NULL;
    struct weir_error err = {0};
    struct weir_rtsp_unit unit;
    start(&camera, &scripts[_i]);
    weir_status status = open_it(&camera, WEIR_RTSP_TCP, "ada:se%20cret@", 10000, &rtsp, &err);
    ck_assert_msg(status == WEIR_OK, "%s", err.message);
    struct weir_rtsp_facts facts = weir_rtsp_facts(rtsp);
    ck_assert_int_eq(facts.codec, WEIR_RTSP_H264);
    ck_assert_uint_eq(facts.n_parameter_bytes, 16);
    check_pictures(rtsp);
    status =
        weir_rtsp_next(rtsp, weir_mono_ms() + (scripts[_i].says_bye ? 10000 : 10), &unit, &err);
    ck_assert_int_eq(status, scripts[_i].says_bye ? WEIR_ERR_PEER : WEIR_ERR_TIMEOUT);
    ck_assert_uint_eq(weir_rtsp_counts(rtsp).n_units, N_PICTURES);
    weir_rtsp_close(rtsp);
    stop(&camera);
    ck_assert(camera.has_torn_down);
}

END_TEST

START_TEST(pictures_come_over_udp)
{
    const struct script script = {0};
    struct camera camera;
    struct weir_rtsp *rtsp = NULL;
    struct weir_error err = {0};
    start(&camera, &script);
    weir_status status = open_it(&camera, WEIR_RTSP_UDP, "", 10000, &rtsp, &err);
    ck_assert_msg(status == WEIR_OK, "%s", err.message);
    check_pictures(rtsp);
    weir_rtsp_close(rtsp);
    stop(&camera);
}

END_TEST

/* What goes wrong is said, and nothing of the login, the path or the camera's own words. */
START_TEST(refusals_are_sentences_without_secrets)
{
    static const struct {
        struct script script;
        const char *login, *text;
        weir_status status;
    } rows[] = {
        {{.challenge = "Digest realm=\"door\""}, "", "a user and a password", WEIR_ERR_UNAUTH},
        {{.challenge = "Digest realm=\"door\""}, "ada:guess@", "refuses", WEIR_ERR_UNAUTH},
        {{.challenge = "Basic realm=\"door\""}, "ada:guess@", "refuses", WEIR_ERR_UNAUTH},
        {{.challenge = "Bearer"}, "ada:guess@", "authentication", WEIR_ERR_UNSUPPORTED},
        {{.answer = "DESCRIBE 404"}, "", "no stream", WEIR_ERR_NOT_FOUND},
        {{.answer = "DESCRIBE 302"}, "", "another address", WEIR_ERR_UNSUPPORTED},
        {{.answer = "SETUP 461"}, "", "set transport to udp", WEIR_ERR_UNSUPPORTED},
        {{.answer = "SETUP 453"}, "", "bandwidth", WEIR_ERR_UNAVAILABLE},
        {{.answer = "PLAY 503"}, "", "takes nobody", WEIR_ERR_UNAVAILABLE},
        {{.answer = "PLAY 455"}, "", "455 to PLAY", WEIR_ERR_UNSUPPORTED},
        {{.answer = "OPTIONS 500"}, "", "500 to OPTIONS", WEIR_ERR_UNAVAILABLE},
        {{.banner = "HTTP/1.1 400 Bad Request\r\n\r\n"}, "", "not RTSP", WEIR_ERR_CORRUPT},
        {{.is_silent = true}, "", "OPTIONS in time", WEIR_ERR_TIMEOUT},
    };
    struct camera camera;
    struct weir_rtsp *rtsp = NULL;
    struct weir_error err = {0};
    start(&camera, &rows[_i].script);
    int64_t begin_ms = weir_mono_ms();
    weir_status status = open_it(&camera, WEIR_RTSP_TCP, rows[_i].login,
                                 rows[_i].script.is_silent ? 30 : 10000, &rtsp, &err);
    ck_assert_msg(status == rows[_i].status, "%d: %s", status, err.message);
    ck_assert_int_lt(weir_mono_ms() - begin_ms, 9000);
    ck_assert_msg(strstr(err.message, rows[_i].text) != NULL, "%s", err.message);
    ck_assert_ptr_nonnull(strstr(err.message, "127.0.0.1:"));
    static const char *const secrets[] = {"ada", "guess", "cret", "/cam", "rtsp://x"};
    for (size_t i = 0; i < WEIR_ARRAY_LEN(secrets); i++) {
        ck_assert_msg(strstr(err.message, secrets[i]) == NULL, "%s", err.message);
    }
    stop(&camera);
}

END_TEST

/* A session of one second is kept alive in its half, though the nonce has grown old. */
START_TEST(a_session_is_kept_alive)
{
    const struct script script = {
        .challenge = "Digest realm=\"door\", qop=\"auth\"", .wants_stale = true, .timeout_s = 1};
    struct camera camera;
    struct weir_rtsp *rtsp = NULL;
    struct weir_error err = {0};
    struct weir_rtsp_unit unit;
    start(&camera, &script);
    ck_assert_int_eq(open_it(&camera, WEIR_RTSP_TCP, "ada:se%20cret@", 10000, &rtsp, &err),
                     WEIR_OK);
    check_pictures(rtsp);
    ck_assert_int_eq(weir_rtsp_next(rtsp, weir_mono_ms() + 10000, &unit, &err), WEIR_ERR_PEER);
    ck_assert_ptr_nonnull(strstr(err.message, "ended the stream"));
    weir_rtsp_close(rtsp);
    stop(&camera);
    ck_assert_int_eq(camera.n_kept_alive, 1);
    ck_assert_str_eq(camera.nonce, "second");
}

END_TEST

WEIR_TEST_LOOPS_MAIN("rtsp", {pictures_come_over_tcp, 6}, {pictures_come_over_udp, 0},
                     {refusals_are_sentences_without_secrets, 13}, {a_session_is_kept_alive, 0})
