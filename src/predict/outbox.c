#include "predict/outbox_private.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "predict/intake.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define RETRY_MS         200
#define CLOSE_PATIENCE   5
#define GROUP_MAX_BYTES  ((size_t)(OUTBOX_QUEUE_MAX + 1) * (OUTBOX_RECORD_MAX_BYTES + 16))
#define PICTURE_MAX      ((size_t)256 << 10)
#define RECORD_ROOM      2048 /**< Bytes of log that one remembered record may take at most, rather. */
#define POSITION_FOREVER UINT64_MAX

/* The key of the frame that a record is about: given with it, or by camera and number. NULL: it is none. */
static const char *key_of(const json_t *record, char out[FRAME_KEY_BYTES])
{
    const char *camera = json_string_value(json_object_get(record, "camera"));
    const char *key = json_string_value(json_object_get(record, "key"));
    if (camera == NULL || key != NULL) {
        return camera == NULL ? NULL : key;
    }
    return frame_key_of(camera, json_integer_value(json_object_get(record, "frame")), out);
}

/* ---- recovery -------------------------------------------------------------------------------- */

static void remember_record(struct outbox *outbox, const char *text, size_t len, uint64_t position)
{
    json_t *record = json_loadb(text, len, 0, NULL);
    char bytes[FRAME_KEY_BYTES];
    const char *key = key_of(record, bytes);
    if (key != NULL) {
        outbox_index_add(&outbox->index, outbox_hash(key), position, OUTBOX_DURABLE_UNKNOWN);
    }
    json_decref(record);
}

/* Read the newest records into the index, from far enough back. */
static weir_status recover_index(struct outbox *outbox, struct weir_error *err)
{
    uint64_t end = outbox_log_end(outbox->log), position = end, start, at, next;
    uint64_t wanted = (uint64_t)outbox->index.capacity * RECORD_ROOM;
    while (end - position < wanted && outbox_log_segment_before(outbox->log, position, &start)) {
        position = start;
    }
    struct weir_buf text;
    weir_buf_init(&text, OUTBOX_RECORD_MAX_BYTES);
    weir_status status;
    while ((status = outbox_log_read(outbox->log, position, &text, &at, &next, err)) !=
           WEIR_ERR_END) {
        if (status == WEIR_OK) {
            remember_record(outbox, text.data, text.len, at);
        } else if (status == WEIR_ERR_CORRUPT) {
            weir_log(WEIR_LOG_ERROR, "outbox_damaged",
                     WEIR_KV_STR("reason", err != NULL ? err->message : ""));
        } else {
            break;
        }
        position = next;
        weir_buf_reset(&text);
    }
    weir_buf_fini(&text);
    return status == WEIR_ERR_END ? WEIR_OK : status;
}

/* ---- the writer ------------------------------------------------------------------------------ */

/* Frames of a passage, behind the picture. One that cannot be encoded is left out. */
static void encode_film(struct film *film, struct weir_buf *jpegs)
{
    struct weir_error ignored;
    for (size_t i = 0; i < film->n; i++) {
        struct film_frame *frame = &film->frames[i];
        size_t before = jpegs->len;
        if (frame->picture.pixels != NULL &&
            picture_encode(&frame->picture, jpegs, &ignored) == WEIR_OK) {
            frame->jpeg_bytes = jpegs->len - before;
        } else {
            jpegs->len = before;
        }
    }
}

/* A film is kept with the decision's picture, or not at all. */
static void forget_film(struct decision *decision)
{
    for (size_t i = 0; decision->passage != NULL && i < decision->passage->film.n; i++) {
        decision->passage->film.frames[i].jpeg_bytes = 0;
    }
}

/* Keep the picture, and a film behind it, and name it in the decision. A picture that cannot be kept is left out. */
static void keep_picture(struct outbox *outbox, struct outbox_item *item)
{
    struct weir_buf jpegs;
    struct weir_error ignored;
    struct decision *decision = item->decision;
    weir_buf_init(&jpegs, PICTURE_MAX);
    if (picture_encode(&item->picture, &jpegs, &ignored) == WEIR_OK) {
        size_t len = jpegs.len;
        if (decision->passage != NULL) {
            encode_film(&decision->passage->film, &jpegs);
        }
        if (pictures_put(outbox->config.pictures, decision->id, jpegs.data, jpegs.len, &ignored) ==
            WEIR_OK) {
            weir_sha256(jpegs.data, len, decision->image);
        } else {
            forget_film(decision);
        }
    }
    weir_buf_fini(&jpegs);
}

static void finish_picture(struct outbox *outbox, struct outbox_item *item)
{
    if (item->picture.pixels != NULL && outbox->config.pictures != NULL) {
        keep_picture(outbox, item);
    }
    weir_image_fini(&item->picture);
}

/* All records as one group; offsets[i] is where record i begins. */
static void build_group(struct outbox *outbox, struct outbox_item *items, size_t n, size_t *offsets)
{
    weir_buf_reset(&outbox->group);
    for (size_t i = 0; i < n; i++) {
        finish_picture(outbox, &items[i]);
        json_t *record = decision_to_json(items[i].decision);
        char *text = json_dumps(record, JSON_COMPACT);
        json_decref(record);
        offsets[i] = outbox->group.len;
        if (text == NULL || outbox_log_frame(&outbox->group, text, strlen(text)) != WEIR_OK) {
            /* Records are made by decision.h, of bounded fields: this is a mistake or no memory. */
            weir_log_event(WEIR_LOG_ERROR, "outbox_record_impossible");
            abort();
        }
        free(text);
    }
}

/* Until it is on disk, or the outbox closes and the disk stays full. */
static bool write_group(struct outbox *outbox, uint64_t *out_position)
{
    for (int n_tries_closing = 0; n_tries_closing < CLOSE_PATIENCE;) {
        struct weir_error err = {0};
        if (outbox_log_append(outbox->log, outbox->group.data, outbox->group.len, out_position,
                              &err) == WEIR_OK) {
            if (weir_complaint_end(&outbox->not_writable)) {
                weir_log_event(WEIR_LOG_INFO, "outbox_writable_again");
            }
            return true;
        }
        if (weir_complaint_is_due(&outbox->not_writable, NULL)) {
            weir_log(WEIR_LOG_ERROR, "outbox_not_writable", WEIR_KV_STR("reason", err.message));
        }
        struct timespec deadline = weir_deadline_after(RETRY_MS);
        pthread_mutex_lock(&outbox->lock);
        if (!outbox->is_closing) {
            weir_cond_wait_until(&outbox->changed, &outbox->lock, &deadline);
        } else {
            n_tries_closing++;
        }
        pthread_mutex_unlock(&outbox->lock);
    }
    return false;
}

static void publish(struct outbox *outbox, const struct outbox_item *items, size_t n,
                    const size_t *offsets, uint64_t position)
{
    uint64_t now_ns = weir_mono_ns();
    pthread_mutex_lock(&outbox->lock);
    for (size_t i = 0; i < n; i++) {
        char key[FRAME_KEY_BYTES];
        uint64_t us = (now_ns - items[i].received_ns) / 1000;
        const struct decision *one = items[i].decision;
        const char *its = one->key != NULL ? one->key : frame_key_of(one->camera, one->frame, key);
        outbox_index_add(&outbox->index, outbox_hash(its), position + offsets[i],
                         (uint32_t)WEIR_MIN(us, (uint64_t)OUTBOX_DURABLE_UNKNOWN - 1));
    }
    outbox->end = position + outbox->group.len;
    outbox->n_durable += n;
    pthread_cond_broadcast(&outbox->changed);
    pthread_mutex_unlock(&outbox->lock);
}

static void trim(struct outbox *outbox)
{
    uint64_t keep = POSITION_FOREVER, oldest;
    pthread_mutex_lock(&outbox->lock);
    for (const struct outbox_reader *reader = outbox->readers; reader != NULL;
         reader = reader->next_reader) {
        keep = WEIR_MIN(keep, reader->saved);
    }
    if (outbox_index_oldest(&outbox->index, &oldest)) {
        keep = WEIR_MIN(keep, oldest);
    }
    bool has_readers = outbox->readers != NULL;
    pthread_mutex_unlock(&outbox->lock);
    if (has_readers) {
        outbox_log_trim(outbox->log, keep);
    }
}

static size_t take_queue(struct outbox *outbox, struct outbox_item *items)
{
    pthread_mutex_lock(&outbox->lock);
    while (outbox->n_queued == 0 && !outbox->is_closing) {
        pthread_cond_wait(&outbox->changed, &outbox->lock);
    }
    size_t n = outbox->n_queued;
    memcpy(items, outbox->queue, n * sizeof *items);
    outbox->n_queued = 0;
    outbox->picture_bytes = 0;
    pthread_cond_broadcast(&outbox->changed);
    pthread_mutex_unlock(&outbox->lock);
    return n;
}

static void *writer_main(void *context)
{
    struct outbox *outbox = context;
    struct outbox_item *items = weir_xalloc(OUTBOX_QUEUE_MAX * sizeof *items);
    void *tickets[OUTBOX_QUEUE_MAX];
    size_t offsets[OUTBOX_QUEUE_MAX], n;
    while ((n = take_queue(outbox, items)) > 0) {
        uint64_t position;
        build_group(outbox, items, n, offsets);
        bool is_written = write_group(outbox, &position);
        if (is_written) {
            publish(outbox, items, n, offsets, position);
        }
        for (size_t i = 0; i < n; i++) {
            tickets[i] = items[i].ticket;
            decision_destroy(items[i].decision);
        }
        if (is_written) {
            outbox->config.on_durable(outbox->config.context, tickets, n);
            trim(outbox);
        }
    }
    free(items);
    return NULL;
}

/* ---- outside --------------------------------------------------------------------------------- */

static weir_status open_parts(struct outbox *outbox, struct weir_error *err)
{
    const struct outbox_config *config = &outbox->config;
    char path[4200];
    WEIR_TRY(weir_dir_make(outbox->dir, 0700, err));
    (void)snprintf(path, sizeof path, "%s/lock", outbox->dir);
    WEIR_TRY(weir_file_lock_after(path, &outbox->lock_fd, err));
    WEIR_TRY(outbox_log_open(outbox->dir, config->segment_bytes, &outbox->log, err));
    WEIR_TRY(outbox_index_init(&outbox->index, config->n_remembered != 0 ? config->n_remembered
                                                                         : OUTBOX_REMEMBERED));
    WEIR_TRY(recover_index(outbox, err));
    outbox->end = outbox_log_end(outbox->log);
    int failed = pthread_create(&outbox->writer, NULL, writer_main, outbox);
    if (failed != 0) {
        return weir_error_set_errno(err, failed, "starting the outbox's writer");
    }
    outbox->has_writer = true;
    return WEIR_OK;
}

weir_status outbox_open(const struct outbox_config *config, struct outbox **out,
                        struct weir_error *err)
{
    struct outbox *outbox = weir_xalloc(sizeof *outbox);
    memset(outbox, 0, sizeof *outbox);
    outbox->config = *config;
    outbox->dir = weir_xstrdup(config->dir);
    outbox->lock_fd = -1;
    outbox->queue = weir_xalloc(OUTBOX_QUEUE_MAX * sizeof *outbox->queue);
    weir_buf_init(&outbox->group, GROUP_MAX_BYTES);
    pthread_mutex_init(&outbox->lock, NULL);
    pthread_cond_init(&outbox->changed, NULL);
    weir_status status = open_parts(outbox, err);
    if (status != WEIR_OK) {
        outbox_close(outbox);
        return status;
    }
    *out = outbox;
    return WEIR_OK;
}

void outbox_close(struct outbox *outbox)
{
    if (outbox == NULL) {
        return;
    }
    pthread_mutex_lock(&outbox->lock);
    outbox->is_closing = true;
    pthread_cond_broadcast(&outbox->changed);
    pthread_mutex_unlock(&outbox->lock);
    if (outbox->has_writer) {
        pthread_join(outbox->writer, NULL);
    }
    outbox_log_close(outbox->log);
    outbox_index_fini(&outbox->index);
    if (outbox->lock_fd >= 0) {
        close(outbox->lock_fd);
    }
    pthread_cond_destroy(&outbox->changed);
    pthread_mutex_destroy(&outbox->lock);
    weir_buf_fini(&outbox->group);
    free(outbox->queue);
    free(outbox->dir);
    free(outbox);
}

void outbox_put(struct outbox *outbox, struct outbox_item *item)
{
    struct weir_image *picture = &item->picture;
    struct decision_passage *passage = item->decision->passage;
    size_t picture_bytes =
        (size_t)picture->width * (size_t)picture->height * (size_t)picture->channels;
    picture_bytes += passage != NULL ? film_bytes(&passage->film) : 0;
    pthread_mutex_lock(&outbox->lock);
    while (outbox->n_queued == OUTBOX_QUEUE_MAX) {
        pthread_cond_wait(&outbox->changed, &outbox->lock);
    }
    if (outbox->n_queued > 0 &&
        outbox->picture_bytes + picture_bytes > OUTBOX_QUEUE_PICTURE_BYTES) {
        weir_image_fini(picture);
        if (passage != NULL) {
            film_fini(&passage->film);
        }
        picture_bytes = 0;
    }
    outbox->picture_bytes += picture_bytes;
    outbox->queue[outbox->n_queued++] = *item;
    outbox->n_put++;
    pthread_cond_broadcast(&outbox->changed);
    pthread_mutex_unlock(&outbox->lock);
}

bool outbox_flush(struct outbox *outbox, int64_t timeout_ms)
{
    struct timespec deadline = weir_deadline_after(timeout_ms);
    pthread_mutex_lock(&outbox->lock);
    uint64_t wanted = outbox->n_put;
    int rc = 0;
    while (outbox->n_durable < wanted && rc != ETIMEDOUT) {
        rc = weir_cond_wait_until(&outbox->changed, &outbox->lock, &deadline);
    }
    bool is_done = outbox->n_durable >= wanted;
    pthread_mutex_unlock(&outbox->lock);
    return is_done;
}

json_t *outbox_record_at(struct outbox *outbox, const char *text, size_t len)
{
    json_t *record = json_loadb(text, len, 0, NULL);
    char bytes[FRAME_KEY_BYTES];
    const char *key = key_of(record, bytes);
    if (key == NULL) {
        json_decref(record);
        return NULL;
    }
    pthread_mutex_lock(&outbox->lock);
    const struct outbox_index_entry *entry = outbox_index_find(&outbox->index, outbox_hash(key));
    uint32_t durable_us = entry != NULL ? entry->durable_us : OUTBOX_DURABLE_UNKNOWN;
    pthread_mutex_unlock(&outbox->lock);
    if (durable_us != OUTBOX_DURABLE_UNKNOWN) {
        json_object_set_new(record, "durable_us", json_integer(durable_us));
    }
    return record;
}

json_t *outbox_find(struct outbox *outbox, const char *key)
{
    char bytes[FRAME_KEY_BYTES];
    struct weir_buf text;
    uint64_t at, next;
    pthread_mutex_lock(&outbox->lock);
    const struct outbox_index_entry *entry = outbox_index_find(&outbox->index, outbox_hash(key));
    uint64_t position = entry != NULL ? entry->position : 0;
    pthread_mutex_unlock(&outbox->lock);
    if (entry == NULL) {
        return NULL;
    }
    weir_buf_init(&text, OUTBOX_RECORD_MAX_BYTES);
    json_t *record = NULL;
    if (outbox_log_read(outbox->log, position, &text, &at, &next, NULL) == WEIR_OK &&
        at == position) {
        record = outbox_record_at(outbox, text.data, text.len);
    }
    weir_buf_fini(&text);
    const char *its_key = key_of(record, bytes);
    if (its_key == NULL || strcmp(its_key, key) != 0) {
        json_decref(record);
        return NULL;
    }
    return record;
}
