#include "train/worker.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

/* Once seen, a signal is gone from the queue: remembered for the rest of the process. */
static bool is_asked;

static void stop_set(sigset_t *out)
{
    (void)sigemptyset(out);
    (void)sigaddset(out, SIGINT);
    (void)sigaddset(out, SIGTERM);
    (void)sigaddset(out, SIGUSR1); /* save: its place is wanted; the rest is as with SIGTERM */
}

void train_block_signals(void)
{
    sigset_t set;
    stop_set(&set);
    (void)pthread_sigmask(SIG_BLOCK, &set, NULL);
    (void)signal(SIGPIPE, SIG_IGN);
}

bool train_pause(int64_t ms)
{
    sigset_t set;
    stop_set(&set);
    const struct timespec wait = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
    if (!is_asked && sigtimedwait(&set, NULL, &wait) > 0) {
        is_asked = true;
    }
    return is_asked;
}

bool train_is_stop_asked(void)
{
    return train_pause(0);
}

static void *end_when_asked(void *context)
{
    sigset_t set;
    (void)context;
    stop_set(&set);
    while (sigwaitinfo(&set, NULL) < 0) {
    }
    _exit(weir_status_exit(WEIR_ERR_CANCELLED));
}

weir_status train_abort_on_signal_begin(pthread_t *out, struct weir_error *err)
{
    int code = pthread_create(out, NULL, end_when_asked, NULL);
    return code == 0 ? WEIR_OK : weir_error_set_errno(err, code, "cannot start a thread");
}

void train_abort_on_signal_end(pthread_t thread)
{
    (void)pthread_cancel(thread);
    (void)pthread_join(thread, NULL);
}
