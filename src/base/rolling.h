/**
 * Rolling file: a stream of bytes without an end, kept within a bound: its beginning, and what came last.
 *
 * Bytes go by their position in the whole stream, from 0 on, whatever of it is still there. The beginning
 * lies in the file `path`, which is only ever appended to; what comes after that in segments, in the folder
 * `path`.tail, each a file that is named by the position of its first byte. Of them the oldest goes when
 * the others are enough. So there are always the first 7/8 of the bound, less a line, and of the end 1/32 of
 * it at least and 1/8 at most: never more than the bound on disk. A part ends behind a line, unless one is
 * longer than 64 KiB or 1/96 of the bound.
 *
 *     struct weir_rolling file;
 *     WEIR_TRY(weir_rolling_open(&file, "job.log", 64 << 20, &err));
 *     status = weir_rolling_write(&file, weir_rolling_end(&file), bytes, len, &n, &err);
 *     weir_rolling_close(&file);
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

struct weir_rolling {
    char path[PATH_MAX - 32];
    int64_t head_max_bytes, segment_max_bytes;
    int fd;              /* of the last part; -1: it could not be opened */
    int64_t start, size; /* of that */
    bool is_head, ends_a_line;
};

/**
 * Open for writing behind what is there; made if there is none, with mode 0600.
 * @param max_bytes  At least WEIR_ROLLING_MIN_BYTES; a smaller one is taken for that.
 * @return IO, DENIED, or LIMIT of a path that is too long.
 */
weir_status weir_rolling_open(struct weir_rolling *file, const char *path, int64_t max_bytes,
                              struct weir_error *err) WEIR_MUST_CHECK;

/** The position behind the last byte on disk. */
int64_t weir_rolling_end(const struct weir_rolling *file);

/**
 * Write bytes at a position of the end or behind it: what lies between is left out for good.
 * @param out_n  Set always: so many of them are on disk, fewer than len on a full one.
 * @return IO, also of a full disk: a later call may go on at any position that was not written; INVALID of
 *         a position before the end.
 */
weir_status weir_rolling_write(struct weir_rolling *file, int64_t position, const void *bytes,
                               size_t len, size_t *out_n, struct weir_error *err);

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

#endif
