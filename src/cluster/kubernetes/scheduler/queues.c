#include "cluster/kubernetes/scheduler/queues.h"

#include <string.h>

static const struct weir_sched_model_share *copy_models(const struct weir_sched_model_share *models,
                                                        int32_t n, struct weir_arena *arena)
{
    struct weir_sched_model_share *copy =
        WEIR_ARENA_ARRAY(arena, (size_t)n + 1, struct weir_sched_model_share);
    for (int32_t i = 0; i < n; i++) {
        copy[i] = models[i];
        copy[i].model = weir_arena_strdup(arena, models[i].model);
    }
    return copy;
}

static const struct weir_sched_timed_quota *copy_times(const struct weir_sched_timed_quota *times,
                                                       int32_t n, struct weir_arena *arena)
{
    struct weir_sched_timed_quota *copy =
        WEIR_ARENA_ARRAY(arena, (size_t)n + 1, struct weir_sched_timed_quota);
    for (int32_t i = 0; i < n; i++) {
        copy[i] = times[i];
        copy[i].models = copy_models(times[i].models, times[i].n_models, arena);
    }
    return copy;
}

struct weir_sched_queue *queues_copy(const struct weir_sched_queue *queues, size_t n,
                                     struct weir_arena *arena)
{
    struct weir_sched_queue *copy = WEIR_ARENA_ARRAY(arena, n + 1, struct weir_sched_queue);
    for (size_t i = 0; i < n; i++) {
        copy[i] = queues[i];
        copy[i].name = weir_arena_strdup(arena, queues[i].name);
        copy[i].models = copy_models(queues[i].models, queues[i].n_models, arena);
        copy[i].timed_quotas = copy_times(queues[i].timed_quotas, queues[i].n_timed_quotas, arena);
    }
    return copy;
}
