/**
 * Inside the ION engine: one call of weir_ion_step and what its parts share. The contract is
 * ion/ion_step.h's; the parts are
 *
 *     ion_step.c     which event goes where
 *     ion_apply.c    the document: pipelines come, change and go
 *     ion_trigger.c  what makes a pipeline run
 *     ion_train.c    runs of jobs: coalescing, ends
 *     ion_pause.c    pipelines that are paused, and go on
 *     ion_measure.c  models that are measured
 *     ion_restart.c  what starts again by its restart rule
 *     ion_policy.c   candidates: their way through the chains of policies, promotion
 *     ion_rollout.c  versions that are tried among the requests of a deployment
 *     ion_evaluation.c  versions that are measured for a policy
 *     ion_changes.c  versions that callers of what serves would notice
 *     ion_review.c   what people ask for: approve, reject, roll back
 *     ion_sandbox.c  trials of the ION itself: its mode, trainings in a row, the way into production
 *     ion_deploy.c   what a replica must serve
 *     ion_replica.c  what replicas say of it
 *
 * Handlers check everything that can be refused before they change anything.
 */
#ifndef WEIR_ION_ENGINE_H
#define WEIR_ION_ENGINE_H

#include "ion/ion_step.h"

#define PIPELINE_IDLE          "IDLE"
#define PIPELINE_TRAINING      "TRAINING"
#define PIPELINE_RUNNING       "RUNNING"
#define PIPELINE_FREEZING      "FREEZING"
#define PIPELINE_WAITING       "WAITING"
#define PIPELINE_DEPLOYING     "DEPLOYING"
#define PIPELINE_SERVING       "SERVING"
#define PIPELINE_DEPLOY_FAILED "DEPLOY_FAILED"
#define PIPELINE_REMOVED       "REMOVED"

struct engine {
    struct weir_ion_state *state;
    const struct weir_ion_event *event;
    int64_t now_ms;
    struct weir_arena *arena;
    struct weir_ion_actions *actions;
    struct weir_error *err;
};

/** Is `text` (NULL: it is none) this state? */
bool engine_is(const char *text, const char *state);

void engine_act(struct engine *engine, struct weir_ion_action action);

/** To the event log, in the name of whoever caused the event. */
void engine_tell(struct engine *engine, const char *kind, const char *message);

/** Who caused the event; "system" if nobody is named. */
const char *engine_actor(const struct engine *engine);

/** The pipeline of that name that is not removed; NULL if there is none. */
struct weir_ion_pipeline *engine_pipeline(struct engine *engine, const char *name);

/** Add a row in its place; earlier pointers into the array are void. */
struct weir_ion_pipeline *engine_add_pipeline(struct engine *engine,
                                              struct weir_ion_pipeline pipeline);
struct weir_ion_candidate *engine_add_candidate(struct engine *engine,
                                                struct weir_ion_candidate candidate);
struct weir_ion_trigger *engine_add_trigger(struct engine *engine, struct weir_ion_trigger trigger);

/* ion_apply.c */
void engine_on_applied(struct engine *engine);
weir_status engine_on_deleted(struct engine *engine);

/* ion_train.c */

/** Start a run, or remember that a further one is wanted. */
void engine_trigger(struct engine *engine, struct weir_ion_pipeline *pipeline, const char *cause);

/** A pipeline that has ended a run, or was paused, begins the next of a row. What triggered it meanwhile
 *  begins with the end of the step (engine_start_pending). Not while it is paused. */
void engine_go_on(struct engine *engine, struct weir_ion_pipeline *pipeline);

/** Is a run of it in progress? */
bool engine_is_running(const struct weir_ion_pipeline *pipeline);

/** Start those that have waited and wait for nothing any more. */
void engine_start_pending(struct engine *engine);

/** What a run of the pipeline in progress does is wanted no more: its job is stopped. */
void engine_stop_run(struct engine *engine, struct weir_ion_pipeline *pipeline);

/** The state after a run that no other follows yet. */
void engine_leave_run(struct engine *engine, struct weir_ion_pipeline *pipeline);

void engine_on_started(struct engine *engine);
void engine_on_ended(struct engine *engine);

/** A preparation's dataset has the version that its run has made, or had it before. */
void engine_on_frozen(struct engine *engine);

/* ion_measure.c */

/** Does the pipeline measure models, and has none come? */
bool engine_lacks_model(const struct engine *engine, const struct weir_ion_pipeline *pipeline);

/** The event's model comes to the pipelines that measure it. */
void engine_measure_model(struct engine *engine);

/** A document was applied: so do the newest versions of what its links begin at. */
void engine_apply_measured(struct engine *engine);

/* ion_restart.c */

/**
 * A run of the pipeline, or its replicas, have ended: by its rule it may start again later.
 * @return Whether the failure is one that is only told if it goes on.
 */
bool engine_restart_later(struct engine *engine, struct weir_ion_pipeline *pipeline,
                          bool has_failed);

void engine_tick_restarts(struct engine *engine);

/** When one is due; INT64_MAX: never. */
int64_t engine_restarts_tick_ms(const struct weir_ion_state *state, int64_t now_ms);

/* ion_sandbox.c */

/** A document is applied: an ION that is new, or was deleted, gets its mode; another keeps it. */
void engine_choose_mode(struct engine *engine);
weir_status engine_on_run(struct engine *engine);
weir_status engine_on_promoted(struct engine *engine);

/** A training has ended, or goes on after a pause, and none waits: start the next of those that were asked
 *  for at once. */
void engine_run_again(struct engine *engine, struct weir_ion_pipeline *pipeline);

/* ion_trigger.c */

/** Bring the rows of triggers in line with the document: new ones are armed now. The state gets copies
 *  of its pipelines and triggers before one of them changes. */
void engine_arm_triggers(struct engine *engine);

/** The pipeline's manual trigger, asked for who caused the event; NULL: it has none. Changes nothing. */
struct weir_ion_trigger *engine_ask_by_hand(struct engine *engine,
                                            const struct weir_ion_pipeline *pipeline,
                                            struct weir_trigger_inputs *inputs,
                                            struct weir_trigger_verdict *told);

/** It fired: the firing is recorded, and the pipeline runs, now or after the run that is in progress.
 *  @param cause  What the run says of it. */
void engine_fire(struct engine *engine, struct weir_ion_trigger *row,
                 struct weir_ion_pipeline *pipeline, const struct weir_trigger_inputs *inputs,
                 const char *reason, const char *cause);

/** The pipeline has another dataset: nothing of that was seen. */
void engine_forget_dataset(struct engine *engine, struct weir_ion_pipeline *pipeline);

/** A version of the pipeline's dataset: its triggers see it, and may fire. */
void engine_see_dataset(struct engine *engine, struct weir_ion_pipeline *pipeline,
                        const struct weir_ion_dataset *dataset);

/** The pipeline begins to run: what its triggers have seen of its dataset is used up. */
void engine_use_data(struct engine *engine, const struct weir_ion_pipeline *pipeline);

void engine_tick_triggers(struct engine *engine);

/**
 * When a trigger needs a tick: when it will fire by what the engine knows; now, if it has no row yet,
 * or if a schedule's stored time is later than the schedule says, because the wall clock was set
 * back; INT64_MAX = never.
 */
int64_t engine_triggers_tick_ms(const struct weir_ion_state *state, int64_t now_ms);

weir_status engine_on_trigger(struct engine *engine);

/* ion_pause.c */

/** Why a pipeline that is paused does nothing; NULL: it is not paused. */
char *engine_pause_reason(struct engine *engine, const struct weir_ion_pipeline *pipeline);
weir_status engine_on_pause(struct engine *engine);
weir_status engine_on_resume(struct engine *engine);

/* ion_policy.c */

/** Whom a decision's row names if a policy made it. */
#define WEIR_ACTOR_POLICY "policy"

/** Why a policy is asked. */
struct asked_by {
    const char *actor;       /**< For the row. */
    const char *rejected_by; /**< A person who rejects the candidate; NULL: nobody does. */
};

/** The version of the candidate's model that its link serves; 0: nothing, or another model. */
int64_t engine_serving_version(struct engine *engine, const struct weir_ion_candidate *candidate);

/** Does it stand at a policy: does it wait for people or a time? */
bool engine_is_standing(const struct weir_ion_candidate *candidate);

/** What a policy of the link looks at; of no link: what can be seen without one. */
struct weir_policy_inputs engine_inputs(struct engine *engine,
                                        const struct weir_ion_candidate *candidate,
                                        const struct weir_ion_doc_link *link, size_t i_policy);

/** The same where the candidate stands and is asked: with what it changes, if a person is to know
 *  (ion_changes.c). */
struct weir_policy_inputs engine_asked(struct engine *engine,
                                       const struct weir_ion_candidate *candidate,
                                       const struct weir_ion_doc_link *link, size_t i_policy);

/** Its way ends: it is not tried and does not serve any more. Its decision has been recorded. */
void engine_roll_back(struct engine *engine, struct weir_ion_candidate *candidate,
                      const char *rule);

/** Record one that no policy was asked for. */
void engine_record_by_hand(struct engine *engine, const struct weir_ion_candidate *candidate,
                           const char *verdict, const char *rule, const char *actor);

/** From now on the link serves this candidate; its decision has been recorded. */
void engine_serve(struct engine *engine, struct weir_ion_candidate *candidate, char *old_state,
                  const char *kind);

/** Ask the policy where the candidate stands, and those behind it as far as it comes. */
void engine_advance(struct engine *engine, const struct weir_ion_doc_link *link,
                    struct weir_ion_candidate *candidate, const struct asked_by *by);

/** The link's chain is another one: what stood in the old one is nowhere, and then at the head of the
 *  new. Both within one step. */
void engine_leave_chain(struct engine *engine, const char *link);
void engine_enter_chain(struct engine *engine, const struct weir_ion_doc_link *link);

/** A version comes to the link, and stands nowhere yet; NULL: it came before. */
struct weir_ion_candidate *engine_come(struct engine *engine, const struct weir_ion_doc_link *link,
                                       struct weir_ion_candidate offered);

/** A version of a model as a candidate that has come nowhere yet. */
struct weir_ion_candidate engine_offer(struct engine *engine, const struct weir_ion_model *model,
                                       const char *made_by);

/** A link that serves nothing serves its default, if it has one that never came to it. */
void engine_serve_default(struct engine *engine, const struct weir_ion_doc_link *link);

/** Ask for those whose time has come. */
void engine_tick_policies(struct engine *engine);

/** When that is; INT64_MAX: never. */
int64_t engine_policies_tick_ms(const struct weir_ion_state *state);

/** A link came (back): let what served last, or the newest model of where it begins, pass
 * it. */
void engine_revive_link(struct engine *engine, const struct weir_ion_doc_link *link);

/** A document was applied: the newest version of the model that the link begins at comes to it. */
void engine_offer_models(struct engine *engine, const struct weir_ion_doc_link *link);

/** Is the event's model the one that this training registers, made by a run of it? */
bool engine_is_made_by(const struct engine *engine, const char *training);

void engine_on_model(struct engine *engine);

/* ion_rollout.c */

/** How it does, in the arena; NULL: the policy tries nothing. */
const struct weir_policy_trial *engine_trial(struct engine *engine,
                                             const struct weir_ion_candidate *candidate,
                                             const struct weir_ion_doc_link *link, size_t i_policy);

/** NULL: the policy compares no outcomes, or nothing is known. */
const struct weir_policy_arms *engine_arms(struct engine *engine,
                                           const struct weir_ion_candidate *candidate,
                                           const struct weir_ion_doc_link *link, size_t i_policy);

/** It gets no requests any more. */
void engine_end_trial(struct weir_ion_candidate *candidate);

/** What is tried on the link is rolled back: nobody would watch it any more. */
void engine_end_trials_of(struct engine *engine, const char *link, const char *why);

/** It waits, and is tried as the verdict says; `before`: as it was. */
void engine_try(struct engine *engine, struct weir_ion_candidate *candidate,
                const struct weir_ion_candidate *before, const struct weir_policy_verdict *told);

/** A policy that watches says what it said before: nothing is to be recorded. */
bool engine_is_unchanged(const struct weir_ion_candidate *candidate,
                         const struct weir_policy *policy, const struct weir_policy_verdict *told);

/** What each link of the document wants of its deployment; in the arena. */
struct weir_ion_wanted *engine_wanted(const struct engine *engine, const struct weir_ion_doc *doc);

/** Ask deployments for what links want that wanted something else, or were not there, before; and for
 *  what links that are gone had given to a trial. */
void engine_shift(struct engine *engine, const struct weir_ion_doc *doc,
                  const struct weir_ion_wanted *before);

/* ion_evaluation.c */

/** What the row says of who is measured, and the event of how it goes; in the arena. NULL: the policy
 *  measures nothing. */
const struct weir_policy_evaluation *engine_evaluation(struct engine *engine,
                                                       const struct weir_ion_candidate *candidate,
                                                       const struct weir_ion_doc_link *link,
                                                       size_t i_policy);

/** It waits as it did `before`, and is measured as the verdict says. */
void engine_measure_candidate(struct engine *engine, struct weir_ion_candidate *candidate,
                              const struct weir_ion_candidate *before,
                              const struct weir_policy_verdict *told);

/** Its measurement was begun, or cannot be. */
void engine_on_measuring(struct engine *engine);

/** The ION goes: nothing is measured any more. If it comes back, that is asked for anew. */
void engine_drop_evaluations(struct engine *engine);

/** Jobs that measure for candidates of the ION, in the arena. */
struct engine_jobs {
    const char **items;
    size_t n;
};
struct engine_jobs engine_evaluation_jobs(const struct engine *engine);

/** Stop those that measured before and that no candidate waits for any more. */
void engine_stop_evaluations(struct engine *engine, const struct engine_jobs *before);

/* ion_review.c */
weir_status engine_on_review(struct engine *engine);
weir_status engine_on_rollback(struct engine *engine);
weir_status engine_on_set(struct engine *engine);

/* ion_deploy.c */

/**
 * Bring a prediction pipeline's deployment up to date with its candidate, gallery, lists and
 * document; a new revision if something changed. Starts the replicas with the first one.
 */
void engine_deploy(struct engine *engine, struct weir_ion_pipeline *pipeline);

/** Its replicas, if there are any, are wanted no more: their job is stopped. */
void engine_stop_replicas(struct engine *engine, struct weir_ion_pipeline *pipeline);

/** The replicas must start anew (their number, GPUs, source or sinks changed). */
void engine_restart_replicas(struct engine *engine, struct weir_ion_pipeline *pipeline);

/** A version of the impostors' dataset: take it if it is newer. */
void engine_see_impostors(struct engine *engine, struct weir_ion_pipeline *pipeline,
                          const struct weir_ion_dataset *dataset);

/** A version of the gallery's dataset: take it if it is newer. */
void engine_see_gallery(struct engine *engine, struct weir_ion_pipeline *pipeline,
                        const struct weir_ion_dataset *dataset);

void engine_on_lists(struct engine *engine);

/* ion_replica.c */

/** Into another state (kept), with a reason or NULL (copied). */
void engine_set_state(struct engine *engine, struct weir_ion_pipeline *pipeline, char *state,
                      const char *reason);

/** The runs that have failed are not to be mended any more. */
void engine_forget_failure(struct engine *engine, const struct weir_ion_pipeline *pipeline);

/** The replicas are gone or go: nothing is served, and no deployment is failing. */
void engine_forget_serving(struct engine *engine, struct weir_ion_pipeline *pipeline);

void engine_on_replica(struct engine *engine);

#endif
