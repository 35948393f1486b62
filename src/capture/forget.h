/**
 * Forgetting a person in snapshots: a snapshot has no picture and no embedding of anybody, but rows that name people, and it is
 * kept for ever. In its rows the name becomes WEIR_FORGOTTEN_NAME, decisions lose the digest of their picture, entries of lists
 * go; every other row and file stays as it is, byte for byte.
 */
#ifndef WEIR_CAPTURE_FORGET_H
#define WEIR_CAPTURE_FORGET_H

#include "capture/snapshot.h"

struct weir_snapshot_forgotten {
    int64_t n_changed;  /**< Rows that were changed or taken out; 0: the file is as it was. */
    int64_t n_rows;     /**< That are in it now. */
    int64_t bytes;      /**< Of the file now. */
    int64_t changed_ms; /**< When rows of it were changed last, by its manifest; 0: never. */
};

/**
 * Write the file of a snapshot again without the person, with the sums made again; the manifest has the time and the number of
 * rows under "forgotten", once for each time. It is renamed over the old one when it is whole, so a kill leaves either, and
 * doing it again changes nothing.
 *
 * @param id  Of the snapshot.
 * @return NOT_FOUND: it has no file; CORRUPT, INVALID, NOSPACE, IO: then the file is as it was.
 * Cost: reads three tables; if something is found, reads and writes all of the file.
 */
weir_status weir_snapshot_forget(const struct weir_capture *capture, const char *id,
                                 const char *person, int64_t now_ms,
                                 struct weir_snapshot_forgotten *out,
                                 struct weir_error *err) WEIR_MUST_CHECK;

#endif
