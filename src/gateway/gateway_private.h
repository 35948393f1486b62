/**
 * Inside of the gateway: what its one thread owns, and what others leave for it.
 *
 *   gateway.c   the thread: what comes in, epoll, time
 *   live.c      deployments and replicas as they live on from one table to the next
 *   dispatch.c  a call: choice, holding, trying again, its end
 *   upstream.c  connections to replicas
 *   mirror.c    copies for the mirrored version, and whether the answers agree
 *
 * Everything of a live object belongs to the gateway's thread, but for its figures.
 */
#ifndef WEIR_GATEWAY_GATEWAY_PRIVATE_H
#define WEIR_GATEWAY_GATEWAY_PRIVATE_H

#include "gateway/call.h"
#include "gateway/figures_private.h"
#include "gateway/gateway.h"

#include <netinet/in.h>
#include <sys/socket.h>

#define CONNECTIONS_PER_REPLICA_MAX 256
#define CONNECT_MAX_MS              2000
#define IDLE_KEEP_MS                10000 /* well below the 30 s after which a replica closes */
#define SWEEP_MS                    100
#define TRIES_MAX                   8
#define TABLE_AGE_MS                500 /* a table may be so much older than what is told of a deployment */
#define BACKOFF_FIRST_MS            100
#define BACKOFF_MAX_MS              5000
#define START_AGAIN_MS              1000
#define ANSWER_MAX_BYTES            ((size_t)256 << 20)

struct live_project {
    char *name;
    int32_t n_calls;
    struct live_project *next;
};

/** A replica, by its id and address, for as long as a table has it or a call is with it. */
struct live_replica {
    int n_refs;
    char *id;
    struct sockaddr_storage address;
    socklen_t address_len; /* 0: none */
    int32_t n_outstanding; /* its connections that carry a call */
    struct upstream *idle; /* the last used first */
    int n_idle;
    int64_t backoff_until_ms, backoff_ms;
    bool is_gone;   /* no table has it: connections close when they are done */
    bool is_silent; /* what is under way there is ended */
};

struct live_version {
    int64_t version;
    struct figures *figures;
};

/** A deployment, by name, for as long as a table has it or a call goes to it. */
struct live_deployment {
    int n_refs;
    char *name;
    const struct weir_gateway_deployment *row; /* in `table`; NULL: the deployment is gone */
    struct weir_gateway_table *table;
    struct live_version versions[WEIR_GATEWAY_VERSIONS_MAX]; /* as the row's */
    struct live_replica **replicas;                          /* as the row's */
    struct figures *figures;                                 /* version 0 */
    struct live_project *project;
    int32_t n_calls, n_mirrors;
    struct gateway_call *held_first, *held_last;
    int64_t start_again_ms;
};

/** A table on its way to the thread, with its addresses resolved: replicas of all deployments in
 *  the table's order. */
struct published {
    struct weir_gateway_table *table;

    struct live_address {
        struct sockaddr_storage address;
        socklen_t len;
    } * addresses;

    size_t n_addresses;
};

struct mirrors;
struct callers;
struct grpc_front;

struct weir_gateway {
    struct weir_gateway_config config;
    struct figures_registry registry;
    struct callers *callers;
    struct grpc_front *grpc; /* NULL: not started */

    pthread_mutex_t lock;             /* guards these: */
    struct weir_gateway_table *table; /* what readers get */
    struct published *published;      /* what the thread has not taken yet */
    struct gateway_call *in_first, *in_last;
    bool is_stopping;

    int wake_fd, epoll_fd;
    pthread_t thread;
    bool is_started;

    /* The thread's. */
    struct live_deployment **deployments; /* ordered by name */
    size_t n_deployments;
    struct live_project *projects;
    struct gateway_call *newest, *oldest;
    size_t n_calls;
    uint64_t ticket;
    int64_t now_ms, next_sweep_ms;
    struct upstream *closing; /* closed in this turn of the loop: freed at its end */
    int n_idle;
    char read_buffer[1 << 17];
    struct mirrors *mirrors;
};

/* live.c */
struct published *published_make(struct weir_gateway_table *table);
void published_free(struct published *published);
/** Let what lives follow the table; takes `published`. */
void live_follow(struct weir_gateway *gateway, struct published *published);
struct live_deployment *live_find(const struct weir_gateway *gateway, const char *name);
struct live_deployment *live_deployment_unref(struct live_deployment *deployment);
struct live_replica *live_replica_unref(struct live_replica *replica);
void live_end(struct weir_gateway *gateway);

/* dispatch.c */
void dispatch_begin(struct weir_gateway *gateway, struct gateway_call *call);
/** Send a copy of a request to the deployment's mirrored version now, or end it. */
void dispatch_copy(struct weir_gateway *gateway, struct gateway_call *copy,
                   struct live_deployment *to, int64_t due_ms);
/** Calls that wait may go now. */
void dispatch_held(struct weir_gateway *gateway, struct live_deployment *deployment);
/** The call has its answer in `reply`, and takes its body. */
void dispatch_answer(struct weir_gateway *gateway, struct gateway_call *call, struct reply *reply);
/** The call ends without one. */
void dispatch_fail(struct weir_gateway *gateway, struct gateway_call *call, weir_status status,
                   const char *fmt, ...) WEIR_PRINTF(4, 5);
/** End what is due, or has lost its client. @return When to look again. */
int64_t dispatch_sweep(struct weir_gateway *gateway);
void dispatch_fail_all(struct weir_gateway *gateway);
/** The replica was not reached, or it closed before it took a byte: try another one. */
void dispatch_again(struct weir_gateway *gateway, struct gateway_call *call, const char *why);
/** The replica that it may go to now, and its version, which is counted; NULL: none, and nothing has
 *  changed. */
struct live_replica *dispatch_choose(struct weir_gateway *gateway, struct gateway_call *call);

/* upstream.c */
void upstream_send(struct weir_gateway *gateway, struct gateway_call *call,
                   struct live_replica *replica);
void upstream_on_event(struct weir_gateway *gateway, struct upstream *upstream, uint32_t events);
/** Take the call off its connection, which is closed: the reader at the other end notices. */
void upstream_abandon(struct weir_gateway *gateway, struct gateway_call *call);
/** Give it to another replica if this one does not even take the connection. */
void upstream_check(struct weir_gateway *gateway, struct gateway_call *call);
/** Close connections that nobody has used for a while; all of them if the replica is gone. */
void upstream_trim(struct weir_gateway *gateway, struct live_replica *replica);
void upstream_free_closed(struct weir_gateway *gateway);

/* mirror.c */
struct mirrors *mirrors_start(struct weir_error *err);
void mirrors_stop(struct mirrors *mirrors);
/** The call's request is sent: send the copy, if its deployment has a mirror and there is room. */
void mirror_begin(struct weir_gateway *gateway, struct gateway_call *call);
/** The call is about to end, with an answer or without. */
void mirror_answer(struct weir_gateway *gateway, struct gateway_call *call);

#endif
