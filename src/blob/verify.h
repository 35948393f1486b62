/**
 * Verifying blobs in a folder, from any process, also beside the server that has it open: nothing is locked, and a
 * blob is replaced whole.
 */
#ifndef WEIR_BLOB_VERIFY_H
#define WEIR_BLOB_VERIFY_H

#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

/** A blob was read: are its bytes those of its name? Anything but OK ends the walk. */
typedef weir_status (*weir_blob_verified_fn)(void *context, const char *sha256, int64_t bytes,
                                             bool is_right, struct weir_error *err);

/** Read every blob of the folder. What is no blob is left alone. Cost: all bytes are read. */
weir_status weir_blobs_verify(const char *dir, weir_blob_verified_fn fn, void *context,
                              struct weir_error *err) WEIR_MUST_CHECK;

/** Put the bytes of the file `from` in the place of the blob, durably but for the folder's entry.
 *  @return CORRUPT if they are not the blob's; NOT_FOUND, NOSPACE, IO. The blob is then as it was. */
weir_status weir_blob_mend(const char *dir, const char *sha256, const char *from,
                           struct weir_error *err) WEIR_MUST_CHECK;

/** Move a blob to DIR/damaged, so that nobody gets it, and it can be stored again. One that is gone is OK. */
weir_status weir_blob_set_aside(const char *dir, const char *sha256,
                                struct weir_error *err) WEIR_MUST_CHECK;

#endif
