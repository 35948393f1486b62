/**
 * The jobs of one queue in their order: what they are compared by, and heaps of them. For order.c
 * only.
 */
#ifndef WEIR_SCHED_ORDER_JOBS_H
#define WEIR_SCHED_ORDER_JOBS_H

#include "sched/order/order.h"

/** Note what a listed job is compared by. */
void order_jobs_list(struct order *order, int32_t job);

/**
 * A job's entry in a heap. Its key puts into one number what decides between most victims, the
 * first to lose the smallest: priority, whether the job is idle, how it stands to its minimum,
 * whether it is new, and as much of its claim as there is room for. Of entries with equal keys, and
 * of waiting jobs, all that is known decides.
 */
struct order_entry order_jobs_entry(const struct order *order, int32_t job);

/** Let the entry at a place of a heap of n sink to where it belongs. */
void order_jobs_sink(const struct order *order, struct order_entry *heap, int32_t n, int32_t at);

/** Put an entry behind the n of a heap and let it rise. */
void order_jobs_raise(const struct order *order, struct order_entry *heap, int32_t n,
                      struct order_entry what);

#endif
