/** Inside of the hub: what its records (hub.c) and its thread (hub_thread.c) share. */
#ifndef WEIR_VISIT_HUB_PRIVATE_H
#define WEIR_VISIT_HUB_PRIVATE_H

#include "visit/hub.h"

#include "base/relay.h"
#include "visit/frame.h"

#include <pthread.h>

enum side { SIDE_PERSON, SIDE_NODE };

/** A side that has come. */
struct end {
    struct weir_http_upgraded *upgraded; /* NULL: it has not */
    int fd;
    char *extra;
    size_t extra_len;
};

struct stream {
    struct place *place; /* whose it is */
    int64_t number, serial;
    char secret[WEIR_VISIT_SECRET_BYTES];
    bool is_arriving; /* the node was let in */
    int64_t due_ms;   /* both are there by then */
    struct end ends[2];
    bool is_over;
    /* The rest is the thread's own. */
    bool is_relaying;
    struct weir_relay relay;
    struct weir_frames frames[2];
    char payload[WEIR_FRAME_TEXT_BYTES];
    struct stream *next;
};

/** A visit. */
struct place {
    struct weir_visit visit; /* its texts lie in the arena */
    json_t *order;
    struct weir_arena arena;
    char id[WEIR_VISIT_ID_BYTES];
    int64_t begun_ms; /* monotonic */
    int64_t look_ms;  /* when it is asked next whether they may; the thread's own */
    bool is_barred;
    int64_t n_made; /* streams, ever */
    struct stream *streams;
    int n_streams;
    bool is_over;
    bool has_exit;
    int exit_status, exit_signal;
    char failed[WEIR_FRAME_TEXT_BYTES + 1];
    struct place *next;
};

struct weir_visits {
    const struct weir_visits_ops *ops;
    void *context;
    pthread_t thread;
    bool is_started;
    int epoll_fd, wake_fd;
    pthread_mutex_t lock; /* of all below, but what is the thread's own */
    struct place *places;
    int n_places, n_streams;
    int64_t serial;
    bool is_stopping;
    bool has_more; /* the thread's own: a relay is to be pumped again */
};

/** The thread, until visits->is_stopping. */
void *hub_main(void *visits);

#endif
