#include "message.h"

#include "rtsp.h"

#include <string.h>

/* The bytes of head and empty line; 0: the empty line has not come yet. */
static size_t head_bytes(struct rtsp_text bytes)
{
    struct rtsp_text line;
    const char *begin = bytes.at;
    while (rtsp_text_line(&bytes, &line)) {
        if (line.n == 0 && bytes.at[-1] == '\n') {
            return (size_t)(bytes.at - begin);
        }
    }
    return 0;
}

/* "RTSP/1.0 200 OK", or "OPTIONS rtsp://… RTSP/1.0". */
static weir_status parse_first_line(struct rtsp_text line, int *out_code)
{
    if (rtsp_text_begins(line, "RTSP/1.")) {
        (void)rtsp_text_cut(&line, ' ');
        *out_code = (int)rtsp_text_number(line, 999);
        return *out_code >= 100 ? WEIR_OK : WEIR_ERR_CORRUPT;
    }
    *out_code = 0;
    struct rtsp_text method = rtsp_text_cut(&line, ' ');
    (void)rtsp_text_cut(&line, ' ');
    return method.n > 0 && rtsp_text_begins(line, "RTSP/1.") ? WEIR_OK : WEIR_ERR_CORRUPT;
}

/* Is it, as far as it has come, what a message can begin with? */
static bool may_begin(struct rtsp_text bytes)
{
    for (size_t i = 0; i < WEIR_MIN(bytes.n, (size_t)5); i++) {
        char c = bytes.at[i];
        bool is_letter = (c >= 'A' && c <= 'Z') || (c == '_' && i > 0);
        if (!is_letter && !(i == 4 && (c == '/' || c == ' ')) && !(i > 2 && c == ' ')) {
            return false;
        }
    }
    return true;
}

weir_status rtsp_message_take(const char *bytes, size_t n, struct rtsp_message *out,
                              size_t *out_used)
{
    struct rtsp_text rest = {bytes, WEIR_MIN(n, WEIR_RTSP_MESSAGE_MAX_BYTES)};
    if (!may_begin(rest)) {
        return WEIR_ERR_CORRUPT;
    }
    size_t n_head = head_bytes(rest);
    *out_used = 0;
    if (n_head == 0) {
        return n >= WEIR_RTSP_MESSAGE_MAX_BYTES ? WEIR_ERR_LIMIT : WEIR_OK;
    }
    struct rtsp_message message = {.headers = {bytes, n_head}};
    struct rtsp_text line, length;
    (void)rtsp_text_line(&message.headers, &line);
    WEIR_TRY(parse_first_line(line, &message.code));
    int64_t n_body = 0;
    if (rtsp_message_header(&message, "Content-Length", 0, &length)) {
        n_body = rtsp_text_number(length, (int64_t)WEIR_RTSP_MESSAGE_MAX_BYTES);
        if (n_body < 0) {
            return rtsp_text_number(length, INT32_MAX) < 0 ? WEIR_ERR_CORRUPT : WEIR_ERR_LIMIT;
        }
    }
    if (n_head + (size_t)n_body > WEIR_RTSP_MESSAGE_MAX_BYTES) {
        return WEIR_ERR_LIMIT;
    }
    if (n < n_head + (size_t)n_body) {
        return WEIR_OK;
    }
    message.body = (struct rtsp_text){bytes + n_head, (size_t)n_body};
    *out = message;
    *out_used = n_head + (size_t)n_body;
    return WEIR_OK;
}

bool rtsp_message_header(const struct rtsp_message *message, const char *name, unsigned i,
                         struct rtsp_text *out)
{
    struct rtsp_text rest = message->headers, line;
    while (rtsp_text_line(&rest, &line)) {
        struct rtsp_text at = rtsp_text_trim(rtsp_text_cut(&line, ':'));
        if (rtsp_text_is(at, name) && i-- == 0) {
            *out = rtsp_text_trim(line);
            return true;
        }
    }
    return false;
}
