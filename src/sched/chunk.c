#include "sched/chunk.h"

#include "base/macros.h"

static int32_t active(const struct group_state *group)
{
    return group->n_alive + group->n_pipelined;
}

bool chunk_is_satisfied(const struct cluster *cluster, int32_t g)
{
    const struct group_state *group = &cluster->groups[g];
    if (group->first_child < 0) {
        return active(group) >= group->min_member;
    }
    int32_t n_satisfied = 0;
    for (int32_t c = group->first_child; c >= 0; c = cluster->groups[c].next_sibling) {
        n_satisfied += chunk_is_satisfied(cluster, c);
    }
    return n_satisfied >= group->min_member;
}

/** Sum of the minimums of the leaves below. */
static int32_t minimum(const struct cluster *cluster, int32_t g)
{
    const struct group_state *group = &cluster->groups[g];
    if (group->first_child < 0) {
        return group->min_member;
    }
    int32_t sum = 0;
    for (int32_t c = group->first_child; c >= 0; c = cluster->groups[c].next_sibling) {
        sum += minimum(cluster, c);
    }
    return sum;
}

enum chunk_rank chunk_rank(const struct cluster *cluster, int32_t job)
{
    int32_t root = cluster->jobs[job].first_group;
    if (!chunk_is_satisfied(cluster, root)) {
        return CHUNK_BELOW;
    }
    int32_t n_active = active(&cluster->groups[root]);
    return n_active > minimum(cluster, root) ? CHUNK_ABOVE : CHUNK_AT;
}

static int32_t take_pending(const struct cluster *cluster, const struct group_state *group,
                            int32_t n_wanted, int32_t *out)
{
    int32_t n = 0;
    for (int32_t i = 0; i < group->n_tasks && n < n_wanted; i++) {
        int32_t task = cluster->task_order[group->first_task + i];
        if (cluster->tasks[task].phase == PHASE_PENDING) {
            out[n++] = task;
        }
    }
    return n;
}

/** What satisfies the group; 0 if its pending tasks cannot. */
static int32_t take_minimum(const struct cluster *cluster, int32_t g, int32_t *out)
{
    const struct group_state *group = &cluster->groups[g];
    if (group->first_child < 0) {
        int32_t n_wanted = group->min_member - active(group);
        return group->n_pending < n_wanted ? 0 : take_pending(cluster, group, n_wanted, out);
    }
    int32_t n = 0, n_missing = group->min_member;
    for (int32_t c = group->first_child; c >= 0; c = cluster->groups[c].next_sibling) {
        n_missing -= chunk_is_satisfied(cluster, c);
    }
    for (int32_t c = group->first_child; c >= 0 && n_missing > 0;
         c = cluster->groups[c].next_sibling) {
        if (!chunk_is_satisfied(cluster, c)) {
            int32_t n_taken = take_minimum(cluster, c, out + n);
            n += n_taken;
            n_missing -= n_taken > 0;
        }
    }
    return n_missing > 0 ? 0 : n;
}

/** Whether l is less full than r, measured by its minimum. */
static bool is_emptier(const struct cluster *cluster, int32_t l, int32_t r)
{
    int64_t l_min = WEIR_MAX(minimum(cluster, l), 1), r_min = WEIR_MAX(minimum(cluster, r), 1);
    return active(&cluster->groups[l]) * r_min <= active(&cluster->groups[r]) * l_min;
}

/** One more for a satisfied group: of its emptiest child that has pending tasks. */
static int32_t take_extra(const struct cluster *cluster, int32_t g, int32_t *out)
{
    const struct group_state *group = &cluster->groups[g];
    if (group->first_child < 0) {
        return take_pending(cluster, group, 1, out);
    }
    int32_t best = -1;
    for (int32_t c = group->first_child; c >= 0; c = cluster->groups[c].next_sibling) {
        if (!chunk_is_satisfied(cluster, c)) {
            int32_t n = take_minimum(cluster, c, out);
            if (n > 0) {
                return n;
            }
        } else if (cluster->groups[c].n_pending > 0 && (best < 0 || is_emptier(cluster, c, best))) {
            best = c;
        }
    }
    return best < 0 ? 0 : take_extra(cluster, best, out);
}

int32_t chunk_next(const struct cluster *cluster, int32_t job, int32_t *out)
{
    int32_t root = cluster->jobs[job].first_group;
    if (cluster->groups[root].n_pending == 0) {
        return 0;
    }
    return chunk_is_satisfied(cluster, root) ? take_extra(cluster, root, out)
                                             : take_minimum(cluster, root, out);
}

static bool is_alive(const struct cluster *cluster, int32_t task)
{
    enum task_phase phase = (enum task_phase)cluster->tasks[task].phase;
    return phase == PHASE_RUNNING || phase == PHASE_BOUND;
}

/** All of a group, the last sub-group first. */
static int32_t take_running(const struct cluster *cluster, int32_t job, int32_t g, int32_t *out)
{
    int32_t n = 0;
    int32_t first = cluster->jobs[job].first_group;
    for (int32_t c = first + cluster->jobs[job].n_groups - 1; c >= first; c--) {
        const struct group_state *group = &cluster->groups[c];
        for (int32_t i = 0; i < group->n_tasks && group_is_below(cluster, c, g); i++) {
            int32_t task = cluster->task_order[group->first_task + i];
            if (is_alive(cluster, task)) {
                out[n++] = task;
            }
        }
    }
    return n;
}

static int32_t take_last(const struct cluster *cluster, const struct group_state *group,
                         int32_t *out)
{
    for (int32_t i = group->n_tasks - 1; i >= 0; i--) {
        int32_t task = cluster->task_order[group->first_task + i];
        if (is_alive(cluster, task)) {
            out[0] = task;
            return 1;
        }
    }
    return 0;
}

/** One task, or one whole child, that a satisfied group can do without; 0: none. */
static int32_t take_surplus(const struct cluster *cluster, int32_t g, int32_t *out)
{
    const struct group_state *group = &cluster->groups[g];
    if (group->first_child < 0) {
        return active(group) > group->min_member ? take_last(cluster, group, out) : 0;
    }
    int32_t n_satisfied = 0, best = -1;
    for (int32_t c = group->first_child; c >= 0; c = cluster->groups[c].next_sibling) {
        bool is_satisfied = chunk_is_satisfied(cluster, c);
        n_satisfied += is_satisfied;
        int32_t n = is_satisfied ? take_surplus(cluster, c, out) : 0;
        if (n > 0 && (best < 0 || is_emptier(cluster, best, c))) {
            best = c;
        }
    }
    if (best >= 0) {
        return take_surplus(cluster, best, out);
    }
    int32_t n = 0;
    for (int32_t c = group->first_child; c >= 0 && n_satisfied > group->min_member;
         c = cluster->groups[c].next_sibling) {
        if (chunk_is_satisfied(cluster, c) && cluster->groups[c].n_alive > 0) {
            n = take_running(cluster, group->job, c, out); /* The last one of them. */
        }
    }
    return n;
}

int32_t chunk_to_evict(const struct cluster *cluster, int32_t job, int32_t *out)
{
    const struct job_state *state = &cluster->jobs[job];
    int32_t root = state->first_group;
    if (state->n_tasks == 1 && state->preemptibility == WEIR_SCHED_PREEMPTIBLE) {
        out[0] = state->first_task; /* As most are: whatever its minimum, it is all there is. */
        return is_alive(cluster, out[0]) ? 1 : 0;
    }
    if (chunk_is_satisfied(cluster, root)) {
        int32_t n = take_surplus(cluster, root, out);
        if (n > 0) {
            return n;
        }
    }
    bool is_whole = cluster->jobs[job].preemptibility == WEIR_SCHED_PREEMPTIBLE;
    return is_whole ? take_running(cluster, job, root, out) : 0;
}

void chunk_amount(const struct cluster *cluster, const int32_t *tasks, int32_t n_tasks,
                  struct weir_sched_amount *out_amount, struct weir_sched_amount *out_fixed)
{
    *out_amount = (struct weir_sched_amount){{0}};
    if (out_fixed != NULL) {
        *out_fixed = *out_amount;
    }
    for (int32_t i = 0; i < n_tasks; i++) {
        struct task_charge charge = cluster_charge(cluster, tasks[i], -1);
        amount_count(out_amount, &charge, 1);
        if (out_fixed != NULL && cluster_is_fixed(cluster, tasks[i])) {
            amount_count(out_fixed, &charge, 1);
        }
    }
}
