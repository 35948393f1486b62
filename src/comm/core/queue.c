/* The execution lock, the queue of posted all-reduces, and the progress thread that carries them
 * out. */
#include "comm/core/comm_private.h"

#include "base/clock.h"

#include <errno.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

void comm_wake(const struct weir_comm *comm)
{
    uint64_t one = 1;
    /* The counter cannot overflow into blocking: the thread resets it each time it runs. */
    while (write(comm->wake_fd, &one, sizeof one) < 0) {
    }
}

weir_status comm_execution_lock(struct weir_comm *comm)
{
    (void)pthread_mutex_lock(&comm->lock);
    while (comm->is_busy || comm->n_queued > 0) {
        (void)pthread_cond_wait(&comm->changed, &comm->lock);
    }
    weir_status status = comm_failed(comm);
    comm->is_busy = status == WEIR_OK;
    (void)pthread_mutex_unlock(&comm->lock);
    return status;
}

void comm_execution_unlock(struct weir_comm *comm)
{
    (void)pthread_mutex_lock(&comm->lock);
    comm->is_busy = false;
    /* The progress thread has looked away meanwhile: from the queue, and from the transport. */
    bool has_work = comm->n_queued > 0 || comm->ps != NULL || comm->transport->event_fd(comm) >= 0;
    (void)pthread_cond_broadcast(&comm->changed);
    (void)pthread_mutex_unlock(&comm->lock);
    if (has_work) {
        comm_wake(comm);
    }
}

weir_status comm_post(struct weir_comm *comm, const struct queued_op *op)
{
    if (comm->rank >= comm->n_workers) {
        return WEIR_ERR_INVALID;
    }
    (void)pthread_mutex_lock(&comm->lock);
    weir_status status = comm_failed(comm);
    if (status == WEIR_OK && comm->n_queued == WEIR_COMM_MAX_QUEUED) {
        status = WEIR_ERR_LIMIT;
    }
    if (status == WEIR_OK) {
        comm->queue[(comm->i_first + comm->n_queued++) % WEIR_COMM_MAX_QUEUED] = *op;
    }
    (void)pthread_mutex_unlock(&comm->lock);
    if (status == WEIR_OK) {
        comm_wake(comm);
    }
    return status;
}

weir_status weir_comm_allreduce_post(struct weir_comm *comm, float *buf, size_t n_elems)
{
    return comm_post(comm, &(struct queued_op){.buf = buf, .n_elems = n_elems});
}

weir_status weir_comm_wait_all(struct weir_comm *comm)
{
    (void)pthread_mutex_lock(&comm->lock);
    while (comm->n_queued > 0) {
        (void)pthread_cond_wait(&comm->changed, &comm->lock);
    }
    (void)pthread_mutex_unlock(&comm->lock);
    return comm_failed(comm);
}

/* A failure is kept in the communicator; wait_all returns it. */
static void carry_out(struct weir_comm *comm, const struct queued_op *op)
{
    if (op->work.gradients != NULL) {
        comm_ps_run(comm, &op->work);
        return;
    }
    (void)comm->transport->allreduce(comm, op->buf, op->n_elems, WEIR_COMM_F32);
    comm_link_carry(comm, comm_allreduce_link_bytes(comm, op->n_elems, WEIR_COMM_F32));
}

/* Called and returns with the lock held; it is given up while the work is done. */
static void run_first(struct weir_comm *comm)
{
    struct queued_op first = comm->queue[comm->i_first];
    comm->is_busy = true;
    (void)pthread_mutex_unlock(&comm->lock);
    if (comm_failed(comm) == WEIR_OK) {
        carry_out(comm, &first);
    }
    (void)pthread_mutex_lock(&comm->lock);
    comm->is_busy = false;
    comm->i_first = (comm->i_first + 1) % WEIR_COMM_MAX_QUEUED;
    comm->n_queued--;
    (void)pthread_cond_broadcast(&comm->changed);
}

/* Let the transport do what cannot wait for the next call (replies to other ranks). */
static void run_idle(struct weir_comm *comm)
{
    comm->is_busy = true;
    (void)pthread_mutex_unlock(&comm->lock);
    comm->transport->progress(comm);
    comm_ps_progress(comm);
    (void)pthread_mutex_lock(&comm->lock);
    comm->is_busy = false;
    (void)pthread_cond_broadcast(&comm->changed);
}

static void sleep_until_woken(struct weir_comm *comm, int event_fd, uint64_t until_ns)
{
    const uint64_t now_ns = weir_mono_ns(), left_ns = until_ns > now_ns ? until_ns - now_ns : 0;
    const struct timespec left = {.tv_sec = (time_t)(left_ns / 1000000000),
                                  .tv_nsec = (long)(left_ns % 1000000000)};
    struct pollfd poll_fds[2] = {{.fd = comm->wake_fd, .events = POLLIN},
                                 {.fd = event_fd, .events = POLLIN}};
    (void)pthread_mutex_unlock(&comm->lock);
    (void)ppoll(poll_fds, 2, until_ns == UINT64_MAX ? NULL : &left, NULL);
    if (poll_fds[0].revents != 0) {
        uint64_t count;
        (void)!read(comm->wake_fd, &count, sizeof count);
    }
    (void)pthread_mutex_lock(&comm->lock);
}

static void *progress_main(void *argument)
{
    struct weir_comm *comm = argument;
    (void)pthread_setname_np(pthread_self(), "weir-comm");
    (void)pthread_mutex_lock(&comm->lock);
    while (!comm->is_stopping) {
        if (!comm->is_busy && comm->n_queued > 0) {
            run_first(comm);
            continue;
        }
        int event_fd = -1;
        uint64_t until_ns = UINT64_MAX;
        if (comm->is_busy && comm_ps_is_concurrent(comm)) {
            (void)pthread_mutex_unlock(&comm->lock);
            comm_ps_progress(comm);
            (void)pthread_mutex_lock(&comm->lock);
            until_ns = comm_ps_next_ns(comm);
        }
        /* While another thread has the execution lock the transport's events are its own. */
        if (!comm->is_busy && comm_failed(comm) == WEIR_OK) {
            event_fd = comm->transport->event_fd(comm);
            if (event_fd >= 0 || comm->ps != NULL) {
                run_idle(comm);
                if (comm->n_queued > 0 || comm->is_stopping) {
                    continue;
                }
                until_ns = comm_ps_next_ns(comm);
                event_fd = event_fd >= 0 ? event_fd : comm_ps_event_fd(comm);
            }
        }
        sleep_until_woken(comm, event_fd, until_ns);
    }
    (void)pthread_mutex_unlock(&comm->lock);
    return NULL;
}

weir_status comm_queue_start(struct weir_comm *comm, struct weir_error *err)
{
    comm->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (comm->wake_fd < 0) {
        return weir_error_set_errno(err, errno, "no eventfd for the communicator");
    }
    int problem = pthread_create(&comm->progress_thread, NULL, progress_main, comm);
    if (problem != 0) {
        return weir_error_set_errno(err, problem, "no thread for the communicator");
    }
    comm->has_thread = true;
    return WEIR_OK;
}

void comm_queue_stop(struct weir_comm *comm)
{
    if (!comm->has_thread) {
        return;
    }
    (void)pthread_mutex_lock(&comm->lock);
    comm->is_stopping = true;
    bool has_work = comm->n_queued > 0;
    (void)pthread_mutex_unlock(&comm->lock);
    if (has_work) {
        comm->transport->interrupt(comm);
    }
    comm_wake(comm);
    (void)pthread_join(comm->progress_thread, NULL);
    comm->has_thread = false;
}
