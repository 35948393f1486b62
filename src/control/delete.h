/** Deleting what people made: datasets, and jobs that are over. Refused while something needs it, which is named. */
#ifndef WEIR_CONTROL_DELETE_H
#define WEIR_CONTROL_DELETE_H

#include "control/control.h"
#include "track/track.h"

/**
 * Delete a dataset's rows: itself and its versions. Its folder, and the blobs that no other record names, are left to
 * the caller and to retention.
 *
 * @param is_forced  Also if versions of models were trained on it: their lineage then ends at its name.
 * @param out        What it was.
 * @return NOT_FOUND; CONFLICT: an ION, a sweep or a job that is not over names it, a version of a model was made from
 *         it, or people were forgotten in it.
 */
weir_status control_dataset_delete(struct control *control, struct weir_txn *txn, const char *name,
                                   bool is_forced, struct weir_dataset *out,
                                   struct weir_error *err) WEIR_MUST_CHECK;

/**
 * May a job be removed with its run?
 * @return NOT_FOUND; CONFLICT: it is not over, an ION, a service or a deployment stands on it, or its run made a
 *         version of a model or a dataset.
 */
weir_status control_job_check_unused(struct control *control, struct weir_txn *txn, const char *id,
                                     struct weir_error *err) WEIR_MUST_CHECK;

#endif
