/**
 * Peers: what each address holds of a server, so that none takes what is for all. What servers of any
 * protocol share: the table of addresses, the bound on bytes that are held, and the least rate of a
 * sender.
 *
 * An address is an IPv4 address, or an IPv6 /64, which one host has as a whole. An entry lives as long
 * as it is used. A domain's own entry begins with a struct weir_peer.
 *
 * Threads: none of its own; the caller has one thread, or a lock.
 */
#ifndef WEIR_BASE_PEERS_H
#define WEIR_BASE_PEERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#define WEIR_PEER_KEY_BYTES 8
#define WEIR_PEER_BUCKETS   1024

/** Bytes that are held for somebody, or for all. */
struct weir_held {
    uint64_t n_bytes;
};

struct weir_peer {
    unsigned char key[WEIR_PEER_KEY_BYTES];
    size_t n_uses; /**< Its connections, and what else needs the entry. */
    struct weir_held held;
    struct weir_peer *next; /* in its bucket */
};

struct weir_peers {
    struct weir_peer *buckets[WEIR_PEER_BUCKETS];
    struct weir_held held; /**< Of all. */
};

/** Equal for what counts as one address. NULL, and what is neither IPv4 nor IPv6, is all zeros. */
void weir_peer_key(const struct sockaddr *address, unsigned char out[WEIR_PEER_KEY_BYTES]);

/** NULL: it is not used. */
struct weir_peer *weir_peers_find(const struct weir_peers *peers, const struct sockaddr *address);

/** One use more. A new entry has `bytes` bytes, which are zero. */
struct weir_peer *weir_peers_enter(struct weir_peers *peers, const struct sockaddr *address,
                                   size_t bytes);

/** One less; with the last one the entry is freed. */
void weir_peers_leave(struct weir_peers *peers, struct weir_peer *peer);

/** Free what is left. */
void weir_peers_fini(struct weir_peers *peers);

/**
 * Hold n bytes more, of at most `most` for all and half of that for one peer (NULL: not known).
 * @return false: there is no room; nothing was taken.
 */
bool weir_held_take(struct weir_held *all, struct weir_held *peer, uint64_t n, uint64_t most);
void weir_held_give(struct weir_held *all, struct weir_held *peer, uint64_t n);

/** Who is to send, or to take, and since when: a window of time, and the bytes in it. */
struct weir_pace {
    int64_t since_ms;
    uint64_t n_bytes;
};

/**
 * Is it fast enough? Until the window is over it is. Then it must have moved so many bytes in a second,
 * and a new window begins: what came before does not count any more.
 */
bool weir_pace_holds(struct weir_pace *pace, int64_t now_ms, int64_t window_ms,
                     uint64_t bytes_per_s);

#endif
