#include "predict/sink/jsonl.h"

#include "base/complaint.h"
#include "base/file.h"
#include "base/log.h"
#include "endpoint/sink/jsonl.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define RETRY_MS  500
#define LINES_MAX ((size_t)4 << 20)

struct sink {
    struct rotated_file file; /**< Its path is ours. */
    struct outbox_reader *reader;
    struct weir_complaint not_begun; /**< A new file. */
    int64_t end;                     /**< Of the file after our last line. */
    /* Identifiers of decisions that are in the file behind the saved length: object used as set. */
    json_t *written;
};

/* ---- the file -------------------------------------------------------------------------------- */

/* Remember the identifiers of a file's lines from `from` on; of all if it is shorter than that. */
static weir_status read_lines_of(struct sink *sink, const char *path, int64_t from,
                                 struct weir_error *err)
{
    FILE *file = fopen(path, "re");
    struct stat st;
    char *line = NULL;
    size_t cap = 0;
    ssize_t n;
    if (file == NULL) {
        return errno == ENOENT ? WEIR_OK : weir_error_set_errno(err, errno, "%s", path);
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

/* Has the file that is now PATH.1 been written since our place was saved? Then another replica has
 * begun a new file meanwhile, and our saved length is one in PATH.1. */
static bool is_place_in_older(const struct sink *sink, const char *older)
{
    struct stat st;
    return stat(older, &st) == 0 &&
           (int64_t)st.st_mtim.tv_sec * 1000 + st.st_mtim.tv_nsec / 1000000 >=
               outbox_reader_saved_ms(sink->reader);
}

/* What is written behind the saved place is not written again. */
static weir_status read_written(struct sink *sink, struct weir_error *err)
{
    char older[ROTATED_PATH_BYTES];
    int64_t from = outbox_reader_note(sink->reader);
    rotated_file_older(&sink->file, 1, older);
    if (from > 0 && is_place_in_older(sink, older)) {
        WEIR_TRY(read_lines_of(sink, older, from, err));
        from = 0;
    }
    return read_lines_of(sink, sink->file.path, from, err);
}

/* The lines are to be there before the place that says so. */
static int64_t sync_file(struct sink *sink)
{
    int fd = open(sink->file.path, O_WRONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd >= 0) {
        (void)fdatasync(fd);
        close(fd);
    }
    return sink->end;
}

/* The place is saved before the files are renamed and after: a kill in between finds a new file
 * that is shorter than the place says, and reads all of it. */
static weir_status begin_new_file(struct sink *sink, int *fd, int64_t *size, struct weir_error *err)
{
    outbox_reader_save(sink->reader, sync_file(sink));
    if (rotated_file_shift(&sink->file, err) != WEIR_OK) { /* too long is better than lost */
        if (weir_complaint_is_due(&sink->not_begun, NULL)) {
            weir_log(WEIR_LOG_ERROR, "sink_not_writable", WEIR_KV_STR("path", sink->file.path),
                     WEIR_KV_STR("reason", err->message));
        }
        return WEIR_OK;
    }
    (void)close(*fd);
    *fd = -1;
    WEIR_TRY(rotated_file_open(&sink->file, fd, size, err));
    outbox_reader_save(sink->reader, 0);
    return WEIR_OK;
}

static weir_status write_lines(struct sink *sink, const struct weir_buf *lines,
                               struct weir_error *err)
{
    int fd = -1;
    int64_t size = 0;
    weir_status status = rotated_file_open(&sink->file, &fd, &size, err);
    if (status == WEIR_OK && rotated_file_is_full(&sink->file, size, (int64_t)lines->len)) {
        status = begin_new_file(sink, &fd, &size, err);
    }
    if (status == WEIR_OK) {
        status = weir_fd_write_all(fd, lines->data, lines->len, err);
        if (status != WEIR_OK && size >= 0) {
            (void)!ftruncate(fd, size);
        }
        sink->end = WEIR_MAX(size, (int64_t)0) + (int64_t)lines->len;
    }
    if (fd >= 0) {
        (void)close(fd);
    }
    return status;
}

static weir_status append_lines(struct sink *sink, const json_t *batch, struct weir_error *err)
{
    struct weir_buf lines;
    size_t i;
    const json_t *decision;
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
        status = write_lines(sink, &lines, err);
    }
    weir_buf_fini(&lines);
    return status;
}

static weir_status deliver(struct sink *sink, json_t *decisions, struct sink_outcome *outcome,
                           struct weir_error *err)
{
    outcome->retry_ms = RETRY_MS;
    weir_status status = append_lines(sink, decisions, err);
    /* Of a file no error is about the decisions. */
    return status == WEIR_ERR_INVALID || status == WEIR_ERR_LIMIT ? WEIR_ERR_IO : status;
}

/* ---- life ------------------------------------------------------------------------------------ */

static void close_file(struct sink *sink)
{
    json_decref(sink->written);
    free((char *)sink->file.path);
    free(sink);
}

weir_status sink_jsonl_open(const struct rotated_file *file, struct outbox_reader *reader,
                            struct sink **out, struct weir_error *err)
{
    struct sink *sink = weir_xalloc(sizeof *sink);
    *sink = (struct sink){.file = *file,
                          .reader = reader,
                          .end = outbox_reader_note(reader),
                          .written = json_object()};
    sink->file.path = weir_xstrdup(file->path);
    weir_status status = read_written(sink, err);
    if (status != WEIR_OK) {
        close_file(sink);
        return status;
    }
    *out = sink;
    return WEIR_OK;
}

static weir_status open_file(const struct sink_config *config, struct sink **out,
                             struct weir_error *err)
{
    const struct weir_sink_jsonl *jsonl = config->options;
    const struct rotated_file file = {
        .path = jsonl->path, .max_bytes = jsonl->max_mb * 1000000, .n_kept = jsonl->keep};
    return sink_jsonl_open(&file, config->reader, out, err);
}

static const char *path_of(const void *options)
{
    return ((const struct weir_sink_jsonl *)options)->path;
}

const struct sink_ops sink_jsonl = {.open = open_file,
                                    .deliver = deliver,
                                    .sync = sync_file,
                                    .close = close_file,
                                    .identity = path_of,
                                    .waits_event = "sink_not_writable"};
