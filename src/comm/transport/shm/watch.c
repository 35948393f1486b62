/* One thread sleeps on a pidfd of each other rank and breaks the group when one dies. */
#include "comm/transport/shm/shm_private.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

weir_status shm_watch_open(struct shm_state *shm, const int64_t pids[], struct weir_error *err)
{
    struct shm_watcher *watcher = &shm->watcher;
    for (int r = 0; r < shm->comm->size; r++) {
        if (r == shm->comm->rank) {
            continue;
        }
        watcher->pid_fds[r] = (int)syscall(SYS_pidfd_open, (pid_t)pids[r], 0);
        if (watcher->pid_fds[r] < 0) {
            return weir_error_set_errno(err, errno, "watching rank %d (process %lld)", r,
                                        (long long)pids[r]);
        }
    }
    return WEIR_OK;
}

static void *watch_main(void *argument)
{
    struct shm_state *shm = argument;
    struct shm_watcher *watcher = &shm->watcher;
    int size = shm->comm->size;
    struct pollfd poll_fds[WEIR_COMM_MAX_RANKS + 1];
    (void)pthread_setname_np(pthread_self(), "weir-comm-watch");
    for (int r = 0; r < size; r++) {
        poll_fds[r] = (struct pollfd){.fd = watcher->pid_fds[r], .events = POLLIN};
    }
    poll_fds[size] = (struct pollfd){.fd = watcher->stop_fd, .events = POLLIN};
    for (;;) {
        (void)poll(poll_fds, (nfds_t)size + 1, -1);
        if (poll_fds[size].revents != 0) {
            return NULL;
        }
        for (int r = 0; r < size; r++) {
            if (poll_fds[r].fd < 0 || poll_fds[r].revents == 0) {
                continue;
            }
            poll_fds[r].fd = -1;
            /* A rank that has sent its goodbye may go; it has completed all that it took part
             * in. */
            if (atomic_load(&shm->header->ranks[r].has_left) == 0) {
                shm_break(shm, SHM_DIED, r);
                (void)comm_fail(shm->comm, WEIR_ERR_PEER, r, "rank %d died", r);
            }
        }
    }
}

weir_status shm_watch_start(struct shm_state *shm, struct weir_error *err)
{
    struct shm_watcher *watcher = &shm->watcher;
    watcher->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (watcher->stop_fd < 0) {
        return weir_error_set_errno(err, errno, "no eventfd for the communicator");
    }
    int problem = pthread_create(&watcher->thread, NULL, watch_main, shm);
    if (problem != 0) {
        return weir_error_set_errno(err, problem, "no thread for the communicator");
    }
    watcher->has_thread = true;
    return WEIR_OK;
}

void shm_watch_close(struct shm_state *shm)
{
    struct shm_watcher *watcher = &shm->watcher;
    if (watcher->has_thread) {
        uint64_t one = 1;
        (void)!write(watcher->stop_fd, &one, sizeof one);
        (void)pthread_join(watcher->thread, NULL);
    }
    for (int r = 0; r < shm->comm->size; r++) {
        if (watcher->pid_fds[r] >= 0) {
            (void)close(watcher->pid_fds[r]);
        }
    }
    if (watcher->stop_fd >= 0) {
        (void)close(watcher->stop_fd);
    }
}

void shm_watch_poll(struct weir_comm *comm, bool out_is_dead[], int out_fds[])
{
    const struct shm_state *shm = comm->state;
    for (int r = 0; r < comm->size; r++) {
        struct pollfd poll_fd = {.fd = shm->watcher.pid_fds[r], .events = POLLIN};
        out_is_dead[r] = poll_fd.fd >= 0 && poll(&poll_fd, 1, 0) == 1;
        out_fds[r] = poll_fd.fd >= 0 ? fcntl(poll_fd.fd, F_DUPFD_CLOEXEC, 0) : -1;
    }
}
