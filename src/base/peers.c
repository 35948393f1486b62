#include "base/peers.h"

#include "base/arena.h"
#include "base/macros.h"

#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

void weir_peer_key(const struct sockaddr *address, unsigned char out[WEIR_PEER_KEY_BYTES])
{
    static const unsigned char mapped[12] = {[10] = 0xff, [11] = 0xff};
    memset(out, 0, WEIR_PEER_KEY_BYTES);
    if (address == NULL) {
        return;
    }
    if (address->sa_family == AF_INET) {
        memcpy(out, &((const struct sockaddr_in *)address)->sin_addr, 4);
    } else if (address->sa_family == AF_INET6) {
        const unsigned char *bytes =
            (const unsigned char *)&((const struct sockaddr_in6 *)address)->sin6_addr;
        bool is_v4 = memcmp(bytes, mapped, sizeof mapped) == 0;
        memcpy(out, is_v4 ? bytes + sizeof mapped : bytes, is_v4 ? 4 : WEIR_PEER_KEY_BYTES);
    }
}

static size_t bucket_of(const unsigned char key[WEIR_PEER_KEY_BYTES])
{
    size_t hash = 0;
    for (size_t i = 0; i < WEIR_PEER_KEY_BYTES; i++) {
        hash = hash * 31 + key[i];
    }
    return hash % WEIR_PEER_BUCKETS;
}

struct weir_peer *weir_peers_find(const struct weir_peers *peers, const struct sockaddr *address)
{
    unsigned char key[WEIR_PEER_KEY_BYTES];
    weir_peer_key(address, key);
    struct weir_peer *peer = peers->buckets[bucket_of(key)];
    while (peer != NULL && memcmp(peer->key, key, sizeof key) != 0) {
        peer = peer->next;
    }
    return peer;
}

struct weir_peer *weir_peers_enter(struct weir_peers *peers, const struct sockaddr *address,
                                   size_t bytes)
{
    struct weir_peer *peer = weir_peers_find(peers, address);
    if (peer == NULL) {
        peer = weir_xalloc(bytes);
        memset(peer, 0, bytes);
        weir_peer_key(address, peer->key);
        struct weir_peer **bucket = &peers->buckets[bucket_of(peer->key)];
        peer->next = *bucket;
        *bucket = peer;
    }
    peer->n_uses++;
    return peer;
}

void weir_peers_leave(struct weir_peers *peers, struct weir_peer *peer)
{
    if (--peer->n_uses > 0) {
        return;
    }
    struct weir_peer **slot = &peers->buckets[bucket_of(peer->key)];
    while (*slot != peer) {
        slot = &(*slot)->next;
    }
    *slot = peer->next;
    free(peer);
}

void weir_peers_fini(struct weir_peers *peers)
{
    for (size_t i = 0; i < WEIR_PEER_BUCKETS; i++) {
        while (peers->buckets[i] != NULL) {
            struct weir_peer *peer = peers->buckets[i];
            peers->buckets[i] = peer->next;
            free(peer);
        }
    }
}

static bool has_room(const struct weir_held *held, uint64_t n, uint64_t most)
{
    return n <= most - WEIR_MIN(held->n_bytes, most);
}

bool weir_held_take(struct weir_held *all, struct weir_held *peer, uint64_t n, uint64_t most)
{
    if (!has_room(all, n, most) || (peer != NULL && !has_room(peer, n, most / 2))) {
        return false;
    }
    all->n_bytes += n;
    if (peer != NULL) {
        peer->n_bytes += n;
    }
    return true;
}

void weir_held_give(struct weir_held *all, struct weir_held *peer, uint64_t n)
{
    all->n_bytes -= n;
    if (peer != NULL) {
        peer->n_bytes -= n;
    }
}

bool weir_pace_holds(struct weir_pace *pace, int64_t now_ms, int64_t window_ms,
                     uint64_t bytes_per_s)
{
    int64_t age_ms = now_ms - pace->since_ms;
    if (age_ms <= window_ms) {
        return true;
    }
    if (pace->n_bytes < (uint64_t)age_ms * bytes_per_s / 1000) {
        return false;
    }
    *pace = (struct weir_pace){.since_ms = now_ms};
    return true;
}
