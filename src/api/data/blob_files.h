/**
 * Blob files: which files a manifest names, of a dataset's version or of a folder of code.
 *
 * Whether somebody may have a file's bytes is asked for each of them, and manifests are long: what was
 * read of one is kept, sorted, 8 bytes for each file, WEIR_BLOB_FILES_MAX_BYTES together, the least used
 * go first. A longer one is read each time. Any thread.
 */
#ifndef WEIR_API_BLOB_FILES_H
#define WEIR_API_BLOB_FILES_H

#include "blob/blob.h"

#define WEIR_BLOB_FILES_MAX_BYTES ((size_t)64 << 20)

struct blob_files;

/** @param max_bytes  WEIR_BLOB_FILES_MAX_BYTES; less in tests. */
struct blob_files *blob_files_create(struct weir_blobs *blobs, size_t max_bytes);
void blob_files_destroy(struct blob_files *files);

/**
 * Does the manifest name this file: do 64 hexadecimal digits of its text begin with the file's first 16?
 * Nobody makes another file of those in less than 2^64 tries. A manifest that is not there names none.
 * @return IO, NOMEM.
 */
weir_status blob_files_have(struct blob_files *files, const char *manifest, const char *sha256,
                            bool *out, struct weir_error *err) WEIR_MUST_CHECK;

#endif
