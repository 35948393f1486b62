/**
 * Uses: who names a thing that somebody wants to delete. What would fail or fall silent without it refuses
 * that it goes, and says who it is and what to do first. Each function runs in the caller's transaction; an
 * ION that cannot be read has its alert, and hinders nothing.
 *
 * Versions of models have rules of their own (control/model_delete.h).
 */
#ifndef WEIR_CONTROL_USES_H
#define WEIR_CONTROL_USES_H

#include "control/control.h"

/** Called for an active ION's document. Not OK: that is the end, and what is returned. */
typedef weir_status (*control_doc_fn)(void *context, const struct weir_ion *ion,
                                      const struct weir_ion_doc *doc, struct weir_error *err);

/** Go through the documents of all active IONs. Each is read once, and alone. */
weir_status control_each_doc(struct weir_txn *txn, struct weir_arena *arena, control_doc_fn fn,
                             void *context, struct weir_error *err) WEIR_MUST_CHECK;

/** @return CONFLICT: a link of an active ION leads to the deployment. */
weir_status control_check_deployment_unused(struct control *control, struct weir_txn *txn,
                                            const char *deployment,
                                            struct weir_error *err) WEIR_MUST_CHECK;

/** @return CONFLICT: a deployment follows the alias, or a link of an active ION begins at it. */
weir_status control_check_alias_unused(struct control *control, struct weir_txn *txn,
                                       const char *model, const char *alias,
                                       struct weir_error *err) WEIR_MUST_CHECK;

/** @return CONFLICT: an active ION, a sweep or a job that is not over names the secret. */
weir_status control_check_secret_unused(struct control *control, struct weir_txn *txn,
                                        const char *project, const char *secret,
                                        struct weir_error *err) WEIR_MUST_CHECK;

#endif
