/**
 * Deleting versions of models. The row of a version stays, with when and by whom it was deleted: runs,
 * candidates and decisions name it. Its file, and its golden inputs, are blobs that nothing names any more,
 * and go with the sweep; numbers are not given twice. What uses a version refuses that it goes: an alias, a
 * deployment that has it loaded, an ION where it serves, waits, or is where a way back or the default leads.
 */
#ifndef WEIR_CONTROL_MODEL_DELETE_H
#define WEIR_CONTROL_MODEL_DELETE_H

#include "control/control.h"

/**
 * Delete a version, in a write transaction.
 * @return NOT_FOUND: there is none, or it was deleted; CONFLICT: it is used, and by what.
 */
weir_status control_model_version_delete(struct control *control, struct weir_txn *txn,
                                         const char *model, int64_t version,
                                         struct weir_error *err) WEIR_MUST_CHECK;

/** Delete a model with all its versions, or nothing. A later push of its name makes it again. As above. */
weir_status control_model_delete(struct control *control, struct weir_txn *txn, const char *model,
                                 struct weir_error *err) WEIR_MUST_CHECK;

#endif
