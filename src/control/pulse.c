#include "control/pulse.h"

#include "base/arena.h"
#include "base/clock.h"
#include "base/deadline.h"

#include <pthread.h>
#include <stdlib.h>

#define BEAT_MS 1000

struct pulse {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t stopped;
    bool is_stopping;
    int64_t beat_ms; /* the last, by weir_boot_ms */
    int64_t gap_ms;  /* not taken yet */
};

/* Under the lock: whoever runs first after a gap sees it. */
static void beat(struct pulse *pulse)
{
    int64_t now_ms = weir_boot_ms();
    if (now_ms - pulse->beat_ms > PULSE_LATE_MS) {
        pulse->gap_ms += now_ms - pulse->beat_ms;
    }
    pulse->beat_ms = now_ms;
}

static void *pulse_main(void *argument)
{
    struct pulse *pulse = argument;
    pthread_mutex_lock(&pulse->lock);
    while (!pulse->is_stopping) {
        struct timespec until = weir_deadline_after(BEAT_MS);
        (void)weir_cond_wait_until(&pulse->stopped, &pulse->lock, &until);
        beat(pulse);
    }
    pthread_mutex_unlock(&pulse->lock);
    return NULL;
}

weir_status pulse_start(struct pulse **out, struct weir_error *err)
{
    struct pulse *pulse = weir_xalloc(sizeof *pulse);
    pulse->beat_ms = weir_boot_ms();
    pthread_mutex_init(&pulse->lock, NULL);
    pthread_cond_init(&pulse->stopped, NULL);
    int reason = pthread_create(&pulse->thread, NULL, pulse_main, pulse);
    if (reason != 0) {
        free(pulse);
        return weir_error_set_errno(err, reason, "cannot start the pulse's thread");
    }
    *out = pulse;
    return WEIR_OK;
}

int64_t pulse_take_gap_ms(struct pulse *pulse)
{
    pthread_mutex_lock(&pulse->lock);
    beat(pulse);
    int64_t gap_ms = pulse->gap_ms;
    pulse->gap_ms = 0;
    pthread_mutex_unlock(&pulse->lock);
    return gap_ms;
}

void pulse_stop(struct pulse *pulse)
{
    if (pulse == NULL) {
        return;
    }
    pthread_mutex_lock(&pulse->lock);
    pulse->is_stopping = true;
    pthread_cond_signal(&pulse->stopped);
    pthread_mutex_unlock(&pulse->lock);
    pthread_join(pulse->thread, NULL);
    pthread_cond_destroy(&pulse->stopped);
    pthread_mutex_destroy(&pulse->lock);
    free(pulse);
}
