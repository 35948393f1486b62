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

struct ion_step {
    struct weir_ion_state *state;
    const struct weir_ion_event *event;
    int64_t now_ms;
    struct weir_arena *arena;
    struct weir_ion_actions *actions;
    struct weir_error *err;
};

/** Is `text` (NULL: it is none) this state? */
bool step_is(const char *text, const char *state);

void step_act(struct ion_step *step, struct weir_ion_action action);

/** A text in the step's arena. */
char *step_text(const struct ion_step *step, const char *format, ...) WEIR_PRINTF(2, 3);

/** To the event log, in the name of who caused the event. */
void step_tell(struct ion_step *step, const char *kind, const char *format, ...) WEIR_PRINTF(3, 4);
void step_vtell(struct ion_step *step, const char *kind, const char *format, va_list args)
    WEIR_PRINTF(3, 0);

/** The cause of the alert with that key is gone. */
void step_resolve(struct ion_step *step, const char *key);

/** Who caused the event; "system" if nobody is named. */
const char *step_actor(const struct ion_step *step);

/** The pipeline of that name that is not removed; NULL if there is none. */
struct weir_ion_pipeline *step_pipeline(struct ion_step *step, const char *name);

/** Add a row in its place; earlier pointers into the array are void. */
struct weir_ion_pipeline *step_add_pipeline(struct ion_step *step,
                                            struct weir_ion_pipeline pipeline);
struct weir_ion_candidate *step_add_candidate(struct ion_step *step,
                                              struct weir_ion_candidate candidate);
struct weir_ion_trigger *step_add_trigger(struct ion_step *step, struct weir_ion_trigger trigger);

/* ion_apply.c */
void step_on_applied(struct ion_step *step);
weir_status step_on_deleted(struct ion_step *step);

/* ion_train.c */

/** Start a run, or remember that a further one is wanted. */
void step_trigger(struct ion_step *step, struct weir_ion_pipeline *pipeline, const char *cause);

/** A pipeline that has ended a run, or was paused, begins the next of a row. What triggered it meanwhile
 *  begins with the end of the step (step_start_pending). Not while it is paused. */
void step_go_on(struct ion_step *step, struct weir_ion_pipeline *pipeline);

/** Is a run of it in progress? */
bool step_is_running(const struct weir_ion_pipeline *pipeline);

/** Start those that have waited and wait for nothing any more. */
void step_start_pending(struct ion_step *step);

/** What a run of the pipeline in progress does is wanted no more: its job is stopped. */
void step_stop_run(struct ion_step *step, struct weir_ion_pipeline *pipeline);

/** The state after a run that no other follows yet. */
void step_leave_run(struct ion_step *step, struct weir_ion_pipeline *pipeline);

void step_on_started(struct ion_step *step);
void step_on_ended(struct ion_step *step);

/** A preparation's dataset has the version that its run has made, or had it before. */
void step_on_frozen(struct ion_step *step);

/* ion_measure.c */

/** Does the pipeline measure models, and has none come? */
bool step_lacks_model(const struct ion_step *step, const struct weir_ion_pipeline *pipeline);

/** The event's model comes to the pipelines that measure it. */
void step_measure_model(struct ion_step *step);

/** A document was applied: so do the newest versions of what its links begin at. */
void step_apply_measured(struct ion_step *step);

/* ion_restart.c */

/**
 * A run of the pipeline, or its replicas, have ended: by its rule it may start again later.
 * @return Whether the failure is one that is only told if it goes on.
 */
bool step_restart_later(struct ion_step *step, struct weir_ion_pipeline *pipeline, bool has_failed);

void step_tick_restarts(struct ion_step *step);

/** When one is due; INT64_MAX: never. */
int64_t step_restarts_tick_ms(const struct weir_ion_state *state, int64_t now_ms);

/* ion_sandbox.c */

/** A document is applied: an ION that is new, or was deleted, gets its mode; another keeps it. */
void step_choose_mode(struct ion_step *step);
weir_status step_on_run(struct ion_step *step);
weir_status step_on_promoted(struct ion_step *step);

/** A training has ended, or goes on after a pause, and none waits: start the next of those that were asked
 *  for at once. */
void step_run_again(struct ion_step *step, struct weir_ion_pipeline *pipeline);

/* ion_trigger.c */

/** Bring the rows of triggers in line with the document: new ones are armed now. The state gets copies
 *  of its pipelines and triggers before one of them changes. */
void step_arm_triggers(struct ion_step *step);

/** The pipeline's manual trigger, asked for who caused the event; NULL: it has none. Changes nothing. */
struct weir_ion_trigger *step_ask_by_hand(struct ion_step *step,
                                          const struct weir_ion_pipeline *pipeline,
                                          struct weir_trigger_inputs *inputs,
                                          struct weir_trigger_verdict *told);

/** It fired: the firing is recorded, and the pipeline runs, now or after the run that is in progress.
 *  @param cause  What the run says of it. */
void step_fire(struct ion_step *step, struct weir_ion_trigger *row,
               struct weir_ion_pipeline *pipeline, const struct weir_trigger_inputs *inputs,
               const char *reason, const char *cause);

/** The pipeline has another dataset: nothing of that was seen. */
void step_forget_dataset(struct ion_step *step, struct weir_ion_pipeline *pipeline);

/** A version of the pipeline's dataset: its triggers see it, and may fire. */
void step_see_dataset(struct ion_step *step, struct weir_ion_pipeline *pipeline,
                      const struct weir_ion_dataset *dataset);

/** The pipeline begins to run: what its triggers have seen of its dataset is used up. */
void step_use_data(struct ion_step *step, const struct weir_ion_pipeline *pipeline);

void step_tick_triggers(struct ion_step *step);

/**
 * When a trigger needs a tick: when it will fire by what the engine knows; now, if it has no row yet,
 * or if a schedule's stored time is later than the schedule says, because the wall clock was set
 * back; INT64_MAX = never.
 */
int64_t step_triggers_tick_ms(const struct weir_ion_state *state, int64_t now_ms);

weir_status step_on_trigger(struct ion_step *step);

/* ion_pause.c */

/** Why a pipeline that is paused does nothing; NULL: it is not paused. */
char *step_pause_reason(struct ion_step *step, const struct weir_ion_pipeline *pipeline);
weir_status step_on_pause(struct ion_step *step);
weir_status step_on_resume(struct ion_step *step);

/* ion_policy.c */

/** Whom a decision's row names if a policy made it. */
#define WEIR_ACTOR_POLICY "policy"

/** Why a policy is asked. */
struct asked_by {
    const char *actor;       /**< For the row. */
    const char *rejected_by; /**< A person who rejects the candidate; NULL: nobody does. */
};

/** The version of the candidate's model that its link serves; 0: nothing, or another model. */
int64_t step_serving_version(struct ion_step *step, const struct weir_ion_candidate *candidate);

/** Does it stand at a policy: does it wait for people or a time? */
bool step_is_standing(const struct weir_ion_candidate *candidate);

/** What a policy of the link looks at; of no link: what can be seen without one. */
struct weir_policy_inputs step_inputs(struct ion_step *step,
                                      const struct weir_ion_candidate *candidate,
                                      const struct weir_ion_doc_link *link, size_t i_policy);

/** The same where the candidate stands and is asked: with what it changes, if a person is to know
 *  (ion_changes.c). */
struct weir_policy_inputs step_asked(struct ion_step *step,
                                     const struct weir_ion_candidate *candidate,
                                     const struct weir_ion_doc_link *link, size_t i_policy);

/** Its way ends: it is not tried and does not serve any more. Its decision has been recorded. */
void step_roll_back(struct ion_step *step, struct weir_ion_candidate *candidate, const char *rule);

/** Record one that no policy was asked for. */
void step_record_by_hand(struct ion_step *step, const struct weir_ion_candidate *candidate,
                         const char *verdict, const char *rule, const char *actor);

/** From now on the link serves this candidate; its decision has been recorded. */
void step_serve(struct ion_step *step, struct weir_ion_candidate *candidate, char *old_state,
                const char *kind);

/** Ask the policy where the candidate stands, and those behind it as far as it comes. */
void step_advance(struct ion_step *step, const struct weir_ion_doc_link *link,
                  struct weir_ion_candidate *candidate, const struct asked_by *by);

/** The link's chain is another one: what stood in the old one is nowhere, and then at the head of the
 *  new. Both within one step. */
void step_leave_chain(struct ion_step *step, const char *link);
void step_enter_chain(struct ion_step *step, const struct weir_ion_doc_link *link);

/** A version comes to the link, and stands nowhere yet; NULL: it came before. */
struct weir_ion_candidate *step_come(struct ion_step *step, const struct weir_ion_doc_link *link,
                                     struct weir_ion_candidate offered);

/** A version of a model as a candidate that has come nowhere yet. */
struct weir_ion_candidate step_offer(struct ion_step *step, const struct weir_ion_model *model,
                                     const char *made_by);

/** A link that serves nothing serves its default, if it has one that never came to it. */
void step_serve_default(struct ion_step *step, const struct weir_ion_doc_link *link);

/** Ask for those whose time has come. */
void step_tick_policies(struct ion_step *step);

/** When that is; INT64_MAX: never. */
int64_t step_policies_tick_ms(const struct weir_ion_state *state);

/** A link came (back): let what served last, or the newest model of where it begins, pass
 * it. */
void step_revive_link(struct ion_step *step, const struct weir_ion_doc_link *link);

/** A document was applied: the newest version of the model that the link begins at comes to it. */
void step_offer_models(struct ion_step *step, const struct weir_ion_doc_link *link);

/** Is the event's model the one that this training registers, made by a run of it? */
bool step_is_made_by(const struct ion_step *step, const char *training);

void step_on_model(struct ion_step *step);

/* ion_rollout.c */

/** How it does, in the arena; NULL: the policy tries nothing. */
const struct weir_policy_trial *step_trial(struct ion_step *step,
                                           const struct weir_ion_candidate *candidate,
                                           const struct weir_ion_doc_link *link, size_t i_policy);

/** NULL: the policy compares no outcomes, or nothing is known. */
const struct weir_policy_arms *step_arms(struct ion_step *step,
                                         const struct weir_ion_candidate *candidate,
                                         const struct weir_ion_doc_link *link, size_t i_policy);

/** It gets no requests any more. */
void step_end_trial(struct weir_ion_candidate *candidate);

/** What is tried on the link is rolled back: nobody would watch it any more. */
void step_end_trials_of(struct ion_step *step, const char *link, const char *why);

/** It waits, and is tried as the verdict says; `before`: as it was. */
void step_try(struct ion_step *step, struct weir_ion_candidate *candidate,
              const struct weir_ion_candidate *before, const struct weir_policy_verdict *told);

/** A policy that watches says what it said before: nothing is to be recorded. */
bool step_is_unchanged(const struct weir_ion_candidate *candidate, const struct weir_policy *policy,
                       const struct weir_policy_verdict *told);

/** What each link of the document wants of its deployment; in the arena. */
struct weir_ion_wanted *step_wanted(const struct ion_step *step, const struct weir_ion_doc *doc);

/** Ask deployments for what links want that wanted something else, or were not there, before; and for
 *  what links that are gone had given to a trial. */
void step_shift(struct ion_step *step, const struct weir_ion_doc *doc,
                const struct weir_ion_wanted *before);

/* ion_evaluation.c */

/** What the row says of who is measured, and the event of how it goes; in the arena. NULL: the policy
 *  measures nothing. */
const struct weir_policy_evaluation *step_evaluation(struct ion_step *step,
                                                     const struct weir_ion_candidate *candidate,
                                                     const struct weir_ion_doc_link *link,
                                                     size_t i_policy);

/** It waits as it did `before`, and is measured as the verdict says. */
void step_measure_candidate(struct ion_step *step, struct weir_ion_candidate *candidate,
                            const struct weir_ion_candidate *before,
                            const struct weir_policy_verdict *told);

/** Its measurement was begun, or cannot be. */
void step_on_measuring(struct ion_step *step);

/** The ION goes: nothing is measured any more. If it comes back, that is asked for anew. */
void step_drop_evaluations(struct ion_step *step);

/** Jobs that measure for candidates of the ION, in the arena. */
struct step_jobs {
    const char **items;
    size_t n;
};
struct step_jobs step_evaluation_jobs(const struct ion_step *step);

/** Stop those that measured before and that no candidate waits for any more. */
void step_stop_evaluations(struct ion_step *step, const struct step_jobs *before);

/* ion_review.c */
weir_status step_on_review(struct ion_step *step);
weir_status step_on_rollback(struct ion_step *step);
weir_status step_on_set(struct ion_step *step);

/* ion_deploy.c */

/**
 * Bring a prediction pipeline's deployment up to date with its candidate, gallery, lists and
 * document; a new revision if something changed. Starts the replicas with the first one.
 */
void step_deploy(struct ion_step *step, struct weir_ion_pipeline *pipeline);

/** Why the detector of a prediction pipeline is not there; NULL: it is, or its stages have none. */
char *step_lack_of_detector(struct ion_step *step, const struct weir_ion_pipeline *pipeline);

/** Its replicas, if there are any, are wanted no more: their job is stopped. */
void step_stop_replicas(struct ion_step *step, struct weir_ion_pipeline *pipeline);

/** The replicas must start anew (their number, GPUs, source or sinks changed). */
void step_restart_replicas(struct ion_step *step, struct weir_ion_pipeline *pipeline);

/** This version of its detector is the one to serve, if it is another than before. */
void step_see_detector(struct ion_step *step, struct weir_ion_pipeline *pipeline,
                       const struct weir_ion_model *model);

/** A version of the impostors' dataset: take it if it is newer. */
void step_see_impostors(struct ion_step *step, struct weir_ion_pipeline *pipeline,
                        const struct weir_ion_dataset *dataset);

/** A version of the gallery's dataset: take it if it is newer. */
void step_see_gallery(struct ion_step *step, struct weir_ion_pipeline *pipeline,
                      const struct weir_ion_dataset *dataset);

void step_on_lists(struct ion_step *step);

/* ion_replica.c */

/** Into another state (kept), with a reason or NULL (copied). */
void step_set_state(struct ion_step *step, struct weir_ion_pipeline *pipeline, char *state,
                    const char *reason);

/** The runs that have failed are not to be mended any more. */
void step_forget_failure(struct ion_step *step, const struct weir_ion_pipeline *pipeline);

/** The replicas are gone or go: nothing is served, and no deployment is failing. */
void step_forget_serving(struct ion_step *step, struct weir_ion_pipeline *pipeline);

void step_on_replica(struct ion_step *step);

#endif
