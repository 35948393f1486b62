#include "train/report.h"

#include "base/clock.h"
#include "base/deadline.h"
#include "base/log.h"

#include <assert.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

/* Of one request: 64 ticks of 10 values are some 50 KiB of JSON. */
#define TICKS_PER_CALL  64
#define CALL_TIMEOUT_MS 10000
#define BACKOFF_BASE_MS 200
#define BACKOFF_MAX_MS  5000

struct train_report {
    struct weir_client *client;
    char *path;
    struct weir_arena arena;
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t has_changed;
    /* Under the mutex. */
    struct train_tick ticks[TRAIN_REPORT_TICKS_MAX];
    size_t n_ticks, n_sending, n_dropped; /**< The first n_sending are on their way: they stay. */
    bool is_stopping, is_over;
    int64_t stop_ms; /**< Monotonic: when a stopping thread gives up. */
};

void train_tick_add(struct train_tick *tick, const char *key, double value)
{
    assert(tick->n < TRAIN_REPORT_VALUES_MAX);
    tick->keys[tick->n] = key;
    tick->values[tick->n++] = value;
}

static json_t *ticks_json(const struct train_tick *ticks, size_t n)
{
    json_t *list = json_array();
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < ticks[i].n; k++) {
            json_array_append_new(list,
                                  json_pack("{s:s,s:I,s:f,s:I}", "key", ticks[i].keys[k], "step",
                                            (json_int_t)ticks[i].step, "value", ticks[i].values[k],
                                            "time_ms", (json_int_t)ticks[i].time_ms));
        }
    }
    return json_pack("{s:o}", "metrics", list);
}

/** Wait until there is something to send. Mutex held. @return false: leave. */
static bool await_ticks(struct train_report *report)
{
    while (report->n_ticks == 0 && !report->is_stopping) {
        (void)pthread_cond_wait(&report->has_changed, &report->mutex);
    }
    return report->n_ticks > 0 && !(report->is_stopping && weir_mono_ms() >= report->stop_ms);
}

/** Wait before the next try, shorter if asked to stop. Mutex held. */
static void await_retry(struct train_report *report, int64_t wait_ms)
{
    int64_t until_ms = weir_mono_ms() + wait_ms;
    while (weir_mono_ms() < until_ms &&
           !(report->is_stopping && weir_mono_ms() >= report->stop_ms)) {
        int64_t left_ms = until_ms - weir_mono_ms();
        if (report->is_stopping) {
            left_ms = WEIR_MIN(left_ms, report->stop_ms - weir_mono_ms());
        }
        struct timespec at = weir_deadline_after(WEIR_MAX(left_ms, 1));
        (void)weir_cond_wait_until(&report->has_changed, &report->mutex, &at);
    }
}

static weir_status send_ticks(struct train_report *report, const struct train_tick *ticks, size_t n,
                              struct weir_error *err)
{
    WEIR_AUTO(weir_json_auto_free) json_t *body = ticks_json(ticks, n);
    return weir_client_call(report->client, "POST", report->path, body, NULL, err);
}

static void *run(void *context)
{
    struct train_report *report = context;
    struct train_tick *ticks = calloc(TICKS_PER_CALL, sizeof *ticks);
    struct weir_backoff backoff = {.base_ms = BACKOFF_BASE_MS, .max_ms = BACKOFF_MAX_MS};
    (void)pthread_mutex_lock(&report->mutex);
    while (ticks != NULL && await_ticks(report)) {
        struct weir_error err = {0};
        size_t n = WEIR_MIN(report->n_ticks, (size_t)TICKS_PER_CALL);
        memcpy(ticks, report->ticks, n * sizeof *ticks);
        report->n_sending = n;
        (void)pthread_mutex_unlock(&report->mutex);
        weir_status status = send_ticks(report, ticks, n, &err);
        (void)pthread_mutex_lock(&report->mutex);
        report->n_sending = 0;
        if (status == WEIR_OK) {
            report->n_ticks -= n;
            memmove(report->ticks, report->ticks + n, report->n_ticks * sizeof *report->ticks);
            weir_backoff_reset(&backoff);
        } else if (weir_client_can_retry(status)) {
            await_retry(report, weir_backoff_next_ms(&backoff));
        } else if (status != WEIR_ERR_CANCELLED) {
            weir_log(WEIR_LOG_WARN, "metrics_refused", WEIR_KV_STR("error", err.message));
            break;
        }
    }
    report->is_over = true;
    (void)pthread_mutex_unlock(&report->mutex);
    free(ticks);
    return NULL;
}

static weir_status start_thread(struct train_report *report, struct weir_error *err)
{
    sigset_t all, before;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    int code = pthread_create(&report->thread, NULL, run, report);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return code == 0 ? WEIR_OK
                     : weir_error_set_errno(err, code, "cannot start the thread that reports");
}

weir_status train_report_start(const struct weir_client_config *client, const char *run_id,
                               struct train_report **out, struct weir_error *err)
{
    struct train_report *report = calloc(1, sizeof *report);
    if (report == NULL) {
        return weir_error_set(err, WEIR_ERR_NOMEM, "no memory for the reports");
    }
    struct weir_client_config config = *client;
    config.timeout_ms = CALL_TIMEOUT_MS;
    weir_status status = weir_client_open(&config, &report->client, err);
    if (status != WEIR_OK) {
        free(report);
        return status;
    }
    pthread_cond_init(&report->has_changed, NULL);
    (void)pthread_mutex_init(&report->mutex, NULL);
    weir_arena_init(&report->arena, 0);
    report->path = weir_client_path(&report->arena, "/api/v1/runs/{}/metrics", &run_id, 1);
    status = start_thread(report, err);
    if (status != WEIR_OK) {
        weir_client_close(report->client);
        weir_arena_fini(&report->arena);
        free(report);
        return status;
    }
    *out = report;
    return WEIR_OK;
}

/** Drop every second tick behind those on their way. Mutex held. */
static void thin_out(struct train_report *report)
{
    size_t kept = report->n_sending;
    for (size_t i = report->n_sending; i < report->n_ticks; i++) {
        if ((i - report->n_sending) % 2 == 0) {
            report->ticks[kept++] = report->ticks[i];
        }
    }
    report->n_dropped += report->n_ticks - kept;
    report->n_ticks = kept;
}

void train_report_add(struct train_report *report, const struct train_tick *tick)
{
    if (report == NULL) {
        return;
    }
    (void)pthread_mutex_lock(&report->mutex);
    if (!report->is_over) {
        if (report->n_ticks == TRAIN_REPORT_TICKS_MAX) {
            thin_out(report);
        }
        report->ticks[report->n_ticks] = *tick;
        report->ticks[report->n_ticks++].time_ms = weir_time_ms();
        (void)pthread_cond_signal(&report->has_changed);
    }
    (void)pthread_mutex_unlock(&report->mutex);
}

size_t train_report_n_waiting(struct train_report *report, size_t *out_n_dropped)
{
    (void)pthread_mutex_lock(&report->mutex);
    size_t n = report->n_ticks;
    *out_n_dropped = report->n_dropped;
    (void)pthread_mutex_unlock(&report->mutex);
    return n;
}

void train_report_stop(struct train_report *report, int64_t timeout_ms)
{
    if (report == NULL) {
        return;
    }
    (void)pthread_mutex_lock(&report->mutex);
    report->is_stopping = true;
    report->stop_ms = weir_mono_ms() + timeout_ms;
    (void)pthread_cond_signal(&report->has_changed);
    (void)pthread_mutex_unlock(&report->mutex);
    (void)pthread_join(report->thread, NULL);
    if (report->n_ticks > 0) {
        weir_log(WEIR_LOG_WARN, "metrics_not_sent", WEIR_KV_INT("ticks", (int64_t)report->n_ticks));
    }
    weir_client_close(report->client);
    (void)pthread_cond_destroy(&report->has_changed);
    (void)pthread_mutex_destroy(&report->mutex);
    weir_arena_fini(&report->arena);
    free(report);
}
