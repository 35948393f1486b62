/**
 * Deployments, carried out: what people ask for becomes an event, the pure step (deploy/step.h) says
 * what follows, and replicas become jobs of the kind "serve". Each function runs in the caller's write
 * transaction.
 */
#ifndef WEIR_CONTROL_DEPLOY_H
#define WEIR_CONTROL_DEPLOY_H

#include "base/options.h"
#include "control/control.h"
#include "deploy/step.h"

/** What a person writes to make or change a deployment; the table is its form in JSON. What is left
 *  out stays, or has its default when the deployment is made. */
#define CONTROL_DEPLOY_N_OPTIONS 13
extern const struct weir_option control_deploy_options[CONTROL_DEPLOY_N_OPTIONS];

/**
 * Make or change a deployment.
 * @param body  By control_deploy_options.
 * @param out   The deployment after it.
 * @return NOT_FOUND (no such model, version or alias: with what was probably meant), INVALID, LIMIT,
 *         CONFLICT (it serves another model), EXISTS (the name is taken where the caller does not see).
 */
weir_status control_deploy_put(struct control *control, struct weir_txn *txn, const char *name,
                               const json_t *body, struct weir_deploy_state *out,
                               struct weir_error *err) WEIR_MUST_CHECK;

weir_status control_deploy_delete(struct control *control, struct weir_txn *txn, const char *name,
                                  struct weir_error *err) WEIR_MUST_CHECK;

/** Apply an event; nothing is written if it changes nothing. */
weir_status control_deploy_event(struct control *control, struct weir_txn *txn, const char *name,
                                 const struct weir_deploy_event *event,
                                 struct weir_error *err) WEIR_MUST_CHECK;

/** The same to a deployment that is loaded. */
weir_status control_deploy_apply(struct control *control, struct weir_txn *txn,
                                 struct weir_deploy_state *state,
                                 const struct weir_deploy_event *event,
                                 struct weir_error *err) WEIR_MUST_CHECK;

/** A replica reports: {url, revision, versions, n_running, stats}. */
weir_status control_deploy_report(struct control *control, struct weir_txn *txn, const char *name,
                                  const struct weir_deployment_replica *report,
                                  struct weir_error *err) WEIR_MUST_CHECK;

/** A service's task was told something: if its process is gone and it was a replica's, the deployment
 *  learns of it. `note`: how it ended; NULL: it did not, or was told to. */
weir_status control_deploy_task_changed(struct control *control, struct weir_txn *txn,
                                        const struct weir_job_state *state, const char *note,
                                        struct weir_error *err) WEIR_MUST_CHECK;

/** A job is over: if it was a replica's, its deployment learns of it. *out_is_replica says so. */
weir_status control_deploy_job_ended(struct control *control, struct weir_txn *txn,
                                     const struct weir_job *job, bool *out_is_replica,
                                     struct weir_error *err) WEIR_MUST_CHECK;

/** Carry out "start_replica" or "stop_replica": {deployment, replica, job}. */
weir_status control_deploy_execute(struct control *control, struct weir_txn *txn, const char *kind,
                                   const json_t *payload, struct weir_error *err) WEIR_MUST_CHECK;

/** Would this tick change anything? In a read transaction. */
weir_status control_deploy_is_due(struct weir_txn *txn, const char *name,
                                  const struct weir_deploy_event *tick, int64_t now_ms,
                                  struct weir_arena *arena, bool *out_is_due,
                                  struct weir_error *err) WEIR_MUST_CHECK;

/** What a replica must load, as GET …/desired answers it; a new reference. */
weir_status control_deploy_desired(struct weir_txn *txn, const struct weir_deploy_state *state,
                                   struct weir_arena *arena, json_t **out,
                                   struct weir_error *err) WEIR_MUST_CHECK;

/** The versions and aliases of a model. @return NOT_FOUND with the model that was probably meant. */
weir_status control_share_model(struct weir_txn *txn, const char *model, struct weir_arena *arena,
                                struct weir_model *out_model, struct weir_share_model *out,
                                struct weir_error *err) WEIR_MUST_CHECK;

/** Give all traffic of a deployment to this version, where the alias that it follows has moved.
 *  @return CONFLICT: the version is not servable. */
weir_status control_deploy_follow(struct control *control, struct weir_txn *txn, const char *name,
                                  int64_t version, struct weir_error *err) WEIR_MUST_CHECK;

#endif
