/**
 * Fragmentation of a node under a mix of tasks, after Weng et al., "Beware of Fragmentation",
 * ATC'23: the part of a node's free devices that a task drawn from the mix could not use. A task is
 * placed where that part grows least.
 *
 * A *mix* is the kinds of tasks that are about, each as often as it is. A *state* is what a node
 * has free. For one kind, what is *usable* of a state is as in the paper: nothing if not even one
 * such task fits, else all free devices that have room for it. Two things go beyond the paper;
 * bench/README.md says what they bring:
 *
 *  - depth: the paper asks whether one task fits. Eight free devices beside CPUs for one task are
 *    then all usable. With a depth of d percent, d percent of the usable amount count only as far
 *    as CPUs and memory last: for one such task, and then for what comes with a device on average.
 *  - scarcity: a kind's weight is its popularity times (room of all / usable room for it)^(3/4), so
 *    that what few nodes can give, a rare model or eight whole devices, is given away last.
 *
 * Everything is int64 fixed point: amounts of devices in thousandths, weights add up to
 * FGD_WEIGHT_ONE. Values of states are cached. Not thread-safe. Only
 * fgd_mix_init takes memory.
 */
#ifndef WEIR_SCHED_FGD_H
#define WEIR_SCHED_FGD_H

#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

#define FGD_KINDS_MAX  512
#define FGD_WEIGHT_ONE ((int64_t)1 << 24)
#define FGD_DEPTH_PCT  30

/** Tasks alike in what they need. Those without devices are no part of a mix. */
struct fgd_kind {
    int64_t cpu_milli, memory_bytes;
    int64_t device_memory_bytes; /**< Of each device, if device_milli is 0. */
    int32_t n_devices, device_milli;
    int32_t constraint; /**< Which nodes it may use: a row of the classes' `allows`. */
    int64_t count;      /**< So many tasks. */
};

/** Nodes alike in what they allow. */
struct fgd_class {
    int64_t device_memory_bytes; /**< 0: unknown. */
    bool is_whole_only;
    const bool *allows; /**< Per constraint. */
};

/** What a node has free. */
struct fgd_state {
    int32_t class_;
    int32_t n_devices;
    int64_t cpu_milli, memory_bytes;
    int32_t *free; /**< Thousandths of each device, the emptiest first. */
};

struct fgd_group; /* Kinds that need the same of devices. */
struct fgd_cache;

struct fgd_mix {
    struct fgd_kind *kinds;
    int64_t *weights;
    int32_t n_kinds;
    struct fgd_group *groups;
    int32_t n_groups;
    const struct fgd_class *classes;
    int64_t cpu_per_device, memory_per_device; /**< What comes with one on average. */
    int32_t depth_pct;
    struct fgd_cache *cache;
};

/**
 * Make a mix. Equal kinds become one; if there are more than FGD_KINDS_MAX, CPUs and memory are
 * rounded up, coarser and coarser, until they are not: no kind is left out, because the rare large
 * ones are those that fragmentation hurts. Weights are the popularities.
 *
 * @param kinds    Borrowed for the call; those without devices or count are passed over.
 * @param classes  Borrowed until fgd_mix_fini.
 */
weir_status fgd_mix_init(struct fgd_mix *mix, const struct fgd_kind *kinds, int32_t n_kinds,
                         const struct fgd_class *classes, int32_t depth_pct) WEIR_MUST_CHECK;
void fgd_mix_fini(struct fgd_mix *mix);

/** Thousandths of a device that the node needs to have free for one device of the kind; more than a
 *  whole device if it cannot have. */
int64_t fgd_need(const struct fgd_class *class_, int32_t device_milli, int64_t device_memory_bytes);

/** Add, per kind, `times` what is usable of the state; sums has n_kinds elements. */
void fgd_usable(const struct fgd_mix *mix, const struct fgd_state *state, int64_t times,
                int64_t *sums);

/** Weigh by scarcity: `usable` per kind and `room` over all nodes. Empties the cache. */
void fgd_weigh(struct fgd_mix *mix, const int64_t *usable, int64_t room);

/** Sum over the kinds of weight times usable. Cost: O(1) if cached, else O(kinds). */
int64_t fgd_value(struct fgd_mix *mix, const struct fgd_state *state);

/** Sum over the kinds of weight times what is free and not usable: 0 … FGD_WEIGHT_ONE times free.
 */
int64_t fgd_fragmentation(struct fgd_mix *mix, const struct fgd_state *state);

/**
 * Take a task's devices from a state where it loses least value.
 *
 * @param state   In/out: CPU and memory are taken as well. Its order is kept.
 * @param need    Of each device (fgd_need).
 * @param free_of Out: what the first device taken had free; tells which device is meant.
 * @return The value afterwards, or INT64_MIN if the task does not fit; then state is unchanged.
 */
int64_t fgd_take(struct fgd_mix *mix, struct fgd_state *state, int64_t cpu_milli,
                 int64_t memory_bytes, int32_t n_devices, int64_t need, int32_t *free_of);

#endif
