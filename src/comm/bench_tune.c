#include "comm/bench_private.h"

#include "comm/core/comm_private.h"

#include <math.h>

/* The size of messages matters once there is more than one of them. */
static const char *const candidates[] = {"flat",      "direct#64K",   "direct#256K", "direct#1M",
                                         "ring#64K",  "ring#256K",    "ring#1M",     "tree#64K",
                                         "tree#256K", "halving#256K", "halving#1M"};

/* What was best for the size before counts as best unless another is faster by more than this. */
static const double ENOUGH = 0.95;

enum { FLAT_MOST_BYTES = 1 << 20, SMALL_BYTES = 64 << 10 };

static bool is_worth_trying(const char *candidate, size_t bytes)
{
    bool is_flat = strcmp(candidate, "flat") == 0;
    if (is_flat) {
        return bytes <= FLAT_MOST_BYTES;
    }
    return bytes > SMALL_BYTES || strstr(candidate, "#256K") != NULL;
}

static weir_status try_size(struct weir_comm *comm, const struct bench_plan *plan, void *buf,
                            size_t bytes, int *i_best, struct bench_row *out,
                            struct weir_error *err)
{
    struct bench_row rows[WEIR_ARRAY_LEN(candidates)];
    int i_fastest = -1;
    for (int i = 0; i < (int)WEIR_ARRAY_LEN(candidates); i++) {
        rows[i].time_us = INFINITY;
        if (is_worth_trying(candidates[i], bytes)) {
            WEIR_TRY(weir_comm_set_algorithm(comm, candidates[i], err));
            WEIR_TRY(bench_measure(comm, plan, bytes, buf, &rows[i]));
            i_fastest = i_fastest < 0 || rows[i].time_us < rows[i_fastest].time_us ? i : i_fastest;
        }
    }
    /* All ranks have the same times, so they come to the same. */
    if (*i_best < 0 || rows[i_fastest].time_us < ENOUGH * rows[*i_best].time_us) {
        *i_best = i_fastest;
    }
    *out = rows[*i_best];
    return WEIR_OK;
}

/* Between two sizes of which another is best for each the border is in the middle, as a ratio. */
static void put_rule(struct comm_plan *rules, const struct comm_rule *rule, double border)
{
    struct comm_rule *last = rules->n_rules > 0 ? &rules->rules[rules->n_rules - 1] : NULL;
    if (last != NULL &&
        ((last->algorithm == rule->algorithm && last->chunk_bytes == rule->chunk_bytes) ||
         rules->n_rules == COMM_PLAN_MAX_RULES)) {
        return;
    }
    if (last != NULL) {
        last->up_to_bytes = (uint64_t)border;
    }
    rules->rules[rules->n_rules] = *rule;
    rules->rules[rules->n_rules++].up_to_bytes = UINT64_MAX;
}

weir_status bench_tune(struct weir_comm *comm, const struct bench_plan *plan, void *buf,
                       struct bench_row *out_rows, struct weir_error *err)
{
    struct comm_plan rules = {.n_rules = 0}, one;
    int i_best = -1;
    if (comm->plan.n_rules == 0) {
        return weir_error_set(err, WEIR_ERR_UNSUPPORTED,
                              "--tune: there is one way in shared memory; use --transport ucx or "
                              "tcp, or --split");
    }
    for (size_t i = 0; i < plan->n_sizes; i++) {
        size_t bytes = plan->sizes[i], before = i > 0 ? plan->sizes[i - 1] : bytes;
        WEIR_TRY(try_size(comm, plan, buf, bytes, &i_best, &out_rows[i], err));
        WEIR_TRY(comm_plan_parse(candidates[i_best], &one, err));
        put_rule(&rules, &one.rules[0], sqrt((double)before * (double)bytes));
    }
    if (weir_comm_rank(comm) != 0) {
        return WEIR_OK;
    }
    struct comm_plan_key key = {.transport = comm_plan_transport(comm),
                                .n_ranks = comm->n_workers,
                                .n_hosts = comm->n_hosts,
                                .wire = comm->wire};
    return comm_plan_save(plan->options->tune, &key, &rules, err);
}
