#include "visit/line.h"

#include "http/tunnel.h"
#include "visit/visit.h"

#include <stdio.h>

weir_status weir_line_open(struct weir_line *line, struct weir_client *client, const char *path,
                           const char *secret, struct weir_error *err)
{
    char header[sizeof WEIR_VISIT_SECRET + WEIR_VISIT_SECRET_BYTES + 4];
    line->tunnel = NULL;
    line->is_over = false;
    line->begin = line->end = 0;
    line->box.begin = line->box.end = 0;
    line->frames = (struct weir_frames){
        .is_from_task = secret == NULL, .payload = line->payload, .size = sizeof line->payload - 1};
    (void)snprintf(header, sizeof header, WEIR_VISIT_SECRET ": %s", secret != NULL ? secret : "");
    return weir_client_upgrade(client, path, WEIR_VISIT_PROTOCOL, secret != NULL ? header : NULL,
                               &line->tunnel, err);
}

void weir_line_close(struct weir_line *line)
{
    weir_http_tunnel_close(line->tunnel);
    line->tunnel = NULL;
    line->is_over = true;
}

bool weir_line_flush(struct weir_line *line)
{
    struct weir_frame_box *box = &line->box;
    while (!line->is_over && box->begin < box->end) {
        ssize_t n =
            weir_http_tunnel_write(line->tunnel, box->bytes + box->begin, box->end - box->begin);
        if (n == 0) {
            break;
        }
        line->is_over = n < 0;
        weir_frame_sent(box, n > 0 ? (size_t)n : 0);
    }
    return !line->is_over;
}

bool weir_line_next(struct weir_line *line)
{
    while (!line->is_over) {
        size_t used = 0;
        bool is_whole = false;
        if (line->begin == line->end) {
            ssize_t n = weir_http_tunnel_read(line->tunnel, line->bytes, sizeof line->bytes);
            line->begin = 0;
            line->end = n > 0 ? (size_t)n : 0;
            line->is_over = n < 0;
            if (n <= 0) {
                return false;
            }
        }
        if (weir_frames_take(&line->frames, line->bytes + line->begin, line->end - line->begin,
                             &used, &is_whole) != WEIR_OK) {
            line->is_over = true;
            return false;
        }
        line->begin += used;
        if (is_whole) {
            line->payload[line->frames.len] = '\0';
            return true;
        }
    }
    return false;
}

struct pollfd weir_line_poll(const struct weir_line *line, bool is_reading)
{
    bool is_sending = line->box.begin < line->box.end;
    return (struct pollfd){
        .fd = line->tunnel != NULL && !line->is_over ? weir_http_tunnel_fd(line->tunnel) : -1,
        .events = (short)((is_reading ? POLLIN : 0) | (is_sending ? POLLOUT : 0))};
}
