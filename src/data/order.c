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

/** What a round adds to the half of `bits` bits beside `half`. */
static uint64_t round_key(uint64_t seed, uint64_t epoch, unsigned round, uint64_t half,
                          unsigned bits)
{
    uint32_t random[4];
    uint64_t tag = (uint64_t)ORDER_COUNTER << 56 | (uint64_t)round << 48;
    weir_philox(seed, tag ^ epoch, half, random);
    return (random[0] | (uint64_t)random[1] << 32) & ((UINT64_C(1) << bits) - 1);
}

/** Halves of a `bits`-wide number; the left one is the wider if `bits` is odd. */
static uint64_t feistel(uint64_t seed, uint64_t epoch, unsigned bits, uint64_t value)
{
    unsigned right_bits = bits / 2, left_bits = bits - right_bits;
    uint64_t left = value >> right_bits, right = value & ((UINT64_C(1) << right_bits) - 1);
    // The halves change places, and widths, each round: after an even number all is as before.
    for (unsigned round = 0; round < ROUNDS; round++) {
        uint64_t mixed = left ^ round_key(seed, epoch, round, right, left_bits);
        left = right;
        right = mixed;
        unsigned kept = left_bits;
        left_bits = right_bits;
        right_bits = kept;
    }
    return left << right_bits | right;
}

/** The rounds of feistel in the other order. */
static uint64_t unfeistel(uint64_t seed, uint64_t epoch, unsigned bits, uint64_t value)
{
    unsigned right_bits = bits / 2, left_bits = bits - right_bits;
    uint64_t left = value >> right_bits, right = value & ((UINT64_C(1) << right_bits) - 1);
    for (unsigned round = ROUNDS; round-- > 0;) {
        uint64_t before = right ^ round_key(seed, epoch, round, left, right_bits);
        right = left;
        left = before;
        unsigned kept = left_bits;
        left_bits = right_bits;
        right_bits = kept;
    }
    return left << right_bits | right;
}

static unsigned bits_of(uint64_t n)
{
    unsigned bits = MIN_BITS;
    while (bits < 62 && UINT64_C(1) << bits < n) {
        bits++;
    }
    return bits;
}

uint64_t weir_permute(uint64_t seed, uint64_t epoch, uint64_t n, uint64_t i)
{
    unsigned bits = bits_of(n);
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

uint64_t weir_order_position(const struct weir_order *order, uint64_t epoch, uint64_t sample)
{
    if (!order->shuffle) {
        return sample;
    }
    unsigned bits = bits_of(order->n_samples);
    do {
        sample = unfeistel(order->seed, epoch, bits, sample);
    } while (sample >= order->n_samples);
    return sample;
}

bool weir_order_has_shown(const struct weir_order *order, struct weir_place start,
                          struct weir_place end, uint64_t sample)
{
    for (uint64_t epoch = start.epoch; epoch <= end.epoch; epoch++) {
        uint64_t first = epoch == start.epoch ? start.position : 0;
        uint64_t n_used = order->n_samples;
        if (order->tail == WEIR_TAIL_DROP) {
            n_used = first + (n_used - WEIR_MIN(first, n_used)) / order->batch * order->batch;
        }
        uint64_t behind = epoch == end.epoch ? WEIR_MIN(end.position, n_used) : n_used;
        uint64_t position = weir_order_position(order, epoch, sample);
        if (position >= first && position < behind) {
            return true;
        }
    }
    return false;
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
