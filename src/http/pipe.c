/* A pipe: a ring of bytes between two threads. */
#include "http/pipe.h"

#include "base/macros.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct watcher {
    weir_http_pipe_fn fn;
    void *context;
};

struct weir_http_pipe {
    pthread_mutex_t lock;
    int n_refs;
    char *bytes; /* NULL: nothing came yet */
    size_t size, begin, len;
    bool is_ended, is_closed;
    weir_status status;
    struct watcher bytes_watcher, room_watcher;
};

struct weir_http_pipe *weir_http_pipe_create(size_t max_bytes)
{
    struct weir_http_pipe *pipe = weir_xalloc(sizeof *pipe);
    *pipe = (struct weir_http_pipe){.n_refs = 1, .size = max_bytes};
    pthread_mutex_init(&pipe->lock, NULL);
    return pipe;
}

struct weir_http_pipe *weir_http_pipe_ref(struct weir_http_pipe *pipe)
{
    pthread_mutex_lock(&pipe->lock);
    pipe->n_refs++;
    pthread_mutex_unlock(&pipe->lock);
    return pipe;
}

void weir_http_pipe_unref(struct weir_http_pipe *pipe)
{
    if (pipe == NULL) {
        return;
    }
    pthread_mutex_lock(&pipe->lock);
    bool is_last = --pipe->n_refs == 0;
    pthread_mutex_unlock(&pipe->lock);
    if (is_last) {
        pthread_mutex_destroy(&pipe->lock);
        free(pipe->bytes);
        free(pipe);
    }
}

static void wake(const struct watcher *watcher)
{
    if (watcher->fn != NULL) {
        watcher->fn(watcher->context);
    }
}

/* At most two pieces: up to the end of the ring, and from its beginning. Lock held. */
static void put(struct weir_http_pipe *pipe, const char *bytes, size_t len)
{
    size_t at = (pipe->begin + pipe->len) % pipe->size;
    size_t first = WEIR_MIN(len, pipe->size - at);
    memcpy(pipe->bytes + at, bytes, first);
    memcpy(pipe->bytes, bytes + first, len - first);
    pipe->len += len;
}

size_t weir_http_pipe_write(struct weir_http_pipe *pipe, const void *bytes, size_t len)
{
    pthread_mutex_lock(&pipe->lock);
    size_t n = len;
    if (!pipe->is_closed && !pipe->is_ended) {
        n = WEIR_MIN(len, pipe->size - pipe->len);
        if (pipe->bytes == NULL && n > 0) {
            pipe->bytes = weir_xalloc(pipe->size);
        }
        if (n > 0) {
            put(pipe, bytes, n);
            wake(&pipe->bytes_watcher);
        }
    }
    pthread_mutex_unlock(&pipe->lock);
    return n;
}

size_t weir_http_pipe_room(struct weir_http_pipe *pipe)
{
    pthread_mutex_lock(&pipe->lock);
    size_t n = pipe->is_closed ? SIZE_MAX : pipe->size - pipe->len;
    pthread_mutex_unlock(&pipe->lock);
    return n;
}

void weir_http_pipe_end(struct weir_http_pipe *pipe, weir_status status)
{
    pthread_mutex_lock(&pipe->lock);
    if (!pipe->is_ended) {
        pipe->is_ended = true;
        pipe->status = status;
        wake(&pipe->bytes_watcher);
    }
    pthread_mutex_unlock(&pipe->lock);
}

size_t weir_http_pipe_read(struct weir_http_pipe *pipe, void *out, size_t size)
{
    pthread_mutex_lock(&pipe->lock);
    size_t n = WEIR_MIN(size, pipe->len);
    if (n > 0) {
        size_t first = WEIR_MIN(n, pipe->size - pipe->begin);
        memcpy(out, pipe->bytes + pipe->begin, first);
        memcpy((char *)out + first, pipe->bytes, n - first);
        pipe->begin = (pipe->begin + n) % pipe->size;
        pipe->len -= n;
        wake(&pipe->room_watcher);
    }
    pthread_mutex_unlock(&pipe->lock);
    return n;
}

bool weir_http_pipe_is_over(struct weir_http_pipe *pipe, weir_status *out)
{
    pthread_mutex_lock(&pipe->lock);
    bool is_over = pipe->is_ended && pipe->len == 0;
    if (is_over) {
        *out = pipe->status;
    }
    pthread_mutex_unlock(&pipe->lock);
    return is_over;
}

void weir_http_pipe_close(struct weir_http_pipe *pipe)
{
    pthread_mutex_lock(&pipe->lock);
    if (!pipe->is_closed) {
        pipe->is_closed = true;
        pipe->begin = pipe->len = 0;
        free(pipe->bytes);
        pipe->bytes = NULL;
        wake(&pipe->room_watcher);
    }
    pthread_mutex_unlock(&pipe->lock);
}

bool weir_http_pipe_is_closed(struct weir_http_pipe *pipe)
{
    pthread_mutex_lock(&pipe->lock);
    bool is_closed = pipe->is_closed;
    pthread_mutex_unlock(&pipe->lock);
    return is_closed;
}

static void set_watcher(struct weir_http_pipe *pipe, struct watcher *watcher, weir_http_pipe_fn fn,
                        void *context)
{
    pthread_mutex_lock(&pipe->lock);
    *watcher = (struct watcher){fn, context};
    pthread_mutex_unlock(&pipe->lock);
}

void weir_http_pipe_watch_bytes(struct weir_http_pipe *pipe, weir_http_pipe_fn fn, void *context)
{
    set_watcher(pipe, &pipe->bytes_watcher, fn, context);
}

void weir_http_pipe_watch_room(struct weir_http_pipe *pipe, weir_http_pipe_fn fn, void *context)
{
    set_watcher(pipe, &pipe->room_watcher, fn, context);
}

bool pipe_if_empty(struct weir_http_pipe *pipe, weir_http_pipe_fn fn, void *context)
{
    pthread_mutex_lock(&pipe->lock);
    bool is_empty = pipe->len == 0 && !pipe->is_ended;
    if (is_empty) {
        fn(context);
    }
    pthread_mutex_unlock(&pipe->lock);
    return is_empty;
}

bool pipe_if_full(struct weir_http_pipe *pipe, weir_http_pipe_fn fn, void *context)
{
    pthread_mutex_lock(&pipe->lock);
    bool is_full = pipe->len == pipe->size && !pipe->is_closed;
    if (is_full) {
        fn(context);
    }
    pthread_mutex_unlock(&pipe->lock);
    return is_full;
}
