/** Deleting what people made: datasets, and jobs that are over. Refused while something needs it, which is named. */
#ifndef WEIR_CONTROL_DELETE_H
#define WEIR_CONTROL_DELETE_H

#include "control/control.h"
#include "store/identity.h"
#include "track/track.h"

/** The person or program that deletes. What somebody else made goes only by a user who has the right to delete models in its project. */
struct control_deleter {
    const char *actor;
    const struct weir_identity *identity;
    /** A dataset also if versions of models were trained on it: their lineage ends at its name. */
    bool is_forced;
};

/**
 * Delete a dataset's rows: itself and its versions. Its folder, and the blobs that no other record names, are left to
 * the caller and to retention.
 *
 * @param out  What it was.
 * @return NOT_FOUND; DENIED: it is somebody else's; CONFLICT: an ION, a sweep or a job that is not over names it, a version of a model was made from
 *         it, or people were forgotten in it.
 */
weir_status control_dataset_delete(struct control *control, struct weir_txn *txn, const char *name,
                                   const struct control_deleter *by, struct weir_dataset *out,
                                   struct weir_error *err) WEIR_MUST_CHECK;

/**
 * May a job be removed with its run?
 * @return NOT_FOUND; DENIED: it is somebody else's; CONFLICT: it is not over, an ION, a service, a deployment, a sweep
 *         or a job that is not over stands on it, or its run made what others go by: a version of a model or a
 *         dataset, a logged model.
 */
weir_status control_job_check_unused(struct control *control, struct weir_txn *txn, const char *id,
                                     const struct control_deleter *by,
                                     struct weir_error *err) WEIR_MUST_CHECK;

#endif
