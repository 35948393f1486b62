#include "predict/sink_jsonl.h"

#include "base/clock.h"
#include "base/deadline.h"
#include "base/file.h"
#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define BATCH_MAX     200
#define IDLE_MS       1000
#define RETRY_MS      500
#define COMPLAIN_MS   10000
#define LINES_MAX     ((size_t)4 << 20)
#define LINE_ID_BYTES 48

struct sink_jsonl {
    char *path;
    struct outbox_reader *reader;
    pthread_t thread;
    int64_t complained_ms;
    int64_t end; /**< Of the file after our last line. */
    /* Identifiers of decisions that are in the file behind the saved length: object used as set. */
    json_t *written;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool is_stopping; /**< Under lock. */
};

/* ---- the file -------------------------------------------------------------------------------- */

/* Length of the file up to its last line end; what is behind is torn. -1: unreadable. */
static int64_t whole_length(int fd, int64_t size)
{
    char bytes[4096];
    while (size > 0) {
        int64_t from = WEIR_MAX(0, size - (int64_t)sizeof bytes);
        ssize_t n = pread(fd, bytes, (size_t)(size - from), from);
        if (n != size - from) {
            return -1;
        }
        for (ssize_t i = n; i > 0; i--) {
            if (bytes[i - 1] == '\n') {
                return from + i;
            }
        }
        size = from;
    }
    return 0;
}

/* Open and lock, and cut a torn last line. */
static weir_status open_locked(const struct sink_jsonl *sink, int *out_fd, int64_t *out_size,
                               struct weir_error *err)
{
    struct stat st;
    int fd = open(sink->path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (fd < 0) {
        return weir_error_set_errno(err, errno, "%s", sink->path);
    }
    weir_status status = WEIR_OK;
    if (flock(fd, LOCK_EX) != 0 || fstat(fd, &st) != 0) {
        status = weir_error_set_errno(err, errno, "%s", sink->path);
    } else if (S_ISREG(st.st_mode)) {
        int64_t whole = whole_length(fd, st.st_size);
        if (whole < 0 || (whole < st.st_size && ftruncate(fd, whole) != 0)) {
            status = weir_error_set_errno(err, errno, "%s", sink->path);
        }
        *out_size = whole;
    } else {
        *out_size = 0; /* A pipe or terminal: nothing to look back at. */
    }
    if (status != WEIR_OK) {
        close(fd);
        return status;
    }
    *out_fd = fd;
    return WEIR_OK;
}

/* Remember the identifiers of the lines behind the saved length. */
static weir_status read_written(struct sink_jsonl *sink, struct weir_error *err)
{
    int64_t from = outbox_reader_note(sink->reader);
    FILE *file = fopen(sink->path, "re");
    struct stat st;
    char *line = NULL;
    size_t cap = 0;
    ssize_t n;
    if (file == NULL) {
        return errno == ENOENT ? WEIR_OK : weir_error_set_errno(err, errno, "%s", sink->path);
    }
    if (fstat(fileno(file), &st) != 0 || !S_ISREG(st.st_mode)) {
        (void)fclose(file);
        return WEIR_OK;
    }
    /* Shorter than it was: somebody began a new file. Then all of it is new. */
    if (fseeko(file, from <= st.st_size ? from : 0, SEEK_SET) == 0) {
        while ((n = getline(&line, &cap, file)) > 0) {
            json_t *decision = json_loadb(line, (size_t)n, 0, NULL);
            const char *id = json_string_value(json_object_get(decision, "id"));
            if (id != NULL && line[n - 1] == '\n') {
                json_object_set_new(sink->written, id, json_true());
            }
            json_decref(decision);
        }
    }
    free(line);
    (void)fclose(file);
    return WEIR_OK;
}

static weir_status append_lines(struct sink_jsonl *sink, const json_t *batch,
                                struct weir_error *err)
{
    struct weir_buf lines;
    size_t i;
    const json_t *decision;
    int fd = -1;
    int64_t size = 0;
    weir_buf_init(&lines, LINES_MAX);
    json_array_foreach(batch, i, decision)
    {
        const char *id = json_string_value(json_object_get(decision, "id"));
        /* A try that failed half-way is cut off, so what was skipped once is skipped for good. */
        if (id != NULL && json_object_del(sink->written, id) == 0) {
            continue;
        }
        char *text = json_dumps(decision, JSON_COMPACT);
        (void)weir_buf_puts(&lines, text);
        (void)weir_buf_puts(&lines, "\n");
        free(text);
    }
    weir_status status = lines.status;
    if (status == WEIR_OK && lines.len > 0) {
        status = open_locked(sink, &fd, &size, err);
        if (status == WEIR_OK) {
            status = weir_fd_write_all(fd, lines.data, lines.len, err);
            if (status != WEIR_OK) {
                (void)!ftruncate(fd, size);
            }
            sink->end = size + (int64_t)lines.len;
            close(fd);
        }
    }
    weir_buf_fini(&lines);
    return status;
}

/* The lines first, then the place that says they are there. */
static void save_place(struct sink_jsonl *sink)
{
    int fd = open(sink->path, O_WRONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd >= 0) {
        (void)fdatasync(fd);
        close(fd);
    }
    outbox_reader_save(sink->reader, sink->end);
}

/* ---- the thread ------------------------------------------------------------------------------ */

static bool pause_for(struct sink_jsonl *sink, int64_t wait_ms)
{
    struct timespec deadline = weir_deadline_after(wait_ms);
    pthread_mutex_lock(&sink->lock);
    int rc = 0;
    while (!sink->is_stopping && rc != ETIMEDOUT) {
        rc = pthread_cond_timedwait(&sink->changed, &sink->lock, &deadline);
    }
    bool is_stopping = sink->is_stopping;
    pthread_mutex_unlock(&sink->lock);
    return is_stopping;
}

static void complain(struct sink_jsonl *sink, const struct weir_error *err)
{
    int64_t now_ms = weir_mono_ms();
    if (sink->complained_ms == 0 || now_ms - sink->complained_ms >= COMPLAIN_MS) {
        sink->complained_ms = now_ms;
        weir_log(WEIR_LOG_ERROR, "sink_not_writable", WEIR_KV_STR("path", sink->path),
                 WEIR_KV_STR("reason", err->message));
    }
}

static void *sink_main(void *context)
{
    struct sink_jsonl *sink = context;
    for (;;) {
        json_t *batch;
        struct weir_error err = {0};
        weir_status status = outbox_reader_next(sink->reader, BATCH_MAX, IDLE_MS, &batch, &err);
        if (status == WEIR_ERR_CANCELLED) {
            break;
        }
        if (status == WEIR_OK) {
            status = append_lines(sink, batch, &err);
            json_decref(batch);
            if (status == WEIR_OK) {
                outbox_reader_done(sink->reader);
            }
        }
        if (outbox_reader_is_due(sink->reader)) {
            save_place(sink);
        }
        if (status != WEIR_OK && status != WEIR_ERR_TIMEOUT) {
            complain(sink, &err);
            if (pause_for(sink, RETRY_MS)) {
                break;
            }
        }
    }
    save_place(sink);
    return NULL;
}

static void sink_free(struct sink_jsonl *sink)
{
    outbox_reader_close(sink->reader);
    json_decref(sink->written);
    pthread_cond_destroy(&sink->changed);
    pthread_mutex_destroy(&sink->lock);
    free(sink->path);
    free(sink);
}

/* A name for the place that follows from the path. */
static void reader_name(const char *path, char out[32])
{
    uint64_t hash = 0xcbf29ce484222325u;
    for (const char *c = path; *c != '\0'; c++) {
        hash = (hash ^ (uint8_t)*c) * 0x100000001b3u;
    }
    (void)snprintf(out, 32, "jsonl-%016" PRIx64, hash);
}

weir_status sink_jsonl_start(const char *path, struct outbox *outbox, struct sink_jsonl **out,
                             struct weir_error *err)
{
    char name[32];
    struct sink_jsonl *sink = weir_xalloc(sizeof *sink);
    *sink = (struct sink_jsonl){.path = weir_xstrdup(path), .written = json_object()};
    pthread_mutex_init(&sink->lock, NULL);
    weir_cond_init(&sink->changed);
    reader_name(path, name);
    weir_status status = outbox_reader_open(outbox, name, &sink->reader, err);
    if (status == WEIR_OK) {
        sink->end = outbox_reader_note(sink->reader);
        status = read_written(sink, err);
    }
    if (status == WEIR_OK) {
        int failed = pthread_create(&sink->thread, NULL, sink_main, sink);
        status = failed != 0 ? weir_error_set_errno(err, failed, "starting a thread") : WEIR_OK;
    }
    if (status != WEIR_OK) {
        sink_free(sink);
        return status;
    }
    *out = sink;
    return WEIR_OK;
}

void sink_jsonl_stop(struct sink_jsonl *sink)
{
    if (sink == NULL) {
        return;
    }
    pthread_mutex_lock(&sink->lock);
    sink->is_stopping = true;
    pthread_cond_broadcast(&sink->changed);
    pthread_mutex_unlock(&sink->lock);
    outbox_reader_cancel(sink->reader);
    pthread_join(sink->thread, NULL);
    sink_free(sink);
}
