#include "control/schedule/guarantee.h"

#include <string.h>

#define MINUTE_MS    ((int64_t)60 * 1000)
#define DAY_MS       (24 * 60 * MINUTE_MS)
#define DAYS_OF_WEEK 7
#define DONORS_NAMED 3

const struct weir_sched_share *guarantee_share(const struct weir_sched_snapshot *rows,
                                               const struct weir_sched_queue *queue, int32_t r,
                                               const char *const *models)
{
    const struct weir_sched_timed_quota *timed = weir_sched_timed_quota_now(rows, queue);
    const struct weir_sched_model_share *list = timed != NULL ? timed->models : queue->models;
    int32_t n = timed != NULL ? timed->n_models : queue->n_models;
    if (r < WEIR_SCHED_N_RESOURCES) {
        return timed != NULL ? &timed->shares[r] : &queue->shares[r];
    }
    for (int32_t i = 0; i < n; i++) {
        if (strcmp(list[i].model, models[r - WEIR_SCHED_FIRST_MODEL]) == 0) {
            return &list[i].share;
        }
    }
    return NULL;
}

static int64_t quota_at(const struct weir_sched_snapshot *rows, int32_t q, int32_t r,
                        const char *const *models)
{
    const struct weir_sched_share *share = guarantee_share(rows, &rows->queues[q], r, models);
    return share != NULL && share->quota > 0 ? share->quota : 0;
}

/* Its whole devices, and the slices of others by what each counts as. */
static int64_t devices_of(const struct weir_sched_node *node)
{
    int64_t devices = node->n_devices * weir_sched_device_milli(node);
    for (int32_t i = 0; i < node->n_extras; i++) {
        devices += node->extras[i].count * node->extras[i].device_milli;
    }
    return devices;
}

static void sum_capacity(const struct weir_sched_snapshot *rows, const char *const *models,
                         int32_t n_models, struct weir_sched_amount *out)
{
    memset(out, 0, sizeof *out);
    for (int32_t i = 0; i < rows->n_nodes; i++) {
        const struct weir_sched_node *node = &rows->nodes[i];
        int64_t devices = devices_of(node);
        out->of[WEIR_SCHED_ACCELERATOR] += devices;
        /* What it has beside them for small tasks (small.h) is no whole CPU's. */
        out->of[WEIR_SCHED_CPU] += node->cpu_milli - node->cpu_milli % 1000;
        out->of[WEIR_SCHED_MEMORY] += node->memory_bytes;
        for (int32_t m = 0; m < n_models; m++) {
            bool is_of = node->model != NULL && strcmp(node->model, models[m]) == 0;
            out->of[WEIR_SCHED_FIRST_MODEL + m] += is_of ? devices : 0;
        }
    }
}

void guarantee_capacity(const struct weir_sched_snapshot *rows, struct weir_sched_amount *out)
{
    sum_capacity(rows, NULL, 0, out);
}

/* Parents stand before their children: from the last to the first each adds to its parent's parts. */
static void sum_quotas(const struct weir_sched_snapshot *rows, const char *const *models,
                       int32_t n_models, struct weir_sched_amount *parts,
                       struct weir_sched_amount *out)
{
    memset(out, 0, sizeof *out);
    memset(parts, 0, (size_t)rows->n_queues * sizeof *parts);
    for (int32_t q = rows->n_queues - 1; q >= 0; q--) {
        int32_t parent = rows->queues[q].parent;
        struct weir_sched_amount *to = parent >= 0 ? &parts[parent] : out;
        for (int32_t r = 0; r < WEIR_SCHED_FIRST_MODEL + n_models; r++) {
            int64_t own = quota_at(rows, q, r, models);
            to->of[r] += WEIR_MAX(own, parts[q].of[r]);
        }
    }
}

/* ---- times ------------------------------------------------------------------------------------ */

static size_t add_time(int64_t *times, size_t n, int64_t time_ms)
{
    for (size_t i = 0; i < n; i++) {
        if (times[i] == time_ms) {
            return n;
        }
    }
    if (n < GUARANTEE_TIMES_MAX) {
        times[n++] = time_ms;
    }
    return n;
}

/* Now, and each minute of the week that follows at which a quota begins or ends. */
static size_t list_times(const struct weir_sched_snapshot *rows, int64_t *times)
{
    int64_t today_ms = rows->now_ms - rows->now_ms % DAY_MS;
    size_t n = add_time(times, 0, rows->now_ms);
    for (int32_t q = 0; q < rows->n_queues; q++) {
        for (int32_t t = 0; t < rows->queues[q].n_timed_quotas; t++) {
            const struct weir_sched_timed_quota *timed = &rows->queues[q].timed_quotas[t];
            for (int day = 0; day < DAYS_OF_WEEK; day++) {
                n = add_time(times, n, today_ms + day * DAY_MS + timed->from_minute * MINUTE_MS);
                n = add_time(times, n, today_ms + day * DAY_MS + timed->until_minute * MINUTE_MS);
            }
        }
    }
    return n;
}

/* The resource of which the largest part is missing. */
static int32_t worst_of(const struct guarantee_sum *sum, int32_t n_resources, double *out_part)
{
    int32_t worst = -1;
    *out_part = 0;
    for (int32_t r = 0; r < n_resources; r++) {
        int64_t missing = sum->sum.of[r] - sum->capacity.of[r];
        double part = missing > 0 ? (double)missing / (double)sum->sum.of[r] : 0;
        if (part > *out_part) {
            *out_part = part;
            worst = r;
        }
    }
    return worst;
}

void guarantee_look(const struct weir_sched_snapshot *rows, struct weir_arena *arena,
                    struct guarantee_sum *out)
{
    const char *models[WEIR_SCHED_MODELS_MAX];
    int32_t n_models = weir_sched_models(rows, models);
    int64_t *times = WEIR_ARENA_ARRAY(arena, GUARANTEE_TIMES_MAX, int64_t);
    struct weir_sched_amount *parts =
        WEIR_ARENA_ARRAY(arena, (size_t)rows->n_queues + 1, struct weir_sched_amount);
    struct weir_sched_snapshot at = *rows;
    double most = 0;
    size_t n_times = list_times(rows, times);
    *out = (struct guarantee_sum){.at_ms = rows->now_ms, .resource = -1};
    for (size_t i = 0; i < n_times; i++) {
        struct guarantee_sum sum = {.at_ms = times[i]};
        double part;
        at.now_ms = times[i];
        sum_capacity(&at, models, n_models, &sum.capacity);
        sum_quotas(&at, models, n_models, parts, &sum.sum);
        sum.resource =
            rows->n_nodes > 0 ? worst_of(&sum, WEIR_SCHED_FIRST_MODEL + n_models, &part) : -1;
        if (i == 0 || (sum.resource >= 0 && part > most)) {
            *out = sum;
            most = sum.resource >= 0 ? part : 0;
        }
    }
}

int64_t guarantee_missing(const struct guarantee_sum *sum)
{
    return sum->resource < 0 ? 0 : sum->sum.of[sum->resource] - sum->capacity.of[sum->resource];
}

/* ---- a sentence ------------------------------------------------------------------------------- */

static const char *amount_text(int64_t amount, int32_t r, const char *const *models,
                               struct weir_arena *arena)
{
    if (r == WEIR_SCHED_MEMORY) {
        return weir_arena_printf(arena, "%.1f GiB of memory", (double)amount / (1 << 30));
    }
    return weir_arena_printf(arena, "%.10g %s", (double)amount / 1000,
                             r >= WEIR_SCHED_FIRST_MODEL   ? models[r - WEIR_SCHED_FIRST_MODEL]
                             : r == WEIR_SCHED_ACCELERATOR ? "accelerators"
                                                           : "CPUs");
}

/* What of its guarantee a queue without parts does not use. */
static int64_t unused_of(const struct weir_sched_snapshot *at, int32_t q, int32_t r,
                         const char *const *models, const struct weir_sched_queue_share *used)
{
    for (int32_t i = q + 1; i < at->n_queues; i++) {
        if (at->queues[i].parent == q) {
            return 0;
        }
    }
    return WEIR_MAX(quota_at(at, q, r, models) - used[q].allocated.of[r], (int64_t)0);
}

static const char *tell_donors(const struct weir_sched_snapshot *at,
                               const struct guarantee_sum *sum, const char *const *models,
                               const struct weir_sched_queue_share *used, const bool *named,
                               struct weir_arena *arena)
{
    int32_t r = sum->resource;
    bool *told = WEIR_ARENA_ARRAY(arena, (size_t)at->n_queues + 1, bool);
    const char *text = "";
    for (int i = 0; i < DONORS_NAMED; i++) {
        int32_t best = -1;
        for (int32_t q = 0; q < at->n_queues; q++) {
            int64_t unused = unused_of(at, q, r, models, used);
            bool is_better = best < 0 || unused > unused_of(at, best, r, models, used);
            best = !told[q] && unused > 0 && is_better && (named == NULL || named[q]) ? q : best;
        }
        if (best < 0) {
            break;
        }
        told[best] = true;
        text =
            weir_arena_printf(arena, "%s%s %s (%s)", text, i > 0 ? "," : "", at->queues[best].name,
                              amount_text(unused_of(at, best, r, models, used), r, models, arena));
    }
    return text;
}

bool guarantee_has_donors(const struct weir_sched_snapshot *rows, const struct guarantee_sum *sum,
                          const struct weir_sched_queue_share *used, const bool *named,
                          struct weir_arena *arena)
{
    const char *models[WEIR_SCHED_MODELS_MAX];
    struct weir_sched_snapshot at = *rows;
    (void)weir_sched_models(rows, models);
    at.now_ms = sum->at_ms;
    return sum->resource >= 0 && tell_donors(&at, sum, models, used, named, arena)[0] != '\0';
}

const char *guarantee_tell(const struct weir_sched_snapshot *rows, const struct guarantee_sum *sum,
                           const struct weir_sched_queue_share *used, const bool *named,
                           struct weir_arena *arena)
{
    const char *models[WEIR_SCHED_MODELS_MAX];
    struct weir_sched_snapshot at = *rows;
    int32_t r = sum->resource;
    if (r < 0) {
        return "all guarantees can be kept";
    }
    (void)weir_sched_models(rows, models);
    at.now_ms = sum->at_ms;
    const char *donors = tell_donors(&at, sum, models, used, named, arena);
    return weir_arena_printf(
        arena, "guarantees of %s in all%s are more than the %s that the nodes have; %s%s",
        amount_text(sum->sum.of[r], r, models, arena),
        sum->at_ms != rows->now_ms ? ", at a time of the week," : "",
        amount_text(sum->capacity.of[r], r, models, arena),
        donors[0] != '\0' ? "of theirs these do not use:"
                          : "no other queue has any that it does not use",
        donors);
}
