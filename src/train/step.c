#include "train/worker.h"

#include <math.h>
#include <string.h>

weir_status worker_comm_error(const struct worker *worker, weir_status status,
                              struct weir_error *err)
{
    weir_status failure = weir_comm_failure(worker->comm, NULL, err);
    if (failure != WEIR_OK) {
        return failure;
    }
    return weir_error_set(err, status, "worker %d: exchange with the others: %s", worker->rank,
                          weir_status_text(status));
}

/** Called by a thread of the net: gradients of this range are complete. */
static void on_ready(void *context, size_t first_elem, size_t n_elems)
{
    struct worker *worker = context;
    float *range = worker->gradients + first_elem, share = worker->share;
    for (size_t i = 0; i < n_elems; i++) {
        range[i] *= share;
    }
    if (worker->optimizer == NULL || worker->n_workers == 1) {
        return; /* servers take the sum; alone there is none */
    }
    weir_status status = weir_comm_allreduce_post(worker->comm, range, n_elems);
    if (status != WEIR_OK) {
        int expected = WEIR_OK;
        (void)atomic_compare_exchange_strong(&worker->post_status, &expected, status);
    }
}

/** Slots without a label get a copy of another picture: batch norm then sees no black ones. */
static void fill_batch(struct worker *worker, const struct weir_batch *batch)
{
    const struct weir_shape shape = worker->state.input.shape;
    size_t len = (size_t)shape.c * (size_t)shape.h * (size_t)shape.w;
    float *input = weir_net_input(worker->net);
    uint32_t i_good = 0;
    while (i_good < batch->n_slots && batch->labels[i_good] < 0) {
        i_good++;
    }
    memcpy(weir_net_labels(worker->net), batch->labels, batch->n_slots * sizeof *batch->labels);
    for (uint32_t i = 0; i < batch->n_slots; i++) {
        uint32_t from = batch->labels[i] < 0 && i_good < batch->n_slots ? i_good : i;
        memcpy(input + i * len, batch->images + from * len, len * sizeof *input);
    }
}

/** Forward, backward and the sum of gradients, overlapped. */
static weir_status compute(struct worker *worker, struct weir_step_result *out,
                           struct weir_error *err)
{
    atomic_store(&worker->post_status, WEIR_OK);
    weir_status status = weir_net_step(worker->net, worker->state.step, on_ready, worker, out);
    weir_status posted = atomic_load(&worker->post_status);
    weir_status waited = weir_comm_wait_all(worker->comm);
    if (status != WEIR_OK) {
        return weir_error_set(err, status, "step %llu: %s", (unsigned long long)worker->state.step,
                              weir_status_text(status));
    }
    status = posted != WEIR_OK ? posted : waited;
    return status == WEIR_OK ? WEIR_OK : worker_comm_error(worker, status, err);
}

/** Loss, right answers and running statistics, summed over the workers in one go. */
static weir_status share_sums(struct worker *worker, const struct weir_step_result *result,
                              struct weir_error *err)
{
    double *sums = worker->sums;
    sums[SUM_LOSS] = result->n_labelled > 0 ? result->loss * result->n_labelled : 0;
    sums[SUM_CORRECT] = result->n_correct;
    for (size_t i = 0; i < worker->n_statistics; i++) {
        sums[SUM_COUNT + i] = (double)worker->statistics[i];
    }
    weir_status status =
        weir_comm_allreduce(worker->comm, sums, SUM_COUNT + worker->n_statistics, WEIR_COMM_F64);
    if (status != WEIR_OK) {
        return worker_comm_error(worker, status, err);
    }
    for (size_t i = 0; i < worker->n_statistics; i++) {
        worker->statistics[i] = (float)(sums[SUM_COUNT + i] / worker->n_workers);
    }
    return WEIR_OK;
}

static weir_status update(struct worker *worker, int64_t n_labelled, struct weir_error *err)
{
    uint64_t step = worker->state.step;
    float *weights = weir_net_weights(worker->net, NULL);
    double rate = weir_schedule_rate(&worker->task->schedule, step);
    if (worker->optimizer != NULL) {
        weir_optimizer_update(worker->optimizer, weights, worker->gradients, 0, worker->n_gradients,
                              rate, step);
    } else {
        const struct weir_ps_step request = {
            .step = step, .learning_rate = rate, .n_samples = (double)n_labelled};
        weir_status status = weir_ps_push_pull(worker->comm, worker->gradients, weights,
                                               worker->n_gradients, &request);
        if (status != WEIR_OK) {
            return worker_comm_error(worker, status, err);
        }
    }
    weir_net_weights_changed(worker->net);
    train_average_add(&worker->average, worker->net, step);
    return WEIR_OK;
}

weir_status worker_step(struct worker *worker, const struct weir_batch *batch, int64_t n_labelled,
                        struct weir_error *err)
{
    struct weir_step_result result = {0};
    struct train_state *state = &worker->state;
    worker->share = (float)((double)batch->n_valid / (double)n_labelled);
    fill_batch(worker, batch);
    WEIR_TRY(compute(worker, &result, err));
    WEIR_TRY(share_sums(worker, &result, err));
    double loss = worker->sums[SUM_LOSS] / (double)n_labelled;
    if (!isfinite(loss)) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "the loss is not a number any more at step %llu (epoch %llu): try a "
                              "lower learning_rate than %g, or warmup_epochs",
                              (unsigned long long)state->step,
                              (unsigned long long)state->place.epoch + 1,
                              worker->task->learning_rate);
    }
    WEIR_TRY(update(worker, n_labelled, err));
    if (batch->place.position == 0) {
        state->epoch_loss = state->epoch_correct = state->epoch_seen = 0;
    }
    state->epoch_loss += worker->sums[SUM_LOSS];
    state->epoch_correct += worker->sums[SUM_CORRECT];
    state->epoch_seen += (double)n_labelled;
    state->step++;
    state->place = weir_order_settle(&worker->task->order, batch->next);
    return WEIR_OK;
}
