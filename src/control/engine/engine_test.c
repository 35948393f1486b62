/* The engine's thread, on the real clock: what only a thread can show. What it decides is tested
 * without it (scheduler_test.c, control_test.c). */
#include "control/engine.h"

#include "store/identity.h"
#include "store/store_fixture.h"
#include "store/table.h"

#include <string.h>

#define N_JOBS 20

static struct store_fixture fixture;
static struct engine *engine;

static weir_status populate(struct weir_txn *txn, void *context, struct weir_error *err)
{
    (void)context;
    return weir_txn_insert(txn, &weir_project_resource, &(struct weir_project){.name = "default"},
                           err);
}

static weir_status heartbeat(struct weir_txn *txn, void *context, struct weir_error *err)
{
    (void)context;
    const struct weir_node node = {.name = "a", .cpu_slots = N_JOBS};
    return weir_node_heartbeat(txn, &node, weir_clock_now_ms(&weir_system_clock), err);
}

static weir_status submit(struct weir_txn *txn, void *context, struct weir_error *err)
{
    char *id = context;
    const struct weir_task task = {.id = id, .role = "command", .cpu_millis = 1000};
    const struct weir_job job = {.id = id,
                                 .name = id,
                                 .project = "default",
                                 .kind = "command",
                                 .spec = "{}",
                                 .is_preemptible = true};
    return weir_job_create(txn, &job, &task, 1, weir_clock_now_ms(&weir_system_clock), err);
}

struct look {
    const char *id;
    bool is_bound;
};

static weir_status look_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct look *look = context;
    struct weir_task task;
    MUST(weir_txn_get(txn, &weir_task_resource, look->id, &fixture.arena, &task, err));
    look->is_bound = task.node != NULL;
    return WEIR_OK;
}

static void wait_for_bind(const char *id)
{
    struct look look = {id, false};
    for (;;) {
        uint64_t change = weir_store_change(fixture.store);
        fixture_read(&fixture, look_in, &look);
        if (look.is_bound) {
            return;
        }
        (void)weir_store_wait(fixture.store, change, 60000);
    }
}

static void set_up(void)
{
    struct weir_error err;
    fixture_make(&fixture, populate);
    const struct engine_config config = {
        .store = fixture.store, .state_dir = fixture.dir, .server_url = "http://h:1"};
    weir_status status = engine_start(&config, &engine, &err);
    ck_assert_msg(status == WEIR_OK, "%s", err.message);
    fixture_write(&fixture, heartbeat, NULL);
    engine_notify(engine);
}

static void tear_down(void)
{
    engine_stop(engine);
    engine_destroy(engine);
    fixture_fini(&fixture);
}

/* The engine looks by itself once a second, so by its timer these would take about N_JOBS s. */
START_TEST(a_job_is_bound_when_the_engine_is_notified_and_not_by_its_timer)
{
    int64_t start_ms = weir_mono_ms();
    for (int i = 0; i < N_JOBS; i++) {
        char *id = weir_arena_printf(&fixture.arena, "job-%02d", i);
        fixture_write(&fixture, submit, id);
        engine_notify(engine);
        wait_for_bind(id);
    }
    ck_assert_int_lt(weir_mono_ms() - start_ms, N_JOBS * 1000 / 2);
}

END_TEST

WEIR_TEST_MAIN_WITH("engine", set_up, tear_down,
                    a_job_is_bound_when_the_engine_is_notified_and_not_by_its_timer)
