#include "control/schedule/start_spread.h"

#include "base/macros.h"

bool start_spread_tell(const struct start_spread_job *jobs, size_t n, int64_t now_ms,
                       int64_t expected_ms, struct start_spread *out)
{
    struct start_spread spread = {.earliest_ms = expected_ms, .latest_ms = expected_ms};
    for (size_t i = 0; i < n; i++) {
        const struct start_spread_job *job = &jobs[i];
        bool is_first = job->expected_end_ms <= expected_ms;
        bool is_known = job->n_runs > 0;
        if (!is_known && is_first && job->limit_ms == 0) {
            return false;
        }
        int64_t most_ms = is_known ? job->started_ms + job->most_ms : job->limit_ms;
        most_ms = job->limit_ms > 0 ? WEIR_MIN(most_ms, job->limit_ms) : most_ms;
        int64_t least_ms = is_known ? WEIR_MIN(job->started_ms + job->least_ms, most_ms) : now_ms;
        spread.earliest_ms = WEIR_MIN(spread.earliest_ms, least_ms);
        spread.latest_ms = is_first ? WEIR_MAX(spread.latest_ms, most_ms) : spread.latest_ms;
        spread.n_runs = is_known && (spread.n_runs == 0 || job->n_runs < spread.n_runs)
                            ? job->n_runs
                            : spread.n_runs;
    }
    spread.earliest_ms = WEIR_MAX(spread.earliest_ms, now_ms);
    spread.latest_ms = WEIR_MAX(spread.latest_ms, spread.earliest_ms);
    *out = spread;
    return spread.n_runs > 0;
}
