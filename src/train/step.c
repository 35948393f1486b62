#include "base/clock.h"
#include "nn/net_group.h"
#include "train/exchange/fused.h"
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
    if (worker->exchange.gpu_failure.status != WEIR_OK) {
        return weir_error_set(err, worker->exchange.gpu_failure.status, "%s",
                              worker->exchange.gpu_failure.message);
    }
    return weir_error_set(err, status, "worker %d: exchange with the others: %s", worker->rank,
                          weir_status_text(status));
}

/** Add a run's gradients to the step's. Those of a single run lie there already. */
static void add_gradients(const struct worker *worker, size_t first_elem, size_t n)
{
    float *restrict step = worker->gradients + first_elem;
    const float *restrict run = worker->run_gradients;
    if (run == NULL) {
        return;
    }
    run += first_elem;
    if (worker->is_first_run) {
        memcpy(step, run, n * sizeof *step);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        step[i] += run[i];
    }
}

/** Called by a thread of the net: gradients of this range are complete. */
static void on_ready(void *context, size_t first_elem, size_t n_elems)
{
    struct worker *worker = context;
    add_gradients(worker, first_elem, n_elems);
    if (!worker->is_last_run) {
        return;
    }
    weir_status status = worker_exchange_post(worker, first_elem, n_elems);
    if (status != WEIR_OK) {
        int expected = WEIR_OK;
        (void)atomic_compare_exchange_strong(&worker->post_status, &expected, status);
    }
}

/** What the runs of a step have seen, added up. */
struct step_sums {
    double loss, n_correct;
};

/** Forward and backward of slots from `first` on. */
static weir_status run(struct worker *worker, const struct weir_batch *batch, uint32_t first,
                       int64_t n_labelled, struct step_sums *sums)
{
    struct weir_step_result result = {0};
    uint32_t size = (uint32_t)weir_net_batch(worker->net);
    worker_bring_run(worker, batch, first);
    weir_net_set_n_labelled(worker->net, n_labelled);
    worker->is_first_run = first == 0;
    worker->is_last_run = first + size >= batch->n_slots;
    weir_net_set_first_image(worker->net, worker->first_image + first);
    if (worker->exchange.is_on_gpus) {
        weir_net_group_set_run(worker->net, worker->is_first_run, worker->is_last_run);
    }
    if (worker->updates_in_backward) {
        struct train_fused_update update = worker_exchange_fused_update(worker);
        WEIR_TRY(weir_net_step_and_update(worker->net, worker->state.step, train_fused_apply,
                                          &update, &result));
    } else {
        WEIR_TRY(weir_net_step(worker->net, worker->state.step, worker->gradients ? on_ready : NULL,
                               worker, &result));
    }
    sums->loss += result.n_labelled > 0 ? result.loss * result.n_labelled : 0;
    sums->n_correct += result.n_correct;
    return WEIR_OK;
}

/** A part of the step that began at begin_ns is over. */
static void note_part(const struct worker *worker, const char *name, uint64_t begin_ns)
{
    if (worker->trace.profile != NULL) {
        weir_profile_span(worker->trace.profile, name, begin_ns, weir_mono_ns());
    }
}

/** Forward, backward and the sum of gradients, which overlaps with the last run. */
static weir_status compute(struct worker *worker, const struct weir_batch *batch,
                           int64_t n_labelled, struct step_sums *out, struct weir_error *err)
{
    weir_status status = WEIR_OK;
    const uint32_t size = (uint32_t)weir_net_batch(worker->net);
    *out = (struct step_sums){0, 0};
    atomic_store(&worker->post_status, WEIR_OK);
    uint64_t begin_ns = weir_mono_ns();
    worker_exchange_begin(worker, n_labelled);
    for (uint32_t first = 0; status == WEIR_OK && first < batch->n_slots; first += size) {
        status = run(worker, batch, first, n_labelled, out);
    }
    note_part(worker, "forward and backward", begin_ns);
    weir_status post_failure = atomic_load(&worker->post_status);
    begin_ns = weir_mono_ns();
    worker->exchange.run_status = status;
    weir_status waited = worker_exchange_wait(worker);
    note_part(worker, "wait for gradients", begin_ns);
    if (status != WEIR_OK && worker->exchange.gpu_failure.status == WEIR_OK &&
        weir_comm_failure(worker->comm, NULL, NULL) == WEIR_OK) {
        return weir_error_set(err, status, "step %llu: %s", (unsigned long long)worker->state.step,
                              weir_status_text(status));
    }
    status = status != WEIR_OK ? status : post_failure != WEIR_OK ? post_failure : waited;
    return status == WEIR_OK ? WEIR_OK : worker_comm_error(worker, status, err);
}

/** Sum loss, right answers and running statistics over the workers, in one all-reduce.
 *  @param is_synchronous  Else this worker goes on by itself. */
static weir_status share_sums(struct worker *worker, const struct step_sums *own,
                              bool is_synchronous, struct weir_error *err)
{
    double *sums = worker->sums;
    sums[SUM_LOSS] = own->loss;
    sums[SUM_CORRECT] = own->n_correct;
    for (size_t i = 0; i < worker->n_statistics; i++) {
        sums[SUM_COUNT + i] = (double)worker->statistics[i];
    }
    if (!is_synchronous) {
        /* As if all workers had the same results. */
        sums[SUM_LOSS] *= worker->n_workers;
        sums[SUM_CORRECT] *= worker->n_workers;
        worker_keep_statistics(worker);
        return WEIR_OK;
    }
    weir_status status =
        weir_comm_allreduce(worker->comm, sums, SUM_COUNT + worker->n_statistics, WEIR_COMM_F64);
    if (status != WEIR_OK) {
        return worker_comm_error(worker, status, err);
    }
    for (size_t i = 0; i < worker->n_statistics; i++) {
        worker->statistics[i] = (float)(sums[SUM_COUNT + i] / worker->n_workers);
    }
    /* Now all workers have the gradients' sum: without servers nothing can keep this step from
     * being done, on this worker and on every other that gets here. */
    worker_keep_statistics(worker);
    return WEIR_OK;
}

weir_status worker_step(struct worker *worker, const struct weir_batch *batch, int64_t n_labelled,
                        struct weir_error *err)
{
    struct step_sums sums;
    struct train_state *state = &worker->state;
    WEIR_TRY(compute(worker, batch, n_labelled, &sums, err));
    const struct weir_place next = weir_order_normalize(&worker->task->order, batch->next);
    WEIR_TRY(share_sums(worker, &sums,
                        worker_is_synchronous(worker, state->step + 1, next.position == 0), err));
    double loss = worker->sums[SUM_LOSS] / (double)n_labelled;
    if (!isfinite(loss)) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "the loss is not a number any more at step %llu (epoch %llu): try a "
                              "lower learning_rate than %g, or warmup_epochs",
                              (unsigned long long)state->step,
                              (unsigned long long)state->place.epoch + 1,
                              worker->task->learning_rate);
    }
    uint64_t begin_ns = weir_mono_ns();
    weir_status finished = worker_exchange_finish(worker);
    note_part(worker, "update", begin_ns);
    if (finished != WEIR_OK) {
        return worker_comm_error(worker, finished, err);
    }
    if (batch->place.position == 0) {
        state->epoch_loss = state->epoch_correct = state->epoch_seen = 0;
    }
    state->epoch_loss += worker->sums[SUM_LOSS];
    state->epoch_correct += worker->sums[SUM_CORRECT];
    state->epoch_seen += (double)n_labelled;
    state->step++;
    state->place = next;
    return WEIR_OK;
}
