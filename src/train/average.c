#include "train/average.h"

#include <stdlib.h>
#include <string.h>

weir_status train_average_init(struct train_average *average, double decay, struct weir_net *net,
                               struct weir_error *err)
{
    size_t n = 0;
    *average = (struct train_average){0};
    (void)weir_net_weights(net, &n);
    if (decay <= 0) {
        return WEIR_OK;
    }
    float *weights = calloc(n + 1, sizeof *weights);
    if (weights == NULL) {
        return weir_error_set(err, WEIR_ERR_NOMEM, "no memory for the average of %zu weights", n);
    }
    *average = (struct train_average){.decay = decay, .weights = weights, .n = n};
    train_average_reset(average, net);
    return WEIR_OK;
}

void train_average_fini(struct train_average *average)
{
    free(average->weights);
    *average = (struct train_average){0};
}

void train_average_reset(struct train_average *average, struct weir_net *net)
{
    if (average->weights != NULL) {
        memcpy(average->weights, weir_net_weights(net, NULL), average->n * sizeof(float));
    }
}

void train_average_add_range(struct train_average *average, struct weir_net *net, uint64_t step,
                             size_t first_elem, size_t n_elems)
{
    if (average->weights == NULL) {
        return;
    }
    const double early = (1 + (double)step) / (10 + (double)step);
    const float rest = (float)(1 - WEIR_MIN(average->decay, early));
    const float *restrict weights = weir_net_weights(net, NULL) + first_elem;
    float *restrict mean = average->weights + first_elem;
    for (size_t i = 0; i < n_elems; i++) {
        mean[i] += rest * (weights[i] - mean[i]);
    }
}

void train_average_add(struct train_average *average, struct weir_net *net, uint64_t step)
{
    train_average_add_range(average, net, step, 0, average->n);
}

void train_average_swap(struct train_average *average, struct weir_net *net)
{
    if (average->weights == NULL) {
        return;
    }
    float *weights = weir_net_weights(net, NULL);
    for (size_t i = 0; i < average->n; i++) {
        float kept = weights[i];
        weights[i] = average->weights[i];
        average->weights[i] = kept;
    }
    weir_net_weights_changed(net);
}
