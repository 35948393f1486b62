#include "train/worker.h"
#include "train/report.h"
#include "train/tensorboard.h"

#include "base/clock.h"
#include "comm/elastic.h"

#include <stdlib.h>

#define REPORT_FLUSH_MS 10000

/* ---- saving and measuring ------------------------------------------------------------------- */

static weir_status hand_to_saver(struct worker *worker, struct weir_error *err)
{
    if (worker->saving.saver == NULL) {
        WEIR_TRY(
            train_saver_create(worker->task->config->checkpoint.dir, &worker->saving.saver, err));
    }
    const struct checkpoint_parts parts = worker_parts(worker);
    worker_keep_scale(worker);
    WEIR_TRY(train_saver_save(worker->saving.saver, &parts, &worker->state, err));
    worker->saving.step = worker->state.step;
    return WEIR_OK;
}

static weir_status save_fetched(struct worker *worker, struct weir_error *err)
{
    if (worker->optimizer == NULL) {
        /* Worker 0's file makes the servers' shares valid, and removes older checkpoints: it
         * must be written before they begin with the next. */
        WEIR_TRY(train_saver_wait(worker->saving.saver, err));
        const struct weir_ps_step command = {.step = worker->state.step,
                                             .n_samples = TRAIN_COMMAND_SAVE};
        weir_status status = weir_ps_command(worker->comm, &command);
        if (status != WEIR_OK) {
            return worker_comm_error(worker, status, err);
        }
    }
    WEIR_TRY(worker_gather_states(worker, err));
    return worker->rank != 0 || worker->saving.step == worker->state.step
               ? WEIR_OK
               : hand_to_saver(worker, err);
}

/** All workers together, between two steps. Worker 0's saver then has the checkpoint. */
static weir_status save(struct worker *worker, struct weir_error *err)
{
    worker_set_next_save(worker);
    if (worker->task->config->checkpoint.dir == NULL) {
        return worker_exchange_wait_weights(worker, err);
    }
    WEIR_TRY(worker_exchange_fetch(worker, err));
    WEIR_TRY(save_fetched(worker, err));
    worker_exchange_resume(worker);
    return WEIR_OK;
}

static weir_status measure(struct worker *worker, struct weir_error *err)
{
    if (worker->task->validation == NULL) {
        return WEIR_OK;
    }
    WEIR_TRY(worker_exchange_wait_weights(worker, err));
    const struct train_score_config config = {.dataset = worker->task->validation,
                                              .input = &worker->state.input,
                                              .comm = worker->comm,
                                              .n_threads = worker_decoding_threads(worker)};
    train_average_swap(&worker->average, worker->net);
    weir_status status = train_score_measure(worker->net, &config, &worker->validation.score, err);
    if (status == WEIR_OK) {
        status = worker_best_offer(worker, err);
    }
    train_average_swap(&worker->average, worker->net);
    return status;
}

/* ---- the loop ------------------------------------------------------------------------------- */

/** One small all-reduce before each step: how many pictures count, and what any worker asks for. */
static weir_status vote(struct worker *worker, const struct weir_batch *batch,
                        struct worker_vote *out, struct weir_error *err)
{
    /* Training does not wait for the disk: while a checkpoint is being written the next is not
     * due. */
    bool is_saving = worker->rank == 0 && weir_mono_ms() >= worker->saving.next_ms &&
                     !train_saver_is_busy(worker->saving.saver);
    int64_t votes[] = {batch->n_valid, train_is_stop_asked(), is_saving,
                       weir_comm_n_waiting(worker->comm)};
    weir_status status =
        weir_comm_allreduce(worker->comm, votes, WEIR_ARRAY_LEN(votes), WEIR_COMM_I64);
    if (status != WEIR_OK) {
        return worker_comm_error(worker, status, err);
    }
    *out = (struct worker_vote){.n_labelled = votes[0],
                                .is_stopping = votes[1] > 0,
                                .is_saving = votes[2] > 0,
                                .is_joined = votes[3] > 0};
    return WEIR_OK;
}

void worker_tell(struct worker *worker, const struct train_tick *tick)
{
    train_report_add(worker->reporting.report, tick);
    train_tensorboard_add(worker->reporting.board, tick);
}

static void report_view(struct worker *worker, const struct progress_view *view)
{
    struct train_tick tick = {.step = view->step};
    train_tick_add(&tick, "loss", view->loss);
    train_tick_add(&tick, "accuracy", view->accuracy);
    train_tick_add(&tick, "images_per_second", view->images_per_second);
    train_tick_add(&tick, "learning_rate", view->learning_rate);
    train_tick_add(&tick, "epoch", (double)view->epoch);
    train_tick_add(&tick, "epochs", (double)view->n_epochs);
    train_tick_add(&tick, "progress", (double)view->step / (double)view->n_steps);
    worker_tell(worker, &tick);
}

static void report_score(struct worker *worker)
{
    struct train_tick tick = {.step = worker->state.step};
    if (worker->validation.score.n > 0) {
        train_tick_add(&tick, "validation_loss", worker->validation.score.loss);
        train_tick_add(&tick, "validation_accuracy", worker->validation.score.accuracy);
        if (worker->validation.score.found.is_known) {
            train_tick_add(&tick, "recall", worker->validation.score.found.recall_10);
        }
        worker_tell(worker, &tick);
    }
}

static weir_status call_hook(struct worker *worker, double n_seen, struct weir_error *err)
{
    size_t n_weights = 0;
    WEIR_TRY(worker_exchange_wait_weights(worker, err));
    const float *weights = weir_net_weights(worker->net, &n_weights);
    const struct weir_train_step done = {.rank = (int)worker->task->config->group.rank,
                                         .attempt = (int)worker->task->config->group.attempt,
                                         .n_workers = worker->n_workers,
                                         .step = worker->state.step - 1,
                                         .loss = worker->sums[SUM_LOSS] / n_seen,
                                         .weights = weights,
                                         .n_weights = n_weights};
    worker->hooks->on_step(worker->hooks->context, &done);
    return WEIR_OK;
}

static weir_status report_step(struct worker *worker, double n_seen, bool is_epoch_end,
                               struct weir_error *err)
{
    struct progress_view view;
    if (worker->rank == 0) {
        train_progress_add(&worker->reporting.progress, worker->sums[SUM_LOSS],
                           worker->sums[SUM_CORRECT], n_seen);
        if (train_progress_poll(&worker->reporting.progress, &worker->state, is_epoch_end, &view)) {
            report_view(worker, &view);
        }
    }
    return worker->hooks != NULL && worker->hooks->on_step != NULL ? call_hook(worker, n_seen, err)
                                                                   : WEIR_OK;
}

static weir_status end_epoch(struct worker *worker, struct weir_error *err)
{
    WEIR_TRY(save(worker, err));
    WEIR_TRY(measure(worker, err));
    if (worker->rank == 0) {
        train_progress_epoch(&worker->reporting.progress, &worker->state, &worker->validation.score,
                             worker->validation.is_best);
        report_score(worker);
    }
    worker->has_pending_epoch_end = false;
    return WEIR_OK;
}

static weir_status stop(struct worker *worker, struct weir_error *err)
{
    WEIR_TRY(save(worker, err));
    WEIR_TRY(train_saver_wait(worker->saving.saver, err));
    return weir_error_set(err, WEIR_ERR_CANCELLED, "stopped at step %llu of %llu",
                          (unsigned long long)worker->state.step,
                          (unsigned long long)worker->task->n_steps);
}

/** A step, or what a lost worker cut short. */
static weir_status advance(struct worker *worker, struct weir_error *err)
{
    struct weir_batch batch;
    struct worker_vote verdict = {0};
    if (worker->has_pending_epoch_end) {
        return end_epoch(worker, err);
    }
    WEIR_TRY(worker_next_batch(worker, &batch, err));
    if (worker_is_synchronous(worker, worker->state.step, worker->state.place.position == 0)) {
        WEIR_TRY(vote(worker, &batch, &verdict, err));
    } else {
        verdict.n_labelled = (int64_t)WEIR_MAX(batch.n_valid, 1) * worker->n_workers;
    }
    if (verdict.is_stopping) {
        return stop(worker, err);
    }
    if (verdict.is_joined) {
        return worker_regroup(worker, err);
    }
    if (verdict.is_saving) {
        WEIR_TRY(save(worker, err));
    }
    if (verdict.n_labelled == 0) {
        return weir_error_set(err, WEIR_ERR_CORRUPT,
                              "none of the pictures of step %llu can be read",
                              (unsigned long long)worker->state.step);
    }
    WEIR_TRY(worker_trace_begin_step(worker, err));
    WEIR_TRY(worker_step(worker, &batch, verdict.n_labelled, err));
    WEIR_TRY(worker_trace_end_step(worker, err));
    worker->has_pending_epoch_end = worker->state.place.position == 0;
    WEIR_TRY(report_step(worker, (double)verdict.n_labelled, worker->has_pending_epoch_end, err));
    return worker->has_pending_epoch_end ? end_epoch(worker, err) : WEIR_OK;
}

static weir_status loop(struct worker *worker, struct weir_error *err)
{
    while (worker->state.step < worker->task->n_steps || worker->has_pending_epoch_end) {
        weir_status status = advance(worker, err);
        if (status != WEIR_OK && worker_can_regroup(worker, status)) {
            status = worker_regroup(worker, err);
        }
        WEIR_TRY(status);
    }
    return WEIR_OK;
}

static weir_status run(struct worker *worker, struct weir_error *err)
{
    WEIR_TRY(worker_start(worker, err));
    if (worker->hooks != NULL && worker->hooks->on_ready != NULL) {
        worker->hooks->on_ready(worker->hooks->context, (int)worker->task->config->group.rank);
    }
    if (worker->state.step > 0 && worker->state.place.position == 0 &&
        !worker->task->config->group.join) {
        /* The last thing before this start was an epoch's end: its measurement was lost. */
        WEIR_TRY(measure(worker, err));
    }
    weir_status status = loop(worker, err);
    if (status == WEIR_OK) {
        status = worker_exchange_fetch(worker, err);
    }
    bool can_stop_servers = worker->task->config->group.parameter_servers > 0 &&
                            weir_comm_failure(worker->comm, NULL, NULL) == WEIR_OK;
    if (can_stop_servers && (status == WEIR_OK || status == WEIR_ERR_CANCELLED)) {
        weir_status stopped = weir_ps_stop(worker->comm);
        if (stopped != WEIR_OK) {
            return worker_comm_error(worker, stopped, err);
        }
    }
    WEIR_TRY(status);
    WEIR_TRY(train_saver_wait(worker->saving.saver, err));
    return worker->rank == 0 ? worker_finish(worker, err) : WEIR_OK;
}

void worker_release(struct worker *worker)
{
    train_saver_destroy(worker->saving.saver);
    train_report_stop(worker->reporting.report, REPORT_FLUSH_MS);
    train_tensorboard_close(worker->reporting.board);
    weir_profile_destroy(worker->trace.profile);
    weir_loader_destroy(worker->loader);
    weir_optimizer_destroy(worker->optimizer);
    train_average_fini(&worker->average);
    weir_net_destroy(worker->net);
    free(worker->kept_statistics);
    free(worker->kept_weights);
    free(worker->exchange.buckets);
    free(worker->sums);
}

weir_status train_worker_run(const struct train_task *task, struct weir_comm **comm,
                             const struct weir_train_hooks *hooks, struct weir_error *err)
{
    struct worker worker = {.task = task,
                            .hooks = hooks,
                            .comm = *comm,
                            .rank = weir_comm_rank(*comm),
                            .n_workers = weir_comm_n_workers(*comm),
                            .saving.step = UINT64_MAX};
    weir_status status = run(&worker, err);
    worker_release(&worker);
    *comm = worker.comm;
    return status;
}
