#include "host/host_private.h"

#include "base/deadline.h"
#include "base/file.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define POLL_WAIT_S     20
#define POLL_TIMEOUT_MS ((POLL_WAIT_S + 15) * 1000)
#define REPORT_CALL_MS  5000
#define QUIET_MS        100 /**< After an answer without news, whatever the server does. */
#define RETRY_FIRST_MS  1000
#define RETRY_MAX_MS    60000

const atomic_bool *weir_host_stopping(const struct weir_host *host)
{
    return &host->is_stopping;
}

struct weir_client *weir_host_client(struct weir_host *host)
{
    return host->follower.client;
}

/* ---- the follower ---------------------------------------------------------------------------- */

/* What another try may mend has not failed. */
static void judge(struct weir_host *host, int64_t revision, weir_status status,
                  const struct weir_error *err)
{
    bool is_ok = status == WEIR_OK;
    if (!is_ok && (status == WEIR_ERR_CANCELLED || weir_client_can_retry(status))) {
        return;
    }
    pthread_mutex_lock(&host->lock);
    struct weir_host_standing *standing = &host->standing;
    standing->state = is_ok ? "APPLIED" : "FAILED";
    standing->revision = revision;
    standing->served_revision = is_ok ? revision : standing->served_revision;
    (void)snprintf(standing->reason, sizeof standing->reason, "%s", is_ok ? "" : err->message);
    host->has_news = true;
    pthread_cond_broadcast(&host->changed);
    pthread_mutex_unlock(&host->lock);
}

static weir_status apply(struct weir_host *host, const json_t *wanted, struct weir_error *err)
{
    int64_t revision = json_integer_value(json_object_get(wanted, "revision"));
    weir_status status = host->config.hosted->apply(host->config.context, wanted, err);
    judge(host, revision, status, err);
    WEIR_TRY(status);
    host_remember(host, wanted);
    host->revision = revision;
    return WEIR_OK;
}

static weir_status apply_remembered(struct weir_host *host, struct weir_error *err)
{
    WEIR_AUTO(weir_json_auto_free) json_t *json = NULL;
    WEIR_TRY(host_recall(host, &json, err));
    return apply(host, json, err);
}

static void pause_for(struct weir_host *host, int64_t wait_ms)
{
    struct timespec deadline = weir_deadline_after(wait_ms);
    int rc = 0;
    pthread_mutex_lock(&host->lock);
    while (!atomic_load(&host->is_stopping) && rc != ETIMEDOUT) {
        rc = weir_cond_wait_until(&host->changed, &host->lock, &deadline);
    }
    pthread_mutex_unlock(&host->lock);
}

/* Ask, and apply what is new. */
static weir_status ask(struct weir_host *host, struct weir_error *err)
{
    char path[WEIR_HOST_PATH_BYTES];
    json_t *reply;
    const struct weir_hosted *hosted = host->config.hosted;
    (void)snprintf(path, sizeof path, "%s?after=%" PRId64 "&wait_s=%d", host->wanted_path,
                   host->revision, POLL_WAIT_S);
    WEIR_TRY(weir_client_call(host->follower.client, "GET", path, NULL, &reply, err));
    int64_t revision = json_integer_value(json_object_get(reply, "revision"));
    weir_status status = WEIR_OK;
    /* A server that was set back to an older state counts again: what it says is what counts. */
    bool is_new = revision != host->revision && json_object_get(reply, hosted->member) != NULL;
    if (is_new) {
        status = apply(host, reply, err);
    }
    json_decref(reply);
    if (!is_new) {
        pause_for(host, QUIET_MS);
    }
    return status;
}

/* Once; a failure is logged and has its pause. */
static void go_on(struct weir_host *host, struct weir_backoff *backoff)
{
    struct weir_error err = {0};
    const struct weir_hosted *hosted = host->config.hosted;
    if (hosted->before_asking != NULL) {
        hosted->before_asking(host->config.context);
    }
    if (ask(host, &err) == WEIR_OK) {
        weir_backoff_reset(backoff);
    } else if (!atomic_load(&host->is_stopping)) {
        weir_log(WEIR_LOG_WARN, "deployment_failed", WEIR_KV_STR("reason", err.message));
        pause_for(host, weir_backoff_next_ms(backoff));
    }
}

static void *follower_main(void *context)
{
    struct weir_host *host = context;
    struct weir_error err = {0};
    int64_t retry_ms = host->config.retry_ms > 0 ? host->config.retry_ms : RETRY_FIRST_MS;
    struct weir_backoff backoff = {.base_ms = retry_ms, .max_ms = RETRY_MAX_MS};
    if (host->config.hosted->is_low_priority) {
        host_lower_priority();
    }
    weir_status status = apply_remembered(host, &err);
    if (status != WEIR_OK && status != WEIR_ERR_NOT_FOUND && status != WEIR_ERR_CANCELLED) {
        weir_log(WEIR_LOG_WARN, "last_deployment_unusable", WEIR_KV_STR("reason", err.message));
    }
    while (host->follower.client != NULL && !atomic_load(&host->is_stopping)) {
        go_on(host, &backoff);
    }
    return NULL;
}

/* ---- the reporter ---------------------------------------------------------------------------- */

/* How a report went. */
static void end_report(struct weir_host *host, weir_status status, const struct weir_error *err)
{
    const struct weir_hosted *hosted = host->config.hosted;
    if (status != WEIR_OK) {
        if (!weir_client_can_retry(status) && status != WEIR_ERR_CANCELLED) {
            weir_log(hosted->refused_level, hosted->refused_event,
                     WEIR_KV_STR("reason", err->message));
        }
    } else if (hosted->reported != NULL) {
        hosted->reported(host->config.context);
    }
}

static void report(struct weir_host *host)
{
    struct weir_error err;
    const struct weir_hosted *hosted = host->config.hosted;
    pthread_mutex_lock(&host->lock);
    struct weir_host_standing standing = host->standing;
    host->has_news = false; /* before anything is looked at, so that no news is missed */
    pthread_mutex_unlock(&host->lock);
    json_t *json = hosted->report(host->config.context, &standing);
    if (json == NULL) {
        weir_log_event(WEIR_LOG_WARN, hosted->unsendable_event);
        return;
    }
    weir_status status =
        weir_client_call(host->reporter.client, "PUT", host->report_path, json, NULL, &err);
    json_decref(json);
    end_report(host, status, &err);
}

/* Until there is news or the next report is due; false: end. */
static bool wait_for_next(struct weir_host *host)
{
    struct timespec deadline = weir_deadline_after(host->config.hosted->report_ms);
    int rc = 0;
    pthread_mutex_lock(&host->lock);
    while (!host->is_ending && !host->has_news && rc != ETIMEDOUT) {
        rc = weir_cond_wait_until(&host->changed, &host->lock, &deadline);
    }
    bool goes_on = !host->is_ending;
    pthread_mutex_unlock(&host->lock);
    return goes_on;
}

static void *reporter_main(void *context)
{
    struct weir_host *host = context;
    do {
        report(host);
    } while (wait_for_next(host));
    return NULL;
}

void weir_host_notify(struct weir_host *host)
{
    if (host == NULL) {
        return;
    }
    pthread_mutex_lock(&host->lock);
    host->has_news = true;
    pthread_cond_broadcast(&host->changed);
    pthread_mutex_unlock(&host->lock);
}

/* ---- life ------------------------------------------------------------------------------------ */

static void make_paths(struct weir_host *host)
{
    const struct weir_host_config *config = &host->config;
    struct weir_arena *arena = &host->arena;
    const char *place =
        weir_client_path(arena, config->hosted->place, config->names, config->n_names);
    host->wanted_path = weir_arena_printf(arena, "%s/%s", place, config->hosted->wanted);
    host->report_path = weir_arena_printf(
        arena, "%s%s", place,
        weir_client_path(arena, "/replicas/{}", (const char *[]){config->spec->replica}, 1));
}

static weir_status open_parts(struct weir_host *host, struct weir_error *err)
{
    const struct weir_host_spec *spec = host->config.spec;
    WEIR_TRY(weir_dir_make(host->cache_dir, 0700, err));
    if (spec->server == NULL) {
        return WEIR_OK;
    }
    WEIR_TRY(weir_host_client_open(spec, POLL_TIMEOUT_MS, &host->follower.client, err));
    return host->config.hosted->report != NULL
               ? weir_host_client_open(spec, REPORT_CALL_MS, &host->reporter.client, err)
               : WEIR_OK;
}

weir_status weir_host_create(const struct weir_host_config *config, struct weir_host **out,
                             struct weir_error *err)
{
    struct weir_host *host = weir_xalloc(sizeof *host);
    *host =
        (struct weir_host){.config = *config, .revision = -1, .standing = {.state = "STARTING"}};
    weir_arena_init(&host->arena, 0);
    make_paths(host);
    (void)snprintf(host->cache_dir, sizeof host->cache_dir, "%s/cache", config->spec->dir);
    pthread_mutex_init(&host->lock, NULL);
    pthread_cond_init(&host->changed, NULL);
    weir_status status = open_parts(host, err);
    if (status != WEIR_OK) {
        weir_host_destroy(host);
        return status;
    }
    *out = host;
    return WEIR_OK;
}

static weir_status start(struct weir_host *host, struct host_line *line, void *(*run)(void *),
                         struct weir_error *err)
{
    int failed = pthread_create(&line->thread, NULL, run, host);
    line->is_started = failed == 0;
    return failed != 0 ? weir_error_set_errno(err, failed, "starting a thread") : WEIR_OK;
}

weir_status weir_host_start(struct weir_host *host, struct weir_error *err)
{
    if (host->reporter.client != NULL) {
        WEIR_TRY(start(host, &host->reporter, reporter_main, err));
    }
    return start(host, &host->follower, follower_main, err);
}

/* The thread looks at the flag. */
static void end(struct weir_host *host, struct host_line *line, atomic_bool *flag)
{
    pthread_mutex_lock(&host->lock);
    atomic_store(flag, true);
    pthread_cond_broadcast(&host->changed);
    pthread_mutex_unlock(&host->lock);
    if (line->client != NULL && line->is_started) {
        weir_client_cancel(line->client);
    }
    if (line->is_started) {
        pthread_join(line->thread, NULL);
        line->is_started = false;
    }
    if (line->client != NULL) {
        weir_client_close(line->client);
        line->client = NULL;
    }
}

void weir_host_end(struct weir_host *host)
{
    if (host != NULL) {
        end(host, &host->follower, &host->is_stopping);
        end(host, &host->reporter, &host->is_ending);
    }
}

void weir_host_destroy(struct weir_host *host)
{
    if (host == NULL) {
        return;
    }
    weir_host_end(host);
    pthread_cond_destroy(&host->changed);
    pthread_mutex_destroy(&host->lock);
    weir_arena_fini(&host->arena);
    free(host);
}
