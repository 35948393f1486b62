#include "predict/heartbeat.h"

#include "base/clock.h"
#include "base/deadline.h"
#include "base/log.h"
#include "client/client.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define CALL_MS      5000
#define REASON_BYTES 512

struct heartbeat {
    struct heartbeat_config config;
    struct weir_client *client;
    char *path;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    /* Under lock. */
    bool is_stopping, has_news;
    const char *state;
    char reason[REASON_BYTES];
    int64_t revision, served_revision;
    const struct source_ops *source_ops; /**< NULL: there is no source. */
    struct source *source;
};

/* Of the source, under the lock, so that it is not gone meanwhile. */
static void add_source(const struct heartbeat *heartbeat, size_t n_queued, json_t *json)
{
    const struct source_ops *ops = heartbeat->source_ops;
    char why[SOURCE_WHY_BYTES] = "";
    size_t n_waiting = 0, n_ignored = 0;
    if (ops != NULL) {
        n_waiting = ops->waiting != NULL ? ops->waiting(heartbeat->source) : 0;
        n_ignored = ops->ignored(heartbeat->source, why);
        json_object_set_new(json, "source", ops->status(heartbeat->source));
    }
    json_object_set_new(json, "frames_waiting", json_integer((json_int_t)(n_queued + n_waiting)));
    json_object_set_new(json, "frames_ignored", json_integer((json_int_t)n_ignored));
    /* Names of files need not be UTF-8. */
    json_object_set_new(
        json, "why_ignored",
        weir_json_string(n_ignored > 0 ? why : NULL, "the name of a file is no UTF-8 text"));
}

static json_t *consumers_to_json(const struct heartbeat_config *config)
{
    json_t *list = json_array();
    for (size_t i = 0; i < config->n_consumers; i++) {
        json_array_append_new(list, consumer_status(config->consumers[i]));
    }
    return list;
}

/** Everything, as it is now. */
static json_t *compose(struct heartbeat *heartbeat)
{
    struct intake_counts counts;
    struct outbox_counts outbox;
    intake_counts(heartbeat->config.intake, &counts);
    outbox_counts(heartbeat->config.outbox, &outbox);
    int64_t age_ms =
        outbox.oldest_ms > 0 ? WEIR_MAX(weir_time_ms() - outbox.oldest_ms, (int64_t)1) : 0;
    pthread_mutex_lock(&heartbeat->lock);
    json_t *json =
        json_pack("{s:I,s:s,s:s?,s:I,s:I,s:I,s:I,s:I,s:s?,s:I,s:o}", "revision",
                  (json_int_t)heartbeat->revision, "state", heartbeat->state, "reason",
                  heartbeat->reason[0] != '\0' ? heartbeat->reason : NULL, "served_revision",
                  (json_int_t)heartbeat->served_revision, "frames_taken",
                  (json_int_t)counts.n_accepted, "frames_decided", (json_int_t)outbox.n_durable,
                  "last_frame_ms", (json_int_t)counts.last_ms, "backlog_ms", (json_int_t)age_ms,
                  "backlog_reader", age_ms > 0 ? outbox.oldest_reader : NULL, "decisions_refused",
                  (json_int_t)refused_count(heartbeat->config.refused), "consumers",
                  consumers_to_json(&heartbeat->config));
    if (json != NULL) {
        add_source(heartbeat, counts.n_queued, json);
    }
    heartbeat->has_news = false;
    pthread_mutex_unlock(&heartbeat->lock);
    return json;
}

static void report(struct heartbeat *heartbeat)
{
    struct weir_error err;
    json_t *json = compose(heartbeat);
    if (json == NULL) {
        weir_log_event(WEIR_LOG_WARN, "heartbeat_not_utf8");
        return;
    }
    weir_status status =
        weir_client_call(heartbeat->client, "PUT", heartbeat->path, json, NULL, &err);
    json_decref(json);
    if (status != WEIR_OK && !weir_client_can_retry(status) && status != WEIR_ERR_CANCELLED) {
        weir_log(WEIR_LOG_DEBUG, "heartbeat_refused", WEIR_KV_STR("reason", err.message));
    }
}

/** Until there is news or the next heartbeat is due; false: stop. */
static bool wait_for_next(struct heartbeat *heartbeat)
{
    struct timespec deadline = weir_deadline_after(HEARTBEAT_MS);
    pthread_mutex_lock(&heartbeat->lock);
    int rc = 0;
    while (!heartbeat->is_stopping && !heartbeat->has_news && rc != ETIMEDOUT) {
        rc = weir_cond_wait_until(&heartbeat->changed, &heartbeat->lock, &deadline);
    }
    bool goes_on = !heartbeat->is_stopping;
    pthread_mutex_unlock(&heartbeat->lock);
    return goes_on;
}

static void *heartbeat_main(void *context)
{
    struct heartbeat *heartbeat = context;
    do {
        report(heartbeat);
    } while (wait_for_next(heartbeat));
    return NULL;
}

static weir_status open_client(struct heartbeat *heartbeat, struct weir_error *err)
{
    const struct predict_spec *spec = heartbeat->config.spec;
    struct weir_arena arena;
    WEIR_TRY(weir_client_open(&(struct weir_client_config){.server = spec->server,
                                                           .token_file = spec->token_file,
                                                           .ca_file = spec->ca_file,
                                                           .timeout_ms = CALL_MS},
                              &heartbeat->client, err));
    weir_arena_init(&arena, 0);
    heartbeat->path = weir_xstrdup(
        weir_client_path(&arena, "/api/v1/ions/{}/pipelines/{}/replicas/{}",
                         (const char *[]){spec->ion, spec->pipeline, spec->replica}, 3));
    weir_arena_fini(&arena);
    return WEIR_OK;
}

static void heartbeat_free(struct heartbeat *heartbeat)
{
    if (heartbeat->client != NULL) {
        weir_client_close(heartbeat->client);
    }
    pthread_cond_destroy(&heartbeat->changed);
    pthread_mutex_destroy(&heartbeat->lock);
    free(heartbeat->path);
    free(heartbeat);
}

weir_status heartbeat_start(const struct heartbeat_config *config, struct heartbeat **out,
                            struct weir_error *err)
{
    struct heartbeat *heartbeat = weir_xalloc(sizeof *heartbeat);
    memset(heartbeat, 0, sizeof *heartbeat);
    heartbeat->config = *config;
    heartbeat->state = "STARTING";
    pthread_mutex_init(&heartbeat->lock, NULL);
    pthread_cond_init(&heartbeat->changed, NULL);
    weir_status status = open_client(heartbeat, err);
    if (status == WEIR_OK) {
        int failed = pthread_create(&heartbeat->thread, NULL, heartbeat_main, heartbeat);
        status = failed != 0 ? weir_error_set_errno(err, failed, "starting a thread") : WEIR_OK;
    }
    if (status != WEIR_OK) {
        heartbeat_free(heartbeat);
        return status;
    }
    *out = heartbeat;
    return WEIR_OK;
}

void heartbeat_stop(struct heartbeat *heartbeat)
{
    if (heartbeat == NULL) {
        return;
    }
    pthread_mutex_lock(&heartbeat->lock);
    heartbeat->is_stopping = true;
    pthread_cond_signal(&heartbeat->changed);
    pthread_mutex_unlock(&heartbeat->lock);
    weir_client_cancel(heartbeat->client);
    pthread_join(heartbeat->thread, NULL);
    heartbeat_free(heartbeat);
}

void heartbeat_set_source(struct heartbeat *heartbeat, const struct source_ops *ops,
                          struct source *source)
{
    if (heartbeat == NULL) {
        return;
    }
    pthread_mutex_lock(&heartbeat->lock);
    heartbeat->source_ops = ops;
    heartbeat->source = source;
    pthread_mutex_unlock(&heartbeat->lock);
}

/** Lock held on return; end with tell_end. */
static void tell_begin(struct heartbeat *heartbeat, const char *state, int64_t revision)
{
    pthread_mutex_lock(&heartbeat->lock);
    heartbeat->state = state;
    heartbeat->revision = revision;
    heartbeat->has_news = true;
    heartbeat->reason[0] = '\0';
}

static void tell_end(struct heartbeat *heartbeat)
{
    pthread_cond_signal(&heartbeat->changed);
    pthread_mutex_unlock(&heartbeat->lock);
}

void heartbeat_applied(struct heartbeat *heartbeat, int64_t revision)
{
    if (heartbeat == NULL) {
        return;
    }
    tell_begin(heartbeat, "APPLIED", revision);
    heartbeat->served_revision = revision;
    tell_end(heartbeat);
}

void heartbeat_failed(struct heartbeat *heartbeat, int64_t revision, const char *reason)
{
    if (heartbeat == NULL) {
        return;
    }
    tell_begin(heartbeat, "FAILED", revision);
    (void)snprintf(heartbeat->reason, sizeof heartbeat->reason, "%s", reason);
    tell_end(heartbeat);
}
