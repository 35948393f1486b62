/* Weights that are still on their way when a step begins: each layer's are asked for by the first
 * task that reads them; the others of that layer wait, those of other layers do not. */
#include "net.h"

#include <pthread.h>
#include <stdlib.h>

/* Of a layer's weights. Nobody is in the way of a thread that waits for others. */
enum { WEIGHTS_HERE, WEIGHTS_EXPECTED, WEIGHTS_COMING };

struct arrival {
    weir_net_weights_fn fn;
    void *context;
    _Atomic int *states; /* by op */
    pthread_mutex_t lock;
    pthread_cond_t changed;
};

weir_status arrival_create(int32_t n_ops, struct arrival **out)
{
    struct arrival *arrival = calloc(1, sizeof(*arrival));
    if (!arrival) {
        return WEIR_ERR_NOMEM;
    }
    arrival->states = calloc((size_t)n_ops + 1, sizeof(*arrival->states));
    if (!arrival->states) {
        free(arrival);
        return WEIR_ERR_NOMEM;
    }
    pthread_mutex_init(&arrival->lock, NULL);
    pthread_cond_init(&arrival->changed, NULL);
    *out = arrival;
    return WEIR_OK;
}

void arrival_destroy(struct arrival *arrival)
{
    if (arrival) {
        pthread_cond_destroy(&arrival->changed);
        pthread_mutex_destroy(&arrival->lock);
        free((void *)arrival->states);
        free(arrival);
    }
}

/* Trainable elements of an op: its parameters lie one behind the other. */
static size_t range_of(const struct weir_net *net, const struct op *op, size_t *out_first)
{
    size_t first = SIZE_MAX, end = 0;
    for (int place = 0; place < OP_MAX_PARAMS; place++) {
        int32_t index = op->params[place].index;
        if (index >= 0 && net->params[index].is_trainable) {
            const struct weir_param *param = &net->params[index];
            first = WEIR_MIN(first, param->first_elem);
            end = WEIR_MAX(end, param->first_elem + param->n_elems);
        }
    }
    *out_first = first;
    return end > 0 ? end - first : 0;
}

static weir_status fetch(struct weir_net *net, const struct op *op, int32_t i_thread)
{
    size_t first;
    size_t n = range_of(net, op, &first);
    WEIR_TRY(net->arrival->fn(net->arrival->context, first, n));
    /* What batch norms derive is of inference, and renewed before it. */
    if (op->kind == LAYER_BATCH_NORM || !net->backend->kernels[op->kind].refresh) {
        return WEIR_OK;
    }
    void *scratch = net->threads.base + (size_t)i_thread * net->thread_bytes;
    return net->backend->kernels[op->kind].refresh(op, i_thread, scratch);
}

weir_status arrival_need(struct weir_net *net, int32_t i_op, int32_t i_thread)
{
    struct arrival *arrival = net->arrival;
    _Atomic int *state = &arrival->states[i_op];
    if (atomic_load_explicit(state, memory_order_acquire) == WEIGHTS_HERE) {
        return WEIR_OK;
    }
    pthread_mutex_lock(&arrival->lock);
    while (atomic_load(state) == WEIGHTS_COMING) {
        pthread_cond_wait(&arrival->changed, &arrival->lock);
    }
    bool is_ours = atomic_load(state) == WEIGHTS_EXPECTED;
    if (is_ours) {
        atomic_store(state, WEIGHTS_COMING);
    }
    pthread_mutex_unlock(&arrival->lock);
    if (!is_ours) {
        return WEIR_OK;
    }
    weir_status status = fetch(net, &net->plan->ops[i_op].op, i_thread);
    pthread_mutex_lock(&arrival->lock);
    atomic_store(state, WEIGHTS_HERE);
    pthread_cond_broadcast(&arrival->changed);
    pthread_mutex_unlock(&arrival->lock);
    return status;
}

void weir_net_expect_weights(struct weir_net *net, weir_net_weights_fn fn, void *context)
{
    net->arrival->fn = fn;
    net->arrival->context = context;
    for (int32_t i = 0; i < net->plan->n_ops; i++) {
        size_t first, n = range_of(net, &net->plan->ops[i].op, &first);
        atomic_store(&net->arrival->states[i], n > 0 ? WEIGHTS_EXPECTED : WEIGHTS_HERE);
    }
    /* Every copy is renewed with its layer, but for those of batch norms. */
    net->are_copies_of_backward = false;
    net->are_derived_fresh = false;
    net->are_statistics_stale = true;
}

static weir_status run_arrival(void *context, int32_t i_thread, int32_t i_filler)
{
    return arrival_need(context, i_filler, i_thread);
}

weir_status weir_net_settle_weights(struct weir_net *net)
{
    bool is_settled = true;
    for (int32_t i = 0; i < net->plan->n_ops; i++) {
        is_settled = is_settled && atomic_load(&net->arrival->states[i]) == WEIGHTS_HERE;
    }
    if (is_settled) {
        return WEIR_OK;
    }
    if (net->backend->enter_thread) {
        net->backend->enter_thread();
    }
    const struct program all = {.fillers = net->refresh_fillers,
                                .n_fillers = net->plan->n_ops,
                                .run_filler = run_arrival,
                                .context = net};
    return workers_run(net->workers, &all);
}
