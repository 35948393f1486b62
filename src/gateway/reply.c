#include "gateway/reply.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

static void begin(struct reply *reply)
{
    reply->http_status = 0;
    reply->content_type[0] = reply->times[0] = '\0';
    reply->inference_header_bytes = -1;
    reply->model_version = 0;
    reply->output_class = reply->output_score = -1;
    reply->retry_after_s = -1;
    reply->keeps_alive = true;
    reply->part = REPLY_HEAD;
    reply->line_len = reply->head_len = 0;
    reply->has_length = reply->is_chunked = false;
    reply->n_left = 0;
}

void reply_init(struct reply *reply, size_t max_body_bytes)
{
    weir_buf_init(&reply->body, max_body_bytes);
    reply->has_begun = false;
    begin(reply);
}

void reply_reset(struct reply *reply)
{
    weir_buf_reset(&reply->body);
    reply->has_begun = false;
    begin(reply);
}

void reply_fini(struct reply *reply)
{
    weir_buf_fini(&reply->body);
}

/* Take bytes up to a line's end. Sets *out_is_whole and cuts the end off. */
static weir_status feed_line(struct reply *reply, const char *bytes, size_t len, size_t *taken,
                             bool *out_is_whole)
{
    const char *end = memchr(bytes + *taken, '\n', len - *taken);
    size_t n = end != NULL ? (size_t)(end - bytes) - *taken : len - *taken;
    if (n >= sizeof reply->line - reply->line_len || reply->head_len + n >= REPLY_HEAD_MAX_BYTES) {
        return WEIR_ERR_CORRUPT;
    }
    memcpy(reply->line + reply->line_len, bytes + *taken, n);
    reply->line_len += n;
    reply->head_len += n + 1;
    *taken += n + (end != NULL);
    *out_is_whole = end != NULL;
    if (end != NULL) {
        reply->line_len -= reply->line_len > 0 && reply->line[reply->line_len - 1] == '\r';
        reply->line[reply->line_len] = '\0';
        if (strlen(reply->line) != reply->line_len) {
            return WEIR_ERR_CORRUPT;
        }
        reply->line_len = 0;
    }
    return WEIR_OK;
}

static weir_status read_status_line(struct reply *reply)
{
    const char *line = reply->line;
    bool fits = (strncmp(line, "HTTP/1.1 ", 9) == 0 || strncmp(line, "HTTP/1.0 ", 9) == 0) &&
                line[9] >= '1' && line[9] <= '5' && line[10] >= '0' && line[10] <= '9' &&
                line[11] >= '0' && line[11] <= '9' && (line[12] == ' ' || line[12] == '\0');
    if (!fits) {
        return WEIR_ERR_CORRUPT;
    }
    reply->http_status = (line[9] - '0') * 100 + (line[10] - '0') * 10 + (line[11] - '0');
    reply->keeps_alive = line[7] == '1';
    return WEIR_OK;
}

/* Decimal digits only, as all numbers of these headers are. */
static bool read_number(const char *text, int64_t *out)
{
    size_t n = strspn(text, "0123456789");
    if (n == 0 || n > 18 || text[n] != '\0') {
        return false;
    }
    *out = strtoll(text, NULL, 10);
    return true;
}

static weir_status read_length(struct reply *reply, const char *value)
{
    int64_t length;
    if (reply->has_length || reply->is_chunked || !read_number(value, &length)) {
        return WEIR_ERR_CORRUPT;
    }
    reply->has_length = true;
    reply->n_left = (uint64_t)length;
    return WEIR_OK;
}

/* "CLASS SCORE"; what is no such pair is left out. */
static void read_output(struct reply *reply, char *value)
{
    char *blank = strchr(value, ' ');
    int64_t class, score;
    if (blank == NULL) {
        return;
    }
    *blank = '\0';
    if (read_number(value, &class) && read_number(blank + 1, &score) && class < REPLY_BINS &&
        score < REPLY_BINS) {
        reply->output_class = (int)class;
        reply->output_score = (int)score;
    }
}

static weir_status read_header(struct reply *reply)
{
    char *colon = strchr(reply->line, ':');
    if (colon == NULL || colon == reply->line ||
        strcspn(reply->line, " \t") < (size_t)(colon - reply->line)) {
        return WEIR_ERR_CORRUPT;
    }
    *colon = '\0';
    const char *name = reply->line;
    char *value = colon + 1 + strspn(colon + 1, " \t");
    for (size_t n = strlen(value); n > 0 && (value[n - 1] == ' ' || value[n - 1] == '\t'); n--) {
        value[n - 1] = '\0';
    }
    int64_t number;
    if (strcasecmp(name, "Content-Length") == 0) {
        return read_length(reply, value);
    }
    if (strcasecmp(name, "Transfer-Encoding") == 0) {
        if (reply->has_length || reply->is_chunked || strcasecmp(value, "chunked") != 0) {
            return WEIR_ERR_CORRUPT;
        }
        reply->is_chunked = true;
    } else if (strcasecmp(name, "Connection") == 0) {
        reply->keeps_alive = strcasecmp(value, "close") != 0 &&
                             (reply->keeps_alive || strcasecmp(value, "keep-alive") == 0);
    } else if (strcasecmp(name, "Content-Type") == 0 && strlen(value) < REPLY_TYPE_BYTES) {
        memcpy(reply->content_type, value, strlen(value) + 1);
    } else if (strcasecmp(name, "Weir-Times") == 0 && strlen(value) < REPLY_TIMES_BYTES) {
        memcpy(reply->times, value, strlen(value) + 1);
    } else if (strcasecmp(name, "Inference-Header-Content-Length") == 0 &&
               read_number(value, &number)) {
        reply->inference_header_bytes = number;
    } else if (strcasecmp(name, "Weir-Model-Version") == 0 && read_number(value, &number)) {
        reply->model_version = number;
    } else if (strcasecmp(name, "Weir-Output") == 0) {
        read_output(reply, value);
    } else if (strcasecmp(name, "Retry-After") == 0 && read_number(value, &number)) {
        reply->retry_after_s = number;
    }
    return WEIR_OK;
}

/* The empty line behind the headers. */
static weir_status end_head(struct reply *reply)
{
    int http_status = reply->http_status;
    if (http_status < 200) {
        if (http_status == 101) {
            return WEIR_ERR_CORRUPT;
        }
        begin(reply); /* "continue" and its like: the answer follows */
        return WEIR_OK;
    }
    if (reply->n_left > reply->body.max_bytes) {
        return WEIR_ERR_LIMIT;
    }
    if (http_status == 204 || http_status == 304) {
        reply->n_left = 0;
        reply->part = REPLY_WHOLE;
    } else if (reply->is_chunked) {
        reply->part = REPLY_CHUNK_SIZE;
    } else {
        reply->part = reply->has_length && reply->n_left == 0 ? REPLY_WHOLE : REPLY_BODY;
        reply->keeps_alive = reply->keeps_alive && reply->has_length;
    }
    return WEIR_OK;
}

static weir_status on_head_line(struct reply *reply)
{
    if (reply->http_status == 0) {
        return read_status_line(reply);
    }
    return reply->line[0] == '\0' ? end_head(reply) : read_header(reply);
}

static weir_status on_chunk_size(struct reply *reply)
{
    size_t n = strspn(reply->line, "0123456789abcdefABCDEF");
    if (n == 0 || n > 15 || (reply->line[n] != '\0' && strchr("; \t", reply->line[n]) == NULL)) {
        return WEIR_ERR_CORRUPT;
    }
    reply->n_left = strtoull(reply->line, NULL, 16);
    reply->part = reply->n_left == 0 ? REPLY_TRAILER : REPLY_CHUNK;
    reply->head_len = 0;
    return WEIR_OK;
}

static weir_status on_line(struct reply *reply)
{
    switch (reply->part) {
    case REPLY_HEAD:
        return on_head_line(reply);
    case REPLY_CHUNK_SIZE:
        return on_chunk_size(reply);
    case REPLY_CHUNK_END:
        reply->part = REPLY_CHUNK_SIZE;
        return reply->line[0] == '\0' ? WEIR_OK : WEIR_ERR_CORRUPT;
    default:
        reply->part = reply->line[0] == '\0' ? REPLY_WHOLE : REPLY_TRAILER;
        return WEIR_OK;
    }
}

static weir_status feed_bytes(struct reply *reply, const char *bytes, size_t len, size_t *taken)
{
    bool is_counted = reply->part == REPLY_CHUNK || reply->has_length;
    size_t n = len - *taken;
    if (is_counted && n > reply->n_left) {
        n = (size_t)reply->n_left;
    }
    WEIR_TRY(weir_buf_append(&reply->body, bytes + *taken, n));
    *taken += n;
    if (is_counted) {
        reply->n_left -= n;
        if (reply->n_left == 0) {
            reply->part = reply->part == REPLY_CHUNK ? REPLY_CHUNK_END : REPLY_WHOLE;
        }
    }
    return WEIR_OK;
}

weir_status reply_feed(struct reply *reply, const char *bytes, size_t len, size_t *out_taken)
{
    size_t taken = 0;
    reply->has_begun = reply->has_begun || len > 0;
    while (reply->part != REPLY_WHOLE && taken < len) {
        if (reply->part == REPLY_BODY || reply->part == REPLY_CHUNK) {
            WEIR_TRY(feed_bytes(reply, bytes, len, &taken));
            continue;
        }
        bool is_whole;
        WEIR_TRY(feed_line(reply, bytes, len, &taken, &is_whole));
        if (is_whole) {
            WEIR_TRY(on_line(reply));
        }
    }
    *out_taken = taken;
    return reply->part == REPLY_WHOLE ? WEIR_ERR_END : WEIR_OK;
}

weir_status reply_close(struct reply *reply)
{
    if (reply->part == REPLY_BODY && !reply->has_length) {
        reply->part = REPLY_WHOLE;
    }
    return reply->part == REPLY_WHOLE ? WEIR_ERR_END : WEIR_ERR_PEER;
}
