#include "predict/outbox_log.h"

#include "base/file.h"
#include "base/grow.h"
#include "base/log.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#define NAME_BYTES 24

struct segment {
    uint64_t start;
    uint64_t size; /**< Bytes that count. */
};

struct outbox_log {
    int dir_fd;
    size_t segment_bytes;
    int tail_fd; /**< Of the last segment; -1: none. Writer's. */
    pthread_mutex_t lock;
    struct segment *segments; /**< By start; under lock. */
    size_t n_segments, cap;
};

static void put_u32(uint8_t *out, uint32_t value)
{
    for (int i = 0; i < 4; i++) {
        out[i] = (uint8_t)(value >> (8 * i));
    }
}

static uint32_t get_u32(const uint8_t *in)
{
    return in[0] | (uint32_t)in[1] << 8 | (uint32_t)in[2] << 16 | (uint32_t)in[3] << 24;
}

static uint32_t checksum(const uint8_t length[4], const void *text, size_t len)
{
    uLong crc = crc32(0L, length, 4);
    return (uint32_t)crc32(crc, text, (uInt)len);
}

weir_status outbox_log_frame(struct weir_buf *group, const char *text, size_t len)
{
    uint8_t header[OUTBOX_RECORD_HEADER_BYTES];
    if (len == 0 || len > OUTBOX_RECORD_MAX_BYTES) {
        return WEIR_ERR_LIMIT;
    }
    put_u32(header, (uint32_t)len);
    put_u32(header + 4, checksum(header, text, len));
    WEIR_TRY(weir_buf_append(group, header, sizeof header));
    return weir_buf_append(group, text, len);
}

/* Length of the whole record that `bytes` begins with; 0 if it is torn or damaged. */
static size_t whole_record(const uint8_t *bytes, size_t len)
{
    if (len < OUTBOX_RECORD_HEADER_BYTES) {
        return 0;
    }
    size_t n = get_u32(bytes);
    if (n == 0 || n > OUTBOX_RECORD_MAX_BYTES || n > len - OUTBOX_RECORD_HEADER_BYTES ||
        get_u32(bytes + 4) != checksum(bytes, bytes + OUTBOX_RECORD_HEADER_BYTES, n)) {
        return 0;
    }
    return OUTBOX_RECORD_HEADER_BYTES + n;
}

static void segment_name(uint64_t start, char out[NAME_BYTES])
{
    (void)snprintf(out, NAME_BYTES, "%016" PRIx64 ".log", start);
}

static bool parse_name(const char *name, uint64_t *out)
{
    char expected[NAME_BYTES];
    char *end;
    errno = 0;
    uint64_t start = strtoull(name, &end, 16);
    segment_name(start, expected);
    *out = start;
    return errno == 0 && strcmp(expected, name) == 0;
}

static weir_status add_segment(struct outbox_log *log, uint64_t start, uint64_t size)
{
    WEIR_TRY(weir_grow(&log->segments, sizeof *log->segments, log->n_segments, &log->cap));
    log->segments[log->n_segments++] = (struct segment){start, size};
    return WEIR_OK;
}

static int by_start(const void *a, const void *b)
{
    const struct segment *x = a, *y = b;
    return (x->start > y->start) - (x->start < y->start);
}

static weir_status list_segments(struct outbox_log *log, const char *dir, struct weir_error *err)
{
    DIR *stream = opendir(dir);
    if (stream == NULL) {
        return weir_error_set_errno(err, errno, "%s", dir);
    }
    weir_status status = WEIR_OK;
    const struct dirent *entry;
    while (status == WEIR_OK && (entry = readdir(stream)) != NULL) {
        uint64_t start;
        struct stat st;
        if (parse_name(entry->d_name, &start) &&
            fstatat(log->dir_fd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0) {
            status = add_segment(log, start, (uint64_t)st.st_size);
        }
    }
    closedir(stream);
    if (status != WEIR_OK) {
        return weir_error_set(err, status, "%s: out of memory", dir);
    }
    if (log->n_segments > 0) {
        qsort(log->segments, log->n_segments, sizeof *log->segments, by_start);
    }
    return WEIR_OK;
}

/* Bytes of whole records from the start of a file in memory. */
static size_t whole_bytes(const uint8_t *bytes, size_t len)
{
    size_t at = 0, n;
    while ((n = whole_record(bytes + at, len - at)) != 0) {
        at += n;
    }
    return at;
}

/* Open the last segment for appending and cut what a kill left half written. */
static weir_status recover_tail(struct outbox_log *log, const char *dir, struct weir_error *err)
{
    char name[NAME_BYTES];
    char path[4096];
    char *data;
    size_t len;
    struct weir_arena arena;
    if (log->n_segments == 0) {
        return WEIR_OK;
    }
    struct segment *tail = &log->segments[log->n_segments - 1];
    segment_name(tail->start, name);
    (void)snprintf(path, sizeof path, "%s/%s", dir, name);
    weir_arena_init(&arena, 0);
    weir_status status = weir_file_read(path, (size_t)128 << 20, &arena, &data, &len, err);
    if (status == WEIR_OK) {
        tail->size = whole_bytes((const uint8_t *)data, len);
    }
    weir_arena_fini(&arena);
    WEIR_TRY(status);
    log->tail_fd = openat(log->dir_fd, name, O_WRONLY | O_CLOEXEC);
    if (log->tail_fd < 0) {
        return weir_error_set_errno(err, errno, "%s", path);
    }
    if (tail->size < len) {
        weir_log(WEIR_LOG_WARN, "outbox_torn_end_cut", WEIR_KV_STR("segment", name),
                 WEIR_KV_INT("bytes", (int64_t)(len - tail->size)));
        if (ftruncate(log->tail_fd, (off_t)tail->size) != 0 || fsync(log->tail_fd) != 0) {
            return weir_error_set_errno(err, errno, "%s", path);
        }
    }
    return WEIR_OK;
}

weir_status outbox_log_open(const char *dir, size_t segment_bytes, struct outbox_log **out,
                            struct weir_error *err)
{
    WEIR_TRY(weir_dir_make(dir, 0700, err));
    struct outbox_log *log = calloc(1, sizeof *log);
    if (log == NULL) {
        return weir_error_set(err, WEIR_ERR_NOMEM, "%s: out of memory", dir);
    }
    log->segment_bytes = segment_bytes != 0 ? segment_bytes : OUTBOX_SEGMENT_BYTES;
    log->tail_fd = -1;
    pthread_mutex_init(&log->lock, NULL);
    log->dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    weir_status status = log->dir_fd < 0 ? weir_error_set_errno(err, errno, "%s", dir) : WEIR_OK;
    if (status == WEIR_OK) {
        status = list_segments(log, dir, err);
    }
    if (status == WEIR_OK) {
        status = recover_tail(log, dir, err);
    }
    if (status != WEIR_OK) {
        outbox_log_close(log);
        return status;
    }
    *out = log;
    return WEIR_OK;
}

void outbox_log_close(struct outbox_log *log)
{
    if (log == NULL) {
        return;
    }
    if (log->tail_fd >= 0) {
        close(log->tail_fd);
    }
    if (log->dir_fd >= 0) {
        close(log->dir_fd);
    }
    pthread_mutex_destroy(&log->lock);
    free(log->segments);
    free(log);
}

/* Begin the segment at `start`. A file an earlier try left there is used. */
static weir_status roll(struct outbox_log *log, uint64_t start, struct weir_error *err)
{
    char name[NAME_BYTES];
    segment_name(start, name);
    int fd = openat(log->dir_fd, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0 || fsync(log->dir_fd) != 0) {
        weir_status status = weir_error_set_errno(err, errno, "outbox segment %s", name);
        if (fd >= 0) {
            close(fd);
        }
        return status;
    }
    pthread_mutex_lock(&log->lock);
    weir_status status = add_segment(log, start, 0);
    pthread_mutex_unlock(&log->lock);
    if (status != WEIR_OK) {
        close(fd);
        return weir_error_set(err, status, "outbox: out of memory");
    }
    if (log->tail_fd >= 0) {
        close(log->tail_fd);
    }
    log->tail_fd = fd;
    return WEIR_OK;
}

static weir_status write_at(int fd, const uint8_t *bytes, size_t len, uint64_t offset)
{
    while (len > 0) {
        ssize_t n = pwrite(fd, bytes, len, (off_t)offset);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            return weir_status_from_errno(n == 0 ? ENOSPC : errno);
        }
        bytes += n;
        len -= (size_t)n;
        offset += (uint64_t)n;
    }
    return WEIR_OK;
}

weir_status outbox_log_append(struct outbox_log *log, const void *group, size_t len,
                              uint64_t *out_position, struct weir_error *err)
{
    /* Only this thread changes the last segment, so it may look at it without the lock. */
    struct segment *tail = log->n_segments > 0 ? &log->segments[log->n_segments - 1] : NULL;
    if (tail == NULL || (tail->size > 0 && tail->size + len > log->segment_bytes)) {
        WEIR_TRY(roll(log, tail != NULL ? tail->start + tail->size : 0, err));
        tail = &log->segments[log->n_segments - 1];
    }
    weir_status status = write_at(log->tail_fd, group, len, tail->size);
    if (status == WEIR_OK && fdatasync(log->tail_fd) != 0) {
        status = weir_status_from_errno(errno);
    }
    if (status != WEIR_OK) {
        /* Give the space back; what cannot be cut is overwritten by the next try. */
        (void)!ftruncate(log->tail_fd, (off_t)tail->size);
        return weir_error_set(err, status, "writing %zu bytes to the outbox: %s", len,
                              weir_status_text(status));
    }
    *out_position = tail->start + tail->size;
    pthread_mutex_lock(&log->lock);
    tail->size += len;
    pthread_mutex_unlock(&log->lock);
    return WEIR_OK;
}

uint64_t outbox_log_begin(struct outbox_log *log)
{
    pthread_mutex_lock(&log->lock);
    uint64_t begin = log->n_segments > 0 ? log->segments[0].start : 0;
    pthread_mutex_unlock(&log->lock);
    return begin;
}

uint64_t outbox_log_end(struct outbox_log *log)
{
    pthread_mutex_lock(&log->lock);
    const struct segment *tail =
        log->n_segments > 0 ? &log->segments[log->n_segments - 1] : &(struct segment){0, 0};
    uint64_t end = tail->start + tail->size;
    pthread_mutex_unlock(&log->lock);
    return end;
}

/* The segment that holds `position`, or the next one after it; false if there is none. */
static bool find_segment(struct outbox_log *log, uint64_t position, struct segment *out)
{
    bool is_found = false;
    pthread_mutex_lock(&log->lock);
    for (size_t i = 0; i < log->n_segments && !is_found; i++) {
        if (position < log->segments[i].start + log->segments[i].size) {
            *out = log->segments[i];
            is_found = true;
        }
    }
    pthread_mutex_unlock(&log->lock);
    return is_found;
}

static weir_status read_at(int fd, void *out, size_t len, uint64_t offset)
{
    uint8_t *bytes = out;
    while (len > 0) {
        ssize_t n = pread(fd, bytes, len, (off_t)offset);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            return n == 0 ? WEIR_ERR_CORRUPT : weir_status_from_errno(errno);
        }
        bytes += n;
        len -= (size_t)n;
        offset += (uint64_t)n;
    }
    return WEIR_OK;
}

static weir_status read_record(int fd, uint64_t offset, uint64_t n_left, struct weir_buf *out)
{
    uint8_t header[OUTBOX_RECORD_HEADER_BYTES];
    uint8_t stack[4096], *text = stack;
    if (n_left < sizeof header) {
        return WEIR_ERR_CORRUPT;
    }
    WEIR_TRY(read_at(fd, header, sizeof header, offset));
    size_t n = get_u32(header);
    if (n == 0 || n > OUTBOX_RECORD_MAX_BYTES || n > n_left - sizeof header) {
        return WEIR_ERR_CORRUPT;
    }
    if (n > sizeof stack && (text = malloc(n)) == NULL) {
        return WEIR_ERR_NOMEM;
    }
    weir_status status = read_at(fd, text, n, offset + sizeof header);
    if (status == WEIR_OK && get_u32(header + 4) != checksum(header, text, n)) {
        status = WEIR_ERR_CORRUPT;
    }
    if (status == WEIR_OK) {
        status = weir_buf_append(out, text, n);
    }
    if (text != stack) {
        free(text);
    }
    return status;
}

weir_status outbox_log_read(struct outbox_log *log, uint64_t position, struct weir_buf *out,
                            uint64_t *out_position, uint64_t *out_next, struct weir_error *err)
{
    char name[NAME_BYTES];
    struct segment segment;
    size_t len_before = out->len;
    if (!find_segment(log, position, &segment)) {
        return WEIR_ERR_END;
    }
    position = WEIR_MAX(position, segment.start);
    segment_name(segment.start, name);
    int fd = openat(log->dir_fd, name, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return weir_error_set_errno(err, errno, "outbox segment %s", name);
    }
    uint64_t offset = position - segment.start;
    weir_status status = read_record(fd, offset, segment.size - offset, out);
    close(fd);
    if (status == WEIR_ERR_CORRUPT) {
        *out_next = segment.start + segment.size;
        return weir_error_set(err, status, "outbox segment %s is damaged at byte %llu", name,
                              (unsigned long long)offset);
    }
    if (status != WEIR_OK) {
        return weir_error_set(err, status, "reading outbox segment %s: %s", name,
                              weir_status_text(status));
    }
    *out_position = position;
    *out_next = position + OUTBOX_RECORD_HEADER_BYTES + (out->len - len_before);
    return WEIR_OK;
}

bool outbox_log_segment_before(struct outbox_log *log, uint64_t position, uint64_t *out_start)
{
    bool is_found = false;
    pthread_mutex_lock(&log->lock);
    for (size_t i = log->n_segments; i > 0 && !is_found; i--) {
        if (log->segments[i - 1].start < position) {
            *out_start = log->segments[i - 1].start;
            is_found = true;
        }
    }
    pthread_mutex_unlock(&log->lock);
    return is_found;
}

void outbox_log_trim(struct outbox_log *log, uint64_t position)
{
    pthread_mutex_lock(&log->lock);
    size_t n = 0;
    while (n + 1 < log->n_segments && log->segments[n].start + log->segments[n].size <= position) {
        char name[NAME_BYTES];
        segment_name(log->segments[n].start, name);
        if (unlinkat(log->dir_fd, name, 0) != 0 && errno != ENOENT) {
            break;
        }
        n++;
    }
    log->n_segments -= n;
    memmove(log->segments, log->segments + n, log->n_segments * sizeof *log->segments);
    pthread_mutex_unlock(&log->lock);
}
