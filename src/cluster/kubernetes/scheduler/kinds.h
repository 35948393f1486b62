/**
 * Kinds of objects that only some pods need looked at (kinds.def): a mirror of each begins with the first cycle in which a pod
 * does. A role that does not have the rights keeps those pods waiting, and no others. For the scheduler's own files. Owned by one
 * thread.
 */
#ifndef WEIR_CLUSTER_KUBERNETES_KINDS_H
#define WEIR_CLUSTER_KUBERNETES_KINDS_H

#include "kube/mirror.h"

enum kinds_which {

#define KIND(which, path, name, digest) KINDS_##which,
#include "cluster/kubernetes/scheduler/kinds.def"
#undef KIND
    KINDS_N,
};

struct kinds {
    const struct weir_kube_config *kube; /**< Borrowed. */
    void (*changed)(void *context);      /**< Something has: of a mirror's (mirror.h). */
    void *context;
    struct weir_kube_mirror *mirrors[KINDS_N]; /**< NULL: nobody has needed it yet. */
};

/** What there is of a kind, in a cycle. */
struct kinds_seen {
    const void **digests; /**< By key, each held. */
    size_t n, cap;
    const char *why; /**< It could not be looked at: a sentence. NULL: it could. */
};

/** Look at all of a kind. @param out  In the arena; to be let go (kinds_release). */
void kinds_look(struct kinds *kinds, enum kinds_which which, struct weir_arena *arena,
                struct kinds_seen *out);

void kinds_release(struct kinds_seen *seen);

/** End the mirrors, at once. */
void kinds_stop(struct kinds *kinds);

#endif
