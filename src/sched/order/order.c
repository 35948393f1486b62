#include "sched/order/order.h"

#include "base/macros.h"
#include "sched/model/quantum.h"
#include "sched/order/order_jobs.h"
#include "sched/order/users.h"

#include <stdlib.h>
#include <string.h>

static bool queue_is_before(const struct order *order, int32_t l, int32_t r)
{
    int compared = order_compare_keys(&order->queues[l].key, &order->queues[r].key);
    compared = compared != 0 ? compared : (l < r ? -1 : 1);
    return order->is_victims ? compared > 0 : compared < 0;
}

/** What comes or goes with a job next. */
static void measure(struct order *order, int32_t job)
{
    int32_t n = order->is_victims ? quantum_to_evict(order->cluster, job, order->scratch)
                                  : quantum_next(order->cluster, job, order->scratch);
    quantum_amount(order->cluster, order->scratch, n, &order->measure, NULL);
    order->measured = job;
}

static void make_key(struct order *order, int32_t queue)
{
    const struct cluster *cluster = order->cluster;
    struct order_queue *of = &order->queues[queue];
    struct weir_sched_amount has = cluster->queues[queue].allocated, with;
    if (of->top != order->measured) { /* It is the first of queues above as well. */
        measure(order, of->top);
    }
    if (order->is_victims) {
        amount_subtract(&has, &of->taken);
    }
    with = has;
    if (order->is_victims) {
        amount_subtract(&with, &order->measure);
    } else {
        amount_add(&with, &order->measure);
    }
    order_make_key(cluster, queue, &has, &with, &of->key);
}

/** Keep positions of queues in step. */
static void put(struct order *order, int32_t *heap, int32_t at, int32_t what)
{
    heap[at] = what;
    order->queues[what].position = at;
}

static void sift_queues(struct order *order, int32_t *heap, int32_t n, int32_t at)
{
    int32_t what = heap[at];
    while (at > 0 && queue_is_before(order, what, heap[(at - 1) / 2])) {
        put(order, heap, at, heap[(at - 1) / 2]);
        at = (at - 1) / 2;
    }
    for (int32_t child = 2 * at + 1; child < n; child = 2 * at + 1) {
        if (child + 1 < n && queue_is_before(order, heap[child + 1], heap[child])) {
            child++;
        }
        if (!queue_is_before(order, heap[child], what)) {
            break;
        }
        put(order, heap, at, heap[child]);
        at = child;
    }
    put(order, heap, at, what);
}

static int32_t root_of(const struct order *order)
{
    return order->cluster->snapshot->n_queues;
}

static int32_t parent_of(const struct order *order, int32_t queue)
{
    int32_t parent = order->cluster->snapshot->queues[queue].parent;
    return parent < 0 ? root_of(order) : parent;
}

static bool is_leaf(const struct order *order, int32_t queue)
{
    return queue < root_of(order) && order->cluster->queues[queue].first_child < 0;
}

/** A queue's best job and key again, from its heap. */
static void update_top(struct order *order, int32_t queue)
{
    struct order_queue *of = &order->queues[queue];
    if (of->n == 0) {
        of->top = -1;
        return;
    }
    of->top = is_leaf(order, queue) ? order->jobs[of->first].job
                                    : order->queues[order->children[of->first]].top;
    if (queue != root_of(order)) {
        make_key(order, queue);
    }
}

/** Bring a queue's place in its parent's heap up to date, after settle. */
static void place(struct order *order, int32_t queue)
{
    struct order_queue *of = &order->queues[queue];
    struct order_queue *parent = &order->queues[parent_of(order, queue)];
    int32_t *heap = order->children + parent->first;
    if (of->top < 0 && of->position >= 0) {
        int32_t at = of->position, last = heap[--parent->n];
        of->position = -1;
        if (last != queue) {
            put(order, heap, at, last);
            sift_queues(order, heap, parent->n, at);
        }
    } else if (of->top >= 0) {
        if (of->position < 0) {
            put(order, heap, parent->n++, queue);
        }
        sift_queues(order, heap, parent->n, of->position);
    }
}

static void refresh_path(struct order *order, int32_t queue)
{
    order->measured = -1;
    for (; queue != root_of(order); queue = parent_of(order, queue)) {
        update_top(order, queue);
        place(order, queue);
    }
    update_top(order, queue);
}

static void heapify_children(struct order *order, int32_t queue)
{
    const struct order_queue *of = &order->queues[queue];
    for (int32_t i = 0; i < of->n; i++) { /* Each sifts up among those before it. */
        sift_queues(order, order->children + of->first, i + 1, i);
    }
}

/** Everybody finds its place. */
void order_refresh(struct order *order)
{
    order->dirty = order->measured = -1;
    for (int32_t q = root_of(order) - 1; q >= 0; q--) { /* Children before parents. */
        if (!is_leaf(order, q)) {
            heapify_children(order, q);
        }
        update_top(order, q);
        if (order->queues[q].top >= 0 || order->queues[q].position >= 0) {
            place(order, q);
        }
    }
    heapify_children(order, root_of(order));
    update_top(order, root_of(order));
}

static weir_status make_arrays(struct order *order)
{
    const struct weir_sched_snapshot *snapshot = order->cluster->snapshot;
    size_t n_queues = (size_t)snapshot->n_queues + 1, n_jobs = (size_t)snapshot->n_jobs + 1;
    order->queues = calloc(n_queues, sizeof *order->queues);
    order->jobs = calloc(n_jobs, sizeof *order->jobs);
    order->children = calloc(n_queues, sizeof(int32_t));
    order->scratch = calloc((size_t)snapshot->n_tasks + 1, sizeof(int32_t));
    order->ranks = calloc(n_jobs, 1);
    if (!order->is_copy) {
        order->of_jobs = calloc(n_jobs, sizeof *order->of_jobs);
    }
    bool is_whole = order->queues != NULL && order->jobs != NULL && order->children != NULL &&
                    order->scratch != NULL && order->ranks != NULL && order->of_jobs != NULL;
    return is_whole ? WEIR_OK : WEIR_ERR_NOMEM;
}

/** Put the listed jobs of a leaf into its heap. */
static void fill_leaf(struct order *order, int32_t queue, const bool *is_listed)
{
    const struct cluster *cluster = order->cluster;
    struct order_queue *of = &order->queues[queue];
    of->n = 0;
    for (int32_t i = cluster->queue_first[queue]; i < cluster->queue_first[queue + 1]; i++) {
        if (is_listed[cluster->queue_jobs[i]]) {
            order->jobs[of->first + of->n++] = order_jobs_entry(order, cluster->queue_jobs[i]);
        }
    }
    for (int32_t i = of->n / 2 - 1; i >= 0; i--) {
        order_jobs_sink(order, order->jobs + of->first, of->n, i);
    }
}

/** order.is_victims is set. */
static weir_status list_jobs(struct order *order, const struct cluster *cluster,
                             const bool *is_listed)
{
    const struct weir_sched_snapshot *snapshot = cluster->snapshot;
    order->cluster = cluster;
    order->dirty = -1;
    WEIR_TRY(make_arrays(order));
    int32_t at_child = 0;
    for (int32_t q = 0; q <= snapshot->n_queues; q++) {
        struct order_queue *of = &order->queues[q];
        of->position = of->top = -1;
        of->first = is_leaf(order, q) ? cluster->queue_first[q] : at_child;
        if (!is_leaf(order, q)) {
            int32_t c = q == root_of(order) ? cluster->first_root : cluster->queues[q].first_child;
            for (; c >= 0; c = cluster->queues[c].next_sibling) {
                at_child++;
            }
        }
    }
    for (int32_t j = 0; j < snapshot->n_jobs; j++) {
        if (is_listed[j]) {
            order_jobs_list(order, j);
        }
    }
    if (!order->is_victims && cluster->profile->fair_users && users_differ(cluster)) {
        WEIR_TRY(users_claim(cluster, is_listed, order->ranks, order->of_jobs));
    }
    for (int32_t q = 0; q < snapshot->n_queues; q++) {
        if (is_leaf(order, q)) {
            fill_leaf(order, q, is_listed);
        }
    }
    order_refresh(order);
    return WEIR_OK;
}

weir_status order_init(struct order *order, const struct cluster *cluster, const bool *is_listed,
                       bool is_victims)
{
    *order = (struct order){.is_victims = is_victims};
    return list_jobs(order, cluster, is_listed);
}

void order_update(struct order *order, const bool *is_listed, const bool *was_listed, int64_t since)
{
    const struct cluster *cluster = order->cluster;
    for (int32_t j = 0; j < cluster->snapshot->n_jobs; j++) {
        if (is_listed[j] != was_listed[j] ||
            (is_listed[j] && cluster->changes.of_jobs[j] > since)) {
            order->queues[cluster->jobs[j].queue].is_stale = true;
            if (is_listed[j]) {
                order_jobs_list(order, j);
            }
        }
    }
    for (int32_t q = 0; q < cluster->snapshot->n_queues; q++) {
        if (order->queues[q].is_stale) {
            order->queues[q].is_stale = false;
            fill_leaf(order, q, is_listed);
        }
    }
    order_refresh(order);
}

void order_fini(struct order *order)
{
    free(order->queues);
    free(order->jobs);
    free(order->children);
    free(order->scratch);
    free(order->ranks);
    if (!order->is_copy) {
        free(order->of_jobs);
    }
    *order = (struct order){0};
}

weir_status order_copy(struct order *order, const struct order *from)
{
    const struct weir_sched_snapshot *snapshot = from->cluster->snapshot;
    size_t n_queues = (size_t)snapshot->n_queues + 1, n_jobs = (size_t)snapshot->n_jobs + 1;
    if (order->cluster == NULL) {
        *order = (struct order){.cluster = from->cluster,
                                .is_victims = from->is_victims,
                                .is_copy = true,
                                .of_jobs = from->of_jobs};
        WEIR_TRY(make_arrays(order));
    }
    order->is_victims = from->is_victims;
    order->dirty = from->dirty;
    order->of_jobs = from->of_jobs;
    memcpy(order->queues, from->queues, n_queues * sizeof *order->queues);
    memcpy(order->jobs, from->jobs, n_jobs * sizeof *order->jobs);
    memcpy(order->children, from->children, n_queues * sizeof *order->children);
    memcpy(order->ranks, from->ranks, n_jobs * sizeof *order->ranks);
    return WEIR_OK;
}

/** Bring all that has changed to its place. */
static void bring_up(struct order *order)
{
    if (order->dirty >= 0) {
        refresh_path(order, order->dirty);
        order->dirty = -1;
    }
}

int32_t order_pop(struct order *order)
{
    bring_up(order);
    int32_t first = order->queues[root_of(order)].top;
    return first < 0 ? -1 : order_pop_of(order, order->cluster->jobs[first].queue);
}

int32_t order_pop_of(struct order *order, int32_t leaf)
{
    bring_up(order);
    if (order->queues[leaf].n == 0) {
        return -1;
    }
    struct order_queue *of = &order->queues[leaf];
    struct order_entry *heap = order->jobs + of->first;
    int32_t job = heap[0].job;
    heap[0] = heap[--of->n];
    if (of->n > 0) {
        order_jobs_sink(order, heap, of->n, 0);
    }
    order->dirty = leaf;
    for (int32_t i = 1; i < of->n && i <= 2; i++) { /* One of them is popped after the first. */
        __builtin_prefetch(&order->cluster->jobs[heap[i].job]);
        __builtin_prefetch(&order->ranks[heap[i].job]);
    }
    return job;
}

void order_push(struct order *order, int32_t job)
{
    order_push_ranked(order, job, quantum_rank(order->cluster, job));
}

void order_push_ranked(struct order *order, int32_t job, int rank)
{
    int32_t leaf = order->cluster->jobs[job].queue;
    struct order_queue *of = &order->queues[leaf];
    struct order_entry *heap = order->jobs + of->first;
    order->ranks[job] = (uint8_t)rank;
    order_jobs_raise(order, heap, of->n, order_jobs_entry(order, job));
    of->n++;
    if (order->dirty >= 0 && order->dirty != leaf) {
        refresh_path(order, order->dirty);
    }
    order->dirty = leaf;
}

void order_count_loss(struct order *order, int32_t job, const struct weir_sched_amount *amount)
{
    const struct weir_sched_queue *queues = order->cluster->snapshot->queues;
    int32_t queue = order->cluster->jobs[job].queue;
    for (int32_t q = queue; q >= 0; q = queues[q].parent) {
        amount_add(&order->queues[q].taken, amount);
    }
}
