#include "net.h"

void gradient_buckets_start(struct weir_net *net, weir_net_bucket_fn fn, void *context)
{
    struct gradient_buckets *buckets = &net->buckets;
    buckets->fn = fn;
    buckets->context = context;
    buckets->i_next = 0;
    buckets->first_elem = 0;
    atomic_store(&buckets->n_calls, 0);
    for (size_t i = 0; i < net->n_trainable_params; i++) {
        atomic_store(&buckets->is_done[i], false);
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
    struct gradient_buckets *buckets = &net->buckets;
    while ((size_t)buckets->i_next < net->n_trainable_params &&
           atomic_load(&buckets->is_done[buckets->i_next])) {
        size_t end = end_of(net, buckets->i_next++);
        if ((end - buckets->first_elem) * sizeof(float) >= buckets->bucket_bytes ||
            end == net->n_trainable_elems) {
            buckets->fn(buckets->context, buckets->first_elem, end - buckets->first_elem);
            buckets->first_elem = end;
        }
    }
}

void gradient_buckets_op_done(struct weir_net *net, const struct op *op)
{
    struct gradient_buckets *buckets = &net->buckets;
    if (!buckets->fn) {
        return;
    }
    for (int slot = 0; slot < OP_MAX_PARAMS; slot++) {
        if (op->params[slot].gradient) {
            atomic_store(&buckets->is_done[op->params[slot].index], true);
        }
    }
    /* One thread at a time moves the cursor; others leave their completion for it to find. */
    int32_t n_seen = atomic_fetch_add(&buckets->n_calls, 1);
    if (n_seen != 0) {
        return;
    }
    for (n_seen = 1; n_seen != 0; n_seen = atomic_fetch_sub(&buckets->n_calls, n_seen) - n_seen) {
        advance(net);
    }
}

void weir_net_set_bucket_bytes(struct weir_net *net, size_t bucket_bytes)
{
    net->buckets.bucket_bytes = bucket_bytes;
}
