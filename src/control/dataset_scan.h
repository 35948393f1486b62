/**
 * Scan: the files of a dataset's folder, by name and SHA-256, as a manifest.
 *
 * The folder is opened without passing through a link, nothing in it is followed, and only regular
 * files are read, without waiting for them (O_NONBLOCK). The scanning thread may stop between two reads: by
 * `is_stopping`, or at the deadline. So a link in the folder cannot bring in a file from elsewhere,
 * and a file that never answers holds up the scanning thread at most.
 */
#ifndef WEIR_CONTROL_DATASET_SCAN_H
#define WEIR_CONTROL_DATASET_SCAN_H

#include "base/buf.h"
#include "base/status.h"
#include "blob/blob.h"

#include <sodium.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define SCAN_DAMAGED_SHOWN 10
#define SCAN_NAME_BYTES    320

/** How far it is; other threads may look. */
struct dataset_scan_progress {
    atomic_llong n_files, n_bytes;
    atomic_llong n_damaged, n_other; /**< Pictures that seem damaged; files that are none. */
};

struct dataset_scan {
    const char *dataset;      /**< Name, for messages. */
    const char *root;         /**< Absolute path without links (dataset_scan_resolve). */
    bool has_pictures;        /**< Look whether each file seems to be a whole picture. */
    struct weir_blobs *blobs; /**< NULL: files are hashed, not copied. */
    const atomic_bool *is_stopping;
    int64_t deadline_mono_ms;
    struct dataset_scan_progress *progress;

    struct weir_buf files; /**< Out: manifest entries, JSON, with commas between. */
    int64_t n_files, n_classes, n_bytes;
    /** Lines of .csv, .tsv and .jsonl files; of the first two without the header. */
    int64_t n_rows;
    char damaged[SCAN_DAMAGED_SHOWN][SCAN_NAME_BYTES]; /**< Out: "ada/1.png is cut off". */
    size_t n_damaged_shown;
    crypto_hash_sha256_state digest; /**< Over "<sha256>  <name>\n" of each file, as sha256sum. */
};

/**
 * May this folder be a dataset? Its real path, free it with free().
 * @param state_dir  The server's own folder: neither it nor what is in it or around it.
 * @return INVALID with a sentence: not absolute, not there, no folder, or of the system.
 */
weir_status dataset_scan_resolve(const char *path, const char *state_dir, char **out_real,
                                 struct weir_error *err) WEIR_MUST_CHECK;

/** Open a folder for reading; no part of its path may be a link. */
weir_status dataset_scan_open_folder(int at_fd, const char *path, int *out_fd,
                                     struct weir_error *err) WEIR_MUST_CHECK;

/**
 * Read all files in order of names; sub-folders are classes at the first level. scan->files is to
 * be given back with dataset_scan_fini in any case.
 * @return INVALID for a link, or a name that is not UTF-8; LIMIT; TIMEOUT; CANCELLED; IO.
 */
weir_status dataset_scan_run(struct dataset_scan *scan, struct weir_error *err) WEIR_MUST_CHECK;

/** The digest of what was read. */
void dataset_scan_digest(struct dataset_scan *scan, char out[WEIR_SHA256_TEXT_BYTES]);

void dataset_scan_fini(struct dataset_scan *scan);

#endif
