#include "train/exchange/fused.h"

#include "train/exchange/exchange.h"

bool train_updates_in_backward(const struct train_task *task, int n_workers)
{
    return n_workers == 1 &&
           !weir_backend_is_on_gpu(weir_backend_find(task->config->model.backend)) &&
           task->config->group.parameter_servers == 0 && task->config->loop.micro_batches <= 1 &&
           !weir_optimizer_needs_all(&task->optimizer);
}

void train_fused_apply(void *context, const struct weir_gradients *gradients)
{
    const struct train_fused_update *update = context;
    weir_optimizer_apply_gradients(update->optimizer, weir_net_weights(update->net, NULL),
                                   gradients, update->learning_rate, update->step);
    train_average_add_range(update->average, update->net, update->step, gradients->first_elem,
                            gradients->n_elems);
}

void train_fused_finish(const struct train_fused_update *update)
{
    size_t n_trainable = weir_net_n_trainable_elems(update->net), n_weights = 0;
    (void)weir_net_weights(update->net, &n_weights);
    train_average_add_range(update->average, update->net, update->step, n_trainable,
                            n_weights - n_trainable);
}

struct train_fused_update worker_exchange_fused_update(struct worker *worker)
{
    return (struct train_fused_update){.optimizer = worker->optimizer,
                                       .average = &worker->average,
                                       .net = worker->net,
                                       .learning_rate = worker->exchange.step.learning_rate,
                                       .step = worker->exchange.step.step};
}

/* ---- the strategy --------------------------------------------------------------------------- */

static weir_status finish(struct worker *worker)
{
    const struct train_fused_update update = worker_exchange_fused_update(worker);
    train_fused_finish(&update);
    return WEIR_OK;
}

const struct exchange_strategy exchange_fused = {.name = "fused",
                                                 .doc = "one worker, in its backward pass",
                                                 .post = exchange_post_nothing,
                                                 .wait = exchange_wait_all,
                                                 .finish = finish};
