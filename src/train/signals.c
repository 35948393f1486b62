#include "train/worker.h"

#include <errno.h>
#include <signal.h>

/* Once seen, a signal is gone from the queue: remembered for the rest of the process. */
static bool is_asked;

static void stop_set(sigset_t *out)
{
    (void)sigemptyset(out);
    (void)sigaddset(out, SIGINT);
    (void)sigaddset(out, SIGTERM);
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
