#include "infer_load/load.h"

#include "base/arena.h"
#include "base/clock.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#define HEAD_MAX_BYTES 16384
#define EVENTS_AT_ONCE 256
#define NS_PER_S       1e9

struct connection {
    int fd; /* -1: closed */
    bool was_answered;
    struct load_record *record; /* NULL: idle */
    size_t n_sent;
    char head[HEAD_MAX_BYTES]; /* what came, until the body begins */
    size_t n_head;
    bool is_in_body, must_close;
    uint64_t n_left; /* of the body */
    struct connection *next_idle;
};

struct load {
    const struct load_options *options;
    struct sockaddr_storage address;
    socklen_t address_len;
    char *request;
    size_t request_len;
    int epoll_fd;
    struct connection *connections, *idle;
    struct load_record *records;
    size_t n_begun, n_done;
    uint64_t begin_ns, last_ns;
};

/* ---- connections ------------------------------------------------------------------------------ */

static void put_idle(struct load *load, struct connection *c)
{
    c->record = NULL;
    c->next_idle = load->idle;
    load->idle = c;
}

static bool open_connection(struct load *load, struct connection *c)
{
    c->fd = socket(load->address.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (c->fd < 0) {
        return false;
    }
    (void)setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
    struct epoll_event event = {.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, .data.ptr = c};
    if (epoll_ctl(load->epoll_fd, EPOLL_CTL_ADD, c->fd, &event) != 0 ||
        (connect(c->fd, (struct sockaddr *)&load->address, load->address_len) != 0 &&
         errno != EINPROGRESS)) {
        (void)close(c->fd);
        c->fd = -1;
        return false;
    }
    return true;
}

static void close_connection(struct connection *c)
{
    if (c->fd >= 0) {
        (void)close(c->fd);
        c->fd = -1;
    }
}

/* The request on it is over; an http_status of 0 is a failure of the connection. */
static void finish(struct load *load, struct connection *c, int http_status)
{
    struct load_record *record = c->record;
    load->last_ns = record->done_ns = weir_mono_ns();
    record->http_status = http_status;
    load->n_done++;
    if (http_status == 0 || c->must_close) {
        close_connection(c);
    }
    put_idle(load, c);
}

static void send_more(struct load *load, struct connection *c)
{
    while (c->n_sent < load->request_len) {
        ssize_t n =
            send(c->fd, load->request + c->n_sent, load->request_len - c->n_sent, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0) {
            return; /* no room yet, or an end that reading sees with what the server said before */
        }
        c->n_sent += (size_t)n;
    }
}

static void begin(struct load *load, struct connection *c, struct load_record *record)
{
    record->sent_ns = weir_mono_ns();
    c->record = record;
    c->n_sent = c->n_head = 0;
    c->is_in_body = c->must_close = false;
    if (c->fd < 0 && !open_connection(load, c)) {
        finish(load, c, 0);
        return;
    }
    send_more(load, c);
}

/* ---- answers ---------------------------------------------------------------------------------- */

static const char *header_value(const char *head, const char *name)
{
    size_t len = strlen(name);
    for (const char *line = strstr(head, "\r\n"); line != NULL; line = strstr(line, "\r\n")) {
        line += 2;
        if (strncasecmp(line, name, len) == 0 && line[len] == ':') {
            return line + len + 1 + strspn(line + len + 1, " \t");
        }
    }
    return NULL;
}

/* The head is whole: take what matters of it. False: it is no answer that can be read. */
static bool read_head(struct connection *c)
{
    if (strncmp(c->head, "HTTP/1.", 7) != 0 || c->n_head < 12) {
        return false;
    }
    int status = (int)strtol(c->head + 9, NULL, 10);
    const char *length = header_value(c->head, "Content-Length");
    const char *version = header_value(c->head, "Weir-Model-Version");
    const char *kept = header_value(c->head, "Connection");
    if (status < 200 || (length == NULL && status != 204)) {
        return false;
    }
    c->record->http_status = status;
    c->record->version = version != NULL ? strtoll(version, NULL, 10) : 0;
    c->must_close = kept != NULL && strncasecmp(kept, "close", 5) == 0;
    c->n_left = length != NULL ? strtoull(length, NULL, 10) : 0;
    c->is_in_body = true;
    return true;
}

/* False: it is no answer. */
static bool take(struct load *load, struct connection *c, const char *bytes, size_t len)
{
    if (!c->is_in_body) {
        size_t n = WEIR_MIN(len, sizeof c->head - 1 - c->n_head), before = c->n_head;
        memcpy(c->head + c->n_head, bytes, n);
        c->n_head += n;
        c->head[c->n_head] = '\0';
        char *end = strstr(c->head, "\r\n\r\n");
        if (end == NULL) {
            return n == len;
        }
        size_t head_len = (size_t)(end - c->head) + 4;
        end[2] = '\0';
        if (!read_head(c)) {
            return false;
        }
        bytes += head_len - before;
        len -= head_len - before;
    }
    if (len > c->n_left) {
        return false;
    }
    c->n_left -= len;
    if (c->n_left == 0) {
        c->must_close = c->must_close || c->n_sent < load->request_len;
        finish(load, c, c->record->http_status);
    }
    return true;
}

static void read_more(struct load *load, struct connection *c)
{
    static char bytes[65536];
    while (c->fd >= 0) {
        ssize_t n = recv(c->fd, bytes, sizeof bytes, 0);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
            return;
        }
        if (c->record == NULL) { /* it ends while it is idle, or says what nobody asked for */
            close_connection(c);
        } else if (n <= 0 || !take(load, c, bytes, (size_t)n)) {
            c->record->version = 0;
            finish(load, c, 0);
        }
    }
}

/* ---- the run ---------------------------------------------------------------------------------- */

static void begin_those_due(struct load *load)
{
    const struct load_options *options = load->options;
    uint64_t now_ns = weir_mono_ns();
    while (load->n_begun < options->n_requests && load->idle != NULL) {
        struct load_record *record = &load->records[load->n_begun];
        if (options->rate_s <= 0) {
            record->due_ns = now_ns;
        } else if (record->due_ns > now_ns) {
            return;
        }
        struct connection *c = load->idle;
        load->idle = c->next_idle;
        load->n_begun++;
        begin(load, c, record);
    }
}

static int wait_events(struct load *load, uint64_t end_ns, struct epoll_event *events)
{
    uint64_t now_ns = weir_mono_ns(), until_ns = end_ns;
    if (load->n_begun < load->options->n_requests && load->idle != NULL) {
        until_ns = WEIR_MIN(until_ns, load->records[load->n_begun].due_ns);
    }
    uint64_t wait_ns = until_ns > now_ns ? until_ns - now_ns : 0;
    struct timespec wait = {(time_t)(wait_ns / 1000000000), (long)(wait_ns % 1000000000)};
    return epoll_pwait2(load->epoll_fd, events, EVENTS_AT_ONCE, &wait, NULL);
}

static void run(struct load *load)
{
    const struct load_options *options = load->options;
    struct epoll_event events[EVENTS_AT_ONCE];
    double all_s = options->rate_s > 0 ? (double)options->n_requests / options->rate_s : 0;
    uint64_t patience_ns = (uint64_t)options->patience_ms * 1000000;
    uint64_t end_ns = load->begin_ns + (uint64_t)(all_s * NS_PER_S) + patience_ns;
    while (load->n_done < options->n_requests && weir_mono_ns() < end_ns) {
        begin_those_due(load);
        int n = wait_events(load, end_ns, events);
        for (int i = 0; i < n; i++) {
            struct connection *c = events[i].data.ptr;
            if (c->record != NULL) {
                send_more(load, c);
            }
            read_more(load, c);
        }
        if (options->rate_s <= 0 && load->n_done > 0) {
            end_ns = load->last_ns + patience_ns; /* it goes on as long as answers come */
        }
    }
}

/* "http://host:port/path" to the address and the request's bytes. */
static weir_status prepare(struct load *load, struct weir_error *err)
{
    const struct load_options *options = load->options;
    static const char scheme[] = "http://";
    const char *at = options->url + sizeof scheme - 1;
    char host[256];
    if (strncmp(options->url, scheme, sizeof scheme - 1) != 0) {
        return weir_error_set(err, WEIR_ERR_INVALID, "%s does not begin with http://",
                              options->url);
    }
    size_t len = strcspn(at, "/");
    (void)snprintf(host, sizeof host, "%.*s", (int)WEIR_MIN(len, sizeof host - 1), at);
    char *port = strrchr(host, ':');
    if (port == NULL) {
        return weir_error_set(err, WEIR_ERR_INVALID, "%s names no port", options->url);
    }
    *port++ = '\0';
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV}, *found;
    int rc = getaddrinfo(host, port, &hints, &found);
    if (rc != 0) {
        return weir_error_set(err, WEIR_ERR_PEER, "%s: %s", host, gai_strerror(rc));
    }
    memcpy(&load->address, found->ai_addr, found->ai_addrlen);
    load->address_len = found->ai_addrlen;
    freeaddrinfo(found);
    size_t most = strlen(options->url) + strlen(options->headers) + options->body_len + 512;
    load->request = weir_xalloc(most);
    int n = snprintf(load->request, most, "%s %s HTTP/1.1\r\nHost: %s\r\n%s",
                     options->body != NULL ? "POST" : "GET", at[len] != '\0' ? at + len : "/", host,
                     options->headers);
    if (options->body != NULL) {
        n += snprintf(load->request + n, most - (size_t)n, "Content-Length: %zu\r\n",
                      options->body_len);
    }
    n += snprintf(load->request + n, most - (size_t)n, "\r\n");
    memcpy(load->request + n, options->body != NULL ? options->body : "", options->body_len);
    load->request_len = (size_t)n + options->body_len;
    return WEIR_OK;
}

/* Is there anybody? A wrong address is one mistake, not a million failures. */
static weir_status probe(const struct load *load, struct weir_error *err)
{
    int fd = socket(load->address.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int rc = fd < 0 ? -1 : connect(fd, (const struct sockaddr *)&load->address, load->address_len);
    int reason = errno;
    if (fd >= 0) {
        (void)close(fd);
    }
    return rc == 0 ? WEIR_OK
                   : weir_error_set(err, WEIR_ERR_PEER, "cannot connect to %s: %s",
                                    load->options->url, strerror(reason));
}

static weir_status start(struct load *load, struct weir_error *err)
{
    const struct load_options *options = load->options;
    if (options->n_requests < 1 || options->n_requests > LOAD_REQUESTS_MAX ||
        options->n_connections < 1 || options->n_connections > LOAD_CONNECTIONS_MAX) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "1 to %zu requests over 1 to %d connections can be made",
                              LOAD_REQUESTS_MAX, LOAD_CONNECTIONS_MAX);
    }
    WEIR_TRY(prepare(load, err));
    WEIR_TRY(probe(load, err));
    load->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (load->epoll_fd < 0) {
        return weir_error_set_errno(err, errno, "cannot watch connections");
    }
    (void)prctl(PR_SET_TIMERSLACK, 1UL); /* waits of microseconds, not of 50 more */
    load->connections = weir_xalloc((size_t)options->n_connections * sizeof *load->connections);
    load->records = weir_xalloc(options->n_requests * sizeof *load->records);
    memset(load->records, 0, options->n_requests * sizeof *load->records);
    for (int i = 0; i < options->n_connections; i++) {
        load->connections[i].fd = -1;
        if (!open_connection(load, &load->connections[i])) {
            return weir_error_set_errno(err, errno, "cannot open connection %d", i + 1);
        }
        put_idle(load, &load->connections[i]);
    }
    load->begin_ns = load->last_ns = weir_mono_ns() + 20000000;
    for (size_t i = 0; i < options->n_requests && options->rate_s > 0; i++) {
        load->records[i].due_ns =
            load->begin_ns + (uint64_t)((double)i / options->rate_s * NS_PER_S);
    }
    return WEIR_OK;
}

weir_status load_run(const struct load_options *options, struct load_result *out,
                     struct weir_error *err)
{
    struct load load = {.options = options, .epoll_fd = -1};
    weir_status status = start(&load, err);
    if (status == WEIR_OK) {
        run(&load);
        *out = (struct load_result){.records = load.records,
                                    .n = options->n_requests,
                                    .seconds = (double)(load.last_ns - load.begin_ns) / NS_PER_S};
        load.records = NULL;
    }
    for (int i = 0; load.connections != NULL && i < options->n_connections; i++) {
        close_connection(&load.connections[i]);
    }
    if (load.epoll_fd >= 0) {
        (void)close(load.epoll_fd);
    }
    for (size_t i = 0; status == WEIR_OK && i < out->n; i++) {
        if (out->records[i].done_ns == 0) {
            out->records[i].http_status = 0; /* a head may have come, the answer did not */
        }
    }
    free(load.records);
    free(load.connections);
    free(load.request);
    return status;
}
