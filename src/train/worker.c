#include "train/worker.h"

#include "base/clock.h"
#include "base/log.h"

#include <stdlib.h>
#include <string.h>

#define REPORT_FLUSH_MS 10000

/* ---- making ------------------------------------------------------------------------------- */

struct gradient_source {
    struct weir_comm *comm;
    weir_status status;
};

static void *alloc_gradients(void *context, size_t size_bytes)
{
    struct gradient_source *source = context;
    void *memory = NULL;
    source->status = weir_comm_alloc(source->comm, size_bytes, &memory);
    return source->status == WEIR_OK ? memory : NULL;
}

static weir_status make_net(struct worker *worker, struct weir_error *err)
{
    const struct train_task *task = worker->task;
    struct gradient_source source = {.comm = worker->comm};
    struct weir_net_config config =
        train_net_config(task, (uint32_t)worker->rank, (uint32_t)worker->n_workers);
    worker->first_image = config.first_image;
    const bool has_runs = task->config->micro_batches > 1;
    if (!has_runs) {
        config.alloc_gradients = alloc_gradients;
        config.alloc_context = &source;
    }
    weir_status status = weir_net_create(task->graph, &config, &worker->net, err);
    if (source.status != WEIR_OK) {
        return worker_comm_error(worker, source.status, err);
    }
    WEIR_TRY(status);
    size_t n_weights = 0;
    float *weights = weir_net_weights(worker->net, &n_weights);
    worker->gradients = weir_net_gradients(worker->net, &worker->n_gradients);
    if (has_runs) {
        worker->run_gradients = worker->gradients;
        worker->gradients = alloc_gradients(&source, worker->n_gradients * sizeof(float));
        if (source.status != WEIR_OK) {
            return worker_comm_error(worker, source.status, err);
        }
    }
    worker->statistics = weights + worker->n_gradients;
    worker->n_statistics = n_weights - worker->n_gradients;
    worker->sums = calloc(SUM_COUNT + worker->n_statistics, sizeof *worker->sums);
    if (worker->sums == NULL) {
        return weir_error_set(err, WEIR_ERR_NOMEM, "no memory for the sums of a step");
    }
    weir_net_init_weights(worker->net, (uint64_t)task->config->seed);
    return train_average_init(&worker->average, task->config->average_decay, worker->net, err);
}

static weir_status make_optimizer(struct worker *worker, struct weir_error *err)
{
    size_t n_params = 0;
    const struct weir_param *params = weir_net_params(worker->net, &n_params);
    return worker->task->config->parameter_servers > 0
               ? WEIR_OK
               : weir_optimizer_create(&worker->task->optimizer, params, n_params,
                                       &worker->optimizer, err);
}

static struct checkpoint_parts parts_of(const struct worker *worker)
{
    return (struct checkpoint_parts){.net = worker->net,
                                     .optimizer = worker->optimizer,
                                     .average = &worker->average,
                                     .identity = worker->task->identity,
                                     .n_servers = (int)worker->task->config->parameter_servers};
}

/** Worker 0, at the beginning: weights that another training or program left, if some are named. */
static weir_status take_weights(struct worker *worker, struct weir_error *err)
{
    const char *path = worker->task->config->weights;
    struct weir_net_import import;
    if (path == NULL) {
        return WEIR_OK;
    }
    WEIR_TRY(weir_net_file_import(path, worker->net, &import, err));
    train_average_reset(&worker->average, worker->net);
    weir_log(WEIR_LOG_INFO, "weights_read", WEIR_KV_STR("file", path),
             WEIR_KV_INT("tensors", (int64_t)import.n_read),
             WEIR_KV_INT("new", (int64_t)import.n_new),
             WEIR_KV_STR("new_from", import.last_new != NULL ? import.last_new : "none"));
    return WEIR_OK;
}

/** Worker 0: the last checkpoint, or the beginning. */
static weir_status find_start(struct worker *worker, struct weir_error *err)
{
    const struct checkpoint_parts parts = parts_of(worker);
    const char *dir = worker->task->config->checkpoint_dir;
    weir_status status =
        dir == NULL ? WEIR_ERR_NOT_FOUND : checkpoint_load(dir, &parts, &worker->state, err);
    if (status == WEIR_OK) {
        worker->saved_step = worker->state.step;
    }
    if (status != WEIR_ERR_NOT_FOUND) {
        return status;
    }
    worker->state = (struct train_state){0};
    WEIR_TRY(take_weights(worker, err));
    return train_measure_input(worker->task, &worker->state.input, err);
}

/** Everybody takes over worker 0's state, weights and optimiser. */
static weir_status share_start(struct worker *worker)
{
    size_t n_weights = 0, n_states = 0;
    struct weir_comm *comm = worker->comm;
    float *weights = weir_net_weights(worker->net, &n_weights);
    WEIR_TRY(weir_comm_broadcast(comm, &worker->state, sizeof worker->state, 0));
    WEIR_TRY(weir_comm_broadcast(comm, weights, n_weights * sizeof *weights, 0));
    if (worker->optimizer == NULL) {
        WEIR_TRY(weir_ps_start(comm, weights, worker->n_gradients));
    } else {
        const struct weir_optimizer_state *states =
            weir_optimizer_states(worker->optimizer, &n_states);
        for (size_t i = 0; i < n_states; i++) {
            WEIR_TRY(
                weir_comm_broadcast(comm, states[i].data, states[i].n_elems * sizeof(float), 0));
        }
    }
    weir_net_weights_changed(worker->net);
    return worker->average.weights == NULL
               ? WEIR_OK
               : weir_comm_broadcast(comm, worker->average.weights,
                                     worker->average.n * sizeof(float), 0);
}

weir_status worker_prepare(struct worker *worker, struct weir_error *err)
{
    WEIR_TRY(make_net(worker, err));
    return make_optimizer(worker, err);
}

weir_status worker_share_start(struct worker *worker, struct weir_error *err)
{
    weir_status status = share_start(worker);
    return status == WEIR_OK ? WEIR_OK : worker_comm_error(worker, status, err);
}

void worker_release(struct worker *worker)
{
    weir_profile_destroy(worker->profile);
    weir_loader_destroy(worker->loader);
    weir_optimizer_destroy(worker->optimizer);
    train_average_fini(&worker->average);
    weir_net_destroy(worker->net);
    free(worker->sums);
}

static unsigned decoding_threads(const struct worker *worker)
{
    return (unsigned)WEIR_MAX(worker->task->n_threads / 2, 1);
}

static weir_status start_loader(struct worker *worker, struct weir_error *err)
{
    const struct train_task *task = worker->task;
    struct weir_loader_config config = train_loader_config(task, &worker->state.input);
    config.rank = (uint32_t)worker->rank;
    config.size = (uint32_t)worker->n_workers;
    config.start = worker->state.place;
    config.n_threads = decoding_threads(worker);
    return weir_loader_create(train_task_stream(task), &config, &worker->loader, err);
}

static void set_next_save(struct worker *worker)
{
    worker->next_save_ms =
        weir_mono_ms() + (int64_t)(worker->task->config->checkpoint_every_s * 1000);
}

/** Worker 0: what is shown and reported. */
static weir_status start_reports(struct worker *worker, struct weir_error *err)
{
    const struct weir_train_config *config = worker->task->config;
    train_progress_start(&worker->progress, worker->task, &worker->state);
    if (worker->state.step > 0) {
        train_progress_note(&worker->progress, "resumed", "step", (double)worker->state.step);
    }
    if (config->server == NULL || config->run == NULL) {
        return WEIR_OK;
    }
    const struct weir_client_config client = {
        .server = config->server, .token_file = config->token_file, .ca_file = config->ca_file};
    return train_report_start(&client, config->run, &worker->report, err);
}

static weir_status start(struct worker *worker, struct weir_error *err)
{
    WEIR_TRY(worker_prepare(worker, err));
    if (worker->rank == 0) {
        WEIR_TRY(find_start(worker, err));
    }
    WEIR_TRY(worker_share_start(worker, err));
    WEIR_TRY(start_loader(worker, err));
    set_next_save(worker);
    return worker->rank == 0 ? start_reports(worker, err) : WEIR_OK;
}

/* ---- saving and measuring ----------------------------------------------------------------- */

static weir_status hand_to_saver(struct worker *worker, struct weir_error *err)
{
    if (worker->saver == NULL) {
        WEIR_TRY(train_saver_create(worker->task->config->checkpoint_dir, &worker->saver, err));
    }
    const struct checkpoint_parts parts = parts_of(worker);
    WEIR_TRY(train_saver_save(worker->saver, &parts, &worker->state, err));
    worker->saved_step = worker->state.step;
    return WEIR_OK;
}

/** All workers together, between two steps. Worker 0's saver then has the checkpoint. */
static weir_status save(struct worker *worker, struct weir_error *err)
{
    struct weir_comm *comm = worker->comm;
    set_next_save(worker);
    if (worker->task->config->checkpoint_dir == NULL) {
        return WEIR_OK;
    }
    if (worker->optimizer == NULL) {
        /* Worker 0's file makes the servers' shares valid, and removes what is older: it must be
         * written before they begin with the next. */
        WEIR_TRY(train_saver_wait(worker->saver, err));
        const struct weir_ps_step wish = {.step = worker->state.step, .n_samples = 0};
        weir_status status =
            weir_ps_push_pull(comm, worker->gradients, weir_net_weights(worker->net, NULL),
                              worker->n_gradients, &wish);
        if (status != WEIR_OK) {
            return worker_comm_error(worker, status, err);
        }
    }
    return worker->rank != 0 || worker->saved_step == worker->state.step
               ? WEIR_OK
               : hand_to_saver(worker, err);
}

static weir_status measure(struct worker *worker, struct weir_error *err)
{
    if (worker->task->validation == NULL) {
        return WEIR_OK;
    }
    const struct train_score_config config = {.dataset = worker->task->validation,
                                              .input = &worker->state.input,
                                              .comm = worker->comm,
                                              .n_threads = decoding_threads(worker)};
    train_average_swap(&worker->average, worker->net);
    weir_status status = train_score_measure(worker->net, &config, &worker->score, err);
    train_average_swap(&worker->average, worker->net);
    return status;
}

/* ---- the loop ----------------------------------------------------------------------------- */

/** One small sum before each step: how many pictures count, and what anybody wishes. */
static weir_status vote(struct worker *worker, const struct weir_batch *batch,
                        struct worker_vote *out, struct weir_error *err)
{
    /* Nobody waits for the disk: while a checkpoint is being written the next is not due. */
    bool is_saving = worker->rank == 0 && weir_mono_ms() >= worker->next_save_ms &&
                     !train_saver_is_busy(worker->saver);
    int64_t votes[] = {batch->n_valid, train_is_stop_asked(), is_saving};
    weir_status status =
        weir_comm_allreduce(worker->comm, votes, WEIR_ARRAY_LEN(votes), WEIR_COMM_I64);
    if (status != WEIR_OK) {
        return worker_comm_error(worker, status, err);
    }
    *out = (struct worker_vote){
        .n_labelled = votes[0], .is_stopping = votes[1] > 0, .is_saving = votes[2] > 0};
    return WEIR_OK;
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
    train_report_add(worker->report, &tick);
}

static void report_score(struct worker *worker)
{
    struct train_tick tick = {.step = worker->state.step};
    if (worker->score.n > 0) {
        train_tick_add(&tick, "validation_loss", worker->score.loss);
        train_tick_add(&tick, "validation_accuracy", worker->score.accuracy);
        train_report_add(worker->report, &tick);
    }
}

static void tell(struct worker *worker, double n_seen, bool is_epoch_end)
{
    struct progress_view view;
    if (worker->rank == 0) {
        train_progress_add(&worker->progress, worker->sums[SUM_LOSS], worker->sums[SUM_CORRECT],
                           n_seen);
        if (train_progress_look(&worker->progress, &worker->state, is_epoch_end, &view)) {
            report_view(worker, &view);
        }
    }
    if (worker->hooks != NULL && worker->hooks->on_step != NULL) {
        const struct weir_train_step done = {.rank = worker->rank,
                                             .attempt = (int)worker->task->config->attempt,
                                             .step = worker->state.step - 1,
                                             .loss = worker->sums[SUM_LOSS] / n_seen};
        worker->hooks->on_step(worker->hooks->context, &done);
    }
}

static weir_status end_epoch(struct worker *worker, struct weir_error *err)
{
    WEIR_TRY(save(worker, err));
    WEIR_TRY(measure(worker, err));
    if (worker->rank == 0) {
        train_progress_epoch(&worker->progress, &worker->state, &worker->score);
        report_score(worker);
    }
    return WEIR_OK;
}

static weir_status stop(struct worker *worker, struct weir_error *err)
{
    WEIR_TRY(save(worker, err));
    WEIR_TRY(train_saver_wait(worker->saver, err));
    return weir_error_set(err, WEIR_ERR_CANCELLED, "stopped at step %llu of %llu",
                          (unsigned long long)worker->state.step,
                          (unsigned long long)worker->task->n_steps);
}

static weir_status loop(struct worker *worker, struct weir_error *err)
{
    while (worker->state.step < worker->task->n_steps) {
        struct weir_batch batch;
        struct worker_vote verdict = {0};
        WEIR_TRY(weir_loader_next(worker->loader, &batch, err));
        WEIR_TRY(vote(worker, &batch, &verdict, err));
        if (verdict.is_stopping) {
            return stop(worker, err);
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
        bool is_epoch_end = worker->state.place.position == 0;
        tell(worker, (double)verdict.n_labelled, is_epoch_end);
        if (is_epoch_end) {
            WEIR_TRY(end_epoch(worker, err));
        }
    }
    return WEIR_OK;
}

static weir_status run(struct worker *worker, struct weir_error *err)
{
    WEIR_TRY(start(worker, err));
    if (worker->state.step > 0 && worker->state.place.position == 0) {
        /* The last thing before this start was an epoch's end: its measurement was lost. */
        WEIR_TRY(measure(worker, err));
    }
    weir_status status = loop(worker, err);
    bool is_comm_good = weir_comm_failure(worker->comm, NULL, NULL) == WEIR_OK;
    if (worker->optimizer == NULL && is_comm_good &&
        (status == WEIR_OK || status == WEIR_ERR_CANCELLED)) {
        weir_status stopped = weir_ps_stop(worker->comm);
        if (stopped != WEIR_OK) {
            return worker_comm_error(worker, stopped, err);
        }
    }
    WEIR_TRY(status);
    WEIR_TRY(train_saver_wait(worker->saver, err));
    return worker->rank == 0 ? worker_finish(worker, err) : WEIR_OK;
}

weir_status train_worker_run(const struct train_task *task, struct weir_comm *comm,
                             const struct weir_train_hooks *hooks, struct weir_error *err)
{
    struct worker worker = {.task = task,
                            .hooks = hooks,
                            .comm = comm,
                            .rank = weir_comm_rank(comm),
                            .n_workers = weir_comm_n_workers(comm),
                            .saved_step = UINT64_MAX};
    weir_status status = run(&worker, err);
    train_saver_destroy(worker.saver);
    train_report_stop(worker.report, REPORT_FLUSH_MS);
    worker_release(&worker);
    return status;
}
