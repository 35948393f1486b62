/**
 * Verify: are the blobs that the records of a state folder name there, with the bytes of their names?
 *
 *     verify_init(&verify, arena);
 *     verify_note(&verify, sha256, bytes, is_right);          each blob that there is: verify_read_blobs does it
 *     verify_compare(&verify, state, err);                    with what the database and the lists of datasets name
 *     verify_mend(&verify, state, from, err);                 if wanted
 *
 * It needs no server and disturbs none. Pictures of decisions that lie in packs are not looked at: each of them bears its
 * identifier, and reading another's is refused.
 */
#ifndef WEIR_SERVER_VERIFY_H
#define WEIR_SERVER_VERIFY_H

#include "base/arena.h"
#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** So many findings are kept; all are counted. */
#define VERIFY_FINDINGS_MAX 1000

enum verify_mended { VERIFY_AS_IT_WAS, VERIFY_MENDED, VERIFY_SET_ASIDE };

/** A blob that is damaged or missing. Text lies in the arena. */
struct verify_finding {
    const char *sha256;
    const char *what; /**< "version 3 of model net"; NULL: no record names it. */
    const char *file; /**< Below the state folder, which may have its bytes too; NULL: none. */
    bool is_missing;
    enum verify_mended mended;
};

struct verify_blob;

struct verify {
    struct weir_arena *arena;
    struct verify_blob *blobs;
    size_t n_blobs, cap;
    bool is_sorted;
    int64_t bytes;
    int64_t n_damaged, n_missing, n_unnamed, n_mended, n_aside;
    struct verify_finding *findings;
    size_t n_findings;
};

void verify_init(struct verify *verify, struct weir_arena *arena);
void verify_fini(struct verify *verify);

/** There is such a blob. */
weir_status verify_note(struct verify *verify, const char *sha256, int64_t bytes, bool is_right,
                        struct weir_error *err) WEIR_MUST_CHECK;

/** Read all of the state folder's. Cost: all their bytes. */
weir_status verify_read_blobs(struct verify *verify, const char *state,
                              struct weir_error *err) WEIR_MUST_CHECK;

/** Find what is damaged or missing of what the database STATE/weir.db names. @return CORRUPT if that is damaged itself. */
weir_status verify_compare(struct verify *verify, const char *state,
                           struct weir_error *err) WEIR_MUST_CHECK;

/**
 * Put good bytes in the place of what was found: of the state folder or backup `from` (NULL: none), or of the files of an
 * uploaded dataset. What is damaged and has no good bytes anywhere is moved to STATE/blobs/damaged.
 */
weir_status verify_mend(struct verify *verify, const char *state, const char *from,
                        struct weir_error *err) WEIR_MUST_CHECK;

/** OK if nothing is damaged or missing (any more); else CORRUPT with a sentence that names the first and says what to do. */
weir_status verify_status(const struct verify *verify, struct weir_error *err);

#endif
