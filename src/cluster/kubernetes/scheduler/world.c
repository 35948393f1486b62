#include "cluster/kubernetes/scheduler/world.h"

#include "base/grow.h"
#include "base/macros.h"
#include "cluster/kubernetes/scheduler/rather.h"
#include "cluster/kubernetes/scheduler/world_node.h"
#include "cluster/kubernetes/scheduler/world_part.h"

#include <string.h>

#define NEVER_MS    ((int64_t)1 << 50)
#define TERM_PREFIX "weir.dev/term-"

/* A pod of ours that is planned. */
struct own {
    const struct world_pod *pod;
    size_t i; /* place in the input */
    int32_t node, nominated;
};

/* A rule for neighbours that the planner keeps. */
struct term {
    const struct place_term *term;
    const char *label;
};

struct making {
    const struct world_input *input;
    struct weir_arena *arena;
    struct world *out;
    struct world_nodes nodes;
    struct own *own;
    size_t n_own;
    struct weir_sched_task *tasks;
    struct weir_sched_job *jobs;
    struct term *terms;
    size_t n_terms, terms_cap;
    const struct weir_sched_topology *topology; /* NULL: no node says where it is */
    bool *are_counted;                          /* claims: a task asks for its volume */
};

/* ---- queues ----------------------------------------------------------------------------------- */

static int32_t find_queue(const struct world_input *input, const char *name)
{
    for (size_t i = 0; i < input->n_queues; i++) {
        if (strcmp(input->queues[i].name, name) == 0) {
            return (int32_t)i;
        }
    }
    return -1;
}

static bool is_leaf(const struct world_input *input, int32_t queue)
{
    for (size_t i = 0; i < input->n_queues; i++) {
        if (input->queues[i].parent == queue) {
            return false;
        }
    }
    return true;
}

static const char *wrong_queue(const struct making *making, const struct place_pod *pod)
{
    int32_t queue = find_queue(making->input, pod->queue);
    if (queue < 0) {
        return weir_arena_printf(making->arena, "There is no queue \"%.100s\".", pod->queue);
    }
    return is_leaf(making->input, queue)
               ? NULL
               : weir_arena_printf(making->arena,
                                   "Queue %.100s has queues below it: pods go to one of those.",
                                   pod->queue);
}

/* ---- which pods are planned ------------------------------------------------------------------- */

static const char *group_of(const struct place_pod *pod)
{
    return pod->gang != NULL ? pod->gang : pod->key;
}

static int by_group(const void *a, const void *b)
{
    const struct own *left = a, *right = b;
    const struct place_pod *l = left->pod->pod, *r = right->pod->pod;
    int order = strcmp(group_of(l), group_of(r));
    order = order != 0 ? order : (l->gang != NULL) - (r->gang != NULL);
    return order != 0 ? order : strcmp(l->key, r->key);
}

/* Why it cannot be planned. */
static const char *wrong_of(const struct making *making, const struct place_pod *pod)
{
    const char *wrong = wrong_queue(making, pod);
    if (wrong == NULL && pod->part.milli > 0 && world_nodes_device(&making->nodes, pod) != NULL) {
        return "It asks for whole accelerators and for a part of one (weir.dev/gpu-fraction): one "
               "of the two is expected.";
    }
    return wrong != NULL ? wrong : pod->asks_more;
}

/* It has no place, and is not to get one. */
static bool is_idle(const struct world_pod *pod, int32_t node)
{
    return node < 0 && (pod->node != NULL || pod->is_leaving || pod->pod->is_gated);
}

/* Why a pod that is to get a place does not; NULL: it may. */
static const char *wrong_just_now(const struct making *making, const struct world_pod *pod)
{
    const struct world_input *input = making->input;
    const char *wrong =
        pod->trouble != NULL ? pod->trouble : shares_wrong(&making->out->shares, pod->pod);
    wrong = wrong == NULL && pod->pod->selects_spaces ? input->spaces_why : wrong;
    return wrong == NULL && pod->pod->is_ours && input->volumes != NULL
               ? volumes_wrong(input->volumes, pod->pod, input->nodes, input->n_nodes)
               : wrong;
}

/* A pod that is to get a place needs volumes that are there. */
static void ask_for_volumes(struct making *making, const struct place_pod *pod, int32_t node)
{
    for (size_t i = 0; i < pod->n_claims && node < 0 && making->input->volumes != NULL; i++) {
        const char *pool = volumes_pool(making->input->volumes, pod, i);
        if (pool != NULL) {
            world_nodes_ask_for(&making->nodes, pool);
        }
    }
}

static void sort_out(struct making *making)
{
    const struct world_input *input = making->input;
    making->own = WEIR_ARENA_ARRAY(making->arena, input->n_pods + 1, struct own);
    for (size_t i = 0; i < input->n_pods; i++) {
        const struct world_pod *pod = &input->pods[i];
        const char *wrong = wrong_of(making, pod->pod);
        int32_t node = world_nodes_find(&making->nodes, pod->node);
        if (wrong == NULL && node < 0) {
            wrong = wrong_just_now(making, pod);
        }
        if (!pod->pod->is_ours || pod->pod->is_over || is_idle(pod, node) || wrong != NULL) {
            bool is_told = pod->pod->is_ours && !pod->pod->is_over && node < 0;
            making->out->why[i] = is_told && !is_idle(pod, node) ? wrong : NULL;
            continue;
        }
        world_nodes_ask(&making->nodes, pod->pod);
        ask_for_volumes(making, pod->pod, node);
        making->own[making->n_own++] =
            (struct own){.pod = pod,
                         .i = i,
                         .node = node,
                         .nominated = world_nodes_find(&making->nodes, pod->nominated)};
    }
    qsort(making->own, making->n_own, sizeof making->own[0], by_group);
}

static bool is_planned(const struct making *making, const struct world_pod *pod)
{
    return pod->pod->is_ours && wrong_of(making, pod->pod) == NULL;
}

/* Which devices are divided comes before what is taken: a pod that holds one takes none. */
static void divide(struct making *making)
{
    const struct world_input *input = making->input;
    bool *planned = WEIR_ARENA_ARRAY(making->arena, input->n_pods + 1, bool);
    for (size_t i = 0; i < input->n_pods; i++) {
        planned[i] = is_planned(making, &input->pods[i]);
    }
    shares_make(input, &making->nodes, planned, making->arena, &making->out->shares);
    world_part_begin(making->out, &making->nodes);
}

/* What lies where: others' is taken off the nodes. */
static void put_down(struct making *making)
{
    struct neighbours *neighbours = &making->out->neighbours;
    *neighbours = (struct neighbours){.nodes = making->input->nodes,
                                      .n_nodes = (int32_t)making->input->n_nodes,
                                      .spaces = &making->input->spaces,
                                      .arena = making->arena};
    for (size_t i = 0; i < making->input->n_nodes; i++) {
        neighbours->n_mild += making->input->nodes[i]->n_mild_taints > 0;
    }
    for (size_t i = 0; i < making->input->n_pods; i++) {
        const struct world_pod *pod = &making->input->pods[i];
        int32_t node = world_nodes_find(&making->nodes, pod->node);
        if (node < 0 || pod->pod->is_over) {
            continue;
        }
        bool is_ours = is_planned(making, pod);
        neighbours_add(neighbours, pod->pod, node, is_ours);
        const char *device = world_nodes_device(&making->nodes, pod->pod);
        if (!is_ours) {
            world_nodes_take(&making->nodes, pod->pod, node,
                             !shares_holds(&making->out->shares, pod->pod, node));
        } else if (device != NULL) {
            making->nodes.uses[node].own_devices +=
                place_amount_of(pod->pod->amounts, pod->pod->n_amounts, device);
        }
    }
}

/* ---- tasks ------------------------------------------------------------------------------------ */

static void put_demand(struct making *making, const struct place_pod *pod,
                       struct weir_sched_demand *out)
{
    const char *device = world_nodes_device(&making->nodes, pod);
    struct weir_sched_extra *extras =
        WEIR_ARENA_ARRAY(making->arena, pod->n_amounts + 1, struct weir_sched_extra);
    *out = (struct weir_sched_demand){
        .cpu_milli = pod->cpu_milli, .memory_bytes = pod->memory_bytes, .extras = extras};
    for (size_t i = 0; i < pod->n_amounts; i++) {
        if (pod->amounts[i].name == device) {
            out->n_devices = (int32_t)WEIR_MIN(pod->amounts[i].count, (int64_t)WORLD_DEVICES_MAX);
            out->device_milli = WEIR_SCHED_DEVICE;
        } else {
            extras[out->n_extras++] = (struct weir_sched_extra){.name = pod->amounts[i].name,
                                                                .count = pod->amounts[i].count};
        }
    }
}

/* Volumes that are there and that its claims need, each claim once, whichever pods have it. */
static void put_volumes(struct making *making, const struct place_pod *pod,
                        struct weir_sched_demand *out)
{
    const struct volumes *volumes = making->input->volumes;
    struct weir_sched_extra *extras = WEIR_ARENA_ARRAY(
        making->arena, (size_t)out->n_extras + pod->n_claims + 1, struct weir_sched_extra);
    int32_t n = out->n_extras;
    for (int32_t i = 0; i < n; i++) {
        extras[i] = out->extras[i];
    }
    for (size_t i = 0; i < pod->n_claims; i++) {
        const char *pool = volumes_pool(volumes, pod, i);
        int64_t claim = volumes_find_claim(volumes, pod->claims[i].key);
        int32_t at = out->n_extras;
        if (pool == NULL || making->are_counted[claim]) {
            continue;
        }
        while (at < n && strcmp(extras[at].name, pool) != 0) {
            at++;
        }
        making->are_counted[claim] = true;
        extras[at].name = pool;
        extras[at].count++;
        n = WEIR_MAX(n, at + 1);
    }
    out->extras = extras;
    out->n_extras = n;
}

/* Which nodes may it have, by its own rules for them and for neighbours? NULL: each that the planner finds. */
static const bool *nodes_for(struct making *making, const struct place_pod *pod)
{
    if (!pod->has_node_terms && pod->part.milli == 0 && pod->n_claims == 0 &&
        !neighbours_matter(&making->out->neighbours, pod)) {
        return NULL;
    }
    const struct shares_config *config = shares_config_of(&making->out->shares, pod);
    bool *allowed = WEIR_ARENA_ARRAY(making->arena, making->nodes.n + 1, bool);
    for (size_t i = 0; i < making->nodes.n; i++) {
        const struct place_node *node = making->nodes.nodes[i];
        bool can_share = pod->part.milli == 0 || (shares_can_divide(node) &&
                                                  (config == NULL || config->node == (int32_t)i));
        allowed[i] = can_share && place_fits_node_terms(pod, node);
    }
    neighbours_allow(&making->out->neighbours, pod, false, allowed);
    if (making->input->volumes != NULL) {
        volumes_allow(making->input->volumes, pod, making->nodes.nodes, making->nodes.n, allowed);
    }
    return allowed;
}

/* Labels that its node must have: its selector, its accelerators, and what no label of theirs says. */
static void put_selector(struct making *making, const struct own *own, struct weir_sched_task *task)
{
    const struct place_pod *pod = own->pod->pod;
    const char *device = world_nodes_device(&making->nodes, pod);
    struct weir_sched_label *rows =
        WEIR_ARENA_ARRAY(making->arena, (size_t)pod->node_selector.n + 3, struct weir_sched_label);
    int32_t n = 0;
    for (int32_t i = 0; i < pod->node_selector.n; i++) {
        rows[n++] = pod->node_selector.rows[i];
    }
    if (device != NULL) {
        rows[n++] = (struct weir_sched_label){device, NULL};
    }
    const bool *allowed = own->node < 0 ? nodes_for(making, pod) : NULL;
    if (allowed != NULL) {
        rows[n++] = (struct weir_sched_label){world_nodes_mask(&making->nodes, allowed), NULL};
    }
    task->selector = rows;
    task->n_selector = n;
}

/* One of no effect is one of each. */
static void put_tolerations(struct making *making, const struct place_pod *pod,
                            struct weir_sched_task *task)
{
    static const char *const effects[] = {"NoSchedule", "NoExecute"};
    struct weir_sched_toleration *rows =
        WEIR_ARENA_ARRAY(making->arena, 2 * pod->n_tolerations + 1, struct weir_sched_toleration);
    int32_t n = 0;
    for (size_t i = 0; i < pod->n_tolerations; i++) {
        const struct place_toleration *one = &pod->tolerations[i];
        for (size_t k = 0; one->key != NULL && k < WEIR_ARRAY_LEN(effects); k++) {
            if (one->effect == NULL || strcmp(one->effect, effects[k]) == 0) {
                rows[n++] = (struct weir_sched_toleration){
                    weir_arena_printf(making->arena, "%s:%s", one->key, effects[k]), one->value};
            }
        }
        if (one->key == NULL && one->effect == NULL) {
            rows[n++] = (struct weir_sched_toleration){"", NULL};
        }
    }
    task->tolerations = rows;
    task->n_tolerations = n;
}

/* Those that tolerate one effect of every taint: each taint of it that there is. */
static bool tolerates_an_effect(const struct place_pod *pod)
{
    for (size_t i = 0; i < pod->n_tolerations; i++) {
        if (pod->tolerations[i].key == NULL && pod->tolerations[i].effect != NULL) {
            return true;
        }
    }
    return false;
}

static void put_all_of_effect(struct making *making, const struct place_pod *pod,
                              struct weir_sched_task *task)
{
    size_t cap = 0, n = 0;
    struct weir_sched_toleration *rows = NULL;
    for (int32_t i = 0; i < task->n_tolerations; i++) {
        weir_arena_grow(making->arena, &rows, sizeof rows[0], n, &cap);
        rows[n++] = task->tolerations[i];
    }
    for (size_t i = 0; i < making->nodes.n; i++) {
        const struct place_node *node = making->nodes.nodes[i];
        for (size_t k = 0; k < node->n_taints; k++) {
            if (place_tolerates(pod, &node->taints[k])) {
                weir_arena_grow(making->arena, &rows, sizeof rows[0], n, &cap);
                rows[n++] = (struct weir_sched_toleration){
                    weir_arena_printf(making->arena, "%s:%s", node->taints[k].key,
                                      node->taints[k].effect),
                    node->taints[k].value};
            }
        }
    }
    task->tolerations = rows;
    task->n_tolerations = (int32_t)n;
}

static const char *label_of(struct making *making, const struct place_term *term)
{
    for (size_t i = 0; i < making->n_terms; i++) {
        if (strcmp(making->terms[i].term->text, term->text) == 0) {
            return making->terms[i].label;
        }
    }
    weir_arena_grow(making->arena, &making->terms, sizeof making->terms[0], making->n_terms,
                    &making->terms_cap);
    const char *label = weir_arena_printf(making->arena, TERM_PREFIX "%zu", making->n_terms);
    making->terms[making->n_terms++] = (struct term){term, label};
    return label;
}

static void put_affinity(struct making *making, const struct place_pod *pod,
                         struct weir_sched_task *task)
{
    bool is_apart;
    const struct place_term *term = neighbours_planned(&making->out->neighbours, pod, &is_apart);
    task->spread = (int32_t)pod->rather_apart;
    if (term == NULL) {
        return;
    }
    struct weir_sched_label *labels = WEIR_ARENA_ARRAY(making->arena, 1, struct weir_sched_label);
    labels[0] = (struct weir_sched_label){label_of(making, term), ""};
    task->affinity_labels = labels;
    task->n_affinity_labels = 1;
    *(is_apart ? &task->anti_affinity_key : &task->affinity_key) = term->key;
}

/* What it had rather, of a pod that is to get a place. */
static void put_wishes(struct making *making, const struct place_pod *pod,
                       struct weir_sched_task *task)
{
    struct neighbours *neighbours = &making->out->neighbours;
    struct weir_sched_wish *wishes =
        WEIR_ARENA_ARRAY(making->arena, pod->rather.n + 1, struct weir_sched_wish);
    struct weir_sched_label *labels =
        WEIR_ARENA_ARRAY(making->arena, pod->rather.n + 1, struct weir_sched_label);
    for (size_t i = 0; i < pod->rather.n; i++) {
        const struct place_term *term = &pod->rather.rows[i];
        if (rather_counts(neighbours, term)) {
            labels[i] = (struct weir_sched_label){label_of(making, term), ""};
            wishes[task->n_wishes++] =
                (struct weir_sched_wish){.weight = term->weight,
                                         .domains = neighbours_domains(neighbours, term->key),
                                         .labels = &labels[i],
                                         .n_labels = 1};
        }
    }
    task->wishes = wishes;
    task->scores = rather_scores(neighbours, pod);
}

/* Which rules of others speak of it. */
static void put_labels(struct making *making, const struct place_pod *pod,
                       struct weir_sched_task *task)
{
    struct weir_sched_label *labels =
        WEIR_ARENA_ARRAY(making->arena, making->n_terms + 1, struct weir_sched_label);
    int32_t n = 0;
    for (size_t i = 0; i < making->n_terms; i++) {
        if (place_term_has(making->terms[i].term, pod, &making->input->spaces)) {
            labels[n++] = (struct weir_sched_label){making->terms[i].label, ""};
        }
    }
    task->labels = labels;
    task->n_labels = n;
}

static enum weir_sched_task_state state_of(const struct making *making, const struct own *own)
{
    if (own->node < 0) {
        return own->nominated >= 0 ? WEIR_SCHED_PIPELINED : WEIR_SCHED_PENDING;
    }
    int64_t gone_ms = own->pod->pod->gone_ms;
    bool is_stuck = gone_ms > 0 && making->input->now_ms - gone_ms > WORLD_STUCK_MS;
    return is_stuck               ? WEIR_SCHED_STUCK
           : own->pod->is_leaving ? WEIR_SCHED_RELEASING
                                  : WEIR_SCHED_RUNNING;
}

static void put_task(struct making *making, size_t i)
{
    const struct own *own = &making->own[i];
    const struct place_pod *pod = own->pod->pod;
    struct weir_sched_task *task = &making->tasks[i];
    *task = (struct weir_sched_task){.name = pod->key,
                                     .state = state_of(making, own),
                                     .node = own->node >= 0 ? own->node : own->nominated};
    put_demand(making, pod, &task->demand);
    world_part_put(making->out, &making->nodes, own->pod, own->node, task);
    if (own->node < 0 && pod->n_claims > 0 && making->input->volumes != NULL) {
        put_volumes(making, pod, &task->demand);
    }
    put_selector(making, own, task);
    put_tolerations(making, pod, task);
    if (tolerates_an_effect(pod)) {
        put_all_of_effect(making, pod, task);
    }
    put_affinity(making, pod, task);
    if (own->node < 0) {
        put_wishes(making, pod, task);
    }
    making->out->pod_of_task[i] = own->pod;
}

/* ---- jobs ------------------------------------------------------------------------------------- */

/* What is known of a group of pods. */
struct group {
    int64_t n_placed, n_staying, created_ms, bound_ms, half_since_ms, priority;
    bool is_spared, is_preemptible, never_preempts;
};

static struct group look_at(const struct making *making, size_t first, size_t n)
{
    struct group group = {.created_ms = INT64_MAX, .priority = INT64_MIN, .is_preemptible = true};
    for (size_t i = first; i < first + n; i++) {
        const struct own *own = &making->own[i];
        const struct place_pod *pod = own->pod->pod;
        group.n_placed += own->node >= 0;
        group.n_staying += own->node >= 0 && !own->pod->is_leaving;
        group.created_ms = WEIR_MIN(group.created_ms, pod->created_ms);
        group.bound_ms = WEIR_MAX(group.bound_ms, pod->bound_ms);
        group.half_since_ms = WEIR_MAX(group.half_since_ms, own->pod->half_since_ms);
        group.priority = WEIR_MAX(group.priority, pod->priority);
        group.is_spared = group.is_spared || own->pod->is_spared;
        group.is_preemptible = group.is_preemptible && pod->is_preemptible;
        group.never_preempts = group.never_preempts || pod->never_preempts;
    }
    group.created_ms = WEIR_MAX(group.created_ms, (int64_t)1);
    return group;
}

/* Pods of a gang that have ended well count. */
static int64_t count_succeeded(const struct making *making, const char *gang)
{
    int64_t n = 0;
    for (size_t i = 0; gang != NULL && i < making->input->n_pods; i++) {
        const struct place_pod *pod = making->input->pods[i].pod;
        n += pod->has_succeeded && pod->gang != NULL && strcmp(pod->gang, gang) == 0;
    }
    return n;
}

static int64_t minimum_of(const struct making *making, const struct place_pod *pod, size_t n)
{
    if (pod->gang == NULL) {
        return 1;
    }
    int64_t size = pod->gang_size > 0 ? pod->gang_size : (int64_t)n;
    return WEIR_MAX(size - count_succeeded(making, pod->gang), (int64_t)1);
}

/* A gang lies rather in one place, unless its own rules take it apart. */
static void put_group(const struct making *making, const struct place_pod *pod,
                      struct weir_sched_job *job)
{
    if (making->topology == NULL || job->min_member < 2 || pod->apart.n + pod->spread.n > 0) {
        return;
    }
    struct weir_sched_group *group = WEIR_ARENA_NEW(making->arena, struct weir_sched_group);
    *group = (struct weir_sched_group){.name = "gang",
                                       .parent = WEIR_SCHED_NONE,
                                       .min_member = job->min_member,
                                       .topology = 0,
                                       .required_level = WEIR_SCHED_NONE,
                                       .preferred_level = making->topology->n_levels - 1};
    job->groups = group;
    job->n_groups = 1;
}

static void put_job(struct making *making, size_t first, size_t n)
{
    const struct world_input *input = making->input;
    const struct place_pod *pod = making->own[first].pod->pod;
    struct group group = look_at(making, first, n);
    int64_t minimum = minimum_of(making, pod, n);
    bool is_whole = group.n_staying >= minimum, is_half = group.n_staying > 0 && !is_whole;
    struct weir_sched_job *job = &making->jobs[making->out->snapshot.n_jobs++];
    int64_t bound_ms = group.bound_ms > 0 ? group.bound_ms : input->now_ms;
    *job = (struct weir_sched_job){
        .name = group_of(pod),
        .queue = find_queue(input, pod->queue),
        .priority =
            (int32_t)WEIR_MAX(WEIR_MIN(group.priority, (int64_t)INT32_MAX), (int64_t)INT32_MIN),
        .preemptibility = group.is_preemptible && !group.is_spared ? WEIR_SCHED_PREEMPTIBLE
                                                                   : WEIR_SCHED_NON_PREEMPTIBLE,
        .first_task = (int32_t)first,
        .n_tasks = (int32_t)n,
        .min_member = (int32_t)minimum,
        .created_ms = group.created_ms,
        .queued_ms = group.created_ms,
        .started_ms = is_whole ? bound_ms : 0,
        .preemption_delay_ms = group.never_preempts ? NEVER_MS : 0,
        .stale_since_ms =
            is_half ? (group.half_since_ms > 0 ? group.half_since_ms : input->now_ms) : 0,
        .stale_grace_ms = WORLD_STALE_MS,
        .time_limit_ms = pod->time_limit_ms,
        .utilisation_pct = -1};
    put_group(making, pod, job);
    if (is_half) {
        making->out->half[making->out->n_half++] = job->name;
    }
}

static void put_jobs(struct making *making)
{
    size_t first = 0;
    for (size_t i = 1; i <= making->n_own; i++) {
        const struct place_pod *pod = making->own[first].pod->pod;
        bool goes_on = i < making->n_own && pod->gang != NULL &&
                       making->own[i].pod->pod->gang != NULL &&
                       strcmp(pod->gang, making->own[i].pod->pod->gang) == 0;
        if (!goes_on) {
            put_job(making, first, i - first);
            first = i;
        }
    }
}

/* ---- all of it -------------------------------------------------------------------------------- */

/* By the first of the levels' labels that any node has. */
static void find_topology(struct making *making)
{
    const struct world_input *input = making->input;
    struct weir_sched_topology *topology =
        WEIR_ARENA_NEW(making->arena, struct weir_sched_topology);
    bool has = false;
    *topology = (struct weir_sched_topology){
        .name = "cluster", .levels = input->levels, .n_levels = (int32_t)input->n_levels};
    for (size_t i = 0; i < input->n_nodes && input->n_levels > 0; i++) {
        has = has || select_label(input->nodes[i]->labels, input->levels[0]) != NULL;
    }
    making->topology = has ? topology : NULL;
}

void world_make(const struct world_input *input, struct weir_arena *arena, struct world *out)
{
    struct making making = {.input = input, .arena = arena, .out = out};
    *out = (struct world){.why = WEIR_ARENA_ARRAY(arena, input->n_pods + 1, const char *),
                          .half = WEIR_ARENA_ARRAY(arena, input->n_pods + 1, const char *),
                          .pod_of_task =
                              WEIR_ARENA_ARRAY(arena, input->n_pods + 1, const struct world_pod *)};
    world_nodes_init(&making.nodes, input, arena);
    divide(&making);
    sort_out(&making);
    put_down(&making);
    find_topology(&making);
    making.are_counted =
        WEIR_ARENA_ARRAY(arena, (input->volumes != NULL ? input->volumes->n_claims : 0) + 1, bool);
    making.tasks = WEIR_ARENA_ARRAY(arena, making.n_own + 1, struct weir_sched_task);
    making.jobs = WEIR_ARENA_ARRAY(arena, making.n_own + 1, struct weir_sched_job);
    for (size_t i = 0; i < making.n_own; i++) {
        put_task(&making, i);
    }
    for (size_t i = 0; i < making.n_own; i++) {
        put_labels(&making, making.own[i].pod->pod, &making.tasks[i]);
    }
    if (making.n_own > 0) {
        put_jobs(&making);
    }
    out->snapshot.now_ms = input->now_ms;
    out->snapshot.nodes = world_nodes_rows(&making.nodes);
    out->snapshot.n_nodes = (int32_t)input->n_nodes;
    out->snapshot.queues = input->queues;
    out->snapshot.n_queues = (int32_t)input->n_queues;
    out->snapshot.jobs = making.jobs;
    out->snapshot.tasks = making.tasks;
    out->snapshot.n_tasks = (int32_t)making.n_own;
    out->snapshot.topologies = making.topology;
    out->snapshot.n_topologies = making.topology != NULL;
}
