#include "http/tunnel.h"

#include "base/arena.h"
#include "base/clock.h"
#include "http/http_client.h"

#include <curl/curl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

#define HEAD_MAX_BYTES ((size_t)16 << 10)
#define BODY_MAX_BYTES ((size_t)64 << 10)
#define OPEN_MS        10000
#define KEEP_IDLE_S    15

struct weir_http_tunnel {
    CURL *easy;
    curl_socket_t fd;
    struct weir_buf early; /* what came behind the answer's head */
};

static weir_status connect_server(struct weir_http_tunnel *t,
                                  const struct weir_http_tunnel_config *config, int64_t timeout_ms,
                                  struct weir_error *err)
{
    char why[CURL_ERROR_SIZE] = "";
    curl_easy_setopt(t->easy, CURLOPT_URL, config->url);
    curl_easy_setopt(t->easy, CURLOPT_PROXY, "");
    curl_easy_setopt(t->easy, CURLOPT_CONNECT_ONLY, 1L);
    curl_easy_setopt(t->easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(t->easy, CURLOPT_SSL_ENABLE_ALPN, 0L); /* HTTP/1.1 */
    curl_easy_setopt(t->easy, CURLOPT_ERRORBUFFER, why);
    curl_easy_setopt(t->easy, CURLOPT_TIMEOUT_MS, (long)timeout_ms);
    if (config->ca_file != NULL) {
        curl_easy_setopt(t->easy, CURLOPT_CAINFO, config->ca_file);
    }
    CURLcode code = curl_easy_perform(t->easy);
    if (code == CURLE_OK) {
        code = curl_easy_getinfo(t->easy, CURLINFO_ACTIVESOCKET, &t->fd);
    }
    if (code == CURLE_OK && t->fd != CURL_SOCKET_BAD) {
        (void)setsockopt(t->fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
        (void)setsockopt(t->fd, SOL_SOCKET, SO_KEEPALIVE, &(int){1}, sizeof(int));
        (void)setsockopt(t->fd, IPPROTO_TCP, TCP_KEEPIDLE, &(int){KEEP_IDLE_S}, sizeof(int));
        (void)setsockopt(t->fd, IPPROTO_TCP, TCP_KEEPINTVL, &(int){KEEP_IDLE_S}, sizeof(int));
        (void)setsockopt(t->fd, IPPROTO_TCP, TCP_KEEPCNT, &(int){4}, sizeof(int));
        return WEIR_OK;
    }
    weir_status status = code == CURLE_PEER_FAILED_VERIFICATION ? WEIR_ERR_DENIED
                         : code == CURLE_OPERATION_TIMEDOUT     ? WEIR_ERR_TIMEOUT
                                                                : WEIR_ERR_UNAVAILABLE;
    return weir_error_set(err, status, "cannot connect to %s: %s", config->url,
                          why[0] != '\0' ? why : curl_easy_strerror(code));
}

/* Wait for the descriptor. False: the time is up. */
static bool await(const struct weir_http_tunnel *t, short events, int64_t due_ms)
{
    struct pollfd fd = {.fd = t->fd, .events = events};
    int64_t left_ms = due_ms - weir_mono_ms();
    return left_ms > 0 && poll(&fd, 1, (int)left_ms) == 1;
}

static weir_status send_request(struct weir_http_tunnel *t,
                                const struct weir_http_tunnel_config *config, int64_t due_ms,
                                struct weir_error *err)
{
    struct weir_buf text;
    weir_buf_init(&text, HEAD_MAX_BYTES);
    const char *host = strstr(config->url, "://");
    host = host != NULL ? host + 3 : config->url;
    size_t host_len = strcspn(host, "/");
    const char *path = host[host_len] != '\0' ? host + host_len : "/";
    (void)weir_buf_printf(&text,
                          "GET %s HTTP/1.1\r\nHost: %.*s\r\nConnection: Upgrade\r\nUpgrade: %s\r\n",
                          path, (int)host_len, host, config->protocol);
    if (config->bearer != NULL) {
        (void)weir_buf_printf(&text, "Authorization: Bearer %s\r\n", config->bearer);
    }
    if (config->header != NULL) {
        (void)weir_buf_printf(&text, "%s\r\n", config->header);
    }
    (void)weir_buf_puts(&text, "\r\n");
    weir_status status = text.status;
    for (size_t sent = 0; status == WEIR_OK && sent < text.len;) {
        ssize_t n = weir_http_tunnel_write(t, text.data + sent, text.len - sent);
        sent += n > 0 ? (size_t)n : 0;
        if (n < 0 || (n == 0 && !await(t, POLLOUT, due_ms))) {
            status = weir_error_set(err, n < 0 ? WEIR_ERR_PEER : WEIR_ERR_TIMEOUT,
                                    "%s does not take the request", config->url);
        }
    }
    if (text.data != NULL) {
        explicit_bzero(text.data, text.len);
    }
    weir_buf_fini(&text);
    return status;
}

static long header_number(const char *head, const char *name)
{
    const char *at = strcasestr(head, name);
    return at != NULL ? strtol(at + strlen(name), NULL, 10) : -1;
}

/* More of the answer. False: its end, or the time is up. */
static bool read_more(struct weir_http_tunnel *t, struct weir_buf *buf, int64_t due_ms)
{
    char bytes[4096];
    for (;;) {
        ssize_t n = weir_http_tunnel_read(t, bytes, sizeof bytes);
        if (n > 0) {
            return weir_buf_append(buf, bytes, (size_t)n) == WEIR_OK;
        }
        if (n < 0 || !await(t, POLLIN, due_ms)) {
            return false;
        }
    }
}

static weir_status read_answer(struct weir_http_tunnel *t,
                               const struct weir_http_tunnel_config *config, int64_t due_ms,
                               int *out_http, struct weir_buf *out_body, struct weir_error *err)
{
    struct weir_buf got;
    const char *end = NULL;
    weir_buf_init(&got, HEAD_MAX_BYTES + BODY_MAX_BYTES);
    while (end == NULL && got.len <= HEAD_MAX_BYTES && read_more(t, &got, due_ms)) {
        end = strstr(got.data, "\r\n\r\n");
    }
    if (end == NULL || got.len < 12 || strncmp(got.data, "HTTP/1.1 ", 9) != 0) {
        weir_buf_fini(&got);
        return weir_error_set(err, WEIR_ERR_PEER, "%s does not answer as HTTP does", config->url);
    }
    size_t head_len = (size_t)(end + 4 - got.data);
    *out_http = (int)strtol(got.data + 9, NULL, 10);
    weir_status status = WEIR_OK;
    if (*out_http == 101) {
        status = weir_buf_append(&t->early, got.data + head_len, got.len - head_len);
    } else {
        long len = header_number(got.data, "\r\nContent-Length:");
        while (len > 0 && (size_t)len <= BODY_MAX_BYTES && got.len < head_len + (size_t)len &&
               read_more(t, &got, due_ms)) {
        }
        (void)weir_buf_append(out_body, got.data + head_len, got.len - head_len);
        status = weir_error_set(err, WEIR_ERR_INVALID,
                                "%s answered with HTTP status %d, and did not change to %s",
                                config->url, *out_http, config->protocol);
    }
    weir_buf_fini(&got);
    return status;
}

weir_status weir_http_tunnel_open(const struct weir_http_tunnel_config *config,
                                  struct weir_http_tunnel **out, int *out_http,
                                  struct weir_buf *out_body, struct weir_error *err)
{
    /** what libcurl needs for all is made with the first of these */
    struct weir_http_client *client;
    int64_t timeout_ms = config->timeout_ms > 0 ? config->timeout_ms : OPEN_MS;
    int64_t due_ms = weir_mono_ms() + timeout_ms;
    *out_http = 0;
    WEIR_TRY(weir_http_client_open(&(struct weir_http_client_config){0}, &client, err));
    weir_http_client_close(client);
    struct weir_http_tunnel *t = weir_xalloc(sizeof *t);
    *t = (struct weir_http_tunnel){.easy = curl_easy_init(), .fd = CURL_SOCKET_BAD};
    weir_buf_init(&t->early, HEAD_MAX_BYTES + BODY_MAX_BYTES);
    weir_status status = WEIR_OK;
    WEIR_TRY_GOTO(t->easy != NULL
                      ? connect_server(t, config, timeout_ms, err)
                      : weir_error_set(err, WEIR_ERR_NOMEM, "no memory for a connection"),
                  status, close);
    WEIR_TRY_GOTO(send_request(t, config, due_ms, err), status, close);
    WEIR_TRY_GOTO(read_answer(t, config, due_ms, out_http, out_body, err), status, close);
    *out = t;
    return WEIR_OK;
close:
    weir_http_tunnel_close(t);
    return status;
}

void weir_http_tunnel_close(struct weir_http_tunnel *tunnel)
{
    if (tunnel != NULL) {
        curl_easy_cleanup(tunnel->easy);
        weir_buf_fini(&tunnel->early);
        free(tunnel);
    }
}

int weir_http_tunnel_fd(const struct weir_http_tunnel *tunnel)
{
    return tunnel->fd;
}

ssize_t weir_http_tunnel_read(struct weir_http_tunnel *tunnel, void *out, size_t size)
{
    size_t n = 0;
    if (tunnel->early.len > 0) {
        n = tunnel->early.len < size ? tunnel->early.len : size;
        memcpy(out, tunnel->early.data, n);
        weir_buf_consume(&tunnel->early, n);
        return (ssize_t)n;
    }
    CURLcode code = curl_easy_recv(tunnel->easy, out, size, &n);
    return code == CURLE_AGAIN ? 0 : code == CURLE_OK && n > 0 ? (ssize_t)n : -1;
}

ssize_t weir_http_tunnel_write(struct weir_http_tunnel *tunnel, const void *bytes, size_t len)
{
    size_t n = 0;
    CURLcode code = curl_easy_send(tunnel->easy, bytes, len, &n);
    return code == CURLE_AGAIN ? 0 : code == CURLE_OK ? (ssize_t)n : -1;
}
