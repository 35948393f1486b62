/* What each address holds of the server (base/peers.h), and who gives way when it is full. */
#include "http/server_private.h"

#include <sys/socket.h>

/* An address that holds less than this part of all connections is never cut for others. */
#define FAIR_PART 32
#define FAIR_MIN  16

static struct http_peer *peer_of(const struct weir_http_server *server,
                                 const struct sockaddr *address)
{
    return (struct http_peer *)weir_peers_find(&server->peers, address);
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

static size_t n_open(const struct http_peer *peer)
{
    return peer->peer.n_uses - peer->n_cut;
}

bool peer_enter(struct weir_http_server *server, const struct sockaddr *address)
{
    struct http_peer *peer = peer_of(server, address);
    size_t most = (size_t)server->config.max_connections_per_address;
    if (peer != NULL && n_open(peer) >= most && !cut_oldest_idle(peer)) {
        return false;
    }
    (void)weir_peers_enter(&server->peers, address, sizeof *peer);
    return true;
}

void peer_leave(struct weir_http_server *server, const struct sockaddr *address)
{
    struct http_peer *peer = peer_of(server, address);
    if (peer != NULL) {
        weir_peers_leave(&server->peers, &peer->peer);
    }
}

void peer_add_watch(struct weir_http_server *server, const struct sockaddr *address,
                    struct http_watch *watch)
{
    struct http_peer *peer = peer_of(server, address);
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

static struct http_peer *find_largest(struct weir_http_server *server)
{
    size_t fair = WEIR_MAX((size_t)server->config.max_connections / FAIR_PART, (size_t)FAIR_MIN);
    struct http_peer *largest = NULL;
    for (size_t i = 0; i < WEIR_PEER_BUCKETS; i++) {
        for (struct weir_peer *at = server->peers.buckets[i]; at != NULL; at = at->next) {
            struct http_peer *peer = (struct http_peer *)at;
            if (n_open(peer) > (largest != NULL ? n_open(largest) : fair)) {
                largest = peer;
            }
        }
    }
    return largest;
}

/* Whoever has not said who they are, and is heard of for the longest time: headers that do not end, a body
 * that nobody asked for, silence. Who is known keeps their place. */
static void cut_oldest_stranger(struct weir_http_server *server)
{
    struct http_watch *oldest = NULL;
    for (struct http_watch *watch = server->watches; watch != NULL; watch = watch->next) {
        if (watch->is_reading && !watch->is_known && !watch->is_cut &&
            (oldest == NULL || watch->pace.since_ms <= oldest->pace.since_ms)) {
            oldest = watch;
        }
    }
    if (oldest != NULL) {
        watch_cut(oldest);
    }
}

void peer_make_room(struct weir_http_server *server)
{
    struct http_peer *largest = find_largest(server);
    if (largest == NULL || !cut_oldest_idle(largest)) {
        cut_oldest_stranger(server);
    }
}

void weir_http_request_is_known(const struct weir_http_request *request)
{
    struct http_exchange *x =
        WEIR_CONTAINER_OF((struct weir_http_request *)request, struct http_exchange, request);
    if (x->watch != NULL && !x->watch->is_known) {
        pthread_mutex_lock(&x->server->lock);
        x->watch->is_known = true;
        pthread_mutex_unlock(&x->server->lock);
    }
}

/* ---- bytes of bodies ------------------------------------------------------------------------- */

static struct weir_held *held_of(struct http_exchange *x)
{
    return x->watch != NULL && x->watch->peer != NULL ? &x->watch->peer->peer.held : NULL;
}

bool body_reserve(struct http_exchange *x, uint64_t n_bytes)
{
    struct weir_http_server *server = x->server;
    pthread_mutex_lock(&server->lock);
    bool has_room =
        weir_held_take(&server->peers.held, held_of(x), n_bytes, server->config.max_bodies_bytes);
    x->n_reserved_bytes += has_room ? n_bytes : 0;
    pthread_mutex_unlock(&server->lock);
    return has_room;
}

void body_release(struct http_exchange *x)
{
    pthread_mutex_lock(&x->server->lock);
    weir_held_give(&x->server->peers.held, held_of(x), x->n_reserved_bytes);
    x->n_reserved_bytes = 0;
    pthread_mutex_unlock(&x->server->lock);
}
