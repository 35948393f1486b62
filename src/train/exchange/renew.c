#include "train/exchange/renew.h"

bool train_updates_in_backward(const struct train_task *task, int n_workers)
{
    return n_workers == 1 && task->config->parameter_servers == 0 &&
           task->config->micro_batches <= 1 && !weir_optimizer_needs_all(&task->optimizer);
}

void train_renew(void *context, const struct weir_gradients *gradients)
{
    const struct train_renewal *renewal = context;
    weir_optimizer_apply_gradients(renewal->optimizer, weir_net_weights(renewal->net, NULL),
                                   gradients, renewal->learning_rate, renewal->step);
    train_average_add_range(renewal->average, renewal->net, renewal->step, gradients->first_elem,
                            gradients->n_elems);
}

void train_renew_statistics(const struct train_renewal *renewal)
{
    size_t n_trainable = weir_net_n_trainable_elems(renewal->net), n_weights = 0;
    (void)weir_net_weights(renewal->net, &n_weights);
    train_average_add_range(renewal->average, renewal->net, renewal->step, n_trainable,
                            n_weights - n_trainable);
}
