/**
 * Aliases: names for versions of models. A deployment may follow one (deploy/deploy.h): where it moves,
 * the deployment's traffic goes, by its ordinary way of changing versions, in the same transaction. A link of
 * an ION may lead from one (ion/ion_doc.h): the version that it comes to name goes through the link's
 * policies, once.
 */
#ifndef WEIR_CONTROL_ALIAS_H
#define WEIR_CONTROL_ALIAS_H

#include "control/control.h"

#define CONTROL_ALIAS_MAX_BYTES 255

/** 1 to 255 of A-Z a-z 0-9 . _ -, that is not "none" and no version's ("v3", "3"). Pure. */
bool control_alias_is_valid(const char *text);

/**
 * Give a version a name, or take the name away (version 0). A deployment that follows the name and cannot
 * serve the version stays as it is, which an event tells; so does one whose alias is taken away.
 * @return NOT_FOUND: no such model, version or alias; INVALID: not an alias.
 */
weir_status control_alias_set(struct control *control, struct weir_txn *txn, const char *model,
                              const char *alias, int64_t version,
                              struct weir_error *err) WEIR_MUST_CHECK;

#endif
