/*
 * The law of a cluster under Kubernetes that Weir's planner places the pods of, on random clusters: objects of its API go
 * in, and what comes of the plans is counted by what the test made, not by what the planner was told.
 */
#include "cluster/kubernetes/scheduler/law_fixture.h"

#include "base/macros.h"

#include <string.h>

#define NODES_MAX  12
#define PODS_MAX   120
#define NOW_MS     ((int64_t)1800000000000)
#define N_QUEUES   3
#define REQUIRED   "requiredDuringSchedulingIgnoredDuringExecution"
#define PREFERRED  "preferredDuringSchedulingIgnoredDuringExecution"
#define ZONE       "topology.kubernetes.io/zone"
#define N_CYCLES   8
#define N_CLUSTERS WEIR_TEST_TIMES(300, 40)

struct test_node {
    char name[16];
    int cpus, gpus, pods;
    int zone; /* -1: none */
    bool is_cordoned, is_ready, is_tainted, is_mild, has_disk;
    struct place_node *digest;
};

struct test_pod {
    char name[16];
    int cpus, gpus, queue, gang, gang_size; /* gang -1: none */
    bool is_ours, tolerates, wants_disk, wants_no_disk, is_preemptible;
    int space;
    bool is_loud, shuns; /* shuns: loud ones of namespaces of tier prod */
    /* What it rather has, by weight: a disk, zone z-0, loud ones of tier prod in its zone, none of its own namespace's on its
     * node; and whether these are rather even by zone. */
    int for_disk, for_zone, for_loud, against_loud;
    bool is_even, bears; /* bears: the mild taint */
    int node;            /* -1: none */
    bool is_leaving, is_gone;
    struct place_pod *digest;
};

static struct {
    struct test_node nodes[NODES_MAX];
    struct test_pod pods[PODS_MAX];
    struct world_pod seen[PODS_MAX];
    int n_nodes, n_pods;
    struct weir_sched_queue queues[N_QUEUES];
    const struct world *world;
    int cycle;
} all;

static const struct kubernetes_options options;

/* Namespaces, and which of them are of tier prod. */
static struct {
    const char *name;
    bool is_prod;
    struct space *digest;
} spaces[] = {{"lab", false, NULL}, {"serve", true, NULL}, {"train", true, NULL}};

static const char *number(struct weir_arena *arena, int n)
{
    return weir_arena_printf(arena, "%d", n);
}

/* ---- what the API server would say ------------------------------------------------------------ */

static void read_node(struct test_node *node)
{
    WEIR_AUTO(weir_arena_fini) struct weir_arena arena;
    weir_arena_init(&arena, 0);
    json_t *object =
        json_pack("{s:{s:s,s:{s:s}},s:{s:b},s:{s:{s:s,s:s,s:s},s:[{s:s,s:s}]}}", "metadata", "name",
                  node->name, "labels", "kubernetes.io/hostname", node->name, "spec",
                  "unschedulable", (int)node->is_cordoned, "status", "allocatable", "cpu",
                  number(&arena, node->cpus), "memory", "64Gi", "pods", number(&arena, node->pods),
                  "conditions", "type", "Ready", "status", node->is_ready ? "True" : "Unknown");
    if (node->gpus > 0) {
        json_object_set_new(json_object_get(json_object_get(object, "status"), "allocatable"),
                            "nvidia.com/gpu", json_string(number(&arena, node->gpus)));
    }
    if (node->has_disk) {
        json_object_set_new(json_object_get(json_object_get(object, "metadata"), "labels"), "disk",
                            json_string("ssd"));
    }
    if (node->zone >= 0) {
        json_object_set_new(json_object_get(json_object_get(object, "metadata"), "labels"), ZONE,
                            json_string(weir_arena_printf(&arena, "z-%d", node->zone)));
    }
    json_t *taints = json_array();
    if (node->is_tainted) {
        json_array_append_new(taints, json_pack("{s:s,s:s,s:s}", "key", "team", "value", "x",
                                                "effect", "NoSchedule"));
    }
    if (node->is_mild) {
        json_array_append_new(taints,
                              json_pack("{s:s,s:s}", "key", "noise", "effect", "PreferNoSchedule"));
    }
    json_object_set_new(json_object_get(object, "spec"), "taints", taints);
    node->digest = place_node_read(&options, object);
    json_decref(object);
}

/* Terms of weight 0 are none: the API server takes 1 to 100. */
static void prefer(json_t *affinity, const char *kind, int weight, const char *what, json_t *term)
{
    json_t *of_kind = json_object_get(affinity, kind);
    if (of_kind == NULL) {
        of_kind = json_object();
        json_object_set_new(affinity, kind, of_kind);
    }
    json_t *list = json_object_get(of_kind, PREFERRED);
    if (list == NULL) {
        list = json_array();
        json_object_set_new(of_kind, PREFERRED, list);
    }
    json_t *row = json_pack("{s:i,s:o}", "weight", weight, what, term);
    if (weight > 0) {
        json_array_append(list, row);
    }
    json_decref(row);
}

static void add_preferred(const struct test_pod *pod, json_t *affinity)
{
    prefer(affinity, "nodeAffinity", pod->for_disk, "preference",
           json_pack("{s:[{s:s,s:s}]}", "matchExpressions", "key", "disk", "operator", "Exists"));
    prefer(affinity, "nodeAffinity", pod->for_zone, "preference",
           json_pack("{s:[{s:s,s:s,s:[s]}]}", "matchExpressions", "key", ZONE, "operator", "In",
                     "values", "z-0"));
    prefer(affinity, "podAffinity", pod->for_loud, "podAffinityTerm",
           json_pack("{s:s,s:{s:{s:s}},s:{s:{s:s}}}", "topologyKey", ZONE, "labelSelector",
                     "matchLabels", "app", "loud", "namespaceSelector", "matchLabels", "tier",
                     "prod"));
    prefer(affinity, "podAntiAffinity", pod->against_loud, "podAffinityTerm",
           json_pack("{s:s,s:{s:{s:s}}}", "topologyKey", "kubernetes.io/hostname", "labelSelector",
                     "matchLabels", "app", "loud"));
}

static json_t *affinity_of(const struct test_pod *pod)
{
    json_t *affinity = json_object();
    if (pod->wants_disk || pod->wants_no_disk) {
        json_object_set_new(affinity, "nodeAffinity",
                            json_pack("{s:{s:[{s:[{s:s,s:s}]}]}}", REQUIRED, "nodeSelectorTerms",
                                      "matchExpressions", "key", "disk", "operator",
                                      pod->wants_disk ? "Exists" : "DoesNotExist"));
    }
    if (pod->shuns) {
        json_object_set_new(affinity, "podAntiAffinity",
                            json_pack("{s:[{s:s,s:{s:{s:s}},s:{s:{s:s}}}]}", REQUIRED,
                                      "topologyKey", "kubernetes.io/hostname", "labelSelector",
                                      "matchLabels", "app", "loud", "namespaceSelector",
                                      "matchLabels", "tier", "prod"));
    }
    add_preferred(pod, affinity);
    return affinity;
}

static void read_pod(struct test_pod *pod)
{
    WEIR_AUTO(weir_arena_fini) struct weir_arena arena;
    weir_arena_init(&arena, 0);
    json_t *requests = json_pack("{s:s}", "cpu", number(&arena, pod->cpus));
    if (pod->gpus > 0) {
        json_object_set_new(requests, "nvidia.com/gpu", json_string(number(&arena, pod->gpus)));
    }
    json_t *labels = json_pack("{s:s}", "weir.dev/queue", all.queues[pod->queue].name);
    json_t *object =
        json_pack("{s:{s:s,s:s,s:s,s:o,s:s},s:{s:s,s:[{s:s,s:{s:o}}]},s:{s:s}}", "metadata", "name",
                  pod->name, "namespace", spaces[pod->space].name, "uid", pod->name, "labels",
                  labels, "creationTimestamp", "2026-11-30T12:00:00Z", "spec", "schedulerName",
                  pod->is_ours ? "weir" : "other", "containers", "name", "c", "resources",
                  "requests", requests, "status", "phase", "Running");
    json_t *spec = json_object_get(object, "spec");
    if (pod->is_loud) {
        json_object_set_new(labels, "app", json_string("loud"));
    }
    if (!pod->is_preemptible) {
        json_object_set_new(labels, "weir.dev/preemptible", json_string("false"));
    }
    if (pod->gang >= 0) {
        json_object_set_new(labels, "weir.dev/gang",
                            json_string(weir_arena_printf(&arena, "g%d", pod->gang)));
        json_object_set_new(labels, "weir.dev/gang-size",
                            json_string(number(&arena, pod->gang_size)));
    }
    json_t *tolerations = json_array();
    if (pod->tolerates) {
        json_array_append_new(tolerations,
                              json_pack("{s:s,s:s}", "key", "team", "operator", "Exists"));
    }
    if (pod->bears) {
        json_array_append_new(tolerations, json_pack("{s:s,s:s,s:s}", "key", "noise", "operator",
                                                     "Exists", "effect", "PreferNoSchedule"));
    }
    json_object_set_new(spec, "tolerations", tolerations);
    if (pod->is_even) {
        json_object_set_new(spec, "topologySpreadConstraints",
                            json_pack("[{s:i,s:s,s:s,s:{s:{s:s}}}]", "maxSkew", 1, "topologyKey",
                                      ZONE, "whenUnsatisfiable", "ScheduleAnyway", "labelSelector",
                                      "matchLabels", "app", "loud"));
    }
    json_object_set_new(spec, "affinity", affinity_of(pod));
    pod->digest = place_pod_read(object);
    json_decref(object);
}

/* ---- a cluster made up ------------------------------------------------------------------------ */

static void add_pod(struct test_pod pod)
{
    ck_assert_int_lt(all.n_pods, PODS_MAX);
    struct test_pod *to = &all.pods[all.n_pods];
    *to = pod;
    (void)snprintf(to->name, sizeof to->name, "p-%d", all.n_pods++);
    read_pod(to);
}

static void add_node(struct test_node node)
{
    struct test_node *to = &all.nodes[all.n_nodes];
    *to = node;
    (void)snprintf(to->name, sizeof to->name, "n-%02d", all.n_nodes++);
    read_node(to);
}

static void add_queues(const int quota_gpus[N_QUEUES])
{
    static const char *const names[N_QUEUES] = {"blue", "green", "red"};
    for (int q = 0; q < N_QUEUES; q++) {
        all.queues[q] = (struct weir_sched_queue){.name = names[q],
                                                  .parent = WEIR_SCHED_NONE,
                                                  .preempt_min_run_ms = -1,
                                                  .reclaim_min_run_ms = -1};
        for (int r = 0; r < WEIR_SCHED_N_RESOURCES; r++) {
            all.queues[q].shares[r] =
                (struct weir_sched_share){WEIR_SCHED_UNLIMITED, 1, WEIR_SCHED_UNLIMITED};
        }
        all.queues[q].shares[WEIR_SCHED_ACCELERATOR].quota = (int64_t)quota_gpus[q] * 1000;
    }
}

static int used(int node, int what)
{
    int sum = 0;
    for (int i = 0; i < all.n_pods; i++) {
        const struct test_pod *pod = &all.pods[i];
        if (!pod->is_gone && pod->node == node) {
            sum += what == 0 ? pod->cpus : what == 1 ? pod->gpus : 1;
        }
    }
    return sum;
}

static int some_weight(void)
{
    return chance(30) ? 1 + below(100) : 0;
}

static void make_others(void)
{
    for (int i = 0; i < all.n_nodes; i++) {
        for (int k = below(3); k > 0; k--) {
            struct test_pod pod = {.cpus = 1 + below(3),
                                   .gpus = below(2),
                                   .gang = -1,
                                   .node = i,
                                   .space = below(3),
                                   .is_loud = chance(20),
                                   .shuns = chance(10),
                                   .for_loud = some_weight(),
                                   .against_loud = some_weight(),
                                   .is_preemptible = true};
            const struct test_node *node = &all.nodes[i];
            if (used(i, 0) + pod.cpus <= node->cpus && used(i, 1) + pod.gpus <= node->gpus &&
                used(i, 2) < node->pods) {
                add_pod(pod);
            }
        }
    }
}

static void choose(struct test_pod *pod)
{
    pod->for_disk = some_weight();
    pod->for_zone = some_weight();
    pod->for_loud = some_weight();
    pod->against_loud = some_weight();
    pod->is_even = chance(20);
    pod->bears = chance(30);
}

static void make_some(void)
{
    for (int k = 2 + below(8); k > 0 && all.n_pods < PODS_MAX - 8; k--) {
        bool is_gang = chance(30);
        int n = is_gang ? 2 + below(5) : 1;
        struct test_pod pod = {.cpus = 1 + below(4),
                               .gpus = below(3),
                               .queue = below(N_QUEUES),
                               .gang = is_gang ? all.n_pods : -1,
                               .gang_size = n,
                               .is_ours = true,
                               .tolerates = chance(30),
                               .wants_disk = chance(15),
                               .is_preemptible = chance(85),
                               .space = below(3),
                               .is_loud = chance(20),
                               .shuns = chance(20),
                               .node = -1};
        pod.wants_no_disk = !pod.wants_disk && chance(15);
        choose(&pod);
        for (int i = 0; i < n; i++) {
            add_pod(pod);
        }
    }
}

static void make_cluster(void)
{
    const int quotas[N_QUEUES] = {below(12), below(12), below(12)};
    all.n_nodes = all.n_pods = 0;
    add_queues(quotas);
    for (int i = 2 + below(NODES_MAX - 2); i > 0; i--) {
        add_node((struct test_node){.cpus = 4 + below(13),
                                    .gpus = below(5),
                                    .pods = 2 + below(20),
                                    .is_cordoned = chance(10),
                                    .is_ready = chance(90),
                                    .is_tainted = chance(20),
                                    .is_mild = chance(25),
                                    .zone = below(4) - 1,
                                    .has_disk = chance(40)});
    }
    make_others();
}

static void set_up(void)
{
    for (size_t i = 0; i < WEIR_ARRAY_LEN(spaces); i++) {
        json_t *object = json_pack("{s:{s:s,s:{s:s}}}", "metadata", "name", spaces[i].name,
                                   "labels", "tier", spaces[i].is_prod ? "prod" : "dev");
        spaces[i].digest = space_read(object);
        json_decref(object);
    }
}

static void tear_down(void)
{
    for (size_t i = 0; i < WEIR_ARRAY_LEN(spaces); i++) {
        place_release(spaces[i].digest);
    }
}

static void drop_cluster(void)
{
    for (int i = 0; i < all.n_nodes; i++) {
        place_release(all.nodes[i].digest);
    }
    for (int i = 0; i < all.n_pods; i++) {
        place_release(all.pods[i].digest);
    }
}

/* ---- a cycle ---------------------------------------------------------------------------------- */

static struct test_pod *pod_of(const struct weir_sched_action *action)
{
    const struct world_pod *seen = all.world->pod_of_task[action->task];
    return &all.pods[atoll(seen->pod->name + 2)];
}

static bool is_shunned(const struct test_pod *pod, const struct test_pod *by)
{
    return by->shuns && pod->is_loud && spaces[pod->space].is_prod;
}

static void check_neighbours(const struct test_pod *pod, int at)
{
    for (int i = 0; i < all.n_pods; i++) {
        const struct test_pod *other = &all.pods[i];
        ck_assert_msg(other == pod || other->node != at || other->is_gone ||
                          (!is_shunned(other, pod) && !is_shunned(pod, other)),
                      "%s comes to %s, where %s is", pod->name, all.nodes[at].name, other->name);
    }
}

static void check_binding(const struct test_pod *pod, int at)
{
    const struct test_node *node = &all.nodes[at];
    ck_assert_msg(pod->is_ours && pod->node < 0 && !pod->is_leaving, "%s is bound", pod->name);
    ck_assert_msg(!node->is_cordoned && node->is_ready, "%s comes to closed %s", pod->name,
                  node->name);
    ck_assert_msg(!node->is_tainted || pod->tolerates, "%s comes to tainted %s", pod->name,
                  node->name);
    ck_assert_msg(!pod->wants_disk || node->has_disk, "%s has no disk on %s", pod->name,
                  node->name);
    ck_assert_msg(!pod->wants_no_disk || !node->has_disk, "%s has a disk on %s", pod->name,
                  node->name);
}

static weir_status evict(void *context, const struct weir_sched_part *part, struct weir_error *err)
{
    (void)context;
    (void)err;
    for (int32_t i = 0; i < part->n_actions; i++) {
        struct test_pod *pod = pod_of(part->actions[i]);
        ck_assert_msg(pod->is_ours && pod->is_preemptible && pod->node >= 0, "%s is evicted",
                      pod->name);
        pod->is_leaving = true;
    }
    return WEIR_OK;
}

static weir_status place(void *context, const struct weir_sched_part *part, struct weir_error *err)
{
    (void)context;
    (void)err;
    for (int32_t i = 0; weir_sched_part_is_bound(part) && i < part->n_actions; i++) {
        struct test_pod *pod = pod_of(part->actions[i]);
        check_binding(pod, part->actions[i]->node);
        check_neighbours(pod, part->actions[i]->node);
        pod->node = part->actions[i]->node;
    }
    return WEIR_OK;
}

static void see(struct weir_arena *arena, struct world_input *out)
{
    static const struct place_node *nodes[NODES_MAX];
    static const struct space *rows[WEIR_ARRAY_LEN(spaces)];
    size_t n = 0;
    for (size_t i = 0; i < WEIR_ARRAY_LEN(spaces); i++) {
        rows[i] = spaces[i].digest;
    }
    for (int i = 0; i < all.n_nodes; i++) {
        nodes[i] = all.nodes[i].digest;
    }
    for (int i = 0; i < all.n_pods; i++) {
        const struct test_pod *pod = &all.pods[i];
        if (!pod->is_gone) {
            all.seen[n++] =
                (struct world_pod){.pod = pod->digest,
                                   .node = pod->node >= 0 ? all.nodes[pod->node].name : NULL,
                                   .is_leaving = pod->is_leaving};
        }
    }
    (void)arena;
    *out = (struct world_input){.now_ms = NOW_MS + (int64_t)all.cycle * 10000,
                                .nodes = nodes,
                                .n_nodes = (size_t)all.n_nodes,
                                .pods = all.seen,
                                .n_pods = n,
                                .spaces = {rows, WEIR_ARRAY_LEN(spaces), true},
                                .queues = all.queues,
                                .n_queues = N_QUEUES,
                                .space = "weir"};
}

static void run_cycle(void)
{
    WEIR_AUTO(weir_arena_fini) struct weir_arena arena;
    const struct weir_sched_executor executor = {.evict = evict, .place = place};
    struct world_input input;
    struct world world;
    weir_arena_init(&arena, 0);
    see(&arena, &input);
    world_make(&input, &arena, &world);
    all.world = &world;
    law_plan(&world, &executor);
    all.cycle++;
}

/* ---- the law ---------------------------------------------------------------------------------- */

static void check_nodes(void)
{
    for (int i = 0; i < all.n_nodes; i++) {
        const struct test_node *node = &all.nodes[i];
        ck_assert_msg(used(i, 0) <= node->cpus && used(i, 1) <= node->gpus &&
                          used(i, 2) <= node->pods,
                      "%s holds %d of %d CPUs, %d of %d devices, %d of %d pods", node->name,
                      used(i, 0), node->cpus, used(i, 1), node->gpus, used(i, 2), node->pods);
    }
}

static void check_gangs(void)
{
    for (int i = 0; i < all.n_pods; i++) {
        int n = 0;
        bool is_leaving = false;
        for (int k = 0; all.pods[i].gang >= 0 && k < all.n_pods; k++) {
            const struct test_pod *pod = &all.pods[k];
            bool is_of = pod->gang == all.pods[i].gang;
            n += is_of && pod->node >= 0 && !pod->is_gone;
            is_leaving = is_leaving || (is_of && (pod->is_leaving || pod->is_gone));
        }
        ck_assert_msg(n == 0 || n == all.pods[i].gang_size || is_leaving, "%d of gang %d of %d run",
                      n, all.pods[i].gang, all.pods[i].gang_size);
    }
}

/* Those that were told to end do, or only with the next cycle. */
static void let_go(void)
{
    for (int i = 0; i < all.n_pods; i++) {
        struct test_pod *pod = &all.pods[i];
        pod->is_gone = pod->is_gone || (pod->is_leaving && chance(70));
    }
}

START_TEST(whatever_comes_no_node_and_no_gang_is_wronged)
{
    (void)test_seed(&law_rng);
    for (int c = 0; c < N_CLUSTERS; c++) {
        make_cluster();
        for (int k = 0; k < N_CYCLES; k++) {
            make_some();
            run_cycle();
            check_nodes();
            check_gangs();
            let_go();
        }
        drop_cluster();
    }
}

END_TEST

/* ---- what is rather had ----------------------------------------------------------------------- */

static bool is_near(int node, int other)
{
    return all.nodes[node].zone >= 0 && all.nodes[node].zone == all.nodes[other].zone;
}

/* What two pods say of each other if one of them comes to that node. */
static int64_t said(const struct test_pod *by, const struct test_pod *of, int node, int other)
{
    bool is_wanted = of->is_loud && spaces[of->space].is_prod && is_near(node, other),
         is_unwanted = of->is_loud && of->space == by->space && node == other;
    return (is_wanted ? by->for_loud : 0) - (is_unwanted ? by->against_loud : 0);
}

static int64_t sum_at(const struct test_pod *pod, int at)
{
    const struct test_node *node = &all.nodes[at];
    int64_t sum = node->has_disk ? pod->for_disk : 0;
    sum += node->zone == 0 ? pod->for_zone : 0;
    sum -= node->is_mild && !pod->bears ? 150 : 0;
    sum -= pod->is_even && node->zone < 0 ? 1000 : 0;
    for (int i = 0; i < all.n_pods; i++) {
        const struct test_pod *other = &all.pods[i];
        if (other != pod && other->node >= 0) {
            bool is_crowd =
                other->is_loud && other->space == pod->space && is_near(at, other->node);
            sum += said(pod, other, at, other->node) + said(other, pod, at, other->node);
            sum -= pod->is_even && is_crowd ? 100 : 0;
        }
    }
    return sum;
}

static bool may_have(const struct test_pod *pod, int at)
{
    const struct test_node *node = &all.nodes[at];
    return !node->is_cordoned && node->is_ready && !node->is_tainted &&
           used(at, 0) + pod->cpus <= node->cpus && used(at, 2) < node->pods;
}

START_TEST(a_pod_alone_lies_where_it_rather_does)
{
    (void)test_seed(&law_rng);
    for (int c = 0; c < N_CLUSTERS; c++) {
        make_cluster();
        for (int i = 0; i < all.n_pods; i++) { /* Of those that lie there some are ours. */
            place_release(all.pods[i].digest);
            all.pods[i].is_ours = chance(40);
            all.pods[i].shuns = false;
            read_pod(&all.pods[i]);
        }
        struct test_pod pod = {.cpus = 1 + below(3),
                               .gang = -1,
                               .is_ours = true,
                               .space = below(3),
                               .is_loud = chance(40),
                               .is_preemptible = true,
                               .node = -1};
        choose(&pod);
        add_pod(pod);
        const struct test_pod *added = &all.pods[all.n_pods - 1];
        bool has_place = false;
        for (int i = 0; i < all.n_nodes; i++) {
            has_place = has_place || may_have(added, i);
        }
        run_cycle();
        ck_assert_int_eq(added->node >= 0, has_place);
        int at = added->node;
        all.pods[all.n_pods - 1].node = -1;
        for (int i = 0; i < all.n_nodes && has_place; i++) {
            ck_assert_msg(!may_have(added, i) || sum_at(added, i) <= sum_at(added, at),
                          "%s is on %s (%lld), and rather were on %s (%lld)", added->name,
                          all.nodes[at].name, (long long)sum_at(added, at), all.nodes[i].name,
                          (long long)sum_at(added, i));
        }
        drop_cluster();
    }
}

END_TEST

/* A half of a gang for which there is no more room. @return How many are told to end. */
static int32_t end_half_gang(int64_t half_ms)
{
    WEIR_AUTO(weir_arena_fini) struct weir_arena arena;
    struct weir_sched_profile profile;
    struct weir_sched_plan *plan;
    struct world_input input;
    struct world world;
    struct weir_error err;
    int32_t n = 0;
    weir_arena_init(&arena, 0);
    see(&arena, &input);
    for (int i = 0; i < all.n_pods; i++) {
        all.seen[i].half_since_ms = input.now_ms - half_ms;
    }
    world_make(&input, &arena, &world);
    ck_assert_uint_eq(world.n_half, 1);
    ck_assert_int_eq(weir_sched_profile_named("default", &profile, &err), WEIR_OK);
    profile.actions = (char *)(uintptr_t) "allocate,stalegangeviction";
    ck_assert_int_eq(weir_sched_plan(&world.snapshot, &profile, &plan, &err), WEIR_OK);
    for (int32_t i = 0; i < plan->n_actions; i++) {
        n += plan->actions[i].kind == WEIR_SCHED_EVICT;
    }
    weir_sched_plan_destroy(plan);
    return n;
}

START_TEST(half_a_gang_is_ended_after_a_minute)
{
    all.n_nodes = all.n_pods = 0;
    add_queues((const int[N_QUEUES]){2, 0, 0});
    add_node((struct test_node){.cpus = 16, .gpus = 2, .pods = 20, .is_ready = true});
    for (int i = 0; i < 4; i++) {
        add_pod((struct test_pod){.cpus = 1,
                                  .gpus = 1,
                                  .gang = 0,
                                  .gang_size = 4,
                                  .is_ours = true,
                                  .is_preemptible = true,
                                  .node = i < 2 ? 0 : -1});
    }
    ck_assert_int_eq(end_half_gang(WORLD_STALE_MS / 2), 0);
    ck_assert_int_eq(end_half_gang(WORLD_STALE_MS + 1000), 2);
    drop_cluster();
}

END_TEST

static int held(int queue)
{
    int sum = 0;
    for (int i = 0; i < all.n_pods; i++) {
        const struct test_pod *pod = &all.pods[i];
        sum +=
            pod->is_ours && pod->queue == queue && pod->node >= 0 && !pod->is_gone ? pod->gpus : 0;
    }
    return sum;
}

static void ask(int queue, int n)
{
    for (int i = 0; i < n; i++) {
        add_pod((struct test_pod){.cpus = 1,
                                  .gpus = 1,
                                  .queue = queue,
                                  .gang = -1,
                                  .is_ours = true,
                                  .is_preemptible = true,
                                  .node = -1});
    }
}

START_TEST(what_is_guaranteed_comes_back)
{
    (void)test_seed(&law_rng);
    for (int c = 0; c < N_CLUSTERS; c++) {
        int n_nodes = 1 + below(6), total = 0, taken = 0;
        all.n_nodes = all.n_pods = 0;
        add_queues((const int[N_QUEUES]){0});
        for (int i = 0; i < n_nodes; i++) {
            add_node((struct test_node){.cpus = 16, .gpus = 4, .pods = 20, .is_ready = true});
            total += 4;
        }
        for (int i = 0; i < n_nodes; i++) {
            int gpus = below(3);
            taken += gpus;
            add_pod((struct test_pod){.cpus = 1, .gpus = gpus, .gang = -1, .node = i});
        }
        int green = below(total - taken + 1), red = below(total - taken - green + 1);
        const int quotas[N_QUEUES] = {total - taken - green - red, green, red};
        add_queues(quotas);
        ask(0, total);
        run_cycle();
        ck_assert_int_eq(held(0), total - taken);
        ask(1, total);
        ask(2, total);
        for (int k = 0; k < 2 * N_CYCLES; k++) {
            run_cycle();
            check_nodes();
            let_go();
        }
        for (int q = 0; q < N_QUEUES; q++) {
            ck_assert_msg(held(q) >= quotas[q], "queue %d has %d of %d", q, held(q), quotas[q]);
        }
        drop_cluster();
    }
}

END_TEST

int main(void)
{
    Suite *suite = suite_create("world");
    TCase *tcase = tcase_create("laws");
    tcase_set_timeout(tcase, 60);
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_test(tcase, whatever_comes_no_node_and_no_gang_is_wronged);
    tcase_add_test(tcase, what_is_guaranteed_comes_back);
    tcase_add_test(tcase, a_pod_alone_lies_where_it_rather_does);
    tcase_add_test(tcase, half_a_gang_is_ended_after_a_minute);
    suite_add_tcase(suite, tcase);
    return weir_test_run(suite);
}
