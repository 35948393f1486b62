/** A snapshot from outside: any bytes give an error with a sentence, or a snapshot that can be
 *  planned and written, and that reads back as the same. */
#include "sched/snapshot_json.h"

#include "sched/test_snapshot.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define ARENA_BYTES ((size_t)64 << 20)
#define DEVICES_MAX 100000 /* More are legal, but a fuzzer should not spend its time on them. */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool is_so)
{
    if (!is_so) {
        abort();
    }
}

static void plan(const struct weir_sched_snapshot *snapshot)
{
    struct weir_sched_profile profile;
    struct weir_sched_plan *result = NULL;
    struct weir_error err = {0};
    must(weir_sched_profile_named("kai", &profile, &err) == WEIR_OK);
    weir_status status = weir_sched_plan(snapshot, &profile, &result, &err);
    must(status == WEIR_OK);
    json_decref(weir_sched_plan_to_json(snapshot, result));
    weir_sched_plan_destroy(result);
}

static void write_and_read(const struct weir_sched_snapshot *snapshot)
{
    struct weir_arena arena;
    struct weir_error err = {0};
    struct weir_sched_snapshot again;
    weir_arena_init(&arena, ARENA_BYTES);
    json_t *first = weir_sched_snapshot_to_json(snapshot);
    must(weir_sched_snapshot_from_json(first, &arena, &again, &err) == WEIR_OK);
    json_t *second = weir_sched_snapshot_to_json(&again);
    must(json_equal(first, second));
    json_decref(second);
    json_decref(first);
    weir_arena_fini(&arena);
}

static bool is_small(const struct weir_sched_snapshot *snapshot)
{
    int64_t n = 0;
    for (int32_t i = 0; i < snapshot->n_nodes; i++) {
        n += snapshot->nodes[i].n_devices;
    }
    for (int32_t i = 0; i < snapshot->n_tasks; i++) {
        n += snapshot->tasks[i].demand.n_devices;
    }
    return n <= DEVICES_MAX;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    json_t *document = NULL;
    struct weir_arena arena;
    struct weir_error err = {0};
    struct weir_sched_snapshot snapshot;
    if (weir_json_parse((const char *)data, size, "fuzz", &document, &err) != WEIR_OK) {
        return 0;
    }
    weir_arena_init(&arena, ARENA_BYTES);
    if (weir_sched_snapshot_from_json(document, &arena, &snapshot, &err) != WEIR_OK) {
        must(err.message[0] != '\0');
    } else if (is_small(&snapshot)) {
        plan(&snapshot);
        write_and_read(&snapshot);
    }
    weir_arena_fini(&arena);
    json_decref(document);
    return 0;
}
