/*
 * Sharded optimiser (ZeRO stage 1): the gradients are reduced and scattered while the backward pass
 * runs, each worker updates its shard of each bucket, and the new weights are all-gathered.
 *
 * An optimiser that needs global norms (weir_optimizer_needs_all) cannot update before the last
 * gradient: the sums are taken while the backward pass runs, the updates and the all-gather in
 * finish. Shards then end where the optimiser's tiles do. The few elements after the last whole
 * tile are worker 0's.
 */
#include "train/exchange/exchange.h"

#include <string.h>

static bool needs_global_norm(const struct worker *worker)
{
    return weir_optimizer_needs_all(&worker->task->optimizer);
}

/* ---- while the backward pass runs ----------------------------------------------------------- */

/** @param update  NULL: only the sum is wanted. */
static weir_status post_shared(struct worker *worker, size_t first_elem, size_t n_elems,
                               weir_ps_update_fn update)
{
    exchange_add_bucket(worker, first_elem, n_elems, false);
    const struct weir_ps_work work = {.gradients = worker->gradients,
                                      .weights = weir_net_weights(worker->net, NULL),
                                      .first_elem = first_elem,
                                      .n_elems = n_elems,
                                      .step = worker->exchange.step,
                                      .update = update,
                                      .context = worker->optimizer};
    return weir_ps_shared_post(worker->comm, &work);
}

/** Sum what is complete up to `end`, as far as every worker gets whole tiles of it. */
static weir_status post_in_tiles(struct worker *worker, size_t end)
{
    size_t *n_shared = &worker->exchange.n_shared;
    const size_t unit = WEIR_OPTIMIZER_TILE * (size_t)worker->n_workers;
    const size_t n = (end - *n_shared) / unit * unit;
    if (n > 0) {
        WEIR_TRY(post_shared(worker, *n_shared, n, NULL));
        *n_shared += n;
    }
    if (end < worker->n_gradients || *n_shared == end) {
        return WEIR_OK;
    }
    exchange_add_bucket(worker, *n_shared, end - *n_shared, true);
    return weir_comm_allreduce_post(worker->comm, worker->gradients + *n_shared, end - *n_shared);
}

static weir_status post(struct worker *worker, size_t first_elem, size_t n_elems)
{
    return needs_global_norm(worker)
               ? post_in_tiles(worker, first_elem + n_elems)
               : post_shared(worker, first_elem, n_elems, exchange_update_shard);
}

/* ---- after it ------------------------------------------------------------------------------- */

/** The norms of the summed gradients: each worker's contribution, added up. */
static weir_status measure_norms(const struct worker *worker)
{
    const struct worker_exchange *exchange = &worker->exchange;
    const float *weights = weir_net_weights(worker->net, NULL);
    size_t n_sums = 0;
    double *sums = weir_optimizer_sums(worker->optimizer, &n_sums);
    for (size_t i_pass = 0; i_pass < weir_optimizer_n_passes(worker->optimizer); i_pass++) {
        memset(sums, 0, n_sums * sizeof *sums);
        for (size_t k = 0; k < exchange->n_buckets; k++) {
            const struct worker_bucket own = exchange_own_shard(worker, &exchange->buckets[k]);
            weir_optimizer_measure(worker->optimizer, i_pass, weights, worker->gradients, own.first,
                                   own.n, exchange->step.learning_rate, exchange->step.step);
        }
        WEIR_TRY(weir_comm_allreduce(worker->comm, sums, n_sums, WEIR_COMM_F64));
        weir_optimizer_conclude(worker->optimizer, i_pass);
    }
    return WEIR_OK;
}

/** New weights where the gradients were: the own shards by the norms, then those of the others. */
static weir_status update_with_norms(const struct worker *worker)
{
    const struct worker_exchange *exchange = &worker->exchange;
    float *weights = weir_net_weights(worker->net, NULL);
    WEIR_TRY(measure_norms(worker));
    for (size_t k = 0; k < exchange->n_buckets; k++) {
        const struct worker_bucket *bucket = &exchange->buckets[k];
        const struct worker_bucket own = exchange_own_shard(worker, bucket);
        weir_optimizer_apply(worker->optimizer, weights, worker->gradients, own.first, own.n,
                             exchange->step.learning_rate, exchange->step.step);
        memcpy(worker->gradients + own.first, weights + own.first, own.n * sizeof *weights);
        WEIR_TRY(exchange_gather_bucket(worker, bucket));
    }
    return WEIR_OK;
}

static weir_status finish(struct worker *worker)
{
    if (needs_global_norm(worker)) {
        WEIR_TRY(update_with_norms(worker));
    }
    weir_net_update(worker->net, exchange_copy_weights, worker);
    train_average_add(&worker->average, worker->net, worker->exchange.step.step);
    return WEIR_OK;
}

const struct exchange_strategy exchange_sharded = {
    .name = "sharded optimiser",
    .doc = "every worker updates a shard of the weights, which the others then get",
    .post = post,
    .wait = exchange_wait_all,
    .finish = finish,
    .gather_states = exchange_gather_states};
