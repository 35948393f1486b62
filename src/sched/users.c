#include "sched/users.h"

#include <stdlib.h>
#include <string.h>

/** qsort has no context, so an entry carries what it compares. */
struct entry {
    const struct weir_sched_job *job;
    const char *user;
    int32_t index;
    uint8_t rank;
    int64_t held; /**< Of a user's first entry: by all its jobs in the queue. */
};

static int compare(int64_t l, int64_t r)
{
    return l < r ? -1 : l > r;
}

static int by_user(const struct entry *l, const struct entry *r)
{
    int by_queue = compare(l->job->queue, r->job->queue);
    return by_queue != 0 || l->user == r->user ? by_queue : strcmp(l->user, r->user);
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
static void count(const struct cluster *cluster, const struct weir_sched_job *job, int64_t *out_has,
                  int64_t *out_wants)
{
    *out_has = *out_wants = 0;
    for (int32_t t = job->first_task; t < job->first_task + job->n_tasks; t++) {
        int32_t target = cluster->tasks[t].target;
        if (target >= 0 || cluster->tasks[t].phase == PHASE_PENDING) {
            int64_t devices = cluster_charge(cluster, t, target).accelerators;
            *(target >= 0 ? out_has : out_wants) += devices;
        }
    }
}

static struct entry make_entry(const struct cluster *cluster, int32_t index, uint8_t rank)
{
    const struct weir_sched_job *job = &cluster->snapshot->jobs[index];
    return (struct entry){
        .job = job, .user = job->user == NULL ? "" : job->user, .index = index, .rank = rank};
}

/** The first of the user's entries; n: it has none. */
static size_t find_user(const struct entry *entries, size_t n, const struct entry *of)
{
    size_t first = 0;
    for (size_t end = n; first < end;) {
        size_t middle = first + (end - first) / 2;
        if (by_user(&entries[middle], of) < 0) {
            first = middle + 1;
        } else {
            end = middle;
        }
    }
    return first < n && by_user(&entries[first], of) == 0 ? first : n;
}

/** Of each user that has entries: what all its jobs in the queue hold, into its first entry. */
static void sum_held(const struct cluster *cluster, struct entry *entries, size_t n)
{
    int64_t has, wants;
    for (int32_t j = 0; j < cluster->snapshot->n_jobs; j++) {
        count(cluster, &cluster->snapshot->jobs[j], &has, &wants);
        if (has > 0) {
            struct entry job = make_entry(cluster, j, 0);
            size_t at = find_user(entries, n, &job);
            if (at < n) {
                entries[at].held += has;
            }
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
    size_t n = 0;
    struct entry *entries = malloc(((size_t)cluster->snapshot->n_jobs + 1) * sizeof *entries);
    if (entries == NULL) {
        return WEIR_ERR_NOMEM;
    }
    for (int32_t i = 0; i < cluster->snapshot->n_jobs; i++) {
        if (is_listed[i]) { /* Few of those there are: most run. */
            entries[n++] = make_entry(cluster, i, ranks[i]);
        }
    }
    qsort(entries, n, sizeof *entries, by_turn);
    sum_held(cluster, entries, n);
    int64_t sum = 0, has, wants;
    for (size_t i = 0; i < n; i++) {
        bool is_first = i == 0 || by_user(&entries[i - 1], &entries[i]) != 0;
        sum = is_first ? entries[i].held : sum;
        out[entries[i].index] = sum;
        count(cluster, entries[i].job, &has, &wants);
        sum += wants;
    }
    free(entries);
    return WEIR_OK;
}
