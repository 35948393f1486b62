/** What a cluster under Slurm is told by its document. For the driver's own files. */
#ifndef WEIR_CLUSTER_SLURM_OPTIONS_H
#define WEIR_CLUSTER_SLURM_OPTIONS_H

#include "base/arena.h"
#include "base/json.h"
#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

/** Text is NULL where nothing is said; JSON is borrowed from the document. */
struct slurm_options {
    char *partition; /**< One or several, with commas between; NULL: the default one. */
    char *account, *qos, *constraint, *reservation;
    bool exclusive;       /**< Nodes are not shared with others' jobs. */
    char *time;           /**< "8h": how long an allocation is asked for if nobody says. */
    const json_t *queues; /**< {"QUEUE": {"account", "qos"}} */
    const json_t *lines;  /**< Further options of sbatch. */
    const json_t *shares; /**< Folders that all nodes have, for tasks: "DIR" or "DIR:rw". */
    char *bin, *conf;     /**< Folder of Slurm's commands; SLURM_CONF. */
    char *server, *ca_file, *program, *dir,
        *network; /**< What agents are told, as the nodes have it. */
};

/** Whom a request is for, over there; NULL: Slurm's default. Borrowed. */
struct slurm_payer {
    const char *account, *qos;
};

struct slurm_payer slurm_options_payer(const struct slurm_options *options, const char *queue);

/** `time` in milliseconds; 0: none. */
int64_t slurm_options_time_ms(const struct slurm_options *options);

/** The lines as options of sbatch ("#SBATCH " before them is passed over), in the arena. */
const char **slurm_options_lines(const struct slurm_options *options, struct weir_arena *arena,
                                 size_t *out_n);

/**
 * Do they make sense, whatever the cluster is? Pure.
 * @return NULL, or a sentence that names the option. In the arena.
 */
const char *slurm_options_wrong(const struct slurm_options *options, struct weir_arena *arena);

#endif
