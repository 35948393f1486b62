/*
 * Shared memory: workers of one host update each other's weights jointly (comm/ps.h, joint steps)
 * after the backward pass. Nothing is posted. Not in an elastic group, nor with norms: a worker
 * that is lost meanwhile leaves weights that are partly new, and training starts again from its
 * checkpoint.
 */
#include "train/exchange/exchange.h"

struct joint_update {
    const struct worker *worker;
    struct weir_ps_joint joint;
    _Atomic int status; /**< The first that is not WEIR_OK. */
};

/** A range of all weights, by a thread of the net. */
static void update_range(void *context, size_t first_elem, size_t n_elems)
{
    struct joint_update *update = context;
    weir_status status =
        weir_ps_joint_update(update->worker->comm, &update->joint, first_elem, n_elems);
    int expected = WEIR_OK;
    (void)atomic_compare_exchange_strong(&update->status, &expected, (int)status);
}

/** Every worker's gradients are complete: the step's sums, which all have, came after them. */
static weir_status finish(struct worker *worker)
{
    const struct weir_ps_step *step = &worker->exchange.step;
    struct joint_update update = {.worker = worker,
                                  .joint = {.gradients = worker->gradients,
                                            .weights = weir_net_weights(worker->net, NULL),
                                            .n_elems = worker->n_gradients,
                                            .step = *step,
                                            .update = exchange_update_shard,
                                            .context = worker->optimizer}};
    atomic_init(&update.status, WEIR_OK);
    exchange_add_bucket(worker, 0, worker->n_gradients, false);
    weir_net_run_ranges(worker->net, update_range, &update);
    WEIR_TRY(atomic_load(&update.status));
    WEIR_TRY(weir_comm_barrier(worker->comm));
    weir_net_weights_changed(worker->net);
    train_average_add(&worker->average, worker->net, step->step);
    return WEIR_OK;
}

const struct exchange_strategy exchange_shared_memory = {
    .name = "shared memory",
    .doc = "every worker updates a shard of all workers' weights",
    .post = exchange_post_nothing,
    .wait = exchange_wait_all,
    .finish = finish,
    .gather_states = exchange_gather_states};
