/**
 * The tables of a snapshot for people and other programs: CSV (RFC 4180) with a header line, times in
 * RFC 3339 (UTC), empty where a value is not known. Files, with the snapshot's identifier as ID:
 *
 *     ION-events-ID.csv       time,host,eventId,event,eventType,seq,raiseAlert,createdTime,clearedTime,
 *                             deletedTime: the events, and behind them the alerts
 *     ION-stats-ID-Instance-PIPELINE-Agent-all.csv
 *                             time,source,name,step,value,statistic,p_value,drifted,n_samples,
 *                             model_version: metrics of trainings (source: the run) and what monitors
 *                             found (source: the replica), and what its own code told (source: the
 *                             job; value: JSON; statistic: its kind)
 *     ION-aggregates-ID.csv   time,pipeline,n,grant,deny,unknown,error,label,latency_mean_us,
 *                             latency_max_us: decisions by hour and pipeline
 *     ION-kpis-ID.csv         time,name,value,unit
 *
 * Records come in the order of their tables; each file is kept in memory until all of it is there.
 */
#ifndef WEIR_CAPTURE_CSV_H
#define WEIR_CAPTURE_CSV_H

#include "base/arena.h"
#include "base/buf.h"
#include "capture/rows.h"

#define CSV_FILES_MAX_BYTES ((size_t)256 << 20) /* all together; they are made in memory */
#define CSV_PIPELINES_MAX   256

/** An hour of a pipeline's decisions. */
struct csv_hour {
    int64_t hour_ms; /**< 0: none yet. */
    int64_t n, n_grant, n_deny, n_unknown, n_error, n_label, latency_sum_us, latency_max_us;
};

/** What is known of a pipeline. */
struct csv_pipeline {
    char *name;
    struct weir_buf stats;
    struct csv_hour hour;
};

/** Which pipeline a run is of. */
struct csv_run {
    char *id;
    size_t i_pipeline;
};

struct csv_files {
    struct weir_arena *arena;
    struct weir_buf events, aggregates, kpis;
    struct csv_pipeline pipelines[CSV_PIPELINES_MAX]; /**< More: their statistics are left out. */
    size_t n_pipelines;
    struct csv_run *runs;
    size_t n_runs, cap_runs, i_run; /**< The last: of the run whose metric came last. */
    size_t n_added;
    bool is_full; /**< They have become too large: nothing is added any more. */
};

void csv_files_init(struct csv_files *files, struct weir_arena *arena);
void csv_files_fini(struct csv_files *files);

/** A record of a table; of most tables nothing is kept. */
void csv_files_add(struct csv_files *files, const struct weir_noun *table, const void *record);

/** End the last hour. @return LIMIT, NOMEM: a file became too large. */
weir_status csv_files_end(struct csv_files *files, struct weir_error *err) WEIR_MUST_CHECK;

#endif
