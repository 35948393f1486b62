/** Rolling file: what its parts are called, and which there are. Of rolling.c and rolling_times.c alone. */
#ifndef WEIR_BASE_ROLLING_PRIVATE_H
#define WEIR_BASE_ROLLING_PRIVATE_H

#include "base/rolling.h"

#define ROLLING_SEGMENTS_MAX 16

/** A path of a part, of its times, or of the folder. */
struct rolling_place {
    char path[PATH_MAX];
};

const char *rolling_times_path(struct rolling_place *place, const char *path, int64_t start);

/** parts[0] is the beginning, the others are in order. */
struct rolling_parts {
    struct {
        int64_t start, size;
    } parts[ROLLING_SEGMENTS_MAX + 1];

    size_t n;
};

void rolling_look(const char *path, struct rolling_parts *out);

/** Make the folder of what comes behind the beginning, if there is none. False: errno. */
bool rolling_make_folder(const char *path);

/* ---- times, at their writer: rolling_times.c ------------------------------------------------------------------ */

#define ROLLING_TIME_BYTES 16 /**< That one more takes at most. */

/** Open those of the part that is open, which ends at file->size. Without them its lines have none. */
void rolling_times_open(struct weir_rolling *file);
void rolling_times_close(struct weir_rolling *file);

/** The last time that the part beginning at `start` has; INT64_MIN: it has none. */
int64_t rolling_times_last(const char *path, int64_t start);

/** Bytes are about to be written behind the last: note when, if a line begins in them at a time of its own. */
void rolling_times_note(struct weir_rolling *file, int64_t time_ms, const char *bytes, size_t len);

#endif
