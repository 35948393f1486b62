/**
 * Damage: which blobs were wanted and are not there with the bytes of their names. Kept in memory, for the server to tell:
 * each until it is right again, was set aside or removed, and one that is missing until nobody has asked for it for a while.
 */
#ifndef WEIR_BLOB_DAMAGE_H
#define WEIR_BLOB_DAMAGE_H

#include "blob/blob.h"

#define WEIR_BLOBS_DAMAGE_MAX 64     /**< More are not told apart. */
#define WEIR_BLOB_MISSING_MS  600000 /**< So long after it was wanted last a missing one is told. */

struct weir_blobs_damage {
    size_t n;                            /**< Damaged or missing. */
    bool is_missing;                     /**< The one of them that is named: */
    char sha256[WEIR_SHA256_TEXT_BYTES]; /**< "" if there is none. */
};

/** What is still so. Any thread. Cost: a look at each one's file, which is read again if it has changed. */
void weir_blobs_damage(struct weir_blobs *blobs, struct weir_blobs_damage *out);

/** Somebody wanted a blob that a record names, and it was not there. Damaged ones are noted as they are met. */
void weir_blob_note_missing(struct weir_blobs *blobs, const char *sha256);

#endif
