/* The gateway's thread: what comes in, what its sockets say, and time. */
#include "gateway/callers.h"
#include "gateway/gateway_private.h"
#include "gateway/grpc_front.h"

#include "base/arena.h"
#include "base/clock.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define EVENTS_AT_ONCE        256
#define PROJECT_CALLS_DEFAULT 4096

void gateway_call_fini(struct gateway_call *call)
{
    weir_buf_fini(&call->body_out);
}

static void wake(struct weir_gateway *gateway)
{
    (void)eventfd_write(gateway->wake_fd, 1);
}

void gateway_post(struct weir_gateway *gateway, struct gateway_call *call)
{
    call->next = NULL;
    call->state = CALL_NEW;
    call->inference_header_bytes = -1;
    pthread_mutex_lock(&gateway->lock);
    bool is_stopping = gateway->is_stopping;
    bool was_empty = gateway->in_first == NULL;
    if (!is_stopping && was_empty) {
        gateway->in_first = gateway->in_last = call;
    } else if (!is_stopping) {
        gateway->in_last->next = call;
        gateway->in_last = call;
    }
    pthread_mutex_unlock(&gateway->lock);
    if (is_stopping) {
        call->status = weir_error_set(&call->error, WEIR_ERR_UNAVAILABLE, "the server is stopping");
        call->retry_after_s = 1;
        call->state = CALL_DONE;
        call->done(call);
    } else if (was_empty) {
        wake(gateway);
    }
}

/* Take what others have left. False: the thread is to end. */
static bool take_in(struct weir_gateway *gateway)
{
    pthread_mutex_lock(&gateway->lock);
    struct published *published = gateway->published;
    struct gateway_call *call = gateway->in_first;
    bool is_stopping = gateway->is_stopping;
    gateway->published = NULL;
    gateway->in_first = gateway->in_last = NULL;
    pthread_mutex_unlock(&gateway->lock);
    if (published != NULL) {
        live_follow(gateway, published);
    }
    while (call != NULL) {
        struct gateway_call *next = call->next;
        dispatch_begin(gateway, call);
        call = next;
    }
    return !is_stopping;
}

static int timeout_of(const struct weir_gateway *gateway)
{
    if (gateway->next_sweep_ms == INT64_MAX) {
        return -1;
    }
    int64_t left_ms = gateway->next_sweep_ms - weir_mono_ms();
    return (int)WEIR_MAX((int64_t)0, WEIR_MIN(left_ms, (int64_t)60000));
}

static void *gateway_main(void *context)
{
    struct weir_gateway *gateway = context;
    struct epoll_event events[EVENTS_AT_ONCE];
    bool goes_on = true;
    while (goes_on) {
        int n = epoll_wait(gateway->epoll_fd, events, EVENTS_AT_ONCE, timeout_of(gateway));
        bool is_woken = false;
        gateway->now_ms = weir_mono_ms();
        for (int i = 0; i < n; i++) {
            if (events[i].data.ptr == NULL) {
                is_woken = true;
            } else {
                upstream_on_event(gateway, events[i].data.ptr, events[i].events);
            }
        }
        if (is_woken) {
            eventfd_t n_wakes;
            (void)eventfd_read(gateway->wake_fd, &n_wakes);
            goes_on = take_in(gateway);
        }
        if (gateway->n_calls > 0) {
            gateway->next_sweep_ms = WEIR_MIN(gateway->next_sweep_ms, gateway->now_ms + SWEEP_MS);
        }
        if (gateway->now_ms >= gateway->next_sweep_ms) {
            gateway->next_sweep_ms = INT64_MAX;
            gateway->next_sweep_ms = WEIR_MIN(gateway->next_sweep_ms, dispatch_sweep(gateway));
        }
        upstream_free_closed(gateway);
    }
    dispatch_fail_all(gateway);
    live_end(gateway);
    upstream_free_closed(gateway);
    return NULL;
}

static weir_status start(struct weir_gateway *gateway, struct weir_error *err)
{
    gateway->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    gateway->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = NULL};
    if (gateway->epoll_fd < 0 || gateway->wake_fd < 0 ||
        epoll_ctl(gateway->epoll_fd, EPOLL_CTL_ADD, gateway->wake_fd, &event) != 0) {
        return weir_error_set_errno(err, errno, "cannot start the gateway");
    }
    gateway->mirrors = mirrors_start(err);
    if (gateway->mirrors == NULL) {
        return WEIR_ERR_NOMEM;
    }
    int rc = pthread_create(&gateway->thread, NULL, gateway_main, gateway);
    if (rc != 0) {
        return weir_error_set_errno(err, rc, "cannot start the gateway's thread");
    }
    gateway->is_started = true;
    return WEIR_OK;
}

weir_status weir_gateway_create(const struct weir_gateway_config *config, struct weir_gateway **out,
                                struct weir_error *err)
{
    struct weir_gateway *gateway = weir_xalloc(sizeof *gateway);
    memset(gateway, 0, sizeof *gateway);
    gateway->config = *config;
    if (config->n_project_calls_max <= 0) {
        gateway->config.n_project_calls_max = PROJECT_CALLS_DEFAULT;
    }
    gateway->table = weir_gateway_table_create();
    gateway->next_sweep_ms = INT64_MAX;
    pthread_mutex_init(&gateway->lock, NULL);
    figures_registry_init(&gateway->registry);
    gateway->callers = callers_create();
    weir_status status = start(gateway, err);
    if (status != WEIR_OK) {
        weir_gateway_destroy(gateway);
        return status;
    }
    *out = gateway;
    return WEIR_OK;
}

void weir_gateway_stop(struct weir_gateway *gateway)
{
    if (gateway == NULL || !gateway->is_started) {
        return;
    }
    pthread_mutex_lock(&gateway->lock);
    gateway->is_stopping = true;
    pthread_mutex_unlock(&gateway->lock);
    wake(gateway);
    pthread_join(gateway->thread, NULL);
    gateway->is_started = false;
    grpc_front_stop(gateway->grpc);
    gateway->grpc = NULL;
}

void weir_gateway_destroy(struct weir_gateway *gateway)
{
    if (gateway == NULL) {
        return;
    }
    weir_gateway_stop(gateway);
    mirrors_stop(gateway->mirrors);
    published_free(gateway->published);
    weir_gateway_table_unref(gateway->table);
    figures_registry_fini(&gateway->registry);
    callers_destroy(gateway->callers);
    if (gateway->epoll_fd > 0) {
        (void)close(gateway->epoll_fd);
    }
    if (gateway->wake_fd > 0) {
        (void)close(gateway->wake_fd);
    }
    pthread_mutex_destroy(&gateway->lock);
    free(gateway);
}

void weir_gateway_publish(struct weir_gateway *gateway, struct weir_gateway_table *table)
{
    struct published *published = published_make(weir_gateway_table_ref(table));
    pthread_mutex_lock(&gateway->lock);
    struct weir_gateway_table *before = gateway->table;
    struct published *missed = gateway->published;
    gateway->table = table;
    gateway->published = published;
    pthread_mutex_unlock(&gateway->lock);
    wake(gateway);
    weir_gateway_table_unref(before);
    published_free(missed);
}

struct weir_gateway_table *weir_gateway_acquire(struct weir_gateway *gateway)
{
    pthread_mutex_lock(&gateway->lock);
    struct weir_gateway_table *table = weir_gateway_table_ref(gateway->table);
    pthread_mutex_unlock(&gateway->lock);
    return table;
}

void weir_gateway_figures_each(struct weir_gateway *gateway, weir_gateway_figures_fn fn,
                               void *context)
{
    figures_each(&gateway->registry, fn, context);
}

bool weir_gateway_load(struct weir_gateway *gateway, const char *deployment,
                       struct weir_gateway_load *out)
{
    return figures_load(&gateway->registry, deployment, out);
}

void weir_gateway_prometheus(struct weir_gateway *gateway, struct weir_buf *out)
{
    figures_prometheus(&gateway->registry, out);
}
