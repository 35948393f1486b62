/* Copies for the mirrored version. The copy is sent once the request itself is on its way, and the
 * two answers are compared on a thread of their own, so that no answer waits for a copy. */
#include "gateway/agree.h"
#include "gateway/gateway_private.h"

#include "base/arena.h"
#include "base/clock.h"

#include <stdlib.h>
#include <string.h>

#define MIRRORS_PER_DEPLOYMENT_MAX 64
#define MIRROR_BYTES_MAX           ((size_t)128 << 20) /* of all copies, with their answers */

struct mirror {
    struct gateway_call copy;
    struct iovec piece;
    struct figures *figures; /* of the mirrored version */
    struct weir_gateway *gateway;
    struct gateway_call first; /* of the request itself: only its answer */
    bool has_first, has_copy;
    int64_t first_us, copy_us;
    size_t n_bytes; /* of MIRROR_BYTES_MAX */
    struct mirror *next;
};

struct mirrors {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t ready;
    struct mirror *first, *last; /* both answers are there */
    bool is_stopping;
    atomic_size_t n_bytes;
};

static void mirror_free(struct mirrors *mirrors, struct mirror *mirror)
{
    (void)atomic_fetch_sub(&mirrors->n_bytes, mirror->n_bytes);
    gateway_call_fini(&mirror->copy);
    gateway_call_fini(&mirror->first);
    free((char *)mirror->copy.deployment);
    free((char *)mirror->copy.path_before);
    free((char *)mirror->copy.path_after);
    free((char *)mirror->copy.headers);
    free(mirror->piece.iov_base);
    figures_unref(mirror->figures);
    free(mirror);
}

static void count(struct mirror *mirror, bool do_agree)
{
    figures_add(&mirror->figures->n_disagreed, !do_agree);
    figures_add(&mirror->figures->n_mirrored, 1);
    figures_add(&mirror->figures->compared_us, mirror->first_us);
    figures_add(&mirror->figures->copies_us, mirror->copy_us);
}

static void compare(struct mirrors *mirrors, struct mirror *mirror)
{
    const struct gateway_call *first = &mirror->first, *copy = &mirror->copy;
    struct agree_answer a = {first->http_status, first->body_out.data, first->body_out.len,
                             first->inference_header_bytes};
    struct agree_answer b = {copy->http_status, copy->body_out.data, copy->body_out.len,
                             copy->inference_header_bytes};
    bool do_agree = agree(&a, &b);
    if (!do_agree) {
        differed_add(&mirror->figures->differed, weir_time_ms(), first->chosen, &a, &b);
    }
    bool is_first_refused = agree_is_refusal(&a), is_copy_refused = agree_is_refusal(&b);
    figures_add(&mirror->figures->n_only_copy, is_copy_refused && first->http_status < 400);
    figures_add(&mirror->figures->n_only_first, is_first_refused && copy->http_status < 400);
    figures_add(&mirror->figures->n_neither, first->http_status >= 400 && copy->http_status >= 400);
    count(mirror, do_agree);
    mirror_free(mirrors, mirror);
}

static void *mirrors_main(void *context)
{
    struct mirrors *mirrors = context;
    pthread_mutex_lock(&mirrors->lock);
    for (;;) {
        while (mirrors->first == NULL && !mirrors->is_stopping) {
            pthread_cond_wait(&mirrors->ready, &mirrors->lock);
        }
        struct mirror *mirror = mirrors->first;
        if (mirror == NULL) {
            break;
        }
        mirrors->first = mirror->next;
        pthread_mutex_unlock(&mirrors->lock);
        compare(mirrors, mirror);
        pthread_mutex_lock(&mirrors->lock);
    }
    pthread_mutex_unlock(&mirrors->lock);
    return NULL;
}

struct mirrors *mirrors_start(struct weir_error *err)
{
    struct mirrors *mirrors = weir_xalloc(sizeof *mirrors);
    memset(mirrors, 0, sizeof *mirrors);
    pthread_mutex_init(&mirrors->lock, NULL);
    pthread_cond_init(&mirrors->ready, NULL);
    int rc = pthread_create(&mirrors->thread, NULL, mirrors_main, mirrors);
    if (rc != 0) {
        (void)weir_error_set_errno(err, rc, "cannot start the thread that compares answers");
        free(mirrors);
        return NULL;
    }
    return mirrors;
}

void mirrors_stop(struct mirrors *mirrors)
{
    if (mirrors == NULL) {
        return;
    }
    pthread_mutex_lock(&mirrors->lock);
    mirrors->is_stopping = true;
    pthread_cond_signal(&mirrors->ready);
    pthread_mutex_unlock(&mirrors->lock);
    pthread_join(mirrors->thread, NULL);
    pthread_mutex_destroy(&mirrors->lock);
    pthread_cond_destroy(&mirrors->ready);
    free(mirrors);
}

/* The mirrored version had the copy, and gave no answer: who was asked first did. */
static bool has_failed(const struct mirror *mirror)
{
    return mirror->first.status == WEIR_OK && mirror->copy.status != WEIR_OK &&
           mirror->copy.n_tries > 0;
}

/* Both have ended: compare, unless the request has no answer or the copy reached nobody. */
static void settle(struct weir_gateway *gateway, struct mirror *mirror)
{
    struct mirrors *mirrors = gateway->mirrors;
    if (!mirror->has_first || !mirror->has_copy) {
        return;
    }
    if (has_failed(mirror)) {
        count(mirror, false);
        mirror_free(mirrors, mirror);
        return;
    }
    if (mirror->first.status != WEIR_OK || mirror->copy.status != WEIR_OK) {
        figures_add(&mirror->figures->n_mirror_dropped, 1);
        mirror_free(mirrors, mirror);
        return;
    }
    mirror->next = NULL;
    pthread_mutex_lock(&mirrors->lock);
    if (mirrors->first == NULL) {
        mirrors->first = mirror;
    } else {
        mirrors->last->next = mirror;
    }
    mirrors->last = mirror;
    pthread_cond_signal(&mirrors->ready);
    pthread_mutex_unlock(&mirrors->lock);
}

static void on_copy_done(struct gateway_call *copy)
{
    struct mirror *mirror = WEIR_CONTAINER_OF(copy, struct mirror, copy);
    mirror->has_copy = true;
    mirror->copy_us = (int64_t)(weir_mono_ns() - copy->begun_ns) / 1000;
    settle(mirror->gateway, mirror);
}

static bool take_bytes(struct mirrors *mirrors, size_t n)
{
    if (atomic_fetch_add(&mirrors->n_bytes, n) + n <= MIRROR_BYTES_MAX) {
        return true;
    }
    (void)atomic_fetch_sub(&mirrors->n_bytes, n);
    return false;
}

static struct mirror *make(struct weir_gateway *gateway, const struct gateway_call *call,
                           struct figures *figures)
{
    struct mirror *mirror = weir_xalloc(sizeof *mirror);
    memset(mirror, 0, sizeof *mirror);
    mirror->gateway = gateway;
    mirror->figures = figures;
    (void)atomic_fetch_add(&figures->n_refs, 1);
    mirror->n_bytes = call->body_bytes;
    mirror->piece = (struct iovec){weir_xalloc(call->body_bytes + 1), call->body_bytes};
    size_t at = 0;
    for (size_t i = 0; i < call->n_body; i++) {
        if (call->body[i].iov_len > 0) {
            memcpy((char *)mirror->piece.iov_base + at, call->body[i].iov_base,
                   call->body[i].iov_len);
            at += call->body[i].iov_len;
        }
    }
    mirror->copy = (struct gateway_call){.deployment = weir_xstrdup(call->deployment),
                                         .version = call->to->row->mirror,
                                         .method = call->method,
                                         .path_before = weir_xstrdup(call->path_before),
                                         .path_after = weir_xstrdup(call->path_after),
                                         .headers = weir_xstrdup(call->headers),
                                         .body = &mirror->piece,
                                         .n_body = 1,
                                         .body_bytes = call->body_bytes,
                                         .is_inference = true,
                                         .is_copy = true,
                                         .done = on_copy_done};
    return mirror;
}

void mirror_begin(struct weir_gateway *gateway, struct gateway_call *call)
{
    struct live_deployment *to = call->to;
    if (!call->is_inference || call->is_copy || call->mirror != NULL || to->row == NULL ||
        to->row->mirror == 0 || to->row->mirror == call->chosen) {
        return;
    }
    int i = weir_gateway_version_find(to->row, to->row->mirror);
    struct figures *figures = to->versions[i].figures;
    if (to->n_mirrors >= MIRRORS_PER_DEPLOYMENT_MAX ||
        !take_bytes(gateway->mirrors, call->body_bytes)) {
        figures_add(&figures->n_mirror_dropped, 1);
        return;
    }
    call->mirror = make(gateway, call, figures);
    dispatch_copy(gateway, &call->mirror->copy, to, call->due_ms);
}

void mirror_answer(struct weir_gateway *gateway, struct gateway_call *call)
{
    struct mirror *mirror = call->mirror;
    if (mirror == NULL) {
        return;
    }
    call->mirror = NULL;
    struct gateway_call *first = &mirror->first;
    first->status = call->status;
    first->chosen = call->chosen;
    first->http_status = call->http_status;
    first->inference_header_bytes = call->inference_header_bytes;
    weir_buf_init(&first->body_out, ANSWER_MAX_BYTES);
    if (call->status == WEIR_OK) {
        if (!take_bytes(gateway->mirrors, call->body_out.len)) {
            first->status = WEIR_ERR_LIMIT;
        } else {
            mirror->n_bytes += call->body_out.len;
            (void)weir_buf_append(&first->body_out, call->body_out.data, call->body_out.len);
        }
    }
    mirror->has_first = true;
    mirror->first_us = (int64_t)(weir_mono_ns() - call->begun_ns) / 1000;
    settle(gateway, mirror);
}
