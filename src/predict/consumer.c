#include "predict/consumer.h"

#include "base/complaint.h"
#include "base/deadline.h"
#include "base/hash.h"
#include "base/log.h"
#include "client/client.h"
#include "predict/contact.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define BATCH_MAX    200
#define IDLE_MS      1000
#define RETRY_MIN_MS 200
#define RETRY_MAX_MS 30000

struct consumer {
    struct consumer_config config;
    struct outbox_reader *reader;
    struct sink *sink;
    pthread_t thread;
    /* The thread's own. */
    json_t *batch;  /**< In hand; NULL: none. */
    size_t n_dealt; /**< Of it, from the front. */
    size_t most;    /**< To give at once. */
    struct weir_backoff backoff;
    struct weir_complaint complaint;
    /* For people. */
    struct contact contact;
    _Atomic int64_t n_taken, n_refused;
    /* Under lock. */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool is_abandoned; /**< Stop now. */
    bool has_ended;    /**< The thread. */
};

/* ---- one batch ------------------------------------------------------------------------------- */

static void count(struct consumer *consumer, size_t n_taken, size_t n_refused)
{
    contact_is_good(&consumer->contact);
    atomic_fetch_add(&consumer->n_taken, (int64_t)n_taken);
    atomic_fetch_add(&consumer->n_refused, (int64_t)n_refused);
}

static bool is_server(const struct consumer *consumer)
{
    return consumer->config.ops->identity == NULL;
}

/* Half of them next time; one alone is set aside, and then all are given together again. */
static weir_status take_refusal(struct consumer *consumer, size_t n, struct weir_error *err)
{
    if (n > 1) {
        consumer->most = n / 2;
        return WEIR_OK;
    }
    char reason[WEIR_ERROR_MESSAGE_BYTES];
    if (!is_server(consumer)) {
        (void)weir_error_prefix(err, "%s: ", consumer->config.name);
    }
    memcpy(reason, err->message, sizeof reason);
    const json_t *decision = json_array_get(consumer->batch, consumer->n_dealt);
    WEIR_TRY(refused_put(consumer->config.refused, decision, reason, err));
    consumer->n_dealt++;
    consumer->most = BATCH_MAX;
    count(consumer, 0, 1);
    return WEIR_OK;
}

static weir_status deliver_some(struct consumer *consumer, int64_t *out_retry_ms,
                                struct weir_error *err)
{
    size_t n_left = json_array_size(consumer->batch) - consumer->n_dealt;
    struct sink_outcome outcome = {.n = WEIR_MIN(n_left, consumer->most)};
    WEIR_AUTO(weir_json_auto_free) json_t *part = json_array();
    for (size_t i = 0; i < outcome.n; i++) {
        json_array_append(part, json_array_get(consumer->batch, consumer->n_dealt + i));
    }
    weir_status status = consumer->config.ops->deliver(consumer->sink, part, &outcome, err);
    *out_retry_ms = outcome.retry_ms;
    if (status == WEIR_ERR_INVALID || status == WEIR_ERR_LIMIT) {
        return take_refusal(consumer, outcome.n, err);
    }
    WEIR_TRY(status);
    consumer->n_dealt += outcome.n;
    count(consumer, outcome.n, 0);
    weir_backoff_reset(&consumer->backoff);
    return WEIR_OK;
}

/* A number that is about half a batch does not belong to the place before it. */
static void save(struct consumer *consumer)
{
    const struct sink_ops *ops = consumer->config.ops;
    if (ops->sync != NULL && consumer->batch != NULL && consumer->n_dealt > 0) {
        return;
    }
    outbox_reader_save(consumer->reader, ops->sync != NULL ? ops->sync(consumer->sink) : 0);
}

/* Sinks are told less of a passage than the server (predict/sink.h). */
static void keep_from_sinks(const json_t *batch)
{
    static const char *const kept[] = {"frames", "nearest", "visitor"};
    json_t *decision;
    size_t i;
    json_array_foreach(batch, i, decision)
    {
        json_t *passage = json_object_get(decision, "passage");
        for (size_t k = 0; json_is_object(passage) && k < WEIR_ARRAY_LEN(kept); k++) {
            (void)json_object_del(passage, kept[k]);
        }
    }
}

/* Take a batch in hand. One that is in hand stays until all of it is dealt with. */
static weir_status take_batch(struct consumer *consumer, struct weir_error *err)
{
    if (consumer->batch == NULL) {
        int64_t idle_ms = consumer->config.ops->idle_ms;
        WEIR_TRY(outbox_reader_next(consumer->reader, BATCH_MAX, idle_ms > 0 ? idle_ms : IDLE_MS,
                                    &consumer->batch, err));
        consumer->n_dealt = 0;
        consumer->most = BATCH_MAX;
        if (!is_server(consumer)) {
            keep_from_sinks(consumer->batch);
        }
    }
    return WEIR_OK;
}

/* ---- the thread ------------------------------------------------------------------------------ */

static bool is_abandoned(struct consumer *consumer)
{
    pthread_mutex_lock(&consumer->lock);
    bool is_over = consumer->is_abandoned;
    pthread_mutex_unlock(&consumer->lock);
    return is_over;
}

static void wait_for_retry(struct consumer *consumer, int64_t wait_ms)
{
    struct timespec deadline = weir_deadline_after(wait_ms);
    pthread_mutex_lock(&consumer->lock);
    while (!consumer->is_abandoned &&
           weir_cond_wait_until(&consumer->changed, &consumer->lock, &deadline) != ETIMEDOUT) {
    }
    pthread_mutex_unlock(&consumer->lock);
}

static void bear_failure(struct consumer *consumer, int64_t retry_ms, const struct weir_error *err)
{
    int64_t backoff_ms = weir_backoff_next_ms(&consumer->backoff);
    contact_is_lost(&consumer->contact, err->message);
    if (weir_complaint_is_due(&consumer->complaint, NULL)) {
        weir_log(WEIR_LOG_WARN, consumer->config.ops->waits_event,
                 WEIR_KV_STR("reason", err->message));
    }
    wait_for_retry(consumer, retry_ms > 0 ? retry_ms : backoff_ms);
}

/* As much of it as is taken before an error, or before it is to stop. */
static weir_status deliver_batch(struct consumer *consumer, int64_t *out_retry_ms,
                                 struct weir_error *err)
{
    while (consumer->n_dealt < json_array_size(consumer->batch)) {
        if (is_abandoned(consumer)) {
            return WEIR_OK;
        }
        WEIR_TRY(deliver_some(consumer, out_retry_ms, err));
    }
    json_decref(consumer->batch);
    consumer->batch = NULL;
    outbox_reader_done(consumer->reader);
    return WEIR_OK;
}

static void *consumer_main(void *context)
{
    struct consumer *consumer = context;
    while (!is_abandoned(consumer)) {
        struct weir_error err = {0};
        int64_t retry_ms = 0;
        weir_status status = take_batch(consumer, &err);
        if (status == WEIR_ERR_CANCELLED) {
            break; /* there is nothing left, and it is to stop */
        }
        if (status == WEIR_OK) {
            status = deliver_batch(consumer, &retry_ms, &err);
        }
        if (consumer->config.ops->tick != NULL) {
            consumer->config.ops->tick(consumer->sink);
        }
        if (outbox_reader_is_due(consumer->reader)) {
            save(consumer);
        }
        if (status != WEIR_OK && status != WEIR_ERR_TIMEOUT && !is_abandoned(consumer)) {
            bear_failure(consumer, retry_ms, &err);
        }
    }
    save(consumer);
    pthread_mutex_lock(&consumer->lock);
    consumer->has_ended = true;
    pthread_cond_broadcast(&consumer->changed);
    pthread_mutex_unlock(&consumer->lock);
    return NULL;
}

/* ---- life ------------------------------------------------------------------------------------ */

static void consumer_free(struct consumer *consumer)
{
    if (consumer->sink != NULL) {
        consumer->config.ops->close(consumer->sink);
    }
    outbox_reader_close(consumer->reader);
    json_decref(consumer->batch);
    pthread_cond_destroy(&consumer->changed);
    pthread_mutex_destroy(&consumer->lock);
    contact_fini(&consumer->contact);
    free(consumer);
}

/* "jsonl-…": a name for the place that follows from the kind and what the sink is told. */
static void reader_name(const struct consumer_config *config, char out[32])
{
    if (config->ops->identity == NULL) {
        (void)snprintf(out, 32, "%s", config->name);
        return;
    }
    uint64_t hash = weir_hash_text(WEIR_HASH_BEGIN, config->ops->identity(config->options));
    (void)snprintf(out, 32, "%.14s-%016" PRIx64, config->name, hash);
}

static weir_status open_parts(struct consumer *consumer, struct weir_error *err)
{
    const struct consumer_config *config = &consumer->config;
    char name[32];
    reader_name(config, name);
    WEIR_TRY(outbox_reader_open(config->outbox, name, &consumer->reader, err));
    const struct sink_config sink = {config->options, config->spec, config->pictures,
                                     consumer->reader};
    WEIR_TRY(config->ops->open(&sink, &consumer->sink, err));
    int failed = pthread_create(&consumer->thread, NULL, consumer_main, consumer);
    return failed != 0 ? weir_error_set_errno(err, failed, "starting a thread") : WEIR_OK;
}

weir_status consumer_start(const struct consumer_config *config, struct consumer **out,
                           struct weir_error *err)
{
    struct consumer *consumer = weir_xalloc(sizeof *consumer);
    *consumer = (struct consumer){.config = *config,
                                  .backoff = {.base_ms = RETRY_MIN_MS, .max_ms = RETRY_MAX_MS}};
    contact_init(&consumer->contact);
    pthread_mutex_init(&consumer->lock, NULL);
    pthread_cond_init(&consumer->changed, NULL);
    weir_status status = open_parts(consumer, err);
    if (status != WEIR_OK) {
        consumer_free(consumer);
        return status;
    }
    *out = consumer;
    return WEIR_OK;
}

static void stop_by(struct consumer *consumer, const struct timespec *deadline)
{
    const struct sink_ops *ops = consumer->config.ops;
    pthread_mutex_lock(&consumer->lock);
    while (!consumer->has_ended &&
           weir_cond_wait_until(&consumer->changed, &consumer->lock, deadline) != ETIMEDOUT) {
    }
    consumer->is_abandoned = true;
    pthread_cond_broadcast(&consumer->changed);
    pthread_mutex_unlock(&consumer->lock);
    if (ops->cancel != NULL) {
        ops->cancel(consumer->sink);
    }
    pthread_join(consumer->thread, NULL);
    consumer_free(consumer);
}

void consumers_stop(struct consumer *const *consumers, size_t n, int64_t grace_ms)
{
    struct timespec deadline = weir_deadline_after(grace_ms);
    for (size_t i = 0; i < n; i++) {
        if (consumers[i] != NULL) {
            outbox_reader_cancel(consumers[i]->reader);
        }
    }
    for (size_t i = 0; i < n; i++) {
        if (consumers[i] != NULL) {
            stop_by(consumers[i], &deadline);
        }
    }
}

json_t *consumer_status(struct consumer *consumer)
{
    json_t *json = contact_to_json(&consumer->contact);
    json_object_set_new(json, "name", json_string(consumer->config.name));
    json_object_set_new(json, "taken", json_integer(atomic_load(&consumer->n_taken)));
    json_object_set_new(json, "refused", json_integer(atomic_load(&consumer->n_refused)));
    if (consumer->config.ops->describe != NULL) {
        consumer->config.ops->describe(consumer->sink, json);
    }
    return json;
}
