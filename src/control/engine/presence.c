#include "control/engine/presence.h"

#include "base/arena.h"
#include "base/clock.h"
#include "base/deadline.h"

#include <pthread.h>
#include <stdlib.h>

#define BEAT_MS 1000

struct presence {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t stopped;
    bool is_stopping;
    int64_t beat_ms; /* the last, by weir_boot_ms */
    int64_t gap_ms;  /* not taken yet */
};

/* Under the lock: whoever runs first after a gap sees it. */
static void beat(struct presence *presence)
{
    int64_t now_ms = weir_boot_ms();
    if (now_ms - presence->beat_ms > PRESENCE_LATE_MS) {
        presence->gap_ms += now_ms - presence->beat_ms;
    }
    presence->beat_ms = now_ms;
}

static void *presence_main(void *argument)
{
    struct presence *presence = argument;
    pthread_mutex_lock(&presence->lock);
    while (!presence->is_stopping) {
        struct timespec until = weir_deadline_after(BEAT_MS);
        (void)weir_cond_wait_until(&presence->stopped, &presence->lock, &until);
        beat(presence);
    }
    pthread_mutex_unlock(&presence->lock);
    return NULL;
}

weir_status presence_start(struct presence **out, struct weir_error *err)
{
    struct presence *presence = weir_xalloc(sizeof *presence);
    presence->beat_ms = weir_boot_ms();
    pthread_mutex_init(&presence->lock, NULL);
    pthread_cond_init(&presence->stopped, NULL);
    int reason = pthread_create(&presence->thread, NULL, presence_main, presence);
    if (reason != 0) {
        free(presence);
        return weir_error_set_errno(err, reason,
                                    "cannot start the thread that notes whether the server runs");
    }
    *out = presence;
    return WEIR_OK;
}

int64_t presence_take_gap_ms(struct presence *presence)
{
    pthread_mutex_lock(&presence->lock);
    beat(presence);
    int64_t gap_ms = presence->gap_ms;
    presence->gap_ms = 0;
    pthread_mutex_unlock(&presence->lock);
    return gap_ms;
}

void presence_stop(struct presence *presence)
{
    if (presence == NULL) {
        return;
    }
    pthread_mutex_lock(&presence->lock);
    presence->is_stopping = true;
    pthread_cond_signal(&presence->stopped);
    pthread_mutex_unlock(&presence->lock);
    pthread_join(presence->thread, NULL);
    pthread_cond_destroy(&presence->stopped);
    pthread_mutex_destroy(&presence->lock);
    free(presence);
}
