#include "train/solo.h"

#include "train/average.h"
#include "train/exchange/renew.h"
#include "train/fill.h"

#include <math.h>

struct solo {
    const struct train_task *task;
    struct weir_net *net;
    struct weir_optimizer *optimizer;
    struct train_average average;
    struct weir_loader *loader;
    struct weir_net_input input;
    double loss;
};

static weir_status start(struct solo *solo, struct weir_error *err)
{
    const struct train_task *task = solo->task;
    struct weir_net_config config = train_net_config(task, 0, 1);
    size_t n_params = 0;
    config.updates_in_backward = train_updates_in_backward(task, 1);
    if (task->config->micro_batches > 1) {
        return weir_error_set(err, WEIR_ERR_UNSUPPORTED,
                              "micro_batches: a training inside this process takes its batch at "
                              "once; leave it out");
    }
    WEIR_TRY(train_measure_input(task, &solo->input, err));
    WEIR_TRY(weir_net_create(task->graph, &config, &solo->net, err));
    weir_net_init_weights(solo->net, (uint64_t)task->config->seed);
    WEIR_TRY(train_average_init(&solo->average, task->config->average_decay, solo->net, err));
    const struct weir_param *params = weir_net_params(solo->net, &n_params);
    WEIR_TRY(weir_optimizer_create(&task->optimizer, params, n_params, &solo->optimizer, err));
    struct weir_loader_config loading = train_loader_config(task, &solo->input);
    loading.n_threads = (unsigned)WEIR_MIN(task->n_threads, 4);
    return weir_loader_create(train_task_stream(task), &loading, &solo->loader, err);
}

/** Forward, backward, and the new weights if the loss is a number. */
static weir_status compute(struct solo *solo, uint64_t step, struct weir_step_result *out)
{
    struct train_renewal renewal = {.optimizer = solo->optimizer,
                                    .average = &solo->average,
                                    .net = solo->net,
                                    .learning_rate =
                                        weir_schedule_rate(&solo->task->schedule, step),
                                    .step = step};
    if (train_updates_in_backward(solo->task, 1)) {
        WEIR_TRY(weir_net_step_and_update(solo->net, step, train_renew, &renewal, out));
        train_renew_statistics(&renewal);
        return WEIR_OK;
    }
    WEIR_TRY(weir_net_step(solo->net, step, NULL, NULL, out));
    if (isfinite(out->loss)) {
        weir_optimizer_update_net(solo->optimizer, solo->net, weir_net_gradients(solo->net, NULL),
                                  renewal.learning_rate, step);
        train_average_add(&solo->average, solo->net, step);
    }
    return WEIR_OK;
}

static weir_status take_step(struct solo *solo, uint64_t step, struct weir_error *err)
{
    struct weir_batch batch;
    struct weir_step_result result = {0};
    WEIR_TRY(weir_loader_next(solo->loader, &batch, err));
    if (batch.n_valid == 0) {
        return weir_error_set(err, WEIR_ERR_CORRUPT,
                              "none of the pictures of step %llu can be read",
                              (unsigned long long)step);
    }
    (void)train_fill(solo->net, &batch, solo->input.shape, 0);
    weir_status status = compute(solo, step, &result);
    if (status != WEIR_OK) {
        return weir_error_set(err, status, "step %llu: %s", (unsigned long long)step,
                              weir_status_text(status));
    }
    if (!isfinite(result.loss)) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "the loss is not a number any more at step %llu",
                              (unsigned long long)step);
    }
    solo->loss = result.loss;
    return WEIR_OK;
}

weir_status train_solo(const struct train_task *task, struct train_solo *out,
                       struct weir_error *err)
{
    struct solo solo = {.task = task};
    weir_status status = start(&solo, err);
    for (uint64_t step = 0; status == WEIR_OK && step < task->n_steps; step++) {
        status = take_step(&solo, step, err);
    }
    if (status == WEIR_OK) {
        train_average_swap(&solo.average, solo.net);
    }
    train_average_fini(&solo.average);
    weir_loader_destroy(solo.loader);
    weir_optimizer_destroy(solo.optimizer);
    if (status != WEIR_OK) {
        weir_net_destroy(solo.net);
        return status;
    }
    *out = (struct train_solo){.net = solo.net, .input = solo.input, .loss = solo.loss};
    return WEIR_OK;
}
