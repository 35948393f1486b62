#include "sched/order/users.h"

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

/** Devices of what is pending of a job. */
static int64_t wanted(const struct cluster *cluster, const struct weir_sched_job *job)
{
    int64_t sum = 0;
    for (int32_t t = job->first_task; t < job->first_task + job->n_tasks; t++) {
        if (cluster->tasks[t].planned_node < 0 && cluster->tasks[t].phase == PHASE_PENDING) {
            sum += cluster_charge(cluster, t, -1).accelerators;
        }
    }
    return sum;
}

static struct entry make_entry(const struct cluster *cluster, int32_t index, uint8_t rank)
{
    const struct weir_sched_job *job = &cluster->snapshot->jobs[index];
    return (struct entry){
        .job = job, .user = job->user == NULL ? "" : job->user, .index = index, .rank = rank};
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

static uint64_t hash_of(int32_t queue, const char *user)
{
    uint64_t hash = (uint64_t)queue * 0x9e3779b97f4a7c15U;
    for (; *user != '\0'; user++) {
        hash = (hash ^ (unsigned char)*user) * 0x100000001b3U;
    }
    return hash ^ hash >> 32;
}

/** Give each user of a queue a number, by looking its jobs up in `slots`: the first of a user, plus
 * 1. @return How many. */
static int32_t number(struct cluster *cluster, int32_t *slots, size_t mask)
{
    const struct weir_sched_job *jobs = cluster->snapshot->jobs;
    int32_t n = 0;
    for (int32_t j = 0; j < cluster->snapshot->n_jobs; j++) {
        const char *user = jobs[j].user == NULL ? "" : jobs[j].user;
        struct entry own = {.job = &jobs[j], .user = user};
        size_t at = (size_t)hash_of(jobs[j].queue, user) & mask;
        for (; slots[at] != 0; at = (at + 1) & mask) {
            const struct weir_sched_job *first = &jobs[slots[at] - 1];
            struct entry other = {.job = first, .user = first->user == NULL ? "" : first->user};
            if (by_user(&own, &other) == 0) {
                break;
            }
        }
        if (slots[at] == 0) {
            slots[at] = j + 1;
            cluster->jobs[j].user = n++;
        } else {
            cluster->jobs[j].user = cluster->jobs[slots[at] - 1].user;
        }
    }
    return n;
}

weir_status users_number(struct cluster *cluster)
{
    int32_t n = 1;
    if (cluster->profile->fair_users && users_differ(cluster)) {
        size_t n_slots = 16;
        while (n_slots < 2 * (size_t)cluster->snapshot->n_jobs) {
            n_slots *= 2;
        }
        int32_t *slots = calloc(n_slots, sizeof *slots);
        if (slots == NULL) {
            return WEIR_ERR_NOMEM;
        }
        n = number(cluster, slots, n_slots - 1);
        free(slots);
    }
    cluster->user_usage = calloc((size_t)n + 1, sizeof *cluster->user_usage);
    return cluster->user_usage == NULL ? WEIR_ERR_NOMEM : WEIR_OK;
}

weir_status users_claim(const struct cluster *cluster, const bool *is_listed, const uint8_t *ranks,
                        struct order_job *out)
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
    int64_t sum = 0;
    for (size_t i = 0; i < n; i++) {
        bool is_first = i == 0 || by_user(&entries[i - 1], &entries[i]) != 0;
        sum = is_first ? cluster->user_usage[cluster->jobs[entries[i].index].user] : sum;
        out[entries[i].index].claim = sum;
        sum += wanted(cluster, entries[i].job);
    }
    free(entries);
    return WEIR_OK;
}
