/** How the trials of a sweep go: their jobs, and what their runs have measured. */
#include "control/sweep.h"

#include "store/table.h"

#include <math.h>
#include <string.h>

/* Of one look at one trial; more is seen with the next. */
#define MEASURES_MAX  1000
#define RESOURCES_MAX 20000

/* The resource at each measurement of the goal is the last one known there. What lies behind a list that
 * was cut is left for the next look. */
static size_t add_resources(const struct weir_metric *counts, size_t n_counts, double resource,
                            struct weir_sweep_measure *measures, size_t n)
{
    size_t k = 0;
    for (size_t i = 0; i < n; i++) {
        while (k < n_counts && counts[k].step <= measures[i].step) {
            resource = isnan(counts[k].value) ? resource : counts[k].value;
            k++;
        }
        if (i > 0 && k == n_counts && n_counts == RESOURCES_MAX) {
            return i;
        }
        measures[i].resource = resource;
    }
    return n;
}

static weir_status measure(struct control *control, struct weir_txn *txn,
                           const struct weir_sweep_doc *doc, const struct weir_sweep_trial *trial,
                           struct weir_sweep_observation *out, struct weir_error *err)
{
    struct weir_metric *metrics, *counts;
    size_t n, n_counts, n_read;
    WEIR_TRY(weir_metrics_list(txn, trial->run, doc->metric, trial->step, MEASURES_MAX,
                               control->arena, &metrics, &n, err));
    struct weir_sweep_measure *measures =
        WEIR_ARENA_ARRAY(control->arena, n + 1, struct weir_sweep_measure);
    for (size_t i = 0; i < n; i++) {
        measures[i] =
            (struct weir_sweep_measure){metrics[i].step, (double)metrics[i].step, metrics[i].value};
    }
    n_read = n;
    if (n > 0 && doc->rungs.eta > 0 && strcmp(doc->rungs.resource, "step") != 0) {
        WEIR_TRY(weir_metrics_list(txn, trial->run, doc->rungs.resource, trial->step, RESOURCES_MAX,
                                   control->arena, &counts, &n_counts, err));
        n = add_resources(counts, n_counts, trial->resource, measures, n);
    }
    out->measures = measures;
    out->n_measures = n;
    if (out->job_state != NULL && (n_read == MEASURES_MAX || n < n_read)) {
        out->job_state = "RUNNING"; /* there is more to see: its end has to wait */
    }
    return weir_metric_last(txn, trial->run, doc->metric, &out->last_value, err);
}

static weir_status observe(struct control *control, struct weir_txn *txn,
                           const struct weir_sweep_state *state,
                           const struct weir_sweep_trial *trial, struct weir_sweep_observation *out,
                           struct weir_error *err)
{
    struct weir_job job;
    struct weir_error missing;
    *out = (struct weir_sweep_observation){.trial = trial->number, .last_value = (double)NAN};
    weir_status status =
        weir_txn_get(txn, &weir_job_resource, trial->job, control->arena, &job, &missing);
    if (status == WEIR_OK) {
        out->job_state = job.state;
        out->job_reason = job.reason;
        out->is_held = job.is_held;
        out->has_begun = strcmp(job.state, "RUNNING") == 0;
    } else if (status != WEIR_ERR_NOT_FOUND) {
        return weir_error_set(err, status, "%s", missing.message);
    }
    bool waits = strcmp(trial->state, "PAUSING") == 0 || strcmp(trial->state, "PAUSED") == 0;
    bool has_ended = out->job_state != NULL && strcmp(out->job_state, "SUCCEEDED") == 0;
    return waits && !has_ended ? WEIR_OK /* what it measured meanwhile counts when it goes on */
                               : measure(control, txn, &state->doc, trial, out, err);
}

static bool is_news(const struct weir_sweep_trial *trial, const struct weir_sweep_observation *seen)
{
    static const char *const ends[] = {"SUCCEEDED", "FAILED", "CANCELLED"};
    bool is_over = seen->job_state == NULL;
    for (size_t i = 0; i < WEIR_ARRAY_LEN(ends); i++) {
        is_over = is_over || strcmp(seen->job_state, ends[i]) == 0;
    }
    bool is_paused = strcmp(trial->state, "PAUSED") == 0;
    bool moves = (strcmp(trial->state, "PAUSING") == 0 && seen->is_held &&
                  strcmp(seen->job_state != NULL ? seen->job_state : "", "PENDING") == 0) ||
                 (is_paused && !seen->is_held);
    return is_over || moves || seen->n_measures > 0 || (seen->has_begun && trial->started_ms == 0);
}

weir_status control_sweep_observe(struct control *control, struct weir_txn *txn,
                                  const struct weir_sweep_state *state,
                                  struct weir_sweep_event *out, bool *out_is_news,
                                  struct weir_error *err)
{
    struct weir_sweep_observation *all =
        WEIR_ARENA_ARRAY(control->arena, state->n_trials + 1, struct weir_sweep_observation);
    size_t n = 0;
    *out_is_news = weir_sweep_next_tick_ms(state) <= control->now_ms;
    for (size_t i = 0; i < state->n_trials; i++) {
        const struct weir_sweep_trial *trial = &state->trials[i].row;
        if (weir_sweep_trial_is_open(trial) && trial->job != NULL) {
            WEIR_TRY(observe(control, txn, state, trial, &all[n], err));
            *out_is_news = *out_is_news || is_news(trial, &all[n]);
            n++;
        }
    }
    *out = (struct weir_sweep_event){
        .type = WEIR_SWEEP_EVENT_TICK, .observations = all, .n_observations = n};
    return WEIR_OK;
}
