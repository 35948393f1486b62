/* How the workers' gradients become everybody's new weights: while the backward pass runs, and
 * after it. */
#include "train/exchange/renew.h"
#include "train/worker.h"

#include <string.h>

/** Who makes the new weights. */
enum way {
    WAY_ALONE,   /**< This worker, where it makes the gradients. */
    WAY_ALL,     /**< Every worker, all of them, from the sum. */
    WAY_SHARED,  /**< Every worker a part, which the others then get. */
    WAY_JOINT,   /**< Every worker a part, of everybody's weights. */
    WAY_SERVERS, /**< Others. */
};

static enum way way_of(const struct worker *worker)
{
    if (worker->updates_in_backward) {
        return WAY_ALONE;
    }
    if (worker->optimizer == NULL) {
        return WAY_SERVERS;
    }
    if (worker->n_workers == 1) {
        return WAY_ALL;
    }
    if (worker->is_joint) {
        return WAY_JOINT;
    }
    return worker->task->config->shard_update ? WAY_SHARED : WAY_ALL;
}

/** Must a shared update be measured before it is made? */
static bool is_measured(const struct worker *worker)
{
    return weir_optimizer_needs_all(&worker->task->optimizer);
}

/* ---- while the backward pass runs ---------------------------------------------------------- */

void worker_exchange_begin(struct worker *worker, int64_t n_labelled)
{
    worker->n_buckets = 0;
    worker->n_shared = 0;
    worker->has_posted = false;
    worker->ps_step = (struct weir_ps_step){
        .step = worker->state.step,
        .learning_rate = weir_schedule_rate(&worker->task->schedule, worker->state.step),
        .n_samples = (double)n_labelled};
}

/** This worker's part of a range: shared, by the progress thread; jointly, by a thread of the net.
 */
static weir_status renew(void *context, const struct weir_ps_step *step, float *weights,
                         const float *gradient_sum, size_t first_elem, size_t n_elems)
{
    weir_optimizer_update(context, weights - first_elem, gradient_sum - first_elem, first_elem,
                          n_elems, step->learning_rate, step->step);
    return WEIR_OK;
}

static weir_status post_to_servers(struct worker *worker, size_t first_elem, size_t n_elems)
{
    if (!worker->has_posted) {
        /* Not before: until the forward pass was over weights of the last step were under way. */
        worker->has_posted = true;
        WEIR_TRY(weir_ps_begin(worker->comm, &worker->ps_step));
    }
    return weir_ps_post(worker->comm, worker->gradients, first_elem, n_elems);
}

static void note_bucket(struct worker *worker, size_t first_elem, size_t n_elems, bool is_rest)
{
    worker->buckets[worker->n_buckets++] =
        (struct worker_bucket){.first = first_elem, .n = n_elems, .is_rest = is_rest};
}

/** @param update  NULL: the sum is all that is wanted. */
static weir_status post_shared(struct worker *worker, size_t first_elem, size_t n_elems,
                               weir_ps_update_fn update)
{
    note_bucket(worker, first_elem, n_elems, false);
    const struct weir_ps_work work = {.gradients = worker->gradients,
                                      .weights = weir_net_weights(worker->net, NULL),
                                      .first_elem = first_elem,
                                      .n_elems = n_elems,
                                      .step = worker->ps_step,
                                      .update = update,
                                      .context = worker->optimizer};
    return weir_ps_shared_post(worker->comm, &work);
}

/** Sum what is complete up to `end`, as far as every worker gets whole tiles of it. */
static weir_status post_in_tiles(struct worker *worker, size_t end)
{
    const size_t unit = WEIR_OPTIMIZER_TILE * (size_t)worker->n_workers;
    const size_t n = (end - worker->n_shared) / unit * unit;
    if (n > 0) {
        WEIR_TRY(post_shared(worker, worker->n_shared, n, NULL));
        worker->n_shared += n;
    }
    if (end < worker->n_gradients || worker->n_shared == end) {
        return WEIR_OK;
    }
    note_bucket(worker, worker->n_shared, end - worker->n_shared, true);
    return weir_comm_allreduce_post(worker->comm, worker->gradients + worker->n_shared,
                                    end - worker->n_shared);
}

weir_status worker_exchange_post(struct worker *worker, size_t first_elem, size_t n_elems)
{
    const enum way way = way_of(worker);
    if (way == WAY_SERVERS) {
        return post_to_servers(worker, first_elem, n_elems);
    }
    if (worker->n_workers == 1 || way == WAY_JOINT) {
        return WEIR_OK;
    }
    if (way == WAY_ALL) {
        return weir_comm_allreduce_post(worker->comm, worker->gradients + first_elem, n_elems);
    }
    return is_measured(worker) ? post_in_tiles(worker, first_elem + n_elems)
                               : post_shared(worker, first_elem, n_elems, renew);
}

/* ---- after it -------------------------------------------------------------------------------- */

/** New weights lie where the gradients were; a thread of the net puts some of them in their place.
 */
static void take_weights(void *context, size_t first_elem, size_t n_elems)
{
    const struct worker *worker = context;
    memcpy(weir_net_weights(worker->net, NULL) + first_elem, worker->gradients + first_elem,
           n_elems * sizeof(float));
}

/** A layer's new weights, for a thread of the net that wants them. */
static weir_status await_weights(void *context, size_t first_elem, size_t n_elems)
{
    struct worker *worker = context;
    WEIR_TRY(weir_ps_wait(worker->comm, first_elem, n_elems));
    take_weights(worker, first_elem, n_elems);
    train_average_add_range(&worker->average, worker->net, worker->arriving_step, first_elem,
                            n_elems);
    return WEIR_OK;
}

/** This worker's elements of a bucket. */
static struct worker_bucket own_part(const struct worker *worker,
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

/** In the gradients' memory: everybody gets everybody's parts of a bucket. */
static weir_status gather_bucket(const struct worker *worker, const struct worker_bucket *bucket)
{
    float *range = worker->gradients + bucket->first;
    return bucket->is_rest ? weir_comm_broadcast(worker->comm, range, bucket->n * sizeof *range, 0)
                           : weir_comm_allgather(worker->comm, range, bucket->n, WEIR_COMM_F32);
}

/** The norms of the step's sums, by every worker's of its own elements. */
static weir_status measure(const struct worker *worker)
{
    const struct weir_ps_step *step = &worker->ps_step;
    const float *weights = weir_net_weights(worker->net, NULL);
    size_t n_sums = 0;
    double *sums = weir_optimizer_sums(worker->optimizer, &n_sums);
    for (size_t i_pass = 0; i_pass < weir_optimizer_n_passes(worker->optimizer); i_pass++) {
        memset(sums, 0, n_sums * sizeof *sums);
        for (size_t k = 0; k < worker->n_buckets; k++) {
            const struct worker_bucket own = own_part(worker, &worker->buckets[k]);
            weir_optimizer_measure(worker->optimizer, i_pass, weights, worker->gradients, own.first,
                                   own.n, step->learning_rate, step->step);
        }
        WEIR_TRY(weir_comm_allreduce(worker->comm, sums, n_sums, WEIR_COMM_F64));
        weir_optimizer_conclude(worker->optimizer, i_pass);
    }
    return WEIR_OK;
}

/** New weights where the gradients were: this worker's own by the norms, then the others'. */
static weir_status renew_measured(const struct worker *worker)
{
    const struct weir_ps_step *step = &worker->ps_step;
    float *weights = weir_net_weights(worker->net, NULL);
    WEIR_TRY(measure(worker));
    for (size_t k = 0; k < worker->n_buckets; k++) {
        const struct worker_bucket *bucket = &worker->buckets[k];
        const struct worker_bucket own = own_part(worker, bucket);
        weir_optimizer_apply(worker->optimizer, weights, worker->gradients, own.first, own.n,
                             step->learning_rate, step->step);
        memcpy(worker->gradients + own.first, weights + own.first, own.n * sizeof *weights);
        WEIR_TRY(gather_bucket(worker, bucket));
    }
    return WEIR_OK;
}

struct joint_update {
    const struct worker *worker;
    struct weir_ps_joint joint;
    _Atomic int status; /**< The first that is not WEIR_OK. */
};

/** A range of all weights, by a thread of the net. */
static void renew_range(void *context, size_t first_elem, size_t n_elems)
{
    struct joint_update *update = context;
    weir_status status =
        weir_ps_joint_update(update->worker->comm, &update->joint, first_elem, n_elems);
    int expected = WEIR_OK;
    (void)atomic_compare_exchange_strong(&update->status, &expected, (int)status);
}

/** Every worker has made its gradients, or the step's sums would not be there. */
static weir_status renew_jointly(struct worker *worker)
{
    struct joint_update update = {.worker = worker,
                                  .joint = {.gradients = worker->gradients,
                                            .weights = weir_net_weights(worker->net, NULL),
                                            .n_elems = worker->n_gradients,
                                            .step = worker->ps_step,
                                            .update = renew,
                                            .context = worker->optimizer}};
    atomic_init(&update.status, WEIR_OK);
    note_bucket(worker, 0, worker->n_gradients, false);
    weir_net_run_ranges(worker->net, renew_range, &update);
    WEIR_TRY(atomic_load(&update.status));
    WEIR_TRY(weir_comm_barrier(worker->comm));
    weir_net_weights_changed(worker->net);
    return WEIR_OK;
}

struct train_renewal worker_exchange_renewal(struct worker *worker)
{
    return (struct train_renewal){.optimizer = worker->optimizer,
                                  .average = &worker->average,
                                  .net = worker->net,
                                  .learning_rate = worker->ps_step.learning_rate,
                                  .step = worker->ps_step.step};
}

weir_status worker_exchange_wait(struct worker *worker)
{
    return way_of(worker) == WAY_SERVERS ? WEIR_OK : weir_comm_wait_all(worker->comm);
}

weir_status worker_exchange_finish(struct worker *worker)
{
    const struct weir_ps_step *step = &worker->ps_step;
    if (way_of(worker) == WAY_SERVERS) {
        worker->arriving_step = step->step;
        train_average_add_range(&worker->average, worker->net, step->step, worker->n_gradients,
                                worker->n_statistics);
        weir_net_set_pending_weights(worker->net, await_weights, worker);
        /* Are all there, it is done with all threads at once. */
        return weir_ps_is_back(worker->comm, 0, worker->n_gradients)
                   ? weir_net_wait_weights(worker->net)
                   : WEIR_OK;
    }
    if (way_of(worker) == WAY_ALONE) {
        const struct train_renewal renewal = worker_exchange_renewal(worker);
        train_renew_statistics(&renewal);
        return WEIR_OK;
    }
    if (way_of(worker) == WAY_ALL) {
        weir_optimizer_update_net(worker->optimizer, worker->net, worker->gradients,
                                  step->learning_rate, step->step);
    } else if (way_of(worker) == WAY_JOINT) {
        WEIR_TRY(renew_jointly(worker));
    } else {
        WEIR_TRY(is_measured(worker) ? renew_measured(worker) : WEIR_OK);
        weir_net_update(worker->net, take_weights, worker);
    }
    train_average_add(&worker->average, worker->net, step->step);
    return WEIR_OK;
}

weir_status worker_exchange_arrive(struct worker *worker, struct weir_error *err)
{
    weir_status status = weir_net_wait_weights(worker->net);
    return status == WEIR_OK ? WEIR_OK : worker_comm_error(worker, status, err);
}

/* ---- relaxed --------------------------------------------------------------------------------- */

/* Relaxed workers come together after so many steps, and at the end of each epoch: there they stop,
 * save and measure. */
#define STEPS_APART 16

static bool is_relaxed(const struct worker *worker)
{
    return way_of(worker) == WAY_SERVERS && worker->task->config->staleness > 0;
}

bool worker_is_meeting(const struct worker *worker, uint64_t step, bool is_epoch_begin)
{
    return !is_relaxed(worker) || is_epoch_begin || step % STEPS_APART == 0;
}

static bool is_apart_from_servers(const struct worker *worker)
{
    return way_of(worker) == WAY_SERVERS && (is_relaxed(worker) || weir_ps_is_narrow(worker->comm));
}

/** The net's weights and those in the gradients' memory change places, for a thread of the net. */
static void swap_weights(void *context, size_t first_elem, size_t n_elems)
{
    const struct worker *worker = context;
    float *restrict weights = weir_net_weights(worker->net, NULL) + first_elem;
    float *restrict others = worker->gradients + first_elem;
    for (size_t i = 0; i < n_elems; i++) {
        float kept = weights[i];
        weights[i] = others[i];
        others[i] = kept;
    }
}

weir_status worker_exchange_settle(struct worker *worker, struct weir_error *err)
{
    WEIR_TRY(worker_exchange_arrive(worker, err));
    if (!is_apart_from_servers(worker)) {
        return WEIR_OK;
    }
    weir_status status = weir_ps_pull(worker->comm, worker->gradients, worker->n_gradients);
    if (status != WEIR_OK) {
        return worker_comm_error(worker, status, err);
    }
    weir_net_update(worker->net, swap_weights, worker);
    return WEIR_OK;
}

void worker_exchange_go_on(struct worker *worker)
{
    /* Who goes on must not depend on when a checkpoint was due: with the rounded weights again. */
    if (is_apart_from_servers(worker) && !is_relaxed(worker)) {
        weir_net_update(worker->net, swap_weights, worker);
    }
}

/* ---- between steps --------------------------------------------------------------------------- */

/** A range of one state: everybody's parts of it, by way of the gradients' memory. */
static weir_status gather(const struct worker *worker, const struct weir_optimizer_state *state,
                          const struct worker_bucket *bucket)
{
    const size_t end = WEIR_MIN(bucket->first + bucket->n, state->n_elems);
    if (bucket->first >= end) {
        return WEIR_OK;
    }
    const struct worker_bucket own = own_part(worker, bucket);
    const size_t n = WEIR_MIN(own.n, end - WEIR_MIN(end, own.first));
    memcpy(worker->gradients + own.first, state->data + own.first, n * sizeof *state->data);
    WEIR_TRY(gather_bucket(worker, bucket));
    memcpy(state->data + bucket->first, worker->gradients + bucket->first,
           (end - bucket->first) * sizeof *state->data);
    return WEIR_OK;
}

weir_status worker_gather_states(struct worker *worker, struct weir_error *err)
{
    size_t n_states = 0;
    if (way_of(worker) != WAY_SHARED && way_of(worker) != WAY_JOINT) {
        return WEIR_OK;
    }
    const struct weir_optimizer_state *states = weir_optimizer_states(worker->optimizer, &n_states);
    for (size_t i = 0; i < n_states; i++) {
        for (size_t k = 0; k < worker->n_buckets; k++) {
            weir_status status = gather(worker, &states[i], &worker->buckets[k]);
            if (status != WEIR_OK) {
                return worker_comm_error(worker, status, err);
            }
        }
    }
    return WEIR_OK;
}
