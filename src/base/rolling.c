#include "base/rolling_private.h"

#include "base/macros.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define NAME_DIGITS    16
#define LINE_MAX_BYTES ((int64_t)64 << 10)
#define TRIES_MAX      8 /* of a read whose segment is gone when it comes */

static const char *tail_of(struct rolling_place *place, const char *path)
{
    (void)snprintf(place->path, sizeof place->path, "%s.tail", path);
    return place->path;
}

static const char *part_path(struct rolling_place *place, const char *path, int64_t start)
{
    if (start == 0) {
        (void)snprintf(place->path, sizeof place->path, "%s", path);
    } else {
        (void)snprintf(place->path, sizeof place->path, "%s.tail/%0*llx", path, NAME_DIGITS,
                       (unsigned long long)start);
    }
    return place->path;
}

const char *rolling_times_path(struct rolling_place *place, const char *path, int64_t start)
{
    (void)snprintf(place->path, sizeof place->path, "%s.tail/%0*llx.times", path, NAME_DIGITS,
                   (unsigned long long)start);
    return place->path;
}

/* ---- what is there ------------------------------------------------------------------------------- */

/** Bytes of a file; 0: there is none. */
static int64_t size_of(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 ? (int64_t)info.st_size : 0;
}

/* In order; of too many the oldest is not seen. */
static void insert(struct rolling_parts *parts, int64_t start)
{
    if (parts->n > ROLLING_SEGMENTS_MAX) {
        if (start < parts->parts[1].start) {
            return;
        }
        parts->n--;
        memmove(&parts->parts[1], &parts->parts[2], (parts->n - 1) * sizeof parts->parts[0]);
    }
    size_t at = parts->n++;
    for (; at > 1 && parts->parts[at - 1].start > start; at--) {
        parts->parts[at] = parts->parts[at - 1];
    }
    parts->parts[at].start = start;
}

/* Sizes are asked when all names are known: what is before another part grows no more. */
void rolling_look(const char *path, struct rolling_parts *out)
{
    struct rolling_place place;
    DIR *dir = opendir(tail_of(&place, path));
    *out = (struct rolling_parts){.n = 1};
    for (struct dirent *entry = dir != NULL ? readdir(dir) : NULL; entry != NULL;
         entry = readdir(dir)) {
        char *end;
        long long start = strtoll(entry->d_name, &end, 16);
        if (end == entry->d_name + NAME_DIGITS && *end == '\0' && start > 0) {
            insert(out, start);
        }
    }
    if (dir != NULL) {
        closedir(dir);
    }
    out->parts[0].size = size_of(path);
    for (size_t i = 1; i < out->n; i++) {
        out->parts[i].size = size_of(part_path(&place, path, out->parts[i].start));
    }
}

/* ---- writing ------------------------------------------------------------------------------------- */

/* -1, and errno. */
static int open_part(struct weir_rolling *file, int64_t start)
{
    struct rolling_place place;
    char last = '\n';
    file->is_head = start == 0;
    file->start = start;
    file->fd =
        open(part_path(&place, file->path, start), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    file->size = file->fd >= 0 ? (int64_t)lseek(file->fd, 0, SEEK_END) : 0;
    if (file->size > 0) {
        (void)!pread(file->fd, &last, 1, (off_t)file->size - 1);
    }
    file->ends_a_line = last == '\n';
    rolling_times_close(file);
    if (file->fd >= 0) {
        rolling_times_open(file);
    }
    return file->fd;
}

weir_status weir_rolling_open(struct weir_rolling *file, const char *path, int64_t max_bytes,
                              struct weir_error *err)
{
    struct rolling_parts parts;
    int64_t max = WEIR_MIN(WEIR_MAX(max_bytes, WEIR_ROLLING_MIN_BYTES), WEIR_ROLLING_MAX_BYTES);
    *file = (struct weir_rolling){.fd = -1,
                                  .times_fd = -1,
                                  .time_ms = INT64_MIN,
                                  .head_max_bytes = max - 3 * (max / 24),
                                  .segment_max_bytes = max / 24};
    if (strlen(path) >= sizeof file->path) {
        return weir_error_set(err, WEIR_ERR_LIMIT, "%.100s…: the path is too long", path);
    }
    (void)snprintf(file->path, sizeof file->path, "%s", path);
    rolling_look(path, &parts);
    if (open_part(file, parts.parts[parts.n - 1].start) < 0) {
        return weir_error_set_errno(err, errno, "cannot write %s", path);
    }
    /* The last part may have no line yet: no line to come is older than those before it. */
    for (size_t i = parts.n - 1; i > 0 && file->time_ms == INT64_MIN; i--) {
        file->time_ms = rolling_times_last(path, parts.parts[i - 1].start);
    }
    return WEIR_OK;
}

int64_t weir_rolling_end(const struct weir_rolling *file)
{
    return file->start + file->size;
}

/* A part that ends a line is full from here on. */
static int64_t soft_max(const struct weir_rolling *file, int64_t max)
{
    return max - WEIR_MIN(LINE_MAX_BYTES, file->segment_max_bytes / 4);
}

/* Before another part begins: the oldest go, as long as the others are enough of an end. With what they
 * are short of that, the oldest of them and the new one, these are never more than three. */
static void make_room(const struct weir_rolling *file)
{
    struct rolling_place place;
    struct rolling_parts parts;
    int64_t disk[ROLLING_SEGMENTS_MAX + 1], sum = 0,
                                            enough = soft_max(file, file->segment_max_bytes);
    rolling_look(file->path, &parts);
    for (size_t i = 1; i < parts.n; i++) {
        disk[i] = parts.parts[i].size +
                  size_of(rolling_times_path(&place, file->path, parts.parts[i].start));
        sum += disk[i];
    }
    for (size_t i = 1; i < parts.n; i++) {
        sum -= disk[i];
        bool is_left = sum < enough && parts.n - i < ROLLING_SEGMENTS_MAX;
        if (is_left && parts.parts[i].size > 0) {
            return;
        }
        (void)unlink(part_path(&place, file->path, parts.parts[i].start));
        (void)unlink(rolling_times_path(&place, file->path, parts.parts[i].start));
    }
}

bool rolling_make_folder(const char *path)
{
    struct rolling_place place;
    return mkdir(tail_of(&place, path), 0700) == 0 || errno == EEXIST;
}

static bool begin_part(struct weir_rolling *file, int64_t position)
{
    if (file->fd >= 0) {
        close(file->fd);
        file->fd = -1;
    }
    make_room(file);
    return rolling_make_folder(file->path) && open_part(file, position) >= 0;
}

/* With its times, of which there may soon be one more. */
static int64_t disk_size(const struct weir_rolling *file)
{
    return file->size + file->times_bytes + ROLLING_TIME_BYTES;
}

/* Has the part its bytes? Where a line ends near its maximum, it ends there. */
static bool is_full(const struct weir_rolling *file, int64_t *out_max, int64_t *out_soft)
{
    *out_max = file->is_head ? file->head_max_bytes : file->segment_max_bytes;
    *out_soft = soft_max(file, *out_max);
    int64_t size = disk_size(file);
    return size >= *out_max || (size > *out_soft && file->ends_a_line);
}

/* Of the bytes so many go into this part. */
static size_t share_of(const struct weir_rolling *file, const char *bytes, size_t len, int64_t max,
                       int64_t soft)
{
    int64_t size = file->size + file->times_bytes;
    size_t n = (size_t)WEIR_MIN((int64_t)len, max - size);
    size_t skip = (size_t)WEIR_MAX((int64_t)0, soft - size);
    const char *end = skip < n ? memchr(bytes + skip, '\n', n - skip) : NULL;
    return end != NULL ? (size_t)(end - bytes) + 1 : n;
}

weir_status weir_rolling_write(struct weir_rolling *file, int64_t position, int64_t time_ms,
                               const void *bytes, size_t len, size_t *out_n, struct weir_error *err)
{
    const char *text = bytes;
    int64_t max, soft;
    *out_n = 0;
    if (position < weir_rolling_end(file)) {
        return weir_error_set(err, WEIR_ERR_INVALID, "%s has these bytes", file->path);
    }
    while (*out_n < len) {
        int64_t at = position + (int64_t)*out_n;
        if ((file->fd < 0 || is_full(file, &max, &soft) || at != weir_rolling_end(file)) &&
            !begin_part(file, at)) {
            return weir_error_set_errno(err, errno, "cannot write behind %s", file->path);
        }
        (void)is_full(file, &max, &soft);
        rolling_times_note(file, time_ms, text + *out_n, len - *out_n);
        size_t share = share_of(file, text + *out_n, len - *out_n, max, soft);
        ssize_t n = write(file->fd, text + *out_n, share);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            return weir_error_set_errno(err, n < 0 ? errno : ENOSPC, "cannot write %s", file->path);
        }
        *out_n += (size_t)n;
        file->size += n;
        file->ends_a_line = text[*out_n - 1] == '\n';
    }
    return WEIR_OK;
}

static void sync_file(const char *path, int flags)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | flags);
    if (fd >= 0) {
        (void)fsync(fd);
        close(fd);
    }
}

void weir_rolling_sync(const struct weir_rolling *file)
{
    struct rolling_place place;
    struct rolling_parts parts;
    rolling_look(file->path, &parts);
    for (size_t i = 0; i < parts.n; i++) {
        sync_file(part_path(&place, file->path, parts.parts[i].start), 0);
        sync_file(rolling_times_path(&place, file->path, parts.parts[i].start), 0);
    }
    sync_file(tail_of(&place, file->path), O_DIRECTORY);
}

void weir_rolling_close(struct weir_rolling *file)
{
    if (file->fd >= 0) {
        close(file->fd);
        file->fd = -1;
    }
    rolling_times_close(file);
    if (!file->is_head) { /* it is as old as the newest of its bytes */
        (void)utimensat(AT_FDCWD, file->path, NULL, 0);
    }
}

/* ---- reading ------------------------------------------------------------------------------------- */

weir_status weir_rolling_read(const char *path, int64_t position, void *out, size_t size,
                              struct weir_rolling_part *part, struct weir_error *err)
{
    struct rolling_place place;
    struct rolling_parts parts;
    for (int i_try = 0; i_try < TRIES_MAX; i_try++) {
        size_t i = 0;
        rolling_look(path, &parts);
        int64_t end = parts.parts[parts.n - 1].start + parts.parts[parts.n - 1].size;
        while (i < parts.n && parts.parts[i].start + parts.parts[i].size <= position) {
            i++;
        }
        *part = (struct weir_rolling_part){.from = position, .end = end};
        if (i == parts.n || size == 0) {
            return WEIR_OK;
        }
        int64_t from = WEIR_MAX(position, parts.parts[i].start);
        int fd = open(part_path(&place, path, parts.parts[i].start), O_RDONLY | O_CLOEXEC);
        ssize_t n =
            fd >= 0 ? pread(fd, out, size, (off_t)(from - parts.parts[i].start)) : (ssize_t)-1;
        int errno_value = errno;
        if (fd >= 0) {
            close(fd);
        }
        if (n > 0) {
            *part = (struct weir_rolling_part){.from = from, .end = end, .n = (size_t)n};
            return WEIR_OK;
        }
        if (n < 0 && errno_value != ENOENT) {
            return weir_error_set_errno(err, errno_value, "cannot read %s", path);
        }
    }
    return WEIR_OK; /* its writer is faster: nothing this time */
}
