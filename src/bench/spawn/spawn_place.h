/** Where ranks are started: lists of hosts, and Slurm's notation for them. For spawn's own
 *  files. */
#ifndef WEIR_BENCH_SPAWN_PLACE_H
#define WEIR_BENCH_SPAWN_PLACE_H

#include "base/hosts.h"
#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>

/** Most hosts of a group: one per rank. */
#define SPAWN_MAX_HOSTS 256

struct spawn_place {
    char host[WEIR_HOST_BYTES];
    int n_slots; /**< Ranks it has room for; 0: as many as it takes. */
};

struct spawn_places {
    struct spawn_place list[SPAWN_MAX_HOSTS];
    int n;
};

/**
 * Parse "a,b" or "a:2,me@b:2".
 *
 * @return INVALID naming the part that is no host (a name of letters, digits and "._-" that does
 *         not begin with "-"), or saying that hosts with and without slots are mixed.
 */
weir_status spawn_places_parse(const char *text, struct spawn_places *out,
                               struct weir_error *err) WEIR_MUST_CHECK;

/**
 * Parse SLURM_JOB_NODELIST ("gpu[01-03,7],login") with SLURM_TASKS_PER_NODE ("2(x3),1"; NULL: one
 * each).
 *
 * @return INVALID, LIMIT.
 */
weir_status spawn_places_parse_slurm(const char *nodes, const char *tasks, struct spawn_places *out,
                                     struct weir_error *err) WEIR_MUST_CHECK;

/**
 * Assign ranks to places, in blocks: by n_slots where all places have them and they suffice, else
 * evenly, earlier places first.
 *
 * @param n_ranks   0: the sum of the slots; one per place where there are none.
 * @param is_bound  More ranks than slots are INVALID.
 */
weir_status spawn_places_lay_out(const struct spawn_places *places, int n_ranks, bool is_bound,
                                 int *out_place_of_rank, int *out_n_ranks,
                                 struct weir_error *err) WEIR_MUST_CHECK;

#endif
