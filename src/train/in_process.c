#include "train/in_process.h"

#include "train/average.h"
#include "train/exchange/fused.h"
#include "train/fill.h"

#include <math.h>

struct in_process {
    const struct train_task *task;
    struct weir_net *net;
    struct weir_optimizer *optimizer;
    struct train_average average;
    struct weir_loader *loader;
    struct weir_net_input input;
    double loss;
};

static weir_status start(struct in_process *training, struct weir_error *err)
{
    const struct train_task *task = training->task;
    struct weir_net_config config = train_net_config(task, 0, 1);
    size_t n_params = 0;
    config.updates_in_backward = train_updates_in_backward(task, 1);
    if (task->config->loop.micro_batches > 1) {
        return weir_error_set(err, WEIR_ERR_UNSUPPORTED,
                              "micro_batches: a training inside this process takes its batch at "
                              "once; leave it out");
    }
    WEIR_TRY(train_measure_input(task, &training->input, err));
    WEIR_TRY(weir_net_create(task->graph, &config, &training->net, err));
    weir_net_init_weights(training->net, (uint64_t)task->config->loop.seed);
    WEIR_TRY(train_average_init(&training->average, task->config->optimizer.average_decay,
                                training->net, err));
    const struct weir_param *params = weir_net_params(training->net, &n_params);
    WEIR_TRY(weir_optimizer_create(&task->optimizer, params, n_params, &training->optimizer, err));
    struct weir_loader_config loading = train_loader_config(task, &training->input);
    loading.n_threads = (unsigned)WEIR_MIN(task->n_threads, 4);
    return weir_loader_create(train_task_stream(task), &loading, &training->loader, err);
}

/** Forward, backward, and the new weights if the loss is a number. */
static weir_status compute(struct in_process *training, uint64_t step, struct weir_step_result *out)
{
    struct train_fused_update update = {.optimizer = training->optimizer,
                                        .average = &training->average,
                                        .net = training->net,
                                        .learning_rate =
                                            weir_schedule_rate(&training->task->schedule, step),
                                        .step = step};
    if (train_updates_in_backward(training->task, 1)) {
        WEIR_TRY(weir_net_step_and_update(training->net, step, train_fused_apply, &update, out));
        train_fused_finish(&update);
        return WEIR_OK;
    }
    WEIR_TRY(weir_net_step(training->net, step, NULL, NULL, out));
    if (isfinite(out->loss)) {
        weir_optimizer_update_net(training->optimizer, training->net, NULL, update.learning_rate,
                                  step);
        train_average_add(&training->average, training->net, step);
    }
    return WEIR_OK;
}

static weir_status take_step(struct in_process *training, uint64_t step, struct weir_error *err)
{
    struct weir_batch batch;
    struct weir_step_result result = {0};
    WEIR_TRY(weir_loader_next(training->loader, &batch, err));
    if (batch.n_valid == 0) {
        return weir_error_set(err, WEIR_ERR_CORRUPT,
                              "none of the pictures of step %llu can be read",
                              (unsigned long long)step);
    }
    (void)train_fill(training->net, train_task_stream(training->task), &batch,
                     training->input.shape, 0);
    weir_status status = compute(training, step, &result);
    if (status != WEIR_OK) {
        return weir_error_set(err, status, "step %llu: %s", (unsigned long long)step,
                              weir_status_text(status));
    }
    if (!isfinite(result.loss)) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "the loss is not a number any more at step %llu",
                              (unsigned long long)step);
    }
    training->loss = result.loss;
    return WEIR_OK;
}

weir_status train_in_process(const struct train_task *task, struct train_in_process_result *out,
                             struct weir_error *err)
{
    struct in_process training = {.task = task};
    weir_status status = WEIR_OK;
    WEIR_TRY_GOTO(start(&training, err), status, destroy);
    for (uint64_t step = 0; step < task->n_steps; step++) {
        WEIR_TRY_GOTO(take_step(&training, step, err), status, destroy);
    }
    train_average_swap(&training.average, training.net);
destroy:
    train_average_fini(&training.average);
    weir_loader_destroy(training.loader);
    weir_optimizer_destroy(training.optimizer);
    if (status != WEIR_OK) {
        weir_net_destroy(training.net);
        return status;
    }
    *out = (struct train_in_process_result){
        .net = training.net, .input = training.input, .loss = training.loss};
    return WEIR_OK;
}
