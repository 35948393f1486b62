/** A worker: one rank that computes. For the domain's own files. */
#ifndef WEIR_TRAIN_WORKER_H
#define WEIR_TRAIN_WORKER_H

#include "comm/comm.h"
#include "comm/ps.h"
#include "nn/profile.h"
#include "train/average.h"
#include "train/checkpoint.h"
#include "train/progress.h"
#include "train/report.h"
#include "train/saver.h"
#include "train/score.h"
#include "train/task.h"
#include "train/train.h"

#include <pthread.h>
#include <stdatomic.h>

/** Places of a step's sums over the workers; running statistics follow. */
enum worker_sum { SUM_LOSS, SUM_CORRECT, SUM_COUNT };

struct worker {
    const struct train_task *task;
    const struct weir_train_hooks *hooks;
    struct weir_comm *comm;
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

    float *gradients;     /**< Of the step. */
    float *run_gradients; /**< Of one of its several runs, the net's; NULL: one run is the step. */
    float *statistics;    /**< Running statistics in the weight slab. */
    size_t n_gradients, n_statistics;
    double *sums; /**< SUM_COUNT + n_statistics. */

    struct weir_profile *profile; /**< Told of the parts of a step; NULL: nobody is. */
    int64_t n_steps_taken;        /**< By this process, while a trace is still to be written. */
    uint64_t step_begin_ns;

    /* Between worker_step and the net's threads. */
    float share; /**< The run's part of the batch's labelled pictures. */
    bool is_first_run, is_last_run;
    _Atomic int post_status; /**< First failure of posting. */

    /* Worker 0's. */
    struct train_progress progress;
    struct train_report *report; /**< NULL if nobody is reported to. */
};

/** What the workers agree on before a step. */
struct worker_vote {
    int64_t n_labelled; /**< Of the whole batch. */
    bool is_stopping, is_saving;
};

/** step.c: one step on a batch; state goes on to batch->next. */
weir_status worker_step(struct worker *worker, const struct weir_batch *batch, int64_t n_labelled,
                        struct weir_error *err) WEIR_MUST_CHECK;

/** A collective's failure as a sentence. */
weir_status worker_comm_error(const struct worker *worker, weir_status status,
                              struct weir_error *err);

/** worker.c: the net, the optimiser and the sums of worker->task; the members before `net` are set.
 *  Collective. */
weir_status worker_prepare(struct worker *worker, struct weir_error *err) WEIR_MUST_CHECK;

/** trace.c: worker 0 with config->profile: the record of some steps, begun and written in time. */
weir_status worker_trace_begin_step(struct worker *worker, struct weir_error *err) WEIR_MUST_CHECK;
weir_status worker_trace_end_step(struct worker *worker, struct weir_error *err) WEIR_MUST_CHECK;

/** worker.c: everybody takes over worker 0's state, weights and optimiser. */
weir_status worker_share_start(struct worker *worker, struct weir_error *err) WEIR_MUST_CHECK;

/** worker.c: free what the worker owns; after a failed worker_prepare too. */
void worker_release(struct worker *worker);

/** worker.c: everything, from joining to the trained model. */
weir_status train_worker_run(const struct train_task *task, struct weir_comm *comm,
                             const struct weir_train_hooks *hooks,
                             struct weir_error *err) WEIR_MUST_CHECK;

/** finish.c: worker 0 after the last step: baseline, model file, registration. */
weir_status worker_finish(struct worker *worker, struct weir_error *err) WEIR_MUST_CHECK;

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
