/** What would change, were something else. */
#include "control/schedule/guarantee.h"
#include "control/schedule/live_private.h"

#include "sim/what_if.h"

#include <string.h>

/* May it run there, and does it want a node? */
static bool waits_for(const struct live *live, int32_t row, const char *cluster)
{
    const struct weir_sched_job *job = &live->rows->jobs[row];
    const struct weir_sched_task *first = &live->rows->tasks[job->first_task];
    const struct ask *ask = live_ask(live, row);
    const struct offers *offers = &live->snapshot.offers;
    struct offers_where where = offers_where(&live->snapshot.queues, ask, job->queue);
    return first->state == WEIR_SCHED_PENDING && offers_rank(&where, cluster) >= 0 &&
           (ask == NULL || ask->pod == NULL || offers_makes_pods(offers, cluster));
}

static bool is_before(const struct weir_sched_job *left, const struct weir_sched_job *right)
{
    return left->priority != right->priority ? left->priority > right->priority
                                             : left->created_ms < right->created_ms;
}

/* The job for which nodes of the cluster would be asked: the one that goes first, or the first that waits and may run
 * there. -1: there is none. */
static int32_t job_for(const struct live *live, const char *cluster, int32_t first)
{
    const struct weir_sched_job *jobs = live->rows->jobs;
    int32_t best = first;
    for (int32_t j = 0; first < 0 && j < live->rows->n_jobs; j++) {
        if (live_names_job(live, j) && waits_for(live, j, cluster) &&
            (best < 0 || is_before(&jobs[j], &jobs[best]))) {
            best = j;
        }
    }
    return best;
}

static weir_status add_of_pool(struct live *live, const struct control_change *asked, int32_t first,
                               struct live_change *change, struct weir_error *err)
{
    const struct weir_pool *pool = offers_pool(&live->snapshot.offers, asked->like);
    if (pool == NULL) {
        return weir_error_set(
            err, WEIR_ERR_NOT_FOUND,
            "$.add_node: there is no pool \"%.120s\"; `weir get pools` lists them", asked->like);
    }
    if (pool->max_nodes > 0 && asked->n_nodes > pool->max_nodes) {
        return weir_error_set(err, WEIR_ERR_INVALID, "$.n_nodes: pool %s has at most %lld nodes",
                              pool->id, (long long)pool->max_nodes);
    }
    live_add_pool_nodes(live, change, pool, job_for(live, pool->cluster, first), asked->n_nodes);
    return WEIR_OK;
}

static weir_status change_nodes(struct live *live, const struct control_change *asked,
                                int32_t first, struct live_change *change, struct weir_error *err)
{
    if (strchr(asked->like, '/') != NULL) {
        return add_of_pool(live, asked, first, change, err);
    }
    int32_t like = snapshot_find_node(&live->snapshot, asked->like);
    if (like < 0) {
        return weir_error_set(err, WEIR_ERR_NOT_FOUND,
                              "$.add_node: there is no node \"%.60s\"; `weir get nodes` lists them",
                              asked->like);
    }
    live_add_nodes(live, change, like, asked->n_nodes);
    return WEIR_OK;
}

/* Its row among those there are; -1: none. A project without a queue has one that is not set. */
static int32_t find_queue_row(const struct live *live, const struct weir_queue *queue)
{
    for (int32_t q = 0; q < live->snapshot.queues.n_set; q++) {
        if (strcmp(live->rows->queues[q].name, queue->name) == 0) {
            return q;
        }
    }
    return queue->project != NULL ? queue_tree_find(&live->snapshot.queues, queue->project) : -1;
}

/* What is not named is as if it were not there. */
static weir_status check_named(const struct live *live, const struct weir_queue *queue, int32_t row,
                               struct weir_error *err)
{
    const char *hidden = NULL;
    if (row >= 0 && !live->named[row]) {
        hidden = queue->name;
    } else if (queue->project != NULL && !weir_row_scope_sees(live->names, queue->project)) {
        hidden = queue->project;
    } else if (queue->parent != NULL && live_find_queue(live, queue->parent) < 0) {
        hidden = queue->parent;
    }
    return hidden == NULL
               ? WEIR_OK
               : weir_error_set(
                     err, WEIR_ERR_NOT_FOUND,
                     "$.queue: there is no queue or project \"%.60s\"; `weir get queues` "
                     "lists them",
                     hidden);
}

/* The planner wants parents before their children, so what is there cannot hang below what comes after
 * it. */
static weir_status change_queue(struct live *live, struct weir_txn *txn,
                                const struct weir_queue *queue, struct live_change *change,
                                struct weir_error *err)
{
    int32_t row = find_queue_row(live, queue);
    int32_t parent = queue->parent != NULL ? live_find_queue(live, queue->parent) : -1;
    WEIR_TRY(check_named(live, queue, row, err));
    WEIR_TRY(weir_queue_check(txn, queue, err));
    if (row >= 0 && parent > row) {
        return weir_error_set(
            err, WEIR_ERR_UNSUPPORTED,
            "$.parent: what comes of hanging queue %s below %s, which is younger, "
            "is not worked out",
            queue->name, queue->parent);
    }
    row = row >= 0 ? row : change->rows.n_queues++;
    struct weir_sched_queue *into = &change->queues[row];
    *into = (struct weir_sched_queue){.name = queue->name,
                                      .parent = parent,
                                      .priority = (int32_t)queue->priority,
                                      .preempt_min_run_ms = queue->min_run_ms,
                                      .reclaim_min_run_ms = queue->min_run_ms};
    change->i_queue = row;
    WEIR_TRY(queue_tree_put_shares(into, queue->shares, &live->arena, err));
    return queue_tree_put_times(into, queue->times, &live->arena, err);
}

/* Its first row: of a service the first replica's. */
static int32_t find_row(const struct live *live, const char *id)
{
    int32_t row = 0;
    while (row < live->rows->n_jobs && strcmp(live_job(live, row)->id, id) != 0) {
        row++;
    }
    return row < live->rows->n_jobs && live_names_job(live, row) ? row : -1;
}

static weir_status change_first(struct live *live, const struct control_change *asked,
                                struct live_change *change, int32_t *out_row,
                                struct weir_error *err)
{
    *out_row = find_row(live, asked->first);
    if (*out_row < 0) {
        return weir_error_set(err, WEIR_ERR_NOT_FOUND,
                              "$.first: no job \"%.60s\" runs or waits for a node", asked->first);
    }
    live_put_first(change, *out_row);
    return WEIR_OK;
}

static weir_status apply(struct live *live, struct weir_txn *txn,
                         const struct control_change *asked, struct live_change *change,
                         int32_t *out_first, struct weir_error *err)
{
    if (asked->n_nodes < 0 || asked->n_nodes > CONTROL_NODES_ADDED_MAX) {
        return weir_error_set(err, WEIR_ERR_LIMIT, "$.n_nodes: expected 1 to %d",
                              CONTROL_NODES_ADDED_MAX);
    }
    if (asked->like == NULL && asked->queue == NULL && asked->first == NULL) {
        return weir_error_set(
            err, WEIR_ERR_INVALID,
            "what if what? Give add_node, queue with what changes of it, or first");
    }
    live_change_begin(live, asked->n_nodes, change);
    if (asked->first != NULL) {
        WEIR_TRY(change_first(live, asked, change, out_first, err));
    }
    if (asked->like != NULL) {
        WEIR_TRY(change_nodes(live, asked, *out_first, change, err));
    }
    if (asked->queue != NULL) {
        WEIR_TRY(change_queue(live, txn, asked->queue, change, err));
        WEIR_TRY(queue_tree_rules(&live->snapshot.queues, true, &live->profile, err));
    }
    return WEIR_OK;
}

static const char *member(const json_t *item, const char *name)
{
    return json_string_value(json_object_get(item, name));
}

static void count_one(json_t *counts, const char *outcome)
{
    json_int_t n = json_integer_value(json_object_get(counts, outcome));
    json_object_set_new(counts, outcome, json_integer(n + 1));
}

/* The two plans have the same jobs in the same order. Counted are those that may be named; of others how many
 * change, for whom the node is shared with. */
static struct control_what_if compare(const struct live *live, const json_t *before,
                                      const json_t *after, int32_t first)
{
    const json_t *left = json_object_get(before, "jobs"), *right = json_object_get(after, "jobs");
    json_t *jobs = json_array(), *others = json_object();
    json_t *counts_before = json_object(), *counts_after = json_object();
    bool has_project = live->names == NULL || live->names->is_all || live->names->n_projects > 0;
    int64_t n_others = 0;
    for (size_t i = 0; i < json_array_size(left); i++) {
        const json_t *was = json_array_get(left, i), *is = json_array_get(right, i);
        if (live_names_job(live, (int32_t)i)) {
            count_one(counts_before, member(was, "outcome"));
            count_one(counts_after, member(is, "outcome"));
        } else if (!has_project) {
            continue;
        }
        if ((int32_t)i != first && strcmp(member(was, "outcome"), member(is, "outcome")) == 0) {
            continue;
        }
        if (!live_names_job(live, (int32_t)i)) {
            count_one(others, member(is, "outcome"));
            n_others++;
            continue;
        }
        const struct weir_job *job = live_job(live, (int32_t)i);
        json_array_append_new(
            jobs, WEIR_VIEW_JSON(control_changed_job, .id = job->id, .name = job->name,
                                 .project = job->project, .queue = member(is, "queue"),
                                 .before = member(was, "outcome"), .after = member(is, "outcome"),
                                 .why_before = member(was, "why"), .why_after = member(is, "why")));
    }
    return (struct control_what_if){.before = counts_before,
                                    .after = counts_after,
                                    .jobs = jobs,
                                    .n_others = n_others,
                                    .others = others};
}

/* ---- queues ----------------------------------------------------------------------------------- */

struct both {
    struct live *live;
    struct live_change change;
    struct weir_sched_plan *before, *after;
};

static json_t *shares_json(const struct weir_sched_snapshot *rows,
                           const struct weir_sched_plan *plan, int32_t row)
{
    const struct control_queue_share shares = live_shares(rows, plan, row);
    return weir_view_to_json(control_queue_share_view(), &shares);
}

/* The rows that may be named and differ. One that comes is the caller's, so it is named. */
static json_t *compare_queues(const struct both *both)
{
    json_t *list = json_array();
    for (int32_t q = 0; q < both->change.rows.n_queues; q++) {
        bool is_new = q >= both->live->rows->n_queues;
        if (!is_new && !both->live->named[q]) {
            continue;
        }
        json_t *was = is_new ? json_null() : shares_json(both->live->rows, both->before, q);
        json_t *is = shares_json(&both->change.rows, both->after, q);
        if (q == both->change.i_queue || !json_equal(was, is)) {
            json_array_append_new(
                list, WEIR_VIEW_JSON(control_changed_queue, .name = both->change.queues[q].name,
                                     .before = json_incref(was), .after = json_incref(is)));
        }
        json_decref(was);
        json_decref(is);
    }
    return list;
}

/* Per row: may it be named as one that could give? The one that changes could not. */
static const bool *donors_of(struct live *live, const struct live_change *change)
{
    bool *donors = WEIR_ARENA_ARRAY(&live->arena, (size_t)change->rows.n_queues + 1, bool);
    for (int32_t q = 0; q < live->rows->n_queues; q++) {
        donors[q] = live->named[q] && q != change->i_queue;
    }
    return donors;
}

static struct control_guarantees tell_guarantees(const struct both *both)
{
    struct live *live = both->live;
    const struct weir_sched_snapshot *rows = &both->change.rows;
    struct guarantee_sum sum;
    guarantee_look(rows, &live->arena, &sum);
    return (struct control_guarantees){.sum = live_amounts(rows, &sum.sum),
                                       .capacity = live_amounts(rows, &sum.capacity),
                                       .can_be_kept = sum.resource < 0,
                                       .why = guarantee_tell(rows, &sum, both->after->queues,
                                                             donors_of(live, &both->change),
                                                             &live->arena)};
}

static weir_status ask(struct live *live, struct weir_txn *txn, const struct control_change *asked,
                       json_t **out, struct weir_error *err)
{
    struct both both = {.live = live};
    int32_t first = -1;
    WEIR_AUTO(weir_json_auto_free) json_t *before = NULL;
    WEIR_AUTO(weir_json_auto_free) json_t *after = NULL;
    struct weir_sched_profile profile = live->profile;
    WEIR_TRY(apply(live, txn, asked, &both.change, &first, err));
    WEIR_TRY(weir_sim_next_plan(live->rows, &profile, &before, &both.before, err));
    weir_status status =
        weir_sim_next_plan(&both.change.rows, &live->profile, &after, &both.after, err);
    if (status == WEIR_OK) {
        struct control_what_if answer = compare(live, before, after, first);
        answer.queues = compare_queues(&both);
        answer.guarantees = tell_guarantees(&both);
        *out = weir_view_to_json(control_what_if_view(), &answer);
    }
    weir_sched_plan_destroy(both.before);
    weir_sched_plan_destroy(both.after);
    return status;
}

weir_status control_what_if(struct weir_txn *txn, const struct control_live *at,
                            const struct control_change *change, json_t **out,
                            struct weir_error *err)
{
    struct live live;
    WEIR_TRY(live_open(&live, txn, at, err));
    weir_status status = ask(&live, txn, change, out, err);
    live_close(&live);
    return status;
}

/* ---- may it be set ---------------------------------------------------------------------------- */

static weir_status check_guarantees(struct live *live, struct weir_txn *txn,
                                    const struct weir_queue *queue, struct weir_error *err)
{
    struct live_change change;
    struct guarantee_sum before, after;
    struct weir_sched_plan *plan;
    live_change_begin(live, 0, &change);
    weir_status status = change_queue(live, txn, queue, &change, err);
    if (status !=
        WEIR_OK) { /* What it may not be weir_queue_set says; below a younger one it may. */
        return status == WEIR_ERR_UNSUPPORTED ? WEIR_OK : status;
    }
    guarantee_look(live->rows, &live->arena, &before);
    guarantee_look(&change.rows, &live->arena, &after);
    bool is_worse = after.resource >= 0 && (after.resource != before.resource ||
                                            guarantee_missing(&after) > guarantee_missing(&before));
    if (!is_worse) {
        return WEIR_OK;
    }
    live->profile.actions = "";
    live->profile.backfill_depth = live->profile.forecast_depth = 0;
    WEIR_TRY(weir_sched_plan(&change.rows, &live->profile, &plan, err));
    const bool *donors = donors_of(live, &change);
    bool has_donors =
        guarantee_has_donors(&change.rows, &after, plan->queues, donors, &live->arena);
    status =
        weir_error_set(err, WEIR_ERR_CONFLICT, "%s. %s, or insist (--force, ?force=1)",
                       guarantee_tell(&change.rows, &after, plan->queues, donors, &live->arena),
                       has_donors ? "Take it from them first" : "Guarantee less, add nodes");
    weir_sched_plan_destroy(plan);
    return status;
}

weir_status control_queue_check(struct weir_txn *txn, const struct control_live *at,
                                const struct weir_queue *queue, struct weir_error *err)
{
    struct live live;
    WEIR_TRY(live_open(&live, txn, at, err));
    weir_status status = check_guarantees(&live, txn, queue, err);
    live_close(&live);
    return status;
}
