/**
 * Uses: what names a thing that somebody wants to delete. What would fail or fall silent without it refuses
 * that it goes, and says what it is and what to do first. Each function runs in the caller's transaction; an
 * ION that cannot be read has its alert, and hinders nothing. All uses count, in every project: a deployment of
 * another project must not lose its model. What is not the caller's to see is not named.
 *
 * Versions of models have rules of their own (control/model_delete.h).
 */
#ifndef WEIR_CONTROL_USES_H
#define WEIR_CONTROL_USES_H

#include "control/control.h"

/** "ION door", or, of a project that the transaction does not see, "an ION of another project". In the arena.
 *  @param noun  weir_ion_resource or weir_deployment_resource. */
const char *control_user_of(struct control *control, struct weir_txn *txn,
                            const struct weir_resource *noun, const char *name);

/** Looks at the document of an active ION. Not OK: that is the end, and what is returned. */
typedef weir_status (*control_doc_fn)(void *context, const char *ion,
                                      const struct weir_ion_doc *doc, struct weir_error *err);

/** Call `fn` with the document of each active ION of any project, one after another. */
weir_status control_each_doc(struct control *control, struct weir_txn *txn, control_doc_fn fn,
                             void *context, struct weir_error *err) WEIR_MUST_CHECK;

/** @return CONFLICT: a link of an active ION leads to the deployment. */
weir_status control_check_deployment_unused(struct control *control, struct weir_txn *txn,
                                            const char *deployment,
                                            struct weir_error *err) WEIR_MUST_CHECK;

/** @return CONFLICT: a deployment follows the alias, or a link of an active ION begins at it. */
weir_status control_check_alias_unused(struct control *control, struct weir_txn *txn,
                                       const char *model, const char *alias,
                                       struct weir_error *err) WEIR_MUST_CHECK;

/** The name of a secret that a document names. */
typedef void (*control_secret_fn)(void *context, const char *name);

/** Call `fn` with what the lists "secrets" of a document name, at any depth: NAME, or VARIABLE=NAME. */
void control_each_secret(const json_t *document, control_secret_fn fn, void *context);

/** @return CONFLICT: an active ION, a sweep or a job that is not over names the secret. */
weir_status control_check_secret_unused(struct control *control, struct weir_txn *txn,
                                        const char *project, const char *secret,
                                        struct weir_error *err) WEIR_MUST_CHECK;

#endif
