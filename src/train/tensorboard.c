#include "train/tensorboard.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/protobuf.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define EVENT_MAX_BYTES ((size_t)64 << 10)
#define HOST_BYTES      64
#define N_FILES_MAX     1000 /* of one process in one second */

/* Fields of Event, Summary, Summary.Value and SessionLog. */
#define EVENT_WALL_TIME    1
#define EVENT_STEP         2
#define EVENT_FILE_VERSION 3
#define EVENT_SUMMARY      5
#define EVENT_SESSION_LOG  7
#define SUMMARY_VALUE      1
#define VALUE_TAG          1
#define VALUE_SIMPLE       2
#define SESSION_STATUS     1
#define SESSION_START      1 /* a value of it */

struct train_tensorboard {
    int fd; /**< -1: nothing more is written. */
    char *path;
    struct weir_buf event, record;
};

/* ---- records --------------------------------------------------------------------------------- */

/* CRC-32C (Castagnoli; RFC 3720, appendix B.4), bit by bit: a few hundred bytes at a time. */
static uint32_t crc32c(const void *bytes, size_t len)
{
    const unsigned char *p = bytes;
    uint32_t crc = 0xffffffffu;
    for (size_t i = 0; i < len; i++) {
        crc ^= p[i];
        for (int bit = 0; bit < 8; bit++) {
            crc = crc >> 1 ^ (0x82f63b78u & -(crc & 1));
        }
    }
    return ~crc;
}

/* As TensorFlow masks it, so that the checksum of bytes with a checksum inside is no special case. */
static uint32_t masked(const void *bytes, size_t len)
{
    uint32_t crc = crc32c(bytes, len);
    return (crc >> 15 | crc << 17) + 0xa282ead8u;
}

static void put_number(struct weir_buf *buf, uint64_t value, size_t n_bytes)
{
    for (size_t i = 0; i < n_bytes; i++) {
        const unsigned char byte = (unsigned char)(value >> 8 * i);
        (void)weir_buf_append(buf, &byte, 1);
    }
}

static bool write_all(int fd, const char *bytes, size_t len)
{
    while (len > 0) {
        ssize_t n = write(fd, bytes, len);
        if (n < 0 && errno != EINTR) {
            return false;
        }
        bytes += n > 0 ? n : 0;
        len -= n > 0 ? (size_t)n : 0;
    }
    return true;
}

/* Write the event as a record. */
static bool write_record(struct train_tensorboard *board)
{
    const struct weir_buf *event = &board->event;
    struct weir_buf *record = &board->record;
    weir_buf_reset(record);
    put_number(record, event->len, 8);
    put_number(record, masked(record->data, 8), 4);
    (void)weir_buf_append(record, event->data, event->len);
    put_number(record, masked(event->data, event->len), 4);
    if (event->status != WEIR_OK || record->status != WEIR_OK) {
        errno = ENOMEM;
        return false;
    }
    return write_all(board->fd, record->data, record->len);
}

/* ---- events ---------------------------------------------------------------------------------- */

static void put_double(struct weir_buf *buf, uint32_t number, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    weir_protobuf_put_fixed64(buf, number, bits);
}

static void begin_event(struct train_tensorboard *board, uint64_t step)
{
    weir_buf_reset(&board->event);
    put_double(&board->event, EVENT_WALL_TIME, (double)weir_time_ms() / 1000);
    if (step > 0) {
        weir_protobuf_put_varint(&board->event, EVENT_STEP, step);
    }
}

static bool write_head(struct train_tensorboard *board, uint64_t step)
{
    begin_event(board, 0);
    weir_protobuf_put_text(&board->event, EVENT_FILE_VERSION, "brain.Event:2");
    if (!write_record(board)) {
        return false;
    }
    if (step == 0) {
        return true;
    }
    begin_event(board, step + 1); /* the step of the checkpoint itself was made, and holds */
    size_t log = weir_protobuf_begin(&board->event, EVENT_SESSION_LOG);
    weir_protobuf_put_varint(&board->event, SESSION_STATUS, SESSION_START);
    weir_protobuf_end(&board->event, log);
    return write_record(board);
}

void train_tensorboard_add(struct train_tensorboard *board, const struct train_tick *tick)
{
    if (board == NULL || board->fd < 0) {
        return;
    }
    begin_event(board, tick->step);
    size_t summary = weir_protobuf_begin(&board->event, EVENT_SUMMARY);
    for (size_t i = 0; i < tick->n; i++) {
        size_t value = weir_protobuf_begin(&board->event, SUMMARY_VALUE);
        weir_protobuf_put_text(&board->event, VALUE_TAG, tick->keys[i]);
        weir_protobuf_put_float(&board->event, VALUE_SIMPLE, (float)tick->values[i]);
        weir_protobuf_end(&board->event, value);
    }
    weir_protobuf_end(&board->event, summary);
    if (!write_record(board)) {
        weir_log(WEIR_LOG_WARN, "tensorboard_ended", WEIR_KV_STR("file", board->path),
                 WEIR_KV_STR("error", strerror(errno)));
        close(board->fd);
        board->fd = -1;
    }
}

/* ---- files ----------------------------------------------------------------------------------- */

/* A new one; a file of before is never touched. */
static int make_file(struct train_tensorboard *board, const char *dir)
{
    char host[HOST_BYTES] = "";
    int64_t now_s = weir_time_ms() / 1000;
    if (gethostname(host, sizeof host - 1) != 0 || host[0] == '\0') {
        (void)snprintf(host, sizeof host, "localhost");
    }
    for (int i = 0; i < N_FILES_MAX; i++) {
        free(board->path);
        if (asprintf(&board->path, "%s/events.out.tfevents.%010" PRId64 ".%s.%d.%d.weir", dir,
                     now_s, host, (int)getpid(), i) < 0) {
            board->path = NULL;
            errno = ENOMEM;
            return -1;
        }
        int fd = open(board->path, O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0644);
        if (fd >= 0 || errno != EEXIST) {
            return fd;
        }
    }
    return -1;
}

weir_status train_tensorboard_open(const char *dir, uint64_t step, struct train_tensorboard **out,
                                   struct weir_error *err)
{
    WEIR_TRY(weir_dir_make(dir, 0755, err));
    struct train_tensorboard *board = calloc(1, sizeof *board);
    if (board == NULL) {
        return weir_error_set(err, WEIR_ERR_NOMEM, "no memory for the events of TensorBoard");
    }
    weir_buf_init(&board->event, EVENT_MAX_BYTES);
    weir_buf_init(&board->record, EVENT_MAX_BYTES + 16);
    board->fd = make_file(board, dir);
    if (board->fd < 0 || !write_head(board, step)) {
        weir_status status = weir_error_set_errno(err, errno, "cannot write %s",
                                                  board->path != NULL ? board->path : dir);
        train_tensorboard_close(board);
        return status;
    }
    *out = board;
    return WEIR_OK;
}

void train_tensorboard_close(struct train_tensorboard *board)
{
    if (board == NULL) {
        return;
    }
    if (board->fd >= 0) {
        close(board->fd);
    }
    weir_buf_fini(&board->event);
    weir_buf_fini(&board->record);
    free(board->path);
    free(board);
}
