/**
 * Blobs: immutable bytes named by their SHA-256, in a folder.
 *
 *     DIR/ab/ab12…ef     one file per blob, read-only
 *     DIR/tmp/           writes in progress; emptied when the store is opened
 *
 * A blob is there completely or not at all: bytes go to a temporary file, are hashed on the way,
 * synced, and renamed to their name. Putting the same bytes again changes nothing but the blob's time; bytes that a disk
 * has damaged are replaced by those that are put. A caller who knows the hash says so, and other bytes are refused.
 *
 * A blob that no record names is swept (weir_blobs_sweep) once its time is long past. The time is
 * that of its file; storing it and asking whether it exists set it to now, so that a caller who
 * does either and then writes a record that names it has that long to do so.
 * All functions are safe from any thread; a writer belongs to one.
 */
#ifndef WEIR_BLOB_BLOB_H
#define WEIR_BLOB_BLOB_H

#include "base/arena.h"
#include "base/file.h"
#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct weir_blobs;       /**< A folder of blobs. */
struct weir_blob_writer; /**< One blob being written. */

/** Open the folder; made if missing. Only one process may have it open: left-over writes are
 * removed. */
weir_status weir_blobs_open(const char *dir, struct weir_blobs **out,
                            struct weir_error *err) WEIR_MUST_CHECK;
void weir_blobs_close(struct weir_blobs *blobs);

/** Is `text` 64 lower-case hexadecimal digits? */
bool weir_blob_name_is_valid(const char *text);

/**
 * Store bytes in memory.
 *
 * @param expected  The hash the bytes must have, or NULL.
 * @param out_sha256  The blob's name.
 * @return CORRUPT if the bytes are not the expected ones; INVALID if `expected` is no hash;
 * NOSPACE, IO.
 */
weir_status weir_blob_put(struct weir_blobs *blobs, const void *data, size_t len,
                          const char *expected, char out_sha256[WEIR_SHA256_TEXT_BYTES],
                          struct weir_error *err) WEIR_MUST_CHECK;

/**
 * Make a file the blob: it is synced and renamed, not copied, and so must lie on the blobs' file system.
 *
 * @param sha256    Of its bytes, by whoever wrote them; nothing writes to it any more.
 * @param expected  The hash that was asked for.
 * @return CORRUPT if the two differ; INVALID if `expected` is no hash; NOSPACE, IO. After an error
 *         the file is where it was; also if the blob is there already.
 */
weir_status weir_blob_take_file(struct weir_blobs *blobs, const char *path, const char *sha256,
                                const char *expected, struct weir_error *err) WEIR_MUST_CHECK;

/** Store a stream: open, write any number of times, then finish or abort (both free the writer).
 *  More than max_bytes is LIMIT. */
weir_status weir_blob_writer_open(struct weir_blobs *blobs, uint64_t max_bytes,
                                  struct weir_blob_writer **out,
                                  struct weir_error *err) WEIR_MUST_CHECK;
weir_status weir_blob_writer_write(struct weir_blob_writer *writer, const void *data, size_t len,
                                   struct weir_error *err) WEIR_MUST_CHECK;
weir_status weir_blob_writer_finish(struct weir_blob_writer *writer, const char *expected,
                                    char out_sha256[WEIR_SHA256_TEXT_BYTES], uint64_t *out_bytes,
                                    struct weir_error *err) WEIR_MUST_CHECK;
void weir_blob_writer_abort(struct weir_blob_writer *writer);

/**
 * Remove a blob, whatever names it: what must not be kept. It is gone from the disk when this returns, so
 * that no loss of power brings it back. One that is gone already is OK. @return INVALID, IO.
 */
weir_status weir_blob_remove(struct weir_blobs *blobs, const char *sha256,
                             struct weir_error *err) WEIR_MUST_CHECK;

/** Is it there, and whole? If it is there, its time is now. Cost: as weir_blob_path. */
bool weir_blob_exists(struct weir_blobs *blobs, const char *sha256);

/**
 * The path of a blob's file, in the arena, and its size (may be NULL). Its bytes have been compared with its name: since the
 * folder was opened, or the file was last written, whichever was later.
 * @return NOT_FOUND, INVALID; CORRUPT if it is damaged (weir_blob_error_is_damage).
 * Cost: all of it is read the first time, and when its place among 4096 was taken by another.
 */
weir_status weir_blob_path(struct weir_blobs *blobs, const char *sha256, struct weir_arena *arena,
                           char **out_path, uint64_t *out_bytes,
                           struct weir_error *err) WEIR_MUST_CHECK;

/** Read a blob into the arena and verify it. @return NOT_FOUND, LIMIT, CORRUPT. */
weir_status weir_blob_read(struct weir_blobs *blobs, const char *sha256, size_t max_bytes,
                           struct weir_arena *arena, char **out_data, size_t *out_len,
                           struct weir_error *err) WEIR_MUST_CHECK;

/** Does the error say that a blob of the store is damaged, and not what a caller has sent? */
bool weir_blob_error_is_damage(const struct weir_error *err);

/** The bytes of a SHA-256. */
#define WEIR_BLOB_HASH_BYTES 32

/** Does something name this blob? Called under no lock. */
typedef bool (*weir_blob_is_named_fn)(void *context,
                                      const unsigned char hash[WEIR_BLOB_HASH_BYTES]);

struct weir_blobs_count {
    int64_t n, bytes;             /**< All, before the sweep; bytes on the disk. */
    int64_t n_named;              /**< Of them, those that something names. */
    int64_t n_swept, bytes_swept; /**< That went, or would go. */
    int64_t oldest_ms;            /**< Time of the oldest that nothing names; 0: none. */
};

/**
 * Remove the blobs that nothing names and whose time is before before_ms; or only count them
 * (is_dry). A blob that somebody stores or asks for meanwhile stays: its time is looked at again
 * when it goes. Files that are no blobs are left alone.
 */
weir_status weir_blobs_sweep(struct weir_blobs *blobs, weir_blob_is_named_fn is_named,
                             void *context, int64_t before_ms, bool is_dry,
                             struct weir_blobs_count *out, struct weir_error *err) WEIR_MUST_CHECK;

/** Read a name as bytes: 64 lower-case hexadecimal digits at `text`, whatever follows. */
bool weir_blob_hash_read(const char *text, unsigned char out[WEIR_BLOB_HASH_BYTES]);

#endif
