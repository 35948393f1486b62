#include "cluster/kubernetes/scheduler/calls.h"

#include "base/macros.h"

#include <pthread.h>
#include <stdlib.h>

#define REPORT_MS 3000 /* a node may not answer for its pods */

/* One that waits. */
struct waiting {
    struct weir_arena arena;
    struct calls_one one;
    struct waiting *next;
};

struct line {
    struct waiting *first, **end;
};

/* A thread and its client. */
struct caller {
    struct calls *calls;
    struct weir_kube *kube;
    pthread_t thread;
    bool is_running;
};

struct calls {
    struct calls_config config;
    struct caller callers[CALLS_AT_ONCE];
    pthread_mutex_t lock; /* guards all below */
    pthread_cond_t woken;
    struct line urgent, rest;
    size_t n;
    bool is_stopping;
};

static void line_put(struct line *line, struct waiting *waiting)
{
    waiting->next = NULL;
    *line->end = waiting;
    line->end = &waiting->next;
}

static struct waiting *line_take(struct line *line)
{
    struct waiting *first = line->first;
    if (first != NULL) {
        line->first = first->next;
        line->end = line->first != NULL ? line->end : &line->first;
    }
    return first;
}

static void drop(struct waiting *waiting)
{
    json_decref(waiting->one.body);
    json_decref(waiting->one.with);
    weir_arena_fini(&waiting->arena);
    free(waiting);
}

/* @return NULL: it is over. */
static struct waiting *await(struct calls *calls)
{
    struct waiting *next = NULL;
    pthread_mutex_lock(&calls->lock);
    while (!calls->is_stopping && calls->n == 0) {
        pthread_cond_wait(&calls->woken, &calls->lock);
    }
    if (!calls->is_stopping) {
        next = line_take(&calls->urgent);
        next = next != NULL ? next : line_take(&calls->rest);
        calls->n--;
    }
    pthread_mutex_unlock(&calls->lock);
    return next;
}

static weir_status ask_one(struct caller *caller, struct waiting *waiting, json_t **out_answer,
                           struct weir_kube_refusal *refusal, struct weir_error *err)
{
    struct calls_one *one = &waiting->one;
    const struct weir_kube_call call = {.method = one->method,
                                        .path = one->path,
                                        .query = one->query,
                                        .content_type = one->content_type,
                                        .body = one->body,
                                        .timeout_ms = one->kind == CALLS_REPORT ? REPORT_MS : 0,
                                        .takes_no = one->kind < CALLS_SAY};
    weir_status status = one->before != NULL
                             ? one->before(caller->kube, one->with, &waiting->arena, refusal, err)
                             : WEIR_OK;
    one->has_failed_before = status != WEIR_OK;
    return status != WEIR_OK
               ? status
               : weir_kube_call(caller->kube, &call, &waiting->arena, out_answer, refusal, err);
}

static void ask(struct caller *caller, struct waiting *waiting)
{
    struct weir_kube_refusal refusal = {.reason = ""};
    struct weir_error err;
    json_t *answer = NULL;
    bool is_read = waiting->one.kind == CALLS_REPORT;
    weir_status status = ask_one(caller, waiting, is_read ? &answer : NULL, &refusal, &err);
    waiting->one.answer = answer;
    if (status != WEIR_ERR_CANCELLED) {
        caller->calls->config.done(caller->calls->config.context, &waiting->one, status, &refusal,
                                   &err);
    }
    json_decref(answer);
}

static void *caller_main(void *context)
{
    struct caller *caller = context;
    struct waiting *waiting;
    while ((waiting = await(caller->calls)) != NULL) {
        ask(caller, waiting);
        drop(waiting);
    }
    return NULL;
}

static weir_status start_caller(struct calls *calls, struct caller *caller, struct weir_error *err)
{
    caller->calls = calls;
    WEIR_TRY(weir_kube_open(calls->config.kube, &caller->kube, err));
    int reason = pthread_create(&caller->thread, NULL, caller_main, caller);
    caller->is_running = reason == 0;
    return reason == 0 ? WEIR_OK : weir_error_set_errno(err, reason, "cannot start a thread");
}

weir_status calls_start(const struct calls_config *config, struct calls **out,
                        struct weir_error *err)
{
    struct calls *calls = weir_xalloc(sizeof *calls);
    *calls = (struct calls){.config = *config};
    calls->urgent.end = &calls->urgent.first;
    calls->rest.end = &calls->rest.first;
    pthread_mutex_init(&calls->lock, NULL);
    pthread_cond_init(&calls->woken, NULL);
    for (size_t i = 0; i < CALLS_AT_ONCE; i++) {
        weir_status status = start_caller(calls, &calls->callers[i], err);
        if (status != WEIR_OK) {
            calls_stop(calls);
            return status;
        }
    }
    *out = calls;
    return WEIR_OK;
}

void calls_stop(struct calls *calls)
{
    if (calls == NULL) {
        return;
    }
    pthread_mutex_lock(&calls->lock);
    calls->is_stopping = true;
    pthread_cond_broadcast(&calls->woken);
    pthread_mutex_unlock(&calls->lock);
    for (size_t i = 0; i < CALLS_AT_ONCE; i++) {
        struct caller *caller = &calls->callers[i];
        if (caller->is_running) {
            weir_kube_cancel(caller->kube);
            pthread_join(caller->thread, NULL);
        }
        weir_kube_close(caller->kube);
    }
    struct waiting *waiting;
    while ((waiting = line_take(&calls->urgent)) != NULL ||
           (waiting = line_take(&calls->rest)) != NULL) {
        drop(waiting);
    }
    pthread_cond_destroy(&calls->woken);
    pthread_mutex_destroy(&calls->lock);
    free(calls);
}

bool calls_ask(struct calls *calls, const struct calls_one *one)
{
    struct waiting *waiting = weir_xalloc(sizeof *waiting);
    weir_arena_init(&waiting->arena, 0);
    waiting->one =
        (struct calls_one){.kind = one->kind,
                           .uid = weir_arena_strdup(&waiting->arena, one->uid),
                           .about = weir_arena_strdup(&waiting->arena, one->about),
                           .method = weir_arena_strdup(&waiting->arena, one->method),
                           .path = weir_arena_strdup(&waiting->arena, one->path),
                           .query = weir_arena_strdup(&waiting->arena, one->query),
                           .content_type = weir_arena_strdup(&waiting->arena, one->content_type),
                           .body = one->body,
                           .before = one->before,
                           .with = one->with};
    pthread_mutex_lock(&calls->lock);
    bool has_room = calls->n < CALLS_MAX && !calls->is_stopping;
    if (has_room) {
        line_put(one->kind < CALLS_SAY ? &calls->urgent : &calls->rest, waiting);
        calls->n++;
        pthread_cond_signal(&calls->woken);
    }
    pthread_mutex_unlock(&calls->lock);
    if (!has_room) {
        drop(waiting);
    }
    return has_room;
}
