/**
 * The shared-memory transport: one memfd that all ranks of a host map.
 *
 *     | header, one line per rank | stages: 2 halves per rank | allocation 0 | allocation 1 | …
 *       allocation = P equal parts, part r belongs to rank r
 *
 * The memfd has no name: its memory is freed with the last process. Rank 0 creates it, the others
 * open it through /proc/<pid>/fd. It is sealed against shrinking, and every byte in use was
 * reserved with fallocate, so that no access can hit a missing page.
 *
 * A barrier is a counter in the header with a futex, the `gate`: bit 0 says "broken", the rest
 * counts rounds. A rank that finds another dead, or waits past its deadline, records the `fault`,
 * sets bit 0 of all gates and wakes all ranks: none waits for a rank that cannot come.
 */
#ifndef WEIR_COMM_SHM_PRIVATE_H
#define WEIR_COMM_SHM_PRIVATE_H

#include "comm/core/comm_private.h"

#include <stdalign.h>

enum {
    SHM_SMALL_BYTES = 8 << 10,  /**< Sums up to this size go over the stages in any memory. */
    SHM_STAGE_BYTES = 64 << 10, /**< Chunk of operations on memory that is not shared. */
    SHM_MAX_REGIONS = 1024,
    SHM_CACHE_LINE = 64,
};

/** The ranks that meet at a barrier. */
enum shm_group { SHM_WORKERS, SHM_ALL, SHM_N_GROUPS };

struct shm_barrier {
    alignas(SHM_CACHE_LINE) atomic_uint gate;
    atomic_uint n_arrived, n_sleepers;
};

/** The operation that a rank takes part in; ranks compare it, to detect disagreement. */
enum shm_op {
    SHM_ALLOC = 1,
    SHM_BARRIER,
    SHM_SUM,
    SHM_SUM_STAGED,
    SHM_SUM_TO_FIRST,
    SHM_SUM_TO_OWNERS,
    SHM_GATHER,
    SHM_BROADCAST,
    SHM_BROADCAST_STAGED
};

struct shm_slot {
    uint64_t op, a, b;
};

struct shm_rank {
    alignas(SHM_CACHE_LINE) atomic_uint arrived[SHM_N_GROUPS]; /**< Rounds; tells who is late. */
    atomic_uint has_left;
    struct shm_slot slots[2]; /**< By parity of the operation's number. */
    /* Parameter server: a worker's control message, round and pieces. */
    atomic_uint n_controls, n_done; /**< Control messages sent by a worker; done by a server. */
    struct ps_control control;
    struct ps_round round;
    uint64_t mailbox_offset; /**< In the memfd: struct shm_piece of each of its pieces. */
    atomic_uint n_added;     /**< Of a server: how often it has published its sums. */
    uint64_t sums_offset;    /**< Where: two halves, alternating. */
    alignas(SHM_CACHE_LINE)
        atomic_uint doorbell; /**< As a gate; rung when there is something to poll. */
    atomic_uint n_listeners;
};

/** One worker's piece. The side that counted last has it. */
struct shm_piece {
    atomic_uint n_pushed, n_replied;
    uint64_t offset; /**< Where it lies in the memfd. */
    uint64_t replied_ns;
};

/** Why the group broke. */
enum shm_fault { SHM_DIED = 1, SHM_LEFT, SHM_LATE, SHM_GAVE_UP };

struct shm_header {
    uint64_t magic, size;
    atomic_ullong next_offset; /**< First byte of the memfd that is not in use. */
    uint64_t alloc_offset;     /**< Of the allocation being made. */
    atomic_uint fault;         /**< enum shm_fault << 16 | rank; 0: none. Written once. */
    struct shm_barrier groups[SHM_N_GROUPS];
    struct shm_rank ranks[];
};

struct shm_region {
    uint64_t offset; /**< In the memfd. */
    size_t stride;   /**< Bytes of one rank's part. */
    uint8_t *base;   /**< All parts. */
};

/** A part of the memfd that is mapped on demand (parameter server). */
struct shm_window {
    uint64_t offset;
    size_t bytes;
    uint8_t *base;
};

struct shm_watcher {
    bool has_thread;
    pthread_t thread;
    int stop_fd;
    int pid_fds[WEIR_COMM_MAX_RANKS]; /**< -1: own rank, or gone. */
};

struct shm_ps {
    struct ps_layout layout;
    /* Worker. */
    struct shm_window mailbox; /**< Its pieces. */
    struct shm_window pushed;  /**< Copies of pieces that are not shared. */
    float **copied;            /**< By piece: where it was copied from; NULL: no copy. */
    bool *is_out;              /**< By piece: pushed in this round. */
    /* Server. */
    struct shm_window mailboxes[WEIR_COMM_MAX_RANKS], arrays[WEIR_COMM_MAX_RANKS];
    struct shm_window sums[WEIR_COMM_MAX_RANKS]; /**< By server. */
    size_t n_sums;                               /**< Room, in sums. */
    unsigned *n_taken;                           /**< [workers][pieces] */
    unsigned n_controls_taken[WEIR_COMM_MAX_RANKS];
    size_t i_next; /**< Where polling goes on: (piece, worker). */
};

struct shm_state {
    struct weir_comm *comm;
    int fd;
    struct shm_header *header;
    size_t head_bytes; /**< Header, ranks and stages: one mapping. */
    uint8_t *stages;
    unsigned n_spins, n_spins_most;   /**< Now; 0 with more ranks than cores. */
    unsigned n_yields, n_yields_most; /**< Now; 0 with as many cores as ranks. */
    uint64_t n_ops;                   /**< Operations of the workers so far; equal on all. */
    int n_regions;
    struct shm_region regions[SHM_MAX_REGIONS];
    struct shm_watcher watcher;
    struct shm_ps ps;
};

/* ---- segment.c: memory ---------------------------------------------------------------------- */

/** Rank 0: create and map the segment. */
weir_status shm_segment_create(struct shm_state *shm, struct weir_error *err) WEIR_MUST_CHECK;

/** Others: map the segment that process `pid` has open as descriptor `fd`. */
weir_status shm_segment_attach(struct shm_state *shm, int64_t pid, int fd,
                               struct weir_error *err) WEIR_MUST_CHECK;
void shm_segment_close(struct shm_state *shm);

/** Allocate `bytes` (whole pages) of the memfd. Any rank. @return The offset. */
uint64_t shm_segment_reserve(struct shm_state *shm, size_t bytes);

/** Commit zeroed memory to a part of the memfd. @return NOMEM. */
weir_status shm_segment_commit(struct shm_state *shm, uint64_t offset,
                               size_t bytes) WEIR_MUST_CHECK;

/** Map [offset, offset + bytes) into `window`, unless it is mapped already. @return NOMEM. */
weir_status shm_window_map(struct shm_state *shm, uint64_t offset, size_t bytes,
                           struct shm_window *window, uint8_t **out) WEIR_MUST_CHECK;
void shm_window_unmap(struct shm_window *window);

/** Round up to whole pages. */
size_t shm_pages(size_t bytes);

/** The region whose own part holds [buf, buf + bytes), or NULL; *out_offset is within the part. */
const struct shm_region *shm_region_find(const struct shm_state *shm, const void *buf, size_t bytes,
                                         size_t *out_offset);

/** One rank's half of the stage for the current operation. */
uint8_t *shm_stage(const struct shm_state *shm, int rank, uint64_t n_op);

/* ---- barrier.c: barriers, doorbells, faults ------------------------------------------------- */

/** Wait for all of the group. On failure comm_fail was called. */
weir_status shm_barrier_wait(struct shm_state *shm, enum shm_group group,
                             uint64_t deadline_ns) WEIR_MUST_CHECK;

/** Wait for all workers, and check that all do the same (slot). */
weir_status shm_meet(struct shm_state *shm, struct shm_slot slot) WEIR_MUST_CHECK;

/** Break the group: no rank waits any more. The first fault counts. Any thread. */
void shm_break(struct shm_state *shm, enum shm_fault why, int rank);

/** Break the group because this rank cannot go on. @return The failure's status. */
weir_status shm_give_up(struct shm_state *shm, weir_status status, const char *what);

/** Make this rank poll. Any rank may ring. */
void shm_doorbell_ring(struct shm_state *shm, int rank);
/** The state of this rank's doorbell, to be read before polling. */
unsigned shm_doorbell_read(const struct shm_state *shm);
/** Sleep until this rank's doorbell was rung after that reading, at most until until_ns.
 *  @return The group's failure if it is broken. */
weir_status shm_doorbell_wait(struct shm_state *shm, unsigned seen,
                              uint64_t until_ns) WEIR_MUST_CHECK;
/** The deadline has passed because of this rank: break the group. @return The failure's status. */
weir_status shm_report_late_peer(struct shm_state *shm, int rank);

/* ---- watch.c: death of ranks ---------------------------------------------------------------- */

/** Open a pidfd of each other rank. */
weir_status shm_watch_open(struct shm_state *shm, const int64_t pids[],
                           struct weir_error *err) WEIR_MUST_CHECK;
weir_status shm_watch_start(struct shm_state *shm, struct weir_error *err) WEIR_MUST_CHECK;
void shm_watch_close(struct shm_state *shm);

/** The transport's `watch`. */
void shm_watch_poll(struct weir_comm *comm, bool out_is_dead[], int out_fds[]);

/* ---- collective.c, shm_ps.c: the operations ------------------------------------------------- */

weir_status shm_alloc(struct weir_comm *comm, size_t bytes, void **out);
weir_status shm_allreduce(struct weir_comm *comm, void *buf, size_t n_elems,
                          enum weir_comm_type type);
/** As shm_allreduce, but only rank 0 gets the sum; the buffers of the others are undefined then. */
weir_status shm_reduce(struct weir_comm *comm, void *buf, size_t n_elems, enum weir_comm_type type);
weir_status shm_reduce_scatter(struct weir_comm *comm, void *buf, size_t n_elems,
                               enum weir_comm_type type);
weir_status shm_allgather(struct weir_comm *comm, void *buf, size_t n_elems,
                          enum weir_comm_type type);
weir_status shm_broadcast(struct weir_comm *comm, void *buf, size_t bytes, int root);
weir_status shm_barrier(struct weir_comm *comm);
bool shm_see(const struct weir_comm *comm, const void *buf, size_t bytes, void **out_parts);
extern const struct ps_transport shm_ps_transport;
void shm_ps_close(struct shm_state *shm);

#endif
