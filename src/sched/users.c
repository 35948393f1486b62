#include "sched/users.h"

#include <stdlib.h>
#include <string.h>

/** qsort has no context, so an entry carries what it compares. */
struct entry {
    const struct weir_sched_job *job;
    const char *user;
    int32_t index;
    uint8_t rank;
};

static int compare(int64_t l, int64_t r)
{
    return l < r ? -1 : l > r;
}

static int by_user(const struct entry *l, const struct entry *r)
{
    int by_queue = compare(l->job->queue, r->job->queue);
    return by_queue != 0 ? by_queue : strcmp(l->user, r->user);
}

static int by_turn(const void *left, const void *right)
{
    const struct entry *l = left, *r = right;
    int compared = by_user(l, r);
    compared = compared != 0 ? compared : compare(r->job->priority, l->job->priority);
    compared = compared != 0 ? compared : compare(l->rank, r->rank);
    compared = compared != 0 ? compared : compare(l->job->created_ms, r->job->created_ms);
    compared = compared != 0 ? compared : strcmp(l->job->name, r->job->name);
    return compared != 0 ? compared : compare(l->index, r->index);
}

/** Devices of a job: of what runs or has a place, and of what is pending. */
static void count(const struct cluster *cluster, const struct entry *entry, int64_t *out_has,
                  int64_t *out_wants)
{
    *out_has = *out_wants = 0;
    for (int32_t t = entry->job->first_task; t < entry->job->first_task + entry->job->n_tasks;
         t++) {
        int32_t target = cluster->tasks[t].target;
        if (target >= 0 || cluster->tasks[t].phase == PHASE_PENDING) {
            int64_t devices = cluster_charge(cluster, t, target).accelerators;
            *(target >= 0 ? out_has : out_wants) += devices;
        }
    }
}

static void claim_of_user(const struct cluster *cluster, const struct entry *entries, size_t n,
                          const bool *is_listed, int64_t *out)
{
    int64_t sum = 0, has, wants;
    for (size_t i = 0; i < n; i++) {
        count(cluster, &entries[i], &has, &wants);
        sum += has;
    }
    for (size_t i = 0; i < n; i++) {
        if (is_listed[entries[i].index]) {
            out[entries[i].index] = sum;
            count(cluster, &entries[i], &has, &wants);
            sum += wants;
        }
    }
}

bool users_differ(const struct cluster *cluster)
{
    const struct weir_sched_snapshot *snapshot = cluster->snapshot;
    const char *user = snapshot->n_jobs > 0 ? snapshot->jobs[0].user : NULL;
    for (int32_t j = 0; j < snapshot->n_jobs; j++) {
        const char *other = snapshot->jobs[j].user;
        if (user != other && (user == NULL || other == NULL || strcmp(user, other) != 0)) {
            return true;
        }
    }
    return false;
}

weir_status users_claim(const struct cluster *cluster, const bool *is_listed, const uint8_t *ranks,
                        int64_t *out)
{
    size_t n = (size_t)cluster->snapshot->n_jobs;
    struct entry *entries = malloc((n + 1) * sizeof *entries);
    if (entries == NULL) {
        return WEIR_ERR_NOMEM;
    }
    for (size_t i = 0; i < n; i++) {
        const struct weir_sched_job *job = &cluster->snapshot->jobs[i];
        entries[i] = (struct entry){job, job->user == NULL ? "" : job->user, (int32_t)i, ranks[i]};
    }
    qsort(entries, n, sizeof *entries, by_turn);
    for (size_t first = 0, end; first < n; first = end) {
        for (end = first + 1; end < n && by_user(&entries[first], &entries[end]) == 0; end++) {
        }
        claim_of_user(cluster, entries + first, end - first, is_listed, out);
    }
    free(entries);
    return WEIR_OK;
}
