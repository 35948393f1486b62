#include "api/core/slow.h"

#include "base/clock.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define ANSWER_ARENA_BYTES ((size_t)16 << 20)

/* One question and its answer. */
struct asked {
    struct asked *next; /* Newest first. */
    char *question, *answer;
    enum slow_state state;
    bool is_taken; /* A thread is at it. */
    int64_t answered_ms;
    struct weir_error why;
};

struct slow {
    slow_fn fn;
    void *context;
    struct control_listener listener;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct asked *newest;
    bool is_stopping;
    pthread_t threads[SLOW_MAX_RUNNING];
    size_t n_threads;
};

static void asked_free(struct asked *asked)
{
    free(asked->question);
    free(asked->answer);
    free(asked);
}

/* ---- the threads ----------------------------------------------------------------------------- */

/* The oldest that nobody has taken. */
static struct asked *next_asked(struct slow *slow)
{
    struct asked *oldest = NULL;
    for (struct asked *asked = slow->newest; asked != NULL; asked = asked->next) {
        oldest = asked->state == SLOW_RUNNING && !asked->is_taken ? asked : oldest;
    }
    return oldest;
}

static void answer(struct slow *slow, struct asked *asked)
{
    struct weir_arena arena;
    struct weir_error why = {0};
    char *text = NULL;
    weir_arena_init(&arena, ANSWER_ARENA_BYTES);
    weir_status status = slow->fn(slow->context, asked->question, &arena, &text, &why);
    char *kept = status == WEIR_OK ? weir_xstrdup(text) : NULL;
    weir_arena_fini(&arena);
    pthread_mutex_lock(&slow->lock);
    asked->state = status == WEIR_OK ? SLOW_DONE : SLOW_REFUSED;
    asked->answer = kept;
    asked->why = why;
    asked->answered_ms = weir_mono_ms();
    if (!slow->is_stopping && slow->listener.wake != NULL) {
        slow->listener.wake(slow->listener.context);
    }
    pthread_mutex_unlock(&slow->lock);
}

static void *slow_main(void *context)
{
    struct slow *slow = context;
    pthread_mutex_lock(&slow->lock);
    while (!slow->is_stopping) {
        struct asked *asked = next_asked(slow);
        if (asked == NULL) {
            pthread_cond_wait(&slow->changed, &slow->lock);
            continue;
        }
        asked->is_taken = true;
        pthread_mutex_unlock(&slow->lock);
        answer(slow, asked);
        pthread_mutex_lock(&slow->lock);
    }
    pthread_mutex_unlock(&slow->lock);
    return NULL;
}

struct slow *slow_create(slow_fn fn, void *context, const struct control_listener *listener)
{
    struct slow *slow = weir_xalloc(sizeof *slow);
    memset(slow, 0, sizeof *slow);
    slow->fn = fn;
    slow->context = context;
    slow->listener = *listener;
    pthread_mutex_init(&slow->lock, NULL);
    pthread_cond_init(&slow->changed, NULL);
    return slow;
}

/* Threads come with the first questions: a server that asks nothing has none. */
static weir_status have_threads(struct slow *slow, struct weir_error *err)
{
    while (slow->n_threads < SLOW_MAX_RUNNING) {
        int reason = pthread_create(&slow->threads[slow->n_threads], NULL, slow_main, slow);
        if (reason != 0) {
            return slow->n_threads > 0 ? WEIR_OK
                                       : weir_error_set_errno(err, reason, "cannot start a thread");
        }
        slow->n_threads++;
    }
    return WEIR_OK;
}

void slow_stop(struct slow *slow)
{
    if (slow == NULL) {
        return;
    }
    pthread_mutex_lock(&slow->lock);
    slow->is_stopping = true;
    pthread_cond_broadcast(&slow->changed);
    size_t n = slow->n_threads;
    slow->n_threads = 0;
    pthread_mutex_unlock(&slow->lock);
    for (size_t i = 0; i < n; i++) {
        pthread_join(slow->threads[i], NULL);
    }
}

void slow_destroy(struct slow *slow)
{
    if (slow == NULL) {
        return;
    }
    slow_stop(slow);
    while (slow->newest != NULL) {
        struct asked *asked = slow->newest;
        slow->newest = asked->next;
        asked_free(asked);
    }
    pthread_cond_destroy(&slow->changed);
    pthread_mutex_destroy(&slow->lock);
    free(slow);
}

/* ---- for handlers ---------------------------------------------------------------------------- */

/* Old answers go. How many have none? */
static size_t forget_old(struct slow *slow)
{
    int64_t now_ms = weir_mono_ms();
    size_t n_waiting = 0;
    for (struct asked **at = &slow->newest; *at != NULL;) {
        struct asked *asked = *at;
        bool is_answered = asked->state != SLOW_RUNNING;
        n_waiting += !is_answered;
        if (is_answered && now_ms - asked->answered_ms > SLOW_KEPT_MS) {
            *at = asked->next;
            asked_free(asked);
        } else {
            at = &asked->next;
        }
    }
    return n_waiting;
}

static struct asked *find(const struct slow *slow, const char *question)
{
    struct asked *asked = slow->newest;
    while (asked != NULL && strcmp(asked->question, question) != 0) {
        asked = asked->next;
    }
    return asked;
}

static struct asked *ask(struct slow *slow, const char *question, size_t n_waiting,
                         struct weir_error *err)
{
    if (slow->is_stopping || n_waiting >= SLOW_MAX_WAITING) {
        (void)weir_error_set(err, WEIR_ERR_UNAVAILABLE,
                             "%d questions wait for their answers, or the server stops: try again "
                             "later",
                             SLOW_MAX_WAITING);
        return NULL;
    }
    if (have_threads(slow, err) != WEIR_OK) {
        return NULL;
    }
    struct asked *asked = weir_xalloc(sizeof *asked);
    memset(asked, 0, sizeof *asked);
    asked->question = weir_xstrdup(question);
    asked->next = slow->newest;
    slow->newest = asked;
    pthread_cond_signal(&slow->changed);
    return asked;
}

enum slow_state slow_look(struct slow *slow, const char *question, struct weir_arena *arena,
                          char **out, struct weir_error *err)
{
    pthread_mutex_lock(&slow->lock);
    size_t n_waiting = forget_old(slow);
    struct asked *asked = find(slow, question);
    asked = asked != NULL ? asked : ask(slow, question, n_waiting, err);
    enum slow_state state = asked != NULL ? asked->state : SLOW_REFUSED;
    if (asked != NULL && state == SLOW_DONE) {
        *out = weir_arena_strdup(arena, asked->answer);
    } else if (asked != NULL && state == SLOW_REFUSED) {
        *err = asked->why;
    }
    pthread_mutex_unlock(&slow->lock);
    return state;
}
