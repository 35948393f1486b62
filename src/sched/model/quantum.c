#include "sched/model/quantum.h"

#include "base/macros.h"

static int32_t active(const struct group_state *group)
{
    return group->n_alive + group->n_pipelined;
}

bool quantum_is_satisfied(const struct cluster *cluster, int32_t g)
{
    const struct group_state *group = &cluster->groups[g];
    if (group->first_child < 0) {
        return active(group) >= group->min_member;
    }
    int32_t n = 0;
    for (int32_t c = group->first_child; c >= 0; c = cluster->groups[c].next_sibling) {
        n += quantum_is_satisfied(cluster, c);
    }
    return n >= group->min_member;
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

enum quantum_rank quantum_rank(const struct cluster *cluster, int32_t job)
{
    int32_t root = cluster->jobs[job].first_group;
    if (!quantum_is_satisfied(cluster, root)) {
        return QUANTUM_BELOW;
    }
    int32_t n_active = active(&cluster->groups[root]);
    return n_active > minimum(cluster, root) ? QUANTUM_ABOVE : QUANTUM_AT;
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
        return group->n_pending >= n_wanted ? take_pending(cluster, group, n_wanted, out) : 0;
    }
    int32_t n = 0, n_missing = group->min_member;
    for (int32_t c = group->first_child; c >= 0; c = cluster->groups[c].next_sibling) {
        n_missing -= quantum_is_satisfied(cluster, c);
    }
    for (int32_t c = group->first_child; c >= 0 && n_missing > 0;
         c = cluster->groups[c].next_sibling) {
        if (!quantum_is_satisfied(cluster, c)) {
            int32_t n_taken = take_minimum(cluster, c, out + n);
            n += n_taken;
            n_missing -= n_taken > 0;
        }
    }
    return n_missing > 0 ? 0 : n;
}

/** How full a group is: how many count towards its minimum, tasks or children. */
static int32_t fill(const struct cluster *cluster, int32_t g)
{
    const struct group_state *group = &cluster->groups[g];
    int32_t n = group->first_child < 0 ? active(group) : 0;
    for (int32_t c = group->first_child; c >= 0; c = cluster->groups[c].next_sibling) {
        n += quantum_is_satisfied(cluster, c);
    }
    return n;
}

/** Which of two siblings is to grow first, or to shrink last: one below its minimum, then whoever
 * is emptier measured by it, who needs none last; of equals the first. */
static bool is_before(const struct cluster *cluster, int32_t l, int32_t r)
{
    int64_t l_min = cluster->groups[l].min_member, r_min = cluster->groups[r].min_member;
    int64_t l_fill = fill(cluster, l), r_fill = fill(cluster, r);
    bool l_whole = l_fill >= l_min, r_whole = r_fill >= r_min;
    if (!l_whole || !r_whole) {
        return l_whole != r_whole ? r_whole : l < r;
    }
    if ((l_min == 0) != (r_min == 0)) {
        return r_min == 0;
    }
    int64_t l_part = l_fill * WEIR_MAX(r_min, 1), r_part = r_fill * WEIR_MAX(l_min, 1);
    return l_part != r_part ? l_part < r_part : l < r;
}

/** The child after `last` (-1: the first) in the order in which they grow, of those with pending
 *  tasks; or in which they shrink, of those with running ones; -1. */
static int32_t next_child(const struct cluster *cluster, int32_t g, int32_t last, bool grows)
{
    int32_t best = -1;
    for (int32_t c = cluster->groups[g].first_child; c >= 0; c = cluster->groups[c].next_sibling) {
        const struct group_state *child = &cluster->groups[c];
        bool is_past = last < 0 || (c != last && is_before(cluster, last, c) == grows);
        bool is_any = grows ? child->n_pending > 0 : child->n_alive > 0;
        if (is_any && is_past && (best < 0 || is_before(cluster, c, best) == grows)) {
            best = c;
        }
    }
    return best;
}

/** More for a satisfied group: a child's minimum, or one for a child that has it. */
static int32_t take_extra(const struct cluster *cluster, int32_t g, int32_t *out)
{
    const struct group_state *group = &cluster->groups[g];
    if (group->first_child < 0) {
        return take_pending(cluster, group, 1, out);
    }
    int32_t n = 0;
    for (int32_t c = next_child(cluster, g, -1, true); c >= 0 && n == 0;
         c = next_child(cluster, g, c, true)) {
        n = quantum_is_satisfied(cluster, c) ? take_extra(cluster, c, out)
                                             : take_minimum(cluster, c, out);
    }
    return n;
}

int32_t quantum_next(const struct cluster *cluster, int32_t job, int32_t *out)
{
    int32_t root = cluster->jobs[job].first_group;
    if (cluster->groups[root].n_pending == 0) {
        return 0;
    }
    return quantum_is_satisfied(cluster, root) ? take_extra(cluster, root, out)
                                               : take_minimum(cluster, root, out);
}

static bool is_alive(const struct cluster *cluster, int32_t task)
{
    enum task_phase phase = (enum task_phase)cluster->tasks[task].phase;
    return phase == PHASE_RUNNING || phase == PHASE_BOUND;
}

bool quantum_is_only_pipelined(const struct cluster *cluster, int32_t job)
{
    const struct job_state *state = &cluster->jobs[job];
    const struct group_state *root = &cluster->groups[state->first_group];
    bool is_any = root->n_alive == 0 && root->n_pipelined > 0;
    for (int32_t t = state->first_task; t < state->first_task + state->n_tasks && is_any; t++) {
        is_any = cluster->tasks[t].current_node < 0;
    }
    return is_any;
}

static int32_t take_pipelined(const struct cluster *cluster, int32_t job, int32_t *out)
{
    const struct job_state *state = &cluster->jobs[job];
    int32_t n = 0;
    for (int32_t t = state->first_task; t < state->first_task + state->n_tasks; t++) {
        if (cluster->tasks[t].phase == PHASE_PIPELINED) {
            out[n++] = t;
        }
    }
    return n;
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

/** One task, or one whole child, that a group can do without; 0: none. */
static int32_t take_surplus(const struct cluster *cluster, int32_t g, int32_t *out)
{
    const struct group_state *group = &cluster->groups[g];
    if (group->first_child < 0) {
        return active(group) > group->min_member ? take_last(cluster, group, out) : 0;
    }
    int32_t n = 0, n_satisfied = fill(cluster, g);
    for (int32_t c = next_child(cluster, g, -1, false); c >= 0 && n == 0 && n_satisfied > 0;
         c = next_child(cluster, g, c, false)) {
        n = take_surplus(cluster, c, out);
    }
    int32_t last = next_child(cluster, g, -1, false);
    return n == 0 && last >= 0 && n_satisfied > group->min_member
               ? take_running(cluster, group->job, last, out)
               : n;
}

int32_t quantum_to_evict(const struct cluster *cluster, int32_t job, int32_t *out)
{
    const struct job_state *state = &cluster->jobs[job];
    int32_t root = state->first_group;
    if (quantum_is_only_pipelined(cluster, job)) {
        return take_pipelined(cluster, job, out);
    }
    if (state->n_tasks == 1 && state->preemptibility == WEIR_SCHED_PREEMPTIBLE) {
        out[0] = state->first_task; /* As most are: whatever its minimum, it is all there is. */
        return is_alive(cluster, out[0]) ? 1 : 0;
    }
    bool is_whole = cluster->jobs[job].preemptibility == WEIR_SCHED_PREEMPTIBLE;
    if (is_whole || quantum_is_satisfied(cluster, root)) {
        int32_t n = take_surplus(cluster, root, out);
        if (n > 0) {
            return n;
        }
    }
    return is_whole ? take_running(cluster, job, root, out) : 0;
}

static void count_quantum(const struct cluster *cluster, int32_t task,
                          const struct task_charge *charge, struct weir_sched_amount *amount,
                          struct weir_sched_amount *fixed)
{
    amount_count(amount, charge, 1);
    if (fixed != NULL && cluster_is_fixed(cluster, task)) {
        amount_count(fixed, charge, 1);
    }
}

void quantum_amount(const struct cluster *cluster, const int32_t *tasks, int32_t n_tasks,
                    struct weir_sched_amount *out_amount, struct weir_sched_amount *out_fixed)
{
    *out_amount = (struct weir_sched_amount){{0}};
    if (out_fixed != NULL) {
        *out_fixed = *out_amount;
    }
    for (int32_t i = 0; i < n_tasks; i++) {
        struct task_charge charge = cluster_charge(cluster, tasks[i], -1);
        count_quantum(cluster, tasks[i], &charge, out_amount, out_fixed);
    }
}

void quantum_amount_at_least(const struct cluster *cluster, const int32_t *tasks, int32_t n_tasks,
                             struct weir_sched_amount *out_amount,
                             struct weir_sched_amount *out_fixed)
{
    *out_amount = *out_fixed = (struct weir_sched_amount){{0}};
    for (int32_t i = 0; i < n_tasks; i++) {
        struct task_charge charge = cluster_charge_at_least(cluster, tasks[i]);
        count_quantum(cluster, tasks[i], &charge, out_amount, out_fixed);
    }
}
