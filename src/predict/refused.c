#include "predict/refused.h"

#include "base/file.h"
#include "base/log.h"
#include "base/rotated_file.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct refused {
    struct rotated_file file; /**< Its path is ours. */
    pthread_mutex_t lock;
    int64_t n; /**< Under lock: lines in all files. */
};

static int64_t lines_of(const char *path)
{
    FILE *file = fopen(path, "re");
    char bytes[65536];
    size_t n;
    int64_t n_lines = 0;
    while (file != NULL && (n = fread(bytes, 1, sizeof bytes, file)) > 0) {
        for (size_t i = 0; i < n; i++) {
            n_lines += bytes[i] == '\n';
        }
    }
    if (file != NULL) {
        (void)fclose(file);
    }
    return n_lines;
}

struct refused *refused_open(const char *dir)
{
    char path[ROTATED_PATH_BYTES];
    struct refused *refused = weir_xalloc(sizeof *refused);
    (void)snprintf(path, sizeof path, "%s/refused.jsonl", dir);
    *refused = (struct refused){.file = {.path = weir_xstrdup(path),
                                         .max_bytes = REFUSED_MAX_BYTES,
                                         .n_kept = REFUSED_KEPT}};
    pthread_mutex_init(&refused->lock, NULL);
    refused->n = lines_of(refused->file.path);
    for (int64_t i = 1; i <= REFUSED_KEPT; i++) {
        refused->n += lines_of(rotated_file_older(&refused->file, i, path));
    }
    return refused;
}

void refused_close(struct refused *refused)
{
    if (refused != NULL) {
        pthread_mutex_destroy(&refused->lock);
        free((char *)refused->file.path);
        free(refused);
    }
}

/* Returns with the file open and locked, and with room for n_bytes in it. */
static weir_status open_with_room(struct refused *refused, int64_t n_bytes, int *out_fd,
                                  struct weir_error *err)
{
    char oldest[ROTATED_PATH_BYTES];
    int64_t size;
    WEIR_TRY(rotated_file_open(&refused->file, out_fd, &size, err));
    if (!rotated_file_is_full(&refused->file, size, n_bytes)) {
        return WEIR_OK;
    }
    int64_t n_going = lines_of(rotated_file_older(&refused->file, REFUSED_KEPT, oldest));
    weir_status status = rotated_file_shift(&refused->file, err);
    (void)close(*out_fd);
    WEIR_TRY(status);
    if (n_going > 0) {
        refused->n -= n_going;
        weir_log(WEIR_LOG_ERROR, "refused_decisions_dropped", WEIR_KV_STR("file", oldest),
                 WEIR_KV_INT("decisions", n_going));
    }
    return rotated_file_open(&refused->file, out_fd, &size, err);
}

static weir_status append(struct refused *refused, const char *line, struct weir_error *err)
{
    int fd;
    size_t len = strlen(line);
    WEIR_TRY(open_with_room(refused, (int64_t)len, &fd, err));
    weir_status status = weir_fd_write_all(fd, line, len, err);
    if (status == WEIR_OK && fdatasync(fd) != 0) {
        status = weir_error_set_errno(err, errno, "%s", refused->file.path);
    }
    (void)close(fd);
    return status;
}

weir_status refused_put(struct refused *refused, const json_t *decision, const char *reason,
                        struct weir_error *err)
{
    json_t *kept = json_copy((json_t *)decision);
    json_object_del(kept, "picture");
    json_object_del(kept, "film");
    json_object_set_new(kept, "refused", json_string(reason));
    char *text = json_dumps(kept, JSON_COMPACT);
    json_decref(kept);
    struct weir_arena arena;
    weir_arena_init(&arena, 0);
    const char *line = weir_arena_printf(&arena, "%s\n", text);
    free(text);
    pthread_mutex_lock(&refused->lock);
    weir_status status = append(refused, line, err);
    refused->n += status == WEIR_OK;
    pthread_mutex_unlock(&refused->lock);
    weir_arena_fini(&arena);
    if (status == WEIR_OK) {
        weir_log(WEIR_LOG_ERROR, "decision_refused", WEIR_KV_STR("reason", reason),
                 WEIR_KV_STR("kept_in", refused->file.path));
    }
    return status;
}

int64_t refused_count(struct refused *refused)
{
    char older[ROTATED_PATH_BYTES];
    if (refused == NULL) {
        return 0;
    }
    pthread_mutex_lock(&refused->lock);
    if (!weir_path_exists(refused->file.path) &&
        !weir_path_exists(rotated_file_older(&refused->file, 1, older))) {
        refused->n = 0; /* somebody has taken them away */
    }
    int64_t n = refused->n;
    pthread_mutex_unlock(&refused->lock);
    return n;
}
