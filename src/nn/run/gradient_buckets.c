#include "net.h"

void ready_start(struct weir_net *net, weir_net_ready_fn fn, void *context)
{
    struct ready_cursor *ready = &net->ready;
    ready->fn = fn;
    ready->context = context;
    ready->i_next = 0;
    ready->first_elem = 0;
    atomic_store(&ready->n_calls, 0);
    for (size_t i = 0; i < net->n_trainable_params; i++) {
        atomic_store(&ready->is_done[i], false);
    }
}

/* Up to which element the slab is complete: a parameter's range reaches to the next one's start. */
static size_t end_of(const struct weir_net *net, int32_t i_param)
{
    return (size_t)i_param + 1 < net->n_trainable_params ? net->params[i_param + 1].first_elem
                                                         : net->n_trainable_elems;
}

static void advance(struct weir_net *net)
{
    struct ready_cursor *ready = &net->ready;
    while ((size_t)ready->i_next < net->n_trainable_params &&
           atomic_load(&ready->is_done[ready->i_next])) {
        size_t end = end_of(net, ready->i_next++);
        if ((end - ready->first_elem) * sizeof(float) >= ready->bucket_bytes ||
            end == net->n_trainable_elems) {
            ready->fn(ready->context, ready->first_elem, end - ready->first_elem);
            ready->first_elem = end;
        }
    }
}

void ready_op_done(struct weir_net *net, const struct op *op)
{
    struct ready_cursor *ready = &net->ready;
    if (!ready->fn) {
        return;
    }
    for (int place = 0; place < OP_MAX_PARAMS; place++) {
        if (op->params[place].gradient) {
            atomic_store(&ready->is_done[op->params[place].index], true);
        }
    }
    /* One thread at a time moves the cursor; others leave their completion for it to find. */
    int32_t n_seen = atomic_fetch_add(&ready->n_calls, 1);
    if (n_seen != 0) {
        return;
    }
    for (n_seen = 1; n_seen != 0; n_seen = atomic_fetch_sub(&ready->n_calls, n_seen) - n_seen) {
        advance(net);
    }
}

void weir_net_set_bucket_bytes(struct weir_net *net, size_t bucket_bytes)
{
    net->ready.bucket_bytes = bucket_bytes;
}
