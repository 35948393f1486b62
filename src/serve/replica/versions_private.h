/** What the list of versions (versions.c) and the loading of one (version_load.c) ask of each other. */
#ifndef WEIR_SERVE_VERSIONS_PRIVATE_H
#define WEIR_SERVE_VERSIONS_PRIVATE_H

#include "serve/replica/versions.h"

/**
 * Load a version, let it compute, and check it. It has one reference and is not in the list. One at a time: the load
 * lock is held.
 * @param config  Of `owner`.
 * @return What versions_load says.
 */
weir_status version_create(const struct versions_config *config, struct versions *owner,
                           const struct version_wanted *wanted, struct version **out,
                           struct weir_error *err) WEIR_MUST_CHECK;

/** Answers what its batcher still has, and frees it. It may be half built. */
void version_destroy(struct version *version);

/** LIMIT if so many bytes more are not allowed, with a sentence of what takes the memory. */
weir_status versions_check_room(struct versions *versions, const struct version_wanted *wanted,
                                size_t needed_bytes, struct weir_error *err) WEIR_MUST_CHECK;

/**
 * The version's GPU has failed: it serves no more, and whoever made the versions is told, the first time. It is not
 * FAILED, which says of the file that it cannot be loaded anywhere: the next process serves it. Any thread.
 */
void versions_take_out_broken(struct version *version, const char *reason);

#endif
