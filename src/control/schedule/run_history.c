#include "control/run_history.h"

#include "base/hash.h"

#include <stdlib.h>
#include <string.h>

uint64_t run_history_work(const struct weir_job *job)
{
    bool is_of_ion = job->ion != NULL && job->pipeline != NULL;
    uint64_t hash = weir_hash_text(WEIR_HASH_BEGIN, is_of_ion ? "ion/" : "project/");
    hash = weir_hash_text(hash, is_of_ion ? job->ion : job->project);
    hash = weir_hash_text(hash, "/");
    return weir_hash_text(hash, is_of_ion ? job->pipeline : job->name);
}

/* The index of its entry, or where it belongs as -1 - index. */
static int32_t find(const struct run_history *history, uint64_t work)
{
    int32_t low = 0, high = history->n;
    while (low < high) {
        int32_t middle = low + (high - low) / 2;
        if (history->entries[middle].work == work) {
            return middle;
        }
        if (history->entries[middle].work < work) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return -1 - low;
}

void run_history_fini(struct run_history *history)
{
    free(history->entries);
    *history = (struct run_history){0};
}

static void drop_oldest(struct run_history *history)
{
    int32_t oldest = 0;
    for (int32_t i = 1; i < history->n; i++) {
        if (history->entries[i].revision < history->entries[oldest].revision) {
            oldest = i;
        }
    }
    history->n--;
    memmove(history->entries + oldest, history->entries + oldest + 1,
            (size_t)(history->n - oldest) * sizeof *history->entries);
}

static struct run_history_entry *insert(struct run_history *history, uint64_t work)
{
    if (history->n == RUN_HISTORY_MAX) {
        drop_oldest(history);
    }
    if (history->entries == NULL) {
        history->entries = weir_xalloc(RUN_HISTORY_MAX * sizeof *history->entries);
    }
    int32_t at = -1 - find(history, work);
    memmove(history->entries + at + 1, history->entries + at,
            (size_t)(history->n - at) * sizeof *history->entries);
    history->n++;
    history->entries[at] = (struct run_history_entry){.work = work};
    return &history->entries[at];
}

void run_history_note(struct run_history *history, const struct weir_job *job)
{
    if (weir_job_phase_from_text(job->state) != WEIR_JOB_SUCCEEDED || job->started_ms <= 0 ||
        job->finished_ms <= job->started_ms) {
        return;
    }
    uint64_t work = run_history_work(job);
    int32_t at = find(history, work);
    struct run_history_entry *entry = at >= 0 ? &history->entries[at] : insert(history, work);
    int64_t run_ms = job->finished_ms - job->started_ms;
    if (job->revision > entry->revision || entry->n_runs < RUN_HISTORY_RUNS_MAX) {
        bool is_told_again = entry->n_runs > 0 && job->revision == entry->revision;
        entry->runs_ms[entry->n_runs % RUN_HISTORY_RUNS_MAX] = run_ms;
        entry->n_runs += !is_told_again;
    }
    if (job->revision >= entry->revision) {
        entry->run_ms = run_ms;
        entry->revision = job->revision;
    }
}

int64_t run_history_expected_ms(const struct run_history *history, uint64_t work)
{
    int32_t at = find(history, work);
    return at >= 0 ? history->entries[at].run_ms : 0;
}

int32_t run_history_spread(const struct run_history *history, uint64_t work, int64_t ran_ms,
                           int64_t *out_least_ms, int64_t *out_most_ms)
{
    int32_t at = find(history, work), n = 0;
    int32_t n_kept = at >= 0 ? WEIR_MIN(history->entries[at].n_runs, RUN_HISTORY_RUNS_MAX) : 0;
    *out_least_ms = *out_most_ms = 0;
    for (int32_t i = 0; i < n_kept; i++) {
        int64_t run_ms = history->entries[at].runs_ms[i];
        if (run_ms > ran_ms) {
            *out_least_ms = n == 0 ? run_ms : WEIR_MIN(*out_least_ms, run_ms);
            *out_most_ms = WEIR_MAX(*out_most_ms, run_ms);
            n++;
        }
    }
    return n;
}
