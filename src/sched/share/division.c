#include "sched/share/division.h"

#include "base/macros.h"

#include <stdlib.h>

/** Weights of a round are scaled so that a share of the sum keeps nine digits. */
#define WEIGHT_SCALE    ((int64_t)1000000000)
#define LEFT_OVER_SCALE ((int64_t)1 << 30)

static int64_t want_left(const struct division_part *part)
{
    int64_t want = part->limit < 0 ? part->want : WEIR_MIN(part->want, part->limit);
    return WEIR_MAX(want - part->share, 0);
}

int64_t division_give_quota(struct division_part *parts, int32_t n, int64_t total)
{
    int64_t remaining = total;
    for (int32_t i = 0; i < n; i++) {
        int64_t quota = parts[i].quota < 0 ? total : parts[i].quota;
        parts[i].share = WEIR_MIN(quota, want_left(&parts[i]) + parts[i].share);
        remaining -= parts[i].share;
    }
    return WEIR_MAX(remaining, 0);
}

static int by_priority(const void *left, const void *right)
{
    const struct division_part *l = left, *r = right;
    if (l->priority != r->priority) {
        return l->priority > r->priority ? -1 : 1;
    }
    return l->age_rank < r->age_rank ? -1 : l->age_rank > r->age_rank;
}

static int by_left_over(const void *left, const void *right)
{
    const struct division_part *l = left, *r = right;
    if (l->priority != r->priority) {
        return l->priority > r->priority ? -1 : 1;
    }
    if (l->left_over != r->left_over) {
        return l->left_over > r->left_over ? -1 : 1;
    }
    return l->age_rank < r->age_rank ? -1 : l->age_rank > r->age_rank;
}

/** Who takes part in a round and how heavy: n + k (n - u), where n is its share of the weights. */
static __int128 weigh(struct division_part *parts, int32_t n, int64_t usage_weight_ppm)
{
    __int128 sum = 0, sum_in_round = 0;
    for (int32_t i = 0; i < n; i++) {
        bool takes_part = parts[i].weight > 0 && want_left(&parts[i]) > 0;
        parts[i].weight_in_round = takes_part ? parts[i].weight : 0;
        sum += parts[i].weight_in_round;
    }
    if (usage_weight_ppm == 0 || sum == 0) {
        return sum;
    }
    for (int32_t i = 0; i < n; i++) {
        if (parts[i].weight_in_round > 0) {
            __int128 part = (__int128)parts[i].weight_in_round * WEIGHT_SCALE / sum;
            __int128 used = (__int128)parts[i].usage_ppm * (WEIGHT_SCALE / DIVISION_PPM);
            __int128 weight = part + (part - used) * usage_weight_ppm / DIVISION_PPM;
            parts[i].weight_in_round = (int64_t)WEIR_MAX(weight, 0);
            sum_in_round += parts[i].weight_in_round;
        }
    }
    return sum_in_round;
}

/** One round over a priority's queues. @return Whether somebody was satisfied, so that the next
 *  round divides otherwise. */
static bool give_round(struct division_part *parts, int32_t n, const struct division_rule *rule,
                       __int128 sum, int64_t *amount)
{
    bool is_changed = false;
    int64_t at_start = *amount;
    for (int32_t i = 0; i < n; i++) {
        struct division_part *part = &parts[i];
        if (part->weight_in_round == 0) {
            continue;
        }
        __int128 scaled = (__int128)at_start * part->weight_in_round;
        int64_t left = want_left(part), fair = (int64_t)(scaled / sum), given;
        if ((__int128)left * sum <= scaled) {
            given = left;
            part->left_over = 0;
            is_changed = true;
        } else {
            given = fair - fair % rule->unit;
            __int128 cut = scaled - (__int128)given * sum;
            int64_t left_over = (int64_t)(cut * LEFT_OVER_SCALE / (sum * rule->unit));
            part->left_over = left_over;
        }
        part->share += given;
        *amount -= given;
    }
    return is_changed;
}

/** What rounding left, a unit each, the one that lost most by it first. */
static int64_t give_units(struct division_part *parts, int32_t n, int64_t amount, int64_t unit)
{
    qsort(parts, (size_t)n, sizeof *parts, by_left_over);
    for (bool is_changed = true; is_changed && amount > 0;) {
        is_changed = false;
        for (int32_t i = 0; i < n && amount > 0; i++) {
            int64_t given = WEIR_MIN(WEIR_MIN(unit, amount), want_left(&parts[i]));
            if (parts[i].weight > 0 && given > 0) {
                parts[i].share += given;
                amount -= given;
                is_changed = true;
            }
        }
    }
    return amount;
}

int64_t division_give_rest(struct division_part *parts, int32_t n, int64_t amount,
                           const struct division_rule *rule)
{
    qsort(parts, (size_t)n, sizeof *parts, by_priority);
    for (int32_t i = 0; i < n; i++) {
        parts[i].left_over = 0;
    }
    int32_t end;
    for (int32_t first = 0; first < n && amount > 0; first = end) {
        for (end = first + 1; end < n && parts[end].priority == parts[first].priority; end++) {
        }
        for (bool is_changed = true; is_changed && amount > 0;) {
            __int128 sum = weigh(parts + first, end - first, rule->usage_weight_ppm);
            is_changed = sum > 0 && give_round(parts + first, end - first, rule, sum, &amount);
        }
    }
    return give_units(parts, n, amount, rule->unit);
}
