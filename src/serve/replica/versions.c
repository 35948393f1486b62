#include "serve/replica/versions.h"

#include "base/grow.h"
#include "base/log.h"
#include "serve/replica/versions_private.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/** What is known of a version, loaded or not. */
struct entry {
    char *model;
    int64_t number;
    enum version_state state;
    char reason[WEIR_ERROR_MESSAGE_BYTES];
    struct version *current; /**< A reference; NULL unless READY. */
};

struct versions {
    struct versions_config config;
    pthread_mutex_t load_lock; /**< Held while one loads; taken before `lock`. */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    pthread_t reaper;
    /* Under lock. */
    struct entry **entries; /**< By model and number. */
    size_t n_entries, cap_entries;
    struct version *retired;
    size_t n_versions, memory_bytes; /**< Loaded, whether published, in flight or being freed. */
    bool is_stopping;
    bool is_broken; /**< A GPU has failed, and it was said. */
};

const char *version_state_text(enum version_state state)
{
    static const char *const texts[] = {"LOADING", "READY", "FAILED", "UNLOADING"};
    return texts[state];
}

/* ---- the list -------------------------------------------------------------------------------- */

static int compare(const struct entry *entry, const char *model, int64_t number)
{
    int order = strcmp(entry->model, model);
    return order != 0 ? order : (entry->number > number) - (entry->number < number);
}

static struct entry *find(const struct versions *versions, const char *model, int64_t number)
{
    for (size_t i = 0; i < versions->n_entries; i++) {
        if (compare(versions->entries[i], model, number) == 0) {
            return versions->entries[i];
        }
    }
    return NULL;
}

static struct entry *find_or_add(struct versions *versions, const char *model, int64_t number)
{
    struct entry *entry = find(versions, model, number);
    if (entry != NULL) {
        return entry;
    }
    size_t at = 0;
    entry = weir_xalloc(sizeof *entry);
    *entry =
        (struct entry){.model = weir_xstrdup(model), .number = number, .state = VERSION_LOADING};
    weir_xgrow(&versions->entries, sizeof(struct entry *), versions->n_entries,
               &versions->cap_entries);
    while (at < versions->n_entries && compare(versions->entries[at], model, number) < 0) {
        at++;
    }
    memmove(&versions->entries[at + 1], &versions->entries[at],
            (versions->n_entries - at) * sizeof(struct entry *));
    versions->entries[at] = entry;
    versions->n_entries++;
    return entry;
}

static void remove_entry(struct versions *versions, struct entry *entry)
{
    size_t at = 0;
    while (versions->entries[at] != entry) {
        at++;
    }
    versions->n_entries--;
    memmove(&versions->entries[at], &versions->entries[at + 1],
            (versions->n_entries - at) * sizeof(struct entry *));
    free(entry->model);
    free(entry);
}

/* ---- references and their end ---------------------------------------------------------------- */

/* Not on the caller's thread: it may have requests to answer, and a model takes a while to free. */
void version_unref(struct version *version)
{
    if (version == NULL || atomic_fetch_sub(&version->n_refs, 1) > 1) {
        return;
    }
    struct versions *versions = version->owner;
    pthread_mutex_lock(&versions->lock);
    version->next = versions->retired;
    versions->retired = version;
    pthread_cond_broadcast(&versions->changed);
    pthread_mutex_unlock(&versions->lock);
}

static void forget_unloaded(struct versions *versions, const struct version *version)
{
    struct entry *entry = find(versions, version->model, version->number);
    if (entry != NULL && entry->state == VERSION_UNLOADING) {
        remove_entry(versions, entry);
    }
}

static void *reaper_main(void *context)
{
    struct versions *versions = context;
    pthread_mutex_lock(&versions->lock);
    for (;;) {
        struct version *version = versions->retired;
        if (version == NULL && versions->is_stopping && versions->n_versions == 0) {
            break;
        }
        if (version == NULL) {
            pthread_cond_wait(&versions->changed, &versions->lock);
            continue;
        }
        versions->retired = version->next;
        forget_unloaded(versions, version);
        size_t memory_bytes = version->memory_bytes;
        pthread_mutex_unlock(&versions->lock);
        weir_log(WEIR_LOG_INFO, "version_unloaded", WEIR_KV_STR("model", version->model),
                 WEIR_KV_INT("version", version->number));
        version_destroy(version);
        pthread_mutex_lock(&versions->lock);
        versions->memory_bytes -= memory_bytes;
        versions->n_versions--;
        pthread_cond_broadcast(&versions->changed);
    }
    pthread_mutex_unlock(&versions->lock);
    return NULL;
}

/* ---- loading --------------------------------------------------------------------------------- */

weir_status versions_check_room(struct versions *versions, const struct version_wanted *wanted,
                                size_t needed_bytes, struct weir_error *err)
{
    size_t most = versions->config.memory_max_bytes;
    pthread_mutex_lock(&versions->lock);
    size_t taken = versions->memory_bytes, n = versions->n_versions;
    pthread_mutex_unlock(&versions->lock);
    if (most == 0 || taken + needed_bytes <= most) {
        return WEIR_OK;
    }
    return weir_error_set(err, WEIR_ERR_LIMIT,
                          "version %" PRId64
                          " of %s needs %zu MiB: %zu versions are loaded and take "
                          "%zu of the %zu MiB that are allowed; unload one, or allow more",
                          wanted->number, wanted->model, (needed_bytes + (1 << 20) - 1) >> 20, n,
                          taken >> 20, most >> 20);
}

void versions_take_out_broken(struct version *version, const char *reason)
{
    struct versions *versions = version->owner;
    pthread_mutex_lock(&versions->lock);
    struct entry *entry = find(versions, version->model, version->number);
    bool was_current = entry != NULL && entry->current == version;
    bool is_first = !versions->is_broken;
    versions->is_broken = true;
    if (was_current) {
        entry->current = NULL;
        entry->state = VERSION_LOADING;
        (void)snprintf(entry->reason, sizeof entry->reason, "%s", reason);
    }
    pthread_mutex_unlock(&versions->lock);
    if (was_current) {
        weir_log(WEIR_LOG_ERROR, "version_broken", WEIR_KV_STR("model", version->model),
                 WEIR_KV_INT("version", version->number), WEIR_KV_STR("reason", reason));
        version_unref(version);
    }
    if (is_first && versions->config.on_broken != NULL) {
        versions->config.on_broken(versions->config.context, reason);
    }
}

/* Is just this loaded? Then it gets the rules. */
static bool keep(struct versions *versions, const struct version_wanted *wanted)
{
    struct version *version = NULL;
    pthread_mutex_lock(&versions->lock);
    struct entry *entry = find_or_add(versions, wanted->model, wanted->number);
    if (entry->current != NULL && wanted->blob != NULL &&
        strcmp(entry->current->blob, wanted->blob) == 0) {
        version = entry->current;
        batcher_set_rules(version->batcher, &wanted->rules);
    } else if (entry->current == NULL) {
        entry->state = VERSION_LOADING;
        entry->reason[0] = '\0';
    }
    pthread_mutex_unlock(&versions->lock);
    return version != NULL;
}

static void publish(struct versions *versions, struct version *version)
{
    pthread_mutex_lock(&versions->lock);
    struct entry *entry = find_or_add(versions, version->model, version->number);
    struct version *old = entry->current;
    entry->current = version;
    entry->state = VERSION_READY;
    entry->reason[0] = '\0';
    versions->n_versions++;
    versions->memory_bytes += version->memory_bytes;
    pthread_mutex_unlock(&versions->lock);
    version_unref(old);
}

weir_status versions_load(struct versions *versions, const struct version_wanted *wanted,
                          struct weir_error *err)
{
    struct version *version;
    struct weir_error own;
    err = err != NULL ? err : &own;
    pthread_mutex_lock(&versions->load_lock);
    if (keep(versions, wanted)) {
        pthread_mutex_unlock(&versions->load_lock);
        return WEIR_OK;
    }
    weir_status status = version_create(&versions->config, versions, wanted, &version, err);
    if (status == WEIR_OK) {
        weir_log(WEIR_LOG_INFO, "version_ready", WEIR_KV_STR("model", wanted->model),
                 WEIR_KV_INT("version", wanted->number),
                 WEIR_KV_STR("executor", version->signature.executor),
                 WEIR_KV_STR("place", version->executor->place),
                 WEIR_KV_F64("load_ms", version->load_ms),
                 WEIR_KV_INT("memory_bytes", (int64_t)version->memory_bytes));
        publish(versions, version);
    } else {
        weir_log(WEIR_LOG_ERROR, "version_failed", WEIR_KV_STR("model", wanted->model),
                 WEIR_KV_INT("version", wanted->number), WEIR_KV_STR("reason", err->message));
        if (status != WEIR_ERR_LIMIT) {
            versions_fail(versions, wanted->model, wanted->number, err->message);
        }
    }
    pthread_mutex_unlock(&versions->load_lock);
    return status;
}

void versions_set_limits(struct versions *versions, size_t memory_max_bytes, int32_t n_threads)
{
    pthread_mutex_lock(&versions->load_lock);
    versions->config.memory_max_bytes = memory_max_bytes;
    versions->config.executor.n_threads = n_threads;
    pthread_mutex_unlock(&versions->load_lock);
}

static size_t count_published(const struct versions *versions)
{
    size_t n = 0;
    for (size_t i = 0; i < versions->n_entries; i++) {
        n += versions->entries[i]->current != NULL;
    }
    return n;
}

void versions_wait_freed(struct versions *versions)
{
    pthread_mutex_lock(&versions->lock);
    while (versions->n_versions > count_published(versions)) {
        pthread_cond_wait(&versions->changed, &versions->lock);
    }
    pthread_mutex_unlock(&versions->lock);
}

void versions_announce(struct versions *versions, const char *model, int64_t number)
{
    pthread_mutex_lock(&versions->lock);
    (void)find_or_add(versions, model, number);
    pthread_mutex_unlock(&versions->lock);
}

void versions_fail(struct versions *versions, const char *model, int64_t number, const char *reason)
{
    pthread_mutex_lock(&versions->lock);
    struct entry *entry = find_or_add(versions, model, number);
    if (entry->current == NULL) {
        entry->state = VERSION_FAILED;
        (void)snprintf(entry->reason, sizeof entry->reason, "%s", reason);
    }
    pthread_mutex_unlock(&versions->lock);
}

bool versions_unload(struct versions *versions, const char *model, int64_t number)
{
    struct version *old = NULL;
    pthread_mutex_lock(&versions->load_lock); /* what is being loaded is loaded first */
    pthread_mutex_lock(&versions->lock);
    struct entry *entry = find(versions, model, number);
    bool is_there = entry != NULL && entry->state != VERSION_UNLOADING;
    if (is_there && entry->current != NULL) {
        old = entry->current;
        entry->current = NULL;
        entry->state = VERSION_UNLOADING;
    } else if (is_there) {
        remove_entry(versions, entry);
    }
    pthread_mutex_unlock(&versions->lock);
    pthread_mutex_unlock(&versions->load_lock);
    version_unref(old);
    return is_there;
}

/* ---- finding --------------------------------------------------------------------------------- */

/* The models that there are, for a sentence. Lock held. */
static void list_models(const struct versions *versions, char *out, size_t size)
{
    size_t n = 0;
    out[0] = '\0';
    for (size_t i = 0; i < versions->n_entries && n < size; i++) {
        const char *model = versions->entries[i]->model;
        if (i == 0 || strcmp(versions->entries[i - 1]->model, model) != 0) {
            n += (size_t)snprintf(out + n, size - n, "%s%s", n > 0 ? ", " : "", model);
        }
    }
}

static weir_status not_found(const struct versions *versions, const char *model, int64_t number,
                             bool has_model, struct weir_error *err)
{
    char models[256];
    list_models(versions, models, sizeof models);
    if (has_model) {
        return weir_error_set(err, WEIR_ERR_NOT_FOUND,
                              "model %.100s has no version %" PRId64 " here", model, number);
    }
    return weir_error_set(err, WEIR_ERR_NOT_FOUND, "there is no model %.100s here; there is: %s",
                          model, models[0] != '\0' ? models : "none");
}

static weir_status not_ready(const struct entry *entry, struct weir_error *err)
{
    return weir_error_set(err, WEIR_ERR_UNAVAILABLE, "version %" PRId64 " of %.100s is %s%s%.300s",
                          entry->number, entry->model, version_state_text(entry->state),
                          entry->reason[0] != '\0' ? ": " : "", entry->reason);
}

/* The name of the only model; NULL: there is none, or several. Lock held. */
static const char *only_model(const struct versions *versions)
{
    for (size_t i = 1; i < versions->n_entries; i++) {
        if (strcmp(versions->entries[i]->model, versions->entries[0]->model) != 0) {
            return NULL;
        }
    }
    return versions->n_entries > 0 ? versions->entries[0]->model : NULL;
}

static weir_status get(const struct versions *versions, const char *model, int64_t number,
                       struct version **out, struct weir_error *err)
{
    const struct entry *found = NULL;
    bool has_model = false;
    if (model == NULL) {
        model = only_model(versions);
        if (model == NULL) {
            char models[256];
            list_models(versions, models, sizeof models);
            return weir_error_set(err, WEIR_ERR_INVALID, "the request names no model; there is: %s",
                                  models[0] != '\0' ? models : "none");
        }
    }
    for (size_t i = 0; i < versions->n_entries; i++) {
        const struct entry *entry = versions->entries[i];
        if (strcmp(entry->model, model) != 0) {
            continue;
        }
        has_model = true;
        bool is_asked = number == 0 || entry->number == number;
        /* The last one that is ready, else the last one. */
        if (is_asked && (entry->current != NULL || found == NULL || found->current == NULL)) {
            found = entry;
        }
    }
    if (found == NULL) {
        return not_found(versions, model, number, has_model, err);
    }
    if (found->current == NULL) {
        return not_ready(found, err);
    }
    atomic_fetch_add(&found->current->n_refs, 1);
    *out = found->current;
    return WEIR_OK;
}

weir_status versions_get(struct versions *versions, const char *model, int64_t number,
                         struct version **out, struct weir_error *err)
{
    pthread_mutex_lock(&versions->lock);
    weir_status status = get(versions, model, number, out, err);
    pthread_mutex_unlock(&versions->lock);
    return status;
}

void versions_view(struct versions *versions, struct weir_arena *arena, struct versions_view *out)
{
    pthread_mutex_lock(&versions->lock);
    out->n = versions->n_entries;
    out->rows = WEIR_ARENA_ARRAY(arena, out->n + 1, struct version_row);
    for (size_t i = 0; i < out->n; i++) {
        const struct entry *entry = versions->entries[i];
        if (entry->current != NULL) {
            atomic_fetch_add(&entry->current->n_refs, 1);
        }
        out->rows[i] = (struct version_row){.model = weir_arena_strdup(arena, entry->model),
                                            .number = entry->number,
                                            .state = entry->state,
                                            .reason = weir_arena_strdup(arena, entry->reason),
                                            .version = entry->current};
    }
    pthread_mutex_unlock(&versions->lock);
}

void versions_view_release(struct versions_view *view)
{
    for (size_t i = 0; i < view->n; i++) {
        version_unref(view->rows[i].version);
        view->rows[i].version = NULL;
    }
}

/* ---- lifecycle ------------------------------------------------------------------------------- */

weir_status versions_create(const struct versions_config *config, struct versions **out,
                            struct weir_error *err)
{
    struct versions *versions = weir_xalloc(sizeof *versions);
    memset(versions, 0, sizeof *versions);
    versions->config = *config;
    pthread_mutex_init(&versions->load_lock, NULL);
    pthread_mutex_init(&versions->lock, NULL);
    pthread_cond_init(&versions->changed, NULL);
    int failed = pthread_create(&versions->reaper, NULL, reaper_main, versions);
    if (failed != 0) {
        free(versions);
        return weir_error_set_errno(err, failed, "cannot start a thread");
    }
    *out = versions;
    return WEIR_OK;
}

void versions_destroy(struct versions *versions)
{
    if (versions == NULL) {
        return;
    }
    for (;;) {
        pthread_mutex_lock(&versions->lock);
        struct version *current = NULL;
        for (size_t i = 0; i < versions->n_entries && current == NULL; i++) {
            current = versions->entries[i]->current;
            versions->entries[i]->current = NULL;
        }
        versions->is_stopping = current == NULL;
        pthread_cond_broadcast(&versions->changed);
        pthread_mutex_unlock(&versions->lock);
        if (current == NULL) {
            break;
        }
        version_unref(current);
    }
    pthread_join(versions->reaper, NULL);
    while (versions->n_entries > 0) {
        remove_entry(versions, versions->entries[0]);
    }
    free(versions->entries);
    pthread_cond_destroy(&versions->changed);
    pthread_mutex_destroy(&versions->lock);
    pthread_mutex_destroy(&versions->load_lock);
    free(versions);
}
