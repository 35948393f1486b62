/**
 * Preparer: versions of what preparations of IONs have made. A pipeline that is FREEZING (ion/ion_step.h)
 * has a folder that its command has written; the freezer reads it on a thread of its own, and when the
 * dataset has the version, the pipeline learns of it.
 *
 * What is to be frozen stands in the pipeline's row, and which freeze that is, is remembered here only:
 * after a restart it begins again, and what was a version already is the same version. A freeze that
 * somebody else has begun is waited for and not counted: it may have looked before the command ended.
 *
 * Bound: freezes of PREPARER_MAX pipelines at once; others wait. Owned by the engine's thread.
 */
#ifndef WEIR_CONTROL_PREPARER_H
#define WEIR_CONTROL_PREPARER_H

#include "control/control.h"
#include "control/freeze.h"

#define PREPARER_MAX 16

struct preparer_freeze {
    char pipeline[136]; /**< "ION:NAME"; "": free. */
    int64_t training;
    char dataset[64];
    uint64_t number; /**< The freeze's; 0: one of somebody else's has to end. */
};

/** Start with {0} and these. */
struct preparer {
    struct weir_store *store;
    struct control_listener listener;
    struct freezer *freezer; /**< Borrowed; NULL: nothing is frozen. */
    const char *state_dir;
    struct preparer_freeze freezes[PREPARER_MAX];
};

/** Begin, and learn how far they are. @return Whether there is something to look at again soon. */
bool preparer_look(struct preparer *preparer, int64_t now_ms);

#endif
