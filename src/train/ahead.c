/* The next batch of a GPU's net is taken from the loader and copied there while a step computes. */
#include "train/fill.h"
#include "train/worker.h"

void worker_forget_ahead(struct worker *worker)
{
    worker->ahead = (struct worker_ahead){.batch = NULL};
}

weir_status worker_next_batch(struct worker *worker, struct weir_batch *out, struct weir_error *err)
{
    struct worker_ahead *ahead = &worker->ahead;
    if (!ahead->has_next) {
        return weir_loader_next(worker->loader, out, err);
    }
    ahead->has_next = false;
    if (ahead->status != WEIR_OK) {
        return weir_error_set(err, ahead->status, "%s", ahead->error.message);
    }
    *out = ahead->next;
    return WEIR_OK;
}

void worker_bring_run(struct worker *worker, const struct weir_batch *batch, uint32_t first)
{
    struct worker_ahead *ahead = &worker->ahead;
    if (!ahead->is_filled) {
        (void)train_fill(worker->net, train_task_stream(worker->task), batch,
                         worker->state.input.shape, first);
    }
    ahead->is_filled = false;
    ahead->batch = batch;
    ahead->first = first;
}

/* Behind an epoch's last batch the net measures with other pictures, and behind the last there is none. */
static bool is_followed(const struct worker *worker, const struct weir_batch *batch)
{
    return worker->loader != NULL && worker->state.step + 1 < worker->task->n_steps &&
           weir_order_normalize(&worker->task->order, batch->next).position != 0;
}

bool worker_fill_ahead(void *context)
{
    struct worker *worker = context;
    struct worker_ahead *ahead = &worker->ahead;
    const struct weir_batch *batch = ahead->batch;
    const struct weir_shape shape = worker->state.input.shape;
    uint32_t next = ahead->first + (uint32_t)weir_net_batch(worker->net);
    if (batch == NULL || ahead->has_next) {
        return false;
    }
    if (next < batch->n_slots) {
        (void)train_fill(worker->net, train_task_stream(worker->task), batch, shape, next);
        ahead->is_filled = true;
        return true;
    }
    if (!is_followed(worker, batch)) {
        return false;
    }
    ahead->has_next = true;
    ahead->status = weir_loader_next(worker->loader, &ahead->next, &ahead->error);
    ahead->is_filled = ahead->status == WEIR_OK;
    if (ahead->is_filled) {
        (void)train_fill(worker->net, train_task_stream(worker->task), &ahead->next, shape, 0);
    }
    return ahead->is_filled;
}
