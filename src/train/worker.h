/**
 * A worker: one rank that computes. For the domain's own files, and for bench, which measures it.
 *
 * A worker takes its share of each batch through its net, exchanges gradients with the others by
 * the strategy that was chosen when their group was formed (exchange/exchange.h), and goes on.
 * Between two steps the workers vote on what is to be done: stop, save, take in others. One thread
 * owns a worker; the net's threads call back into step.c and the exchange while a step runs.
 */
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

/** Commands to parameter servers (weir_ps_command), in n_samples: save the own share of the
 *  checkpoint of `step`; or restore its state. */
#define TRAIN_COMMAND_SAVE    0
#define TRAIN_COMMAND_RESTORE (-1)

/** Indices of a step's sums over the workers; running statistics follow. */
enum worker_sum { SUM_LOSS, SUM_CORRECT, SUM_COUNT };

struct exchange_strategy;  /* exchange/exchange.h */
struct train_fused_update; /* exchange/fused.h */
struct train_report;       /* report.h */
struct train_tensorboard;  /* tensorboard.h */
struct train_tick;

/** A range of the gradients that is exchanged at once. */
struct worker_bucket {
    size_t first, n;
    bool is_rest; /**< Worker 0's, too few elements to be shared. */
};

/** The exchange of gradients and weights. */
struct worker_exchange {
    const struct exchange_strategy *strategy; /**< Of this group. */
    bool is_joint;                 /**< Workers see each other's weights and gradients (ps.h). */
    struct weir_ps_step step;      /**< The step, as the update gets it. */
    struct worker_bucket *buckets; /**< Of the step, where each worker has a shard of each. */
    size_t n_buckets;
    size_t n_shared;       /**< Elements of the step in buckets, with a global norm. */
    bool has_begun;        /**< Parameter servers: they know of the step. */
    uint64_t pending_step; /**< The step of the pending weights, if any are. */

    /* exchange/nccl.c */
    bool is_on_gpus;               /**< Gradients stay on the workers' GPUs, which sum them. */
    bool avoids_gpus;              /**< That has failed, while all workers lived. */
    weir_status run_status;        /**< How the step's runs went, for `wait`. */
    struct weir_error gpu_failure; /**< Of this group; OK: none. */
};

/** The next batch, taken and copied to a GPU while a step computes. */
struct worker_ahead {
    const struct weir_batch *batch; /**< Of the step; NULL: none has begun. */
    uint32_t first;                 /**< Slot that the current run begins with. */
    bool has_next;                  /**< The loader was asked for the next batch: */
    weir_status status;             /**< what it answered, */
    struct weir_error error;
    struct weir_batch next; /**< and gave. */
    bool is_filled;         /**< The net has the pictures of the next run. */
};

/** Checkpoints. */
struct worker_saving {
    struct train_saver *saver; /**< Worker 0's, from the first checkpoint on. */
    uint64_t step;             /**< Of the last checkpoint; UINT64_MAX if there is none. */
    int64_t next_ms;           /**< When the next is due (monotonic). */
};

/** Results on validation data. */
struct worker_validation {
    struct train_score score; /**< Of the last measurement; n is 0 if there is none. */
    bool is_best;             /**< Worker 0: no earlier measurement was better (best.c). */
};

/** The recording of some steps. */
struct worker_trace {
    struct weir_profile *profile; /**< Gets the parts of a step; NULL: none is recorded. */
    int64_t n_steps;              /**< Taken by this process, while a trace is still due. */
    uint64_t step_begin_ns;
};

/** Worker 0's: what is shown and reported. */
struct worker_reporting {
    bool has_begun;
    struct train_progress progress;
    struct train_report *report;     /**< NULL: no server gets reports. */
    struct train_tensorboard *board; /**< NULL: no event file is written. */
};

struct worker {
    const struct train_task *task;
    const struct weir_train_hooks *hooks;
    struct weir_comm *comm; /**< NULL between two groups, and if no other could be made. */
    int rank, n_workers;
    struct weir_net *net;
    struct weir_optimizer *optimizer; /**< NULL with parameter servers, which have it. */
    struct train_average average;
    struct weir_loader *loader;
    struct train_state state;
    bool has_state;                  /**< This worker knows where the training stands. */
    bool has_pending_epoch_end;      /**< An epoch is over, but not all that belongs to its end. */
    struct progress_group newcomers; /**< Since the last regroup began: members without a state. */

    /* The step. */
    uint32_t first_image;     /**< Index of this worker's share in the batch. */
    bool updates_in_backward; /**< The weights are new when the backward pass is over
                                   (exchange/fused.h); no gradients are kept. */
    float *gradients;         /**< Of the step; NULL: they stay on the GPU. */
    float *run_gradients;     /**< Of one of its several runs, the net's; NULL: one run. */
    float *statistics;        /**< Running statistics, in the net's weights. */
    size_t n_gradients, n_statistics;
    float *kept_statistics; /**< As the last step left them; runs of the next change them. */
    float *kept_weights;    /**< While there is no net; NULL otherwise. */
    double *sums;           /**< SUM_COUNT + n_statistics. */
    bool is_first_run, is_last_run;
    _Atomic int post_status; /**< First failure of posting, set by the net's threads. */

    struct worker_ahead ahead;
    struct worker_exchange exchange;
    struct worker_saving saving;
    struct worker_validation validation;
    struct worker_trace trace;
    struct worker_reporting reporting;
};

/** What the workers agree on before a step. */
struct worker_vote {
    int64_t n_labelled; /**< Pictures with a label in the whole batch. */
    bool is_stopping, is_saving;
    bool is_joined; /**< A joiner waits to be taken in. */
};

/* ---- start.c: from a communicator to a worker that can take its first step ------------------ */

/**
 * Start: worker 0 finds where the training stands (checkpoint or beginning), and all take it over.
 * A joiner takes over the state of the running group instead. Collective.
 */
weir_status worker_start(struct worker *worker, struct weir_error *err) WEIR_MUST_CHECK;

/* Its parts, for measurements and for a group that is made again. */

/** Make the net, the optimiser and the sums of worker->task, and choose the exchange strategy. The
 *  members before `net` are set. Collective. */
weir_status worker_prepare(struct worker *worker, struct weir_error *err) WEIR_MUST_CHECK;

/** All take over worker 0's state, weights and optimiser. Collective. */
weir_status worker_share_start(struct worker *worker, struct weir_error *err) WEIR_MUST_CHECK;

/** Make the net for this worker's share. Gradients, and for joint steps weights, are in the
 *  communicator's memory. Collective. */
weir_status worker_plan_net(struct worker *worker, struct weir_error *err) WEIR_MUST_CHECK;

/** Make what lives as long as the worker, however often the net is planned: initial weights, their
 *  average, the optimiser. */
weir_status worker_make_state(struct worker *worker, struct weir_error *err) WEIR_MUST_CHECK;

/** All take over root's state, weights, optimiser and average. Collective. */
weir_status worker_share_state(struct worker *worker, int root) WEIR_MUST_CHECK;

/** The net's loss scale to the state, and back: before the net is saved, shared or freed, and after. */
void worker_keep_scale(struct worker *worker);
weir_status worker_set_scale(struct worker *worker) WEIR_MUST_CHECK;

/** A step is done: its running statistics are final. */
void worker_keep_statistics(struct worker *worker);
weir_status worker_start_loader(struct worker *worker, struct weir_error *err) WEIR_MUST_CHECK;

/** Worker 0: tell the server of metrics, and write them into the event file, where there are these. */
void worker_tell(struct worker *worker, const struct train_tick *tick);

/** Worker 0: begin to show and report. */
weir_status worker_start_reports(struct worker *worker, struct weir_error *err) WEIR_MUST_CHECK;
void worker_set_next_save(struct worker *worker);
unsigned worker_decoding_threads(const struct worker *worker);
struct checkpoint_parts worker_parts(const struct worker *worker);

/* ---- members.c: groups that change ---------------------------------------------------------- */

/**
 * Give up the communicator, failed or not, and go on in a group of the members that are left and
 * the joiners: at the step that the furthest of them has reached, with its weights.
 *
 * @return PEER or TIMEOUT if that is impossible; the training can then go on from its checkpoint.
 */
weir_status worker_regroup(struct worker *worker, struct weir_error *err) WEIR_MUST_CHECK;

/** The same with a communicator that is new already. */
weir_status worker_sync_group(struct worker *worker, struct weir_error *err) WEIR_MUST_CHECK;

/** After this failure of a step, is it worth going on in another group? */
bool worker_can_regroup(const struct worker *worker, weir_status status);

/* ---- ahead.c -------------------------------------------------------------------------------- */

/** weir_loader_next, or what was taken ahead. */
weir_status worker_next_batch(struct worker *worker, struct weir_batch *out,
                              struct weir_error *err) WEIR_MUST_CHECK;
/** Before a run: fill the net with slots of the batch from `first` on, unless they are there. */
void worker_bring_run(struct worker *worker, const struct weir_batch *batch, uint32_t first);
/** A weir_net_fill_fn: the next run of the step, or the first of the next step. */
bool worker_fill_ahead(void *context);
/** Before the net or the loader goes: what was taken ahead is dropped. */
void worker_forget_ahead(struct worker *worker);

/* ---- step.c --------------------------------------------------------------------------------- */

/**
 * Take one step on a batch; the state goes on to batch->next. Collective.
 *
 * @param n_labelled  Pictures with a label in the whole batch.
 * @return INVALID if the loss is not a number; a collective's failure. The step counts on success
 *         only.
 */
weir_status worker_step(struct worker *worker, const struct weir_batch *batch, int64_t n_labelled,
                        struct weir_error *err) WEIR_MUST_CHECK;

/** A collective's failure as a sentence. @return Its status. */
weir_status worker_comm_error(const struct worker *worker, weir_status status,
                              struct weir_error *err);

/* ---- exchange/exchange.c: by the chosen strategy -------------------------------------------- */

/** Choose the strategy: once for each group, when net and optimiser are made. */
void worker_exchange_choose(struct worker *worker);

/** Begin a step, whose gradients will be posted. */
void worker_exchange_begin(struct worker *worker, int64_t n_labelled);

/** A range of the step's gradients is complete. Ranges come in order, one at a time, from
 *  threads of the net. It waits for no rank. */
weir_status worker_exchange_post(struct worker *worker, size_t first_elem,
                                 size_t n_elems) WEIR_MUST_CHECK;

/** Wait for the sums of what was posted, where this worker updates from them. */
weir_status worker_exchange_wait(struct worker *worker) WEIR_MUST_CHECK;

/** The step counts: the net has the new weights when it returns, or they are pending; the average
 *  likewise. */
weir_status worker_exchange_finish(struct worker *worker) WEIR_MUST_CHECK;

/** For a worker that updates in its backward pass: the step that has begun. */
struct train_fused_update worker_exchange_fused_update(struct worker *worker);

/** Wait for pending weights. It returns at once if none are. */
weir_status worker_exchange_wait_weights(struct worker *worker,
                                         struct weir_error *err) WEIR_MUST_CHECK;

/** Do the workers meet before this step? Always, except relaxed ones at most steps. */
bool worker_is_synchronous(const struct worker *worker, uint64_t step, bool is_epoch_begin);

/** Get the weights to save or export: f32, with all workers' gradients applied. Collective among
 *  workers that have met. */
weir_status worker_exchange_fetch(struct worker *worker, struct weir_error *err) WEIR_MUST_CHECK;

/** After fetch: back to the weights that training goes on with. */
void worker_exchange_resume(struct worker *worker);

/** Where the optimiser's state is sharded over workers: get all of it. Collective. */
weir_status worker_gather_states(struct worker *worker, struct weir_error *err) WEIR_MUST_CHECK;

/* ---- trace.c: worker 0 with config->profile ------------------------------------------------- */

/** Record some steps, and write the file after the last of them. */
weir_status worker_trace_begin_step(struct worker *worker, struct weir_error *err) WEIR_MUST_CHECK;
weir_status worker_trace_end_step(struct worker *worker, struct weir_error *err) WEIR_MUST_CHECK;

/* ---- rank.c, worker.c, server.c: lives of ranks --------------------------------------------- */

/** Be the rank of task->config. Signals are blocked. */
weir_status train_rank_run(struct train_task *task, const struct weir_train_hooks *hooks,
                           struct weir_error *err) WEIR_MUST_CHECK;

/** Free what the worker owns; also after a failed worker_start or worker_prepare. */
void worker_release(struct worker *worker);

/** Train, from the group that was joined to the finished model. *comm is another one after a
 *  regroup, or NULL. */
weir_status train_worker_run(const struct train_task *task, struct weir_comm **comm,
                             const struct weir_train_hooks *hooks,
                             struct weir_error *err) WEIR_MUST_CHECK;

/** Be a parameter server until the workers stop it. */
weir_status train_server_run(const struct train_task *task, struct weir_comm *comm,
                             const struct weir_train_hooks *hooks,
                             struct weir_error *err) WEIR_MUST_CHECK;

/* ---- best.c, finish.c: the model ------------------------------------------------------------ */

/**
 * With --keep best: keep the net, whose weights have just been measured, if it is the best one so
 * far. It does nothing on workers other than 0. Cost: writing a model file, while the training
 * waits.
 *
 * @return What weir_net_file_save does; then the file is as before.
 */
weir_status worker_best_offer(struct worker *worker, struct weir_error *err) WEIR_MUST_CHECK;

/**
 * Put the best weights into the net.
 *
 * @param out_metrics  Measured with them; the caller's.
 * @param out_step     After how many steps.
 * @return NOT_FOUND if the file is gone; what reading gives. Nothing is the caller's on error.
 */
weir_status worker_best_take(struct worker *worker, json_t **out_metrics, uint64_t *out_step,
                             struct weir_error *err) WEIR_MUST_CHECK;

/** Worker 0 after the last step: baseline, model file, registration. */
weir_status worker_finish(struct worker *worker, struct weir_error *err) WEIR_MUST_CHECK;

/** Results of the last epoch. The caller's. */
json_t *worker_metrics(const struct worker *worker);

/* ---- signals.c ------------------------------------------------------------------------------ */

/** Keep SIGINT and SIGTERM from ending the process, so that train_is_stop_asked sees them. */
void train_block_signals(void);

/**
 * Abort on signal: between begin and end a stop signal ends the process at once, with the exit
 * status of CANCELLED, for a wait that has nothing to save. Signals must be blocked.
 */
weir_status train_abort_on_signal_begin(pthread_t *out, struct weir_error *err) WEIR_MUST_CHECK;
void train_abort_on_signal_end(pthread_t thread);
bool train_is_stop_asked(void);

/** Wait so long, or until a stop is asked: true then. */
bool train_pause(int64_t ms);

#endif
