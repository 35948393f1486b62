/** A worker: one rank that computes. For the domain's own files. */
#ifndef WEIR_TRAIN_WORKER_H
#define WEIR_TRAIN_WORKER_H

#include "comm/comm.h"
#include "comm/ps.h"
#include "nn/profile.h"
#include "train/average.h"
#include "train/checkpoint.h"
#include "train/progress.h"
#include "train/saver.h"
#include "train/score.h"
#include "train/task.h"
#include "train/train.h"

#include <pthread.h>
#include <stdatomic.h>

/** What parameter servers are told between steps, in n_samples: save your share of the checkpoint
 * of `step`; or take up its state. */
#define TRAIN_TELL_SAVE    0
#define TRAIN_TELL_RESTORE (-1)

/** Places of a step's sums over the workers; running statistics follow. */
enum worker_sum { SUM_LOSS, SUM_CORRECT, SUM_COUNT };

/** A range of the gradients that is exchanged at once. */
struct worker_bucket {
    size_t first, n;
    bool is_rest; /**< Worker 0's, too few to be shared. */
};

struct train_renewal; /* exchange/renew.h */
struct train_report;  /* report.h */

struct worker {
    const struct train_task *task;
    const struct weir_train_hooks *hooks;
    struct weir_comm *comm; /**< NULL for the time between two, and if no other could be made. */
    int rank, n_workers;
    uint32_t first_image; /**< Place of this worker's share in the batch. */
    struct weir_net *net;
    struct weir_optimizer *optimizer; /**< NULL with parameter servers. */
    struct train_average average;
    struct weir_loader *loader;
    struct train_state state;
    struct train_saver *saver; /**< Worker 0's, from the first checkpoint on. */
    uint64_t saved_step;       /**< Of the last checkpoint; UINT64_MAX if there is none. */
    int64_t next_save_ms;      /**< Monotonic. */
    struct train_score score;  /**< Of the last measurement; n is 0 if there is none. */
    bool is_best;              /**< Worker 0: no measurement before it was better (best.c). */
    bool owes_epoch_end; /**< An epoch is over, and not all that belongs to its end is done. */
    bool has_state;      /**< This worker knows where the training stands. */
    struct progress_group newcomers; /**< Since the last regroup began: who did not know. */

    /** Nobody else has a part in the step: weights and average are new when the backward pass is
     *  over. There are no gradients then. */
    bool updates_in_backward;
    bool is_joint;        /**< The workers see each other's weights and gradients (ps.h). */
    float *gradients;     /**< Of the step. */
    float *run_gradients; /**< Of one of its several runs, the net's; NULL: one run is the step. */
    float *statistics;    /**< Running statistics in the weight slab. */
    size_t n_gradients, n_statistics;
    float *kept_statistics; /**< As the last step left them: the next one's runs change them. */
    float *kept_weights;    /**< While there is no net; NULL otherwise. */
    double *sums;           /**< SUM_COUNT + n_statistics. */
    struct worker_bucket *buckets; /**< Of the step, where each worker has a part of each. */
    size_t n_buckets;
    size_t n_shared; /**< Elements of the step that are in buckets, where there are norms. */
    struct weir_ps_step ps_step; /**< The step, as who makes the new weights is told of it. */
    bool has_posted;             /**< Of the step, to servers. */
    uint64_t arriving_step;      /**< Whose weights are under way, if any are. */

    struct weir_profile *profile; /**< Told of the parts of a step; NULL: nobody is. */
    int64_t n_steps_taken;        /**< By this process, while a trace is still to be written. */
    uint64_t step_begin_ns;

    /* Between worker_step and the net's threads. */
    bool is_first_run, is_last_run;
    _Atomic int post_status; /**< First failure of posting. */

    /* Worker 0's. */
    struct train_progress progress;
    bool has_reports;            /**< progress and report have been started. */
    struct train_report *report; /**< NULL if nobody is reported to. */
};

/** What the workers agree on before a step. */
struct worker_vote {
    int64_t n_labelled; /**< Of the whole batch. */
    bool is_stopping, is_saving;
    bool is_joined; /**< Somebody waits to be taken in. */
};

/**
 * start.c: from a communicator to a worker that can take its first step. Worker 0 finds where the
 * training stands, and everybody takes it over; a newcomer to a running training settles.
 */
weir_status worker_start(struct worker *worker, struct weir_error *err) WEIR_MUST_CHECK;

/* start.c, in parts: for measurements, and for a group that is made anew. */

/** The net, the optimiser and the sums of worker->task; the members before `net` are set.
 *  Collective. */
weir_status worker_prepare(struct worker *worker, struct weir_error *err) WEIR_MUST_CHECK;

/** Everybody takes over worker 0's state, weights and optimiser. */
weir_status worker_share_start(struct worker *worker, struct weir_error *err) WEIR_MUST_CHECK;

/** The net for this worker's share, gradients and, for joint steps, weights in the communicator's
 *  memory. Collective. */
weir_status worker_plan_net(struct worker *worker, struct weir_error *err) WEIR_MUST_CHECK;

/** What lives as long as the worker, however often the net is planned: initial weights, an average
 *  of them, the optimiser. */
weir_status worker_make_state(struct worker *worker, struct weir_error *err) WEIR_MUST_CHECK;

/** Everybody takes over root's place, weights, optimiser and average. Collective. */
weir_status worker_share_state(struct worker *worker, int root) WEIR_MUST_CHECK;

/** Running statistics are final: a step is done. */
void worker_keep_statistics(struct worker *worker);
weir_status worker_start_loader(struct worker *worker, struct weir_error *err) WEIR_MUST_CHECK;

/** Worker 0: what is shown and reported. */
weir_status worker_start_reports(struct worker *worker, struct weir_error *err) WEIR_MUST_CHECK;
void worker_set_next_save(struct worker *worker);
unsigned worker_decoding_threads(const struct worker *worker);
struct checkpoint_parts worker_parts(const struct worker *worker);

/**
 * members.c: give up the communicator, failed or not, and go on in a group of those who are left
 * and those who have come: at the step that the furthest of them has reached, with its weights.
 * @return PEER, TIMEOUT if that cannot be, and the last checkpoint is the way on.
 */
weir_status worker_regroup(struct worker *worker, struct weir_error *err) WEIR_MUST_CHECK;

/** The same with a communicator that is new already. */
weir_status worker_settle(struct worker *worker, struct weir_error *err) WEIR_MUST_CHECK;

/** After this failure of a step, is it worth going on in another group? */
bool worker_can_regroup(const struct worker *worker, weir_status status);

/** step.c: one step on a batch; state goes on to batch->next. */
weir_status worker_step(struct worker *worker, const struct weir_batch *batch, int64_t n_labelled,
                        struct weir_error *err) WEIR_MUST_CHECK;

/* exchange.c: from the workers' gradients to everybody's new weights. */

/*
 * With parameter servers a step's new weights are *under way* from its worker_exchange_finish on:
 * the next step's forward pass takes each layer's when they are there, and has all when its
 * backward pass begins, which posts into the same memory. Who looks at all weights in between
 * (checkpoints, measurements, hooks, the end) calls worker_exchange_arrive first. Whether any are
 * under way only the net knows (weir_net_set_pending_weights).
 *
 * A loss that is no number ends the training before its step's finish: the weights that it would
 * have made are under way then, nobody takes them, and no checkpoint is written.
 */

/*
 * Workers of one host renew each other's weights jointly (ps.h, joint steps) when the backward pass
 * is over, unless the group is elastic, or norms are needed: nothing is posted then. A worker that
 * is lost meanwhile leaves weights that are partly new, and the training starts again from its
 * checkpoint.
 */

/*
 * Workers that share the update of an optimiser that needs norms (weir_optimizer_needs_all) sum
 * while the backward pass runs, as others do, but renew and gather in worker_exchange_finish: a
 * norm needs the last gradient. Their parts end where the optimiser's tiles do; the few elements
 * behind the last that can be shared so are worker 0's.
 */

/** A step begins: its gradients will be posted. */
void worker_exchange_begin(struct worker *worker, int64_t n_labelled);
/** This range of the step's gradients is complete. Ranges come in order, one at a time. */
weir_status worker_exchange_post(struct worker *worker, size_t first_elem,
                                 size_t n_elems) WEIR_MUST_CHECK;
/** Wait for the sums of what was posted, where this worker makes new weights of them. */
weir_status worker_exchange_wait(struct worker *worker) WEIR_MUST_CHECK;
/** The step that has begun, as who updates in backward is told of it. */
struct train_renewal worker_exchange_renewal(struct worker *worker);
/** What was posted is done, and the step counts: the net has the new weights after it, or they are
 *  under way; the average too. */
weir_status worker_exchange_finish(struct worker *worker) WEIR_MUST_CHECK;
/** All weights are the last step's. At once if none are under way. */
weir_status worker_exchange_arrive(struct worker *worker, struct weir_error *err) WEIR_MUST_CHECK;
/** Do the workers come together before this step? Always, but for relaxed ones in between. */
bool worker_is_meeting(const struct worker *worker, uint64_t step, bool is_epoch_begin);
/** Workers that have come together: the servers' weights, with everybody's gradients and as f32, to
 *  save or export. Collective. */
weir_status worker_exchange_settle(struct worker *worker, struct weir_error *err) WEIR_MUST_CHECK;
/** The weights to go on with after it. */
void worker_exchange_go_on(struct worker *worker);
/** Where workers share the optimiser's state: all of it on every worker. Collective. */
weir_status worker_gather_states(struct worker *worker, struct weir_error *err) WEIR_MUST_CHECK;

/** A collective's failure as a sentence. */
weir_status worker_comm_error(const struct worker *worker, weir_status status,
                              struct weir_error *err);

/** trace.c: worker 0 with config->profile: the record of some steps, begun and written in time. */
weir_status worker_trace_begin_step(struct worker *worker, struct weir_error *err) WEIR_MUST_CHECK;
weir_status worker_trace_end_step(struct worker *worker, struct weir_error *err) WEIR_MUST_CHECK;

/** rank.c: be task->config's rank. Signals are blocked. */
weir_status train_rank_run(struct train_task *task, const struct weir_train_hooks *hooks,
                           struct weir_error *err) WEIR_MUST_CHECK;

/** worker.c: free what the worker owns; after a failed worker_start or worker_prepare too. */
void worker_release(struct worker *worker);

/** worker.c: everything, from the group that was joined to the trained model. *comm is another
 * after a regroup, or NULL. */
weir_status train_worker_run(const struct train_task *task, struct weir_comm **comm,
                             const struct weir_train_hooks *hooks,
                             struct weir_error *err) WEIR_MUST_CHECK;

/**
 * best.c, where --keep is best: the net, whose weights have just been measured, becomes the best
 * one so far if it is. Of others than worker 0 nothing is done. Cost: writing a model file, while
 * the training waits.
 * @return what weir_net_file_save does, and then the file is as before.
 */
weir_status worker_best_offer(struct worker *worker, struct weir_error *err) WEIR_MUST_CHECK;

/** The net's weights become the best ones. @param out_metrics  Measured with them; the caller's.
 *  @param out_step  After how many steps. @return NOT_FOUND if the file is gone; what reading
 *  gives; on error nothing is the caller's. */
weir_status worker_best_take(struct worker *worker, json_t **out_metrics, uint64_t *out_step,
                             struct weir_error *err) WEIR_MUST_CHECK;

/** finish.c: worker 0 after the last step: baseline, model file, registration. */
weir_status worker_finish(struct worker *worker, struct weir_error *err) WEIR_MUST_CHECK;

/** What the last epoch came to. The caller's. */
json_t *worker_metrics(const struct worker *worker);

/** server.c: a parameter server, until the workers stop it. */
weir_status train_server_run(const struct train_task *task, struct weir_comm *comm,
                             const struct weir_train_hooks *hooks,
                             struct weir_error *err) WEIR_MUST_CHECK;

/** signals.c: keep SIGINT and SIGTERM from ending the process; see whether one came. */
void train_block_signals(void);

/**
 * Between begin and end a stop signal ends the process at once, with the status of CANCELLED: for a
 * wait that has nothing to save. Signals must be blocked.
 */
weir_status train_hasty_begin(pthread_t *out, struct weir_error *err) WEIR_MUST_CHECK;
void train_hasty_end(pthread_t thread);
bool train_is_stop_asked(void);
/** Wait so long, unless a stop is asked: true then. */
bool train_pause(int64_t ms);

#endif
