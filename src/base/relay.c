#include "base/relay.h"

#include "base/arena.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define ROUNDS_MAX 16 /* of one call, so that one relay does not hold up the others */

void weir_relay_init(struct weir_relay *relay, int first_fd, int second_fd, int64_t now_ms)
{
    *relay = (struct weir_relay){
        .fds = {first_fd, second_fd}, .moved_ms = now_ms, .stuck_ms = WEIR_RELAY_STUCK_MS};
}

void weir_relay_fini(struct weir_relay *relay)
{
    for (int i = 0; i < 2; i++) {
        free(relay->ways[i].bytes);
        relay->ways[i].bytes = NULL;
    }
}

bool weir_relay_preload(struct weir_relay *relay, int from, const void *bytes, size_t len)
{
    struct weir_relay_way *way = &relay->ways[from];
    if (len > WEIR_RELAY_BYTES - way->end) {
        return false;
    }
    if (len > 0 && way->bytes == NULL) {
        way->bytes = weir_xalloc(WEIR_RELAY_BYTES);
    }
    if (len > 0) {
        memcpy(way->bytes + way->end, bytes, len);
        way->end += len;
        way->since_ms = relay->moved_ms;
    }
    return true;
}

static bool is_later(void)
{
    return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
}

enum moved { MOVED_NONE, MOVED_SOME, MOVED_BROKEN };

/* Memory is held while bytes are: thousands of quiet relays cost little. */
static enum moved take(struct weir_relay *relay, int from, int64_t now_ms)
{
    struct weir_relay_way *way = &relay->ways[from];
    if (way->is_read_out || way->end == WEIR_RELAY_BYTES) {
        return MOVED_NONE;
    }
    if (way->bytes == NULL) {
        way->bytes = weir_xalloc(WEIR_RELAY_BYTES);
    }
    ssize_t n = recv(relay->fds[from], way->bytes + way->end, WEIR_RELAY_BYTES - way->end, 0);
    if (n > 0 && relay->see != NULL &&
        !relay->see(relay->context, from, way->bytes + way->end, (size_t)n)) {
        return MOVED_BROKEN;
    }
    if (n > 0) {
        way->since_ms = way->end == way->begin ? now_ms : way->since_ms;
        way->end += (size_t)n;
        return MOVED_SOME;
    }
    if (n < 0 && !is_later()) {
        return MOVED_BROKEN;
    }
    way->is_read_out = n == 0;
    return n == 0 ? MOVED_SOME : MOVED_NONE;
}

static enum moved give(struct weir_relay *relay, int from, int64_t now_ms)
{
    struct weir_relay_way *way = &relay->ways[from];
    int to_fd = relay->fds[1 - from];
    if (way->end == way->begin) {
        free(way->bytes);
        way->bytes = NULL;
        if (way->is_read_out && !way->is_shut) {
            way->is_shut = true;
            (void)shutdown(to_fd, SHUT_WR);
        }
        return MOVED_NONE;
    }
    ssize_t n = send(to_fd, way->bytes + way->begin, way->end - way->begin, MSG_NOSIGNAL);
    if (n < 0) {
        return is_later() ? MOVED_NONE : MOVED_BROKEN;
    }
    way->begin += (size_t)n;
    way->n_bytes += (uint64_t)n;
    way->since_ms = now_ms;
    if (way->begin == way->end) {
        way->begin = way->end = 0;
    }
    return MOVED_SOME;
}

bool weir_relay_pump(struct weir_relay *relay, int64_t now_ms)
{
    bool has_moved = true;
    relay->has_more = false;
    for (int round = 0; has_moved; round++) {
        has_moved = false;
        relay->has_more = relay->has_more || round == ROUNDS_MAX;
        for (int from = 0; from < 2; from++) {
            enum moved taken = round < ROUNDS_MAX ? take(relay, from, now_ms) : MOVED_NONE;
            enum moved given = give(relay, from, now_ms);
            if (taken == MOVED_BROKEN || given == MOVED_BROKEN) {
                return false;
            }
            has_moved = has_moved || taken == MOVED_SOME || given == MOVED_SOME;
        }
        relay->moved_ms = has_moved ? now_ms : relay->moved_ms;
    }
    for (int from = 0; from < 2; from++) {
        const struct weir_relay_way *way = &relay->ways[from];
        if (way->end > way->begin && now_ms - way->since_ms >= relay->stuck_ms) {
            return false;
        }
    }
    return !(relay->ways[0].is_shut && relay->ways[1].is_shut) &&
           now_ms - relay->moved_ms < WEIR_RELAY_QUIET_MS;
}
