/*
 * The law of volumes, on random claims, volumes and pods, read from objects of the API: which nodes a pod may have is what the test works
 * out of what it made, and whatever is given is had by one claim, is where its pods are, and is as large as it has to be.
 */
#include "cluster/kubernetes/scheduler/law_fixture.h"

#include "base/macros.h"

#include <string.h>

#define NODES_MAX   6
#define VOLUMES_MAX 10
#define CLAIMS_MAX  8
#define PODS_MAX    12
#define N_ROUNDS    WEIR_TEST_TIMES(2000, 200)

enum kind {
    LOCAL,  /* a volume that is there, once its pod's node is known */
    MADE,   /* made where its pod is */
    ZONED,  /* the same, in zone 1 alone */
    UNMADE, /* bound at once by somebody, who does not */
    N_KINDS,
};

static const struct {
    const char *name, *provisioner, *mode;
} kinds[N_KINDS] = {{"local", "kubernetes.io/no-provisioner", "WaitForFirstConsumer"},
                    {"made", "made.up", "WaitForFirstConsumer"},
                    {"zoned", "made.up", "WaitForFirstConsumer"},
                    {"unmade", "made.up", "Immediate"}};

struct test_volume {
    int node, size; /* node -1: anywhere */
    int claim;      /* -1: free */
    bool is_block;
    struct volume *digest;
};

struct test_claim {
    enum kind kind;
    int size;
    int volume; /* that it has, or is to have; -1: none */
    int node;   /* where it is to be made; -1: nowhere */
    bool is_bound, is_alone, is_block, is_missing;
    struct volume_claim *digest;
};

struct test_pod {
    int claims[2], n_claims;
    int node; /* -1: none */
    struct place_pod *digest;
};

static struct {
    struct weir_arena arena;
    int zones[NODES_MAX], n_nodes;
    const struct place_node *nodes[NODES_MAX];
    struct test_volume given[VOLUMES_MAX];
    struct test_claim claims[CLAIMS_MAX];
    struct test_pod pods[PODS_MAX];
    int n_volumes, n_claims, n_pods;
    const struct volume_claim *claim_rows[CLAIMS_MAX];
    int claim_of_row[CLAIMS_MAX];
    const struct volume *volume_rows[VOLUMES_MAX];
    const struct volume_class *class_rows[N_KINDS];
    struct world_pod seen[PODS_MAX];
    struct volumes volumes;
} all;

static const struct kubernetes_options options;

static const char *text(const char *format, int n)
{
    return weir_arena_printf(&all.arena, "%s%d", format, n);
}

static const char *gib(int n)
{
    return weir_arena_printf(&all.arena, "%dGi", n);
}

/* ---- objects ---------------------------------------------------------------------------------- */

static const char *mode_of(bool is_block)
{
    return is_block ? "Block" : "Filesystem";
}

static void read_node(int i)
{
    json_t *object =
        json_pack("{s:{s:s,s:{s:s,s:s}}}", "metadata", "name", text("n-", i), "labels",
                  "kubernetes.io/hostname", text("n-", i), "zone", text("z-", all.zones[i]));
    all.nodes[i] = place_node_read(&options, object);
    json_decref(object);
}

static void read_volume(int i)
{
    struct test_volume *volume = &all.given[i];
    json_t *object = json_pack("{s:{s:s},s:{s:{s:s},s:[s,s],s:s,s:s},s:{s:s}}", "metadata", "name",
                               text("pv-", i), "spec", "capacity", "storage", gib(volume->size),
                               "accessModes", "ReadWriteOnce", "ReadWriteOncePod",
                               "storageClassName", "local", "volumeMode", mode_of(volume->is_block),
                               "status", "phase", volume->claim >= 0 ? "Bound" : "Available");
    json_t *spec = json_object_get(object, "spec");
    if (volume->node >= 0) {
        json_object_set_new(spec, "nodeAffinity",
                            json_pack("{s:{s:[{s:[{s:s,s:s,s:[s]}]}]}}", "required",
                                      "nodeSelectorTerms", "matchExpressions", "key",
                                      "kubernetes.io/hostname", "operator", "In", "values",
                                      text("n-", volume->node)));
    }
    if (volume->claim >= 0) {
        json_object_set_new(spec, "claimRef",
                            json_pack("{s:s,s:s,s:s}", "namespace", "a", "name",
                                      text("c-", volume->claim), "uid", text("u-", volume->claim)));
    }
    volume->digest = volume_read(object);
    json_decref(object);
}

static void read_claim(int i)
{
    struct test_claim *claim = &all.claims[i];
    json_t *notes = json_object();
    json_t *object = json_pack(
        "{s:{s:s,s:s,s:s,s:o},s:{s:s,s:s,s:[s],s:{s:{s:s}}}}", "metadata", "name", text("c-", i),
        "namespace", "a", "uid", text("u-", i), "annotations", notes, "spec", "storageClassName",
        kinds[claim->kind].name, "volumeMode", mode_of(claim->is_block), "accessModes",
        claim->is_alone ? "ReadWriteOncePod" : "ReadWriteOnce", "resources", "requests", "storage",
        gib(claim->size));
    if (claim->is_bound) {
        json_object_set_new(json_object_get(object, "spec"), "volumeName",
                            json_string(text("pv-", claim->volume)));
        json_object_set_new(notes, "pv.kubernetes.io/bind-completed", json_string("yes"));
    }
    if (claim->node >= 0) {
        json_object_set_new(notes, "volume.kubernetes.io/selected-node",
                            json_string(text("n-", claim->node)));
    }
    claim->digest = volume_claim_read(object);
    json_decref(object);
}

static void read_class(int i)
{
    json_t *object =
        json_pack("{s:{s:s},s:s,s:s}", "metadata", "name", kinds[i].name, "provisioner",
                  kinds[i].provisioner, "volumeBindingMode", kinds[i].mode);
    if (i == ZONED) {
        json_object_set_new(object, "allowedTopologies",
                            json_pack("[{s:[{s:s,s:[s,s]}]}]", "matchLabelExpressions", "key",
                                      "zone", "values", "z-1", "z-9"));
    }
    all.class_rows[i] = volume_class_read(object);
    json_decref(object);
}

static void read_pod(int i)
{
    struct test_pod *pod = &all.pods[i];
    json_t *volumes = json_array();
    for (int k = 0; k < pod->n_claims; k++) {
        json_array_append_new(volumes, json_pack("{s:s,s:{s:s}}", "name", text("v", k),
                                                 "persistentVolumeClaim", "claimName",
                                                 text("c-", pod->claims[k])));
    }
    json_t *object =
        json_pack("{s:{s:s,s:s,s:s},s:{s:s,s:o}}", "metadata", "name", text("p-", i), "namespace",
                  "a", "uid", text("p-", i), "spec", "schedulerName", "weir", "volumes", volumes);
    pod->digest = place_pod_read(object);
    json_decref(object);
}

/* ---- made up ---------------------------------------------------------------------------------- */

static void make_claim(int i)
{
    struct test_claim *claim = &all.claims[i];
    *claim = (struct test_claim){.kind = (enum kind)below(N_KINDS),
                                 .size = 1 + below(10),
                                 .volume = -1,
                                 .node = -1,
                                 .is_alone = chance(20),
                                 .is_block = chance(20),
                                 .is_missing = chance(5)};
    int volume = below(all.n_volumes);
    if (chance(30) && all.given[volume].claim < 0) { /* it has one, or is about to */
        claim->volume = volume;
        claim->is_bound = chance(70);
        all.given[volume].claim = i;
    } else if ((claim->kind == MADE || claim->kind == ZONED) && chance(30)) {
        claim->node = below(all.n_nodes);
    }
    read_claim(i);
}

static void make_all(void)
{
    all.n_nodes = 1 + below(NODES_MAX);
    all.n_volumes = 1 + below(VOLUMES_MAX);
    all.n_claims = 1 + below(CLAIMS_MAX);
    all.n_pods = 1 + below(PODS_MAX);
    for (int i = 0; i < all.n_nodes; i++) {
        all.zones[i] = below(3);
        read_node(i);
    }
    for (int i = 0; i < all.n_volumes; i++) {
        all.given[i] = (struct test_volume){.node = below(all.n_nodes + 1) - 1,
                                            .size = 1 + below(12),
                                            .claim = -1,
                                            .is_block = chance(20)};
    }
    for (int i = 0; i < all.n_claims; i++) {
        make_claim(i);
    }
    for (int i = 0; i < all.n_volumes; i++) {
        read_volume(i);
        all.volume_rows[i] = all.given[i].digest;
    }
    for (int i = 0; i < N_KINDS; i++) {
        read_class(i);
    }
    for (int i = 0; i < all.n_pods; i++) {
        int first = below(all.n_claims);
        all.pods[i] = (struct test_pod){.claims = {first, (first + 1) % all.n_claims},
                                        .n_claims = 1 + (all.n_claims > 1 && chance(40)),
                                        .node = -1};
        read_pod(i);
        all.seen[i] = (struct world_pod){.pod = all.pods[i].digest};
    }
}

static void look(void)
{
    size_t n = 0;
    for (int i = 0; i < all.n_claims; i++) {
        if (!all.claims[i].is_missing) {
            all.claim_of_row[n] = i;
            all.claim_rows[n++] = all.claims[i].digest;
        }
    }
    all.volumes = (struct volumes){.claims = all.claim_rows,
                                   .n_claims = n,
                                   .volumes = all.volume_rows,
                                   .n_volumes = (size_t)all.n_volumes,
                                   .classes = all.class_rows,
                                   .n_classes = N_KINDS,
                                   .pods = all.seen,
                                   .n_pods = (size_t)all.n_pods,
                                   .arena = &all.arena};
    volumes_index(&all.volumes);
}

static void drop_all(void)
{
    for (int i = 0; i < all.n_nodes; i++) {
        place_release((void *)(uintptr_t)all.nodes[i]);
    }
    for (int i = 0; i < all.n_volumes; i++) {
        place_release(all.given[i].digest);
    }
    for (int i = 0; i < all.n_claims; i++) {
        place_release(all.claims[i].digest);
    }
    for (int i = 0; i < N_KINDS; i++) {
        place_release((void *)(uintptr_t)all.class_rows[i]);
    }
    for (int i = 0; i < all.n_pods; i++) {
        place_release(all.pods[i].digest);
    }
    weir_arena_fini(&all.arena);
}

/* ---- the law ---------------------------------------------------------------------------------- */

static bool is_used_by_other(int claim, int pod)
{
    for (int i = 0; i < all.n_pods; i++) {
        for (int k = 0; k < all.pods[i].n_claims; k++) {
            if (i != pod && all.pods[i].node >= 0 && all.pods[i].claims[k] == claim) {
                return true;
            }
        }
    }
    return false;
}

static bool is_at(int volume, int node)
{
    return all.given[volume].node < 0 || all.given[volume].node == node;
}

/* Volumes that are free and would do. */
static int count_free(const struct test_claim *claim, int node)
{
    int n = 0;
    for (int i = 0; i < all.n_volumes; i++) {
        const struct test_volume *volume = &all.given[i];
        n += claim->kind == LOCAL && volume->claim < 0 && volume->size >= claim->size &&
             volume->is_block == claim->is_block && is_at(i, node);
    }
    return n;
}

static bool can_have(const struct test_claim *claim, int node)
{
    bool can_be_made = claim->kind == MADE || (claim->kind == ZONED && all.zones[node] == 1);
    if (claim->volume >= 0) {
        return is_at(claim->volume, node) && (claim->is_bound || claim->kind != UNMADE);
    }
    return claim->node >= 0 ? claim->node == node && can_be_made
                            : can_be_made || count_free(claim, node) > 0;
}

static bool may_have(int pod, int node)
{
    for (int k = 0; k < all.pods[pod].n_claims; k++) {
        int i = all.pods[pod].claims[k];
        const struct test_claim *claim = &all.claims[i];
        if (claim->is_missing || (claim->is_alone && is_used_by_other(i, pod)) ||
            !can_have(claim, node)) {
            return false;
        }
    }
    return true;
}

static void give(int pod, int node, const struct volumes_choice *choices, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct test_claim *claim = &all.claims[all.claim_of_row[choices[i].claim]];
        ck_assert_int_lt(claim->volume, 0);
        ck_assert_int_lt(claim->node, 0);
        if (choices[i].volume < 0) {
            claim->node = node;
            continue;
        }
        struct test_volume *volume = &all.given[choices[i].volume];
        ck_assert_int_lt(volume->claim, 0);
        ck_assert(volume->size >= claim->size && volume->is_block == claim->is_block);
        claim->volume = (int)choices[i].volume;
        volume->claim = all.claim_of_row[choices[i].claim];
    }
    all.pods[pod].node = node;
    if (chance(50)) { /* else what is assumed alone says so */
        all.seen[pod].node = all.nodes[node]->name;
    }
}

/* Of one claim it is known just when it can be had; of two at once that it can be if it is said. */
static void check_allowed(int pod, const bool *allowed, const char *wrong)
{
    bool is_any = false;
    for (int i = 0; i < all.n_nodes; i++) {
        bool is = wrong == NULL && allowed[i], may = may_have(pod, i);
        ck_assert_msg(all.pods[pod].n_claims > 1 ? may || !is : may == is,
                      "p-%d and n-%d: %d, and %d is right; %s", pod, i, is, may,
                      wrong != NULL ? wrong : "nothing wrong");
        is_any = is_any || may;
    }
    ck_assert_msg(all.pods[pod].n_claims > 1 || is_any == (wrong == NULL), "p-%d: %s", pod,
                  wrong != NULL ? wrong : "nothing wrong");
}

/* What the planner counts of a claim's. */
static void check_pools(int pod, int node)
{
    for (int k = 0; k < all.pods[pod].n_claims; k++) {
        const struct test_claim *claim = &all.claims[all.pods[pod].claims[k]];
        const char *pool = volumes_pool(&all.volumes, all.pods[pod].digest, (size_t)k);
        bool needs =
            !claim->is_missing && claim->kind == LOCAL && claim->volume < 0 && claim->node < 0;
        int64_t n = -1;
        ck_assert_int_eq(pool != NULL, needs);
        ck_assert(!needs || volumes_pool_free(&all.volumes, pool, all.nodes[node], &n));
        ck_assert_int_eq(n, needs ? count_free(claim, node) : -1);
    }
}

static void settle(int pod)
{
    const struct place_pod *digest = all.pods[pod].digest;
    bool allowed[NODES_MAX];
    struct volumes_choice choices[2];
    size_t n = 0;
    memset(allowed, 1, sizeof allowed);
    const char *wrong = volumes_wrong(&all.volumes, digest, all.nodes, (size_t)all.n_nodes);
    if (wrong == NULL) {
        volumes_allow(&all.volumes, digest, all.nodes, (size_t)all.n_nodes, allowed);
    }
    check_allowed(pod, allowed, wrong);
    int node = below(all.n_nodes);
    check_pools(pod, node);
    bool can = volumes_choose(&all.volumes, digest, all.nodes[node], false, choices, &n);
    ck_assert_int_eq(can, wrong == NULL && allowed[node]);
    if (can && chance(80)) {
        volumes_assume(&all.volumes, digest, all.nodes[node]->name, choices, n);
        give(pod, node, choices, n);
    }
}

/* A plan that is given up leaves nothing behind. */
static void try_and_go_back(int pod)
{
    struct volumes_assumed kept = volumes_keep(&all.volumes);
    struct volumes_choice choices[2];
    size_t n = 0;
    int node = below(all.n_nodes);
    if (volumes_choose(&all.volumes, all.pods[pod].digest, all.nodes[node], false, choices, &n)) {
        volumes_assume(&all.volumes, all.pods[pod].digest, all.nodes[node]->name, choices, n);
    }
    volumes_go_back(&all.volumes, &kept);
}

START_TEST(a_pod_has_its_claims_where_it_may_and_nowhere_else)
{
    (void)test_seed(&law_rng);
    for (int round = 0; round < N_ROUNDS; round++) {
        weir_arena_init(&all.arena, 0);
        make_all();
        look();
        for (int i = 0; i < all.n_pods; i++) {
            try_and_go_back(i);
            settle(i);
        }
        drop_all();
    }
}

END_TEST

WEIR_TEST_LOOPS_MAIN("volumes", {a_pod_has_its_claims_where_it_may_and_nowhere_else, 1})
