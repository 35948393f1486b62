#include "demo/stream.h"

#include "base/arena.h"
#include "base/base64.h"
#include "base/clock.h"
#include "base/listen.h"
#include "demo/rtp_jpeg.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#define REQUEST_MAX_BYTES 4096
#define WAITING_MAX_BYTES ((size_t)4 << 20) /* what a watcher has not taken in yet */
#define PICTURE_MAX_BYTES ((size_t)2 << 20)
#define LOGIN_MAX_BYTES   256
#define RTP_HZ            90000

struct picture {
    struct weir_buf jpeg;
    uint32_t time;
    bool is_new;
};

/** One connection. The server's thread owns it. */
struct watcher {
    int fd;     /**< Below 0: there is none. */
    int camera; /**< Its stream is set up; below 0: none yet. */
    bool is_playing, is_leaving;
    struct rtp_jpeg rtp;
    char in[REQUEST_MAX_BYTES + 1];
    size_t n_in;
    struct weir_buf out;
};

struct demo_streams {
    struct demo_streams_options options;
    char proof[WEIR_BASE64_TEXT_BYTES(LOGIN_MAX_BYTES)]; /**< "": none is wanted. */
    int listener, wake_fd;
    pthread_t thread;
    bool is_started;
    atomic_bool is_closing;
    struct watcher watchers[DEMO_WATCHERS_MAX];
    atomic_size_t *n_watchers; /**< By camera. */
    pthread_mutex_t lock;      /**< Guards the pictures. */
    struct picture *pictures;  /**< By camera. */
    struct weir_buf sent;      /**< The picture that is being sent: the thread's. */
};

/* ---- requests -------------------------------------------------------------------------------- */

/* The value of a header: up to the line's end; NULL: it has none of that name. */
static const char *header_of(const char *request, const char *name)
{
    size_t n = strlen(name);
    for (const char *line = strstr(request, "\r\n"); line != NULL; line = strstr(line, "\r\n")) {
        line += 2;
        if (strncasecmp(line, name, n) == 0 && line[n] == ':') {
            line += n + 1;
            return line + strspn(line, " ");
        }
    }
    return NULL;
}

static int line_len(const char *text)
{
    return text != NULL ? (int)strcspn(text, "\r\n") : 0;
}

/* The camera of rtsp://HOST/NAME or rtsp://HOST/NAME/stream; -1: there is none. */
static int camera_of(const struct demo_streams *streams, const char *url)
{
    const char *host = strstr(url, "://"), *path = host != NULL ? strchr(host + 3, '/') : NULL;
    size_t len = path != NULL ? strcspn(path + 1, "/?") : 0;
    for (size_t i = 0; i < streams->options.n; i++) {
        const char *name = streams->options.names[i];
        if (strlen(name) == len && path != NULL && strncmp(path + 1, name, len) == 0) {
            return (int)i;
        }
    }
    return -1;
}

static bool is_proven(const struct demo_streams *streams, const char *request)
{
    const char *given = header_of(request, "Authorization");
    size_t n = strlen(streams->proof);
    return n == 0 || (given != NULL && strncmp(given, "Basic ", 6) == 0 &&
                      strncmp(given + 6, streams->proof, n) == 0 && line_len(given) == (int)n + 6);
}

static void answer(struct watcher *watcher, const char *request, const char *status,
                   const char *headers)
{
    const char *number = header_of(request, "CSeq");
    (void)weir_buf_printf(&watcher->out, "RTSP/1.0 %s\r\nCSeq: %.*s\r\n%s\r\n", status,
                          line_len(number), number != NULL ? number : "", headers);
}

static void describe(const struct demo_streams *streams, struct watcher *watcher,
                     const char *request, const char *url)
{
    char sdp[512], headers[1200];
    int n = snprintf(sdp, sizeof sdp,
                     "v=0\r\no=- 0 0 IN IP4 127.0.0.1\r\ns=%s\r\nc=IN IP4 0.0.0.0\r\nt=0 0\r\n"
                     "m=video 0 RTP/AVP 26\r\na=rtpmap:26 JPEG/90000\r\na=control:stream\r\n",
                     streams->options.names[camera_of(streams, url)]);
    (void)snprintf(headers, sizeof headers,
                   "Content-Base: %s/\r\nContent-Type: application/sdp\r\nContent-Length: %d\r\n",
                   url, n);
    answer(watcher, request, "200 OK", headers);
    (void)weir_buf_append(&watcher->out, sdp, (size_t)n);
}

static void set_up(struct watcher *watcher, const char *request, int camera)
{
    char headers[128];
    const char *transport = header_of(request, "Transport");
    const char *channels = transport != NULL ? strstr(transport, "interleaved=") : NULL;
    if (channels == NULL || strncmp(transport, "RTP/AVP/TCP", 11) != 0) {
        answer(watcher, request, "461 Unsupported Transport", "");
        return;
    }
    watcher->camera = camera;
    watcher->rtp.channel = (uint8_t)strtol(channels + 12, NULL, 10);
    (void)snprintf(headers, sizeof headers,
                   "Session: 1;timeout=60\r\nTransport: RTP/AVP/TCP;unicast;interleaved=%d-%d\r\n",
                   watcher->rtp.channel, watcher->rtp.channel + 1);
    answer(watcher, request, "200 OK", headers);
}

static void play(struct demo_streams *streams, struct watcher *watcher, const char *request)
{
    if (watcher->camera < 0) {
        answer(watcher, request, "455 Method Not Valid in This State", "");
        return;
    }
    answer(watcher, request, "200 OK", "Session: 1\r\nRange: npt=0.000-\r\n");
    if (!watcher->is_playing) {
        watcher->is_playing = true;
        atomic_fetch_add(&streams->n_watchers[watcher->camera], 1);
    }
}

static void serve(struct demo_streams *streams, struct watcher *watcher, const char *request)
{
    char method[32] = "", url[1024] = "";
    (void)sscanf(request, "%31s %1023s", method, url);
    if (strcmp(method, "OPTIONS") == 0) {
        answer(watcher, request, "200 OK",
               "Public: OPTIONS, DESCRIBE, SETUP, PLAY, GET_PARAMETER, TEARDOWN\r\n");
    } else if (!is_proven(streams, request)) {
        answer(watcher, request, "401 Unauthorized",
               "WWW-Authenticate: Basic realm=\"camera\"\r\n");
    } else if (camera_of(streams, url) < 0) {
        answer(watcher, request, "404 Not Found", "");
    } else if (strcmp(method, "DESCRIBE") == 0) {
        describe(streams, watcher, request, url);
    } else if (strcmp(method, "SETUP") == 0) {
        set_up(watcher, request, camera_of(streams, url));
    } else if (strcmp(method, "PLAY") == 0) {
        play(streams, watcher, request);
    } else if (strcmp(method, "GET_PARAMETER") == 0 || strcmp(method, "TEARDOWN") == 0) {
        answer(watcher, request, "200 OK", "Session: 1\r\n");
        watcher->is_leaving = method[0] == 'T';
    } else {
        answer(watcher, request, "501 Not Implemented", "");
    }
}

/* Bytes of the next piece of what came: a request, which is served, or a report of the watcher's. 0: it is not whole yet. */
static size_t take_piece(struct demo_streams *streams, struct watcher *watcher)
{
    const uint8_t *bytes = (const uint8_t *)watcher->in;
    if (watcher->n_in > 0 && bytes[0] == '$') {
        size_t n = watcher->n_in >= 4 ? 4 + ((size_t)bytes[2] << 8 | bytes[3]) : SIZE_MAX;
        return n <= watcher->n_in ? n : 0;
    }
    char *end = strstr(watcher->in, "\r\n\r\n");
    if (end == NULL) {
        return 0;
    }
    end[2] = '\0'; /* the empty line */
    serve(streams, watcher, watcher->in);
    return (size_t)(end + 4 - watcher->in);
}

/* ---- the thread ------------------------------------------------------------------------------ */

static void let_go(struct demo_streams *streams, struct watcher *watcher)
{
    if (watcher->is_playing) {
        atomic_fetch_sub(&streams->n_watchers[watcher->camera], 1);
    }
    (void)close(watcher->fd);
    weir_buf_fini(&watcher->out);
    watcher->fd = -1;
}

static void let_in(struct demo_streams *streams)
{
    for (size_t i = 0; i < DEMO_WATCHERS_MAX; i++) {
        struct watcher *watcher = &streams->watchers[i];
        int fd = watcher->fd < 0
                     ? accept4(streams->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)
                     : -1;
        if (fd >= 0) {
            *watcher = (struct watcher){.fd = fd, .camera = -1};
            watcher->rtp.source = (uint32_t)(0x77656900 + i);
            weir_buf_init(&watcher->out, WAITING_MAX_BYTES);
        }
    }
}

/* What has come. @return false: it is gone, or sends what nobody understands. */
static bool hear(struct demo_streams *streams, struct watcher *watcher)
{
    ssize_t n =
        recv(watcher->fd, watcher->in + watcher->n_in, REQUEST_MAX_BYTES - watcher->n_in, 0);
    if (n <= 0) {
        return n < 0 && (errno == EAGAIN || errno == EINTR);
    }
    watcher->n_in += (size_t)n;
    watcher->in[watcher->n_in] = '\0';
    for (size_t used; (used = take_piece(streams, watcher)) > 0;) {
        watcher->n_in -= used;
        memmove(watcher->in, watcher->in + used, watcher->n_in + 1);
    }
    return watcher->n_in < REQUEST_MAX_BYTES;
}

/* What waits, as far as it goes. @return false: it is gone, or takes nothing in. */
static bool tell(struct watcher *watcher)
{
    ssize_t n = watcher->out.len > 0
                    ? send(watcher->fd, watcher->out.data, watcher->out.len, MSG_NOSIGNAL)
                    : 0;
    if (n < 0 && errno != EAGAIN && errno != EINTR) {
        return false;
    }
    weir_buf_consume(&watcher->out, n > 0 ? (size_t)n : 0);
    return !(watcher->is_leaving && watcher->out.len == 0) && watcher->out.status == WEIR_OK;
}

/* The new picture of a camera, for those who watch it. */
static void pass_on(struct demo_streams *streams, size_t i_camera)
{
    struct picture *picture = &streams->pictures[i_camera];
    pthread_mutex_lock(&streams->lock);
    bool is_new = picture->is_new;
    uint32_t time = picture->time;
    if (is_new) {
        struct weir_buf was = streams->sent;
        streams->sent = picture->jpeg;
        picture->jpeg = was;
        picture->is_new = false;
    }
    pthread_mutex_unlock(&streams->lock);
    for (size_t i = 0; is_new && i < DEMO_WATCHERS_MAX; i++) {
        struct watcher *watcher = &streams->watchers[i];
        if (watcher->fd >= 0 && watcher->is_playing && watcher->camera == (int)i_camera) {
            struct weir_error ignored; /* a picture of another form is not shown */
            (void)!rtp_jpeg_put(&watcher->rtp, streams->sent.data, streams->sent.len, time,
                                &watcher->out, &ignored);
        }
    }
}

static size_t list(const struct demo_streams *streams, struct pollfd *polls)
{
    bool has_room = false;
    for (size_t i = 0; i < DEMO_WATCHERS_MAX; i++) {
        const struct watcher *watcher = &streams->watchers[i];
        has_room = has_room || watcher->fd < 0;
        polls[i] = (struct pollfd){.fd = watcher->fd, .events = POLLIN};
        polls[i].events |= watcher->fd >= 0 && watcher->out.len > 0 ? POLLOUT : 0;
    }
    polls[DEMO_WATCHERS_MAX] = (struct pollfd){.fd = streams->wake_fd, .events = POLLIN};
    polls[DEMO_WATCHERS_MAX + 1] =
        (struct pollfd){.fd = has_room ? streams->listener : -1, .events = POLLIN};
    return DEMO_WATCHERS_MAX + 2;
}

static void *run(void *argument)
{
    struct demo_streams *streams = argument;
    struct pollfd polls[DEMO_WATCHERS_MAX + 2];
    while (!atomic_load(&streams->is_closing)) {
        uint64_t ignored;
        (void)poll(polls, list(streams, polls), -1);
        (void)!read(streams->wake_fd, &ignored, sizeof ignored);
        for (size_t i = 0; i < streams->options.n; i++) {
            pass_on(streams, i);
        }
        for (size_t i = 0; i < DEMO_WATCHERS_MAX; i++) {
            struct watcher *watcher = &streams->watchers[i];
            bool has_come = polls[i].fd >= 0 && (polls[i].revents & ~POLLOUT) != 0;
            if (watcher->fd >= 0 && ((has_come && !hear(streams, watcher)) || !tell(watcher))) {
                let_go(streams, watcher);
            }
        }
        let_in(streams);
    }
    return NULL;
}

/* ---- the outside ----------------------------------------------------------------------------- */

static weir_status set_up_streams(struct demo_streams *streams, int *out_port,
                                  struct weir_error *err)
{
    const struct demo_streams_options *options = &streams->options;
    size_t n_login = options->login != NULL ? strlen(options->login) : 0;
    if (options->login != NULL &&
        (n_login > LOGIN_MAX_BYTES || strchr(options->login, ':') == NULL)) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "--login: expected USER:PASSWORD, at most %d bytes", LOGIN_MAX_BYTES);
    }
    if (options->login != NULL) {
        (void)weir_base64_encode(options->login, n_login, streams->proof);
    }
    WEIR_TRY(weir_listen_open(options->listen, "--listen", &streams->listener, out_port, err));
    streams->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    int reason =
        streams->wake_fd < 0 ? errno : pthread_create(&streams->thread, NULL, run, streams);
    streams->is_started = reason == 0;
    return reason == 0 ? WEIR_OK : weir_error_set_errno(err, reason, "cannot stream");
}

weir_status demo_streams_open(const struct demo_streams_options *options, struct demo_streams **out,
                              int *out_port, struct weir_error *err)
{
    struct demo_streams *streams = weir_xalloc(sizeof *streams);
    *streams = (struct demo_streams){.options = *options, .listener = -1, .wake_fd = -1};
    streams->n_watchers = weir_xalloc(options->n * sizeof *streams->n_watchers);
    streams->pictures = weir_xalloc(options->n * sizeof *streams->pictures);
    pthread_mutex_init(&streams->lock, NULL);
    weir_buf_init(&streams->sent, PICTURE_MAX_BYTES);
    for (size_t i = 0; i < options->n; i++) {
        atomic_init(&streams->n_watchers[i], 0);
        streams->pictures[i] = (struct picture){0};
        weir_buf_init(&streams->pictures[i].jpeg, PICTURE_MAX_BYTES);
    }
    for (size_t i = 0; i < DEMO_WATCHERS_MAX; i++) {
        streams->watchers[i].fd = -1;
    }
    weir_status status = set_up_streams(streams, out_port, err);
    if (status != WEIR_OK) {
        demo_streams_close(streams);
        return status;
    }
    *out = streams;
    return WEIR_OK;
}

static void wake(struct demo_streams *streams)
{
    const uint64_t one = 1;
    (void)!write(streams->wake_fd, &one, sizeof one);
}

void demo_streams_show(struct demo_streams *streams, size_t i_camera, const void *jpeg, size_t n)
{
    struct picture *picture = &streams->pictures[i_camera];
    pthread_mutex_lock(&streams->lock);
    weir_buf_reset(&picture->jpeg);
    picture->is_new = weir_buf_append(&picture->jpeg, jpeg, n) == WEIR_OK;
    picture->time = (uint32_t)(weir_mono_ns() / 1000 * (RTP_HZ / 1000) / 1000);
    pthread_mutex_unlock(&streams->lock);
    wake(streams);
}

size_t demo_streams_watchers(struct demo_streams *streams, size_t i_camera)
{
    return atomic_load(&streams->n_watchers[i_camera]);
}

void demo_streams_close(struct demo_streams *streams)
{
    if (streams == NULL) {
        return;
    }
    if (streams->is_started) {
        atomic_store(&streams->is_closing, true);
        wake(streams);
        pthread_join(streams->thread, NULL);
    }
    for (size_t i = 0; i < DEMO_WATCHERS_MAX; i++) {
        if (streams->watchers[i].fd >= 0) {
            let_go(streams, &streams->watchers[i]);
        }
    }
    for (size_t i = 0; i < streams->options.n; i++) {
        weir_buf_fini(&streams->pictures[i].jpeg);
    }
    weir_buf_fini(&streams->sent);
    pthread_mutex_destroy(&streams->lock);
    if (streams->listener >= 0) {
        (void)close(streams->listener);
    }
    if (streams->wake_fd >= 0) {
        (void)close(streams->wake_fd);
    }
    free(streams->n_watchers);
    free(streams->pictures);
    free(streams);
}
