/**
 * The people who are enrolled: the classes of the gallery versions that an ION's prediction pipelines know, as
 * their manifests name them.
 *
 * Reads files: call it outside of write transactions, which are one at a time.
 */
#ifndef WEIR_CONTROL_ENROLLED_H
#define WEIR_CONTROL_ENROLLED_H

#include "blob/blob.h"
#include "ion/ion_step.h"

#include <stdbool.h>

struct enrolled_answer {
    bool has_gallery;    /**< Does any pipeline know a gallery yet? */
    bool is_enrolled;    /**< The person is a class of one of them. */
    const char *nearest; /**< The nearest name, which may be meant; in the arena; NULL: none. */
};

/** Is this person in a gallery of the ION? @return IO, CORRUPT: a manifest cannot be read. */
weir_status enrolled_find(struct weir_blobs *blobs, const struct weir_ion_state *ion,
                          const char *person, struct weir_arena *arena, struct enrolled_answer *out,
                          struct weir_error *err) WEIR_MUST_CHECK;

/**
 * Which of the ION's members are in none of its galleries?
 * @param out  Their names, in the order of the members; borrowed from the state. None if no
 *             pipeline knows a gallery yet.
 */
weir_status enrolled_missing(struct weir_blobs *blobs, const struct weir_ion_state *ion,
                             struct weir_arena *arena, const char ***out, size_t *out_n,
                             struct weir_error *err) WEIR_MUST_CHECK;

#endif
