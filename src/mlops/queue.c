#include "mlops/mlops_private.h"

#include "base/clock.h"
#include "base/deadline.h"
#include "base/json.h"
#include "base/macros.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BACKOFF_BASE_MS 200
#define BACKOFF_MAX_MS  5000
#define LINE_MAX_BYTES  (1 << 20) /* the server takes no longer request */

static const char feedback_list[] = "feedback", feedback_path[] = "/api/v1/feedback";

void mlops_record_free(struct mlops_record *record)
{
    free(record->path);
    json_decref(record->item);
}

void mlops_remember(struct weir_mlops *mlops, const struct weir_error *error)
{
    (void)pthread_mutex_lock(&mlops->mutex);
    mlops->error = *error;
    (void)pthread_mutex_unlock(&mlops->mutex);
}

/* ---- the file --------------------------------------------------------------------------------- */

size_t mlops_write(struct weir_mlops *mlops, const struct mlops_record *records, size_t n)
{
    size_t n_written = 0;
    FILE *file = n > 0 ? fopen(mlops->file, "ae") : NULL;
    for (size_t i = 0; i < n && file != NULL; i++) {
        json_t *line = json_pack("{s:s,s:s?,s:O}", "path", records[i].path, "list", records[i].list,
                                 "item", records[i].item);
        bool is_out =
            line != NULL && json_dumpf(line, file, JSON_COMPACT) == 0 && fputc('\n', file) != EOF;
        json_decref(line);
        if (!is_out) {
            break;
        }
        n_written++;
    }
    if (file != NULL && fclose(file) != 0) {
        n_written = 0;
    }
    if (n_written < n) {
        struct weir_error error = {0};
        (void)weir_error_set_errno(&error, errno, "cannot write %s", mlops->file);
        mlops->error = error;
    }
    return n_written;
}

/* ---- the queue -------------------------------------------------------------------------------- */

int mlops_tell(struct weir_mlops *mlops, char *path, const char *list, json_t *item)
{
    struct mlops_record record = {.path = path, .item = item, .list = list};
    int status = 0;
    if (path == NULL || item == NULL) {
        mlops_record_free(&record);
        return MLOPS_NO_MEMORY;
    }
    (void)pthread_mutex_lock(&mlops->mutex);
    if (mlops->client == NULL) {
        mlops->n_lost += mlops_write(mlops, &record, 1) == 0;
        mlops_record_free(&record);
    } else if (mlops->n == WEIR_MLOPS_QUEUE_MAX) {
        (void)weir_error_set(&mlops->error, WEIR_ERR_LIMIT, "%d records wait for the server",
                             WEIR_MLOPS_QUEUE_MAX);
        mlops->n_lost++;
        mlops_record_free(&record);
        status = MLOPS_FULL;
    } else {
        mlops->records[mlops->n++] = record;
        (void)pthread_cond_broadcast(&mlops->has_changed);
    }
    (void)pthread_mutex_unlock(&mlops->mutex);
    return status;
}

/* How many of the first records are one request. */
static size_t n_together(const struct weir_mlops *mlops)
{
    size_t n = 1;
    const struct mlops_record *first = mlops->records;
    while (first->list != NULL && n < mlops->n && n < MLOPS_BATCH_MAX &&
           first[n].list == first->list && strcmp(first[n].path, first->path) == 0) {
        n++;
    }
    return n;
}

static json_t *body_of(const struct mlops_record *records, size_t n)
{
    if (records->list == NULL) {
        return json_incref(records->item);
    }
    json_t *items = json_array();
    for (size_t i = 0; i < n; i++) {
        json_array_append(items, records[i].item);
    }
    return json_pack("{s:o}", records->list, items);
}

/* Mutex held. */
static void drop_first(struct weir_mlops *mlops, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        mlops_record_free(&mlops->records[i]);
    }
    mlops->n -= n;
    memmove(mlops->records, mlops->records + n, mlops->n * sizeof *mlops->records);
}

/* Mutex held. @return false: leave. */
static bool await_records(struct weir_mlops *mlops)
{
    while (mlops->n == 0 && !mlops->is_stopping) {
        (void)pthread_cond_wait(&mlops->has_changed, &mlops->mutex);
    }
    return mlops->n > 0 && !(mlops->is_stopping && weir_mono_ms() >= mlops->stop_ms);
}

/* Mutex held. Shorter if it is to stop. */
static void await_retry(struct weir_mlops *mlops, int64_t wait_ms)
{
    int64_t until_ms = weir_mono_ms() + wait_ms;
    while (weir_mono_ms() < until_ms && !(mlops->is_stopping && weir_mono_ms() >= mlops->stop_ms)) {
        int64_t at_ms = mlops->is_stopping ? WEIR_MIN(until_ms, mlops->stop_ms) : until_ms;
        struct timespec at = weir_deadline_at(WEIR_MAX(at_ms, weir_mono_ms() + 1));
        (void)weir_cond_wait_until(&mlops->has_changed, &mlops->mutex, &at);
    }
}

/* A request that the server refuses: of several records each is tried alone, so that the others are
 * told. Mutex held. */
static void drop_refused(struct weir_mlops *mlops, size_t n, size_t *out_limit)
{
    if (n > 1) {
        *out_limit = 1;
        return;
    }
    drop_first(mlops, 1);
    mlops->n_lost++;
}

void *mlops_send(void *context)
{
    struct weir_mlops *mlops = context;
    struct weir_backoff backoff = {.base_ms = BACKOFF_BASE_MS, .max_ms = BACKOFF_MAX_MS};
    size_t limit = MLOPS_BATCH_MAX, n_alone = 0;
    (void)pthread_mutex_lock(&mlops->mutex);
    while (await_records(mlops)) {
        struct weir_error err = {0};
        size_t n = WEIR_MIN(n_together(mlops), limit);
        json_t *body = body_of(mlops->records, n);
        /* Only this thread takes records out: the path stays. */
        const char *path = mlops->records[0].path;
        (void)pthread_mutex_unlock(&mlops->mutex);
        weir_status status = weir_client_call(mlops->client, "POST", path, body, NULL, &err);
        json_decref(body);
        (void)pthread_mutex_lock(&mlops->mutex);
        if (status == WEIR_OK) {
            drop_first(mlops, n);
            weir_backoff_reset(&backoff);
        } else if (weir_client_can_retry(status) || status == WEIR_ERR_CANCELLED) {
            mlops->error = err;
            await_retry(mlops, weir_backoff_next_ms(&backoff));
            continue;
        } else {
            mlops->error = err;
            drop_refused(mlops, n, &limit);
        }
        n_alone = limit == 1 ? n_alone + 1 : 0;
        if (n_alone > MLOPS_BATCH_MAX) {
            limit = MLOPS_BATCH_MAX;
            n_alone = 0;
        }
        (void)pthread_cond_broadcast(&mlops->has_changed);
    }
    (void)pthread_mutex_unlock(&mlops->mutex);
    return NULL;
}

size_t weir_mlops_flush(struct weir_mlops *mlops, int64_t timeout_ms)
{
    if (mlops == NULL) {
        return 0;
    }
    struct timespec at = weir_deadline_after(timeout_ms);
    int rc = 0;
    (void)pthread_mutex_lock(&mlops->mutex);
    while (mlops->n > 0 && rc == 0) {
        rc = weir_cond_wait_until(&mlops->has_changed, &mlops->mutex, &at);
    }
    size_t n = mlops->n;
    (void)pthread_mutex_unlock(&mlops->mutex);
    return n;
}

/* ---- what a file holds ------------------------------------------------------------------------- */

/* What records are told as. */
static const struct route {
    const char *before, *after, *list; /* the name stands between the first two */
    bool is_of_ion;
} routes[] = {{"/api/v1/runs/", "/metrics", "metrics", false},
              {"/api/v1/ions/", "/kpis", NULL, true},
              {"/api/v1/ions/", "/statistics", "statistics", true},
              {"/api/v1/ions/", "/told", NULL, true}};

/* One segment of a path, as weir_client_path writes it. */
static bool is_segment(const char *text, size_t len)
{
    static const char signs[] = "-._~%";
    for (size_t i = 0; i < len; i++) {
        bool is_letter = (text[i] >= 'a' && text[i] <= 'z') || (text[i] >= 'A' && text[i] <= 'Z');
        bool is_digit = text[i] >= '0' && text[i] <= '9';
        if (!is_letter && !is_digit && memchr(signs, text[i], sizeof signs - 1) == NULL) {
            return false;
        }
    }
    return len > 0 && !(len <= 2 && strspn(text, ".") >= len);
}

static bool is_of(const struct route *route, const char *path)
{
    size_t len = strlen(path), n_before = strlen(route->before), n_after = strlen(route->after);
    return len > n_before + n_after && strncmp(path, route->before, n_before) == 0 &&
           strcmp(path + len - n_after, route->after) == 0 &&
           is_segment(path + n_before, len - n_before - n_after);
}

/* Where a line's record is POSTed to, in the arena, and as what; NULL: it is none. A file may come from
 * anywhere: it is sent nowhere else. */
static const char *target_of(const struct weir_mlops *mlops, const char *path,
                             struct weir_arena *arena, const char **out_list)
{
    *out_list = feedback_list;
    if (strcmp(path, feedback_path) == 0) {
        return feedback_path;
    }
    for (size_t i = 0; i < WEIR_ARRAY_LEN(routes); i++) {
        const struct route *route = &routes[i];
        if (!is_of(route, path)) {
            continue;
        }
        *out_list = route->list;
        /* Told of no ION when it was written. */
        bool is_of_none = route->is_of_ion && strncmp(path + strlen(route->before), "-/", 2) == 0;
        return is_of_none && mlops->ion != NULL
                   ? weir_client_path(
                         arena, weir_arena_printf(arena, "%s{}%s", route->before, route->after),
                         &mlops->ion, 1)
                   : weir_arena_strdup(arena, path);
    }
    return NULL;
}

/* A line that was cut off, or that another program wrote, is an error; those before it are told. */
static weir_status send_line(struct weir_mlops *mlops, const char *line, size_t len,
                             struct weir_error *err)
{
    static const char expected[] = "expected {path, list, item} as weir_mlops writes them";
    json_t *record = NULL;
    struct weir_arena arena;
    const char *list = NULL;
    WEIR_TRY(weir_json_parse(line, len, "line", &record, err));
    weir_arena_init(&arena, 0);
    const char *path = json_string_value(json_object_get(record, "path"));
    const char *told_list = json_string_value(json_object_get(record, "list"));
    json_t *item = json_object_get(record, "item");
    const char *target = path != NULL ? target_of(mlops, path, &arena, &list) : NULL;
    bool is_same_list =
        told_list == NULL || list == NULL ? told_list == list : strcmp(told_list, list) == 0;
    weir_status status = WEIR_OK;
    if (target == NULL || item == NULL || !is_same_list) {
        status = weir_error_set(err, WEIR_ERR_INVALID, "%s", expected);
    } else {
        json_t *body = list != NULL ? json_pack("{s:[O]}", list, item) : json_incref(item);
        status = weir_client_call(mlops->asking, "POST", target, body, NULL, err);
        json_decref(body);
    }
    json_decref(record);
    weir_arena_fini(&arena);
    return status;
}

/* *out_len: 0 at the end. A zero byte, as a loss of power leaves them, is no end. */
static weir_status read_line(FILE *file, char *line, size_t *out_len, struct weir_error *err)
{
    *out_len = 0;
    if (fgets(line, LINE_MAX_BYTES, file) == NULL) {
        return ferror(file) ? weir_error_set_errno(err, errno, "cannot be read") : WEIR_OK;
    }
    *out_len = strlen(line);
    if (*out_len > 0 && (line[*out_len - 1] == '\n' || feof(file))) {
        return WEIR_OK;
    }
    return *out_len + 1 == LINE_MAX_BYTES
               ? weir_error_set(err, WEIR_ERR_LIMIT, "the line is longer than %d bytes",
                                LINE_MAX_BYTES)
               : weir_error_set(err, WEIR_ERR_INVALID, "the line has a zero byte");
}

int weir_mlops_send_file(struct weir_mlops *mlops, const char *path, size_t *out_n)
{
    struct weir_error err = {0};
    weir_status status = WEIR_OK;
    size_t n = 0, len = 0;
    if (out_n != NULL) {
        *out_n = 0;
    }
    if (mlops == NULL || mlops->asking == NULL) {
        return WEIR_ERR_UNAVAILABLE;
    }
    FILE *file = fopen(path, "re");
    if (file == NULL) {
        status = weir_error_set_errno(&err, errno, "cannot read %s", path);
        mlops_remember(mlops, &err);
        return (int)status;
    }
    char *line = weir_xalloc(LINE_MAX_BYTES);
    (void)pthread_mutex_lock(&mlops->is_asking);
    while ((status = read_line(file, line, &len, &err)) == WEIR_OK && len > 0) {
        status = send_line(mlops, line, len, &err);
        if (status != WEIR_OK) {
            break;
        }
        n++;
    }
    (void)pthread_mutex_unlock(&mlops->is_asking);
    free(line);
    (void)fclose(file);
    if (status != WEIR_OK) {
        (void)weir_error_prefix(&err, "%s, line %zu: ", path, n + 1);
        mlops_remember(mlops, &err);
    }
    if (out_n != NULL) {
        *out_n = n;
    }
    return (int)status;
}
