/**
 * Control: transactions that cross nouns, and the one place where nouns meet. A job that ends ends
 * its run and tells its ION; a model version that is registered is offered to the ION that trained
 * it; a training that an ION wants becomes a run and a job. Routes and the server's engine call
 * these inside their own write transaction, so that each decision and all that follows from it is
 * one commit.
 */
#ifndef WEIR_CONTROL_CONTROL_H
#define WEIR_CONTROL_CONTROL_H

#include "base/json.h"
#include "ion/ion.h"
#include "job/job.h"
#include "store/event.h"
#include "track/track.h"

struct control_figures;

/** What a control transaction needs beside the transaction. */
struct control {
    struct weir_arena *arena;
    int64_t now_ms;
    const char *actor;
    const char *limited_to; /**< Role of the token that the actor shows; NULL: none limits it. */
    const char *state_dir;
    const char *server_url;
    /** Figures of requests (control/rollout.h); NULL: not known. */
    const struct control_figures *figures;
    json_t *publish; /**< Array of [topic name, record] for control_publish_all after the commit. */
};

/**
 * The listener to what the control plane has done: the API, which tells streams and waiting requests.
 * Any thread calls it, outside of transactions. A function may be NULL.
 */
struct control_listener {
    /** A record (borrowed) changed; its commit is durable. */
    void (*publish)(void *context, const char *topic, const json_t *record);
    /** Something changed that is no commit. */
    void (*wake)(void *context);
    /** A round of the engine begins. since_ms: since when nodes could be heard (job/node_watch.h). */
    void (*tick)(void *context, int64_t now_ms, int64_t since_ms);
    void *context;
};

/** Tell the listener of each record in `publish`, an array of [topic name, record], after the
 * commit.
 */
void control_publish_all(const struct control_listener *listener, const json_t *publish);

/** Queue a record for the live streams; takes the reference. */
void control_publish(struct control *control, const char *topic, json_t *record);

/** Apply an event to a job, and what follows from its end. */
weir_status control_job_event(struct control *control, struct weir_txn *txn, const char *job,
                              const struct weir_job_event *event,
                              struct weir_error *err) WEIR_MUST_CHECK;

/**
 * Cancel a job for the actor. One that cannot be read is given up.
 * @param out_is_given_up  It was: nothing more of it can be told. May be NULL.
 * @return NOT_FOUND; CONFLICT: it is over.
 */
weir_status control_job_cancel(struct control *control, struct weir_txn *txn, const char *job,
                               bool *out_is_given_up, struct weir_error *err) WEIR_MUST_CHECK;

/** A node for a task of a job, and which of its devices. */
struct control_bind {
    size_t task; /**< Index by rank. */
    const char *node;
    const char *devices; /**< Indices: "0,3"; NULL: it asks for none. */
};

/**
 * Start tasks of a job on nodes that were chosen for it at this revision.
 *
 * @param out_is_bound  false: the job has changed since, is gone, or wants something else by now, or
 *                      a device is not free or not ok; nothing was done.
 */
weir_status control_job_bind(struct control *control, struct weir_txn *txn, const char *job,
                             int64_t revision, const struct control_bind *binds, size_t n_binds,
                             bool *out_is_bound, struct weir_error *err) WEIR_MUST_CHECK;

/**
 * Stop a job, or a task of a service, for others (event EVICT).
 *
 * @param revision  That it was planned with; -1: whatever it has.
 * @param out_is_done  false: it has changed since, is gone, or has nothing to stop; nothing was done.
 */
weir_status control_job_evict(struct control *control, struct weir_txn *txn, const char *job,
                              int64_t revision, const struct weir_job_event *event,
                              bool *out_is_done, struct weir_error *err) WEIR_MUST_CHECK;

/** Apply an event to an ION that is loaded. */
weir_status control_ion_step(struct control *control, struct weir_txn *txn,
                             struct weir_ion_state *state, const struct weir_ion_event *event,
                             struct weir_error *err) WEIR_MUST_CHECK;

/** Apply an event to an ION. */
weir_status control_ion_event(struct control *control, struct weir_txn *txn, const char *ion,
                              const struct weir_ion_event *event,
                              struct weir_error *err) WEIR_MUST_CHECK;

/** Does this status of an event say that the state it is for cannot be read: too large, damaged, or
 *  of a form that this program does not know? Such a job or ION can still be given up. */
bool control_is_unreadable(weir_status status);

/** Say that `subject` ("job/ID", "ion/NAME") cannot be loaded and is left alone: an alert, with the
 *  command that removes it; or that it is over. */
weir_status control_raise_unreadable(struct control *control, struct weir_txn *txn,
                                     const char *subject, const char *problem,
                                     struct weir_error *err) WEIR_MUST_CHECK;
weir_status control_resolve_unreadable(struct control *control, struct weir_txn *txn,
                                       const char *subject, struct weir_error *err) WEIR_MUST_CHECK;

/** Delete an ION where its state cannot be read: it is marked as deleted, and its open jobs are
 *  cancelled. @return NOT_FOUND. */
weir_status control_ion_abandon(struct control *control, struct weir_txn *txn, const char *ion,
                                struct weir_error *err) WEIR_MUST_CHECK;

/** What a new job is made from. Text is borrowed. */
struct control_job {
    const char *name, *project, *kind;
    const json_t *spec;
    const json_t *datasets; /**< {"name": "path"} beside those that spec names; NULL: none. */
    const json_t *outputs;  /**< {"name": "path"} of datasets that its tasks write; NULL: none. */
    const json_t *pinned;   /**< What weir_launch_job has; NULL: none. */
    int64_t max_restarts;
    const char *id;             /**< Chosen by the caller; NULL: made here. */
    const char *run;            /**< Identifier of its run, likewise. */
    const char *experiment;     /**< Its run's; NULL: its ION's, else the default one. */
    const char *resumed_from;   /**< Job that left the checkpoint it goes on from; NULL if none. */
    const char *ion, *pipeline; /**< NULL for a job of its own. */
    int64_t training;
    const char *cause;   /**< Why the ION's pipeline runs; NULL: nobody said. */
    bool is_tracked;     /**< It has a run whatever its kind. */
    const char *dataset; /**< What that run begins with; NULL: nothing. */
    int64_t dataset_version;
    const json_t *service; /**< That the job runs for (framework/program.h); NULL: for none. */
};

/** A new secret of a job's tasks, in hexadecimal digits, in the arena. */
char *control_job_secret(struct weir_arena *arena);

/** What weir_launch_job has of the state folder, in the arena; NULL: the folder has no identity. */
const char *control_shared_id(const struct control *control);

/**
 * Create a job, its tasks, and (for training) its run.
 * @param out  The job's record; its text lies in the control's arena.
 */
weir_status control_job_create(struct control *control, struct weir_txn *txn,
                               const struct control_job *wanted, struct weir_job *out,
                               struct weir_error *err) WEIR_MUST_CHECK;

/** The specification of a command that an ION's pipeline runs: its parameters, and its dataset among
 *  those that it reads. A new reference. */
json_t *control_command_spec(const struct weir_ion_doc_pipeline *doc);

/** The specification of a job that measures a model version for an evaluation or a comparison; without
 *  what it is compared with. A new reference. */
json_t *control_measure_spec(const struct weir_ion_doc_pipeline *doc, const char *model,
                             int64_t version);

/** The specification of a training of an ION, without the name of the model that it makes. A new
 *  reference. */
json_t *control_training_spec(const struct weir_ion_doc_pipeline *doc);

/** Carry out one outbox action ("start_training", "stop_training", "start_prediction",
 *  "stop_prediction", "start_evaluation", "stop_evaluation", "start_replica", "stop_replica", "start_trial", "stop_trial", "alert_action", "shift_deployment"). An action that
 *  has become pointless is WEIR_OK. */
weir_status control_execute(struct control *control, struct weir_txn *txn, const char *kind,
                            const char *payload, struct weir_error *err) WEIR_MUST_CHECK;

/** Register a model version and offer it to the ION that made it by a run. */
weir_status control_model_register(struct control *control, struct weir_txn *txn,
                                   const struct weir_model_version *version,
                                   struct weir_model_version *out,
                                   struct weir_error *err) WEIR_MUST_CHECK;

/** A version as IONs see it. Text is borrowed, but for what the arena has. */
struct weir_ion_model control_ion_model(const struct weir_model_version *version,
                                        struct weir_arena *arena);

/**
 * What a version takes or gives otherwise than another one of its model, in a sentence for people:
 * "version 2 is not compatible with version 1: its input x is …" (ion/interface.h).
 * @param before  0: the newest one before it whose signature is known.
 * @param out     NULL: nothing, or there is no other, or one of both is not known.
 */
weir_status control_version_changes(struct weir_txn *txn, const char *model, int64_t before,
                                    int64_t version, struct weir_arena *arena, char **out,
                                    struct weir_error *err) WEIR_MUST_CHECK;

/** The same, into this project if it is the model's first version (NULL: that of its run, else
 *  "default"). @return CONFLICT if the model is of another project. */
weir_status control_model_push(struct control *control, struct weir_txn *txn,
                               const struct weir_model_version *version, const char *project,
                               struct weir_model_version *out,
                               struct weir_error *err) WEIR_MUST_CHECK;

/** Tell every ION that uses the dataset of its new version. */
weir_status control_dataset_changed(struct control *control, struct weir_txn *txn,
                                    const struct weir_dataset *dataset,
                                    const struct weir_dataset_version *version,
                                    struct weir_error *err) WEIR_MUST_CHECK;

/** Append an event and publish nothing: streams read events from the store. */
weir_status control_log(struct control *control, struct weir_txn *txn, const char *topic,
                        const char *kind, const char *subject, const char *message,
                        struct weir_error *err) WEIR_MUST_CHECK;

#endif
