/** What Slurm's commands print, read: lines of fields, times, generic resources. Pure. For the driver's own files. */
#ifndef WEIR_CLUSTER_SLURM_TEXT_H
#define WEIR_CLUSTER_SLURM_TEXT_H

#include "base/arena.h"

#include <stdbool.h>
#include <stdint.h>

/** Most fields of a line. */
#define SLURM_FIELDS_MAX 12

/**
 * The next line that has as many fields, with "|" between; the last one may have more of them in it. Other lines are
 * passed over.
 * @param at   Moves behind the line. @param out  n fields, in the arena.
 * @return False at the end.
 */
bool slurm_next_fields(const char **at, size_t n, struct weir_arena *arena, const char **out);

/** A time span, "10:00", "1-02:03:04", "infinite", in seconds; 0: none, or without end. */
int64_t slurm_span_s(const char *text);

/** A time since 1970 in ms, from seconds; 0 for "N/A", "Unknown" and the like. */
int64_t slurm_time_ms(const char *text);

/** A number that begins the text ("65536+" too); 0: none. */
int64_t slurm_number(const char *text);

/** What a node has of accelerators. */
struct slurm_gres {
    /** The model that most of its GPUs are; "gpu" where Slurm knows none; NULL: it has no GPU. In the arena. */
    const char *model;
    int64_t n_gpus;   /**< So many of that model. */
    int64_t n_others; /**< GPUs of other models. */
    int64_t n_shards; /**< Parts that all of its GPUs are shared in; 0: they are not. */
    bool has_type;    /**< Is the model Slurm's type of them? */
};

/** Read "gpu:h200:4(S:0-1),shard:h200:40". */
struct slurm_gres slurm_gres_read(const char *text, struct weir_arena *arena);

/** "slurm-wlm 22.05.8" as 2205; 0: no version stands there. */
int slurm_version_read(const char *text);

#endif
