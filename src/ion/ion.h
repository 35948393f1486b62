/**
 * IONs: records, and loading and saving what the engine (ion/ion_step.h) works on, inside a
 * transaction:
 *
 *     weir_ion_load(txn, "building-security", arena, &state, err);
 *     weir_ion_step(&state, &event, now_ms, arena, &actions, err);
 *     weir_ion_save(txn, &state, &actions, now_ms, err);
 *
 * For the first APPLIED the ION is not there yet: start with weir_ion_state_new.
 */
#ifndef WEIR_ION_ION_H
#define WEIR_ION_ION_H

#include "base/arena.h"
#include "base/record.h"
#include "ion/ion_step.h"
#include "store/store.h"

/** Where secrets lie in an ION's document, and in what a replica must serve (base/secret.h). */
#define WEIR_ION_SECRETS                                                                           \
    "pipelines.*.source.token pipelines.*.source.password pipelines.*.source.cameras.*.password "  \
    "pipelines.*.sinks.*.token pipelines.*.sinks.*.password pipelines.*.sinks.*.secret "           \
    "pipelines.*.doors.*.by.token pipelines.*.doors.*.by.password pipelines.*.doors.*.by.secret "  \
    "pipelines.*.parameters.env.*"
#define WEIR_DEPLOYMENT_SECRETS                                                                    \
    "source.token source.password source.cameras.*.password sinks.*.token sinks.*.password "       \
    "sinks.*.secret"

extern const struct weir_resource weir_ion_resource;
extern const struct weir_resource weir_ion_pipeline_resource;
extern const struct weir_resource weir_ion_candidate_resource;
extern const struct weir_resource weir_policy_decision_resource;
extern const struct weir_resource weir_ion_member_resource;

/** State of an ION that does not exist yet. */
void weir_ion_state_new(const char *name, struct weir_arena *arena, struct weir_ion_state *out);

/** Load an ION (deleted ones too). @return NOT_FOUND. Cost: all its candidates. */
weir_status weir_ion_load(struct weir_txn *txn, const char *name, struct weir_arena *arena,
                          struct weir_ion_state *out, struct weir_error *err) WEIR_MUST_CHECK;

/** Its row and its document alone. @return NOT_FOUND; CORRUPT: the document cannot be read. */
weir_status weir_ion_load_doc(struct weir_txn *txn, const char *name, struct weir_arena *arena,
                              struct weir_ion *out_ion, struct weir_ion_doc *out,
                              struct weir_error *err) WEIR_MUST_CHECK;

/**
 * Write state and actions: ION, pipelines and candidates; policy decisions; events and alerts; and
 * the START, STOP and SHIFT actions as outbox entries of kind "start_training", "stop_training",
 * "start_prediction", "stop_prediction", "start_evaluation", "stop_evaluation" or "shift_deployment" with payload
 * {"ion","pipeline","training","job","cause"}, and of a link that is gone
 * {"deployment","model","serving","trial"}. The deployment of a pipeline needs no action: it is in
 * its row.
 */
weir_status weir_ion_save(struct weir_txn *txn, const struct weir_ion_state *state,
                          const struct weir_ion_actions *actions, int64_t now_ms,
                          struct weir_error *err) WEIR_MUST_CHECK;

/** Put a person on a list ("allow", "deny") or, with NULL, off it; counts list_revision up if that
 *  changed something. Follow with WEIR_ION_EVENT_LISTS after loading the state. */
weir_status weir_ion_member_set(struct weir_txn *txn, const char *ion, const char *person,
                                const char *list, const char *actor, int64_t now_ms,
                                bool *out_changed, struct weir_error *err) WEIR_MUST_CHECK;

/** Mark an ION whose state cannot be loaded as DELETED. @return NOT_FOUND. */
weir_status weir_ion_abandon(struct weir_txn *txn, const char *name, int64_t now_ms,
                             struct weir_error *err) WEIR_MUST_CHECK;

/** Is an alert's subject ("ion/NAME", "ion/NAME/…") an ION that is a sandbox? One that is not there is
 *  none. */
weir_status weir_ion_is_sandbox(struct weir_txn *txn, const char *subject, bool *out,
                                struct weir_error *err) WEIR_MUST_CHECK;

/** Names of the IONs that are not deleted, in order. */
weir_status weir_ion_list_active(struct weir_txn *txn, struct weir_arena *arena, char ***out_names,
                                 size_t *out_n, struct weir_error *err) WEIR_MUST_CHECK;

#endif
