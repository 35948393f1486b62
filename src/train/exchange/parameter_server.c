/*
 * Parameter servers: the servers sum and update (server.c, comm/ps.h); this worker sends gradients
 * while its backward pass runs. The new weights are pending from finish on.
 *
 * A loss that is no number ends the training before its step's finish: the weights that the step
 * would have made are on their way then, they are never used, and no checkpoint is written.
 */
#include "train/exchange/exchange.h"

/* Relaxed workers meet after so many steps, and at the end of each epoch: there they stop, save and
 * measure. */
#define STEPS_APART 16

static bool is_relaxed(const struct worker *worker)
{
    return worker->task->config->exchange.staleness > 0;
}

/* ---- a step --------------------------------------------------------------------------------- */

static weir_status post(struct worker *worker, size_t first_elem, size_t n_elems)
{
    struct worker_exchange *exchange = &worker->exchange;
    if (!exchange->has_begun) {
        /* Not earlier: until the forward pass was over, weights of the last step were pending. */
        exchange->has_begun = true;
        WEIR_TRY(weir_ps_begin(worker->comm, &exchange->step));
    }
    return weir_ps_post(worker->comm, worker->gradients, first_elem, n_elems);
}

static weir_status wait(struct worker *worker)
{
    (void)worker; /* the sums are the servers' */
    return WEIR_OK;
}

/** A layer's new weights, for the thread of the net that needs them. */
static weir_status wait_for_layer(void *context, size_t first_elem, size_t n_elems)
{
    struct worker *worker = context;
    WEIR_TRY(weir_ps_wait(worker->comm, first_elem, n_elems));
    exchange_copy_weights(worker, first_elem, n_elems);
    train_average_add_range(&worker->average, worker->net, worker->exchange.pending_step,
                            first_elem, n_elems);
    return WEIR_OK;
}

static weir_status finish(struct worker *worker)
{
    const struct weir_ps_step *step = &worker->exchange.step;
    worker->exchange.pending_step = step->step;
    train_average_add_range(&worker->average, worker->net, step->step, worker->n_gradients,
                            worker->n_statistics);
    weir_net_set_pending_weights(worker->net, wait_for_layer, worker);
    /* If all are here already, they are copied by all threads at once. */
    return weir_ps_is_back(worker->comm, 0, worker->n_gradients)
               ? weir_net_wait_weights(worker->net)
               : WEIR_OK;
}

/* ---- between steps -------------------------------------------------------------------------- */

static bool is_synchronous(const struct worker *worker, uint64_t step, bool is_epoch_begin)
{
    return !is_relaxed(worker) || is_epoch_begin || step % STEPS_APART == 0;
}

/** Are this worker's weights others than the servers'? */
static bool is_apart(const struct worker *worker)
{
    return is_relaxed(worker) || weir_ps_is_narrow(worker->comm);
}

/** Exchange the net's weights with those in the gradients' memory, for a thread of the net. */
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

static weir_status fetch(struct worker *worker)
{
    if (!is_apart(worker)) {
        return WEIR_OK;
    }
    WEIR_TRY(weir_ps_pull(worker->comm, worker->gradients, worker->n_gradients));
    weir_net_update(worker->net, swap_weights, worker);
    return WEIR_OK;
}

static void resume(struct worker *worker)
{
    /* With the rounded weights again: the result must not depend on when a checkpoint was due. */
    if (is_apart(worker) && !is_relaxed(worker)) {
        weir_net_update(worker->net, swap_weights, worker);
    }
}

const struct exchange_strategy exchange_parameter_server = {
    .name = "parameter server",
    .doc = "the servers update the weights, each its pieces",
    .post = post,
    .wait = wait,
    .finish = finish,
    .fetch = fetch,
    .resume = resume,
    .is_synchronous = is_synchronous};
