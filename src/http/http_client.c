#include "http/http_client.h"

#include "base/file.h"

#include <curl/curl.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#define REPLY_MAX_BYTES   ((size_t)16 << 20)
#define LINE_BYTES        ((size_t)16 << 10) /* tokens of others' systems are long */
#define HEADERS_MAX_BYTES ((size_t)64 << 10)

struct weir_http_client {
    CURL *easy;
    CURLM *multi;                          /* of the one handle: its poll can be woken by cancel */
    struct weir_http_client_config config; /* its texts are ours */
    struct curl_slist *connect_to;
    atomic_bool is_cancelled;
};

/* One call in progress: what libcurl's callbacks need. */
struct transfer {
    struct weir_http_client *client;
    const struct weir_http_call *call;
    struct weir_http_reply *reply;
    struct curl_slist *header_list;
    int body_fd; /* of call->body_file, or -1 */
    weir_status status;
    struct weir_error error; /* of status */
    char curl_error[CURL_ERROR_SIZE];
};

static pthread_once_t global_once = PTHREAD_ONCE_INIT;

static void init_global(void)
{
    curl_global_init(CURL_GLOBAL_DEFAULT);
}

/* The texts of a configuration. */
static const size_t texts[] = {offsetof(struct weir_http_client_config, ca_file),
                               offsetof(struct weir_http_client_config, ca_pem),
                               offsetof(struct weir_http_client_config, cert_pem),
                               offsetof(struct weir_http_client_config, key_pem),
                               offsetof(struct weir_http_client_config, connect_to),
                               offsetof(struct weir_http_client_config, proxy)};

static char **text_at(struct weir_http_client_config *config, size_t i)
{
    return (char **)(void *)((char *)config + texts[i]);
}

/* @return False: there is no memory for all of it. */
static bool copy_config(struct weir_http_client *client,
                        const struct weir_http_client_config *config)
{
    bool is_whole = true;
    client->config = *config;
    client->config.connect_timeout_ms =
        config->connect_timeout_ms > 0 ? config->connect_timeout_ms : 5000;
    for (size_t i = 0; i < WEIR_ARRAY_LEN(texts); i++) {
        char **text = text_at(&client->config, i);
        if (*text != NULL) {
            *text = strdup(*text);
            is_whole = is_whole && *text != NULL;
        }
    }
    if (config->connect_to != NULL) {
        client->connect_to = curl_slist_append(NULL, config->connect_to);
        is_whole = is_whole && client->connect_to != NULL;
    }
    return is_whole;
}

weir_status weir_http_client_open(const struct weir_http_client_config *config,
                                  struct weir_http_client **out, struct weir_error *err)
{
    pthread_once(&global_once, init_global);
    struct weir_http_client *client = calloc(1, sizeof *client);
    if (client != NULL) {
        client->easy = curl_easy_init();
        client->multi = curl_multi_init();
    }
    if (client == NULL || !copy_config(client, config) || client->easy == NULL ||
        client->multi == NULL) {
        weir_http_client_close(client);
        return weir_error_set(err, WEIR_ERR_NOMEM, "no memory for an HTTP client");
    }
    *out = client;
    return WEIR_OK;
}

void weir_http_client_close(struct weir_http_client *client)
{
    if (client != NULL) {
        /* The easy handle first: its connections live in the multi handle's cache. */
        curl_easy_cleanup(client->easy);
        curl_multi_cleanup(client->multi);
        curl_slist_free_all(client->connect_to);
        for (size_t i = 0; i < WEIR_ARRAY_LEN(texts); i++) {
            free(*text_at(&client->config, i));
        }
        free(client);
    }
}

void weir_http_client_cancel(struct weir_http_client *client)
{
    atomic_store(&client->is_cancelled, true);
    curl_multi_wakeup(client->multi);
}

void weir_http_client_cancel_clear(struct weir_http_client *client)
{
    atomic_store(&client->is_cancelled, false);
}

static bool is_good(const struct transfer *t)
{
    long code = 0;
    curl_easy_getinfo(t->client->easy, CURLINFO_RESPONSE_CODE, &code);
    return code >= 200 && code < 300;
}

static size_t fail(struct transfer *t, weir_status status)
{
    t->status = status;
    return 0; /* makes libcurl give up */
}

static size_t on_body(char *bytes, size_t size, size_t n, void *context)
{
    struct transfer *t = context;
    size_t len = size * n;
    t->reply->n_body_bytes += len;
    if (t->call->out_fd > 0 && is_good(t)) {
        weir_status status = weir_fd_write_all(t->call->out_fd, bytes, len, &t->error);
        return status == WEIR_OK ? len : fail(t, status);
    }
    if (t->call->on_bytes != NULL && is_good(t)) {
        weir_status status = t->call->on_bytes(t->call->on_bytes_context, bytes, len, &t->error);
        return status == WEIR_OK ? len : fail(t, status);
    }
    if (weir_buf_append(&t->reply->body, bytes, len) != WEIR_OK) {
        return fail(t, weir_error_set(&t->error, t->reply->body.status,
                                      "the answer is longer than %zu bytes",
                                      t->reply->body.max_bytes));
    }
    return len;
}

static size_t on_header(char *bytes, size_t size, size_t n, void *context)
{
    struct transfer *t = context;
    size_t len = size * n;
    if (len >= 5 && memcmp(bytes, "HTTP/", 5) == 0) {
        weir_buf_reset(&t->reply->headers); /* of an earlier 100 Continue */
        return len;
    }
    size_t text_len = len;
    while (text_len > 0 && (bytes[text_len - 1] == '\r' || bytes[text_len - 1] == '\n')) {
        text_len--;
    }
    if (text_len > 0) {
        (void)weir_buf_append(&t->reply->headers, bytes, text_len);
        (void)weir_buf_puts(&t->reply->headers, "\n");
    }
    return t->reply->headers.status == WEIR_OK
               ? len
               : fail(t, weir_error_set(&t->error, WEIR_ERR_LIMIT,
                                        "the headers of the answer are longer than %zu bytes",
                                        HEADERS_MAX_BYTES));
}

static size_t read_file(char *bytes, size_t size, size_t n, void *context)
{
    struct transfer *t = context;
    ssize_t got = read(t->body_fd, bytes, size * n);
    if (got < 0) {
        t->status = weir_error_set_errno(&t->error, errno, "reading %s", t->call->body_file);
        return CURL_READFUNC_ABORT;
    }
    return (size_t)got;
}

static int seek_file(void *context, curl_off_t offset, int origin)
{
    struct transfer *t = context;
    off_t base = origin == SEEK_SET ? (off_t)t->call->body_offset : 0;
    return lseek(t->body_fd, base + offset, origin) >= 0 ? CURL_SEEKFUNC_OK : CURL_SEEKFUNC_FAIL;
}

static weir_status set_body_file(struct transfer *t, struct weir_error *err)
{
    const struct weir_http_call *call = t->call;
    t->body_fd = open(call->body_file, O_RDONLY | O_CLOEXEC);
    struct stat info;
    if (t->body_fd < 0 || fstat(t->body_fd, &info) != 0 ||
        lseek(t->body_fd, (off_t)call->body_offset, SEEK_SET) < 0) {
        return weir_error_set_errno(err, errno, "cannot send %s", call->body_file);
    }
    CURL *easy = t->client->easy;
    off_t left = info.st_size - (off_t)call->body_offset;
    curl_easy_setopt(easy, CURLOPT_UPLOAD, 1L);
    curl_easy_setopt(easy, CURLOPT_READFUNCTION, read_file);
    curl_easy_setopt(easy, CURLOPT_READDATA, t);
    curl_easy_setopt(easy, CURLOPT_SEEKFUNCTION, seek_file);
    curl_easy_setopt(easy, CURLOPT_SEEKDATA, t);
    curl_easy_setopt(easy, CURLOPT_INFILESIZE_LARGE, (curl_off_t)WEIR_MAX(left, (off_t)0));
    return WEIR_OK;
}

static weir_status add_header(struct transfer *t, const char *line, struct weir_error *err)
{
    if (strpbrk(line, "\r\n") != NULL) {
        return weir_error_set(err, WEIR_ERR_INVALID, "a header holds a line end");
    }
    struct curl_slist *list = curl_slist_append(t->header_list, line);
    if (list == NULL) {
        return weir_error_set(err, WEIR_ERR_NOMEM, "no memory for an HTTP request");
    }
    t->header_list = list;
    return WEIR_OK;
}

static weir_status set_headers(struct transfer *t, struct weir_error *err)
{
    const struct weir_http_call *call = t->call;
    for (size_t i = 0; i < call->n_headers; i++) {
        WEIR_TRY(add_header(t, call->headers[i], err));
    }
    char line[LINE_BYTES];
    if (call->bearer != NULL) {
        int n = snprintf(line, sizeof line, "Authorization: Bearer %s", call->bearer);
        if (n < 0 || (size_t)n >= sizeof line) {
            return weir_error_set(err, WEIR_ERR_INVALID, "the token is too long");
        }
        WEIR_TRY(add_header(t, line, err));
        explicit_bzero(line, sizeof line);
    }
    if (call->content_type != NULL) {
        (void)snprintf(line, sizeof line, "Content-Type: %s", call->content_type);
        WEIR_TRY(add_header(t, line, err));
    } else {
        WEIR_TRY(add_header(t, "Content-Type:", err)); /* none, not libcurl's own idea */
    }
    curl_easy_setopt(t->client->easy, CURLOPT_HTTPHEADER, t->header_list);
    return WEIR_OK;
}

static weir_status set_body(struct transfer *t, struct weir_error *err)
{
    const struct weir_http_call *call = t->call;
    CURL *easy = t->client->easy;
    if (call->body_file != NULL) {
        WEIR_TRY(set_body_file(t, err));
    } else if (call->body != NULL || strcmp(call->method, "POST") == 0 ||
               strcmp(call->method, "PUT") == 0) {
        curl_easy_setopt(easy, CURLOPT_POST, 1L);
        curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)call->body_len);
        curl_easy_setopt(easy, CURLOPT_POSTFIELDS, call->body != NULL ? call->body : "");
    }
    if (strcmp(call->method, "HEAD") == 0) {
        curl_easy_setopt(easy, CURLOPT_NOBODY, 1L);
    } else {
        curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, call->method);
    }
    return WEIR_OK;
}

static void set_pem(CURL *easy, CURLoption option, const char *pem)
{
    struct curl_blob blob = {.data = (void *)(uintptr_t)pem, .len = pem != NULL ? strlen(pem) : 0};
    if (pem != NULL) {
        curl_easy_setopt(easy, option, &blob);
    }
}

/* Whom it trusts, what it proves itself with, and by which way it goes. */
static void set_way(const struct weir_http_client *client)
{
    const struct weir_http_client_config *config = &client->config;
    CURL *easy = client->easy;
    if (config->proxy != NULL || !config->has_environment_proxy) {
        curl_easy_setopt(easy, CURLOPT_PROXY, config->proxy != NULL ? config->proxy : "");
    }
    if (config->ca_file != NULL) {
        curl_easy_setopt(easy, CURLOPT_CAINFO, config->ca_file);
    }
    set_pem(easy, CURLOPT_CAINFO_BLOB, config->ca_pem);
    set_pem(easy, CURLOPT_SSLCERT_BLOB, config->cert_pem);
    set_pem(easy, CURLOPT_SSLKEY_BLOB, config->key_pem);
    curl_easy_setopt(easy, CURLOPT_CONNECT_TO, client->connect_to);
    if (config->is_unverified) {
        curl_easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, 0L);
        curl_easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, 0L);
    }
}

static weir_status set_options(struct transfer *t, struct weir_error *err)
{
    const struct weir_http_call *call = t->call;
    struct weir_http_client *client = t->client;
    CURL *easy = client->easy;
    curl_easy_reset(easy); /* keeps the connections */
    if (curl_easy_setopt(easy, CURLOPT_URL, call->url) != CURLE_OK) {
        return weir_error_set(err, WEIR_ERR_NOMEM, "no memory for an HTTP request");
    }
    curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy, CURLOPT_PATH_AS_IS, 1L);
    curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    curl_easy_setopt(easy, CURLOPT_TCP_NODELAY, 1L);
    curl_easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
    curl_easy_setopt(easy, CURLOPT_USERAGENT, "weir/" WEIR_VERSION);
    curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, t->curl_error);
    curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, (long)client->config.connect_timeout_ms);
    if (call->timeout_ms > 0) {
        curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, (long)call->timeout_ms);
    }
    if (call->quiet_timeout_ms > 0) {
        curl_easy_setopt(easy, CURLOPT_LOW_SPEED_LIMIT, 1L);
        curl_easy_setopt(easy, CURLOPT_LOW_SPEED_TIME, (long)(call->quiet_timeout_ms + 999) / 1000);
    }
    set_way(client);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_body);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, t);
    curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, on_header);
    curl_easy_setopt(easy, CURLOPT_HEADERDATA, t);
    WEIR_TRY(set_body(t, err));
    return set_headers(t, err);
}

/* Length of the scheme, host and port that a URL begins with. */
static size_t origin_len(const char *url)
{
    const char *host = strstr(url, "://");
    host = host != NULL ? host + 3 : url;
    return (size_t)(host - url) + strcspn(host, "/?#");
}

static weir_status curl_failure(const struct transfer *t, CURLcode code, struct weir_error *err)
{
    const char *url = t->call->url;
    const char *why = t->curl_error[0] != '\0' ? t->curl_error : curl_easy_strerror(code);
    bool is_foreign = t->client->config.is_foreign;
    switch (code) {
    case CURLE_COULDNT_CONNECT:
        return weir_error_set(
            err, WEIR_ERR_UNAVAILABLE, "cannot reach %.*s: %s", (int)origin_len(url), url,
            is_foreign ? why : "is the server running? Start it with `weir server`");
    case CURLE_COULDNT_RESOLVE_HOST:
        return weir_error_set(err, WEIR_ERR_UNAVAILABLE,
                              "cannot reach %s: this host name is not known", url);
    case CURLE_OPERATION_TIMEDOUT:
        return weir_error_set(err, WEIR_ERR_TIMEOUT, "no answer from %s in time: %s", url, why);
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_CONNECT_ERROR:
        return weir_error_set(err, WEIR_ERR_DENIED, "no trusted connection to %.*s: %s%s",
                              (int)origin_len(url), url, why,
                              is_foreign ? "" : " (name its authority with --ca-file)");
    case CURLE_URL_MALFORMAT:
    case CURLE_UNSUPPORTED_PROTOCOL:
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "\"%s\" is no address of a server: expected http://HOST:PORT", url);
    case CURLE_OUT_OF_MEMORY:
        return weir_error_set(err, WEIR_ERR_NOMEM, "no memory for an HTTP request");
    default:
        return weir_error_set(err, WEIR_ERR_PEER, "the connection to %s broke: %s", url, why);
    }
}

/* Run the one transfer to its end; CANCELLED if weir_http_client_cancel was called. */
static weir_status perform(struct transfer *t, struct weir_error *err)
{
    struct weir_http_client *client = t->client;
    int n_running = 1;
    while (n_running > 0) {
        if (atomic_exchange(&client->is_cancelled, false)) {
            return weir_error_set(err, WEIR_ERR_CANCELLED, "the request was cancelled");
        }
        CURLMcode rc = curl_multi_perform(client->multi, &n_running);
        if (rc == CURLM_OK && n_running > 0) {
            rc = curl_multi_poll(client->multi, NULL, 0, 1000, NULL);
        }
        if (rc != CURLM_OK) {
            return weir_error_set(err, WEIR_ERR_INTERNAL, "HTTP client: %s",
                                  curl_multi_strerror(rc));
        }
    }
    int n_left;
    CURLMsg *message = curl_multi_info_read(client->multi, &n_left);
    CURLcode code = message != NULL ? message->data.result : CURLE_RECV_ERROR;
    if (t->status != WEIR_OK) { /* a callback of ours gave up */
        if (err != NULL && t->error.status == t->status) {
            *err = t->error;
        } else {
            weir_error_set(err, t->status, "%s", weir_status_text(t->status));
        }
        return t->status;
    }
    return code == CURLE_OK ? WEIR_OK : curl_failure(t, code, err);
}

weir_status weir_http_client_call(struct weir_http_client *client,
                                  const struct weir_http_call *call, struct weir_http_reply *reply,
                                  struct weir_error *err)
{
    struct transfer t = {.client = client, .call = call, .reply = reply, .body_fd = -1};
    *reply = (struct weir_http_reply){0};
    weir_buf_init(&reply->body,
                  call->max_reply_bytes > 0 ? call->max_reply_bytes : REPLY_MAX_BYTES);
    weir_buf_init(&reply->headers, HEADERS_MAX_BYTES);
    weir_status status = set_options(&t, err);
    if (status == WEIR_OK) {
        curl_multi_add_handle(client->multi, client->easy);
        status = perform(&t, err);
        long code = 0;
        curl_easy_getinfo(client->easy, CURLINFO_RESPONSE_CODE, &code);
        reply->http_status = (int)code;
        curl_multi_remove_handle(client->multi, client->easy);
    }
    curl_easy_reset(client->easy); /* it must not point to t any longer */
    curl_slist_free_all(t.header_list);
    if (t.body_fd >= 0) {
        close(t.body_fd);
    }
    if (status != WEIR_OK) {
        weir_http_reply_fini(reply);
    }
    return status;
}

void weir_http_reply_fini(struct weir_http_reply *reply)
{
    weir_buf_fini(&reply->body);
    weir_buf_fini(&reply->headers);
}

bool weir_http_reply_header(const struct weir_http_reply *reply, const char *name, char *out,
                            size_t size)
{
    size_t name_len = strlen(name);
    const char *line = reply->headers.data;
    while (*line != '\0') {
        size_t len = strcspn(line, "\n");
        if (len > name_len && line[name_len] == ':' && strncasecmp(line, name, name_len) == 0) {
            const char *value = line + name_len + 1;
            value += strspn(value, " \t");
            size_t value_len = WEIR_MIN((size_t)(line + len - value), size - 1);
            memcpy(out, value, value_len);
            out[value_len] = '\0';
            return true;
        }
        line += len + (line[len] == '\n');
    }
    return false;
}
