/* Weights that are pending when a step begins. The first task that reads a layer's weights fetches
 * them. Other tasks of that layer wait; those of other layers do not. */
#include "net.h"

#include <pthread.h>
#include <stdlib.h>

/* State of a layer's weights. A thread that waits keeps no other thread from its work. */
enum { WEIGHTS_HERE, WEIGHTS_PENDING, WEIGHTS_FETCHING };

struct lazy_weights {
    weir_net_fetch_fn fn;
    void *context;
    _Atomic int *states; /* by op */
    pthread_mutex_t lock;
    pthread_cond_t changed;
};

weir_status lazy_weights_create(int32_t n_ops, struct lazy_weights **out)
{
    struct lazy_weights *lazy = calloc(1, sizeof(*lazy));
    if (!lazy) {
        return WEIR_ERR_NOMEM;
    }
    lazy->states = calloc((size_t)n_ops + 1, sizeof(*lazy->states));
    if (!lazy->states) {
        free(lazy);
        return WEIR_ERR_NOMEM;
    }
    pthread_mutex_init(&lazy->lock, NULL);
    pthread_cond_init(&lazy->changed, NULL);
    *out = lazy;
    return WEIR_OK;
}

void lazy_weights_destroy(struct lazy_weights *lazy)
{
    if (lazy) {
        pthread_cond_destroy(&lazy->changed);
        pthread_mutex_destroy(&lazy->lock);
        free((void *)lazy->states);
        free(lazy);
    }
}

/* Trainable elements of an op; its parameters lie one behind the other. */
static size_t range_of(const struct weir_net *net, const struct op *op, size_t *out_first)
{
    size_t first = SIZE_MAX, end = 0;
    for (int slot = 0; slot < OP_MAX_PARAMS; slot++) {
        int32_t index = op->params[slot].index;
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
    WEIR_TRY(net->lazy->fn(net->lazy->context, first, n));
    /* The scale and shift of batch norms are for inference and are refreshed before it. */
    if (op->kind == LAYER_BATCH_NORM || !net->backend->kernels[op->kind].refresh ||
        net->on_gpu.gpu) {
        return WEIR_OK;
    }
    void *scratch = net->threads.base + (size_t)i_thread * net->thread_bytes;
    return net->backend->kernels[op->kind].refresh(op, i_thread, scratch);
}

weir_status lazy_weights_require(struct weir_net *net, int32_t i_op, int32_t i_thread)
{
    struct lazy_weights *lazy = net->lazy;
    _Atomic int *state = &lazy->states[i_op];
    if (atomic_load_explicit(state, memory_order_acquire) == WEIGHTS_HERE) {
        return WEIR_OK;
    }
    pthread_mutex_lock(&lazy->lock);
    while (atomic_load(state) == WEIGHTS_FETCHING) {
        pthread_cond_wait(&lazy->changed, &lazy->lock);
    }
    bool is_ours = atomic_load(state) == WEIGHTS_PENDING;
    if (is_ours) {
        atomic_store(state, WEIGHTS_FETCHING);
    }
    pthread_mutex_unlock(&lazy->lock);
    if (!is_ours) {
        return WEIR_OK;
    }
    weir_status status = fetch(net, &net->plan->ops[i_op].op, i_thread);
    pthread_mutex_lock(&lazy->lock);
    atomic_store(state, WEIGHTS_HERE);
    pthread_cond_broadcast(&lazy->changed);
    pthread_mutex_unlock(&lazy->lock);
    return status;
}

void weir_net_set_pending_weights(struct weir_net *net, weir_net_fetch_fn fn, void *context)
{
    net->lazy->fn = fn;
    net->lazy->context = context;
    for (int32_t i = 0; i < net->plan->n_ops; i++) {
        size_t first, n = range_of(net, &net->plan->ops[i].op, &first);
        atomic_store(&net->lazy->states[i], n > 0 ? WEIGHTS_PENDING : WEIGHTS_HERE);
    }
    /* Every copy is refreshed with its layer, except those of batch norms. */
    net->are_copies_of_backward = false;
    net->are_packed_fresh = false;
    net->are_statistics_stale = true;
}

static weir_status run_require(void *context, int32_t i_thread, int32_t i_deferred)
{
    return lazy_weights_require(context, i_deferred, i_thread);
}

bool lazy_weights_has_pending(const struct weir_net *net)
{
    bool is_whole = true;
    for (int32_t i = 0; i < net->plan->n_ops; i++) {
        is_whole = is_whole && atomic_load(&net->lazy->states[i]) == WEIGHTS_HERE;
    }
    return !is_whole;
}

weir_status weir_net_wait_weights(struct weir_net *net)
{
    if (!lazy_weights_has_pending(net)) {
        return WEIR_OK;
    }
    if (net->backend->enter_thread) {
        net->backend->enter_thread();
    }
    const struct program all = {.deferred = net->refresh_deferred,
                                .n_deferred = net->plan->n_ops,
                                .run_deferred = run_require,
                                .context = net};
    return workers_run(net->workers, &all);
}
