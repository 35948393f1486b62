/* What an API server may answer: nodes, pods, Jobs, WeirJobs and volumes of whatever form are read, or not, told, and placed. */
#include "cluster/kubernetes/report.h"

#include "cluster/kubernetes/node.h"
#include "cluster/kubernetes/scheduler/world.h"
#include "cluster/kubernetes/shown_plan.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

static void must(bool is_so)
{
    if (!is_so) {
        abort();
    }
}

static void tell(const json_t *object, struct weir_arena *arena)
{
    struct kubernetes_pod *pod = kubernetes_pod_read(object);
    const bool is_gone[] = {false, true};
    for (size_t i = 0; i < WEIR_ARRAY_LEN(is_gone); i++) {
        const struct kubernetes_facts facts = {.tag = "t",
                                               .pods = (const struct kubernetes_pod *[]){pod},
                                               .is_gone = &is_gone[i],
                                               .n_pods = pod->allocation != NULL,
                                               .job = object};
        struct weir_allocation_report report;
        (void)kubernetes_needs_job(&facts);
        (void)kubernetes_needs_event(&facts);
        kubernetes_report(&facts, arena, &report);
        must(report.phase <= WEIR_ALLOCATION_ENDED && report.ending <= WEIR_ENDING_REFUSED);
        must(report.phase == WEIR_ALLOCATION_RUNNING || report.n_nodes == 0);
        must(report.phase == WEIR_ALLOCATION_UNKNOWN || report.said != NULL);
    }
    free(pod);
}

static void pool(const json_t *object, struct weir_arena *arena)
{
    const struct kubernetes_options options = {0};
    struct kubernetes_node *node = kubernetes_node_read(&options, object);
    struct kubernetes_pool *pools;
    size_t n;
    if (node != NULL) {
        kubernetes_pools_make((const struct kubernetes_node *const[]){node}, 1, NULL, 0, arena,
                              &pools, &n);
    }
    free(node);
}

/* One that is no known job's is never a word about one. */
static void show(const json_t *object, struct weir_arena *arena)
{
    struct shown_object *read = shown_object_read(object);
    const struct shown_there there = {.key = "n/w", .object = read};
    const struct shown_view view = {
        .there = &there, .n_there = 1, .server = shown_server_hash("s"), .now_ms = 1};
    size_t n;
    const struct shown_step *steps = shown_plan(&view, arena, &n);
    must(n == 0 || (n == 1 && steps[0].what != SHOWN_DELETED && steps[0].what != SHOWN_PUT));
    must(read->finalizer >= 0 || n == 0 || steps[0].what != SHOWN_RELEASE);
    free(read);
}

/* One object is all that there is of each kind. */
static void place(const json_t *object, struct weir_arena *arena)
{
    const struct kubernetes_options options = {0};
    struct place_pod *pod = place_pod_read(object);
    struct place_node *node = place_node_read(&options, object);
    struct space *space = space_read(object);
    struct volume_claim *claim = volume_claim_read(object);
    struct volume *volume = volume_read(object);
    struct volume_class *volume_class = volume_class_read(object);
    if (pod != NULL) {
        const struct world_pod seen = {.pod = pod};
        const struct weir_sched_queue queue = {.name = pod->queue, .parent = WEIR_SCHED_NONE};
        struct volumes volumes = {.claims = (const struct volume_claim *[]){claim},
                                  .n_claims = 1,
                                  .volumes = (const struct volume *[]){volume},
                                  .n_volumes = 1,
                                  .classes = (const struct volume_class *[]){volume_class},
                                  .n_classes = 1,
                                  .pods = &seen,
                                  .n_pods = 1,
                                  .arena = arena};
        const struct world_input input = {.nodes = (const struct place_node *[]){node},
                                          .n_nodes = 1,
                                          .pods = &seen,
                                          .n_pods = 1,
                                          .queues = &queue,
                                          .n_queues = 1,
                                          .spaces = {(const struct space *[]){space}, 1, true},
                                          .volumes = &volumes};
        struct world world;
        volumes_index(&volumes);
        world_make(&input, arena, &world);
        must(world.snapshot.n_tasks <= 1);
    }
    place_release(pod);
    place_release(node);
    place_release(space);
    place_release(claim);
    place_release(volume);
    place_release(volume_class);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    struct weir_arena arena;
    json_t *object;
    weir_arena_init(&arena, 0);
    if (weir_json_parse((const char *)bytes, len, "input", &object, NULL) == WEIR_OK) {
        tell(object, &arena);
        pool(object, &arena);
        show(object, &arena);
        place(object, &arena);
        json_decref(object);
    }
    weir_arena_fini(&arena);
    return 0;
}
