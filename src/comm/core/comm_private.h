/**
 * Inside a communicator: what comm.c, queue.c and ps/ share with the transports.
 *
 * One operation at a time uses the transport. The thread that runs it, a caller's or the progress
 * thread, holds the *execution lock* (comm_execution_lock, comm_execution_unlock). Queued
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

/** A thread that wakes up this late at the end of a transfer was delayed by the scheduler, not by
 *  the emulated link, which went on meanwhile. */
#define COMM_LATE_NS 500000

/** How a group moves its bytes: one of the tables below, chosen when the group is built. */
struct comm_transport {
    const char *name;

    /** Build, with the rendezvous still open. `close` undoes what a failed call has done. */
    weir_status (*open)(struct weir_comm *comm, struct rendezvous *rdv, struct weir_error *err);

    /** Leave; NULL state is accepted. */
    void (*close)(struct weir_comm *comm);

    /** End a running operation at once. Any thread; the communicator is of no use after it. */
    void (*interrupt)(struct weir_comm *comm);

    /* The collectives. On failure they have called comm_fail, and return what it returned. */
    weir_status (*alloc)(struct weir_comm *comm, size_t bytes, void **out);
    weir_status (*allreduce)(struct weir_comm *comm, void *buf, size_t n_elems,
                             enum weir_comm_type type);
    weir_status (*reduce_scatter)(struct weir_comm *comm, void *buf, size_t n_elems,
                                  enum weir_comm_type type);
    weir_status (*allgather)(struct weir_comm *comm, void *buf, size_t n_elems,
                             enum weir_comm_type type);
    weir_status (*broadcast)(struct weir_comm *comm, void *buf, size_t bytes, int root);
    weir_status (*barrier)(struct weir_comm *comm);

    /** Each worker's part of memory that `alloc` gave, as this process sees it, by rank. It does
     *  not wait. NULL: workers do not see each other's. @return false if it is not such memory. */
    bool (*see)(const struct weir_comm *comm, const void *buf, size_t bytes, void **out_parts);

    const struct ps_transport *ps; /**< Parameter servers (ps_private.h). */

    /** The other ranks that are known to be dead; and, where there is one, a descriptor that turns
     *  readable when a rank dies: the caller's, to close; else -1. NULL: nothing is known. */
    void (*watch)(struct weir_comm *comm, bool out_is_dead[], int out_fds[]);

    /** A descriptor that turns readable when `progress` should be called while idle; or -1. */
    int (*event_fd)(struct weir_comm *comm);
    void (*progress)(struct weir_comm *comm);
};

extern const struct comm_transport comm_shm_transport;
extern const struct comm_transport comm_message_transport;
extern const struct comm_transport comm_hier_transport;

/** A queued operation: an all-reduce of buf; or, with work.gradients, a shared step of a range. */
struct queued_op {
    float *buf;
    size_t n_elems;
    struct weir_ps_work work;
};

struct weir_comm {
    int rank, size, n_workers;
    uint64_t timeout_ns;
    const struct comm_transport *transport;
    void *state;                         /**< The transport's. */
    const struct message_fabric *fabric; /**< What carries messages, where there are any. */
    const char *ucx_kind;                /**< "rc", "dc": what UCX is limited to; else NULL. */
    int n_hosts, host_of[WEIR_COMM_MAX_RANKS]; /**< The first rank on each rank's host. */
    struct comm_plan plan, first_plan;         /**< For messages: current; as created. */
    enum comm_wire wire;
    /** `open` failed on all ranks, and all know it: another transport may be tried. */
    bool is_refused_by_all;

    pthread_mutex_t lock; /**< Guards the fields down to `progress_thread`. */
    pthread_cond_t changed;
    bool is_busy; /**< A thread holds the execution lock. */
    bool is_stopping;
    size_t i_first, n_queued; /**< Ring; the first stays in it while it runs. */
    struct queued_op queue[WEIR_COMM_MAX_QUEUED];
    int wake_fd; /**< eventfd that wakes the progress thread. */
    bool has_thread;
    pthread_t progress_thread;

    atomic_int failed; /**< 0, or the status of the first failure. */
    pthread_mutex_t failure_lock;
    int failed_rank;
    struct weir_error failure;

    struct comm_elastic *elastic; /**< elastic.c's; NULL: the group is not elastic. */

    /* emulate.c's; guarded by the execution lock. */
    double link_bytes_s; /**< 0: no link is emulated. */
    uint64_t link_free_ns;

    struct ps_worker *ps; /**< ps_worker.c's, from weir_ps_start on. */
    float *ps_room;       /**< Progress thread's: weights of a slice while they are updated. */
    size_t ps_room_elems;
};

/**
 * Record the first failure (later ones are dropped) and return its status. Any thread.
 *
 * @param rank  The rank at fault, or -1.
 */
weir_status comm_fail(struct weir_comm *comm, weir_status status, int rank, const char *fmt, ...)
    WEIR_PRINTF(4, 5);

/** Check a configuration; its size and rank are not looked at. @return INVALID with a sentence. */
weir_status comm_check_config(const struct weir_comm_config *config,
                              struct weir_error *err) WEIR_MUST_CHECK;

/** A communicator without transport and thread, to be freed by weir_comm_destroy; NULL without
 *  memory. */
struct weir_comm *comm_allocate(const struct weir_comm_config *config);

/** A communicator of ranks that have met; rdv is NULL for a single rank. */
weir_status comm_build(const struct weir_comm_config *config, struct rendezvous *rdv,
                       struct weir_comm **out, struct weir_error *err) WEIR_MUST_CHECK;

/** elastic.c: make the group that was created elastic; and end that. */
weir_status comm_elastic_begin(struct weir_comm *comm, const struct weir_comm_config *config,
                               struct weir_error *err) WEIR_MUST_CHECK;
void comm_elastic_end(struct weir_comm *comm);

/** emulate.c: return when so many bytes have passed the emulated link; at once without one. */
void comm_link_carry(struct weir_comm *comm, double bytes);
/** Bytes of an all-reduce on the busiest link, in one direction. */
double comm_allreduce_link_bytes(const struct weir_comm *comm, size_t n_elems,
                                 enum weir_comm_type type);

/** The status of the failure, or WEIR_OK. */
weir_status comm_failed(struct weir_comm *comm);

/** Now plus the communicator's timeout. */
uint64_t comm_deadline_ns(const struct weir_comm *comm);

/** queue.c: wake the progress thread. Any thread. */
void comm_wake(const struct weir_comm *comm);

/** Queue an operation for the progress thread; the operation is copied. Any thread. @return
 *  LIMIT if the queue is full; the failure, if failed; INVALID on servers. */
weir_status comm_post(struct weir_comm *comm, const struct queued_op *op) WEIR_MUST_CHECK;

/** ps.c: carry out a queued shared step, with the execution lock held. A failure is recorded. */
void comm_ps_run(struct weir_comm *comm, const struct weir_ps_work *work);

/** Wait behind everything queued for the execution lock. On failure it is not held. */
weir_status comm_execution_lock(struct weir_comm *comm) WEIR_MUST_CHECK;
void comm_execution_unlock(struct weir_comm *comm);

/** queue.c: start the progress thread; stop it, interrupting what it still has to do. */
weir_status comm_queue_start(struct weir_comm *comm, struct weir_error *err) WEIR_MUST_CHECK;
void comm_queue_stop(struct weir_comm *comm);

#endif
