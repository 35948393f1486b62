/** Tests: a trace and a cluster from a few lines, played, and when each job ran. */
#ifndef WEIR_SIM_TEST_PLAY_H
#define WEIR_SIM_TEST_PLAY_H

#include "base/test_main.h"
#include "sim/replay.h"
#include "sim/test_data.h"

#include <string.h>

struct play {
    struct weir_sim_trace trace;
    struct weir_sim_cluster cluster;
    struct weir_sim_options options;
    struct weir_sim_report report;
};

static inline void open_rows(struct play *play, const char *rows, const char *cluster)
{
    struct weir_error err = {0};
    *play = (struct play){0};
    ck_assert_msg(weir_sim_trace_parse(rows, strlen(rows), "rows", &weir_sim_csv, &play->trace,
                                       &err) == WEIR_OK,
                  "%s", err.message);
    ck_assert_msg(weir_sim_cluster_parse(cluster, strlen(cluster), "cluster", &play->cluster,
                                         &err) == WEIR_OK,
                  "%s", err.message);
    weir_sim_options_init(&play->options);
    play->options.cycle_s = 0;
}

static inline void run(struct play *play, const char *profile)
{
    struct weir_error err = {0};
    play->options.profile = (char *)profile;
    weir_status status =
        weir_sim_run(&play->trace, &play->cluster, &play->options, &play->report, &err);
    ck_assert_msg(status == WEIR_OK, "%s: %s", profile, err.message);
}

static inline void play_rows(struct play *play, const char *profile, const char *rows,
                             const char *cluster)
{
    open_rows(play, rows, cluster);
    run(play, profile);
}

static inline void close_play(struct play *play)
{
    weir_sim_report_fini(&play->report);
    weir_sim_trace_fini(&play->trace);
    weir_sim_cluster_fini(&play->cluster);
}

static inline const struct weir_sim_job_result *result(const struct play *play, const char *name)
{
    for (int32_t j = 0; j < play->trace.n_jobs; j++) {
        if (strcmp(play->trace.jobs[j].name, name) == 0) {
            return &play->report.jobs[j];
        }
    }
    ck_abort_msg("no job %s", name);
}

static inline void check_times(const struct play *play, const char *name, int64_t start_s,
                               int64_t end_s)
{
    const struct weir_sim_job_result *job = result(play, name);
    ck_assert_msg(job->first_start_ms == start_s * 1000 && job->end_ms == end_s * 1000,
                  "%s: %lld to %lld ms, expected %lld to %lld s", name,
                  (long long)job->first_start_ms, (long long)job->end_ms, (long long)start_s,
                  (long long)end_s);
}

#endif
