/* When lines came. Beside each part lies a file of 64-bit numbers: first a time, the base; then for each time at
 * which a line began, how long after the base, and at which byte of the part. They are in order, by both. */
#include "base/macros.h"
#include "base/rolling_private.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#define OFFSET_BITS 27
#define OFFSET_MASK (((uint64_t)1 << OFFSET_BITS) - 1)
#define LATER_MAX   ((int64_t)(UINT64_MAX >> OFFSET_BITS)) /* four years */
#define WORD        ((int64_t)sizeof(uint64_t))
#define SCAN_BYTES  4096

_Static_assert(WEIR_ROLLING_MAX_BYTES <= (int64_t)OFFSET_MASK + 1, "an offset in a part fits");

/* Those of a part, as they are in its file. */
struct times {
    int fd;
    int64_t start, base_ms, n;
};

static bool read_word(int fd, int64_t i, uint64_t *out)
{
    return pread(fd, out, sizeof *out, (off_t)(i * WORD)) == (ssize_t)sizeof *out;
}

/* The i-th of them, from 0 on. One that cannot be read is over. */
static struct weir_rolling_time time_at(const struct times *times, int64_t i)
{
    uint64_t word;
    if (!read_word(times->fd, i + 1, &word)) {
        return (struct weir_rolling_time){INT64_MAX, INT64_MAX};
    }
    return (struct weir_rolling_time){times->start + (int64_t)(word & OFFSET_MASK),
                                      times->base_ms + (int64_t)(word >> OFFSET_BITS)};
}

/* ---- their writer -------------------------------------------------------------------------------------------- */

/* What a machine that went down left: those of bytes that are not there go. */
static void drop_broken(struct weir_rolling *file, struct times *times)
{
    while (times->n > 0 && time_at(times, times->n - 1).position > file->start + file->size) {
        times->n--;
    }
    file->times_bytes = times->n > 0 ? (times->n + 1) * WORD : 0;
    (void)!ftruncate(file->times_fd, (off_t)file->times_bytes);
    file->times_base_ms = times->base_ms;
    if (times->n > 0) {
        file->time_ms = time_at(times, times->n - 1).time_ms;
    }
}

void rolling_times_open(struct weir_rolling *file)
{
    struct rolling_place place;
    uint64_t base = 0;
    const char *path = rolling_times_path(&place, file->path, file->start);
    file->times_fd = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (file->times_fd < 0 && errno == ENOENT && rolling_make_folder(file->path)) {
        file->times_fd = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    }
    file->times_bytes = 0;
    if (file->times_fd < 0) {
        return;
    }
    int64_t n_words = (int64_t)lseek(file->times_fd, 0, SEEK_END) / WORD;
    bool has_base = n_words > 0 && read_word(file->times_fd, 0, &base);
    struct times times = {file->times_fd, file->start, (int64_t)base, has_base ? n_words - 1 : 0};
    drop_broken(file, &times);
}

void rolling_times_close(struct weir_rolling *file)
{
    if (file->times_fd >= 0) {
        close(file->times_fd);
        file->times_fd = -1;
    }
}

void rolling_times_note(struct weir_rolling *file, int64_t time_ms, const char *bytes, size_t len)
{
    uint64_t words[2];
    bool is_first = file->times_bytes == 0;
    bool has_line = file->ends_a_line || memchr(bytes, '\n', len - 1) != NULL;
    if (file->times_fd < 0 || !has_line || (!is_first && time_ms <= file->time_ms)) {
        return;
    }
    int64_t base_ms = is_first ? WEIR_MAX(time_ms, file->time_ms) : file->times_base_ms;
    int64_t later_ms = is_first ? 0 : WEIR_MIN(time_ms - base_ms, LATER_MAX);
    words[0] = (uint64_t)base_ms;
    words[1] = (uint64_t)later_ms << OFFSET_BITS | (uint64_t)file->size;
    const uint64_t *from = is_first ? words : words + 1;
    ssize_t size = is_first ? 2 * WORD : WORD;
    if (write(file->times_fd, from, (size_t)size) !=
        size) { /* a full disk: it has the time before */
        (void)!ftruncate(file->times_fd, (off_t)file->times_bytes);
        return;
    }
    file->times_base_ms = base_ms;
    file->time_ms = base_ms + later_ms;
    file->times_bytes += size;
}

/* ---- readers ------------------------------------------------------------------------------------------------- */

/* False: it has none. */
static bool times_open(struct times *times, const char *path, int64_t start)
{
    struct rolling_place place;
    uint64_t base;
    *times = (struct times){
        .fd = open(rolling_times_path(&place, path, start), O_RDONLY | O_CLOEXEC), .start = start};
    if (times->fd < 0) {
        return false;
    }
    times->n = (int64_t)lseek(times->fd, 0, SEEK_END) / WORD - 1;
    if (times->n <= 0 || !read_word(times->fd, 0, &base)) {
        close(times->fd);
        return false;
    }
    times->base_ms = (int64_t)base;
    return true;
}

int64_t rolling_times_last(const char *path, int64_t start)
{
    struct times times;
    int64_t last_ms = INT64_MIN;
    if (times_open(&times, path, start)) {
        last_ms = time_at(&times, times.n - 1).time_ms;
        close(times.fd);
    }
    return last_ms;
}

/* The first that is at this position or behind it, and at this time or later. */
static int64_t first_from(const struct times *times, int64_t position, int64_t time_ms)
{
    int64_t lo = 0, hi = times->n;
    while (lo < hi) {
        int64_t mid = lo + (hi - lo) / 2;
        struct weir_rolling_time at = time_at(times, mid);
        if (at.position >= position && at.time_ms >= time_ms) {
            hi = mid;
        } else {
            lo = mid + 1;
        }
    }
    return lo;
}

size_t weir_rolling_times(const char *path, struct weir_rolling_part *part,
                          struct weir_rolling_time *out, size_t max)
{
    struct rolling_parts parts;
    struct times times;
    size_t n = 0, i = 0;
    rolling_look(path, &parts);
    while (i + 1 < parts.n && parts.parts[i + 1].start <= part->from) {
        i++;
    }
    if (part->n == 0 || !times_open(&times, path, parts.parts[i].start)) {
        return 0;
    }
    int64_t at = first_from(&times, part->from + 1, INT64_MIN); /* the one before holds at `from` */
    for (at -= at > 0; at < times.n; at++) {
        struct weir_rolling_time time = time_at(&times, at);
        time.position = WEIR_MAX(time.position, part->from);
        if (time.position >= part->from + (int64_t)part->n) {
            break;
        }
        if (n == max) {
            part->n = (size_t)(time.position - part->from);
            break;
        }
        out[n++] = time;
    }
    close(times.fd);
    return n;
}

/* Where the first line begins at a position or behind it; what is left out there is not passed over. */
static weir_status find_line_begin(const char *path, int64_t position, int64_t *out,
                                   struct weir_error *err)
{
    char bytes[SCAN_BYTES];
    struct weir_rolling_part part;
    int64_t at = position - 1;
    while (at >= 0) {
        WEIR_TRY(weir_rolling_read(path, at, bytes, sizeof bytes, &part, err));
        const char *line_end = part.n > 0 ? memchr(bytes, '\n', part.n) : NULL;
        if (part.n == 0 || part.from > at) { /* the end, or behind what is left out */
            *out = WEIR_MAX(part.from, position);
            return WEIR_OK;
        }
        if (line_end != NULL) {
            *out = part.from + (line_end - bytes) + 1;
            return WEIR_OK;
        }
        at = part.from + (int64_t)part.n;
    }
    *out = WEIR_MAX(position, (int64_t)0);
    return WEIR_OK;
}

/* The same; a line that is there. Behind the last line of a part the next part may be gone. */
static weir_status find_line(const char *path, int64_t position, int64_t *out,
                             struct weir_error *err)
{
    char byte;
    struct weir_rolling_part part;
    WEIR_TRY(find_line_begin(path, position, out, err));
    WEIR_TRY(weir_rolling_read(path, *out, &byte, 1, &part, err));
    *out = part.from;
    return WEIR_OK;
}

weir_status weir_rolling_find_time(const char *path, int64_t time_ms, int64_t *out,
                                   bool *out_has_times, struct weir_error *err)
{
    struct rolling_parts parts;
    struct times times;
    bool has_times = false;
    rolling_look(path, &parts);
    int64_t end = parts.parts[parts.n - 1].start + parts.parts[parts.n - 1].size;
    for (size_t i = 0; i < parts.n; i++) {
        if (!times_open(&times, path, parts.parts[i].start)) {
            continue;
        }
        has_times = true;
        int64_t at = first_from(&times, INT64_MIN, time_ms);
        int64_t position = at < times.n ? time_at(&times, at).position : INT64_MAX;
        close(times.fd);
        if (position != INT64_MAX) {
            *out_has_times = true;
            return find_line(path, position, out, err);
        }
    }
    *out = end;
    *out_has_times = has_times || end == 0;
    return WEIR_OK;
}
