/* Sweeps in the store: what is saved is loaded again, and goes on as if it had never been put away. */
#include "store/store_fixture.h"
#include "store/table.h"
#include "store/tenant.h"
#include "sweep/sweep_fixture.h"

static struct store_fixture store;
static struct sweep_world world;

#define DOCUMENT                                                                                   \
    "{\"name\":\"s\",\"project\":\"p\",\"seed\":1,\"job\":{\"kind\":\"command\",\"spec\":{"        \
    "\"env\":"                                                                                     \
    "{\"KEY\":\"secret\"}}},\"goal\":{\"metric\":\"loss\",\"direction\":\"minimize\"},"            \
    "\"parameters\":{\"x\":{\"kind\":\"uniform\",\"min\":0,\"max\":1}},\"trials\":20,"             \
    "\"parallel\":3,\"method\":{\"kind\":\"asha\",\"max_resource\":9}}"

static double curve(const json_t *values, double resource, int64_t trial)
{
    (void)trial;
    return json_number_value(json_object_get(values, "x")) + 1 / resource;
}

static weir_status populate(struct weir_txn *txn, void *context, struct weir_error *err)
{
    (void)context;
    return weir_txn_insert(txn, &weir_project_resource, &(struct weir_project){.name = "p"}, err);
}

static void set_up(void)
{
    fixture_make(&store, populate);
    world_open(&world, DOCUMENT, curve, 100);
}

static void tear_down(void)
{
    world_close(&world);
    fixture_fini(&store);
}

static weir_status save_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    return weir_sweep_save(txn, context, &world.arena, err);
}

static weir_status load_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    return weir_sweep_load(txn, world.state.sweep.id, &world.arena, context, err);
}

static weir_status list_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    char **ids;
    return weir_sweep_list_open(txn, &world.arena, &ids, context, err);
}

static weir_status delete_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    (void)context;
    return weir_sweep_delete(txn, world.state.sweep.id, err);
}

/* Put away and taken up again after each look: the same as a sweep that stays in memory. */
START_TEST(a_sweep_that_is_loaded_anew_each_time_comes_to_the_same)
{
    struct sweep_world other;
    world_open(&other, DOCUMENT, curve, 100);
    world_run(&other);
    while (!weir_sweep_is_over(&world.state.sweep)) {
        world_start_all(&world);
        world_work(&world);
        world_look(&world);
        fixture_write(&store, save_in, &world.state);
        weir_sweep_state_fini(&world.state);
        fixture_read(&store, load_in, &world.state);
    }
    ck_assert_str_eq(world.state.sweep.state, other.state.sweep.state);
    ck_assert_uint_eq(world.state.n_trials, other.state.n_trials);
    ck_assert_double_eq(world.state.sweep.best_value, other.state.sweep.best_value);
    ck_assert_double_eq(world.state.sweep.work, other.state.sweep.work);
    for (size_t i = 0; i < other.state.n_trials; i++) {
        const struct weir_sweep_trial_state *left = &world.state.trials[i];
        const struct weir_sweep_trial_state *right = &other.state.trials[i];
        ck_assert_str_eq(left->row.state, right->row.state);
        ck_assert_str_eq(left->row.parameters, right->row.parameters);
        ck_assert_uint_eq(left->n_rungs, right->n_rungs);
    }
    world_close(&other);
}

END_TEST

START_TEST(what_is_open_is_listed_and_cannot_be_deleted)
{
    size_t n;
    struct weir_error err = {0};
    fixture_write(&store, save_in, &world.state);
    fixture_read(&store, list_in, &n);
    ck_assert_uint_eq(n, 1);
    ck_assert_int_eq(weir_store_write(store.store, delete_in, NULL, &err), WEIR_ERR_CONFLICT);
    world_run(&world);
    fixture_write(&store, save_in, &world.state);
    fixture_read(&store, list_in, &n);
    ck_assert_uint_eq(n, 0);
    fixture_write(&store, delete_in, NULL);
    ck_assert_int_eq(weir_store_write(store.store, delete_in, NULL, &err), WEIR_ERR_NOT_FOUND);
}

END_TEST

START_TEST(identifiers_are_functions_of_the_trial)
{
    char first[WEIR_UUID_BYTES], second[WEIR_UUID_BYTES], before[WEIR_UUID_BYTES] = "";
    for (size_t i = 0; i < world.state.n_trials; i++) {
        const struct weir_sweep_trial *row = &world.state.trials[i].row;
        weir_sweep_trial_id(row, "job", first);
        weir_sweep_trial_id(row, "job", second);
        ck_assert_str_eq(first, second);
        ck_assert(weir_uuid_is_valid(first));
        weir_sweep_trial_id(row, "run", second);
        ck_assert_str_ne(first, second);
        ck_assert_int_gt(strcmp(first, before), 0);
        memcpy(before, first, sizeof before);
    }
}

END_TEST

START_TEST(what_is_secret_in_the_job_is_shown_to_nobody)
{
    json_t *view = weir_record_to_json(&weir_sweep_resource, &world.state.sweep);
    const json_t *spec =
        json_object_get(json_object_get(json_object_get(view, "document"), "job"), "spec");
    const json_t *env = json_object_get(spec, "env");
    ck_assert_str_eq(json_string_value(json_object_get(env, "KEY")), "***");
    json_decref(view);
}

END_TEST

WEIR_TEST_MAIN_WITH("sweep", set_up, tear_down,
                    a_sweep_that_is_loaded_anew_each_time_comes_to_the_same,
                    what_is_open_is_listed_and_cannot_be_deleted,
                    identifiers_are_functions_of_the_trial,
                    what_is_secret_in_the_job_is_shown_to_nobody)
