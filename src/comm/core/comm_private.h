/**
 * Inside a communicator: what comm.c, queue.c and ps.c share with the transports.
 *
 * One operation at a time uses the transport: whoever has the "turn" (comm_execution_lock, given back by
 * comm_execution_unlock) is alone with it, be it a caller's thread or the progress thread. Posted
 * operations go first. A transport therefore needs no locks of its own.
 */
#ifndef WEIR_COMM_COMM_PRIVATE_H
#define WEIR_COMM_COMM_PRIVATE_H

#include "comm/core/plan.h"
#include "comm/ps/ps_private.h"
#include "comm/rendezvous/rendezvous.h"

#include <pthread.h>
#include <stdatomic.h>

enum { COMM_DEFAULT_TIMEOUT_MS = 60000 };

/** Who was woken this late at the end of a transfer was late by the scheduler, not by the pretended
 *  link: the link went on meanwhile. */
#define COMM_LATE_NS 500000

struct comm_transport {
    const char *name;

    /** Build, with the rendezvous still open. On failure everything is undone by `close`. */
    weir_status (*open)(struct weir_comm *comm, struct rendezvous *rdv, struct weir_error *err);

    /** Leave; NULL state is fine. */
    void (*close)(struct weir_comm *comm);

    /** Make a running operation end at once. Any thread; the communicator is of no use after it. */
    void (*interrupt)(struct weir_comm *comm);

    /* The collectives. On failure they have called comm_fail and return what it returned. */
    weir_status (*alloc)(struct weir_comm *comm, size_t bytes, void **out);
    weir_status (*allreduce)(struct weir_comm *comm, void *buf, size_t n_elems,
                             enum weir_comm_type type);
    weir_status (*reduce_scatter)(struct weir_comm *comm, void *buf, size_t n_elems,
                                  enum weir_comm_type type);
    weir_status (*allgather)(struct weir_comm *comm, void *buf, size_t n_elems,
                             enum weir_comm_type type);
    weir_status (*broadcast)(struct weir_comm *comm, void *buf, size_t bytes, int root);
    weir_status (*barrier)(struct weir_comm *comm);

    /** Every worker's part of memory that `alloc` gave, as this process sees it, by rank. Waits for
     *  nobody. @return false: it is not such memory. NULL: workers do not see each other's. */
    bool (*see)(const struct weir_comm *comm, const void *buf, size_t bytes, void **out_parts);

    const struct ps_transport *ps; /**< Parameter servers (ps_private.h). */

    /** Which other ranks are known to be dead; and, where there is such a thing, a descriptor that
     *  turns readable when a rank dies: the caller's, to close; else -1. NULL: nothing is known. */
    void (*watch)(struct weir_comm *comm, bool out_is_dead[], int out_fds[]);

    /** A descriptor that turns readable when `progress` should be called while idle; or -1. */
    int (*event_fd)(struct weir_comm *comm);
    void (*progress)(struct weir_comm *comm);
};

extern const struct comm_transport comm_shm_transport;
extern const struct comm_transport comm_ucx_transport;
extern const struct comm_transport comm_tcp_transport;
extern const struct comm_transport comm_hier_transport;

/** An all-reduce of buf; or, with work.gradients, a shared step of a range. */
struct queued_op {
    float *buf;
    size_t n_elems;
    struct weir_ps_work work;
};

struct weir_comm {
    int rank, size, n_workers;
    uint64_t timeout_ns;
    const struct comm_transport *transport;
    void *state;                     /**< The transport's. */
    const struct ucx_fabric *fabric; /**< What carries messages, where there are any. */
    const char *ucx_kind;            /**< "rc", "dc": UCX is to use nothing else; else NULL. */
    int n_hosts, host_of[WEIR_COMM_MAX_RANKS]; /**< The first rank on each rank's host. */
    struct comm_plan plan, first_plan;         /**< Of all-reduces by messages: now; as created. */
    enum comm_wire wire;
    bool
        is_refused_by_all; /**< `open` failed on all ranks and all know it: another may be tried. */

    pthread_mutex_t lock; /**< Guards the fields down to `progress_thread`. */
    pthread_cond_t changed;
    bool is_busy; /**< Somebody has the turn. */
    bool is_stopping;
    size_t i_first, n_queued; /**< Ring; the first stays in it while it is being carried out. */
    struct queued_op queue[WEIR_COMM_MAX_QUEUED];
    int wake_fd; /**< eventfd that wakes the progress thread. */
    bool has_thread;
    pthread_t progress_thread;

    atomic_int failed; /**< 0, or the status of the first failure. */
    pthread_mutex_t failure_lock;
    int failed_rank;
    struct weir_error failure;

    struct comm_elastic *elastic; /**< elastic.c's; NULL: the group cannot be made anew. */

    /* emulate.c's; used by whoever has the turn. */
    double link_bytes_s; /**< 0: none is pretended. */
    uint64_t link_free_ns;

    struct ps_worker *ps; /**< ps_worker.c's, from weir_ps_start on. */
    float *ps_room;       /**< Progress thread's: weights of a slice while they are renewed. */
    size_t ps_room_elems;
};

/**
 * Record the first failure (later ones are dropped) and return its status. Any thread.
 * @param rank  The rank at fault, or -1.
 */
weir_status comm_fail(struct weir_comm *comm, weir_status status, int rank, const char *fmt, ...)
    WEIR_PRINTF(4, 5);

/** Is the configuration one? What it says of size and rank is taken as it is. */
weir_status comm_check_config(const struct weir_comm_config *config,
                              struct weir_error *err) WEIR_MUST_CHECK;

/** A communicator without transport and thread, for weir_comm_destroy; NULL without memory. */
struct weir_comm *comm_allocate(const struct weir_comm_config *config);

/** A communicator of ranks that have met; rdv is NULL if there is but one. */
weir_status comm_build(const struct weir_comm_config *config, struct rendezvous *rdv,
                       struct weir_comm **out, struct weir_error *err) WEIR_MUST_CHECK;

/** elastic.c: the group that was created can be made anew; and the end of that. */
weir_status comm_elastic_begin(struct weir_comm *comm, const struct weir_comm_config *config,
                               struct weir_error *err) WEIR_MUST_CHECK;
void comm_elastic_end(struct weir_comm *comm);

/** emulate.c: come back when so many bytes have gone over the pretended link; at once without one.
 */
void comm_link_carry(struct weir_comm *comm, double bytes);
/** Of the busiest link, one way. */
double comm_allreduce_link_bytes(const struct weir_comm *comm, size_t n_elems,
                                 enum weir_comm_type type);

/** The status of the failure, or WEIR_OK. */
weir_status comm_failed(struct weir_comm *comm);

/** Now plus the communicator's timeout. */
uint64_t comm_deadline_ns(const struct weir_comm *comm);

/** queue.c: have the progress thread look at what there is to do. Any thread. */
void comm_wake(const struct weir_comm *comm);

/** Have the progress thread do this. Any thread. */
weir_status comm_post(struct weir_comm *comm, const struct queued_op *op) WEIR_MUST_CHECK;

/** ps.c: a posted shared step, in turn. A failure is the communicator's. */
void comm_ps_run(struct weir_comm *comm, const struct weir_ps_work *work);

/** Wait for the turn behind everything posted. On failure the turn was not taken. */
weir_status comm_execution_lock(struct weir_comm *comm) WEIR_MUST_CHECK;
void comm_execution_unlock(struct weir_comm *comm);

/** Start the progress thread; stop it, interrupting what it still has to do (queue.c). */
weir_status comm_queue_start(struct weir_comm *comm, struct weir_error *err) WEIR_MUST_CHECK;
void comm_queue_stop(struct weir_comm *comm);

#endif
