/** What the files of forgetting share: the work on one record, and its parts. */
#ifndef WEIR_CONTROL_FORGET_PRIVATE_H
#define WEIR_CONTROL_FORGET_PRIVATE_H

#include "control/forget.h"

#include "base/json.h"
#include "base/sha256.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct forget_version {
    char *dataset, *blob;
    int64_t number;
    int64_t n_files, bytes; /**< The person's. */
};

struct forget_folder {
    char *dataset, *path;
    bool is_uploaded;
};

struct forget_photo {
    char digest[WEIR_SHA256_TEXT_BYTES];
    int64_t bytes;
};

/** One record being done. All in the arena. */
struct forget_work {
    const struct forget *forget;
    const struct weir_forgotten *record;
    struct weir_arena *arena;
    struct forget_folder *folders;
    size_t n_folders;
    struct forget_version *versions;
    size_t n_versions;
    struct forget_photo *photos; /**< The person's in versions; sorted by digest, each once. */
    size_t n_photos_known, cap_photos;
    int64_t *sizes; /**< Their sizes; sorted, each once. */
    size_t n_sizes;
    int64_t n_photos, n_blobs, n_pictures, n_embeddings, n_cached, n_renamed, n_snapshots;
    json_t *outside; /**< Folders that are not the server's. */
    struct weir_forgotten *out;
};

/** Is it the digest of a photo of the person? */
bool forget_is_photo(const struct forget_work *work, const char *digest);

/** Has a photo of the person that size? */
bool forget_has_size(const struct forget_work *work, int64_t bytes);

/** About to change something: where a test may end the process. */
void forget_step(const struct forget_work *work, const char *what);

/** Copies of photos and files of embeddings, in the folders that tasks write into. */
weir_status forget_copies(struct forget_work *work, struct weir_error *err) WEIR_MUST_CHECK;

/** Pictures of decisions, if they or their feedback say the person. Before forget_names. */
weir_status forget_pictures(struct forget_work *work, struct weir_error *err) WEIR_MUST_CHECK;

/** The name in rows becomes WEIR_FORGOTTEN_NAME, so that what is counted stays; or the row goes. */
weir_status forget_names(struct forget_work *work, struct weir_error *err) WEIR_MUST_CHECK;

/** How a column of a noun forgets names, a few rows at a time in the order of their keys. */
struct forget_names_sql {
    bool is_renamed; /**< Else the row goes. */
    const char *
        change; /**< Of the :n rows behind the key :after those that say :person, in :project; '': in all. */
    const char *last; /**< The last key of these rows; NULL: there is none. */
};

/** Of the i-th column of all nouns; in the arena. false: there are no more. */
bool forget_names_at(size_t i, struct weir_arena *arena, struct forget_names_sql *out);

/** The person's rows in snapshots: capture/forget.h. */
weir_status forget_snapshots(struct forget_work *work, struct weir_error *err) WEIR_MUST_CHECK;

#endif
