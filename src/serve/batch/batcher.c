#include "serve/batch/batcher.h"

#include "base/arena.h"
#include "base/clock.h"
#include "base/deadline.h"
#include "base/log.h"
#include "serve/batch/batch_join.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct batcher {
    struct batcher_config config;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    /* Under lock. */
    struct batch_queue queue;
    size_t n_running;
    bool is_stopping;
    bool is_batched;
    struct batch_stats stats;
};

/* Entries are the first member. */
static struct batch_request *request_of(struct batch_entry *entry)
{
    return (struct batch_request *)entry;
}

static bool mixes(const struct batch_entry *a, const struct batch_entry *b)
{
    const struct batch_request *one = (const struct batch_request *)a,
                               *other = (const struct batch_request *)b;
    return batch_can_join(one->in, other->in, one->n_inputs);
}

static void set_rules(struct batcher *batcher, const struct batcher_rules *rules)
{
    batcher->queue.rules = (struct batch_rules){
        .batch_max = batcher->is_batched ? WEIR_MAX(rules->batch_max, (int64_t)1) : 1,
        .delay_ns = batcher->is_batched && rules->batch_max > 1 ? rules->delay_ns : 0,
        .queue_max = WEIR_MAX(rules->queue_max, (size_t)1),
        .mixes = mixes};
    batcher->config.rules = *rules;
}

/* ---- answers --------------------------------------------------------------------------------- */

static void answer(struct batcher *batcher, struct batch_request *request)
{
    uint64_t total_ns = weir_mono_ns() - request->entry.arrived_ns;
    pthread_mutex_lock(&batcher->lock);
    batch_stats_add_request(&batcher->stats, request->status, &request->times, total_ns);
    batcher->n_running--;
    pthread_mutex_unlock(&batcher->lock);
    request->done(request);
}

static void answer_error(struct batcher *batcher, struct batch_request *request, weir_status status,
                         const char *sentence)
{
    request->status = weir_error_set(&request->error, status, "%s", sentence);
    answer(batcher, request);
}

static void answer_expired(struct batcher *batcher, struct batch_entry *list)
{
    for (struct batch_entry *entry = list, *next; entry != NULL; entry = next) {
        next = entry->next;
        answer_error(batcher, request_of(entry), WEIR_ERR_TIMEOUT,
                     "the request's time was over before it was computed");
    }
}

/* ---- computing ------------------------------------------------------------------------------- */

static void run_alone(struct batcher *batcher, struct batch_request *request)
{
    uint64_t start_ns = weir_mono_ns();
    request->status =
        batcher->config.run(batcher->config.context, request->in, request->out, &request->error);
    request->times.infer_ns = weir_mono_ns() - start_ns;
    if (request->status == WEIR_OK) {
        pthread_mutex_lock(&batcher->lock);
        batch_stats_add_batch(&batcher->stats, request->n_rows, &request->times);
        pthread_mutex_unlock(&batcher->lock);
    }
}

static void each_alone(struct batcher *batcher, struct batch_request **requests, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        run_alone(batcher, requests[i]);
        answer(batcher, requests[i]);
    }
}

/* The model's batch dimension means something else. */
static void stop_batching(struct batcher *batcher)
{
    weir_log_event(WEIR_LOG_WARN, "model_not_batched");
    pthread_mutex_lock(&batcher->lock);
    batcher->is_batched = false;
    set_rules(batcher, &batcher->config.rules);
    pthread_mutex_unlock(&batcher->lock);
}

/* Join, run, split. False: nobody has an answer yet. */
static bool run_joined(struct batcher *batcher, struct batch_request **requests, size_t n)
{
    struct weir_tensor *in[BATCHER_PORTS_MAX] = {0}, *out[BATCHER_PORTS_MAX] = {0};
    const struct batcher_config *config = &batcher->config;
    struct batch_times times = {0};
    int64_t n_rows = 0;
    for (size_t i = 0; i < n; i++) {
        n_rows += requests[i]->n_rows;
    }
    uint64_t start_ns = weir_mono_ns();
    weir_status status = batch_join(requests, n, config->n_inputs, in);
    uint64_t joined_ns = weir_mono_ns();
    if (status == WEIR_OK) {
        status = config->run(config->context, in, out, NULL);
    }
    uint64_t run_ns = weir_mono_ns();
    batch_release(in, config->n_inputs);
    if (status == WEIR_OK && !batch_has_rows(out, config->n_outputs, n_rows)) {
        stop_batching(batcher);
        status = WEIR_ERR_UNSUPPORTED;
    }
    if (status == WEIR_OK) {
        status = batch_split(out, config->n_outputs, requests, n);
    }
    batch_release(out, config->n_outputs);
    if (status != WEIR_OK) {
        return false;
    }
    times = (struct batch_times){.input_ns = joined_ns - start_ns,
                                 .infer_ns = run_ns - joined_ns,
                                 .output_ns = weir_mono_ns() - run_ns};
    pthread_mutex_lock(&batcher->lock);
    batch_stats_add_batch(&batcher->stats, n_rows, &times);
    pthread_mutex_unlock(&batcher->lock);
    for (size_t i = 0; i < n; i++) {
        times.queue_ns = requests[i]->times.queue_ns;
        requests[i]->times = times;
        requests[i]->status = WEIR_OK;
        answer(batcher, requests[i]);
    }
    return true;
}

/* A batch: those whose client is gone are not computed. */
static void run_batch(struct batcher *batcher, struct batch_entry *list,
                      struct batch_request **requests)
{
    uint64_t now_ns = weir_mono_ns();
    size_t n = 0;
    for (struct batch_entry *entry = list, *next; entry != NULL; entry = next) {
        struct batch_request *request = request_of(entry);
        next = entry->next;
        request->times.queue_ns = now_ns - entry->arrived_ns;
        if (request->is_gone != NULL && request->is_gone(request)) {
            answer_error(batcher, request, WEIR_ERR_CANCELLED,
                         "the client left before the request was computed");
        } else {
            requests[n++] = request;
        }
    }
    if (n > 0 && (n == 1 || !run_joined(batcher, requests, n))) {
        each_alone(batcher, requests, n);
    }
}

/* ---- the thread ------------------------------------------------------------------------------ */

static void wait_until(struct batcher *batcher, uint64_t until_ns)
{
    if (until_ns == UINT64_MAX) {
        pthread_cond_wait(&batcher->changed, &batcher->lock);
        return;
    }
    struct timespec until = {.tv_sec = (time_t)(until_ns / 1000000000u),
                             .tv_nsec = (long)(until_ns % 1000000000u)};
    (void)weir_cond_wait_until(&batcher->changed, &batcher->lock, &until);
}

static size_t list_length(const struct batch_entry *list)
{
    size_t n = 0;
    for (; list != NULL; list = list->next) {
        n++;
    }
    return n;
}

/* The next batch, and those that came too late for one. Lock held. */
static struct batch_entry *take(struct batcher *batcher, struct batch_entry **out_expired)
{
    for (;;) {
        uint64_t until_ns, now_ns = weir_mono_ns();
        *out_expired = batch_queue_take_expired(&batcher->queue, now_ns);
        struct batch_entry *batch =
            batch_queue_take(&batcher->queue, now_ns, batcher->is_stopping, &until_ns);
        batcher->n_running += list_length(*out_expired) + list_length(batch);
        if (batch != NULL || *out_expired != NULL || batcher->is_stopping) {
            return batch;
        }
        wait_until(batcher, until_ns);
    }
}

static void *batcher_main(void *context)
{
    struct batcher *batcher = context;
    struct batch_request **requests = NULL;
    size_t n_room = 0;
    pthread_mutex_lock(&batcher->lock);
    for (;;) {
        struct batch_entry *expired, *batch = take(batcher, &expired);
        if (batch == NULL && expired == NULL) {
            break; /* it stops, and the queue is empty */
        }
        pthread_mutex_unlock(&batcher->lock);
        answer_expired(batcher, expired);
        size_t n = list_length(batch);
        if (n > n_room) {
            free(requests);
            requests = weir_xalloc(n * sizeof(struct batch_request *));
            n_room = n;
        }
        if (n > 0) {
            run_batch(batcher, batch, requests);
        }
        pthread_mutex_lock(&batcher->lock);
    }
    pthread_mutex_unlock(&batcher->lock);
    free(requests);
    return NULL;
}

/* ---- from outside ---------------------------------------------------------------------------- */

static void destroy(struct batcher *batcher)
{
    pthread_cond_destroy(&batcher->changed);
    pthread_mutex_destroy(&batcher->lock);
    free(batcher);
}

weir_status batcher_start(const struct batcher_config *config, struct batcher **out,
                          struct weir_error *err)
{
    struct batcher *batcher = weir_xalloc(sizeof *batcher);
    memset(batcher, 0, sizeof *batcher);
    batcher->config = *config;
    batcher->is_batched = config->is_batched;
    pthread_mutex_init(&batcher->lock, NULL);
    pthread_cond_init(&batcher->changed, NULL);
    set_rules(batcher, &config->rules);
    int failed = pthread_create(&batcher->thread, NULL, batcher_main, batcher);
    if (failed != 0) {
        destroy(batcher);
        return weir_error_set_errno(err, failed, "cannot start a model's thread");
    }
    *out = batcher;
    return WEIR_OK;
}

void batcher_stop(struct batcher *batcher)
{
    if (batcher == NULL) {
        return;
    }
    pthread_mutex_lock(&batcher->lock);
    batcher->is_stopping = true;
    pthread_cond_signal(&batcher->changed);
    pthread_mutex_unlock(&batcher->lock);
    pthread_join(batcher->thread, NULL);
    destroy(batcher);
}

static weir_status push(struct batcher *batcher, struct batch_request *request,
                        struct weir_error *err)
{
    if (batcher->is_stopping) {
        return weir_error_set(err, WEIR_ERR_UNAVAILABLE,
                              "this version is being unloaded; try again");
    }
    if (!batch_queue_push(&batcher->queue, &request->entry)) {
        batch_stats_add_request(&batcher->stats, WEIR_ERR_UNAVAILABLE, &request->times, 0);
        return weir_error_set(err, WEIR_ERR_UNAVAILABLE,
                              "the model is busy: %zu requests are waiting; try again",
                              batcher->queue.n);
    }
    pthread_cond_signal(&batcher->changed);
    return WEIR_OK;
}

weir_status batcher_submit(struct batcher *batcher, struct batch_request *request,
                           struct weir_error *err)
{
    uint64_t now_ns = weir_mono_ns();
    if (request->n_rows < 1) {
        return weir_error_set(err, WEIR_ERR_INVALID, "the request has no rows: its batch is empty");
    }
    if (request->n_rows > BATCHER_ROWS_MAX) {
        return weir_error_set(err, WEIR_ERR_LIMIT,
                              "the request has %lld rows; at most %d are taken",
                              (long long)request->n_rows, BATCHER_ROWS_MAX);
    }
    if (request->deadline_ns <= now_ns) {
        return weir_error_set(err, WEIR_ERR_TIMEOUT, "the request's time is over");
    }
    request->times = (struct batch_times){0};
    request->entry = (struct batch_entry){
        .n_rows = request->n_rows, .arrived_ns = now_ns, .deadline_ns = request->deadline_ns};
    pthread_mutex_lock(&batcher->lock);
    request->n_inputs = batcher->config.n_inputs;
    weir_status status = push(batcher, request, err);
    pthread_mutex_unlock(&batcher->lock);
    return status;
}

void batcher_set_rules(struct batcher *batcher, const struct batcher_rules *rules)
{
    pthread_mutex_lock(&batcher->lock);
    set_rules(batcher, rules);
    pthread_cond_signal(&batcher->changed);
    pthread_mutex_unlock(&batcher->lock);
}

void batcher_get_rules(struct batcher *batcher, struct batcher_rules *out)
{
    pthread_mutex_lock(&batcher->lock);
    *out = batcher->config.rules;
    pthread_mutex_unlock(&batcher->lock);
}

size_t batcher_n_waiting(struct batcher *batcher)
{
    pthread_mutex_lock(&batcher->lock);
    size_t n = batcher->queue.n + batcher->n_running;
    pthread_mutex_unlock(&batcher->lock);
    return n;
}

void batcher_stats(struct batcher *batcher, struct batch_stats *out)
{
    pthread_mutex_lock(&batcher->lock);
    *out = batcher->stats;
    pthread_mutex_unlock(&batcher->lock);
}
