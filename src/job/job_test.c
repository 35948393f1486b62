#include "job/job.h"

#include "store/event.h"
#include "store/identity.h"
#include "store/store_fixture.h"
#include "store/table.h"

#include <string.h>

static struct store_fixture fixture;

static weir_status populate(struct weir_txn *txn, void *context, struct weir_error *err)
{
    (void)context;
    MUST(weir_txn_insert(txn, &weir_project_resource, &(struct weir_project){.name = "default"},
                         err));
    const struct weir_task tasks[] = {
        {.id = "t0",
         .rank = 0,
         .role = "worker",
         .cpu_millis = 2000,
         .definition = "{\"argv\":[]}"},
        {.id = "t1", .rank = 1, .role = "worker", .cpu_millis = 1000},
    };
    const struct weir_job job = {.id = "j",
                                 .name = "train-faces",
                                 .project = "default",
                                 .kind = "train",
                                 .spec = "{}",
                                 .max_restarts = 2,
                                 .created_by = "ann"};
    return weir_job_create(txn, &job, tasks, 2, 1000, err);
}

static void set_up(void)
{
    fixture_make(&fixture, populate);
}

static void tear_down(void)
{
    fixture_fini(&fixture);
}

static weir_status place_all(struct weir_txn *txn, struct weir_error *err)
{
    struct weir_job_state state;
    size_t wants[2];
    const char *names[] = {"a", "b"};
    MUST(weir_job_load(txn, "j", &fixture.arena, &state, err));
    ck_assert_uint_eq(weir_job_wants(&state, 2000, wants), 2);
    struct weir_job_actions actions = {0};
    const struct weir_job_event event = {.type = WEIR_JOB_EVENT_BIND, .place = names, .n_place = 2};
    MUST(weir_job_step(&state, &event, 2000, &fixture.arena, &actions, err));
    return weir_job_save(txn, &state, &actions, 2000, err);
}

static weir_status life(struct weir_txn *txn, void *context, struct weir_error *err)
{
    (void)context;
    struct weir_node node = {.name = "a", .cpu_slots = 2, .desired_revision = 77};
    MUST(weir_node_heartbeat(txn, &node, 1500, err));
    node.name = "b";
    MUST(weir_node_heartbeat(txn, &node, 1500, err));
    MUST(place_all(txn, err));

    struct weir_task *tasks;
    size_t n;
    MUST(weir_task_list_on_node(txn, "a", &fixture.arena, &tasks, &n, err));
    ck_assert_uint_eq(n, 1);
    ck_assert_str_eq(tasks[0].id, "t0");
    ck_assert_str_eq(tasks[0].desired, "running");
    ck_assert_str_eq(tasks[0].definition, "{\"argv\":[]}");
    MUST(weir_txn_get(txn, &weir_node_resource, "b", &fixture.arena, &node, err));
    ck_assert_int_eq(node.desired_revision, 2); /* 1 at registration, and one change. */
    node.cpu_slots = 3;
    node.desired_revision = 0;
    MUST(weir_node_heartbeat(txn, &node, 4000, err));
    MUST(weir_txn_get(txn, &weir_node_resource, "b", &fixture.arena, &node, err));
    ck_assert_int_eq(node.desired_revision, 2);
    ck_assert_int_eq(node.cpu_slots, 3);

    char **ids;
    MUST(weir_job_list_open(txn, &fixture.arena, &ids, &n, err));
    ck_assert_uint_eq(n, 1);
    struct weir_job_state state;
    struct weir_job_actions actions = {0};
    MUST(weir_job_load(txn, "j", &fixture.arena, &state, err));
    ck_assert_str_eq(state.job.state, "STARTING");
    MUST(weir_job_step(&state, &(struct weir_job_event){.type = WEIR_JOB_EVENT_CANCEL, .text = "x"},
                       8000, &fixture.arena, &actions, err));
    for (int i = 0; i < 2; i++) {
        MUST(weir_job_step(&state,
                           &(struct weir_job_event){.type = WEIR_JOB_EVENT_TASK_EXITED,
                                                    .task = state.tasks[i].id,
                                                    .attempt = 1},
                           8001, &fixture.arena, &actions, err));
    }
    MUST(weir_job_save(txn, &state, &actions, 8001, err));
    MUST(weir_job_list_open(txn, &fixture.arena, &ids, &n, err));
    ck_assert_uint_eq(n, 0);
    MUST(weir_task_list_on_node(txn, "a", &fixture.arena, &tasks, &n, err));
    ck_assert_uint_eq(n, 0);
    void *items;
    MUST(weir_txn_list(txn, &weir_event_resource, NULL, &fixture.arena, &items, &n, NULL, err));
    const struct weir_event *events = items;
    ck_assert_uint_eq(n, 3);
    ck_assert_str_eq(events[0].kind, "job_submitted");
    ck_assert_str_eq(events[1].kind, "job_cancel_asked");
    ck_assert_str_eq(events[2].kind, "job_cancelled");
    ck_assert_str_eq(events[2].subject, "job/j");
    return WEIR_OK;
}

START_TEST(a_job_is_stored_placed_seen_by_agents_and_ended)
{
    fixture_write(&fixture, life, NULL);
}

END_TEST

static weir_status give_up(struct weir_txn *txn, void *context, struct weir_error *err)
{
    (void)context;
    struct weir_node node = {.name = "a", .cpu_slots = 2};
    MUST(weir_node_heartbeat(txn, &node, 1500, err));
    node.name = "b";
    MUST(weir_node_heartbeat(txn, &node, 1500, err));
    MUST(place_all(txn, err));

    struct weir_job_state state;
    MUST(weir_job_load(txn, "j", &fixture.arena, &state, err));
    ck_assert_ptr_null(state.tasks[0].definition); /* for the node, not for the state machine */
    struct weir_arena small;
    weir_arena_init(&small, 1);
    ck_assert_int_eq(weir_job_load(txn, "j", &small, &state, err), WEIR_ERR_LIMIT);
    weir_arena_fini(&small);

    struct weir_task *tasks;
    size_t n;
    MUST(weir_job_abandon(txn, "j", "given up", "ann", 9000, err));
    MUST(weir_task_list_on_node(txn, "a", &fixture.arena, &tasks, &n, err));
    ck_assert_uint_eq(n, 0);
    MUST(weir_txn_get(txn, &weir_node_resource, "a", &fixture.arena, &node, err));
    ck_assert_int_eq(node.desired_revision, 3); /* registered, placed, given up */
    MUST(weir_job_load(txn, "j", &fixture.arena, &state, err));
    ck_assert_str_eq(state.job.state, "CANCELLED");
    ck_assert_str_eq(state.tasks[1].state, "LOST");
    ck_assert_int_eq(weir_job_abandon(txn, "j", "again", "ann", 9001, err), WEIR_ERR_CONFLICT);
    ck_assert_int_eq(weir_job_abandon(txn, "k", "x", "ann", 9001, err), WEIR_ERR_NOT_FOUND);
    return WEIR_OK;
}

START_TEST(a_job_that_cannot_be_loaded_can_be_given_up)
{
    fixture_write(&fixture, give_up, NULL);
}

END_TEST

/* Its heartbeats come while whoever looks has looked at the clock already. */
START_TEST(a_node_that_was_heard_of_since_is_not_lost)
{
    for (int64_t since_ms = 0; since_ms <= 5000; since_ms += 250) {
        const struct weir_node node = {.name = "a", .last_seen_ms = 900000 + since_ms};
        ck_assert(!weir_node_is_lost(&node, 900000, 1, 15000));
        ck_assert(weir_node_takes_tasks(&node, 900000, 1));
    }
}

END_TEST

START_TEST(only_a_node_that_was_heard_of_lately_and_does_not_drain_takes_tasks)
{
    struct weir_node node = {.name = "a", .last_seen_ms = 50000};
    ck_assert(weir_node_takes_tasks(&node, 50000 + weir_node_silent_ms() - 1, 0));
    ck_assert(!weir_node_takes_tasks(&node, 50000 + weir_node_silent_ms(), 0));
    ck_assert(weir_node_takes_tasks(&node, 50001, 50000));
    ck_assert(!weir_node_takes_tasks(&node, 50002, 50001)); /* Not since the server started. */
    ck_assert(!weir_node_takes_tasks(&node, 40000, 39000)); /* The clock was set back. */
    node.is_draining = true;
    ck_assert(!weir_node_takes_tasks(&node, 50001, 0));
}

END_TEST

static void say_images(struct weir_txn *txn, char *name, const char *images, struct weir_error *err)
{
    struct weir_node node = {.name = name};
    json_t *inventory = json_pack("{s:{s:s}}", "isolation", "images", images);
    ck_assert_int_eq(weir_node_heartbeat(txn, &node, 1500, err), WEIR_OK);
    ck_assert_int_eq(weir_node_note_images(txn, name, inventory, &fixture.arena, err), WEIR_OK);
    json_decref(inventory);
}

static weir_status ask_for_images(struct weir_txn *txn, void *context, struct weir_error *err)
{
    (void)context;
    bool has_images = false;
    struct weir_node node;
    MUST(weir_nodes_have_images(txn, &has_images, err));
    ck_assert(has_images); /* nobody has said anything yet */
    say_images(txn, "none", "none", err);
    MUST(weir_nodes_have_images(txn, &has_images, err));
    ck_assert(!has_images);
    say_images(txn, "some", "crun", err);
    MUST(weir_nodes_have_images(txn, &has_images, err));
    ck_assert(has_images);
    MUST(weir_txn_get(txn, &weir_node_resource, "some", &fixture.arena, &node, err));
    ck_assert_str_eq(node.labels, "{\"weir/images\":\"crun\"}");
    say_images(txn, "some", "none", err); /* crun was removed */
    MUST(weir_nodes_have_images(txn, &has_images, err));
    ck_assert(!has_images);
    return WEIR_OK;
}

START_TEST(images_need_a_node_that_starts_them)
{
    fixture_write(&fixture, ask_for_images, NULL);
}

END_TEST

WEIR_TEST_MAIN_WITH("job", set_up, tear_down, a_job_is_stored_placed_seen_by_agents_and_ended,
                    a_job_that_cannot_be_loaded_can_be_given_up,
                    only_a_node_that_was_heard_of_lately_and_does_not_drain_takes_tasks,
                    a_node_that_was_heard_of_since_is_not_lost, images_need_a_node_that_starts_them)
