#include "control/inspector.h"

#include "base/buf.h"
#include "base/file.h"
#include "base/macros.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ARENA_BYTES   ((size_t)32 << 20)
#define KEY_MAX_BYTES ((size_t)64 << 20) /* A request's body is far smaller. */

/* One question and its answer. */
struct look {
    struct look *next;                /* Newest first. */
    char key[WEIR_SHA256_TEXT_BYTES]; /* Of all that is asked. */
    char *blob, *name, *labels, *preprocess, *inputs, *golden;
    enum inspect_state state;
    bool is_taken; /* A thread is at it. */
    char *signature;
    struct weir_error why;
};

struct inspector {
    struct inspector_config config;
    char *dir, *onnxruntime;
    pthread_mutex_t lock;
    pthread_cond_t asked;
    struct look *newest;
    atomic_bool is_stopping;
    pthread_t threads[INSPECT_MAX_RUNNING];
    size_t n_threads;
};

static weir_status run_child(void *context, const struct inspect_request *request,
                             struct weir_arena *arena, char **out, struct weir_error *err)
{
    (void)context;
    return inspect_child_run(NULL, request, 0, arena, out, err);
}

static char *copy(const char *text)
{
    return text != NULL ? weir_xstrdup(text) : NULL;
}

static void look_free(struct look *look)
{
    free(look->blob);
    free(look->name);
    free(look->labels);
    free(look->preprocess);
    free(look->inputs);
    free(look->golden);
    free(look->signature);
    free(look);
}

/* ---- the threads ----------------------------------------------------------------------------- */

/* Text as a file that the child reads; NULL if there is none. */
static weir_status put_file(const struct inspector *inspector, const struct look *look,
                            const char *suffix, const char *text, struct weir_arena *arena,
                            const char **out, struct weir_error *err)
{
    *out = NULL;
    if (text == NULL) {
        return WEIR_OK;
    }
    const char *path = weir_arena_printf(arena, "%s/%s.%s", inspector->dir, look->key, suffix);
    WEIR_TRY(weir_file_write(path, text, strlen(text), 0600, err));
    *out = path;
    return WEIR_OK;
}

static weir_status inspect(struct inspector *inspector, const struct look *look,
                           struct weir_arena *arena, char **out, struct weir_error *err)
{
    struct inspect_request request = {.name = look->name,
                                      .onnxruntime = inspector->onnxruntime,
                                      .is_stopping = &inspector->is_stopping};
    char *path;
    WEIR_TRY(weir_blob_path(inspector->config.blobs, look->blob, arena, &path, NULL, err));
    request.path = path;
    if (look->golden != NULL) {
        WEIR_TRY(weir_blob_path(inspector->config.blobs, look->golden, arena, &path, NULL, err));
        request.golden = path;
    }
    WEIR_TRY(put_file(inspector, look, "labels.json", look->labels, arena, &request.labels, err));
    WEIR_TRY(put_file(inspector, look, "preprocess.json", look->preprocess, arena,
                      &request.preprocess, err));
    WEIR_TRY(put_file(inspector, look, "inputs.json", look->inputs, arena, &request.inputs, err));
    weir_status status =
        inspector->config.inspect(inspector->config.context, &request, arena, out, err);
    const char *const files[] = {request.labels, request.preprocess, request.inputs};
    for (size_t i = 0; i < WEIR_ARRAY_LEN(files); i++) {
        if (files[i] != NULL) {
            (void)unlink(files[i]);
        }
    }
    return status;
}

/* The oldest that nobody has taken. */
static struct look *next_look(struct inspector *inspector)
{
    struct look *oldest = NULL;
    for (struct look *look = inspector->newest; look != NULL; look = look->next) {
        oldest = look->state == INSPECT_RUNNING && !look->is_taken ? look : oldest;
    }
    return oldest;
}

static void answer(struct inspector *inspector, struct look *look)
{
    struct weir_arena arena;
    struct weir_error why = {0};
    char *signature = NULL;
    weir_arena_init(&arena, ARENA_BYTES);
    weir_status status = inspect(inspector, look, &arena, &signature, &why);
    char *kept = status == WEIR_OK ? weir_xstrdup(signature) : NULL;
    weir_arena_fini(&arena);
    pthread_mutex_lock(&inspector->lock);
    look->state = status == WEIR_OK ? INSPECT_DONE : INSPECT_REFUSED;
    look->signature = kept;
    look->why = why;
    char **const given[] = {&look->labels, &look->preprocess, &look->inputs};
    for (size_t i = 0; i < WEIR_ARRAY_LEN(given); i++) { /* the key stands for them from now on */
        free(*given[i]);
        *given[i] = NULL;
    }
    if (!inspector->is_stopping && inspector->config.listener.wake != NULL) {
        inspector->config.listener.wake(inspector->config.listener.context);
    }
    pthread_mutex_unlock(&inspector->lock);
}

static void *inspector_main(void *context)
{
    struct inspector *inspector = context;
    pthread_mutex_lock(&inspector->lock);
    while (!inspector->is_stopping) {
        struct look *look = next_look(inspector);
        if (look == NULL) {
            pthread_cond_wait(&inspector->asked, &inspector->lock);
            continue;
        }
        look->is_taken = true;
        pthread_mutex_unlock(&inspector->lock);
        answer(inspector, look);
        pthread_mutex_lock(&inspector->lock);
    }
    pthread_mutex_unlock(&inspector->lock);
    return NULL;
}

struct inspector *inspector_create(const struct inspector_config *config)
{
    struct inspector *inspector = weir_xalloc(sizeof *inspector);
    memset(inspector, 0, sizeof *inspector);
    inspector->config = *config;
    inspector->config.inspect = config->inspect != NULL ? config->inspect : run_child;
    inspector->dir = weir_xstrdup(config->dir);
    inspector->onnxruntime = copy(config->onnxruntime);
    pthread_mutex_init(&inspector->lock, NULL);
    pthread_cond_init(&inspector->asked, NULL);
    return inspector;
}

/* Threads come with the first questions: a server that is pushed no model has none. */
static weir_status have_threads(struct inspector *inspector, struct weir_error *err)
{
    if (inspector->n_threads > 0) {
        return WEIR_OK;
    }
    WEIR_TRY(weir_dir_make(inspector->dir, 0700, err));
    while (inspector->n_threads < INSPECT_MAX_RUNNING) {
        int reason = pthread_create(&inspector->threads[inspector->n_threads], NULL, inspector_main,
                                    inspector);
        if (reason != 0) {
            return inspector->n_threads > 0
                       ? WEIR_OK
                       : weir_error_set_errno(err, reason, "cannot start a thread");
        }
        inspector->n_threads++;
    }
    return WEIR_OK;
}

void inspector_stop(struct inspector *inspector)
{
    if (inspector == NULL) {
        return;
    }
    pthread_mutex_lock(&inspector->lock);
    inspector->is_stopping = true;
    pthread_cond_broadcast(&inspector->asked);
    size_t n = inspector->n_threads;
    inspector->n_threads = 0;
    pthread_mutex_unlock(&inspector->lock);
    for (size_t i = 0; i < n; i++) {
        pthread_join(inspector->threads[i], NULL);
    }
}

void inspector_destroy(struct inspector *inspector)
{
    if (inspector == NULL) {
        return;
    }
    inspector_stop(inspector);
    while (inspector->newest != NULL) {
        struct look *look = inspector->newest;
        inspector->newest = look->next;
        look_free(look);
    }
    pthread_cond_destroy(&inspector->asked);
    pthread_mutex_destroy(&inspector->lock);
    free(inspector->dir);
    free(inspector->onnxruntime);
    free(inspector);
}

/* ---- for handlers ---------------------------------------------------------------------------- */

static void make_key(const struct inspect_question *question, char out[WEIR_SHA256_TEXT_BYTES])
{
    const char *const parts[] = {question->blob,       question->name,   question->labels,
                                 question->preprocess, question->inputs, question->golden};
    struct weir_buf all;
    weir_buf_init(&all, KEY_MAX_BYTES);
    for (size_t i = 0; i < WEIR_ARRAY_LEN(parts); i++) {
        const char *text = parts[i] != NULL ? parts[i] : "";
        weir_buf_append(&all, text, strlen(text) + 1); /* the NUL parts them */
    }
    weir_sha256(all.data, all.len, out);
    weir_buf_fini(&all);
}

/* Answers over the bound, the oldest; and whether the number of questions is at its own. */
static bool make_room(struct inspector *inspector)
{
    size_t n_waiting = 0, n_kept = 0;
    for (struct look **at = &inspector->newest; *at != NULL;) {
        struct look *look = *at;
        bool is_answered = look->state != INSPECT_RUNNING;
        n_waiting += !is_answered;
        n_kept += is_answered;
        if (is_answered && n_kept > INSPECT_MAX_KEPT) {
            *at = look->next;
            look_free(look);
        } else {
            at = &look->next;
        }
    }
    return n_waiting < INSPECT_MAX_WAITING;
}

static struct look *ask(struct inspector *inspector, const struct inspect_question *question,
                        const char *key, struct weir_error *err)
{
    if (inspector->is_stopping || !make_room(inspector)) {
        (void)weir_error_set(err, WEIR_ERR_UNAVAILABLE,
                             "%d models are being looked at, or the server stops: try again later",
                             INSPECT_MAX_WAITING);
        return NULL;
    }
    if (have_threads(inspector, err) != WEIR_OK) {
        return NULL;
    }
    struct look *look = weir_xalloc(sizeof *look);
    memset(look, 0, sizeof *look);
    memcpy(look->key, key, sizeof look->key);
    look->blob = copy(question->blob);
    look->name = copy(question->name);
    look->labels = copy(question->labels);
    look->preprocess = copy(question->preprocess);
    look->inputs = copy(question->inputs);
    look->golden = copy(question->golden);
    look->next = inspector->newest;
    inspector->newest = look;
    pthread_cond_signal(&inspector->asked);
    return look;
}

/* What was no fault of the file is asked again the next time: also when the store had not its bytes, which may have been sent
 * again since. */
static bool is_passing(const struct weir_error *why)
{
    weir_status status = why->status;
    return status == WEIR_ERR_NOT_FOUND || weir_blob_error_is_damage(why) ||
           status == WEIR_ERR_UNAVAILABLE || status == WEIR_ERR_IO || status == WEIR_ERR_NOSPACE ||
           status == WEIR_ERR_NOMEM || status == WEIR_ERR_INTERNAL || status == WEIR_ERR_CANCELLED;
}

static void forget(struct inspector *inspector, const struct look *look)
{
    struct look **at = &inspector->newest;
    while (*at != look) {
        at = &(*at)->next;
    }
    struct look *found = *at;
    *at = found->next;
    look_free(found);
}

enum inspect_state inspector_look(struct inspector *inspector,
                                  const struct inspect_question *question, struct weir_arena *arena,
                                  char **out_signature, struct weir_error *err)
{
    char key[WEIR_SHA256_TEXT_BYTES];
    enum inspect_state state = INSPECT_REFUSED;
    make_key(question, key);
    pthread_mutex_lock(&inspector->lock);
    struct look *look = inspector->newest;
    while (look != NULL && strcmp(look->key, key) != 0) {
        look = look->next;
    }
    if (look == NULL) {
        look = ask(inspector, question, key, err);
    }
    if (look != NULL) {
        state = look->state;
    }
    if (look != NULL && state == INSPECT_DONE) {
        *out_signature = weir_arena_strdup(arena, look->signature);
    } else if (look != NULL && state == INSPECT_REFUSED) {
        if (err != NULL) {
            *err = look->why;
        }
        if (is_passing(&look->why)) {
            forget(inspector, look);
        }
    }
    pthread_mutex_unlock(&inspector->lock);
    return state;
}
