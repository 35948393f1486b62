/**
 * The ION engine: a pure function (state, event, time) → (state, actions).
 *
 * State is the ION's document, its pipelines, candidates and members. An event says what happened;
 * the step changes the state and lists the actions that follow from it. The same events in the same
 * order always give the same state and the same actions, so a recorded history can be replayed,
 * under other policies too. Identifiers that it makes are derived from what they name, so nothing
 * is done twice: a candidate is "ION:LINK:MODEL-VERSION-ID", a policy decision "ION:NUMBER", a
 * training "ION:PIPELINE:NUMBER".
 *
 * Candidate, per (link, model version), at `position` of the link's chain of policies (ion/policy.h):
 *     PENDING_REVIEW (a person is asked) ⇄ WAITING (for a time)
 *                    → APPROVED → SERVING → RETIRED (another one serves)
 *                    ↘ REJECTED           ↘ ROLLED_BACK
 * A policy that measures has a job made, and waits for its end; the job is stopped when the candidate
 * leaves the policy.
 * A policy that tries versions among the requests of a deployment has a state of its own (SHADOW, CANARY,
 * AB) in place of WAITING; a canary that fails, or what loses a comparison, is ROLLED_BACK, and so is what is tried when
 * its link or ION goes.
 * A version that comes to a link with a deployment, and is not compatible with what serves there
 * (ion/interface.h), is PENDING_REVIEW at the first policy of a chain that asks nobody: it is not even
 * tried before a person approves it.
 * APPROVED has passed all policies; a rate limit or a freeze window that holds at that moment holds
 * it there, else it serves in the same step. At most one candidate of a link is SERVING. Every
 * promotion has the decisions of each policy of the chain. A document with another chain puts what
 * stands in the old one at the head of the new.
 *
 * SERVING is what the link has chosen. Whether it is served the replicas say (ion/replica.h): a
 * prediction pipeline is
 *     WAITING → DEPLOYING → SERVING
 *                   ↘  DEPLOY_FAILED (with the reason; what was served before may serve on)
 * and weir_ion_candidate_shown says of a candidate what people are to be told.
 *
 * A pipeline of another type runs jobs, one at a time, each with a number (`training`):
 *     IDLE → TRAINING → IDLE                 a training
 *     IDLE → RUNNING → FREEZING → IDLE       a preparation
 *     IDLE → RUNNING → IDLE                  an evaluation, a comparison
 * Triggers that come while it runs are folded into one further run. At the ends of a data link one runs
 * at a time, because both use the dataset's folder: what is to start the other meanwhile waits in the
 * same way. How a run ended may start the next (ion/restart.h).
 *
 * A pipeline that is paused begins nothing: a run in progress goes on to its end, and what triggers the
 * next is remembered; replicas stop (WAITING). Links choose as before. What of it was wanted meanwhile
 * begins when it is resumed. Removed with its pipeline, or its ION, a pause is over.
 */
#ifndef WEIR_ION_ION_STEP_H
#define WEIR_ION_ION_STEP_H

#include "base/arena.h"
#include "base/status.h"
#include "ion/firing.h"
#include "ion/ion_doc.h"
#include "ion/policy_arms.h"
#include "ion/policy_evaluation.h"
#include "ion/policy_trial.h"
#include "ion/replica.h"
#include "ion/threshold.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** An ION in production touches what is real. That of a sandbox does not: its decisions go to a folder
 *  of their own, frames stay where they are, nobody is told of its alerts. */
#define WEIR_ION_PRODUCTION "production"
#define WEIR_ION_SANDBOX    "sandbox"

/** Trainings that one RUN may ask for. */
#define WEIR_ION_RUNS_MAX 100

struct weir_ion {
    char *name;
    char *project;
    char *document;        /**< JSON. */
    char *state;           /**< "ACTIVE" or "DELETED". */
    char *mode;            /**< WEIR_ION_PRODUCTION or WEIR_ION_SANDBOX. */
    int64_t revision;      /**< Counts up with every change of the document. */
    int64_t list_revision; /**< Counts up with every change of the members. */
    int64_t n_decisions;   /**< Policy decisions made so far. */
    int64_t n_firings;     /**< Firings of triggers so far. */
    int64_t n_served;      /**< Promotions and rollbacks so far: gives candidates' served_seq. */
    char *created_by;
    int64_t created_ms;
    int64_t updated_ms;
};

/** Of a pipeline that runs jobs: the run in progress, or the last one. */
struct weir_ion_runs {
    int64_t training;     /**< Its number; 0 = none yet. */
    int64_t started_ms;   /**< When it was started. */
    char *run;            /**< While it runs. */
    char *cause;          /**< Why it runs: "manual by ann", "schedule", "people version 3" … */
    char *cause_by;       /**< Who triggered it by hand, with ", " between them; NULL = nobody. */
    char *pending_cause;  /**< A further one is wanted: why first; NULL = none. */
    char *pending_by;     /**< Who triggered that one by hand; NULL = nobody. */
    int64_t runs_left;    /**< That follow it, as people asked for; at most WEIR_ION_RUNS_MAX. */
    int64_t next_fire_ms; /**< The nearest time of its schedules; 0 = none. */
    int64_t dataset_version; /**< Latest version seen. */
    char *measured_model;    /**< Newest model version that came to be measured; NULL: none. */
    int64_t measured_version;
};

/** A version of a dataset of people's photos. */
struct weir_ion_people {
    int64_t version; /**< 0 = none yet, or none named. */
    char *path, *digest, *blob;
};

/** A version of the model that a pipeline's stages find with. */
struct weir_ion_detector {
    char *model;     /**< NULL: none is named, or it has no such version yet. */
    int64_t version; /**< 0: the same. */
    char *id, *blob;
};

/** Of a prediction: what its replicas serve. */
struct weir_ion_service {
    char *candidate;             /**< That serves; NULL = none. */
    int64_t deployment_revision; /**< 0: nothing deployed yet. */
    char *deployment;            /**< JSON: what a replica must serve (docs/architecture.md). */
    int64_t served_revision;     /**< Newest deployment that a replica serves; 0: none. */
    char *served_candidate;      /**< Candidate that replicas serve; NULL = none. */
    int64_t last_frame_ms;       /**< When a replica took a frame last; 0 = never. */
    int64_t keep_pictures_ms; /**< Age of decisions' pictures; 0: as its project; below 0: none. */
    struct weir_ion_people gallery, impostors;
    struct weir_ion_detector detector;
    const struct weir_threshold *threshold; /**< The last that a replica reported; NULL = none. */
};

/** A pipeline of any type, and one of two parts, which its type says: weir_ion_runs_of and
 *  weir_ion_service_of refuse the other. Of a pipeline that is there the other is empty but for what
 *  stays if the name comes back as that type: numbers, which no key may have twice. */
struct weir_ion_pipeline {
    char *id; /**< "ION:NAME" */
    char *ion;
    char *name;
    char *type;         /**< "training", "prediction" or another (ion/ion_doc.h). */
    char *state;        /**< Training: IDLE, TRAINING. Others that run jobs: IDLE, RUNNING; of a
                           preparation also FREEZING (the command has ended, and a version is made
                           of what it wrote). Prediction: WAITING (nothing to serve, or no
                           replicas), DEPLOYING, SERVING, DEPLOY_FAILED. Removed: REMOVED. */
    char *state_reason; /**< Of DEPLOY_FAILED: what the replica said. */
    int64_t state_ms;   /**< Since when it is in this state. */
    char *job;          /**< Of the run, or of the replicas; set by whoever starts it. */
    char *paused_by;    /**< Who paused it: no run begins, replicas do not run; NULL: nobody. */
    int64_t paused_ms;  /**< When; 0: it is not paused. */
    int64_t n_failures; /**< Runs, or replicas, that have failed in a row. */
    int64_t restart_ms; /**< When it starts again by its restart rule; 0: it does not. */
    int64_t updated_ms;
    struct weir_ion_runs runs;
    struct weir_ion_service service;
};

struct weir_ion_candidate {
    char *id; /**< "ION:LINK:MODEL-VERSION-ID" */
    char *ion;
    char *link; /**< "from:to" */
    char *model;
    char *model_version; /**< Identifier. */
    int64_t version;     /**< Number. */
    char *blob;
    char *metrics;   /**< JSON or NULL. */
    char *interface; /**< JSON: what it takes and gives (ion/interface.h); NULL = not known. */
    char *state;
    int64_t position;    /**< Of the policy where it stands or stood last, from 0. */
    int64_t position_ms; /**< Since when. */
    int64_t until_ms;    /**< When that policy is asked again; 0 = when a person speaks. */
    char *waits_for;     /**< That policy's name; NULL = it does not wait. */
    char *waits_why;     /**< What it said: "manual: 1 of 2 approvals, by ann". */
    const struct weir_policy_approval *approvals; /**< At this policy; NULL = none. */
    size_t n_approvals;
    /* Of SHADOW, CANARY and AB, whose link ends in a deployment; else 0. */
    int64_t share_ppm;     /**< Of the requests, that it is to answer. */
    bool is_mirrored;      /**< Its answers are compared with those of the version that serves. */
    int64_t step, step_ms; /**< Step of the trial, and when it was asked for. */
    int64_t begun_ms;      /**< When that came into effect; 0 = not yet. */
    char *blocked;         /**< Why its policy cannot judge it, so far; NULL = nothing shows. */
    const struct weir_ion_figures *base; /**< The figures at that time. */
    const struct weir_policy_evaluation
        *evaluation;    /**< While a policy has it measured; else NULL. */
    char *made_by;      /**< Who triggered its training by hand or registered it; NULL = nobody. */
    int64_t served_seq; /**< Order of serving; 0 = never served. */
    int64_t served_ms;
    int64_t created_ms;
    int64_t updated_ms;
};

struct weir_policy_decision {
    char *id; /**< "ION:NUMBER" */
    char *ion;
    char *link;
    char *candidate;
    char *model_version;
    int64_t version;
    char *policy;     /**< "always-update", "manual"; "none": no policy was asked. */
    int64_t position; /**< Of the policy in the chain, from 0. */
    char *inputs;     /**< JSON: what the rule looked at (struct weir_policy_inputs). */
    char *rule;       /**< In words. */
    char *verdict;    /**< "pass", "promote", "wait", "skip", "reject", "rollback", "set" */
    char *actor;      /**< User, or "policy". */
    char *note;
    int64_t time_ms;
};

struct weir_ion_member {
    char *id; /**< "ION:PERSON" */
    char *ion;
    char *person;
    char *list; /**< "allow" or "deny" */
    char *actor;
    int64_t time_ms;
};

/** A door that is locked down by hand (ion/door.h). */
struct weir_ion_lock_down {
    char *id; /**< "ION:DOOR" */
    char *ion;
    char *door;
    char *note; /**< NULL: none. */
    char *actor;
    int64_t time_ms;
};

/** Everything the step looks at. Arrays are in the arena; the step may replace and extend them. */
struct weir_ion_state {
    struct weir_ion ion;
    struct weir_ion_doc doc; /**< Of ion.document. */
    struct weir_ion_pipeline *pipelines;
    size_t n_pipelines;
    struct weir_ion_candidate *candidates;
    size_t n_candidates;
    struct weir_ion_trigger *triggers; /**< By identifier. */
    size_t n_triggers;
    const struct weir_ion_member *members; /**< By person. */
    size_t n_members;
    const struct weir_ion_lock_down *lock_downs; /**< By door. */
    size_t n_lock_downs;
    const struct weir_ion_replica *replicas; /**< Last reports. */
    size_t n_replicas;
};

/** A dataset version, as far as IONs care. */
struct weir_ion_dataset {
    const char *name;
    int64_t version;
    const char *path;
    const char *digest;
    const char *blob; /**< Manifest. */
    int64_t n_files, n_bytes, n_rows;
};

/** What the server observed for a trigger; the engine fills in what it knows itself. */
struct weir_ion_observed {
    const char *trigger; /**< Identifier. */
    struct weir_trigger_inputs inputs;
};

/** A model version, as far as IONs care. */
struct weir_ion_model {
    const char *name;
    const char *model_version; /**< Identifier. */
    int64_t version;
    const char *blob;
    const char *metrics;   /**< JSON or NULL. */
    const char *made_by;   /**< Who registered it or had it trained; NULL: no person did. */
    const char *interface; /**< JSON (ion/interface.h); NULL: not known. */
};

/** How a candidate does that is watched, as a TICK sees it. */
struct weir_ion_traffic {
    const char *candidate; /**< Identifier. */
    int64_t live_ppm;
    bool is_ready;
    const char *problem; /**< Why a replica could not load it; NULL: none failed. */
    struct weir_ion_figures figures;
    struct weir_policy_arms arms;
};

/** How the measurement of a candidate goes, as a TICK sees it. */
struct weir_ion_measured {
    const char *candidate;                 /**< Identifier. */
    struct weir_policy_evaluation figures; /**< Its `state`, `problem` and what follows. */
};

/** What a link that ends in a deployment wants of it. */
struct weir_ion_wanted {
    const char *model; /**< NULL: nothing. */
    int64_t serving;   /**< Version; 0: none. */
    int64_t trial;     /**< Version that is being tried; 0: none. */
    int64_t trial_ppm; /**< Share of the trial's; the rest is the serving one's. */
    int64_t mirror;    /**< Version that gets copies; 0: none. */
};

/** The version that a pipeline's detector names now. */
struct weir_ion_named_detector {
    const char *pipeline;
    struct weir_ion_model model;
};

enum weir_ion_event_type {
    WEIR_ION_EVENT_APPLIED, /**< mode (of a new ION; NULL: production), document (JSON text), doc, datasets and models (latest of each it
                               names), actor. */
    WEIR_ION_EVENT_DELETED, /**< actor. */
    WEIR_ION_EVENT_MODEL,   /**< models[0]: a new version; pipeline: that trained it, or NULL. */
    WEIR_ION_EVENT_DATASET, /**< datasets[0]: a new version. */
    WEIR_ION_EVENT_TICK, /**< Time has passed; observed: what triggers look at; traffic: how those do
                               that are watched; measured: of those that are measured. */
    WEIR_ION_EVENT_TRIGGER,  /**< pipeline, actor. */
    WEIR_ION_EVENT_RUN,      /**< times, actor: every training that may be started by hand. */
    WEIR_ION_EVENT_PROMOTED, /**< actor: a sandbox goes on in production. */
    WEIR_ION_EVENT_APPROVE,  /**< version (0 = newest that waits), link (NULL = any), actor, roles,
                               note. */
    WEIR_ION_EVENT_REJECT,   /**< The same. */
    WEIR_ION_EVENT_ROLLBACK, /**< version (0 = the one served before), link (NULL = the only one),
                                actor, note. */
    WEIR_ION_EVENT_SET,      /**< link, models[0]: a version of any model serves there, unasked;
                                actor, note. */
    WEIR_ION_EVENT_PAUSE,  /**< pipeline (NULL = all), actor: no training begins, replicas stop. */
    WEIR_ION_EVENT_RESUME, /**< The same: what was wanted meanwhile begins. */
    WEIR_ION_EVENT_LISTS, /**< Members have changed (state->members and lock_downs are the new ones). */
    WEIR_ION_EVENT_REPLICA, /**< pipeline: a replica reported (state->replicas are the new ones). */
    WEIR_ION_EVENT_STARTED, /**< pipeline, training (0 for replicas), job, run: the start was
                               carried out. */
    WEIR_ION_EVENT_FINISHED,  /**< pipeline, training; of replicas: job. */
    WEIR_ION_EVENT_FAILED,    /**< pipeline, training, note; of replicas: job. */
    WEIR_ION_EVENT_CANCELLED, /**< The same; note: by whom. A person wanted it: no alert. */
    WEIR_ION_EVENT_MEASURING, /**< candidate, number (of its measurement), job, run: it was begun; note
                                 instead: why it cannot be. */
    WEIR_ION_EVENT_FROZEN, /**< pipeline, training: of a preparation that is FREEZING; version: of the
                                 dataset that it makes. */
};

struct weir_ion_event {
    enum weir_ion_event_type type;
    const char *actor;
    const char *const *roles; /**< The actor's in the ION's project, NULL at the end; or NULL. */
    const char *note;
    const char *pipeline;
    const char *link;
    const char *document;
    const char *mode;
    int64_t times;
    const struct weir_ion_doc *doc;
    const struct weir_ion_dataset *datasets;
    size_t n_datasets;
    const struct weir_ion_observed *observed;
    size_t n_observed;
    const struct weir_ion_model *models;
    size_t n_models;
    const char *const
        *aliases; /**< Of each model: the alias that brings it, NULL: it is new. May be NULL. */
    const struct weir_ion_named_detector *detectors; /**< In APPLIED: those that have a version. */
    size_t n_detectors;
    const struct weir_ion_traffic *traffic;
    size_t n_traffic;
    const struct weir_ion_measured *measured;
    size_t n_measured;
    const char *candidate; /**< Identifier. */
    int64_t number;
    const struct weir_ion_model
        *defaults; /**< Of APPLIED: those that links name as their default. */
    size_t n_defaults;
    int64_t version;
    int64_t training;
    const char *job;
    const char *run;
};

enum weir_ion_action_type {
    WEIR_ION_ACTION_START_TRAINING,   /**< Of any pipeline that runs jobs: key, pipeline, number =
                                         training, message = cause. */
    WEIR_ION_ACTION_STOP_TRAINING,    /**< key, pipeline, number = training, job. */
    WEIR_ION_ACTION_START_PREDICTION, /**< key, pipeline. */
    WEIR_ION_ACTION_STOP_PREDICTION,  /**< key, pipeline, job. */
    WEIR_ION_ACTION_DEPLOYED, /**< pipeline, number = new deployment revision (already in the
                                 state). */
    WEIR_ION_ACTION_SHIFT,    /**< key, pipeline = the link: what it wants of its deployment is
                                 another thing than before (weir_ion_wanted_of). Of a link that is
                                 gone, with its ION or from its document: deployment, and wanted as
                                 it leaves it: `trial`, which was tried, gets nothing any more. */
    WEIR_ION_ACTION_START_EVALUATION, /**< key, pipeline = the candidate, number of its measurement. */
    WEIR_ION_ACTION_STOP_EVALUATION, /**< key, pipeline = the link, job. */
    WEIR_ION_ACTION_DECIDED,         /**< decision: to be stored. */
    WEIR_ION_ACTION_FIRED,           /**< firing: to be stored. */
    WEIR_ION_ACTION_EVENT,           /**< kind, message, actor: to the event log. */
    WEIR_ION_ACTION_ALERT,           /**< key, kind, severity (NULL: the kind's), message: raise. */
    WEIR_ION_ACTION_RESOLVE,         /**< key: the alert's cause is gone. */
};

struct weir_ion_action {
    enum weir_ion_action_type type;
    const char *key; /**< Idempotency key. */
    const char *pipeline;
    int64_t number;
    const char *job;
    const char *kind;
    const char *severity;
    const char *message;
    const char *actor;
    const char *deployment;        /**< NULL: the document says which. */
    struct weir_ion_wanted wanted; /**< Of `deployment`. */
    struct weir_policy_decision decision;
    struct weir_trigger_firing firing;
};

/** Actions in the order they were decided; grows in the arena. Start with {0}. */
struct weir_ion_actions {
    struct weir_ion_action *items;
    size_t n;
    size_t cap;
};

/**
 * Apply one event. An event that was applied before (same model version, same dataset version, an
 * earlier training's end) changes nothing and is WEIR_OK.
 *
 * @return For what a person asks: NOT_FOUND (no such pipeline or version), CONFLICT (nothing waits
 *         for review, nothing to go back to, the version is ambiguous, the ION is deleted), DENIED
 *         (this person's approval does not count). State
 *         and actions are untouched on error.
 */
weir_status weir_ion_step(struct weir_ion_state *state, const struct weir_ion_event *event,
                          int64_t now_ms, struct weir_arena *arena,
                          struct weir_ion_actions *actions, struct weir_error *err) WEIR_MUST_CHECK;

/**
 * When a TICK will next change something; INT64_MAX if never. `now_ms` if a wall clock that was set
 * back left a schedule waiting for a time further ahead than it says: the TICK works it out anew.
 */
int64_t weir_ion_next_tick_ms(const struct weir_ion_state *state, int64_t now_ms);

/**
 * What a trigger would look at now, as far as the engine knows it; `by`, windows, value, alert and
 * model are for others to fill in.
 */
struct weir_trigger_inputs weir_ion_trigger_inputs(const struct weir_ion_state *state,
                                                   const struct weir_ion_trigger *trigger,
                                                   int64_t now_ms);

/** The row of the pipeline of that name, whatever its state; NULL if there is none, or `name` is NULL. */
struct weir_ion_pipeline *weir_ion_pipeline_of(const struct weir_ion_state *state,
                                               const char *name);

/** Its runs; NULL: it is NULL, or a prediction. */
struct weir_ion_runs *weir_ion_runs_of(const struct weir_ion_pipeline *pipeline);

/** What its replicas serve; NULL: it is NULL, or runs jobs. */
struct weir_ion_service *weir_ion_service_of(const struct weir_ion_pipeline *pipeline);

/** The candidate with that identifier; NULL if there is none, or `id` is NULL. */
struct weir_ion_candidate *weir_ion_candidate_of(const struct weir_ion_state *state,
                                                 const char *id);

/** What the link has chosen; NULL: nothing. */
struct weir_ion_candidate *weir_ion_serving(const struct weir_ion_state *state, const char *link);

/** The document's trigger of a row; NULL: the document has another, or none. */
const struct weir_trigger *weir_ion_trigger_of(const struct weir_ion_state *state,
                                               const struct weir_ion_trigger *trigger);

/**
 * A candidate's state for people: SERVING if replicas serve it; DEPLOYING, DEPLOY_FAILED or PAUSED if
 * the link has chosen it and they do not (yet, or now); else its own. Static or the candidate's text.
 */
const char *weir_ion_candidate_shown(const struct weir_ion_state *state,
                                     const struct weir_ion_candidate *candidate);

/** What a link wants of its deployment; nothing, if it ends in none. */
struct weir_ion_wanted weir_ion_wanted_of(const struct weir_ion_state *state,
                                          const struct weir_ion_doc_link *link);

/**
 * The policy that watches the candidate: that must be asked with every TICK, with how the candidate
 * does by then. NULL: none does.
 */
const struct weir_policy *weir_ion_watching(const struct weir_ion_state *state,
                                            const struct weir_ion_candidate *candidate);

/** Key of the alert that a deployment cannot be as a link wants it: ION, link. */
#define WEIR_ION_SHIFT_ALERT "deployment_failed:%s:%s"

/** Candidate states; beside them those in which policies try versions (weir_policy_ops.trial_state). */
#define WEIR_CANDIDATE_PENDING_REVIEW "PENDING_REVIEW"
#define WEIR_CANDIDATE_WAITING        "WAITING"
#define WEIR_CANDIDATE_APPROVED       "APPROVED"
#define WEIR_CANDIDATE_SERVING        "SERVING"
#define WEIR_CANDIDATE_PAUSED         "PAUSED" /* shown only */
#define WEIR_CANDIDATE_RETIRED        "RETIRED"
#define WEIR_CANDIDATE_REJECTED       "REJECTED"
#define WEIR_CANDIDATE_ROLLED_BACK    "ROLLED_BACK"

#endif
