/* What the strategies share in which each worker updates a shard and holds its optimiser state. */
#include "train/exchange/exchange.h"

#include <string.h>

void exchange_add_bucket(struct worker *worker, size_t first_elem, size_t n_elems, bool is_rest)
{
    struct worker_exchange *exchange = &worker->exchange;
    exchange->buckets[exchange->n_buckets++] =
        (struct worker_bucket){.first = first_elem, .n = n_elems, .is_rest = is_rest};
}

struct worker_bucket exchange_own_shard(const struct worker *worker,
                                        const struct worker_bucket *bucket)
{
    struct worker_bucket own = *bucket;
    if (bucket->is_rest) {
        own.n = worker->rank == 0 ? bucket->n : 0;
        return own;
    }
    weir_comm_slice(worker->comm, bucket->n, worker->rank, &own.first, &own.n);
    own.first += bucket->first;
    return own;
}

weir_status exchange_gather_bucket(const struct worker *worker, const struct worker_bucket *bucket)
{
    float *range = worker->gradients + bucket->first;
    return bucket->is_rest ? weir_comm_broadcast(worker->comm, range, bucket->n * sizeof *range, 0)
                           : weir_comm_allgather(worker->comm, range, bucket->n, WEIR_COMM_F32);
}

weir_status exchange_update_shard(void *context, const struct weir_ps_step *step, float *weights,
                                  const float *gradient_sum, size_t first_elem, size_t n_elems)
{
    weir_optimizer_update(context, weights - first_elem, gradient_sum - first_elem, first_elem,
                          n_elems, step->learning_rate, step->step);
    return WEIR_OK;
}

/** All-gather one bucket of one state, through the gradients' memory. */
static weir_status gather(const struct worker *worker, const struct weir_optimizer_state *state,
                          const struct worker_bucket *bucket)
{
    const size_t end = WEIR_MIN(bucket->first + bucket->n, state->n_elems);
    if (bucket->first >= end) {
        return WEIR_OK;
    }
    const struct worker_bucket own = exchange_own_shard(worker, bucket);
    const size_t n = WEIR_MIN(own.n, end - WEIR_MIN(end, own.first));
    memcpy(worker->gradients + own.first, state->data + own.first, n * sizeof *state->data);
    WEIR_TRY(exchange_gather_bucket(worker, bucket));
    memcpy(state->data + bucket->first, worker->gradients + bucket->first,
           (end - bucket->first) * sizeof *state->data);
    return WEIR_OK;
}

weir_status exchange_gather_states(struct worker *worker)
{
    size_t n_states = 0;
    const struct weir_optimizer_state *states = weir_optimizer_states(worker->optimizer, &n_states);
    for (size_t i = 0; i < n_states; i++) {
        for (size_t k = 0; k < worker->exchange.n_buckets; k++) {
            WEIR_TRY(gather(worker, &states[i], &worker->exchange.buckets[k]));
        }
    }
    return WEIR_OK;
}
