/**
 * Models without their versions: made before there is one, and renamed. Each is told in an event.
 */
#ifndef WEIR_CONTROL_MODEL_CHANGE_H
#define WEIR_CONTROL_MODEL_CHANGE_H

#include "control/control.h"

/** Make a model that has no version yet (track/registry.h). @return As weir_model_create. */
weir_status control_model_create(struct control *control, struct weir_txn *txn,
                                 const struct weir_model *model,
                                 struct weir_error *err) WEIR_MUST_CHECK;

/**
 * Give a model another name. What names it and is not its own refuses that: a deployment, the document or
 * the candidates of an ION. @return NOT_FOUND, INVALID, EXISTS; CONFLICT: it is used, and by what.
 */
weir_status control_model_rename(struct control *control, struct weir_txn *txn, const char *name,
                                 const char *new_name, struct weir_error *err) WEIR_MUST_CHECK;

#endif
