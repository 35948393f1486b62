#include "cluster/kubernetes/scheduler/scheduler.h"

#include "cluster/kubernetes/scheduler/budgets.h"
#include "cluster/kubernetes/scheduler/carry_out.h"
#include "cluster/kubernetes/scheduler/hold.h"
#include "cluster/kubernetes/scheduler/kinds.h"
#include "cluster/kubernetes/scheduler/queues.h"
#include "cluster/kubernetes/scheduler/reservation.h"
#include "cluster/kubernetes/scheduler/settle.h"
#include "kube/mirror.h"

#include "base/clock.h"
#include "base/deadline.h"
#include "base/grow.h"
#include "base/log.h"
#include "base/macros.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define REST_MS 2000 /* from one cycle to the next when nothing changes */
/* So long a cycle waits for what changes with what woke it, and no shorter than the one before took: half the time is free. One
 * after which nothing was done has so many times that: what others change all day costs a twentieth of a core. */
#define GATHER_MS    ((int64_t)20)
#define IDLE_TIMES   19
#define IDLE_REST_MS ((int64_t)500) /* at most */
#define WAIT_MS      500            /* for the first lists */
#define STALE_MS     90000          /* bookmarks come once a minute */
#define KEPT         50             /* cycles after which what is not seen is forgotten */

static const char *const zone[] = {"topology.kubernetes.io/zone"};

struct kubernetes_scheduler {
    struct weir_arena arena; /* holds the options */
    struct kubernetes_options options;
    const char *const *levels;
    size_t n_levels;
    const char *space;   /* Weir's own namespace */
    json_t *reservation; /* what pods that hold devices have */
    struct weir_kube *kube;
    struct weir_kube_mirror *nodes, *pods;
    struct kinds kinds; /* the thread's own */
    struct calls *calls;
    pthread_t thread;
    bool is_running;
    pthread_mutex_t lock; /* guards all below */
    pthread_cond_t woken;
    bool is_stopping;
    uint64_t n_changes; /* pods, nodes, queues, and answers that were not expected */
    struct weir_arena queues_arena;
    struct weir_sched_queue *queues;
    size_t n_queues;
    struct memory memory;
    /* The thread's own. */
    struct budgets budgets;
    int64_t cycle, pause_ms;                /* the number of cycles, and the least until the next */
    char trouble[WEIR_ERROR_MESSAGE_BYTES]; /* said last */
};

/* ---- being woken ------------------------------------------------------------------------------ */

static void wake(void *context)
{
    struct kubernetes_scheduler *scheduler = context;
    pthread_mutex_lock(&scheduler->lock);
    scheduler->n_changes++;
    pthread_cond_signal(&scheduler->woken);
    pthread_mutex_unlock(&scheduler->lock);
}

static void done(void *context, const struct calls_one *one, weir_status status,
                 const struct weir_kube_refusal *refusal, const struct weir_error *err)
{
    struct kubernetes_scheduler *scheduler = context;
    pthread_mutex_lock(&scheduler->lock);
    bool is_news = carry_out_done(&scheduler->memory, one, status, refusal, err);
    scheduler->n_changes += is_news;
    if (is_news) {
        pthread_cond_signal(&scheduler->woken);
    }
    pthread_mutex_unlock(&scheduler->lock);
}

/* For so long, or until all ends. The lock is held. */
static void rest(struct kubernetes_scheduler *scheduler, int64_t ms, const uint64_t *known)
{
    struct timespec until = weir_deadline_after(ms);
    while (!scheduler->is_stopping && (known == NULL || scheduler->n_changes == *known) &&
           weir_cond_wait_until(&scheduler->woken, &scheduler->lock, &until) == 0) {
    }
}

static bool is_tended(struct kubernetes_scheduler *scheduler)
{
    pthread_mutex_lock(&scheduler->lock);
    bool is = scheduler->n_queues > 0;
    pthread_mutex_unlock(&scheduler->lock);
    return is;
}

/* @return Go on? */
static bool await(struct kubernetes_scheduler *scheduler, uint64_t *known)
{
    pthread_mutex_lock(&scheduler->lock);
    rest(scheduler, REST_MS, known);
    rest(scheduler, WEIR_MAX(GATHER_MS, scheduler->pause_ms), NULL);
    *known = scheduler->n_changes;
    bool goes_on = !scheduler->is_stopping;
    pthread_mutex_unlock(&scheduler->lock);
    return goes_on;
}

/* ---- what there is ---------------------------------------------------------------------------- */

/* One cycle. What it reads and makes lies in its arena; digests are held until it is over. */
struct cycle {
    struct kubernetes_scheduler *scheduler;
    struct weir_arena arena;
    const struct place_node **nodes;
    size_t n_nodes, nodes_cap;
    const struct place_pod **pods;
    size_t n_pods, pods_cap;
    struct world_pod *seen;
    struct world_input input;
    struct kinds_seen seen_of[KINDS_N];
    struct volumes volumes;
    bool are_some_spared;
    bool has_plan; /* something was to be done */
};

static void take_node(void *context, const struct weir_kube_object *object)
{
    struct cycle *cycle = context;
    const struct place_node *node = object->digest;
    weir_arena_grow(&cycle->arena, &cycle->nodes, sizeof(void *), cycle->n_nodes,
                    &cycle->nodes_cap);
    place_hold(&node->held);
    cycle->nodes[cycle->n_nodes++] = node;
}

static void take_pod(void *context, const struct weir_kube_object *object)
{
    struct cycle *cycle = context;
    const struct place_pod *pod = object->digest;
    weir_arena_grow(&cycle->arena, &cycle->pods, sizeof(void *), cycle->n_pods, &cycle->pods_cap);
    place_hold(&pod->held);
    cycle->pods[cycle->n_pods++] = pod;
}

/* Pods first: a pod may not be there without the node that it was given. */
static weir_status look(struct cycle *cycle, struct weir_error *err)
{
    const struct kubernetes_scheduler *scheduler = cycle->scheduler;
    WEIR_TRY(weir_kube_mirror_look(scheduler->pods, WAIT_MS, STALE_MS, take_pod, cycle, err));
    return weir_kube_mirror_look(scheduler->nodes, WAIT_MS, STALE_MS, take_node, cycle, err);
}

/* What the API server says stands before what is assumed. Texts of the memory may change while the plan is made: they are
 * copied. */
static void remember_pod(struct memory_item *item, int64_t now_ms, struct weir_arena *arena,
                         struct world_pod *out)
{
    const struct place_pod *pod = out->pod;
    bool is_late = item->node != NULL && item->node_until_ms < now_ms;
    if (pod->node != NULL || is_late) {
        settle_give_up(item);
    }
    if (pod->gone_ms > 0 || item->leaves_until_ms < now_ms) {
        item->leaves_until_ms = 0;
    }
    out->node = pod->node != NULL ? pod->node : weir_arena_strdup(arena, item->node);
    out->nominated =
        item->nominated != NULL ? weir_arena_strdup(arena, item->nominated) : pod->nominated;
    out->group = pod->node != NULL ? pod->part.group : weir_arena_strdup(arena, item->group);
    out->trouble = item->retry_ms > now_ms ? weir_arena_strdup(arena, item->trouble) : NULL;
    out->is_leaving = pod->gone_ms > 0 || item->leaves_until_ms > 0;
    out->is_spared = item->spared_until_ms > now_ms;
    out->awaits_claims = item->awaits_claims;
}

/* The cycle before this saw that a part of the gang alone runs. */
static bool was_half(const struct kubernetes_scheduler *scheduler, const struct memory_item *item)
{
    return item != NULL && item->half_since_ms > 0 && item->seen >= scheduler->cycle - 1;
}

static void remember(struct cycle *cycle)
{
    struct kubernetes_scheduler *scheduler = cycle->scheduler;
    int64_t now_ms = weir_mono_ms();
    cycle->seen = WEIR_ARENA_ARRAY(&cycle->arena, cycle->n_pods + 1, struct world_pod);
    scheduler->cycle++;
    for (size_t i = 0; i < cycle->n_pods; i++) {
        const struct place_pod *pod = cycle->pods[i];
        struct world_pod *out = &cycle->seen[i];
        *out = (struct world_pod){.pod = pod, .node = pod->node};
        if (!pod->is_ours || pod->is_over) {
            continue;
        }
        struct memory_item *item = memory_of(&scheduler->memory, pod->uid);
        item->seen = scheduler->cycle;
        remember_pod(item, now_ms, &cycle->arena, out);
        out->is_unsure = !hold_is_sure(&scheduler->memory, pod, &cycle->arena);
        cycle->are_some_spared = cycle->are_some_spared || out->is_spared;
        item = pod->gang != NULL ? memory_find(&scheduler->memory, pod->gang) : NULL;
        out->half_since_ms = was_half(scheduler, item) ? item->half_since_ms : 0;
    }
    memory_forget(&scheduler->memory, scheduler->cycle - KEPT);
}

/* A gang that was whole meanwhile begins from the start. */
static void remember_half(struct kubernetes_scheduler *scheduler, const struct world *world,
                          int64_t now_ms)
{
    for (size_t i = 0; i < world->n_half; i++) {
        struct memory_item *item = memory_of(&scheduler->memory, world->half[i]);
        item->half_since_ms = was_half(scheduler, item) ? item->half_since_ms : now_ms;
        item->seen = scheduler->cycle;
    }
}

static void look_at_volumes(struct cycle *cycle)
{
    struct kubernetes_scheduler *scheduler = cycle->scheduler;
    const struct kinds_seen *claims = &cycle->seen_of[KINDS_CLAIMS],
                            *volumes = &cycle->seen_of[KINDS_VOLUMES],
                            *classes = &cycle->seen_of[KINDS_CLASSES];
    cycle->volumes =
        (struct volumes){.claims = (const struct volume_claim *const *)claims->digests,
                         .n_claims = claims->n,
                         .volumes = (const struct volume *const *)volumes->digests,
                         .n_volumes = volumes->n,
                         .classes = (const struct volume_class *const *)classes->digests,
                         .n_classes = classes->n,
                         .pods = cycle->seen,
                         .n_pods = cycle->n_pods,
                         .why = claims->why != NULL    ? claims->why
                                : volumes->why != NULL ? volumes->why
                                                       : classes->why,
                         .arena = &cycle->arena};
    pthread_mutex_lock(&scheduler->lock);
    settle_recall(&scheduler->memory, scheduler->cycle, weir_mono_ms(), &cycle->volumes);
    pthread_mutex_unlock(&scheduler->lock);
    cycle->input.volumes = &cycle->volumes;
}

/* Kinds of objects that some pods need. */
static void look_further(struct cycle *cycle)
{
    bool needs[KINDS_N] = {false}, needs_volumes = false;
    for (size_t i = 0; i < cycle->n_pods; i++) {
        const struct place_pod *pod = cycle->pods[i];
        needs[KINDS_SPACES] = needs[KINDS_SPACES] || pod->sees_spaces;
        needs_volumes = needs_volumes ||
                        (pod->is_ours && !pod->is_over && pod->node == NULL && pod->n_claims > 0);
    }
    needs[KINDS_CLAIMS] = needs[KINDS_VOLUMES] = needs[KINDS_CLASSES] = needs_volumes;
    for (size_t k = 0; k < KINDS_N; k++) {
        if (needs[k]) {
            kinds_look(&cycle->scheduler->kinds, k, &cycle->arena, &cycle->seen_of[k]);
        }
    }
    const struct kinds_seen *spaces = &cycle->seen_of[KINDS_SPACES];
    cycle->input.spaces = (struct spaces){.rows = (const struct space *const *)spaces->digests,
                                          .n = spaces->n,
                                          .are_seen = needs[KINDS_SPACES] && spaces->why == NULL};
    cycle->input.spaces_why = spaces->why;
    if (needs_volumes) {
        look_at_volumes(cycle);
    }
}

static bool is_to_plan(const struct cycle *cycle)
{
    for (size_t i = 0; i < cycle->n_pods; i++) {
        const struct place_pod *pod = cycle->pods[i];
        if ((pod->is_ours && !pod->is_over) || pod->holder.group != NULL) {
            return true;
        }
    }
    return false;
}

/* ---- planning --------------------------------------------------------------------------------- */

/* A pod that is told to end does not move: what made it makes another. */
static weir_status rules(struct weir_sched_profile *out, struct weir_error *err)
{
    WEIR_TRY(weir_sched_profile_named("default", out, err));
    out->actions = (char *)(uintptr_t) "allocate,reclaim,preempt,stalegangeviction";
    out->move_victims = false;
    out->evict_grace_ms = -1;
    return WEIR_OK;
}

static weir_status plan_and_carry_out(struct cycle *cycle, struct weir_error *err)
{
    struct kubernetes_scheduler *scheduler = cycle->scheduler;
    struct weir_sched_profile profile;
    struct weir_sched_plan *plan;
    struct world world;
    WEIR_TRY(rules(&profile, err));
    world_make(&cycle->input, &cycle->arena, &world);
    WEIR_TRY(weir_sched_plan(&world.snapshot, &profile, &plan, err));
    struct carry_out carry = {.world = &world,
                              .input = &cycle->input,
                              .memory = &scheduler->memory,
                              .calls = scheduler->calls,
                              .arena = &cycle->arena,
                              .are_some_spared = cycle->are_some_spared,
                              .cycle = scheduler->cycle,
                              .reservation = scheduler->reservation};
    cycle->has_plan = plan->n_actions > 0;
    pthread_mutex_lock(&scheduler->lock);
    weir_status status = carry_out(&carry, plan, err);
    remember_half(scheduler, &world, cycle->input.now_ms);
    pthread_mutex_unlock(&scheduler->lock);
    weir_sched_plan_destroy(plan);
    return status;
}

static weir_status go_through(struct cycle *cycle, struct weir_error *err)
{
    struct kubernetes_scheduler *scheduler = cycle->scheduler;
    WEIR_TRY(look(cycle, err));
    if (!is_to_plan(cycle)) {
        return WEIR_OK;
    }
    weir_status status = budgets_list(&scheduler->budgets, scheduler->kube, err);
    if (status != WEIR_OK && scheduler->budgets.n == 0) {
        weir_log(WEIR_LOG_DEBUG, "budgets_not_listed", WEIR_KV_STR("error", err->message));
    }
    pthread_mutex_lock(&scheduler->lock);
    remember(cycle);
    cycle->input = (struct world_input){
        .now_ms = weir_time_ms(),
        .nodes = cycle->nodes,
        .n_nodes = cycle->n_nodes,
        .pods = cycle->seen,
        .n_pods = cycle->n_pods,
        .queues = queues_copy(scheduler->queues, scheduler->n_queues, &cycle->arena),
        .n_queues = scheduler->n_queues,
        .levels = scheduler->levels,
        .n_levels = scheduler->n_levels,
        .space = scheduler->space};
    pthread_mutex_unlock(&scheduler->lock);
    look_further(cycle);
    cycle->are_some_spared =
        budgets_spare(&scheduler->budgets, cycle->seen, cycle->n_pods) || cycle->are_some_spared;
    return plan_and_carry_out(cycle, err);
}

/* The same trouble is said once. Before the first lists are there it is none: the driver's check says what is away. */
static void note(struct kubernetes_scheduler *scheduler, weir_status status,
                 const struct weir_error *err)
{
    if (status == WEIR_ERR_UNAVAILABLE && scheduler->cycle == 0) {
        return;
    }
    if (status != WEIR_OK && strcmp(scheduler->trouble, err->message) != 0) {
        weir_log(WEIR_LOG_WARN, "cluster_not_planned", WEIR_KV_STR("error", err->message));
    }
    (void)snprintf(scheduler->trouble, sizeof scheduler->trouble, "%s",
                   status != WEIR_OK ? err->message : "");
}

static void run_cycle(struct kubernetes_scheduler *scheduler)
{
    struct cycle cycle = {.scheduler = scheduler};
    struct weir_error err;
    uint64_t begun_ns = weir_mono_ns();
    weir_arena_init(&cycle.arena, (size_t)1 << 30);
    note(scheduler, go_through(&cycle, &err), &err);
    for (size_t i = 0; i < cycle.n_nodes; i++) {
        place_release((void *)(uintptr_t)cycle.nodes[i]);
    }
    for (size_t i = 0; i < cycle.n_pods; i++) {
        place_release((void *)(uintptr_t)cycle.pods[i]);
    }
    for (size_t k = 0; k < KINDS_N; k++) {
        kinds_release(&cycle.seen_of[k]);
    }
    weir_arena_fini(&cycle.arena);
    int64_t took_us = (int64_t)((weir_mono_ns() - begun_ns) / 1000);
    scheduler->pause_ms = cycle.has_plan ? WEIR_MIN(took_us / 1000, (int64_t)REST_MS)
                                         : WEIR_MIN(IDLE_TIMES * took_us / 1000, IDLE_REST_MS);
}

static void *scheduler_main(void *context)
{
    struct kubernetes_scheduler *scheduler = context;
    uint64_t known = 0;
    while (await(scheduler, &known)) {
        if (is_tended(scheduler)) {
            run_cycle(scheduler);
        }
    }
    return NULL;
}

/* ---- made and ended --------------------------------------------------------------------------- */

static void *read_node(void *context, const json_t *node)
{
    const struct kubernetes_scheduler *scheduler = context;
    return place_node_read(&scheduler->options, node);
}

/* What is over counts only in a gang, or has to be taken away. */
static void *read_pod(void *context, const json_t *object)
{
    (void)context;
    struct place_pod *pod = place_pod_read(object);
    if (pod != NULL && pod->is_over && pod->holder.group == NULL &&
        !(pod->has_succeeded && pod->gang != NULL)) {
        place_release(pod);
        return NULL;
    }
    return pod;
}

static void copy_options(struct kubernetes_scheduler *scheduler,
                         const struct weir_kube_config *kube,
                         const struct kubernetes_options *options)
{
    size_t n = json_array_size(options->topology);
    const char **levels = WEIR_ARENA_ARRAY(&scheduler->arena, n + 1, const char *);
    scheduler->options.device = weir_arena_strdup(&scheduler->arena, options->device);
    for (size_t i = 0; i < n; i++) {
        levels[i] = weir_arena_strdup(&scheduler->arena,
                                      json_string_value(json_array_get(options->topology, i)));
    }
    scheduler->space = weir_arena_strdup(&scheduler->arena, options->namespace_name != NULL
                                                                ? options->namespace_name
                                                                : kube->namespace_name);
    scheduler->reservation = reservation_template(options);
    scheduler->levels = n > 0 ? levels : zone;
    scheduler->n_levels = n > 0 ? n : WEIR_ARRAY_LEN(zone);
}

static weir_status start_all(struct kubernetes_scheduler *scheduler,
                             const struct weir_kube_config *kube, struct weir_error *err)
{
    const struct calls_config calls = {.kube = kube, .done = done, .context = scheduler};
    struct weir_kube_mirror_config mirror = {.kube = kube,
                                             .digest_context = scheduler,
                                             .release = place_release,
                                             .changed = wake,
                                             .changed_context = scheduler};
    WEIR_TRY(weir_kube_open(kube, &scheduler->kube, err));
    scheduler->kinds = (struct kinds){
        .kube = weir_kube_config_of(scheduler->kube), .changed = wake, .context = scheduler};
    WEIR_TRY(calls_start(&calls, &scheduler->calls, err));
    mirror.path = "/api/v1/nodes";
    mirror.digest = read_node;
    WEIR_TRY(weir_kube_mirror_start(&mirror, &scheduler->nodes, err));
    mirror.path = "/api/v1/pods";
    mirror.digest = read_pod;
    WEIR_TRY(weir_kube_mirror_start(&mirror, &scheduler->pods, err));
    int reason = pthread_create(&scheduler->thread, NULL, scheduler_main, scheduler);
    scheduler->is_running = reason == 0;
    return reason == 0 ? WEIR_OK : weir_error_set_errno(err, reason, "cannot start a thread");
}

weir_status kubernetes_scheduler_start(const struct weir_kube_config *kube,
                                       const struct kubernetes_options *options,
                                       struct kubernetes_scheduler **out, struct weir_error *err)
{
    struct kubernetes_scheduler *scheduler = weir_xalloc(sizeof *scheduler);
    *scheduler = (struct kubernetes_scheduler){0};
    weir_arena_init(&scheduler->arena, 0);
    weir_arena_init(&scheduler->queues_arena, 0);
    pthread_mutex_init(&scheduler->lock, NULL);
    pthread_cond_init(&scheduler->woken, NULL);
    memory_init(&scheduler->memory);
    budgets_init(&scheduler->budgets);
    copy_options(scheduler, kube, options);
    weir_status status = start_all(scheduler, kube, err);
    if (status != WEIR_OK) {
        kubernetes_scheduler_stop(scheduler);
        return status;
    }
    *out = scheduler;
    return WEIR_OK;
}

void kubernetes_scheduler_tend(struct kubernetes_scheduler *scheduler,
                               const struct weir_sched_queue *queues, size_t n_queues)
{
    struct weir_arena arena, old;
    weir_arena_init(&arena, 0);
    struct weir_sched_queue *copy = queues_copy(queues, n_queues, &arena);
    pthread_mutex_lock(&scheduler->lock);
    old = scheduler->queues_arena;
    scheduler->queues_arena = arena;
    scheduler->queues = copy;
    scheduler->n_changes += scheduler->n_queues == 0;
    scheduler->n_queues = n_queues;
    pthread_cond_signal(&scheduler->woken);
    pthread_mutex_unlock(&scheduler->lock);
    weir_arena_fini(&old);
}

/* Calls tell the scheduler what was answered, and mirrors what has changed: they end before what they tell it to. */
void kubernetes_scheduler_stop(struct kubernetes_scheduler *scheduler)
{
    if (scheduler == NULL) {
        return;
    }
    pthread_mutex_lock(&scheduler->lock);
    scheduler->is_stopping = true;
    pthread_cond_broadcast(&scheduler->woken);
    pthread_mutex_unlock(&scheduler->lock);
    if (scheduler->is_running) {
        weir_kube_cancel(scheduler->kube);
        pthread_join(scheduler->thread, NULL);
    }
    kinds_stop(&scheduler->kinds);
    weir_kube_mirror_stop(scheduler->pods);
    weir_kube_mirror_stop(scheduler->nodes);
    calls_stop(scheduler->calls);
    weir_kube_close(scheduler->kube);
    json_decref(scheduler->reservation);
    budgets_fini(&scheduler->budgets);
    memory_fini(&scheduler->memory);
    weir_arena_fini(&scheduler->queues_arena);
    weir_arena_fini(&scheduler->arena);
    pthread_cond_destroy(&scheduler->woken);
    pthread_mutex_destroy(&scheduler->lock);
    free(scheduler);
}
