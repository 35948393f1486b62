/**
 * Past use: what of the cluster each project has had lately, so that of two queues with equal weights
 * the one that has had less gets what is left over first.
 *
 * Use is an amount times the time for which it was had: devices and CPUs as the account counts them
 * (job/usage.h), memory as it stands when it is looked at. It is forgotten by halves: after one
 * *half-life* it counts half, after two a quarter. What there was to be had is summed up and forgotten in
 * the same way, so the *part* that a project has had is use by capacity, from 0 to 1, whatever the age of
 * the cluster, and whatever nodes came and went. A queue above others has had what those have had.
 *
 * The *weight* says how much it counts (weir_sched_profile.usage_weight_ppm): where a queue's weights say
 * that it is due the part n of what is left over, and it has had the part u, it gets by
 * n + weight × (n - u). 0, which it is at first, leaves it out of account. Guarantees and limits are as
 * ever. It is summed up whether it counts or not, so it says at once what was, when somebody sets it.
 *
 *     WEIR_TRY(weir_past_use_roll(txn, &level, now_ms, err));           // every 30 s
 *     WEIR_TRY(weir_past_use_read(txn, arena, &rule, &list, &n, err));  // for plans
 *
 * One row for each project that ever had anything, and one step for each that had something since the last
 * roll: neither grows with time. A clock that is set forward makes the past count less, by as much as the
 * cluster could have been used; one that is set back forgets nothing and counts nothing twice.
 */
#ifndef WEIR_JOB_PAST_USE_H
#define WEIR_JOB_PAST_USE_H

#include "base/arena.h"
#include "base/record.h"
#include "store/store.h"

#define WEIR_PAST_HALF_LIFE_MS       ((int64_t)7 * 24 * 3600 * 1000) /**< If nobody sets it. */
#define WEIR_PAST_HALF_LIFE_LEAST_MS ((int64_t)60 * 1000)
#define WEIR_PAST_HALF_LIFE_MOST_MS  ((int64_t)366 * 24 * 3600 * 1000)
#define WEIR_PAST_WEIGHT_MOST        1000

extern const struct weir_resource weir_past_rule_resource;

struct weir_past_rule {
    int64_t half_life_ms;
    double weight; /**< 0: past use does not count. */
};

/** What a project has at the moment. */
struct weir_past_level {
    const char *project;
    double memory_bytes;
};

/** What there is at the moment, and what of it the account does not count. */
struct weir_past_now {
    double device_milli, cpu_milli, memory_bytes; /**< All nodes'. */
    const struct weir_past_level *levels;         /**< The projects that have any memory. */
    size_t n_levels;
};

/** The parts that a project has had, from 0 to 1. */
struct weir_past_use {
    char *project;
    double devices, cpus, memory;
};

/** What is left of a unit after so long; a time below 0 is 0. Pure. */
double weir_past_left(int64_t half_life_ms, int64_t elapsed_ms);

/** What a level of 1 over so long adds up to, forgotten meanwhile: as long as the span where that is short, at most 1.44
 *  half-lives. Pure. */
double weir_past_span_ms(int64_t half_life_ms, int64_t elapsed_ms);

/** Sum up since the last roll. In a write transaction. */
weir_status weir_past_use_roll(struct weir_txn *txn, const struct weir_past_now *now,
                               int64_t now_ms, struct weir_error *err) WEIR_MUST_CHECK;

/** The rule, and the parts of all projects that have had any. In the arena. */
weir_status weir_past_use_read(struct weir_txn *txn, struct weir_arena *arena,
                               struct weir_past_rule *out_rule, struct weir_past_use **out,
                               size_t *out_n, struct weir_error *err) WEIR_MUST_CHECK;

/** Counts up with every roll and every change of the rule: a copy is read again when it has. */
weir_status weir_past_use_revision(struct weir_txn *txn, int64_t *out,
                                   struct weir_error *err) WEIR_MUST_CHECK;

/** What was set, or WEIR_PAST_HALF_LIFE_MS and 0. */
weir_status weir_past_rule_get(struct weir_txn *txn, struct weir_past_rule *out,
                               struct weir_error *err) WEIR_MUST_CHECK;

/** @return INVALID: a half-life or a weight that cannot be. What was summed up stays. */
weir_status weir_past_rule_set(struct weir_txn *txn, const struct weir_past_rule *rule,
                               int64_t now_ms, struct weir_error *err) WEIR_MUST_CHECK;

#endif
