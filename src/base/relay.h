/**
 * Relay: bytes both ways between two sockets, in bounded memory, with no idea of what they say.
 *
 * Whoever has it calls weir_relay_pump when either socket has an event (edge-triggered epoll suits it)
 * and now and then for the time, and again where has_more says so; it never blocks. A side that is closed for writing by its peer is
 * closed for writing at the other side, once what came before was delivered. Bytes that are not taken
 * for stuck_ms end the relay, and so do WEIR_RELAY_QUIET_MS in which nothing moves.
 *
 * One thread. Neither socket is closed here.
 */
#ifndef WEIR_BASE_RELAY_H
#define WEIR_BASE_RELAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WEIR_RELAY_BYTES    ((size_t)32 << 10) /**< Under way in one direction, at most. */
#define WEIR_RELAY_STUCK_MS ((int64_t)60 * 1000)
#define WEIR_RELAY_QUIET_MS ((int64_t)15 * 60 * 1000)

/** Looks at bytes as they come from fds[from], before they go on. False: they must not. */
typedef bool (*weir_relay_see_fn)(void *context, int from, const void *bytes, size_t len);

/** From one of the two to the other. */
struct weir_relay_way {
    char *bytes; /**< NULL: nothing is under way. */
    size_t begin, end;
    bool is_read_out; /**< The reader's end came. */
    bool is_shut;     /**< And the other side was told. */
    int64_t since_ms; /**< Since when what is under way waits. */
    uint64_t n_bytes; /**< Delivered. */
};

struct weir_relay {
    int fds[2];
    struct weir_relay_way ways[2]; /**< ways[i]: from fds[i] to the other. */
    int64_t moved_ms;
    /** It let others have their turn: it is to be pumped again, though no event may come. */
    bool has_more;
    int64_t stuck_ms;      /**< WEIR_RELAY_STUCK_MS, unless it is set after init. */
    weir_relay_see_fn see; /**< NULL, unless it is set after init; not for bytes of a preload. */
    void *context;
};

/** Both descriptors are non-blocking sockets, borrowed. */
void weir_relay_init(struct weir_relay *relay, int first_fd, int second_fd, int64_t now_ms);
void weir_relay_fini(struct weir_relay *relay);

/** Bytes that came from fds[from] before the relay did. False: more than WEIR_RELAY_BYTES. */
bool weir_relay_preload(struct weir_relay *relay, int from, const void *bytes, size_t len);

/** Move what can be moved. False: the relay is over, for whatever reason. */
bool weir_relay_pump(struct weir_relay *relay, int64_t now_ms);

#endif
