/**
 * Rolling file: a stream of bytes without an end, kept within a bound: its beginning, and what came last.
 *
 * Bytes go by their position in the whole stream, from 0 on, whatever of it is still there. The beginning
 * lies in the file `path`, which is only ever appended to; what comes after that in segments, in the folder
 * `path`.tail, each a file that is named by the position of its first byte. Of them the oldest goes when
 * the others are enough. So there are always the first 7/8 of the bound, less a line, and of the end 1/32 of
 * it at least and 1/8 at most, with the times of the lines: never more than the bound on disk. A part ends behind a line, unless one is
 * longer than 64 KiB or 1/96 of the bound. A stream without its first byte has no beginning, only an end.
 *
 *     struct weir_rolling file;
 *     WEIR_TRY(weir_rolling_open(&file, "job.log", 64 << 20, &err));
 *     status = weir_rolling_write(&file, weir_rolling_end(&file), weir_time_ms(), bytes, len, &n, &err);
 *     weir_rolling_close(&file);
 *
 * Each line has a time: that of the write that its first byte came with. Times lie beside the parts, in the same
 * folder, and go with them. They count within the bound: 8 bytes for each time at which a line began, 16 for the
 * first of a part. A time before that of an earlier line, of a clock that was set back, is taken for that.
 *
 * One process writes; others read at any time, without a lock: a segment is only made when what is before it
 * has got all of its bytes.
 */
#ifndef WEIR_BASE_ROLLING_H
#define WEIR_BASE_ROLLING_H

#include "base/status.h"

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Smallest bound. */
#define WEIR_ROLLING_MIN_BYTES ((int64_t)64 << 10)
/** Largest. */
#define WEIR_ROLLING_MAX_BYTES ((int64_t)128 << 20)

struct weir_rolling {
    char path[PATH_MAX - 32];
    int64_t head_max_bytes, segment_max_bytes;
    int fd;              /* of the last part; -1: it could not be opened */
    int64_t start, size; /* of that */
    bool is_head, ends_a_line;
    int times_fd; /* of that; -1: its lines have none */
    int64_t times_bytes, times_base_ms, time_ms;
};

/**
 * Open for writing behind what is there; made if there is none, with mode 0600.
 * @param max_bytes  From WEIR_ROLLING_MIN_BYTES to WEIR_ROLLING_MAX_BYTES; another is taken for the nearer of them.
 * @return IO, DENIED, or LIMIT of a path that is too long.
 */
weir_status weir_rolling_open(struct weir_rolling *file, const char *path, int64_t max_bytes,
                              struct weir_error *err) WEIR_MUST_CHECK;

/** The position behind the last byte on disk. */
int64_t weir_rolling_end(const struct weir_rolling *file);

/**
 * Write bytes at a position of the end or behind it: what lies between is left out for good.
 * @param time_ms  Since 1970: the time of the lines that begin in them.
 * @param out_n  Set always: so many of them are on disk, fewer than len on a full one.
 * @return IO, also of a full disk: a later call may go on at any position that was not written; INVALID of
 *         a position before the end.
 */
weir_status weir_rolling_write(struct weir_rolling *file, int64_t position, int64_t time_ms,
                               const void *bytes, size_t len, size_t *out_n,
                               struct weir_error *err);

/** Make all of it durable. */
void weir_rolling_sync(const struct weir_rolling *file);
void weir_rolling_close(struct weir_rolling *file);

/** What a read found: n bytes of the position `from`, which is behind the one asked for where bytes are left
 *  out; n 0: there are none from there on. `end` is the position behind the last. */
struct weir_rolling_part {
    int64_t from, end;
    size_t n;
};

/**
 * Read what is there from a position on, at most `size` bytes, of one part of the file: less than `size` is
 * not the end. A file that is not there is an empty one.
 * @return IO.
 */
weir_status weir_rolling_read(const char *path, int64_t position, void *out, size_t size,
                              struct weir_rolling_part *part,
                              struct weir_error *err) WEIR_MUST_CHECK;

/** From this position on, lines begin at this time. */
struct weir_rolling_time {
    int64_t position, time_ms;
};

/**
 * The times of the lines that begin in what was read, in order; before the first of them they are unknown.
 * @param part  Of a read. What has more than `max` times is made shorter: part->n.
 * @return how many there are; 0: they are unknown, as where a machine that went down lost them.
 */
size_t weir_rolling_times(const char *path, struct weir_rolling_part *part,
                          struct weir_rolling_time *out, size_t max);

/**
 * Where the first line begins whose time is this or later: all behind it is as young. The end, if there is none.
 * Looks at the times by halves, not at the lines.
 * @param out_has_times  False: no line has one, and the end is given.
 * @return IO.
 */
weir_status weir_rolling_find_time(const char *path, int64_t time_ms, int64_t *out,
                                   bool *out_has_times, struct weir_error *err) WEIR_MUST_CHECK;

#endif
