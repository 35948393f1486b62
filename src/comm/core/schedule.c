#include "comm/core/schedule.h"

#include <stdlib.h>

const char *comm_algorithm_name(enum comm_algorithm algorithm)
{
    static const char *const names[COMM_N_ALGORITHMS] = {"flat", "direct", "ring", "halving",
                                                         "tree"};
    return names[algorithm];
}

/* ---- writing a schedule --------------------------------------------------------------------- */

static void step(struct comm_schedule *schedule, enum comm_action action, int peer, int first,
                 int n)
{
    schedule->steps[schedule->n_steps++] =
        (struct comm_step){.action = action, .peer = peer, .first = first, .n = n};
}

static void final_step(struct comm_schedule *schedule, int peer, int first, int n)
{
    step(schedule, COMM_SEND, peer, first, n);
    schedule->steps[schedule->n_steps - 1].is_final = true;
}

/* The steps since the last call are a stage; without any there is none. */
static void end_stage(struct comm_schedule *schedule)
{
    int start = schedule->first_steps[schedule->n_stages], n_in = 0, n_out = 0;
    int n_steps = schedule->n_steps - start;
    if (n_steps == 0) {
        return;
    }
    for (int i = start; i < schedule->n_steps; i++) {
        if (schedule->steps[i].action == COMM_SEND) {
            n_out += schedule->steps[i].n;
        } else {
            n_in += schedule->steps[i].n;
        }
    }
    schedule->most_in = WEIR_MAX(schedule->most_in, n_in);
    schedule->most_out = WEIR_MAX(schedule->most_out, n_out);
    schedule->most_steps = WEIR_MAX(schedule->most_steps, n_steps);
    schedule->first_steps[++schedule->n_stages] = schedule->n_steps;
}

/* ---- the algorithms ------------------------------------------------------------------------- */

static void write_flat(struct comm_schedule *schedule)
{
    for (int r = 0; r < schedule->n_ranks; r++) {
        if (r != schedule->rank) {
            step(schedule, COMM_ADD, r, 0, 1);
            step(schedule, COMM_SEND, r, 0, 1);
        }
    }
    end_stage(schedule);
}

static void write_direct(struct comm_schedule *schedule)
{
    int self = schedule->rank, n = schedule->n_ranks;
    /* Beginning behind oneself: or all would send to rank 0 first. */
    for (int i = 1; i < n; i++) {
        step(schedule, COMM_ADD, (self + n - i) % n, self, 1);
        step(schedule, COMM_SEND, (self + i) % n, (self + i) % n, 1);
    }
    end_stage(schedule);
    for (int i = 1; i < n; i++) {
        step(schedule, COMM_TAKE, (self + n - i) % n, (self + n - i) % n, 1);
        final_step(schedule, (self + i) % n, self, 1);
    }
    end_stage(schedule);
}

static void write_ring(struct comm_schedule *schedule)
{
    int self = schedule->rank, n = schedule->n_ranks;
    int next = (self + 1) % n, previous = (self + n - 1) % n;
    for (int s = 0; s < n - 1; s++) {
        step(schedule, COMM_ADD, previous, (self + 2 * n - s - 2) % n, 1);
        step(schedule, COMM_SEND, next, (self + 2 * n - s - 1) % n, 1);
        end_stage(schedule);
    }
    for (int s = 0; s < n - 1; s++) {
        step(schedule, COMM_TAKE, previous, (self + 2 * n - s - 1) % n, 1);
        final_step(schedule, next, (self + n - s) % n, 1);
        end_stage(schedule);
    }
}

static void write_halving(struct comm_schedule *schedule)
{
    int self = schedule->rank, n = schedule->n_ranks, n_folded = schedule->n_slices;
    if (self >= n_folded) {
        step(schedule, COMM_SEND, self - n_folded, 0, n_folded);
        end_stage(schedule);
        step(schedule, COMM_TAKE, self - n_folded, 0, n_folded);
        end_stage(schedule);
        return;
    }
    bool has_excess = self + n_folded < n;
    if (has_excess) {
        step(schedule, COMM_ADD, self + n_folded, 0, n_folded);
        end_stage(schedule);
    }
    int first = 0;
    for (int half = n_folded / 2; half >= 1; half /= 2) {
        bool is_upper = (self & half) != 0;
        step(schedule, COMM_ADD, self ^ half, is_upper ? first + half : first, half);
        step(schedule, COMM_SEND, self ^ half, is_upper ? first : first + half, half);
        end_stage(schedule);
        first += is_upper ? half : 0;
    }
    for (int len = 1; len < n_folded; len *= 2) {
        int theirs = first ^ len;
        step(schedule, COMM_TAKE, self ^ len, theirs, len);
        final_step(schedule, self ^ len, first, len);
        end_stage(schedule);
        first = WEIR_MIN(first, theirs);
    }
    if (has_excess) {
        final_step(schedule, self + n_folded, 0, n_folded);
        end_stage(schedule);
    }
}

struct tree_place {
    int parent, lower, upper; /**< -1: none. */
};

/* In-order binary tree over 0 .. n-1 with root 0, whose only child is upper; leaves are odd. */
static struct tree_place tree_place(int node, int n)
{
    struct tree_place place = {.parent = -1, .lower = -1, .upper = -1};
    int bit = 1;
    while (bit < n && (node & bit) == 0) {
        bit <<= 1;
    }
    if (node > 0) {
        int parent = (node ^ bit) | bit << 1;
        place.parent = parent < n ? parent : node ^ bit;
        place.lower = bit > 1 ? node - bit / 2 : -1;
    }
    for (int below = bit / 2; below >= 1 && place.upper < 0; below /= 2) {
        place.upper = node + below < n ? node + below : -1;
    }
    return place;
}

/* The second tree is the first one in reverse (n even) or moved by one (odd): leaves change with
 * inner nodes. Both are their own way back, up to the direction of the move. */
static int node_of_rank(int rank, int n, int variant)
{
    if (variant == 0) {
        return rank;
    }
    return n % 2 == 0 ? n - 1 - rank : (rank + n - 1) % n;
}

static int rank_of_node(int node, int n, int variant)
{
    if (variant == 0 || node < 0) {
        return node;
    }
    return n % 2 == 0 ? n - 1 - node : (node + 1) % n;
}

static void write_tree(struct comm_schedule *schedule, int variant)
{
    int n = schedule->n_ranks;
    struct tree_place place = tree_place(node_of_rank(schedule->rank, n, variant), n);
    int parent = rank_of_node(place.parent, n, variant);
    int children[] = {rank_of_node(place.lower, n, variant), rank_of_node(place.upper, n, variant)};
    for (int i = 0; i < 2; i++) {
        if (children[i] >= 0) {
            step(schedule, COMM_ADD, children[i], 0, 1);
        }
    }
    end_stage(schedule);
    if (parent >= 0) {
        step(schedule, COMM_SEND, parent, 0, 1);
        end_stage(schedule);
        step(schedule, COMM_TAKE, parent, 0, 1);
        end_stage(schedule);
    }
    for (int i = 0; i < 2; i++) {
        if (children[i] >= 0) {
            final_step(schedule, children[i], 0, 1);
        }
    }
    end_stage(schedule);
}

/* ---- life ----------------------------------------------------------------------------------- */

static int largest_power_of_two(int most)
{
    int power = 1;
    while (power * 2 <= most) {
        power *= 2;
    }
    return power;
}

weir_status comm_schedule_init(struct comm_schedule *schedule, enum comm_algorithm algorithm,
                               int n_ranks, int rank, int variant)
{
    /* At most 2 (P-1) stages of 2 steps (RING), or 2 stages of 2 (P-1) (DIRECT), or 2 + 2 log2 P.
     */
    size_t most_steps = 4 * (size_t)n_ranks + 8;
    int folded = largest_power_of_two(n_ranks);
    *schedule = (struct comm_schedule){.rank = rank,
                                       .n_ranks = n_ranks,
                                       .n_slices = 1,
                                       .n_largest = 1,
                                       .first_steps = calloc(most_steps, sizeof(int)),
                                       .steps = calloc(most_steps, sizeof(struct comm_step))};
    if (schedule->first_steps == NULL || schedule->steps == NULL) {
        comm_schedule_fini(schedule);
        return WEIR_ERR_NOMEM;
    }
    switch (algorithm) {
    case COMM_DIRECT:
        schedule->n_slices = n_ranks;
        write_direct(schedule);
        break;
    case COMM_RING:
        schedule->n_slices = n_ranks;
        write_ring(schedule);
        break;
    case COMM_HALVING:
        schedule->n_slices = folded;
        schedule->n_largest = folded < n_ranks || folded == 1 ? folded : folded / 2;
        write_halving(schedule);
        break;
    case COMM_TREE:
        write_tree(schedule, variant);
        break;
    default:
        write_flat(schedule);
        break;
    }
    return WEIR_OK;
}

void comm_schedule_fini(struct comm_schedule *schedule)
{
    free(schedule->first_steps);
    free(schedule->steps);
    *schedule = (struct comm_schedule){.n_ranks = 0};
}
