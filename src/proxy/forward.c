/* HTTP to services: one thread, libcurl. Bodies go through pipes, so that nothing is held that the other
 * side does not take; a pipe that is full or empty pauses the transfer. */
#include "proxy/exchange.h"

#include "base/clock.h"
#include "base/log.h"

#include <curl/curl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TICK_MS          1000
#define CONNECTIONS_KEPT 64
#define TALK_MAX_S       600 /* without a byte of an answer that has begun */

/** An exchange in work; the thread's own. */
struct transfer {
    struct exchange *x;
    CURL *easy;
    struct curl_slist *headers, *proxy_headers;
    struct rules_header *lines;
    size_t n_lines, head_bytes;
    int http_status;
    bool is_paused_in, is_paused_out;
    int64_t begun_ms;
    char why[CURL_ERROR_SIZE];
    struct transfer *next;
};

struct forwarder {
    pthread_t thread;
    CURLM *multi;
    pthread_mutex_t lock;
    struct exchange *inbox; /* lock */
    bool is_stopping;       /* lock */
    struct transfer *transfers;
};

/* ---- what libcurl calls -------------------------------------------------------------------------- */

static bool begins_head(struct transfer *t, const char *line, size_t len)
{
    if (len < 5 || memcmp(line, "HTTP/", 5) != 0) {
        return false;
    }
    const char *blank = memchr(line, ' ', len);
    t->http_status = blank != NULL ? (int)strtol(blank + 1, NULL, 10) : 0;
    t->n_lines = 0;
    return true;
}

static size_t on_header(char *line, size_t size, size_t n, void *context)
{
    struct transfer *t = context;
    struct exchange *x = t->x;
    size_t len = size * n, given = len;
    t->head_bytes += len;
    if (exchange_is_ready(x)) {
        return given; /* trailers: nobody asked for them */
    }
    while (len > 0 && (line[len - 1] == '\n' || line[len - 1] == '\r')) {
        len--;
    }
    if (begins_head(t, line, len)) {
        return t->http_status >= 100 && t->http_status != 101 && t->http_status < 600 ? given : 0;
    }
    if (len > 0) {
        bool is_good = t->n_lines < RULES_HEADERS_MAX && t->head_bytes <= RULES_HEAD_MAX_BYTES &&
                       rules_read_header(line, len, &x->arena, &t->lines[t->n_lines]);
        t->n_lines++;
        return is_good ? given : 0;
    }
    if (t->http_status >= 200) {
        struct rules_head head = {t->http_status, t->lines, t->n_lines};
        if (exchange_take_head(x, &head) != WEIR_OK) {
            return 0;
        }
        exchange_ready(x, WEIR_OK, NULL);
    }
    return given;
}

static size_t on_body(char *bytes, size_t size, size_t n, void *context)
{
    struct transfer *t = context;
    size_t len = size * n;
    if (t->x->is_abandoned) {
        return 0;
    }
    if (weir_http_pipe_room(t->x->out) < len) {
        t->is_paused_out = true;
        return CURL_WRITEFUNC_PAUSE;
    }
    (void)weir_http_pipe_write(t->x->out, bytes, len);
    return len;
}

static size_t on_read(char *out, size_t size, size_t n, void *context)
{
    struct transfer *t = context;
    weir_status status = WEIR_OK;
    size_t got = weir_http_pipe_read(t->x->in, out, size * n);
    if (got > 0) {
        use_touch(t->x->proxy, t->x->use);
        return got;
    }
    if (weir_http_pipe_is_over(t->x->in, &status)) {
        return status == WEIR_OK ? 0 : CURL_READFUNC_ABORT;
    }
    t->is_paused_in = true;
    return CURL_READFUNC_PAUSE;
}

static void on_pipe(void *context)
{
    struct exchange *x = context;
    x->wants_look = true;
    (void)curl_multi_wakeup(x->work);
}

/* ---- a transfer ----------------------------------------------------------------------------------- */

static void add_header(struct curl_slist **list, const char *name, const char *value)
{
    struct weir_buf line;
    weir_buf_init(&line, RULES_HEAD_MAX_BYTES + 64);
    (void)weir_buf_printf(&line, value[0] != '\0' ? "%s: %s" : "%s;", name, value);
    if (line.status == WEIR_OK) {
        *list = curl_slist_append(*list, line.data);
    }
    weir_buf_fini(&line);
}

static void set_body(struct transfer *t)
{
    struct exchange *x = t->x;
    if (x->body_bytes == 0) {
        return;
    }
    curl_easy_setopt(t->easy, CURLOPT_UPLOAD, 1L);
    curl_easy_setopt(t->easy, CURLOPT_READFUNCTION, on_read);
    curl_easy_setopt(t->easy, CURLOPT_READDATA, t);
    /* It comes once: a kept connection that turns out to be closed would lose it. */
    curl_easy_setopt(t->easy, CURLOPT_FRESH_CONNECT, 1L);
    if (x->body_bytes > 0) {
        curl_easy_setopt(t->easy, CURLOPT_INFILESIZE_LARGE, (curl_off_t)x->body_bytes);
    } else {
        t->headers = curl_slist_append(t->headers, "Transfer-Encoding: chunked");
    }
}

static void set_request(struct transfer *t)
{
    struct exchange *x = t->x;
    char url[128], proxy[128];
    (void)snprintf(url, sizeof url, "http://%s/", x->service.id);
    (void)snprintf(proxy, sizeof proxy, "http://%s", x->service.address);
    curl_easy_setopt(t->easy, CURLOPT_URL, url);
    curl_easy_setopt(t->easy, CURLOPT_PROXY, proxy); /* the tunnel: CONNECT, with its secret */
    curl_easy_setopt(t->easy, CURLOPT_HTTPPROXYTUNNEL, 1L);
    curl_easy_setopt(t->easy, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
    curl_easy_setopt(t->easy, CURLOPT_HEADEROPT, (long)CURLHEADER_SEPARATE);
    add_header(&t->proxy_headers, "Proxy-Authorization",
               weir_arena_printf(&x->arena, "Bearer %s", x->service.secret));
    curl_easy_setopt(t->easy, CURLOPT_PROXYHEADER, t->proxy_headers);
    curl_easy_setopt(t->easy, CURLOPT_REQUEST_TARGET, x->target);
    curl_easy_setopt(t->easy, CURLOPT_CUSTOMREQUEST, x->method);
    curl_easy_setopt(t->easy, CURLOPT_NOBODY, strcmp(x->method, "HEAD") == 0 ? 1L : 0L);
    bool has_accept = false;
    for (size_t i = 0; i < x->n_headers; i++) {
        add_header(&t->headers, x->headers[i].name, x->headers[i].value);
        has_accept = has_accept || strcasecmp(x->headers[i].name, "Accept") == 0;
    }
    if (!has_accept) {
        t->headers = curl_slist_append(t->headers, "Accept:");
    }
    t->headers = curl_slist_append(t->headers, "Expect:");
    set_body(t);
    curl_easy_setopt(t->easy, CURLOPT_HTTPHEADER, t->headers);
}

static void set_manner(struct transfer *t)
{
    CURL *easy = t->easy;
    curl_easy_setopt(easy, CURLOPT_PRIVATE, t);
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http");
    curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, (long)PROXY_CONNECT_MS);
    curl_easy_setopt(easy, CURLOPT_LOW_SPEED_LIMIT, 1L);
    curl_easy_setopt(easy, CURLOPT_LOW_SPEED_TIME, (long)TALK_MAX_S);
    curl_easy_setopt(easy, CURLOPT_TCP_NODELAY, 1L);
    curl_easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
    curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, t->why);
    curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, on_header);
    curl_easy_setopt(easy, CURLOPT_HEADERDATA, t);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_body);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, t);
}

static void begin(struct forwarder *f, struct exchange *x)
{
    struct transfer *t = weir_xalloc(sizeof *t);
    *t = (struct transfer){.x = x, .easy = curl_easy_init(), .begun_ms = weir_mono_ms()};
    t->lines = WEIR_ARENA_ARRAY(&x->arena, RULES_HEADERS_MAX, struct rules_header);
    t->next = f->transfers;
    f->transfers = t;
    x->work = f->multi;
    set_manner(t);
    set_request(t);
    weir_http_pipe_watch_room(x->out, on_pipe, x);
    if (x->in != NULL) {
        weir_http_pipe_watch_bytes(x->in, on_pipe, x);
    }
    (void)curl_multi_add_handle(f->multi, t->easy);
}

/* Whatever became of it: the handler and the pipes hear of it, and it is gone. */
static void end(struct forwarder *f, struct transfer *t, weir_status status, const char *message)
{
    struct exchange *x = t->x;
    struct transfer **at = &f->transfers;
    while (*at != t) {
        at = &(*at)->next;
    }
    *at = t->next;
    (void)curl_multi_remove_handle(f->multi, t->easy);
    weir_http_pipe_watch_room(x->out, NULL, NULL);
    weir_http_pipe_end(x->out, status);
    if (x->in != NULL) {
        weir_http_pipe_watch_bytes(x->in, NULL, NULL);
        weir_http_pipe_close(x->in);
    }
    exchange_ready(x, status == WEIR_OK ? WEIR_ERR_PEER : status, message);
    exchange_unref(x);
    curl_easy_cleanup(t->easy);
    curl_slist_free_all(t->headers);
    curl_slist_free_all(t->proxy_headers);
    free(t);
}

static void end_by_result(struct forwarder *f, struct transfer *t, CURLcode result)
{
    if (result == CURLE_OK) {
        end(f, t, WEIR_OK, "the service gave no answer");
        return;
    }
    long tunnel_status = 0;
    (void)curl_easy_getinfo(t->easy, CURLINFO_HTTP_CONNECTCODE, &tunnel_status);
    bool is_away = result == CURLE_COULDNT_CONNECT || result == CURLE_COULDNT_RESOLVE_PROXY ||
                   result == CURLE_OPERATION_TIMEDOUT || result == CURLE_RECV_ERROR;
    weir_log(WEIR_LOG_DEBUG, "service_call_failed", WEIR_KV_STR("service", t->x->service.id),
             WEIR_KV_STR("because", t->why[0] != '\0' ? t->why : curl_easy_strerror(result)));
    end(f, t, is_away ? WEIR_ERR_UNAVAILABLE : WEIR_ERR_PEER,
        result == CURLE_OPERATION_TIMEDOUT
            ? "the service's machine does not answer: it, or the network to it, may be gone"
        : is_away ? exchange_closed_tunnel(tunnel_status)
                  : "the service broke off, or answered with what is no HTTP");
}

/* ---- the thread ----------------------------------------------------------------------------------- */

static void take_inbox(struct forwarder *f)
{
    pthread_mutex_lock(&f->lock);
    struct exchange *x = f->inbox;
    f->inbox = NULL;
    pthread_mutex_unlock(&f->lock);
    while (x != NULL) {
        struct exchange *next = x->next;
        begin(f, x);
        x = next;
    }
}

/* A pipe of a paused transfer has moved: go on; if it was not enough, it pauses again. */
static void look(struct transfer *t)
{
    if (!atomic_exchange(&t->x->wants_look, false) || (!t->is_paused_in && !t->is_paused_out)) {
        return;
    }
    bool has_room = !t->is_paused_out || weir_http_pipe_room(t->x->out) >= CURL_MAX_WRITE_SIZE;
    if (!has_room && !t->is_paused_in) {
        return;
    }
    t->is_paused_in = false;
    t->is_paused_out = t->is_paused_out && !has_room;
    (void)curl_easy_pause(t->easy, t->is_paused_out ? CURLPAUSE_RECV : CURLPAUSE_CONT);
}

static void look_at_all(struct forwarder *f, bool is_tick)
{
    int64_t now_ms = weir_mono_ms();
    struct transfer *next;
    for (struct transfer *t = f->transfers; t != NULL; t = next) {
        next = t->next;
        bool is_late = now_ms - t->begun_ms > PROXY_HEAD_MS && !exchange_is_ready(t->x);
        if (t->x->is_abandoned || (is_tick && exchange_is_gone(t->x))) {
            end(f, t, WEIR_ERR_CANCELLED, "nobody waits for the answer");
        } else if (is_late) {
            end(f, t, WEIR_ERR_TIMEOUT, "the service has not answered in 10 minutes");
        } else {
            look(t);
        }
    }
}

static void collect(struct forwarder *f)
{
    int n_left;
    CURLMsg *message;
    while ((message = curl_multi_info_read(f->multi, &n_left)) != NULL) {
        if (message->msg == CURLMSG_DONE) {
            struct transfer *t = NULL;
            CURLcode result = message->data.result;
            (void)curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, (char **)&t);
            end_by_result(f, t, result);
        }
    }
}

static bool is_stopping(struct forwarder *f)
{
    pthread_mutex_lock(&f->lock);
    bool is = f->is_stopping;
    pthread_mutex_unlock(&f->lock);
    return is;
}

static void *forward_main(void *context)
{
    struct forwarder *f = context;
    int64_t next_tick_ms = 0;
    while (!is_stopping(f)) {
        int n_running;
        int64_t now_ms = weir_mono_ms();
        bool is_tick = now_ms >= next_tick_ms;
        next_tick_ms = is_tick ? now_ms + TICK_MS : next_tick_ms;
        take_inbox(f);
        look_at_all(f, is_tick);
        (void)curl_multi_perform(f->multi, &n_running);
        collect(f);
        (void)curl_multi_poll(f->multi, NULL, 0, TICK_MS, NULL);
    }
    take_inbox(f);
    while (f->transfers != NULL) {
        end(f, f->transfers, WEIR_ERR_UNAVAILABLE, "the server is stopping");
    }
    return NULL;
}

weir_status forwarder_start(struct forwarder **out, struct weir_error *err)
{
    struct forwarder *f = weir_xalloc(sizeof *f);
    *f = (struct forwarder){.multi = curl_multi_init()};
    pthread_mutex_init(&f->lock, NULL);
    (void)curl_multi_setopt(f->multi, CURLMOPT_MAXCONNECTS, (long)CONNECTIONS_KEPT);
    int rc = pthread_create(&f->thread, NULL, forward_main, f);
    if (rc != 0) {
        (void)curl_multi_cleanup(f->multi);
        pthread_mutex_destroy(&f->lock);
        free(f);
        return weir_error_set_errno(err, rc, "cannot start the thread that reaches services");
    }
    *out = f;
    return WEIR_OK;
}

bool forwarder_begin(struct forwarder *f, struct exchange *x)
{
    pthread_mutex_lock(&f->lock);
    bool is_taken = !f->is_stopping;
    if (is_taken) {
        x->next = f->inbox;
        f->inbox = exchange_ref(x);
    }
    pthread_mutex_unlock(&f->lock);
    forwarder_wake(f);
    return is_taken;
}

void forwarder_wake(struct forwarder *f)
{
    (void)curl_multi_wakeup(f->multi);
}

void forwarder_stop(struct forwarder *f)
{
    if (f == NULL || is_stopping(f)) {
        return;
    }
    pthread_mutex_lock(&f->lock);
    f->is_stopping = true;
    pthread_mutex_unlock(&f->lock);
    (void)curl_multi_wakeup(f->multi);
    pthread_join(f->thread, NULL);
}

void forwarder_destroy(struct forwarder *f)
{
    if (f != NULL) {
        (void)curl_multi_cleanup(f->multi);
        pthread_mutex_destroy(&f->lock);
        free(f);
    }
}
