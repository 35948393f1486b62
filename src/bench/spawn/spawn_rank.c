/* The rank's side of spawn: its identity, and its end with the launcher. */
#include "bench/spawn/spawn_private.h"

#include "comm/comm.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool weir_spawn_is_rank(void)
{
    return getenv(SPAWN_ENV_RANK) != NULL;
}

/** The launcher is gone when its end of the stream closes: nothing is to be saved. */
static void *end_with_launcher(void *context)
{
    char bytes[256];
    ssize_t n_read = 0;
    (void)context;
    do {
        n_read = read(STDIN_FILENO, bytes, sizeof bytes);
    } while (n_read > 0 || (n_read < 0 && errno == EINTR));
    _exit(weir_status_exit(WEIR_ERR_CANCELLED));
}

static int read_env(const char *name, int max)
{
    const char *text = getenv(name);
    char *end = NULL;
    long value = text != NULL ? strtol(text, &end, 10) : -1;
    return end != NULL && *end == '\0' && value >= 0 && value <= max ? (int)value : -1;
}

weir_status weir_spawn_join(struct weir_spawn_rank *out, struct weir_error *err)
{
    struct weir_spawn_rank me = {.rank = read_env(SPAWN_ENV_RANK, WEIR_COMM_MAX_RANKS - 1),
                                 .size = read_env(SPAWN_ENV_SIZE, WEIR_COMM_MAX_RANKS),
                                 .n_here = read_env(SPAWN_ENV_HERE, WEIR_COMM_MAX_RANKS),
                                 .rendezvous = getenv(SPAWN_ENV_RENDEZVOUS)};
    const char *secret = getenv(SPAWN_ENV_SECRET);
    if (me.rank < 0 || me.size <= me.rank || me.n_here < 1 || me.rendezvous == NULL ||
        secret == NULL || strlen(secret) >= sizeof me.secret) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "this process was not started as a rank: " SPAWN_ENV_RANK
                              " and its kin are not all in the environment");
    }
    memcpy(me.secret, secret, strlen(secret));
    (void)unsetenv(SPAWN_ENV_SECRET);
    pthread_t watcher;
    sigset_t all, before;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before); /* signals are for the other threads */
    int code = pthread_create(&watcher, NULL, end_with_launcher, NULL);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (code != 0) {
        return weir_error_set_errno(err, code, "cannot start a thread");
    }
    (void)pthread_detach(watcher);
    *out = me;
    return WEIR_OK;
}
