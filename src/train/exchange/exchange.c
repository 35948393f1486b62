/* The choice of an exchange strategy, and what is the same for all of them. */
#include "train/exchange/exchange.h"

#include "base/log.h"

#include <string.h>

static const struct exchange_strategy *choose(const struct worker *worker)
{
    if (worker->updates_in_backward) {
        return &exchange_fused;
    }
    if (worker->optimizer == NULL) {
        return &exchange_parameter_server;
    }
    if (worker->n_workers == 1) {
        return &exchange_local;
    }
    if (worker->exchange.is_on_gpus) {
        return &exchange_nccl;
    }
    if (worker->exchange.is_joint) {
        return &exchange_shared_memory;
    }
    return worker->task->config->exchange.shard_update ? &exchange_sharded : &exchange_all_reduce;
}

void worker_exchange_choose(struct worker *worker)
{
    const struct exchange_strategy *strategy = choose(worker);
    worker->exchange.strategy = strategy;
    weir_log(WEIR_LOG_DEBUG, "exchange_chosen", WEIR_KV_STR("strategy", strategy->name),
             WEIR_KV_STR("what", strategy->doc), WEIR_KV_INT("workers", worker->n_workers));
}

/* ---- a step --------------------------------------------------------------------------------- */

void worker_exchange_begin(struct worker *worker, int64_t n_labelled)
{
    struct worker_exchange *exchange = &worker->exchange;
    exchange->n_buckets = 0;
    exchange->n_shared = 0;
    exchange->has_begun = false;
    exchange->step = (struct weir_ps_step){
        .step = worker->state.step,
        .learning_rate = weir_schedule_rate(&worker->task->schedule, worker->state.step),
        .n_samples = (double)n_labelled};
}

weir_status worker_exchange_post(struct worker *worker, size_t first_elem, size_t n_elems)
{
    return worker->exchange.strategy->post(worker, first_elem, n_elems);
}

weir_status worker_exchange_wait(struct worker *worker)
{
    return worker->exchange.strategy->wait(worker);
}

weir_status worker_exchange_finish(struct worker *worker)
{
    return worker->exchange.strategy->finish(worker);
}

weir_status exchange_post_nothing(struct worker *worker, size_t first_elem, size_t n_elems)
{
    (void)worker;
    (void)first_elem;
    (void)n_elems;
    return WEIR_OK;
}

weir_status exchange_wait_all(struct worker *worker)
{
    return weir_comm_wait_all(worker->comm);
}

weir_status exchange_update_all(struct worker *worker)
{
    const struct weir_ps_step *step = &worker->exchange.step;
    weir_optimizer_update_net(worker->optimizer, worker->net, worker->gradients,
                              step->learning_rate, step->step);
    train_average_add(&worker->average, worker->net, step->step);
    return WEIR_OK;
}

void exchange_copy_weights(void *context, size_t first_elem, size_t n_elems)
{
    const struct worker *worker = context;
    memcpy(weir_net_weights(worker->net, NULL) + first_elem, worker->gradients + first_elem,
           n_elems * sizeof(float));
}

/* ---- between steps -------------------------------------------------------------------------- */

static weir_status explained(const struct worker *worker, weir_status status,
                             struct weir_error *err)
{
    return status == WEIR_OK ? WEIR_OK : worker_comm_error(worker, status, err);
}

weir_status worker_exchange_wait_weights(struct worker *worker, struct weir_error *err)
{
    return explained(worker, weir_net_wait_weights(worker->net), err);
}

bool worker_is_synchronous(const struct worker *worker, uint64_t step, bool is_epoch_begin)
{
    const struct exchange_strategy *strategy = worker->exchange.strategy;
    return strategy->is_synchronous == NULL ||
           strategy->is_synchronous(worker, step, is_epoch_begin);
}

weir_status worker_exchange_fetch(struct worker *worker, struct weir_error *err)
{
    const struct exchange_strategy *strategy = worker->exchange.strategy;
    WEIR_TRY(worker_exchange_wait_weights(worker, err));
    return strategy->fetch == NULL ? WEIR_OK : explained(worker, strategy->fetch(worker), err);
}

void worker_exchange_resume(struct worker *worker)
{
    if (worker->exchange.strategy->resume != NULL) {
        worker->exchange.strategy->resume(worker);
    }
}

weir_status worker_gather_states(struct worker *worker, struct weir_error *err)
{
    const struct exchange_strategy *strategy = worker->exchange.strategy;
    return strategy->gather_states == NULL
               ? WEIR_OK
               : explained(worker, strategy->gather_states(worker), err);
}
