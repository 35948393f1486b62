#include "data/order.h"

#include "base/rng.h"

#define ROUNDS        8
#define MIN_BITS      6 /* with fewer, sets of four or five do not get all orders equally often */
#define ORDER_COUNTER 0x4F /* keeps these Philox counters apart from those of augmentation */

weir_status weir_order_check(const struct weir_order *order, struct weir_error *err)
{
    if (order->n_samples == 0 || order->n_samples > UINT64_C(1) << 62) {
        return weir_error_set(err, WEIR_ERR_INVALID, "an order needs 1 to 2^62 samples, not %llu",
                              (unsigned long long)order->n_samples);
    }
    if (order->batch == 0) {
        return weir_error_set(err, WEIR_ERR_INVALID, "the batch size is 0");
    }
    if (order->tail == WEIR_TAIL_DROP && order->n_samples < order->batch) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "%llu samples make no batch of %u: take a smaller batch or keep the "
                              "last one (tail \"pad\")",
                              (unsigned long long)order->n_samples, order->batch);
    }
    return WEIR_OK;
}

/** Halves of a `bits`-wide number; the left one is the wider if `bits` is odd. */
static uint64_t feistel(uint64_t seed, uint64_t epoch, unsigned bits, uint64_t value)
{
    unsigned right_bits = bits / 2, left_bits = bits - right_bits;
    uint64_t left = value >> right_bits, right = value & ((UINT64_C(1) << right_bits) - 1);
    // The halves change places, and widths, each round: after an even number all is as before.
    for (unsigned round = 0; round < ROUNDS; round++) {
        uint32_t random[4];
        uint64_t tag = (uint64_t)ORDER_COUNTER << 56 | (uint64_t)round << 48;
        weir_philox(seed, tag ^ epoch, right, random);
        uint64_t mask = (UINT64_C(1) << left_bits) - 1;
        uint64_t mixed = left ^ ((random[0] | (uint64_t)random[1] << 32) & mask);
        left = right;
        right = mixed;
        unsigned kept = left_bits;
        left_bits = right_bits;
        right_bits = kept;
    }
    return left << right_bits | right;
}

uint64_t weir_permute(uint64_t seed, uint64_t epoch, uint64_t n, uint64_t i)
{
    unsigned bits = MIN_BITS;
    while (bits < 62 && UINT64_C(1) << bits < n) {
        bits++;
    }
    // Walking the cycle that i lies on until it is back in [0, n) is a bijection of [0, n).
    do {
        i = feistel(seed, epoch, bits, i);
    } while (i >= n);
    return i;
}

uint64_t weir_order_sample(const struct weir_order *order, uint64_t epoch, uint64_t position)
{
    return order->shuffle ? weir_permute(order->seed, epoch, order->n_samples, position) : position;
}

uint64_t weir_order_batches(const struct weir_order *order)
{
    uint64_t whole = order->n_samples / order->batch;
    return whole + (order->tail == WEIR_TAIL_PAD && order->n_samples % order->batch != 0);
}

struct weir_place weir_order_normalize(const struct weir_order *order, struct weir_place place)
{
    uint64_t n = order->n_samples, left = place.position < n ? n - place.position : 0;
    bool is_over = order->tail == WEIR_TAIL_DROP ? left < order->batch : left == 0;
    return is_over ? (struct weir_place){place.epoch + 1, 0} : place;
}

struct weir_place weir_order_after(const struct weir_order *order, struct weir_place place)
{
    uint64_t left = order->n_samples - place.position;
    place.position += WEIR_MIN(left, (uint64_t)order->batch);
    return weir_order_normalize(order, place);
}

void weir_order_share(uint32_t batch, uint32_t rank, uint32_t size, uint32_t *out_first,
                      uint32_t *out_n)
{
    uint32_t first = (uint32_t)((uint64_t)rank * batch / size);
    uint32_t end = (uint32_t)(((uint64_t)rank + 1) * batch / size);
    *out_first = first;
    *out_n = end - first;
}

uint32_t weir_order_max_share(uint32_t batch, uint32_t size)
{
    return (uint32_t)(((uint64_t)batch + size - 1) / size);
}
