/**
 * Batch predictions: what the names in a job's specification are found to be when it is made. The job's
 * own specification then names the versions, so that a restart predicts the same; what the tasks need
 * of them goes into theirs.
 */
#ifndef WEIR_CONTROL_BATCH_H
#define WEIR_CONTROL_BATCH_H

#include "control/control.h"

struct control_batch {
    json_t *pinned;   /**< weir_launch_job.pinned; the caller's reference. */
    json_t *datasets; /**< {"name": "path"}; the caller's reference. */
    const char *dataset;
    int64_t dataset_version;
    char *parameters; /**< Its run's: JSON. */
};

/**
 * Finds model and dataset, and writes their versions into the specification.
 * @param run  That the tasks report to.
 * @param out  Set also on an error: references that were made are the caller's.
 * @return NOT_FOUND, INVALID: no such model, version, alias or dataset, with what was probably meant.
 *         UNSUPPORTED: the model does not take a picture, or its file was never looked at.
 */
weir_status control_batch_resolve(struct control *control, struct weir_txn *txn, const char *run,
                                  json_t *spec, struct control_batch *out,
                                  struct weir_error *err) WEIR_MUST_CHECK;

/** A dataset and its newest version, by name. `key`: of the specification, for the message. */
weir_status control_dataset_find(struct control *control, struct weir_txn *txn, const char *key,
                                 const char *name, struct weir_dataset *out,
                                 struct weir_dataset_version *out_version,
                                 struct weir_error *err) WEIR_MUST_CHECK;

#endif
