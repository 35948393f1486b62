#include "dialogue.h"

#include "base/clock.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* In: a packet or a message at its largest, and what has come behind it. */
enum { IN_BYTES = 128 << 10, OUT_MAX_BYTES = 32 << 10, CHANNEL_HEAD_BYTES = 4 };

weir_status rtsp_dialogue_init(struct rtsp_dialogue *dialogue, int fd,
                               const struct rtsp_address *address)
{
    *dialogue = (struct rtsp_dialogue){.fd = fd, .address = *address, .in = malloc(IN_BYTES)};
    weir_buf_init(&dialogue->out, OUT_MAX_BYTES);
    return dialogue->in == NULL ? WEIR_ERR_NOMEM : WEIR_OK;
}

void rtsp_dialogue_fini(struct rtsp_dialogue *dialogue)
{
    if (dialogue->fd >= 0) {
        (void)close(dialogue->fd);
    }
    free(dialogue->in);
    weir_buf_fini(&dialogue->out);
}

static weir_status say_lost(int errno_value, struct weir_error *err)
{
    if (errno_value == 0) {
        return weir_error_set(err, WEIR_ERR_PEER, "the camera has closed the connection");
    }
    return weir_error_set(err, WEIR_ERR_PEER, "the connection to the camera has broken off: %s",
                          strerror(errno_value));
}

weir_status rtsp_dialogue_flush(struct rtsp_dialogue *dialogue, struct weir_error *err)
{
    if (dialogue->out.status != WEIR_OK) {
        return weir_error_set(err, WEIR_ERR_PEER, "the camera takes no requests any more");
    }
    while (dialogue->out.len > 0) {
        ssize_t n = send(dialogue->fd, dialogue->out.data, dialogue->out.len, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0) {
            return errno == EAGAIN || errno == EWOULDBLOCK ? WEIR_OK : say_lost(errno, err);
        }
        weir_buf_consume(&dialogue->out, (size_t)n);
    }
    return WEIR_OK;
}

weir_status rtsp_dialogue_send(struct rtsp_dialogue *dialogue, const char *method, const char *url,
                               const char *headers, struct weir_error *err)
{
    struct weir_buf *out = &dialogue->out;
    weir_buf_printf(out, "%s %s RTSP/1.0\r\nCSeq: %u\r\nUser-Agent: Weir\r\n", method, url,
                    ++dialogue->n_sent);
    rtsp_auth_put(&dialogue->auth, dialogue->address.user, dialogue->address.password, method, url,
                  out);
    if (dialogue->session[0] != '\0') {
        weir_buf_printf(out, "Session: %s\r\n", dialogue->session);
    }
    weir_buf_printf(out, "%s\r\n", headers);
    return rtsp_dialogue_flush(dialogue, err);
}

weir_status rtsp_dialogue_fill(struct rtsp_dialogue *dialogue, struct weir_error *err)
{
    if (dialogue->begin > 0) {
        memmove(dialogue->in, dialogue->in + dialogue->begin, dialogue->end - dialogue->begin);
        dialogue->end -= dialogue->begin;
        dialogue->begin = 0;
    }
    ssize_t n = recv(dialogue->fd, dialogue->in + dialogue->end, IN_BYTES - dialogue->end, 0);
    if (n > 0) {
        dialogue->end += (size_t)n;
        dialogue->read_ns = weir_mono_ns();
        return WEIR_OK;
    }
    bool is_nothing = n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR);
    return is_nothing ? WEIR_OK : say_lost(n == 0 ? 0 : errno, err);
}

/* A request of the camera's own. */
static weir_status refuse_request(struct rtsp_dialogue *dialogue,
                                  const struct rtsp_message *message, struct weir_error *err)
{
    struct rtsp_text number = {"0", 1};
    (void)rtsp_message_header(message, "CSeq", 0, &number);
    weir_buf_printf(&dialogue->out, "RTSP/1.0 501 Not Implemented\r\nCSeq: %lld\r\n\r\n",
                    (long long)rtsp_text_number(number, UINT32_MAX));
    return rtsp_dialogue_flush(dialogue, err);
}

static weir_status take_message(struct rtsp_dialogue *dialogue, const char *bytes, size_t n,
                                struct rtsp_piece *out, size_t *out_used, struct weir_error *err)
{
    weir_status status = rtsp_message_take(bytes, n, &out->message, out_used);
    if (status != WEIR_OK) {
        return weir_error_set(err, status,
                              status == WEIR_ERR_LIMIT
                                  ? "the camera sends an answer of more than %d KiB"
                                  : "the camera sends what is not RTSP: is this its RTSP port? "
                                    "(An answer has at most %d KiB.)",
                              (int)(WEIR_RTSP_MESSAGE_MAX_BYTES >> 10));
    }
    if (*out_used == 0) {
        return WEIR_OK;
    }
    struct rtsp_text number;
    out->kind = RTSP_PIECE_SKIPPED;
    if (out->message.code == 0) {
        return refuse_request(dialogue, &out->message, err);
    }
    if (!rtsp_message_header(&out->message, "CSeq", 0, &number) ||
        rtsp_text_number(number, UINT32_MAX) == dialogue->n_sent) {
        out->kind = RTSP_PIECE_ANSWER;
    }
    return WEIR_OK;
}

weir_status rtsp_dialogue_take(struct rtsp_dialogue *dialogue, struct rtsp_piece *out,
                               struct weir_error *err)
{
    const uint8_t *bytes = dialogue->in + dialogue->begin;
    size_t n = dialogue->end - dialogue->begin, n_used = 0;
    *out = (struct rtsp_piece){.kind = RTSP_PIECE_NONE};
    if (n == 0) {
        return WEIR_OK;
    }
    if (bytes[0] != '$') {
        WEIR_TRY(take_message(dialogue, (const char *)bytes, n, out, &n_used, err));
    } else if (n >= CHANNEL_HEAD_BYTES) {
        size_t n_packet = (size_t)bytes[2] << 8 | bytes[3];
        if (n >= CHANNEL_HEAD_BYTES + n_packet) {
            n_used = CHANNEL_HEAD_BYTES + n_packet;
            out->kind = RTSP_PIECE_PACKET;
            out->channel = bytes[1];
            out->bytes = bytes + CHANNEL_HEAD_BYTES;
            out->n = n_packet;
        }
    }
    dialogue->begin += n_used;
    return WEIR_OK;
}
