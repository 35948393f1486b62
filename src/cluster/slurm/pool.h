/** Pools of a cluster: partitions, and shapes of nodes in them. For the driver's own files. */
#ifndef WEIR_CLUSTER_SLURM_POOL_H
#define WEIR_CLUSTER_SLURM_POOL_H

#include "cluster/driver.h"
#include "cluster/slurm/options.h"

struct slurm_pool {
    struct weir_pool_offer offer;
    const char *partition;
    const char *nodes;  /**< Those of this shape, as Slurm writes them. */
    const char *others; /**< Nodes of the partition that have other shapes; NULL: there are none. */
    bool has_type;      /**< Is offer.accelerator a type of Slurm's? */
    int64_t n_usable;   /**< Nodes that are neither down nor drained. */
    int64_t memory_mb;
};

/** What sinfo is asked: SLURM_POOL_FORMAT with `-h -e`. */
#define SLURM_POOL_FORMAT "%R|%P|%a|%l|%s|%c|%m|%G|%T|%D|%C|%N"

/**
 * The pools in what sinfo prints. One partition of nodes that are alike is a pool of its name; one with several shapes has
 * a pool for each, "PARTITION-16c-64g-4xh200". Nodes are alike if they have as many processors, the same accelerators, and
 * memory that differs by 3 % at the most; the least counts. Pure.
 * @param partitions  Which, with commas between; NULL: the default one.
 */
void slurm_pools_read(const char *text, const char *partitions, struct weir_arena *arena,
                      struct slurm_pool **out, size_t *out_n);

/** Ask for them. @return NOT_FOUND, with a sentence, for a partition that is none, or if none is the default. */
weir_status slurm_pools_list(const struct slurm_options *options, struct weir_arena *arena,
                             struct slurm_pool **out, size_t *out_n, struct weir_error *err);

#endif
