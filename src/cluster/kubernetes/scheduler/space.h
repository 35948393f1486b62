/** Namespaces, for terms that select them by labels. For the scheduler's own files. */
#ifndef WEIR_CLUSTER_KUBERNETES_SPACE_H
#define WEIR_CLUSTER_KUBERNETES_SPACE_H

#include "cluster/kubernetes/scheduler/place.h"

/** A digest of a mirror's. */
struct space {
    struct place_held held;
    const char *name;
    struct select_labels labels;
};

/** All of them. Borrowed. */
struct spaces {
    const struct space *const *rows; /**< By name. */
    size_t n;
    bool are_seen; /**< False: nobody needs them, or they may not be looked at. */
};

/** Made with one holder. NULL: it is none. */
struct space *space_read(const json_t *space);

/** Is it there, with labels that the selector matches? */
bool spaces_match(const struct spaces *spaces, const struct select_all *selector, const char *name);

#endif
