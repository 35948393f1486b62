/*
 * The law of devices that pods have parts of, on random clusters: a device is never given to a whole pod and divided, nor
 * divided beyond all of it, whatever ends, is taken away or forgotten. The test's own kubelet gives devices, any of those that
 * are free, and its own numbers count them.
 */
#include "cluster/kubernetes/scheduler/law_fixture.h"
#include "cluster/kubernetes/scheduler/part.h"
#include "cluster/kubernetes/scheduler/reservation.h"

#include "base/macros.h"

#include <string.h>

#define NODES_MAX  5
#define GPUS_MAX   4
#define PODS_MAX   400
#define NOW_MS     ((int64_t)1800000000000)
#define N_QUEUES   2
#define N_CYCLES   25
#define N_CLUSTERS WEIR_TEST_TIMES(200, 30)
#define SPACE      "weir"

enum kind { OTHER, WHOLE, PART, HOLDER };

struct test_pod {
    enum kind kind;
    char name[64], config[16], group[40];
    int gpus, milli, queue, gang, gang_size;
    int node;   /* -1: none */
    int device; /* of a part: as it was bound; of a holder: what it has; -1: none */
    bool is_held, is_leaving, is_gone, is_failed;
    struct place_pod *digest;
};

static struct {
    int n_nodes, n_gpus[NODES_MAX];
    int owner[NODES_MAX][GPUS_MAX]; /* the pod that the kubelet gave it to; -1: none */
    struct place_node *nodes[NODES_MAX];
    struct test_pod pods[PODS_MAX];
    struct world_pod seen[PODS_MAX];
    int n_pods;
    struct weir_sched_queue queues[N_QUEUES];
    struct world *world;
    int64_t cycle;
} all;

static const struct kubernetes_options options;

static bool is_there(const struct test_pod *pod)
{
    return !pod->is_gone;
}

/* ---- what the API server would say ------------------------------------------------------------ */

static void node_name(int node, char out[16])
{
    (void)snprintf(out, 16, "n-%d", node);
}

static json_t *notes_of(const struct test_pod *pod)
{
    char text[32];
    (void)snprintf(text, sizeof text, "0.%03d", pod->milli);
    json_t *notes = json_pack("{s:s,s:s}", PART_FRACTION, text, PART_CONFIG, pod->config);
    if (pod->node >= 0 && !pod->is_held) {
        (void)snprintf(text, sizeof text, "GPU-%d-%d", pod->node, pod->device);
        json_object_set_new(notes, PART_GROUP, json_string(pod->group));
        json_object_set_new(notes, PART_DEVICE, json_string(text));
    }
    return notes;
}

static json_t *labels_of(const struct test_pod *pod)
{
    char gang[16], size[16];
    if (pod->kind == HOLDER) {
        return json_pack("{s:s,s:s}", "app.kubernetes.io/managed-by", "weir", PART_GROUP,
                         pod->group);
    }
    json_t *labels = json_pack("{s:s}", PLACE_QUEUE, all.queues[pod->queue].name);
    if (pod->gang >= 0) {
        (void)snprintf(gang, sizeof gang, "g%d", pod->gang);
        (void)snprintf(size, sizeof size, "%d", pod->gang_size);
        json_object_set_new(labels, PLACE_GANG, json_string(gang));
        json_object_set_new(labels, PLACE_GANG_SIZE, json_string(size));
    }
    return labels;
}

static void read_pod(struct test_pod *pod)
{
    char gpus[16], node[16];
    (void)snprintf(gpus, sizeof gpus, "%d", pod->gpus);
    node_name(pod->node, node);
    place_release(pod->digest);
    bool is_ours = pod->kind == WHOLE || pod->kind == PART;
    bool is_bound = pod->node >= 0 && !pod->is_held;
    const char *gone = pod->is_leaving ? "2026-11-30T12:00:01Z" : NULL;
    json_t *object = json_pack(
        "{s:{s:s,s:s,s:s,s:o,s:o*,s:s,s:s*},s:{s:s,s:s*,s:[{s:s,s:[{s:{s:s}}],s:{s:{s:s,s:s}}}]},s:"
        "{s:"
        "s}}",
        "metadata", "name", pod->name, "namespace", pod->kind == HOLDER ? SPACE : "train", "uid",
        pod->name, "labels", labels_of(pod), "annotations",
        pod->kind == PART ? notes_of(pod) : NULL, "creationTimestamp", "2026-11-30T12:00:00Z",
        "deletionTimestamp", pod->kind == HOLDER ? gone : NULL, "spec", "schedulerName",
        is_ours ? "weir" : "other", "nodeName", is_bound ? node : NULL, "containers", "name", "c",
        "envFrom", "configMapRef", "name", pod->config, "resources", "requests", "cpu", "10m",
        "nvidia.com/gpu", gpus, "status", "phase", pod->is_failed ? "Failed" : "Running");
    ck_assert_ptr_nonnull(object);
    pod->digest = place_pod_read(object);
    json_decref(object);
}

static struct test_pod *add_pod(struct test_pod pod)
{
    ck_assert_int_lt(all.n_pods, PODS_MAX);
    struct test_pod *to = &all.pods[all.n_pods];
    *to = pod;
    to->device = -1;
    if (pod.kind == HOLDER) {
        (void)snprintf(to->name, sizeof to->name, "weir-gpu-%s", pod.group);
    } else {
        (void)snprintf(to->name, sizeof to->name, "p-%d", all.n_pods);
    }
    if (pod.kind == PART && pod.config[0] == '\0') {
        (void)snprintf(to->config, sizeof to->config, "c-%d", all.n_pods);
    }
    all.n_pods++;
    read_pod(to);
    return to;
}

static void read_node(int i)
{
    char name[16], gpus[16];
    node_name(i, name);
    (void)snprintf(gpus, sizeof gpus, "%d", all.n_gpus[i]);
    json_t *object =
        json_pack("{s:{s:s,s:{}},s:{s:{s:s,s:s,s:s,s:s},s:[{s:s,s:s}]}}", "metadata", "name", name,
                  "labels", "status", "allocatable", "cpu", "64", "memory", "64Gi", "pods", "100",
                  "nvidia.com/gpu", gpus, "conditions", "type", "Ready", "status", "True");
    all.nodes[i] = place_node_read(&options, object);
    json_decref(object);
}

/* ---- the kubelet ------------------------------------------------------------------------------ */

static int pick_free(int node)
{
    int n = 0, found = -1;
    for (int d = 0; d < all.n_gpus[node]; d++) {
        if (all.owner[node][d] < 0 && below(++n) == 0) {
            found = d;
        }
    }
    return found;
}

/* @return The last of its devices; -1: there are not so many. */
static int give_devices(int pod)
{
    int device = -1;
    for (int i = 0; i < all.pods[pod].gpus; i++) {
        device = pick_free(all.pods[pod].node);
        if (device < 0) {
            return -1;
        }
        all.owner[all.pods[pod].node][device] = pod;
    }
    return device;
}

static void end_pod(int pod)
{
    all.pods[pod].is_gone = true;
    for (int d = 0; all.pods[pod].node >= 0 && d < GPUS_MAX; d++) {
        int *owner = &all.owner[all.pods[pod].node][d];
        *owner = *owner == pod ? -1 : *owner;
    }
}

/* ---- a cycle ---------------------------------------------------------------------------------- */

static struct test_pod *holder_of(const char *group)
{
    for (int i = 0; i < all.n_pods; i++) {
        struct test_pod *pod = &all.pods[i];
        if (pod->kind == HOLDER && is_there(pod) && strcmp(pod->group, group) == 0) {
            return pod;
        }
    }
    return NULL;
}

/* What holds its device has another one, or is not there. */
static bool is_unsure(const struct test_pod *pod)
{
    const struct test_pod *holder = holder_of(pod->group);
    return pod->kind == PART && pod->node >= 0 && !pod->is_held &&
           (holder == NULL || holder->is_leaving || holder->device != pod->device);
}

static bool is_astray(const struct test_pod *pod)
{
    const struct test_pod *holder = holder_of(pod->group);
    return is_unsure(pod) && holder != NULL && !holder->is_leaving && holder->device >= 0;
}

static struct test_pod *pod_of(const struct weir_sched_action *action)
{
    const struct world_pod *seen = all.world->pod_of_task[action->task];
    return &all.pods[atoll(seen->pod->name + 2)];
}

static weir_status evict(void *context, const struct weir_sched_part *part, struct weir_error *err)
{
    (void)context;
    (void)err;
    for (int32_t i = 0; i < part->n_actions; i++) {
        struct test_pod *pod = pod_of(part->actions[i]);
        if (pod->is_held) {
            pod->is_held = false;
            pod->node = -1;
        } else {
            pod->is_leaving = true;
        }
    }
    return WEIR_OK;
}

static weir_status place(void *context, const struct weir_sched_part *part, struct weir_error *err)
{
    const char *groups[PODS_MAX] = {NULL};
    (void)context;
    (void)err;
    enum shares_answer answer =
        weir_sched_part_is_bound(part) ? shares_place(all.world, part, groups) : SHARES_WAIT;
    bool is_placed = answer == SHARES_BIND || answer == SHARES_HOLD;
    for (int32_t i = 0; is_placed && i < part->n_actions; i++) {
        struct test_pod *pod = pod_of(part->actions[i]);
        ck_assert_int_lt(pod->node, 0);
        pod->node = part->actions[i]->node;
        pod->is_held = answer == SHARES_HOLD;
        if (groups[i] != NULL) {
            (void)snprintf(pod->group, sizeof pod->group, "%s", groups[i]);
        } else if (!pod->is_held) {
            ck_assert_msg(give_devices((int)(pod - all.pods)) >= 0, "%s finds no device on n-%d",
                          pod->name, pod->node);
            read_pod(pod);
        }
    }
    return WEIR_OK;
}

static void see(struct world_input *out)
{
    static char names[NODES_MAX][16];
    size_t n = 0;
    for (int i = 0; i < all.n_pods; i++) {
        const struct test_pod *pod = &all.pods[i];
        if (is_there(pod)) {
            bool has_group = pod->kind == PART && pod->node >= 0;
            struct world_pod *seen = &all.seen[n++];
            *seen = (struct world_pod){.pod = pod->digest,
                                       .group = has_group ? pod->group : NULL,
                                       .is_unsure = is_unsure(pod),
                                       .is_leaving = pod->is_leaving};
            if (pod->node >= 0) {
                node_name(pod->node, names[pod->node]);
                seen->node = names[pod->node];
            }
        }
    }
    *out = (struct world_input){.now_ms = NOW_MS + all.cycle * 10000,
                                .nodes = (const struct place_node *const *)all.nodes,
                                .n_nodes = (size_t)all.n_nodes,
                                .pods = all.seen,
                                .n_pods = n,
                                .queues = all.queues,
                                .n_queues = N_QUEUES,
                                .space = SPACE};
}

/* What holds a device is made, and goes, as hold.c has it; each step may take longer. */
static void tend(struct shares *shares)
{
    for (int32_t i = 0; i < shares->n_groups; i++) {
        const struct shares_group *group = &shares->groups[i];
        struct test_pod *holder = holder_of(group->name);
        if (holder == NULL && group->n_sharers > 0 && chance(80)) {
            holder = add_pod(
                (struct test_pod){.kind = HOLDER, .gpus = 1, .gang = -1, .node = group->node});
            (void)snprintf(holder->group, sizeof holder->group, "%s", group->name);
            (void)snprintf(holder->name, sizeof holder->name, "weir-gpu-%s", group->name);
            holder->device = give_devices((int)(holder - all.pods));
            holder->is_failed = holder->device < 0;
            read_pod(holder);
        } else if (holder != NULL && (holder->is_failed || group->is_let_go ||
                                      (group->n_sharers == 0 && chance(50)))) {
            holder->is_leaving = true;
            read_pod(holder);
        }
    }
}

/* All of a gang, or none. */
static bool is_ready(const struct test_pod *pod)
{
    for (int i = 0; i < all.n_pods; i++) {
        const struct test_pod *other = &all.pods[i];
        bool is_of = other == pod || (pod->gang >= 0 && other->gang == pod->gang);
        if (!is_of || !is_there(other) || !other->is_held) {
            continue;
        }
        const struct test_pod *holder = holder_of(other->group);
        bool has_device =
            other->kind == WHOLE || (holder != NULL && holder->device >= 0 && !holder->is_leaving);
        if (!has_device || shares_is_unsure(&all.world->shares, other->node)) {
            return false;
        }
    }
    return true;
}

static void bind_ready(void)
{
    bool are_ready[PODS_MAX] = {false};
    for (int i = 0; i < all.n_pods; i++) {
        struct test_pod *pod = &all.pods[i];
        are_ready[i] =
            is_there(pod) && pod->is_held && (pod->gang >= 0 || chance(80)) && is_ready(pod);
    }
    for (int i = 0; i < all.n_pods; i++) {
        struct test_pod *pod = &all.pods[i];
        if (are_ready[i]) {
            pod->is_held = false;
            if (pod->kind == PART) {
                pod->device = holder_of(pod->group)->device;
            } else if (give_devices(i) < 0) {
                end_pod(i); /* another scheduler was faster */
            }
            read_pod(pod);
        }
        pod->is_leaving = pod->is_leaving || (is_there(pod) && is_astray(pod));
    }
}

static void run_cycle(void)
{
    WEIR_AUTO(weir_arena_fini) struct weir_arena arena;
    const struct weir_sched_executor executor = {.evict = evict, .place = place};
    struct world_input input;
    struct world world;
    weir_arena_init(&arena, 0);
    see(&input);
    world_make(&input, &arena, &world);
    all.world = &world;
    law_plan(&world, &executor);
    tend(&world.shares);
    bind_ready();
    all.cycle++;
}

/* ---- what happens ----------------------------------------------------------------------------- */

static void make_some(void)
{
    for (int k = below(5); k > 0 && all.n_pods < PODS_MAX / 2; k--) {
        struct test_pod pod = {
            .kind = chance(65) ? PART : WHOLE, .queue = below(N_QUEUES), .gang = -1, .node = -1};
        int n = chance(20) ? 2 + below(3) : 1;
        pod.gang = n > 1 ? all.n_pods : -1;
        pod.gang_size = n;
        for (int i = 0; i < n; i++) {
            pod.kind = n > 1 && chance(30) ? WHOLE : pod.kind;
            pod.milli = pod.kind == PART ? 1 + below(999) : 0;
            pod.gpus = pod.kind == WHOLE ? 1 + below(2) : 0;
            pod.config[0] = '\0';
            if (pod.kind == PART && chance(20)) {
                (void)snprintf(pod.config, sizeof pod.config, "s-%d", below(4));
            }
            add_pod(pod);
        }
    }
}

/* Nobody holds what they have a part of, or it is not theirs any more. */
static bool is_unsure_node(int node)
{
    for (int i = 0; i < all.n_pods; i++) {
        const struct test_pod *pod = &all.pods[i];
        if (is_there(pod) && pod->node == node && is_unsure(pod)) {
            return true;
        }
    }
    return false;
}

/* Another scheduler's comes where a device is free. */
static void let_others_come(void)
{
    int node = below(all.n_nodes);
    if (chance(20) && !is_unsure_node(node) && pick_free(node) >= 0 && all.n_pods < PODS_MAX / 2) {
        struct test_pod *pod =
            add_pod((struct test_pod){.kind = OTHER, .gpus = 1, .gang = -1, .node = node});
        (void)give_devices((int)(pod - all.pods));
    }
}

static void let_end(void)
{
    for (int i = 0; i < all.n_pods; i++) {
        struct test_pod *pod = &all.pods[i];
        bool ends = chance(pod->is_leaving ? 70 : pod->kind == HOLDER ? 2 : 8);
        if (is_there(pod) && pod->node >= 0 && !pod->is_held && ends) {
            end_pod(i);
        }
    }
}

/* Begun again: what was only assumed is not known any more. */
static void forget(void)
{
    for (int i = 0; i < all.n_pods; i++) {
        struct test_pod *pod = &all.pods[i];
        if (is_there(pod) && pod->is_held) {
            pod->is_held = false;
            pod->node = -1;
        }
    }
}

/* ---- the law ---------------------------------------------------------------------------------- */

static void check_device(int node, int device)
{
    int owner = all.owner[node][device], milli = 0;
    for (int i = 0; i < all.n_pods; i++) {
        const struct test_pod *pod = &all.pods[i];
        bool is_of = is_there(pod) && pod->kind == PART && pod->node == node && !pod->is_held &&
                     pod->device == device;
        milli += is_of ? pod->milli : 0;
    }
    ck_assert_msg(milli <= 1000, "device %d of n-%d is given to %d thousandths", device, node,
                  milli);
    ck_assert_msg(milli == 0 || owner < 0 || all.pods[owner].kind == HOLDER,
                  "device %d of n-%d is given whole to %s, and %d thousandths of it", device, node,
                  all.pods[owner].name, milli);
}

/* Pods that read one ConfigMap see the device that it tells of. */
static void check_configs(void)
{
    for (int i = 0; i < all.n_pods; i++) {
        for (int k = 0; k < i; k++) {
            const struct test_pod *a = &all.pods[i], *b = &all.pods[k];
            bool are_bound = is_there(a) && is_there(b) && a->kind == PART && b->kind == PART &&
                             a->node >= 0 && b->node >= 0 && !a->is_held && !b->is_held;
            if (are_bound && strcmp(a->config, b->config) == 0 && !a->is_leaving &&
                !b->is_leaving) {
                ck_assert_msg(a->node == b->node && strcmp(a->group, b->group) == 0,
                              "%s and %s read %s", a->name, b->name, a->config);
            }
        }
    }
}

static void check(void)
{
    for (int i = 0; i < all.n_nodes; i++) {
        for (int d = 0; d < all.n_gpus[i]; d++) {
            check_device(i, d);
        }
    }
    check_configs();
}

static void make_cluster(void)
{
    static const char *const names[N_QUEUES] = {"blue", "green"};
    all.n_pods = 0;
    memset(all.pods, 0, sizeof all.pods);
    all.n_nodes = 1 + below(NODES_MAX);
    for (int i = 0; i < all.n_nodes; i++) {
        all.n_gpus[i] = 1 + below(GPUS_MAX);
        memset(all.owner[i], -1, sizeof all.owner[i]);
        read_node(i);
    }
    for (int q = 0; q < N_QUEUES; q++) {
        all.queues[q] = (struct weir_sched_queue){.name = names[q],
                                                  .parent = WEIR_SCHED_NONE,
                                                  .preempt_min_run_ms = -1,
                                                  .reclaim_min_run_ms = -1};
        for (int r = 0; r < WEIR_SCHED_N_RESOURCES; r++) {
            all.queues[q].shares[r] =
                (struct weir_sched_share){WEIR_SCHED_UNLIMITED, 1, WEIR_SCHED_UNLIMITED};
        }
        all.queues[q].shares[WEIR_SCHED_ACCELERATOR].quota = (int64_t)below(6) * 500;
    }
}

static void drop_cluster(void)
{
    for (int i = 0; i < all.n_nodes; i++) {
        place_release(all.nodes[i]);
    }
    for (int i = 0; i < all.n_pods; i++) {
        place_release(all.pods[i].digest);
    }
}

static int count_holders(void)
{
    int n = 0;
    for (int i = 0; i < all.n_pods; i++) {
        n += all.pods[i].kind == HOLDER && is_there(&all.pods[i]);
    }
    return n;
}

/* When all that was asked for is over nothing is held. */
static void end_all(void)
{
    for (int i = 0; i < all.n_pods; i++) {
        if (all.pods[i].kind != HOLDER && is_there(&all.pods[i])) {
            end_pod(i);
        }
    }
    for (int k = 0; k < 60 && count_holders() > 0; k++) {
        run_cycle();
        let_end();
    }
    ck_assert_int_eq(count_holders(), 0);
}

START_TEST(no_device_is_given_twice_whatever_happens)
{
    int64_t n_bound = 0;
    (void)test_seed(&law_rng);
    for (int c = 0; c < N_CLUSTERS; c++) {
        make_cluster();
        for (int k = 0; k < N_CYCLES; k++) {
            make_some();
            let_others_come();
            run_cycle();
            check();
            let_end();
            if (chance(10)) {
                forget();
            }
        }
        for (int i = 0; i < all.n_pods; i++) {
            n_bound += all.pods[i].kind == PART && all.pods[i].device >= 0;
        }
        end_all();
        drop_cluster();
    }
    ck_assert_int_gt(n_bound, N_CLUSTERS);
}

END_TEST

static struct test_pod *add_bound_part(int milli)
{
    struct weir_arena arena;
    weir_arena_init(&arena, 0);
    struct test_pod *pod =
        add_pod((struct test_pod){.kind = PART, .milli = milli, .gang = -1, .node = -1});
    (void)snprintf(pod->group, sizeof pod->group, "%s", reservation_group("n-0", 0, &arena));
    weir_arena_fini(&arena);
    pod->node = pod->device = 0;
    read_pod(pod);
    return pod;
}

/* Annotations of two pods are changed so that they have more than all of their device; the queue of one is gone. */
START_TEST(what_is_written_since_gives_nobody_more)
{
    make_cluster();
    for (int i = 0; i < all.n_nodes; i++) {
        place_release(all.nodes[i]);
    }
    all.n_nodes = all.n_gpus[0] = 1;
    read_node(0);
    struct test_pod *first = add_bound_part(900);
    (void)add_bound_part(_i == 2 ? 50 : 900);
    if (_i > 0) {
        first->digest->queue = "gone";
    }
    struct test_pod *third =
        add_pod((struct test_pod){.kind = PART, .milli = 200, .gang = -1, .node = -1});
    struct test_pod *whole =
        add_pod((struct test_pod){.kind = WHOLE, .gpus = 1, .gang = -1, .node = -1});
    for (int k = 0; k < 3; k++) {
        run_cycle();
    }
    ck_assert_int_lt(third->node, 0);
    ck_assert_int_lt(whole->node, 0);
    drop_cluster();
}

END_TEST

static const struct {
    const char *printed, *device, *wrong;
} reports[] = {
    {"", NULL, NULL},
    {"NVIDIA_VISIBLE_DEVICES=GPU-1", NULL, NULL}, /* it goes on */
    {"NVIDIA_VISIBLE_DEVICES=GPU-1b2-3\n", "GPU-1b2-3", NULL},
    {"a line before\nNVIDIA_VISIBLE_DEVICES=MIG-GPU-1/2/0\r\n", "MIG-GPU-1/2/0", NULL},
    {"NVIDIA_VISIBLE_DEVICES=0\nNVIDIA_VISIBLE_DEVICES=1\n", "0", NULL},
    {"NVIDIA_VISIBLE_DEVICES=\n", NULL, "not told"},
    {"NVIDIA_VISIBLE_DEVICES=void\n", NULL, "void"},
    {"NVIDIA_VISIBLE_DEVICES=all\n", NULL, "all"},
    {"NVIDIA_VISIBLE_DEVICES=GPU-1,GPU-2\n", NULL, "GPU-1,GPU-2"},
    {"NVIDIA_VISIBLE_DEVICES=/var/run/nvidia-container-devices\n", NULL, "envvar"},
    {"NVIDIA_VISIBLE_DEVICES=a\xff\x01\n", NULL, "a??"},
};

START_TEST(what_a_pod_printed_is_one_device_or_none)
{
    WEIR_AUTO(weir_arena_fini) struct weir_arena arena;
    weir_arena_init(&arena, 0);
    const char *wrong = NULL;
    const char *device = reservation_device(reports[_i].printed, &arena, &wrong);
    ck_assert_pstr_eq(device, reports[_i].device);
    ck_assert_int_eq(wrong != NULL, reports[_i].wrong != NULL);
    ck_assert(wrong == NULL || strstr(wrong, reports[_i].wrong) != NULL);
}

END_TEST

START_TEST(a_group_is_of_its_node_alone)
{
    WEIR_AUTO(weir_arena_fini) struct weir_arena arena;
    weir_arena_init(&arena, 0);
    const char *group = reservation_group("n-1", 17, &arena);
    ck_assert_int_eq(reservation_number("n-1", group), 17);
    ck_assert_int_eq(reservation_number("n-2", group), -1);
    static const char *const bad[] = {"", "/../x", " 1", "+1", "01", "-1", "1x", "99999999999"};
    for (size_t i = 0; i < WEIR_ARRAY_LEN(bad); i++) {
        const char *text =
            weir_arena_printf(&arena, "%.*s%s", (int)(strlen(group) - 2), group, bad[i]);
        ck_assert_msg(reservation_number("n-1", text) == -1, "%s", text);
    }
}

END_TEST

int main(void)
{
    Suite *suite = suite_create("parts");
    TCase *tcase = tcase_create("laws");
    tcase_set_timeout(tcase, 60);
    tcase_add_test(tcase, no_device_is_given_twice_whatever_happens);
    tcase_add_loop_test(tcase, what_a_pod_printed_is_one_device_or_none, 0,
                        (int)WEIR_ARRAY_LEN(reports));
    tcase_add_test(tcase, a_group_is_of_its_node_alone);
    tcase_add_loop_test(tcase, what_is_written_since_gives_nobody_more, 0, 3);
    suite_add_tcase(suite, tcase);
    return weir_test_run(suite);
}
