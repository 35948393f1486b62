#include "control/freeze.h"

#include "control/dataset_scan.h"

#include "base/deadline.h"
#include "base/log.h"
#include "base/uuid.h"
#include "store/table.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STOP_WAIT_MS       3000
#define FREEZE_ARENA_BYTES ((size_t)64 << 20)

struct freeze {
    struct freezer *freezer;
    struct freeze *next; /* newest first; lock */
    uint64_t number;
    char *dataset, *path, *actor;
    char *run; /* NULL: none has written the files */
    bool has_pictures, is_uploaded;
    struct dataset_scan_progress progress;
    int64_t deadline_mono_ms;
    enum freeze_state state;   /* lock, with all below */
    json_t *version, *damaged; /* of a finished one */
    struct weir_error why;
};

struct freezer {
    struct freezer_config config; /* not used after is_stopping */
    char *state_dir;
    pthread_mutex_t lock;
    pthread_cond_t ended;
    atomic_bool is_stopping;
    struct freeze *newest;
    uint64_t n_started;
    size_t n_running;
};

struct freezer *freezer_create(const struct freezer_config *config)
{
    struct freezer *freezer = weir_xalloc(sizeof *freezer);
    freezer->config = *config;
    freezer->state_dir = weir_xstrdup(config->state_dir);
    pthread_mutex_init(&freezer->lock, NULL);
    pthread_cond_init(&freezer->ended, NULL);
    return freezer;
}

static void freeze_free(struct freeze *freeze)
{
    json_decref(freeze->version);
    json_decref(freeze->damaged);
    free(freeze->dataset);
    free(freeze->path);
    free(freeze->actor);
    free(freeze->run);
    free(freeze);
}

void freezer_stop(struct freezer *freezer)
{
    atomic_store(&freezer->is_stopping, true);
    struct timespec until = weir_deadline_after(STOP_WAIT_MS);
    pthread_mutex_lock(&freezer->lock);
    while (freezer->n_running > 0 &&
           weir_cond_wait_until(&freezer->ended, &freezer->lock, &until) == 0) {
    }
    size_t n_left = freezer->n_running;
    pthread_mutex_unlock(&freezer->lock);
    if (n_left > 0) {
        weir_log(WEIR_LOG_WARN, "freeze_left_behind", WEIR_KV_INT("threads", (int64_t)n_left));
    }
}

void freezer_destroy(struct freezer *freezer)
{
    if (freezer == NULL) {
        return;
    }
    if (!atomic_load(&freezer->is_stopping)) {
        freezer_stop(freezer);
    }
    pthread_mutex_lock(&freezer->lock);
    bool is_idle = freezer->n_running == 0;
    pthread_mutex_unlock(&freezer->lock);
    if (!is_idle) {
        return; /* a thread that hangs needs it to see that it shall end */
    }
    while (freezer->newest != NULL) {
        struct freeze *freeze = freezer->newest;
        freezer->newest = freeze->next;
        freeze_free(freeze);
    }
    pthread_cond_destroy(&freezer->ended);
    pthread_mutex_destroy(&freezer->lock);
    free(freezer->state_dir);
    free(freezer);
}

/* ---- the version, once all files are read ---------------------------------------------------- */

struct version_add {
    struct freeze *freeze;
    struct control control;
    struct weir_dataset_version version, stored;
};

static weir_status version_add_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct version_add *add = context;
    struct control *control = &add->control;
    struct weir_dataset dataset;
    bool is_new;
    json_array_clear(control->publish);
    WEIR_TRY(weir_txn_get(txn, &weir_dataset_resource, add->freeze->dataset, control->arena,
                          &dataset, err));
    WEIR_TRY(weir_dataset_add_version(txn, &add->version, control->now_ms, control->arena,
                                      &add->stored, &is_new, err));
    if (!is_new) {
        return WEIR_OK;
    }
    char *subject = weir_arena_printf(control->arena, "dataset/%s", dataset.name);
    char *message =
        weir_arena_printf(control->arena, "Dataset %s has version %lld: %lld files in %lld classes",
                          dataset.name, (long long)add->stored.version,
                          (long long)add->stored.n_files, (long long)add->stored.n_classes);
    WEIR_TRY(control_log(control, txn, "datasets", "dataset_version", subject, message, err));
    return control_dataset_changed(control, txn, &dataset, &add->stored, err);
}

static weir_status put_manifest(struct weir_blobs *blobs, const char *dataset,
                                struct dataset_scan *scan, char out_blob[WEIR_SHA256_TEXT_BYTES],
                                struct weir_error *err)
{
    struct weir_blob_writer *writer;
    struct weir_arena arena;
    weir_arena_init(&arena, 0);
    char *head = weir_arena_printf(&arena, "{\"dataset\":\"%s\",\"files\":[", dataset);
    weir_status status = weir_blob_writer_open(blobs, UINT64_MAX, &writer, err);
    if (status == WEIR_OK) {
        status = weir_blob_writer_write(writer, head, strlen(head), err);
        if (status == WEIR_OK) {
            status = weir_blob_writer_write(writer, scan->files.data, scan->files.len, err);
        }
        if (status == WEIR_OK) {
            status = weir_blob_writer_write(writer, "]}", 2, err);
        }
        if (status == WEIR_OK) {
            status = weir_blob_writer_finish(writer, NULL, out_blob, NULL, err);
        } else {
            weir_blob_writer_abort(writer);
        }
    }
    weir_arena_fini(&arena);
    return status;
}

static weir_status add_version(struct freeze *freeze, struct dataset_scan *scan,
                               struct weir_arena *arena, json_t **out, struct weir_error *err)
{
    const struct freezer_config *config = &freeze->freezer->config;
    char digest[WEIR_SHA256_TEXT_BYTES], blob[WEIR_SHA256_TEXT_BYTES], id[WEIR_UUID_BYTES];
    if (scan->n_files == 0) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "dataset \"%s\" has no files yet: put some with `weir dataset put`",
                              freeze->dataset);
    }
    dataset_scan_digest(scan, digest);
    WEIR_TRY(put_manifest(config->blobs, freeze->dataset, scan, blob, err));
    weir_uuid_make(id);
    struct version_add add = {.freeze = freeze,
                              .control = {.arena = arena,
                                          .now_ms = weir_clock_now_ms(config->clock),
                                          .actor = freeze->actor,
                                          .state_dir = freeze->freezer->state_dir,
                                          .publish = json_array()},
                              .version = {.id = id,
                                          .dataset = freeze->dataset,
                                          .digest = digest,
                                          .blob = blob,
                                          .n_files = scan->n_files,
                                          .n_classes = scan->n_classes,
                                          .n_rows = scan->n_rows,
                                          .n_unread = atomic_load(&scan->progress->n_damaged) +
                                                      atomic_load(&scan->progress->n_other),
                                          .bytes = scan->n_bytes,
                                          .created_by = freeze->actor,
                                          .run = freeze->run}};
    weir_status status = weir_store_write(config->store, version_add_in, &add, err);
    if (status == WEIR_OK) {
        control_publish_all(&config->listener, add.control.publish);
        *out = weir_record_to_json(&weir_dataset_version_resource, &add.stored);
        if (config->notify != NULL) {
            config->notify(config->notify_context);
        }
    }
    json_decref(add.control.publish);
    return status;
}

/* ---- the thread ------------------------------------------------------------------------------ */

static weir_status resolve_root(const struct freeze *freeze, char **out, struct weir_error *err)
{
    if (!freeze->is_uploaded) {
        return dataset_scan_resolve(freeze->path, freeze->freezer->state_dir, out, err);
    }
    /* Only the way to the folder of all datasets may have links: those are the operator's. */
    char datasets[PATH_MAX];
    (void)snprintf(datasets, sizeof datasets, "%s/datasets", freeze->freezer->state_dir);
    char *real = realpath(datasets, NULL);
    if (real == NULL) {
        return weir_error_set_errno(err, errno, "cannot find %s", datasets);
    }
    size_t size = strlen(real) + strlen(freeze->dataset) + 2;
    *out = weir_xalloc(size);
    (void)snprintf(*out, size, "%s/%s", real, freeze->dataset);
    free(real);
    return WEIR_OK;
}

static weir_status scan_and_add(struct freeze *freeze, struct dataset_scan *scan,
                                json_t **out_version, struct weir_error *err)
{
    char *root;
    struct weir_arena arena;
    WEIR_TRY(resolve_root(freeze, &root, err));
    scan->root = root;
    weir_arena_init(&arena, FREEZE_ARENA_BYTES);
    weir_status status = dataset_scan_run(scan, err);
    if (status == WEIR_OK) {
        status = add_version(freeze, scan, &arena, out_version, err);
    }
    dataset_scan_fini(scan);
    weir_arena_fini(&arena);
    free(root);
    return status;
}

static void *freeze_main(void *context)
{
    struct freeze *freeze = context;
    struct freezer *freezer = freeze->freezer;
    struct weir_error why = {0};
    json_t *version = NULL, *damaged = json_array();
    struct dataset_scan *scan = weir_xalloc(sizeof *scan);
    scan->dataset = freeze->dataset;
    scan->has_pictures = freeze->has_pictures;
    scan->blobs = freeze->is_uploaded ? freezer->config.blobs : NULL;
    scan->is_stopping = &freezer->is_stopping;
    scan->deadline_mono_ms = freeze->deadline_mono_ms;
    scan->progress = &freeze->progress;
    weir_status status = scan_and_add(freeze, scan, &version, &why);
    for (size_t i = 0; i < scan->n_damaged_shown; i++) {
        json_array_append_new(damaged, json_string(scan->damaged[i]));
    }
    free(scan);
    pthread_mutex_lock(&freezer->lock);
    freeze->state = status == WEIR_OK ? FREEZE_DONE : FREEZE_FAILED;
    freeze->why = why;
    freeze->version = version;
    freeze->damaged = damaged;
    bool is_stopping = atomic_load(&freezer->is_stopping);
    if (!is_stopping && freezer->config.listener.wake != NULL) {
        freezer->config.listener.wake(
            freezer->config.listener.context); /* within the lock: freezer_destroy waits for it */
    }
    freezer->n_running--;
    pthread_cond_broadcast(&freezer->ended);
    pthread_mutex_unlock(&freezer->lock);
    return NULL;
}

/* ---- for handlers ---------------------------------------------------------------------------- */

static struct freeze *find(struct freezer *freezer, const char *dataset, uint64_t number)
{
    struct freeze *freeze = freezer->newest;
    while (freeze != NULL &&
           (strcmp(freeze->dataset, dataset) != 0 || (number != 0 && freeze->number != number))) {
        freeze = freeze->next;
    }
    return freeze;
}

/* Forget the oldest results over the bound. */
static void drop_old(struct freezer *freezer)
{
    size_t n = 0;
    for (struct freeze **at = &freezer->newest; *at != NULL;) {
        struct freeze *freeze = *at;
        if (++n > FREEZE_MAX_KEPT && freeze->state != FREEZE_RUNNING) {
            *at = freeze->next;
            freeze_free(freeze);
        } else {
            at = &freeze->next;
        }
    }
}

static weir_status start_thread(struct freezer *freezer, struct freeze *freeze,
                                struct weir_error *err)
{
    pthread_t thread;
    pthread_attr_t attributes;
    (void)pthread_attr_init(&attributes);
    (void)pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    int reason = pthread_create(&thread, &attributes, freeze_main, freeze);
    (void)pthread_attr_destroy(&attributes);
    if (reason != 0) {
        return weir_error_set_errno(err, reason, "cannot start a thread to freeze a dataset");
    }
    freezer->n_running++;
    return WEIR_OK;
}

static struct freeze *freeze_new(struct freezer *freezer, const struct weir_dataset *dataset,
                                 const char *actor, const char *run)
{
    struct freeze *freeze = weir_xalloc(sizeof *freeze);
    freeze->freezer = freezer;
    freeze->number = ++freezer->n_started;
    freeze->dataset = weir_xstrdup(dataset->name);
    freeze->path = weir_xstrdup(dataset->path != NULL ? dataset->path : "");
    freeze->actor = weir_xstrdup(actor);
    freeze->run = run != NULL ? weir_xstrdup(run) : NULL;
    freeze->has_pictures = dataset->kind == NULL || strcmp(dataset->kind, "idx") != 0;
    freeze->is_uploaded = dataset->is_uploaded;
    freeze->deadline_mono_ms = weir_mono_ms() + FREEZE_MAX_MS;
    return freeze;
}

weir_status freezer_start(struct freezer *freezer, const struct weir_dataset *dataset,
                          const char *actor, const char *run, uint64_t *out_number,
                          struct weir_error *err)
{
    weir_status status = WEIR_OK;
    pthread_mutex_lock(&freezer->lock);
    struct freeze *freeze = find(freezer, dataset->name, 0);
    if (freeze == NULL || freeze->state != FREEZE_RUNNING) {
        if (freezer->n_running >= FREEZE_MAX_RUNNING || atomic_load(&freezer->is_stopping)) {
            pthread_mutex_unlock(&freezer->lock);
            return weir_error_set(err, WEIR_ERR_UNAVAILABLE,
                                  "%d datasets are being frozen, or the server stops: try again "
                                  "later",
                                  FREEZE_MAX_RUNNING);
        }
        freeze = freeze_new(freezer, dataset, actor, run);
        status = start_thread(freezer, freeze, err);
        if (status == WEIR_OK) {
            freeze->next = freezer->newest;
            freezer->newest = freeze;
            drop_old(freezer);
        }
    }
    if (status == WEIR_OK) {
        *out_number = freeze->number;
    } else {
        freeze_free(freeze);
    }
    pthread_mutex_unlock(&freezer->lock);
    return status;
}

json_t *freezer_look(struct freezer *freezer, const char *dataset, uint64_t number,
                     enum freeze_state *out_state, struct weir_error *out_why)
{
    static const char *const states[] = {
        [FREEZE_RUNNING] = "running", [FREEZE_DONE] = "done", [FREEZE_FAILED] = "failed"};
    json_t *view = NULL;
    pthread_mutex_lock(&freezer->lock);
    struct freeze *freeze = find(freezer, dataset, number);
    if (freeze != NULL) {
        json_t *error = freeze->state == FREEZE_FAILED
                            ? json_pack("{s:s,s:s}", "status", weir_status_name(freeze->why.status),
                                        "message", freeze->why.message)
                            : json_null();
        view = json_pack(
            "{s:s,s:s,s:I,s:I,s:I,s:I,s:o,s:o,s:o}", "dataset", freeze->dataset, "state",
            states[freeze->state], "files", (json_int_t)atomic_load(&freeze->progress.n_files),
            "bytes", (json_int_t)atomic_load(&freeze->progress.n_bytes), "n_damaged",
            (json_int_t)atomic_load(&freeze->progress.n_damaged), "n_other",
            (json_int_t)atomic_load(&freeze->progress.n_other), "damaged",
            freeze->damaged != NULL ? json_deep_copy(freeze->damaged) : json_array(), "version",
            freeze->version != NULL ? json_deep_copy(freeze->version) : json_null(), "error",
            error);
        *out_state = freeze->state;
        if (out_why != NULL) {
            *out_why = freeze->why;
        }
    }
    pthread_mutex_unlock(&freezer->lock);
    return view;
}
