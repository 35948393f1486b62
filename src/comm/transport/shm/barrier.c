#include "comm/transport/shm/shm_private.h"

#include "base/clock.h"

#include <limits.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Gates: bit 0 = broken, the rest counts rounds. */
enum { GATE_BROKEN = 1, GATE_ROUND = 2 };

enum {
    SPINS_LEAST = 32,
    YIELDS_LEAST = 1,
    YIELD_LONG_NS = 50000, /**< Another thread computes: it has the core for a while. */
};

/* Shared futexes (no FUTEX_PRIVATE_FLAG): the waiters are in other processes. */
static void futex_wait(atomic_uint *futex, unsigned expected, uint64_t wait_ns)
{
    struct timespec wait = {.tv_sec = (time_t)(wait_ns / 1000000000),
                            .tv_nsec = (long)(wait_ns % 1000000000)};
    (void)syscall(SYS_futex, futex, FUTEX_WAIT, expected, &wait, NULL, 0);
}

static void futex_wake_all(atomic_uint *futex)
{
    (void)syscall(SYS_futex, futex, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

static inline void pause_core(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
}

static int group_size(const struct shm_state *shm, enum shm_group group)
{
    return group == SHM_ALL ? shm->comm->size : shm->comm->n_workers;
}

void shm_break(struct shm_state *shm, enum shm_fault why, int rank)
{
    unsigned none = 0;
    (void)atomic_compare_exchange_strong(&shm->header->fault, &none,
                                         (unsigned)why << 16 | (unsigned)rank);
    for (int g = 0; g < SHM_N_GROUPS; g++) {
        (void)atomic_fetch_or(&shm->header->groups[g].gate, GATE_BROKEN);
        futex_wake_all(&shm->header->groups[g].gate);
    }
    for (int r = 0; r < shm->comm->size; r++) {
        (void)atomic_fetch_or(&shm->header->ranks[r].doorbell, GATE_BROKEN);
        futex_wake_all(&shm->header->ranks[r].doorbell);
    }
}

/* The fault that the group recorded becomes this communicator's failure. */
static weir_status fail_as_reported(struct shm_state *shm)
{
    struct weir_comm *comm = shm->comm;
    unsigned fault = atomic_load(&shm->header->fault);
    int rank = (int)(fault & 0xffff);
    const char *self = rank == comm->rank ? " (this one)" : "";
    switch ((enum shm_fault)(fault >> 16)) {
    case SHM_DIED:
        return comm_fail(comm, WEIR_ERR_PEER, rank, "rank %d died", rank);
    case SHM_LEFT:
        if (rank == comm->rank) {
            return comm_fail(comm, WEIR_ERR_CANCELLED, rank, "the communicator is being destroyed");
        }
        return comm_fail(comm, WEIR_ERR_PEER, rank, "rank %d left the group", rank);
    case SHM_LATE:
        return comm_fail(comm, WEIR_ERR_TIMEOUT, rank, "rank %d%s did not come within %llu ms",
                         rank, self, (unsigned long long)(comm->timeout_ns / 1000000));
    case SHM_GAVE_UP:
        return comm_fail(comm, WEIR_ERR_PEER, rank, "rank %d%s gave up", rank, self);
    }
    return comm_fail(comm, WEIR_ERR_INTERNAL, -1, "the group broke without a reason");
}

weir_status shm_give_up(struct shm_state *shm, weir_status status, const char *what)
{
    status = comm_fail(shm->comm, status, shm->comm->rank, "rank %d: %s", shm->comm->rank, what);
    shm_break(shm, SHM_GAVE_UP, shm->comm->rank);
    return status;
}

/* The deadline is over: at fault is the first rank that has not come in this round. */
static weir_status fail_late(struct shm_state *shm, enum shm_group group)
{
    struct shm_rank *ranks = shm->header->ranks;
    unsigned own = atomic_load(&ranks[shm->comm->rank].arrived[group]);
    for (int r = 0; r < group_size(shm, group); r++) {
        /* Difference as signed: counters wrap around. */
        if ((int)(atomic_load(&ranks[r].arrived[group]) - own) < 0) {
            shm_break(shm, SHM_LATE, r);
            break;
        }
    }
    return fail_as_reported(shm);
}

/* Spin for a while; true when the round is over or broken. Where spinning did not help the next one
 * is half as long, where it did twice: next to a busy neighbour it only takes the core away. */
static bool spin(struct shm_state *shm, atomic_uint *gate, unsigned before)
{
    unsigned least = WEIR_MIN(shm->n_spins_most, (unsigned)SPINS_LEAST);
    for (unsigned i = 0; i < shm->n_spins; i++) {
        if (atomic_load_explicit(gate, memory_order_acquire) != before) {
            shm->n_spins = WEIR_MIN(2 * shm->n_spins, shm->n_spins_most);
            return true;
        }
        pause_core();
    }
    shm->n_spins = WEIR_MAX(shm->n_spins / 2, least);
    return false;
}

/* With more ranks than cores: let those run that are to come, without the price of being woken by
 * them. Bounded and adapted as spinning is; over when a core went to a thread that computes. */
static bool yield(struct shm_state *shm, atomic_uint *gate, unsigned before)
{
    uint64_t start_ns = shm->n_yields > 0 ? weir_mono_ns() : 0;
    for (unsigned i = 0; i < shm->n_yields; i++) {
        (void)sched_yield();
        if (atomic_load_explicit(gate, memory_order_acquire) != before) {
            shm->n_yields = WEIR_MIN(2 * shm->n_yields, shm->n_yields_most);
            return true;
        }
        uint64_t now_ns = weir_mono_ns();
        if (now_ns - start_ns > YIELD_LONG_NS) {
            break;
        }
        start_ns = now_ns;
    }
    shm->n_yields = WEIR_MAX(shm->n_yields / 2, WEIR_MIN(shm->n_yields, (unsigned)YIELDS_LEAST));
    return false;
}

static weir_status wait_for_round(struct shm_state *shm, enum shm_group group, unsigned before,
                                  uint64_t deadline_ns)
{
    struct shm_barrier *barrier = &shm->header->groups[group];
    bool has_changed = spin(shm, &barrier->gate, before) || yield(shm, &barrier->gate, before);
    while (!has_changed) {
        uint64_t now = weir_mono_ns();
        if (now >= deadline_ns) {
            if (atomic_load(&barrier->gate) == before) {
                return fail_late(shm, group);
            }
            break;
        }
        /* Sleepers are counted before the kernel compares the gate: the last to arrive changes the
         * gate first and looks for sleepers then, so one of the two notices the other. */
        (void)atomic_fetch_add(&barrier->n_sleepers, 1);
        futex_wait(&barrier->gate, before, deadline_ns - now);
        (void)atomic_fetch_sub(&barrier->n_sleepers, 1);
        has_changed = atomic_load(&barrier->gate) != before;
    }
    /* A round that was completed counts, even if the group broke right after. */
    unsigned after = atomic_load(&barrier->gate);
    return (after & ~(unsigned)GATE_BROKEN) != before ? WEIR_OK : fail_as_reported(shm);
}

weir_status shm_barrier_wait(struct shm_state *shm, enum shm_group group, uint64_t deadline_ns)
{
    struct shm_barrier *barrier = &shm->header->groups[group];
    unsigned before = atomic_load(&barrier->gate);
    if ((before & GATE_BROKEN) != 0) {
        return fail_as_reported(shm);
    }
    (void)atomic_fetch_add(&shm->header->ranks[shm->comm->rank].arrived[group], 1);
    unsigned n_arrived = atomic_fetch_add(&barrier->n_arrived, 1) + 1;
    if (n_arrived != (unsigned)group_size(shm, group)) {
        return wait_for_round(shm, group, before, deadline_ns);
    }
    atomic_store(&barrier->n_arrived, 0);
    (void)atomic_fetch_add(&barrier->gate, GATE_ROUND);
    if (atomic_load(&barrier->n_sleepers) > 0) {
        futex_wake_all(&barrier->gate);
    }
    return WEIR_OK;
}

/* ---- bells ---------------------------------------------------------------------------------- */

void shm_doorbell_ring(struct shm_state *shm, int rank)
{
    struct shm_rank *other = &shm->header->ranks[rank];
    (void)atomic_fetch_add(&other->doorbell, GATE_ROUND);
    if (atomic_load(&other->n_listeners) > 0) {
        futex_wake_all(&other->doorbell);
    }
}

unsigned shm_doorbell_read(const struct shm_state *shm)
{
    return atomic_load(&shm->header->ranks[shm->comm->rank].doorbell);
}

weir_status shm_doorbell_wait(struct shm_state *shm, unsigned seen, uint64_t until_ns)
{
    struct shm_rank *self = &shm->header->ranks[shm->comm->rank];
    if ((seen & GATE_BROKEN) != 0) {
        return fail_as_reported(shm);
    }
    uint64_t now_ns = weir_mono_ns();
    if (now_ns < until_ns && !spin(shm, &self->doorbell, seen)) {
        (void)atomic_fetch_add(&self->n_listeners, 1);
        futex_wait(&self->doorbell, seen, until_ns - now_ns);
        (void)atomic_fetch_sub(&self->n_listeners, 1);
    }
    return WEIR_OK;
}

weir_status shm_report_late_peer(struct shm_state *shm, int rank)
{
    shm_break(shm, SHM_LATE, rank);
    return fail_as_reported(shm);
}

static const char *op_name(uint64_t op)
{
    static const char *const names[] = {[SHM_ALLOC] = "alloc",
                                        [SHM_BARRIER] = "barrier",
                                        [SHM_SUM] = "all-reduce in shared memory",
                                        [SHM_SUM_TO_OWNERS] = "reduce-scatter",
                                        [SHM_GATHER] = "all-gather in shared memory",
                                        [SHM_SUM_TO_FIRST] = "reduction in shared memory",
                                        [SHM_SUM_STAGED] = "all-reduce in other memory",
                                        [SHM_BROADCAST] = "broadcast in shared memory",
                                        [SHM_BROADCAST_STAGED] = "broadcast in other memory"};
    op &= 0xff;
    return op < WEIR_ARRAY_LEN(names) && names[op] != NULL ? names[op] : "something else";
}

weir_status shm_meet(struct shm_state *shm, struct shm_slot slot)
{
    struct weir_comm *comm = shm->comm;
    struct shm_rank *ranks = shm->header->ranks;
    size_t parity = shm->n_ops++ & 1;
    /* Two slots, alternating: a rank writes this one again only two operations later, when all
     * ranks have left this one. The stages rely on the same. */
    ranks[comm->rank].slots[parity] = slot;
    WEIR_TRY(shm_barrier_wait(shm, SHM_WORKERS, comm_deadline_ns(comm)));
    for (int r = 0; r < comm->n_workers; r++) {
        const struct shm_slot *other = &ranks[r].slots[parity];
        if (other->op != slot.op || other->a != slot.a || other->b != slot.b) {
            weir_status status = comm_fail(
                comm, WEIR_ERR_INVALID, r,
                "ranks disagree: rank %d calls %s (%llu, %llu), rank %d calls %s (%llu, %llu)",
                comm->rank, op_name(slot.op), (unsigned long long)slot.a,
                (unsigned long long)slot.b, r, op_name(other->op), (unsigned long long)other->a,
                (unsigned long long)other->b);
            shm_break(shm, SHM_GAVE_UP, comm->rank);
            return status;
        }
    }
    return WEIR_OK;
}
