/**
 * Pulse: what the database has shown of itself since it was opened. It is kept in memory, so that it can be told while the
 * database can be neither read nor written.
 *
 *     weir_store_check_start(store, err);       read all of it in the background, once
 *     weir_store_probe(store, err);             write, if nothing was written lately
 *     weir_store_pulse(store, &pulse);          what has been seen; never touches the database
 *
 * How far the database has come is noted in a small file beside it (PATH-end) too, after each commit, so that one whose last
 * commits are gone, as when its log was removed, is told as damaged with the next start:
 * - It is not told falsely. A commit is on the disk before it is noted, and a cut of power leaves a note that is too low at
 *   most. A file that cannot be read says nothing.
 * - After the server alone has died, each commit that is gone is told.
 * - After a cut of power too, but for those since the note was last brought to the disk: with the first commit that comes a
 *   second or more after that, so those of the last 1 s while commits come, or WEIR_STORE_PROBE_MS where only probes do.
 *   It costs one fdatasync per second; one per commit would double a commit's time.
 * - It is not told when the note is gone as well, or when the database in its place has come farther.
 *
 * A commit that fails is told until one goes through. Damage, and a disk that could not be read, are told until the
 * server is started again: nothing mends them while it runs.
 */
#ifndef WEIR_STORE_PULSE_H
#define WEIR_STORE_PULSE_H

#include "store/store.h"

#define WEIR_STORE_PULSE_TEXT_BYTES 256

/** A probe writes nothing while the last commit is younger. */
#define WEIR_STORE_PROBE_MS 15000

struct weir_store_pulse {
    int64_t
        failing_mono_ms; /**< Since when nothing could be committed; 0: the last commit went through. */
    weir_status failure; /**< NOSPACE, IO, CORRUPT … */
    char failed[WEIR_STORE_PULSE_TEXT_BYTES];
    int64_t damaged_mono_ms; /**< When damage was seen first; 0: none was. */
    char damage[WEIR_STORE_PULSE_TEXT_BYTES];
    int64_t unread_mono_ms; /**< When the disk could not be read first; 0: it always could. */
    char unread[WEIR_STORE_PULSE_TEXT_BYTES];
    bool is_checked; /**< The check in the background has read all of it. */
};

/** Any thread. */
void weir_store_pulse(struct weir_store *store, struct weir_store_pulse *out);

/**
 * Begin the check: SQLite's quick_check, on a thread and a connection of its own, at a low priority and for
 * at most ten minutes. What it finds is damage. It ends when the store is closed. At most once.
 */
weir_status weir_store_check_start(struct weir_store *store,
                                   struct weir_error *err) WEIR_MUST_CHECK;

/** Commit a row, unless one was committed within WEIR_STORE_PROBE_MS. @return As weir_store_write. */
weir_status weir_store_probe(struct weir_store *store, struct weir_error *err) WEIR_MUST_CHECK;

/** Does the error say that the database is damaged, and not what a caller has sent? */
bool weir_store_error_is_damage(const struct weir_error *err);

#endif
