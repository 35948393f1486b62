/* A slower network than there is: collectives that are done are held back until it would be. */
#include "comm/core/comm_private.h"

#include "base/clock.h"

#include <errno.h>

#define NS_PER_S 1000000000

void weir_comm_emulate_link(struct weir_comm *comm, double bytes_per_s)
{
    (void)pthread_mutex_lock(&comm->lock);
    comm->link_bytes_s = bytes_per_s > 0 ? bytes_per_s : 0;
    comm->link_free_ns = 0;
    (void)pthread_mutex_unlock(&comm->lock);
}

void comm_link_carry(struct weir_comm *comm, double bytes)
{
    if (comm->link_bytes_s <= 0 || bytes <= 0 || comm_failed(comm) != WEIR_OK) {
        return;
    }
    uint64_t now_ns = weir_mono_ns();
    bool is_backlog = now_ns < comm->link_free_ns + COMM_LATE_NS;
    uint64_t begin_ns = is_backlog ? comm->link_free_ns : now_ns;
    comm->link_free_ns = begin_ns + (uint64_t)(bytes / comm->link_bytes_s * NS_PER_S);
    const struct timespec until = {.tv_sec = (time_t)(comm->link_free_ns / NS_PER_S),
                                   .tv_nsec = (long)(comm->link_free_ns % NS_PER_S)};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR) {
    }
}

double comm_allreduce_link_bytes(const struct weir_comm *comm, size_t n_elems,
                                 enum weir_comm_type type)
{
    double n = comm->n_workers, size = type == WEIR_COMM_F32 ? 4 : 8;
    return 2 * (n - 1) / n * (double)n_elems * size;
}
