#include "train/exchange/fused.h"
#include "train/exchange/nccl.h"
#include "train/report.h"
#include "train/tensorboard.h"
#include "train/worker.h"

#include "base/clock.h"
#include "base/log.h"

#include <stdlib.h>
#include <string.h>

/* Buckets of a sharded optimiser: four barriers each instead of two, so they are larger. */
#define SHARED_BUCKET_BYTES ((size_t)4 << 20)

struct comm_memory {
    struct weir_comm *comm;
    weir_status status;
};

static void *alloc_shared(void *context, size_t size_bytes)
{
    struct comm_memory *source = context;
    void *memory = NULL;
    source->status = weir_comm_alloc(source->comm, size_bytes, &memory);
    return source->status == WEIR_OK ? memory : NULL;
}

/** An elastic group's weights must outlive any worker; norms, and fp16's look for gradients that are not
 *  finite, need a step's last gradient before the first weight is updated. */
static bool can_be_joint(const struct worker *worker)
{
    return worker->n_workers > 1 && worker->task->config->group.parameter_servers == 0 &&
           !train_is_elastic(worker->task->config) &&
           !weir_optimizer_needs_all(&worker->task->optimizer) &&
           strcmp(worker->task->config->model.precision, "fp16") != 0 &&
           weir_ps_sees_workers(worker->comm);
}

static weir_status plan_net(struct worker *worker, struct weir_error *err)
{
    const struct train_task *task = worker->task;
    struct comm_memory source = {.comm = worker->comm};
    struct weir_net_config config =
        train_net_config(task, (uint32_t)worker->rank, (uint32_t)worker->n_workers);
    worker->first_image = config.first_image;
    const bool has_runs = task->config->loop.micro_batches > 1;
    worker->updates_in_backward = train_updates_in_backward(task, worker->n_workers);
    config.updates_in_backward = worker->updates_in_backward;
    /* Alone, or where GPUs sum them, a GPU keeps its gradients and updates from them. */
    const bool is_alone_on_gpu = worker->n_workers == 1 && weir_backend_is_on_gpu(config.backend) &&
                                 !has_runs && task->config->group.parameter_servers == 0;
    const bool keeps_gradients = is_alone_on_gpu || worker->exchange.is_on_gpus;
    if (!has_runs && !worker->updates_in_backward && !keeps_gradients) {
        config.alloc_gradients = alloc_shared;
    }
    worker->exchange.is_joint = !worker->exchange.is_on_gpus && can_be_joint(worker);
    if (worker->exchange.is_joint) {
        config.alloc_weights = alloc_shared;
    }
    config.alloc_context = &source;
    weir_status status = weir_net_create(task->graph, &config, &worker->net, err);
    if (source.status != WEIR_OK) {
        return worker_comm_error(worker, source.status, err);
    }
    WEIR_TRY(status);
    weir_net_set_fill_ahead(worker->net, worker_fill_ahead, worker);
    size_t n_weights = 0;
    float *weights = weir_net_weights(worker->net, &n_weights);
    worker->n_gradients = weir_net_n_trainable_elems(worker->net);
    worker->gradients = keeps_gradients ? NULL : weir_net_gradients(worker->net, NULL);
    worker->run_gradients = NULL;
    if (has_runs && !keeps_gradients) {
        worker->run_gradients = worker->gradients;
        worker->gradients = alloc_shared(&source, worker->n_gradients * sizeof(float));
        if (source.status != WEIR_OK) {
            return worker_comm_error(worker, source.status, err);
        }
    }
    worker->statistics = weights + worker->n_gradients;
    worker->n_statistics = n_weights - worker->n_gradients;
    return WEIR_OK;
}

weir_status worker_plan_net(struct worker *worker, struct weir_error *err)
{
    WEIR_TRY(exchange_nccl_compare(worker, err));
    weir_status status = plan_net(worker, err);
    if (!worker->exchange.is_on_gpus) {
        return status;
    }
    WEIR_TRY(exchange_nccl_open(worker, status, err));
    if (worker->exchange.is_on_gpus) {
        return WEIR_OK;
    }
    weir_net_destroy(worker->net);
    worker->net = NULL;
    return plan_net(worker, err);
}

weir_status worker_make_state(struct worker *worker, struct weir_error *err)
{
    size_t n_params = 0;
    const struct weir_param *params = weir_net_params(worker->net, &n_params);
    worker->sums = calloc(SUM_COUNT + worker->n_statistics, sizeof *worker->sums);
    worker->kept_statistics = calloc(worker->n_statistics + 1, sizeof *worker->kept_statistics);
    if (worker->task->config->exchange.shard_update) {
        weir_net_set_bucket_bytes(worker->net, SHARED_BUCKET_BYTES);
    }
    worker->exchange.buckets = calloc(n_params + 1, sizeof *worker->exchange.buckets);
    if (worker->sums == NULL || worker->kept_statistics == NULL ||
        worker->exchange.buckets == NULL) {
        return weir_error_set(err, WEIR_ERR_NOMEM, "no memory for the sums of a step");
    }
    weir_net_init_weights(worker->net, (uint64_t)worker->task->config->loop.seed);
    WEIR_TRY(train_average_init(&worker->average, worker->task->config->optimizer.average_decay,
                                worker->net, err));
    return worker->task->config->group.parameter_servers > 0
               ? WEIR_OK
               : weir_optimizer_create(&worker->task->optimizer, params, n_params,
                                       &worker->optimizer, err);
}

struct checkpoint_parts worker_parts(const struct worker *worker)
{
    return (struct checkpoint_parts){.net = worker->net,
                                     .optimizer = worker->optimizer,
                                     .average = &worker->average,
                                     .identity = worker->task->identity,
                                     .n_servers =
                                         (int)worker->task->config->group.parameter_servers};
}

/** Worker 0, at the beginning: weights that another training or program left, if some are named. */
static weir_status import_weights(struct worker *worker, struct weir_error *err)
{
    const char *path = worker->task->config->model.weights;
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
    const struct checkpoint_parts parts = worker_parts(worker);
    const char *dir = worker->task->config->checkpoint.dir;
    weir_status status =
        dir == NULL ? WEIR_ERR_NOT_FOUND : checkpoint_load(dir, &parts, &worker->state, err);
    if (status == WEIR_OK) {
        worker->saving.step = worker->state.step;
        status = worker_set_scale(worker);
    }
    if (status != WEIR_ERR_NOT_FOUND) {
        return status;
    }
    worker->state = (struct train_state){0};
    WEIR_TRY(import_weights(worker, err));
    return train_measure_input(worker->task, &worker->state.input, err);
}

void worker_keep_scale(struct worker *worker)
{
    worker->state.loss_scale = weir_net_loss_scale(worker->net);
}

weir_status worker_set_scale(struct worker *worker)
{
    const struct weir_loss_scale *scale = &worker->state.loss_scale;
    return scale->scale > 0 ? weir_net_set_loss_scale(worker->net, scale) : WEIR_OK;
}

void worker_keep_statistics(struct worker *worker)
{
    memcpy(worker->kept_statistics, worker->statistics,
           worker->n_statistics * sizeof *worker->kept_statistics);
}

weir_status worker_share_state(struct worker *worker, int root)
{
    size_t n_weights = 0, n_states = 0;
    struct weir_comm *comm = worker->comm;
    float *weights = weir_net_weights(worker->net, &n_weights);
    worker_keep_scale(worker);
    WEIR_TRY(weir_comm_broadcast(comm, &worker->state, sizeof worker->state, root));
    WEIR_TRY(worker_set_scale(worker));
    WEIR_TRY(weir_comm_broadcast(comm, weights, n_weights * sizeof *weights, root));
    if (worker->optimizer == NULL) {
        const struct weir_ps_step begin = {.step = worker->state.step,
                                           .n_samples = TRAIN_COMMAND_RESTORE};
        WEIR_TRY(weir_ps_start_relaxed(comm, weights, worker->n_gradients,
                                       (uint64_t)worker->task->config->exchange.staleness));
        if (begin.step > 0) {
            WEIR_TRY(weir_ps_command(comm, &begin));
        }
    } else {
        const struct weir_optimizer_state *states =
            weir_optimizer_states(worker->optimizer, &n_states);
        for (size_t i = 0; i < n_states; i++) {
            WEIR_TRY(
                weir_comm_broadcast(comm, states[i].data, states[i].n_elems * sizeof(float), root));
        }
    }
    if (worker->average.weights != NULL) {
        WEIR_TRY(weir_comm_broadcast(comm, worker->average.weights,
                                     worker->average.n * sizeof(float), root));
    }
    weir_net_weights_changed(worker->net);
    worker_keep_statistics(worker);
    worker->has_state = true;
    return WEIR_OK;
}

weir_status worker_prepare(struct worker *worker, struct weir_error *err)
{
    WEIR_TRY(worker_plan_net(worker, err));
    WEIR_TRY(worker_make_state(worker, err));
    worker_exchange_choose(worker);
    return WEIR_OK;
}

weir_status worker_share_start(struct worker *worker, struct weir_error *err)
{
    weir_status status = worker_share_state(worker, 0);
    return status == WEIR_OK ? WEIR_OK : worker_comm_error(worker, status, err);
}

unsigned worker_decoding_threads(const struct worker *worker)
{
    return (unsigned)WEIR_MAX(worker->task->n_threads / 2, 1);
}

weir_status worker_start_loader(struct worker *worker, struct weir_error *err)
{
    const struct train_task *task = worker->task;
    struct weir_loader_config config = train_loader_config(task, &worker->state.input);
    config.rank = (uint32_t)worker->rank;
    config.size = (uint32_t)worker->n_workers;
    config.start = worker->state.place;
    config.n_threads = worker_decoding_threads(worker);
    return weir_loader_create(train_task_stream(task), &config, &worker->loader, err);
}

void worker_set_next_save(struct worker *worker)
{
    worker->saving.next_ms =
        weir_mono_ms() + (int64_t)(worker->task->config->checkpoint.every_s * 1000);
}

weir_status worker_start_reports(struct worker *worker, struct weir_error *err)
{
    const struct weir_train_config *config = worker->task->config;
    train_progress_start(&worker->reporting.progress, worker->task, &worker->state);
    worker->reporting.has_begun = true;
    if (worker->state.step > 0) {
        train_progress_note(&worker->reporting.progress, "resumed", "step",
                            (double)worker->state.step);
    }
    if (config->output.tensorboard != NULL) {
        WEIR_TRY(train_tensorboard_open(config->output.tensorboard, worker->state.step,
                                        &worker->reporting.board, err));
    }
    if (config->report.server == NULL || config->report.run == NULL) {
        return WEIR_OK;
    }
    const struct weir_client_config client = {.server = config->report.server,
                                              .token_file = config->report.token_file,
                                              .ca_file = config->report.ca_file};
    return train_report_start(&client, config->report.run, &worker->reporting.report, err);
}

weir_status worker_start(struct worker *worker, struct weir_error *err)
{
    worker_set_next_save(worker);
    if (worker->task->config->group.join) {
        return worker_sync_group(worker, err);
    }
    WEIR_TRY(worker_prepare(worker, err));
    if (worker->rank == 0) {
        WEIR_TRY(find_start(worker, err));
    }
    WEIR_TRY(worker_share_start(worker, err));
    WEIR_TRY(worker_start_loader(worker, err));
    return worker->rank == 0 ? worker_start_reports(worker, err) : WEIR_OK;
}
