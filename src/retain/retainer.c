#include "retain/retain_private.h"

#include "base/deadline.h"
#include "base/log.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define LOOK_MAX_BYTES    ((size_t)1 << 30)
#define MORE_MS           ((int64_t)1000)
#define CLOCK_JUMP_MS     RETAIN_MINUTE_MS
#define CLOCK_PATIENCE_MS (60 * RETAIN_MINUTE_MS)

/* ---- rounds ---------------------------------------------------------------------------------- */

struct loading {
    struct weir_arena *arena;
    struct weir_retain_policy *policy;
    struct weir_retain_projects *projects;
};

static weir_status load_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    const struct loading *loading = context;
    WEIR_TRY(weir_retain_policy_load(txn, loading->arena, loading->policy, err));
    return weir_retain_projects_load(txn, loading->arena, loading->policy, loading->projects, err);
}

weir_status retain_look_begin(struct weir_retainer *retainer, struct weir_arena *arena,
                              struct retain_look *out, struct weir_error *err)
{
    struct loading loading = {arena, WEIR_ARENA_NEW(arena, struct weir_retain_policy),
                              WEIR_ARENA_NEW(arena, struct weir_retain_projects)};
    WEIR_TRY(weir_store_read(retainer->config.store, load_in, &loading, err));
    *out = (struct retain_look){.retainer = retainer,
                                .policy = loading.policy,
                                .projects = loading.projects,
                                .now_ms = weir_clock_now_ms(retainer->config.clock),
                                .arena = arena};
    return WEIR_OK;
}

void retain_look_at(struct retain_look *look, int kind)
{
    look->kind = kind;
    look->limit = look->policy->limits[kind];
    look->has_own = weir_retain_projects_have(look->projects, kind);
}

int64_t retain_keep(const struct retain_look *look, const char *project, int kind)
{
    bool is_preview = look->preview_project != NULL && kind == look->kind &&
                      strcmp(look->preview_project, project) == 0;
    return is_preview ? look->preview_keep_ms
                      : weir_retain_project_keep(look->projects, look->policy, project, kind);
}

int64_t retain_before(const struct retain_look *look, int64_t keep_ms)
{
    return keep_ms < 0 ? INT64_MIN : look->now_ms - keep_ms;
}

static weir_status sweep_kind(struct weir_retainer *retainer, int kind, struct weir_error *err)
{
    struct weir_arena arena;
    struct retain_look look;
    weir_arena_init(&arena, LOOK_MAX_BYTES);
    retainer->has_more = false;
    weir_status status = retain_look_begin(retainer, &arena, &look, err);
    if (status == WEIR_OK) {
        retain_look_at(&look, kind);
        status = retain_kind(kind)->ops->sweep(&look, err);
    }
    weir_arena_fini(&arena);
    if (status != WEIR_OK) {
        weir_log(WEIR_LOG_WARN, "retention_failed",
                 WEIR_KV_STR("kind", weir_retain_rule(kind)->name),
                 WEIR_KV_STR("error", err->message));
    }
    return status;
}

weir_status weir_retainer_round(struct weir_retainer *retainer, struct weir_error *err)
{
    weir_status first = WEIR_OK;
    for (int kind = 0; kind < weir_retain_n() && !retain_is_stopping(retainer); kind++) {
        struct weir_error failure = {0};
        weir_status status;
        do {
            status = sweep_kind(retainer, kind, &failure);
        } while (status == WEIR_OK && retainer->has_more && !retain_is_stopping(retainer));
        if (status != WEIR_OK && first == WEIR_OK) {
            first = weir_error_set(err, status, "%s", failure.message);
        }
    }
    struct weir_error failure = {0};
    weir_status status = retain_shrink(retainer, &failure);
    if (status != WEIR_OK && first == WEIR_OK) {
        first = weir_error_set(err, status, "%s", failure.message);
    }
    return first;
}

/* ---- the thread ------------------------------------------------------------------------------ */

bool retain_is_stopping(struct weir_retainer *retainer)
{
    pthread_mutex_lock(&retainer->lock);
    bool is_stopping = retainer->is_stopping;
    pthread_mutex_unlock(&retainer->lock);
    return is_stopping;
}

void retain_pause(struct weir_retainer *retainer, int64_t wait_ms)
{
    if (!retainer->has_thread) {
        return;
    }
    struct timespec deadline = weir_deadline_after(wait_ms);
    pthread_mutex_lock(&retainer->lock);
    int rc = 0;
    while (!retainer->is_stopping && rc != ETIMEDOUT) {
        rc = weir_cond_wait_until(&retainer->changed, &retainer->lock, &deadline);
    }
    pthread_mutex_unlock(&retainer->lock);
}

/* Wait until `mono_ms`, or until somebody asks. */
static bool wait_until(struct weir_retainer *retainer, int64_t mono_ms, bool *out_is_asked)
{
    struct timespec deadline = weir_deadline_at(mono_ms);
    pthread_mutex_lock(&retainer->lock);
    int rc = 0;
    while (!retainer->is_stopping && !retainer->is_notified && rc != ETIMEDOUT) {
        rc = weir_cond_wait_until(&retainer->changed, &retainer->lock, &deadline);
    }
    *out_is_asked = retainer->is_notified;
    retainer->is_notified = false;
    bool goes_on = !retainer->is_stopping;
    pthread_mutex_unlock(&retainer->lock);
    return goes_on;
}

/* Sweep what is due; everything if somebody asked. Returns when the next kind is due. */
static int64_t sweep_due(struct weir_retainer *retainer, bool is_asked)
{
    int64_t next_ms = INT64_MAX;
    for (int kind = 0; kind < weir_retain_n() && !retain_is_stopping(retainer); kind++) {
        struct weir_error ignored = {0}; /* logged; the next round tries again */
        if (is_asked || weir_mono_ms() >= retainer->due_mono_ms[kind]) {
            (void)sweep_kind(retainer, kind, &ignored);
            retainer->due_mono_ms[kind] =
                weir_mono_ms() + (retainer->has_more ? MORE_MS : retain_kind(kind)->ops->every_ms);
        }
        next_ms = WEIR_MIN(next_ms, retainer->due_mono_ms[kind]);
    }
    struct weir_error err = {0};
    if (retain_shrink(retainer, &err) != WEIR_OK) {
        weir_log(WEIR_LOG_WARN, "retention_failed", WEIR_KV_STR("kind", "database"),
                 WEIR_KV_STR("error", err.message));
    }
    return next_ms;
}

/* A wall clock that leaps ahead makes everything look old: wait until somebody could have put it
 * right. Returns by how much it leapt since the last look. */
static int64_t clock_leap_ms(int64_t *offset_ms)
{
    int64_t now_ms = weir_time_ms() - weir_mono_ms();
    int64_t leap_ms = now_ms - *offset_ms;
    *offset_ms = now_ms;
    return leap_ms;
}

static void *retainer_main(void *context)
{
    struct weir_retainer *retainer = context;
    int64_t offset_ms = weir_time_ms() - weir_mono_ms();
    int64_t next_ms = weir_mono_ms();
    bool is_asked;
    while (wait_until(retainer, next_ms, &is_asked)) {
        int64_t leap_ms = clock_leap_ms(&offset_ms);
        if (leap_ms >= CLOCK_JUMP_MS) {
            weir_log(WEIR_LOG_WARN, "retention_waits",
                     WEIR_KV_STR("reason", "the wall clock was set ahead"),
                     WEIR_KV_INT("by_s", leap_ms / 1000));
            next_ms = weir_mono_ms() + CLOCK_PATIENCE_MS;
            continue;
        }
        next_ms = sweep_due(retainer, is_asked);
    }
    return NULL;
}

struct weir_retainer *weir_retainer_create(const struct weir_retainer_config *config)
{
    struct weir_retainer *retainer = weir_xalloc(sizeof *retainer);
    *retainer = (struct weir_retainer){.config = *config, .since_ms = weir_time_ms()};
    for (int kind = 0; kind < weir_retain_n(); kind++) {
        retainer->paces[kind].n_entries = WEIR_MAX((int64_t)1, weir_retain_rule(kind)->n_entries);
    }
    retainer->paces[RETAIN_PACE_SHRINK].n_entries = 1; /* pages */
    retainer->config.state_dir = weir_xstrdup(config->state_dir);
    retainer->config.clock = config->clock != NULL ? config->clock : &weir_system_clock;
    pthread_mutex_init(&retainer->lock, NULL);
    pthread_cond_init(&retainer->changed, NULL);
    return retainer;
}

weir_status weir_retainer_start(struct weir_retainer *retainer, struct weir_error *err)
{
    retainer->has_thread = true;
    int reason = pthread_create(&retainer->thread, NULL, retainer_main, retainer);
    if (reason != 0) {
        retainer->has_thread = false;
        return weir_error_set_errno(err, reason, "cannot start the thread of retention");
    }
    return WEIR_OK;
}

void weir_retainer_destroy(struct weir_retainer *retainer)
{
    if (retainer == NULL) {
        return;
    }
    pthread_mutex_lock(&retainer->lock);
    retainer->is_stopping = true;
    pthread_cond_broadcast(&retainer->changed);
    pthread_mutex_unlock(&retainer->lock);
    if (retainer->has_thread) {
        pthread_join(retainer->thread, NULL);
    }
    pthread_cond_destroy(&retainer->changed);
    pthread_mutex_destroy(&retainer->lock);
    free((char *)retainer->config.state_dir);
    free(retainer);
}

void weir_retainer_notify(struct weir_retainer *retainer)
{
    pthread_mutex_lock(&retainer->lock);
    retainer->is_notified = true;
    pthread_cond_broadcast(&retainer->changed);
    pthread_mutex_unlock(&retainer->lock);
}
