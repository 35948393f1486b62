/* Queue, handler threads, waiting list and the timer thread: who calls the handler, and when. */
#include "http/server_private.h"

#include "base/clock.h"
#include "base/deadline.h"
#include "http/known.h"
#include "http/pack.h"

#include <assert.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#define WATCH_INTERVAL_MS 1000

static void list_push(struct http_list *list, struct http_exchange *x)
{
    x->next = NULL;
    x->previous = list->tail;
    if (list->tail != NULL) {
        list->tail->next = x;
    } else {
        list->head = x;
    }
    list->tail = x;
    list->n++;
}

static void list_push_front(struct http_list *list, struct http_exchange *x)
{
    x->previous = NULL;
    x->next = list->head;
    if (list->head != NULL) {
        list->head->previous = x;
    } else {
        list->tail = x;
    }
    list->head = x;
    list->n++;
}

static void list_remove(struct http_list *list, struct http_exchange *x)
{
    if (x->previous != NULL) {
        x->previous->next = x->next;
    } else {
        list->head = x->next;
    }
    if (x->next != NULL) {
        x->next->previous = x->previous;
    } else {
        list->tail = x->previous;
    }
    x->next = x->previous = NULL;
    list->n--;
}

static struct http_class *class_of(const struct http_exchange *x)
{
    return &x->server->classes[x->rule.of_class];
}

static void enqueue(struct http_exchange *x, enum exchange_job job)
{
    x->phase = PHASE_QUEUED;
    x->job = job;
    list_push(&class_of(x)->queue, x);
    pthread_cond_signal(&x->server->work_ready);
}

bool pool_submit(struct http_exchange *x, enum exchange_job job)
{
    struct weir_http_server *server = x->server;
    int most = server->config.max_queued_of[x->rule.of_class];
    pthread_mutex_lock(&server->lock);
    bool is_full = class_of(x)->n_fresh >= (size_t)most;
    bool is_stopping = server->is_stopping;
    if (!is_full && !is_stopping) {
        class_of(x)->n_fresh++;
        server->n_requests += job == JOB_HANDLE;
        server->n_inflight += !x->is_accepted;
        x->is_accepted = true;
        x->is_fresh = true;
        MHD_suspend_connection(x->connection);
        enqueue(x, job);
    } else {
        server->n_refused++;
    }
    pthread_mutex_unlock(&server->lock);
    if (is_stopping) {
        weir_http_response_errorf(&x->response, WEIR_ERR_UNAVAILABLE, "the server is stopping");
        weir_http_response_header(&x->response, "Connection", "close");
    } else if (is_full) {
        weir_http_response_errorf(&x->response, WEIR_ERR_UNAVAILABLE,
                                  "the server is busy: %d requests are waiting; try again", most);
    }
    return !is_full && !is_stopping;
}

void pool_submit_pull(struct http_exchange *x)
{
    MHD_suspend_connection(x->connection);
    enqueue(x, JOB_PULL);
}

/* Give a suspended exchange back to its I/O thread. Lock held. */
static void hand_back(struct http_exchange *x, enum exchange_phase phase)
{
    x->phase = phase;
    MHD_resume_connection(x->connection);
}

/* Was one of the topics woken since the exchange was last looked at? Lock held. */
static bool was_woken(const struct http_exchange *x)
{
    for (int i = 0; i < 64; i++) {
        if ((x->response.topics >> i & 1) != 0 &&
            x->server->topic_generation[i] > x->seen_generation) {
            return true;
        }
    }
    return false;
}

/* Put into the waiting list until `due_ms`, unless a wake came in between. Lock held. */
static void await(struct http_exchange *x, int64_t due_ms)
{
    struct weir_http_server *server = x->server;
    if (was_woken(x)) {
        enqueue(x, x->job);
        return;
    }
    x->phase = PHASE_WAITING;
    list_push(&server->waiting, x);
    if (due_ms < server->next_deadline_ms) {
        server->next_deadline_ms = due_ms;
        pthread_cond_signal(&server->timer_ready);
    }
}

/* False: the exchange has waited long enough and is still the caller's, with an error as answer. */
static bool handle_wait(struct http_exchange *x)
{
    struct weir_http_server *server = x->server;
    if (x->request.is_expired) {
        weir_http_response_errorf(&x->response, WEIR_ERR_INTERNAL,
                                  "the request's waiting time is over and it has no answer");
        return false;
    }
    pthread_mutex_lock(&server->lock);
    int64_t now = weir_mono_ms();
    if (x->deadline_ms == 0) {
        int64_t wait_ms = WEIR_MAX((int64_t)0, WEIR_MIN(x->response.wait_ms, WAIT_MAX_MS));
        x->deadline_ms = now + wait_ms;
    }
    if (now >= x->deadline_ms || server->is_stopping) {
        x->request.is_expired = true;
        enqueue(x, JOB_HANDLE);
    } else {
        await(x, x->deadline_ms);
    }
    pthread_mutex_unlock(&server->lock);
    return true;
}

/* Work that ends goes before requests that begin. Lock held. */
static void enqueue_resumed(struct http_exchange *x)
{
    x->phase = PHASE_QUEUED;
    x->job = JOB_HANDLE;
    list_push_front(&class_of(x)->queue, x);
    pthread_cond_signal(&x->server->work_ready);
}

void pool_begin_later(struct http_exchange *x)
{
    pthread_mutex_lock(&x->server->lock);
    x->server->n_later += !x->is_counted_later;
    x->is_counted_later = true;
    x->is_later = true;
    x->is_resumed = false;
    pthread_mutex_unlock(&x->server->lock);
}

/* The handler has returned with "later": the handle may have come back already. */
static void handle_later(struct http_exchange *x)
{
    pthread_mutex_lock(&x->server->lock);
    x->phase = PHASE_LATER;
    if (x->is_resumed) {
        enqueue_resumed(x);
    }
    pthread_mutex_unlock(&x->server->lock);
}

/* The handler was called with what it waited for, and does not wait for more. */
static void end_later(struct http_exchange *x)
{
    if (!x->is_counted_later) {
        return;
    }
    assert(!x->is_later); /* a handler that holds a handle returns with "later" */
    pthread_mutex_lock(&x->server->lock);
    x->is_counted_later = false;
    if (--x->server->n_later == 0) {
        pthread_cond_broadcast(&x->server->idle);
    }
    pthread_mutex_unlock(&x->server->lock);
}

void weir_http_later_resume(struct weir_http_later *later)
{
    struct http_exchange *x = (struct http_exchange *)later;
    struct weir_http_server *server = x->server;
    pthread_mutex_lock(&server->lock);
    assert(x->is_later);
    x->is_later = false;
    x->is_resumed = true;
    if (x->phase == PHASE_LATER) {
        enqueue_resumed(x);
    }
    pthread_mutex_unlock(&server->lock);
}

bool weir_http_later_is_gone(const struct weir_http_later *later)
{
    const struct http_exchange *x = (const struct http_exchange *)later;
    /* The connection is suspended, so that its descriptor stays. */
    struct pollfd poll_fd = {.fd = x->watch != NULL ? x->watch->fd : -1, .events = POLLRDHUP};
    return poll_fd.fd >= 0 && poll(&poll_fd, 1, 0) > 0 &&
           (poll_fd.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
}

static void start_events(struct http_exchange *x)
{
    events_make_response(x);
    pthread_mutex_lock(&x->server->lock);
    x->server->n_streams++;
    pthread_mutex_unlock(&x->server->lock);
}

static void run_handler(struct http_exchange *x, bool is_late)
{
    struct weir_http_server *server = x->server;
    bool is_admission = x->job == JOB_ADMIT;
    response_fini(&x->response); /* of an earlier call that ended with "wait" */
    response_init(&x->response);
    if (is_late) {
        weir_http_response_errorf(&x->response, WEIR_ERR_UNAVAILABLE, "the server has stopped");
    } else {
        weir_http_handler_fn call = is_admission ? server->config.admit : server->handler;
        call(server->context, &x->request, &x->response);
    }
    if (x->response.kind == ANSWER_LATER && !is_admission) {
        handle_later(x);
        return; /* not ours any more */
    }
    end_later(x);
    if (x->response.kind == ANSWER_WAIT && !is_admission && handle_wait(x)) {
        return;
    }
    enum exchange_phase phase = PHASE_ANSWERED;
    if (x->response.kind == ANSWER_EVENTS && !is_admission) {
        start_events(x);
    } else if (x->response.kind == ANSWER_NONE && is_admission) {
        phase = PHASE_ADMITTED;
    } else if (x->response.kind != ANSWER_READY) {
        weir_http_response_errorf(&x->response, WEIR_ERR_INTERNAL, "%s %s has no answer",
                                  x->request.method, x->request.path);
    }
    response_name(x);
    response_pack(x);
    pthread_mutex_lock(&server->lock);
    hand_back(x, phase);
    pthread_mutex_unlock(&server->lock);
}

static void run_pull(struct http_exchange *x)
{
    struct weir_http_server *server = x->server;
    weir_buf_reset(&x->pending);
    x->n_pending_sent = 0;
    weir_status status = x->response.next_fn(x->response.stream_state, &x->pending);
    pthread_mutex_lock(&server->lock);
    int64_t now = weir_mono_ms();
    x->is_stream_over = status != WEIR_OK || x->pending.status != WEIR_OK || server->is_stopping;
    if (x->pending.len > 0 || x->is_stream_over) {
        x->quiet_since_ms = now;
        hand_back(x, PHASE_ANSWERED);
    } else {
        await(x, x->quiet_since_ms + x->server->config.keep_alive_ms);
    }
    pthread_mutex_unlock(&server->lock);
}

/* Handlers that one class may have: there is one left for each other, if there are so many. */
static size_t most_running(const struct weir_http_server *server)
{
    int n_handlers = server->config.n_handlers;
    return (size_t)WEIR_MAX(n_handlers - (server->config.n_classes - 1), 1 + (n_handlers - 1) / 2);
}

/* The classes take turns. NULL: nothing waits, or what waits has all the handlers that it may have, of which each looks
 * again when it is done. Lock held. */
static struct http_exchange *take_next(struct weir_http_server *server)
{
    int n_classes = server->config.n_classes;
    size_t most = server->is_shutdown ? SIZE_MAX : most_running(server);
    for (int i = 0; i < n_classes; i++) {
        int i_class = (server->i_turn + i) % n_classes;
        struct http_class *of = &server->classes[i_class];
        struct http_exchange *x = of->queue.head;
        if (x != NULL && of->n_running < most) {
            server->i_turn = (i_class + 1) % n_classes;
            list_remove(&of->queue, x);
            of->n_fresh -= x->is_fresh;
            of->n_running++;
            x->is_fresh = false;
            return x;
        }
    }
    return NULL;
}

static void *handler_main(void *context)
{
    struct weir_http_server *server = context;
    pthread_mutex_lock(&server->lock);
    for (;;) {
        struct http_exchange *x;
        while ((x = take_next(server)) == NULL && !server->is_shutdown) {
            pthread_cond_wait(&server->work_ready, &server->lock);
        }
        if (x == NULL) {
            break;
        }
        struct http_class *of = class_of(x); /* x may be gone when its handler returns */
        x->phase = PHASE_RUNNING;
        x->seen_generation = server->generation;
        bool is_late = server->is_shutdown;
        pthread_mutex_unlock(&server->lock);
        if (x->job == JOB_PULL) {
            run_pull(x);
        } else {
            run_handler(x, is_late);
        }
        pthread_mutex_lock(&server->lock);
        of->n_running--;
        if (of->queue.head != NULL) { /* this thread may take another class's, and others sleep */
            pthread_cond_signal(&server->work_ready);
        }
    }
    pthread_mutex_unlock(&server->lock);
    return NULL;
}

void weir_http_wake(struct weir_http_server *server, uint64_t topics)
{
    pthread_mutex_lock(&server->lock);
    server->generation++;
    for (int i = 0; i < 64; i++) {
        if ((topics >> i & 1) != 0) {
            server->topic_generation[i] = server->generation;
        }
    }
    struct http_exchange *next;
    for (struct http_exchange *x = server->waiting.head; x != NULL; x = next) {
        next = x->next;
        if ((x->response.topics & topics) != 0) {
            list_remove(&server->waiting, x);
            enqueue(x, x->job);
        }
    }
    pthread_mutex_unlock(&server->lock);
}

/* The time of a waiting exchange is over: a long poll gets its last call, a stream a comment. */
static void expire(struct http_exchange *x, int64_t now)
{
    list_remove(&x->server->waiting, x);
    if (x->job == JOB_PULL) {
        weir_buf_reset(&x->pending);
        x->n_pending_sent = 0;
        (void)weir_buf_puts(&x->pending, ": keep-alive\n\n");
        x->quiet_since_ms = now;
        hand_back(x, PHASE_ANSWERED);
    } else {
        x->request.is_expired = true;
        enqueue(x, JOB_HANDLE);
    }
}

static int64_t due_of(const struct http_exchange *x)
{
    return x->job == JOB_PULL ? x->quiet_since_ms + x->server->config.keep_alive_ms
                              : x->deadline_ms;
}

/* Expire what is due; when is the next one due? Lock held. */
static int64_t expire_due(struct weir_http_server *server, int64_t now)
{
    int64_t earliest = INT64_MAX;
    struct http_exchange *next;
    for (struct http_exchange *x = server->waiting.head; x != NULL; x = next) {
        next = x->next;
        int64_t due_ms = due_of(x);
        if (due_ms <= now) {
            expire(x, now);
        } else {
            earliest = WEIR_MIN(earliest, due_ms);
        }
    }
    return earliest;
}

/* Cut connections that send their headers or body, or take an answer, too slowly (slow loris). Lock
 * held. */
static void cut_slow(struct weir_http_server *server, int64_t now)
{
    int64_t window_ms = (int64_t)server->config.idle_timeout_s * 1000;
    for (struct http_watch *watch = server->watches; watch != NULL; watch = watch->next) {
        bool has_window = watch->is_in_body || watch->is_sending;
        bool holds = has_window ? weir_pace_holds(&watch->pace, now, window_ms, SLOW_BODY_BYTES_S)
                                : !watch->is_reading || now - watch->pace.since_ms <= 2 * window_ms;
        if (!holds && !watch->is_cut) {
            watch_cut(watch);
        }
    }
}

static void *timer_main(void *context)
{
    struct weir_http_server *server = context;
    int64_t next_watch_ms = weir_mono_ms() + WATCH_INTERVAL_MS;
    pthread_mutex_lock(&server->lock);
    while (!server->is_shutdown) {
        pthread_mutex_unlock(&server->lock);
        exchange_reap(server);
        pthread_mutex_lock(&server->lock);
        if (server->is_shutdown) {
            break; /* meanwhile */
        }
        int64_t now = weir_mono_ms();
        if (now >= next_watch_ms) {
            cut_slow(server, now);
            next_watch_ms = now + WATCH_INTERVAL_MS;
        }
        if (now >= server->next_deadline_ms) {
            server->next_deadline_ms = expire_due(server, now);
        }
        int64_t until_ms = WEIR_MIN(server->next_deadline_ms, next_watch_ms);
        struct timespec until = weir_deadline_at(until_ms);
        (void)weir_cond_wait_until(&server->timer_ready, &server->lock, &until);
    }
    pthread_mutex_unlock(&server->lock);
    return NULL;
}

weir_status pool_start(struct weir_http_server *server, struct weir_error *err)
{
    server->next_deadline_ms = INT64_MAX;
    server->handler_threads =
        weir_xalloc((size_t)server->config.n_handlers * sizeof *server->handler_threads);
    int rc = pthread_create(&server->timer_thread, NULL, timer_main, server);
    if (rc != 0) {
        return weir_error_set_errno(err, rc, "cannot start the HTTP server's timer thread");
    }
    server->is_started = true;
    for (int i = 0; i < server->config.n_handlers; i++) {
        rc = pthread_create(&server->handler_threads[i], NULL, handler_main, server);
        if (rc != 0) {
            return weir_error_set_errno(err, rc, "cannot start HTTP handler thread %d", i);
        }
        server->n_handler_threads++;
    }
    return WEIR_OK;
}

void pool_begin_stop(struct weir_http_server *server)
{
    pthread_mutex_lock(&server->lock);
    server->is_stopping = true;
    while (server->waiting.head != NULL) {
        struct http_exchange *x = server->waiting.head;
        list_remove(&server->waiting, x);
        x->request.is_expired = x->job == JOB_HANDLE;
        enqueue(x, x->job); /* a stream's pull ends it: is_stopping */
    }
    pthread_mutex_unlock(&server->lock);
}

void pool_stop(struct weir_http_server *server)
{
    pthread_mutex_lock(&server->lock);
    server->is_shutdown = true;
    pthread_cond_broadcast(&server->work_ready);
    pthread_cond_broadcast(&server->timer_ready);
    pthread_mutex_unlock(&server->lock);
    for (size_t i = 0; i < server->n_handler_threads; i++) {
        pthread_join(server->handler_threads[i], NULL);
    }
    if (server->is_started) {
        pthread_join(server->timer_thread, NULL);
    }
    free(server->handler_threads);
    server->handler_threads = NULL;
    server->n_handler_threads = 0; /* stopping twice is harmless */
    server->is_started = false;
}
