/* Peers: what each address holds of the server, so that none takes what is for all. An address is
 * an IPv4 address or an IPv6 /64, which one host has as a whole. */
#include "http/server_private.h"

#include <string.h>
#include <sys/socket.h>

/* An address that holds less than this part of all connections is never cut for others. */
#define FAIR_PART 32
#define FAIR_MIN  16

static void key_of(const struct sockaddr *address, unsigned char key[PEER_KEY_BYTES])
{
    static const unsigned char mapped[12] = {[10] = 0xff, [11] = 0xff};
    memset(key, 0, PEER_KEY_BYTES);
    if (address == NULL) {
        return;
    }
    if (address->sa_family == AF_INET) {
        memcpy(key, &((const struct sockaddr_in *)address)->sin_addr, 4);
    } else if (address->sa_family == AF_INET6) {
        const unsigned char *bytes =
            (const unsigned char *)&((const struct sockaddr_in6 *)address)->sin6_addr;
        bool is_v4 = memcmp(bytes, mapped, sizeof mapped) == 0;
        memcpy(key, is_v4 ? bytes + sizeof mapped : bytes, is_v4 ? 4 : PEER_KEY_BYTES);
    }
}

/* Where the peer of this address hangs, or would. */
static struct http_peer **slot_of(struct weir_http_server *server, const struct sockaddr *address,
                                  unsigned char key[PEER_KEY_BYTES])
{
    key_of(address, key);
    size_t hash = 0;
    for (size_t i = 0; i < PEER_KEY_BYTES; i++) {
        hash = hash * 31 + key[i];
    }
    struct http_peer **slot = &server->peers[hash % PEER_BUCKETS];
    while (*slot != NULL && memcmp((*slot)->key, key, PEER_KEY_BYTES) != 0) {
        slot = &(*slot)->next;
    }
    return slot;
}

/* Close the oldest connection of this address on which no request is in progress. */
static bool cut_oldest_idle(struct http_peer *peer)
{
    for (struct http_watch *watch = peer->oldest; watch != NULL; watch = watch->newer) {
        if (watch->is_reading && !watch->is_in_body && !watch->is_cut) {
            watch_cut(watch);
            return true;
        }
    }
    return false;
}

bool peer_enter(struct weir_http_server *server, const struct sockaddr *address)
{
    unsigned char key[PEER_KEY_BYTES];
    struct http_peer **slot = slot_of(server, address, key), *peer = *slot;
    size_t most = (size_t)server->config.max_connections_per_address;
    if (peer != NULL && peer->n_connections - peer->n_cut >= most && !cut_oldest_idle(peer)) {
        return false;
    }
    if (peer == NULL) {
        peer = *slot = weir_xalloc(sizeof *peer);
        memcpy(peer->key, key, sizeof peer->key);
    }
    peer->n_connections++;
    return true;
}

void peer_leave(struct weir_http_server *server, const struct sockaddr *address)
{
    unsigned char key[PEER_KEY_BYTES];
    struct http_peer **slot = slot_of(server, address, key), *peer = *slot;
    if (peer != NULL && --peer->n_connections == 0) {
        *slot = peer->next;
        free(peer);
    }
}

void peer_add_watch(struct weir_http_server *server, const struct sockaddr *address,
                    struct http_watch *watch)
{
    unsigned char key[PEER_KEY_BYTES];
    struct http_peer *peer = *slot_of(server, address, key);
    watch->peer = peer;
    if (peer == NULL) {
        return;
    }
    watch->older = peer->newest;
    if (peer->newest != NULL) {
        peer->newest->newer = watch;
    } else {
        peer->oldest = watch;
    }
    peer->newest = watch;
}

void peer_remove_watch(struct http_watch *watch)
{
    struct http_peer *peer = watch->peer;
    if (peer == NULL) {
        return;
    }
    *(watch->older != NULL ? &watch->older->newer : &peer->oldest) = watch->newer;
    *(watch->newer != NULL ? &watch->newer->older : &peer->newest) = watch->older;
    peer->n_cut -= watch->is_cut;
}

void watch_cut(struct http_watch *watch)
{
    watch->is_cut = true;
    if (watch->peer != NULL) {
        watch->peer->n_cut++;
    }
    (void)shutdown(watch->fd, SHUT_RDWR); /* its I/O thread sees the end and closes */
}

void peer_make_room(struct weir_http_server *server)
{
    size_t fair = (size_t)server->config.max_connections / FAIR_PART;
    struct http_peer *largest = NULL;
    for (size_t i = 0; i < PEER_BUCKETS; i++) {
        for (struct http_peer *peer = server->peers[i]; peer != NULL; peer = peer->next) {
            size_t n = peer->n_connections - peer->n_cut;
            if (n > WEIR_MAX(fair, (size_t)FAIR_MIN) &&
                (largest == NULL || n > largest->n_connections - largest->n_cut)) {
                largest = peer;
            }
        }
    }
    if (largest != NULL) {
        (void)cut_oldest_idle(largest);
    }
}

void peers_free(struct weir_http_server *server)
{
    for (size_t i = 0; i < PEER_BUCKETS; i++) {
        while (server->peers[i] != NULL) {
            struct http_peer *peer = server->peers[i];
            server->peers[i] = peer->next;
            free(peer);
        }
    }
}

/* ---- bytes of bodies ------------------------------------------------------------------------- */

bool body_reserve(struct http_exchange *x, uint64_t n_bytes)
{
    struct weir_http_server *server = x->server;
    struct http_peer *peer = x->watch != NULL ? x->watch->peer : NULL;
    uint64_t most = server->config.max_bodies_bytes;
    pthread_mutex_lock(&server->lock);
    bool has_room = n_bytes <= most - WEIR_MIN(server->n_body_bytes, most) &&
                    (peer == NULL || n_bytes <= most / 2 - WEIR_MIN(peer->n_body_bytes, most / 2));
    if (has_room) {
        server->n_body_bytes += n_bytes;
        x->n_reserved_bytes += n_bytes;
        if (peer != NULL) {
            peer->n_body_bytes += n_bytes;
        }
    }
    pthread_mutex_unlock(&server->lock);
    return has_room;
}

void body_release(struct http_exchange *x)
{
    pthread_mutex_lock(&x->server->lock);
    x->server->n_body_bytes -= x->n_reserved_bytes;
    if (x->watch != NULL && x->watch->peer != NULL) {
        x->watch->peer->n_body_bytes -= x->n_reserved_bytes;
    }
    x->n_reserved_bytes = 0;
    pthread_mutex_unlock(&x->server->lock);
}
