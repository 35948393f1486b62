/**
 * Backup and restore of a state folder.
 *
 * A backup is a folder:
 *
 *     backup.json        {"format","version","state","time","files","bytes","manifest"}
 *     manifest.sha256    a line for each file, as sha256sum prints and checks it
 *     state/…            the files
 *
 * It can be made while the server runs, from another process. The order makes it whole: blobs and
 * everything else first, then the database as it is at one moment, then the blobs that came
 * meanwhile. So every blob that the database names is there, and a decision is in the database, in
 * the outbox of its replica, or in both. What is only of use to running processes stays behind:
 * locks, sockets, uploads in progress, rendezvous folders, folders of tasks.
 *
 * Both work in FOLDER.partial and rename it when it is whole and on disk: there is a whole result,
 * or none. What a killed one left is removed by the next. Memory does not grow with the state.
 */
#ifndef WEIR_SERVER_BACKUP_H
#define WEIR_SERVER_BACKUP_H

#include "base/arena.h"
#include "base/status.h"
#include "server/verify.h"

#include <stdint.h>

struct weir_backup_report {
    int64_t n_files, n_bytes;
    char *state; /**< The folder that was backed up; in the arena. */
    /** Blobs that are damaged or missing: they were so in what was copied. */
    struct verify verify;
};

/**
 * Copy the state folder `state` to the new folder `target`. Files get mode 0600 (read-only ones
 * 0400), folders 0700; links are left out. Blobs are compared with their names, and with what the database names: the backup is whole but
 * for those that out->verify says are damaged or missing.
 * @return EXISTS if there is a `target`, CONFLICT if another one is at work there, INVALID if
 *         `state` is none or holds `target`, CORRUPT if the database is damaged; NOSPACE, IO.
 */
weir_status weir_backup_make(const char *state, const char *target, struct weir_arena *arena,
                             struct weir_backup_report *out,
                             struct weir_error *err) WEIR_MUST_CHECK;

/**
 * Make the state folder `state`, which must not exist or be empty, from the backup `from`. Every
 * byte is compared with the manifest, and blobs as when a backup is made (out->verify).
 * @return EXISTS if `state` is not empty; INVALID if `from` is no backup; UNSUPPORTED if a newer
 *         Weir has made it; CORRUPT naming the file that differs or is missing; NOSPACE, IO.
 */
weir_status weir_backup_restore(const char *from, const char *state, struct weir_arena *arena,
                                struct weir_backup_report *out,
                                struct weir_error *err) WEIR_MUST_CHECK;

#endif
