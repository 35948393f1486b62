/**
 * The shared-memory transport: one memfd that all ranks of a host map.
 *
 *     | header, one line per rank | stages: 2 halves per rank | allocation 0 | allocation 1 | …
 *       allocation = P equal parts, part r belongs to rank r
 *
 * The memfd has no name: when the last process is gone, so is the memory. Rank 0 creates it, the
 * others open it through /proc/<pid>/fd. It is sealed against shrinking, and every byte in use was
 * reserved with fallocate, so no access can hit a missing page.
 *
 * Barriers are counters in the header and a futex, the `gate`: bit 0 says "aborted", the rest
 * counts rounds. Who finds a rank dead, or waits beyond the deadline, writes the `blame`, sets bit
 * 0 of all gates and wakes everybody: nobody waits for a rank that cannot come.
 */
#ifndef WEIR_COMM_SHM_PRIVATE_H
#define WEIR_COMM_SHM_PRIVATE_H

#include "comm/core/comm_private.h"

#include <stdalign.h>

enum {
    SHM_SMALL_BYTES = 8 << 10,  /**< Up to here sums go over the stages, wherever they are. */
    SHM_STAGE_BYTES = 64 << 10, /**< Chunk of operations on memory that is not shared. */
    SHM_MAX_REGIONS = 1024,
    SHM_CACHE_LINE = 64,
};

/** Who meets at a barrier. */
enum shm_group { SHM_WORKERS, SHM_ALL, SHM_N_GROUPS };

struct shm_barrier {
    alignas(SHM_CACHE_LINE) atomic_uint gate;
    atomic_uint n_arrived, n_sleepers;
};

/** What a rank takes part in; compared, so that ranks that disagree find out. */
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
    alignas(SHM_CACHE_LINE) atomic_uint arrived[SHM_N_GROUPS]; /**< Rounds; names who is late. */
    atomic_uint has_left;
    struct shm_slot slots[2]; /**< By parity of the operation's number. */
    /* Parameter server: what a worker says, and where it puts its pieces. */
    atomic_uint n_controls, n_done; /**< Words said by a worker; carried out by a server. */
    struct ps_control control;
    struct ps_round round;
    uint64_t mailbox_offset; /**< In the memfd: struct shm_piece of each of its pieces. */
    atomic_uint n_added;     /**< Of a server: how often it has shown its sums. */
    uint64_t sums_offset;    /**< Where: two halves, in turn. */
    alignas(SHM_CACHE_LINE)
        atomic_uint doorbell; /**< As a gate: rung when there is something to see. */
    atomic_uint n_listeners;
};

/** One worker's piece: who has it follows from who counted last. */
struct shm_piece {
    atomic_uint n_pushed, n_replied;
    uint64_t offset; /**< Where it lies in the memfd. */
    uint64_t replied_ns;
};

/** Why the group broke. */
enum shm_fault { SHM_DIED = 1, SHM_LEFT, SHM_LATE, SHM_GAVE_UP };

struct shm_header {
    uint64_t magic, size;
    atomic_ullong next_offset; /**< First byte of the memfd not yet given out. */
    uint64_t alloc_offset;     /**< Of the allocation being made. */
    atomic_uint fault;         /**< enum shm_fault << 16 | rank; 0 = none. Written once. */
    struct shm_barrier groups[SHM_N_GROUPS];
    struct shm_rank ranks[];
};

struct shm_region {
    uint64_t offset; /**< In the memfd. */
    size_t stride;   /**< Bytes of one rank's part. */
    uint8_t *base;   /**< All parts. */
};

/** A part of the memfd mapped on demand (parameter server). */
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
    float **copied;            /**< By piece: where it was copied from; NULL: it was not. */
    bool *is_out;              /**< By piece: pushed in this round. */
    /* Server. */
    struct shm_window mailboxes[WEIR_COMM_MAX_RANKS], arrays[WEIR_COMM_MAX_RANKS];
    struct shm_window sums[WEIR_COMM_MAX_RANKS]; /**< By server. */
    size_t n_sums;                               /**< That there is room for. */
    unsigned *n_taken;                           /**< [workers][pieces] */
    unsigned n_controls_taken[WEIR_COMM_MAX_RANKS];
    size_t i_next; /**< Where it looks next: (piece, worker). */
};

struct shm_state {
    struct weir_comm *comm;
    int fd;
    struct shm_header *header;
    size_t head_bytes; /**< Header, ranks and stages: one mapping. */
    uint8_t *stages;
    unsigned n_spins, n_spins_most;   /**< Now; 0 with more ranks than cores. */
    unsigned n_yields, n_yields_most; /**< Now; 0 with as many cores as ranks. */
    uint64_t n_ops;                   /**< Meetings of the workers so far; equal on all. */
    int n_regions;
    struct shm_region regions[SHM_MAX_REGIONS];
    struct shm_watcher watcher;
    struct shm_ps ps;
};

/* ---- segment.c: memory ----------------------------------------------------------------------- */

/** Rank 0: create and map the segment. */
weir_status shm_segment_create(struct shm_state *shm, struct weir_error *err) WEIR_MUST_CHECK;

/** Others: map the segment that process `pid` has open as descriptor `fd`. */
weir_status shm_segment_attach(struct shm_state *shm, int64_t pid, int fd,
                               struct weir_error *err) WEIR_MUST_CHECK;
void shm_segment_close(struct shm_state *shm);

/** Give out `bytes` (whole pages) of the memfd: the offset. Any rank. */
uint64_t shm_segment_reserve(struct shm_state *shm, size_t bytes);

/** Commit memory to a part of the memfd, zeroed. NOMEM. */
weir_status shm_segment_commit(struct shm_state *shm, uint64_t offset,
                               size_t bytes) WEIR_MUST_CHECK;

/** Map [offset, offset + bytes) into `window`, unless it is that already. NOMEM. */
weir_status shm_window_map(struct shm_state *shm, uint64_t offset, size_t bytes,
                           struct shm_window *window, uint8_t **out) WEIR_MUST_CHECK;
void shm_window_unmap(struct shm_window *window);

/** Rounded up to whole pages. */
size_t shm_pages(size_t bytes);

/** The region whose own part holds [buf, buf + bytes), or NULL; *out_offset within the part. */
const struct shm_region *shm_region_find(const struct shm_state *shm, const void *buf, size_t bytes,
                                         size_t *out_offset);

/** One rank's half of the stage for the current operation. */
uint8_t *shm_stage(const struct shm_state *shm, int rank, uint64_t n_op);

/* ---- barrier.c: meeting and breaking up ----------------------------------------------------- */

/** Meet the group. On failure comm_fail was called. */
weir_status shm_barrier_wait(struct shm_state *shm, enum shm_group group,
                             uint64_t deadline_ns) WEIR_MUST_CHECK;

/** Meet the other workers and check that all do the same (slot). */
weir_status shm_meet(struct shm_state *shm, struct shm_slot slot) WEIR_MUST_CHECK;

/** Break the group: nobody waits any more. The first blame counts. Any thread. */
void shm_break(struct shm_state *shm, enum shm_fault why, int rank);

/** Break the group because this rank cannot go on; returns the failure's status. */
weir_status shm_give_up(struct shm_state *shm, weir_status status, const char *what);

/** Somebody should look. Any rank. */
void shm_doorbell_ring(struct shm_state *shm, int rank);
/** This rank's, before it looks. */
unsigned shm_doorbell_read(const struct shm_state *shm);
/** Sleep until this rank's bell was rung after that look, at most until until_ns; the group's
 *  failure if it is broken. */
weir_status shm_doorbell_wait(struct shm_state *shm, unsigned seen,
                              uint64_t until_ns) WEIR_MUST_CHECK;
/** Nobody need wait for this rank any longer; returns the failure's status. */
weir_status shm_report_late_peer(struct shm_state *shm, int rank);

/* ---- watch.c: who dies ---------------------------------------------------------------------- */

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
/** As shm_allreduce, but the sum goes to rank 0 alone; what the others hold then is undefined. */
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
