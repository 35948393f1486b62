#include "train/saver.h"

#include "base/clock.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Digests of a large net take a second that its steps should not pay; but not so low that on a busy
 * machine a checkpoint never gets done. */
#define LOW_PRIORITY 5
/* Servers have copied their shares already, and write them at the same time. */
#define SHARES_POLL_MS    5
#define SHARES_TIMEOUT_MS 120000

struct train_saver {
    char *dir;
    float *room; /**< The caller's while idle, the thread's while busy; image too. */
    size_t room_elems;
    struct checkpoint_image image;

    pthread_t thread;
    pthread_mutex_t lock; /**< Guards the rest. */
    pthread_cond_t changed;
    bool is_busy, is_stopping;
    struct weir_error failure;
};

static bool is_stopping(struct train_saver *saver)
{
    (void)pthread_mutex_lock(&saver->lock);
    bool is_stopping = saver->is_stopping;
    (void)pthread_mutex_unlock(&saver->lock);
    return is_stopping;
}

/** Worker 0's file makes the servers' shares a checkpoint, and removes older ones: not before
 *  they are on disk. If a server was lost they never are; the group's end then ends the wait. */
static weir_status wait_for_shares(struct train_saver *saver, struct weir_error *err)
{
    const struct timespec pause = {.tv_nsec = SHARES_POLL_MS * 1000000};
    const int64_t begin_ms = weir_mono_ms();
    while (!checkpoint_has_shares(&saver->image, saver->dir)) {
        if (is_stopping(saver) || weir_mono_ms() - begin_ms >= SHARES_TIMEOUT_MS) {
            return weir_error_set(err, WEIR_ERR_TIMEOUT,
                                  "step %llu: a parameter server's share did not come",
                                  (unsigned long long)saver->image.step);
        }
        (void)nanosleep(&pause, NULL);
    }
    return WEIR_OK;
}

static void *saver_main(void *context)
{
    struct train_saver *saver = context;
    (void)pthread_setname_np(pthread_self(), "weir-saver");
    (void)setpriority(PRIO_PROCESS, (id_t)syscall(SYS_gettid), LOW_PRIORITY);
    (void)pthread_mutex_lock(&saver->lock);
    while (!saver->is_stopping || saver->is_busy) {
        if (!saver->is_busy) {
            (void)pthread_cond_wait(&saver->changed, &saver->lock);
            continue;
        }
        (void)pthread_mutex_unlock(&saver->lock);
        struct weir_error err = {.status = WEIR_OK};
        weir_status status = wait_for_shares(saver, &err);
        if (status == WEIR_OK) {
            status = checkpoint_image_write(&saver->image, saver->dir, &err);
        }
        checkpoint_image_fini(&saver->image);
        (void)pthread_mutex_lock(&saver->lock);
        if (status != WEIR_OK && saver->failure.status == WEIR_OK) {
            saver->failure = err;
        }
        saver->is_busy = false;
        (void)pthread_cond_broadcast(&saver->changed);
    }
    (void)pthread_mutex_unlock(&saver->lock);
    return NULL;
}

weir_status train_saver_create(const char *dir, struct train_saver **out, struct weir_error *err)
{
    struct train_saver *saver = calloc(1, sizeof *saver);
    char *copy = strdup(dir);
    if (saver == NULL || copy == NULL) {
        free(saver);
        free(copy);
        return weir_error_set(err, WEIR_ERR_NOMEM, "no memory to save checkpoints");
    }
    saver->dir = copy;
    (void)pthread_mutex_init(&saver->lock, NULL);
    (void)pthread_cond_init(&saver->changed, NULL);
    int problem = pthread_create(&saver->thread, NULL, saver_main, saver);
    if (problem != 0) {
        (void)pthread_cond_destroy(&saver->changed);
        (void)pthread_mutex_destroy(&saver->lock);
        free(copy);
        free(saver);
        return weir_error_set_errno(err, problem, "no thread to save checkpoints");
    }
    *out = saver;
    return WEIR_OK;
}

bool train_saver_is_busy(struct train_saver *saver)
{
    if (saver == NULL) {
        return false;
    }
    (void)pthread_mutex_lock(&saver->lock);
    bool is_busy = saver->is_busy;
    (void)pthread_mutex_unlock(&saver->lock);
    return is_busy;
}

weir_status train_saver_wait(struct train_saver *saver, struct weir_error *err)
{
    if (saver == NULL) {
        return WEIR_OK;
    }
    (void)pthread_mutex_lock(&saver->lock);
    while (saver->is_busy) {
        (void)pthread_cond_wait(&saver->changed, &saver->lock);
    }
    weir_status status = saver->failure.status;
    if (status != WEIR_OK) {
        (void)weir_error_set(err, status, "%s", saver->failure.message);
    }
    (void)pthread_mutex_unlock(&saver->lock);
    return status;
}

/** Copy the image, which is the saver's own and borrows from the training, and set it going. */
static weir_status take_over(struct train_saver *saver, weir_status status, struct weir_error *err)
{
    size_t n = status == WEIR_OK ? checkpoint_image_elems(&saver->image) : 0;
    if (n > saver->room_elems) {
        free(saver->room);
        saver->room_elems = n;
        saver->room = malloc(n * sizeof *saver->room);
        if (saver->room == NULL) {
            saver->room_elems = 0;
            status = weir_error_set(err, WEIR_ERR_NOMEM, "no memory for a checkpoint of %zu bytes",
                                    n * sizeof *saver->room);
        }
    }
    if (status != WEIR_OK) {
        checkpoint_image_fini(&saver->image);
        return status;
    }
    checkpoint_image_move(&saver->image, saver->room);
    (void)pthread_mutex_lock(&saver->lock);
    saver->is_busy = true;
    (void)pthread_cond_broadcast(&saver->changed);
    (void)pthread_mutex_unlock(&saver->lock);
    return WEIR_OK;
}

weir_status train_saver_save(struct train_saver *saver, const struct checkpoint_parts *parts,
                             const struct train_state *state, struct weir_error *err)
{
    WEIR_TRY(train_saver_wait(saver, err));
    return take_over(saver, checkpoint_image_take(&saver->image, parts, state, err), err);
}

weir_status train_saver_save_share(struct train_saver *saver, uint64_t step,
                                   const struct checkpoint_share *share,
                                   const struct weir_optimizer *optimizer, struct weir_error *err)
{
    WEIR_TRY(train_saver_wait(saver, err));
    return take_over(saver, checkpoint_image_take_share(&saver->image, step, share, optimizer, err),
                     err);
}

void train_saver_destroy(struct train_saver *saver)
{
    if (saver == NULL) {
        return;
    }
    (void)pthread_mutex_lock(&saver->lock);
    saver->is_stopping = true;
    (void)pthread_cond_broadcast(&saver->changed);
    (void)pthread_mutex_unlock(&saver->lock);
    (void)pthread_join(saver->thread, NULL);
    (void)pthread_cond_destroy(&saver->changed);
    (void)pthread_mutex_destroy(&saver->lock);
    free(saver->room);
    free(saver->dir);
    free(saver);
}
