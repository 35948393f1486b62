#include "predict/outbox_private.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define SAVE_EVERY_MS  1000
#define PLACE_MAX      64
#define BATCH_MAX_TEXT ((size_t)512 << 10)

/* The file holds position and note in decimal. A missing one means the beginning. */
static weir_status load_place(struct outbox_reader *reader, struct weir_error *err)
{
    struct weir_arena arena;
    char *text, *end;
    size_t len;
    weir_arena_init(&arena, 0);
    weir_status status = weir_file_read(reader->path, PLACE_MAX, &arena, &text, &len, err);
    if (status == WEIR_OK) {
        reader->position = strtoull(text, &end, 10);
        reader->note = strtoll(end, NULL, 10);
        if (end == text || reader->position > reader->outbox->end) {
            weir_log(WEIR_LOG_WARN, "outbox_place_unusable", WEIR_KV_STR("file", reader->path));
            reader->position = 0;
            reader->note = 0;
        }
    } else if (status == WEIR_ERR_NOT_FOUND) {
        status = WEIR_OK;
    }
    weir_arena_fini(&arena);
    return status;
}

weir_status outbox_reader_open(struct outbox *outbox, const char *name, struct outbox_reader **out,
                               struct weir_error *err)
{
    struct outbox_reader *reader = weir_xalloc(sizeof *reader);
    size_t size = strlen(outbox->dir) + strlen(name) + 16;
    *reader = (struct outbox_reader){.outbox = outbox, .path = weir_xalloc(size)};
    (void)snprintf(reader->path, size, "%s/%s.position", outbox->dir, name);
    (void)snprintf(reader->name, sizeof reader->name, "%s", name);
    weir_status status = load_place(reader, err);
    if (status != WEIR_OK) {
        free(reader->path);
        free(reader);
        return status;
    }
    reader->position = WEIR_MAX(reader->position, outbox_log_begin(outbox->log));
    reader->delivered = reader->saved = reader->position;
    /* Due at once: also a process that is killed every second gets on. */
    reader->saved_ms = weir_mono_ms() - SAVE_EVERY_MS;
    pthread_mutex_lock(&outbox->lock);
    reader->next_reader = outbox->readers;
    outbox->readers = reader;
    pthread_mutex_unlock(&outbox->lock);
    *out = reader;
    return WEIR_OK;
}

void outbox_reader_close(struct outbox_reader *reader)
{
    if (reader == NULL) {
        return;
    }
    struct outbox *outbox = reader->outbox;
    pthread_mutex_lock(&outbox->lock);
    struct outbox_reader **link = &outbox->readers;
    while (*link != reader) {
        link = &(*link)->next_reader;
    }
    *link = reader->next_reader;
    pthread_mutex_unlock(&outbox->lock);
    free(reader->path);
    free(reader);
}

/* End of what may be read, once it is past the reader's position. */
static weir_status wait_for_more(struct outbox_reader *reader, int64_t timeout_ms,
                                 uint64_t *out_end)
{
    struct outbox *outbox = reader->outbox;
    struct timespec deadline = weir_deadline_after(timeout_ms);
    pthread_mutex_lock(&outbox->lock);
    int rc = 0;
    while (outbox->end <= reader->position && !reader->is_cancelled && rc != ETIMEDOUT) {
        rc = weir_cond_wait_until(&outbox->changed, &outbox->lock, &deadline);
    }
    uint64_t end = outbox->end;
    bool is_cancelled = reader->is_cancelled;
    pthread_mutex_unlock(&outbox->lock);
    if (end <= reader->position) {
        return is_cancelled ? WEIR_ERR_CANCELLED : WEIR_ERR_TIMEOUT;
    }
    *out_end = end;
    return WEIR_OK;
}

static void note_oldest(struct outbox_reader *reader, int64_t time_ms)
{
    pthread_mutex_lock(&reader->outbox->lock);
    reader->oldest_ms = time_ms;
    pthread_mutex_unlock(&reader->outbox->lock);
}

weir_status outbox_reader_next(struct outbox_reader *reader, size_t max, int64_t timeout_ms,
                               json_t **out, struct weir_error *err)
{
    uint64_t end, at, next = reader->position, position = reader->position;
    WEIR_TRY(wait_for_more(reader, timeout_ms, &end));
    json_t *batch = json_array();
    struct weir_buf text;
    weir_buf_init(&text, OUTBOX_RECORD_MAX_BYTES);
    size_t n_bytes = 0;
    weir_status status = WEIR_OK;
    while (status == WEIR_OK && position < end && json_array_size(batch) < max &&
           n_bytes < BATCH_MAX_TEXT) {
        weir_buf_reset(&text);
        status = outbox_log_read(reader->outbox->log, position, &text, &at, &next, err);
        if (status == WEIR_OK) {
            json_t *record = outbox_record_at(reader->outbox, text.data, text.len);
            if (record != NULL) {
                json_array_append_new(batch, record);
            }
            n_bytes += text.len;
        } else if (status == WEIR_ERR_CORRUPT) {
            weir_log(WEIR_LOG_ERROR, "outbox_damaged", WEIR_KV_INT("position", (int64_t)position));
            status = WEIR_OK;
        } else {
            break;
        }
        position = next;
    }
    weir_buf_fini(&text);
    if (status != WEIR_OK) {
        json_decref(batch);
        return status;
    }
    reader->delivered = position;
    note_oldest(reader, json_integer_value(json_object_get(json_array_get(batch, 0), "time_ms")));
    *out = batch;
    return WEIR_OK;
}

void outbox_reader_done(struct outbox_reader *reader)
{
    pthread_mutex_lock(&reader->outbox->lock);
    reader->position = reader->delivered;
    reader->oldest_ms = 0;
    pthread_mutex_unlock(&reader->outbox->lock);
}

bool outbox_reader_is_due(const struct outbox_reader *reader)
{
    return reader->position != reader->saved && weir_mono_ms() - reader->saved_ms >= SAVE_EVERY_MS;
}

int64_t outbox_reader_note(const struct outbox_reader *reader)
{
    return reader->note;
}

void outbox_reader_save(struct outbox_reader *reader, int64_t note)
{
    char text[PLACE_MAX];
    struct weir_error err;
    if (reader->position == reader->saved && note == reader->note) {
        return;
    }
    int n = snprintf(text, sizeof text, "%" PRIu64 " %" PRId64 "\n", reader->position, note);
    reader->saved_ms = weir_mono_ms();
    if (weir_file_write_atomic(reader->path, text, (size_t)n, 0600, &err) != WEIR_OK) {
        /* Not saved: after a kill the reader sees more again, which it must bear anyway. */
        weir_log(WEIR_LOG_WARN, "outbox_place_not_saved", WEIR_KV_STR("reason", err.message));
        return;
    }
    reader->note = note;
    pthread_mutex_lock(&reader->outbox->lock);
    reader->saved = reader->position;
    pthread_mutex_unlock(&reader->outbox->lock);
}

int64_t outbox_reader_saved_ms(const struct outbox_reader *reader)
{
    struct stat info;
    if (stat(reader->path, &info) != 0) {
        return 0;
    }
    return (int64_t)info.st_mtim.tv_sec * 1000 + info.st_mtim.tv_nsec / 1000000;
}

void outbox_reader_cancel(struct outbox_reader *reader)
{
    pthread_mutex_lock(&reader->outbox->lock);
    reader->is_cancelled = true;
    pthread_cond_broadcast(&reader->outbox->changed);
    pthread_mutex_unlock(&reader->outbox->lock);
}

void outbox_counts(struct outbox *outbox, struct outbox_counts *out)
{
    struct outbox_counts counts = {0};
    pthread_mutex_lock(&outbox->lock);
    counts.n_durable = outbox->n_durable;
    for (const struct outbox_reader *r = outbox->readers; r != NULL; r = r->next_reader) {
        if (r->oldest_ms > 0 && (counts.oldest_ms == 0 || r->oldest_ms < counts.oldest_ms)) {
            counts.oldest_ms = r->oldest_ms;
            memcpy(counts.oldest_reader, r->name, sizeof counts.oldest_reader);
        }
    }
    pthread_mutex_unlock(&outbox->lock);
    *out = counts;
}
