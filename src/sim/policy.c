/**
 * Jobs of one size are interchangeable to who only counts devices, so they wait in one bucket per
 * size; where each queue is for itself (static), in one per queue. Without eviction a bucket is a
 * heap: passing over all that do not fit means to take, again and again, the first head among the
 * buckets whose size fits. With eviction (las) a bucket is two lists, below and above the
 * threshold, of all jobs that wait or run, by arrival; who runs is picked again at each event by
 * walking them together.
 */
#include "sim/policy.h"
#include "base/grow.h"

#include <stdlib.h>
#include <string.h>

#define N_LEVELS 2

enum kind {
    KIND_FIFO,
    KIND_FIFO_SKIP,
    KIND_SJF,
    KIND_LAS,
    KIND_STATIC,
};

static const char *const kind_names[] = {"fifo", "fifo-skip", "sjf", "las", "static"};

struct bucket {
    int64_t milli; /**< Of each of its jobs; static: the queue's quota. */
    int32_t *heap; /**< Jobs, the first to start on top. */
    int32_t n;
    size_t cap;
    int32_t first[N_LEVELS], last[N_LEVELS]; /**< Lists of las; -1. */
    int32_t at[N_LEVELS];                    /**< Where the walk stands. */
};

struct link {
    int32_t previous, next;
    int8_t level;
    bool is_picked;
};

struct policy {
    struct timeline *timeline;
    enum kind kind;
    struct bucket *buckets;
    int32_t n_buckets;
    int32_t *bucket_of; /**< Per job. */
    struct link *links; /**< Per job; las only. */
    int32_t *running;   /**< Jobs; las only. */
    int32_t *picked;    /**< Room for a pick; las only. */
    int32_t n_running;
};

bool policy_is_known(const char *name)
{
    for (size_t i = 0; i < WEIR_ARRAY_LEN(kind_names); i++) {
        if (strcmp(kind_names[i], name) == 0) {
            return true;
        }
    }
    return false;
}

void policy_list(struct weir_names *out)
{
    for (size_t i = 0; i < WEIR_ARRAY_LEN(kind_names); i++) {
        weir_names_add(out, kind_names[i], strlen(kind_names[i]));
    }
}

/* ---- heaps ----------------------------------------------------------------------------------- */

static bool is_first(const struct policy *d, int32_t left, int32_t right)
{
    if (d->kind == KIND_SJF) {
        int64_t a = d->timeline->trace->jobs[left].duration_ms,
                b = d->timeline->trace->jobs[right].duration_ms;
        if (a != b) {
            return a < b;
        }
    }
    return timeline_is_earlier(d->timeline, left, right);
}

static void heap_push(struct policy *d, struct bucket *bucket, int32_t job)
{
    weir_xgrow(&bucket->heap, sizeof *bucket->heap, (size_t)bucket->n, &bucket->cap);
    int32_t at = bucket->n++;
    for (; at > 0 && is_first(d, job, bucket->heap[(at - 1) / 2]); at = (at - 1) / 2) {
        bucket->heap[at] = bucket->heap[(at - 1) / 2];
    }
    bucket->heap[at] = job;
}

static int32_t heap_pop(struct policy *d, struct bucket *bucket)
{
    int32_t top = bucket->heap[0], last = bucket->heap[--bucket->n], at = 0;
    for (;;) {
        int32_t child = 2 * at + 1;
        if (child >= bucket->n) {
            break;
        }
        if (child + 1 < bucket->n && is_first(d, bucket->heap[child + 1], bucket->heap[child])) {
            child++;
        }
        if (!is_first(d, bucket->heap[child], last)) {
            break;
        }
        bucket->heap[at] = bucket->heap[child];
        at = child;
    }
    bucket->heap[at] = last;
    return top;
}

static int64_t free_milli(const struct policy *d)
{
    return d->timeline->metrics.capacity_milli - d->timeline->metrics.held_milli;
}

static void start(struct policy *d, int32_t job)
{
    timeline_grow(d->timeline, job, d->timeline->jobs[job].n_tasks, d->timeline->jobs[job].milli);
}

static void dispatch_static(struct policy *d)
{
    for (int32_t q = 0; q < d->n_buckets; q++) {
        struct bucket *bucket = &d->buckets[q];
        const struct metrics_queue *queue = &d->timeline->metrics.queues[q];
        while (bucket->n > 0) {
            int64_t room = bucket->milli - queue->held_milli;
            if (d->timeline->jobs[bucket->heap[0]].milli > WEIR_MIN(room, free_milli(d))) {
                break;
            }
            start(d, heap_pop(d, bucket));
        }
    }
}

static void dispatch_waiting(struct policy *d)
{
    for (;;) {
        int64_t room = free_milli(d);
        struct bucket *best = NULL;
        for (int32_t b = 0; b < d->n_buckets; b++) {
            struct bucket *bucket = &d->buckets[b];
            bool may = bucket->n > 0 && (d->kind == KIND_FIFO || bucket->milli <= room);
            if (may && (best == NULL || is_first(d, bucket->heap[0], best->heap[0]))) {
                best = bucket;
            }
        }
        if (best == NULL || best->milli > room) {
            return;
        }
        start(d, heap_pop(d, best));
    }
}

/* ---- least attained service ------------------------------------------------------------------ */

/** Into its list, behind all that arrived before it. */
static void list_insert(struct policy *d, int32_t job, int level)
{
    struct bucket *bucket = &d->buckets[d->bucket_of[job]];
    int32_t before = bucket->last[level];
    while (before >= 0 && timeline_is_earlier(d->timeline, job, before)) {
        before = d->links[before].previous;
    }
    int32_t after = before >= 0 ? d->links[before].next : bucket->first[level];
    d->links[job] = (struct link){before, after, (int8_t)level, d->links[job].is_picked};
    *(before >= 0 ? &d->links[before].next : &bucket->first[level]) = job;
    *(after >= 0 ? &d->links[after].previous : &bucket->last[level]) = job;
}

static void list_remove(struct policy *d, int32_t job)
{
    struct bucket *bucket = &d->buckets[d->bucket_of[job]];
    const struct link *link = &d->links[job];
    *(link->previous >= 0 ? &d->links[link->previous].next : &bucket->first[link->level]) =
        link->next;
    *(link->next >= 0 ? &d->links[link->next].previous : &bucket->last[link->level]) =
        link->previous;
}

static void forget_running(struct policy *d, int32_t job)
{
    for (int32_t i = 0; i < d->n_running; i++) {
        if (d->running[i] == job) {
            d->running[i] = d->running[--d->n_running];
            return;
        }
    }
}

/** Move who passed the threshold down. @return When the next one will. */
static int64_t demote(struct policy *d)
{
    double threshold_s = d->timeline->options->las_threshold_s;
    int64_t wake_ms = INT64_MAX;
    for (int32_t i = 0; i < d->n_running; i++) {
        int32_t job = d->running[i];
        int64_t milli = WEIR_MAX(1, d->timeline->jobs[job].milli);
        double left_s = threshold_s - timeline_attained_s(d->timeline, job);
        if (d->links[job].level != 0) {
            continue;
        }
        if (left_s <= 0) {
            list_remove(d, job);
            list_insert(d, job, 1);
        } else {
            int64_t in_ms = (int64_t)(left_s * 1e6 / (double)milli) + 1;
            wake_ms = WEIR_MIN(wake_ms, d->timeline->now_ms + in_ms);
        }
    }
    return wake_ms;
}

/** The next job of a level in order of arrival among buckets that fit; -1. */
static int32_t next_of_level(struct policy *d, int level, int64_t room)
{
    struct bucket *best = NULL;
    for (int32_t b = 0; b < d->n_buckets; b++) {
        struct bucket *bucket = &d->buckets[b];
        if (bucket->at[level] >= 0 && bucket->milli <= room &&
            (best == NULL ||
             timeline_is_earlier(d->timeline, bucket->at[level], best->at[level]))) {
            best = bucket;
        }
    }
    if (best == NULL) {
        return -1;
    }
    int32_t job = best->at[level];
    best->at[level] = d->links[job].next;
    return job;
}

static int32_t pick(struct policy *d)
{
    int64_t room = d->timeline->metrics.capacity_milli;
    int32_t n = 0;
    for (int32_t b = 0; b < d->n_buckets; b++) {
        for (int level = 0; level < N_LEVELS; level++) {
            d->buckets[b].at[level] = d->buckets[b].first[level];
        }
    }
    for (int level = 0; level < N_LEVELS; level++) {
        for (int32_t job = next_of_level(d, level, room); job >= 0;
             job = next_of_level(d, level, room)) {
            room -= d->timeline->jobs[job].milli;
            d->links[job].is_picked = true;
            d->picked[n++] = job;
        }
    }
    return n;
}

static void dispatch_attained(struct policy *d, int64_t *out_wake_ms)
{
    int32_t n_kept = 0;
    (void)demote(d);
    int32_t n_picked = pick(d);
    for (int32_t i = 0; i < d->n_running; i++) {
        int32_t job = d->running[i];
        if (d->links[job].is_picked) {
            d->running[n_kept++] = job;
        } else {
            timeline_evict(d->timeline, job, 0, 0);
        }
    }
    d->n_running = n_kept;
    for (int32_t i = 0; i < n_picked; i++) {
        int32_t job = d->picked[i];
        d->links[job].is_picked = false;
        if (d->timeline->jobs[job].state == TIMELINE_WAITING) {
            start(d, job);
            d->running[d->n_running++] = job;
        }
    }
    *out_wake_ms = demote(d);
}

/* ---- the driver ------------------------------------------------------------------------------ */

static void arrive(void *self, int32_t job)
{
    struct policy *d = self;
    struct bucket *bucket = &d->buckets[d->bucket_of[job]];
    int64_t most = d->kind == KIND_STATIC ? bucket->milli : d->timeline->metrics.capacity_milli;
    if (d->timeline->jobs[job].milli > most && d->kind != KIND_FIFO) {
        return; /* never fits: it waits for ever */
    }
    if (d->kind == KIND_LAS) {
        list_insert(d, job, 0);
    } else {
        heap_push(d, bucket, job);
    }
}

static void leave(void *self, int32_t job)
{
    struct policy *d = self;
    if (d->kind == KIND_LAS) {
        list_remove(d, job);
        forget_running(d, job);
    }
}

static weir_status decide(void *self, int64_t *out_wake_ms, struct weir_error *err)
{
    (void)err;
    struct policy *d = self;
    *out_wake_ms = INT64_MAX;
    if (d->kind == KIND_LAS) {
        dispatch_attained(d, out_wake_ms);
    } else if (d->kind == KIND_STATIC) {
        dispatch_static(d);
    } else {
        dispatch_waiting(d);
    }
    return WEIR_OK;
}

struct timeline_driver policy_driver(struct policy *policy)
{
    return (struct timeline_driver){policy, arrive, leave, decide};
}

static int compare_milli(const void *left, const void *right)
{
    int64_t a = *(const int64_t *)left, b = *(const int64_t *)right;
    return (a > b) - (a < b);
}

/** One bucket per queue, as the timeline numbers them. */
static void make_queue_buckets(struct policy *d)
{
    const struct metrics *metrics = &d->timeline->metrics;
    struct weir_arena *arena = d->timeline->arena;
    int32_t n_jobs = d->timeline->trace->n_jobs;
    d->n_buckets = metrics->n_queues;
    d->buckets = WEIR_ARENA_ARRAY(arena, (size_t)d->n_buckets, struct bucket);
    for (int32_t q = 0; q < d->n_buckets; q++) {
        int64_t quota = metrics->queues[q].quota_milli;
        d->buckets[q].milli = quota == WEIR_SCHED_UNLIMITED ? metrics->capacity_milli : quota;
    }
    d->bucket_of = WEIR_ARENA_ARRAY(arena, (size_t)n_jobs, int32_t);
    for (int32_t j = 0; j < n_jobs; j++) {
        d->bucket_of[j] = d->timeline->jobs[j].queue;
    }
}

/** One bucket per size that occurs. */
static void make_buckets(struct policy *d)
{
    struct weir_arena *arena = d->timeline->arena;
    int32_t n_jobs = d->timeline->trace->n_jobs;
    int64_t *sizes = WEIR_ARENA_ARRAY(arena, (size_t)n_jobs + 1, int64_t);
    for (int32_t j = 0; j < n_jobs; j++) {
        sizes[j] = d->timeline->jobs[j].milli;
    }
    qsort(sizes, (size_t)n_jobs, sizeof *sizes, compare_milli);
    for (int32_t j = 0; j < n_jobs; j++) {
        if (d->n_buckets == 0 || sizes[d->n_buckets - 1] != sizes[j]) {
            sizes[d->n_buckets++] = sizes[j];
        }
    }
    d->buckets = WEIR_ARENA_ARRAY(arena, (size_t)d->n_buckets, struct bucket);
    for (int32_t b = 0; b < d->n_buckets; b++) {
        d->buckets[b] = (struct bucket){.milli = sizes[b], .first = {-1, -1}, .last = {-1, -1}};
    }
    d->bucket_of = WEIR_ARENA_ARRAY(arena, (size_t)n_jobs, int32_t);
    for (int32_t j = 0; j < n_jobs; j++) {
        const int64_t *size = bsearch(&d->timeline->jobs[j].milli, sizes, (size_t)d->n_buckets,
                                      sizeof *sizes, compare_milli);
        d->bucket_of[j] = (int32_t)(size - sizes);
    }
}

struct policy *policy_create(const char *name, struct timeline *timeline)
{
    struct policy *d = WEIR_ARENA_NEW(timeline->arena, struct policy);
    d->timeline = timeline;
    while (strcmp(kind_names[d->kind], name) != 0) {
        d->kind++;
    }
    if (d->kind == KIND_STATIC) {
        make_queue_buckets(d);
    } else {
        make_buckets(d);
    }
    if (d->kind == KIND_LAS) {
        size_t n = (size_t)timeline->trace->n_jobs;
        d->links = WEIR_ARENA_ARRAY(timeline->arena, n, struct link);
        d->running = WEIR_ARENA_ARRAY(timeline->arena, n, int32_t);
        d->picked = WEIR_ARENA_ARRAY(timeline->arena, n, int32_t);
    }
    return d;
}

void policy_destroy(struct policy *policy)
{
    for (int32_t b = 0; policy != NULL && b < policy->n_buckets; b++) {
        free(policy->buckets[b].heap);
    }
}
