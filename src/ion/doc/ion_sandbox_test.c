/* Sandboxes: the mode of an ION, rows of trainings, the way into production; and that decisions say
 * which they are of. */
#include "ion/decision.h"
#include "ion/ion_fixture.h"
#include "store/identity.h"
#include "store/store_fixture.h"
#include "store/table.h"

static struct weir_arena arena;
static struct weir_ion_state state;
static struct weir_ion_actions actions;
static int64_t now_ms;

static void set_up(void)
{
    weir_arena_init(&arena, 0);
    weir_ion_state_new("x", &arena, &state);
    now_ms = 1700000000000;
}

static void tear_down(void)
{
    weir_arena_fini(&arena);
}

static weir_status step(struct weir_ion_event event)
{
    struct weir_error err;
    actions = (struct weir_ion_actions){0};
    now_ms += 1000;
    return weir_ion_step(&state, &event, now_ms, &arena, &actions, &err);
}

static struct weir_ion_event apply_as(const char *mode, int replicas)
{
    struct weir_ion_event event = applied(&arena, "always-update", "{manual: true}", replicas);
    event.mode = mode;
    return event;
}

static struct weir_ion_event run_times(int64_t times)
{
    return (struct weir_ion_event){.type = WEIR_ION_EVENT_RUN, .actor = "bob", .times = times};
}

static struct weir_ion_event ended(enum weir_ion_event_type type)
{
    return (struct weir_ion_event){
        .type = type, .pipeline = "t", .training = pipeline_of(&state, "t")->runs.training};
}

START_TEST(an_ion_keeps_the_mode_that_it_began_with)
{
    ck_assert_int_eq(step(apply_as("sandbox", 1)), WEIR_OK);
    ck_assert_str_eq(state.ion.mode, "sandbox");
    ck_assert_int_eq(step(apply_as(NULL, 2)), WEIR_OK);
    ck_assert_str_eq(state.ion.mode, "sandbox");
    ck_assert_int_eq(state.ion.revision, 2);
    ck_assert_int_eq(step((struct weir_ion_event){.type = WEIR_ION_EVENT_DELETED}), WEIR_OK);
    ck_assert_int_eq(step(apply_as(NULL, 2)), WEIR_OK); /* another of that name */
    ck_assert_str_eq(state.ion.mode, "production");
}

END_TEST

START_TEST(trainings_run_in_a_row_and_name_who_wanted_them)
{
    ck_assert_int_eq(step(apply_as(NULL, 1)), WEIR_OK);
    ck_assert_int_eq(step(run_times(3)), WEIR_OK);
    for (int64_t i = 1; i <= 3; i++) {
        const struct weir_ion_pipeline *training = pipeline_of(&state, "t");
        ck_assert_str_eq(training->state, "TRAINING");
        ck_assert_int_eq(training->runs.training, i);
        ck_assert_str_eq(training->runs.cause_by, "bob");
        ck_assert_ptr_nonnull(strstr(training->runs.cause, "bob"));
        ck_assert_uint_eq(n_actions(&actions, WEIR_ION_ACTION_START_TRAINING), 1);
        ck_assert_int_eq(step(ended(WEIR_ION_EVENT_FINISHED)), WEIR_OK);
    }
    ck_assert_str_eq(pipeline_of(&state, "t")->state, "IDLE");
    ck_assert_uint_eq(n_actions(&actions, WEIR_ION_ACTION_START_TRAINING), 0);
}

END_TEST

/** The last event's firings of triggers, each of which its row makes again. */
static size_t n_firings(void)
{
    for (size_t i = 0; i < actions.n; i++) {
        struct weir_trigger_verdict again;
        if (actions.items[i].type == WEIR_ION_ACTION_FIRED) {
            ck_assert_int_eq(
                weir_trigger_replay(actions.items[i].firing.inputs, &arena, &again, NULL), WEIR_OK);
            ck_assert(again.fires);
            ck_assert_str_eq(again.reason, actions.items[i].firing.reason);
            ck_assert_str_eq(actions.items[i].firing.actor, "bob");
        }
    }
    return n_actions(&actions, WEIR_ION_ACTION_FIRED);
}

START_TEST(a_row_is_a_firing_of_the_manual_trigger_and_keeps_its_interval)
{
    struct weir_ion_event event =
        applied(&arena, "always-update", "[{kind: manual, least_interval_s: 3600}]", 1);
    ck_assert_int_eq(step(event), WEIR_OK);
    ck_assert_int_eq(step(run_times(2)), WEIR_OK);
    ck_assert_uint_eq(n_firings(), 1);
    ck_assert_int_eq(step(run_times(2)), WEIR_ERR_CONFLICT);
    ck_assert_uint_eq(actions.n, 0);
    ck_assert_int_eq(step(ended(WEIR_ION_EVENT_FINISHED)), WEIR_OK); /* the second was asked for */
    ck_assert_str_eq(pipeline_of(&state, "t")->state, "TRAINING");
    now_ms += 3600000;
    ck_assert_int_eq(step(run_times(1)), WEIR_OK);
}

END_TEST

START_TEST(a_row_that_is_asked_for_while_one_runs_comes_after_it)
{
    ck_assert_int_eq(step(apply_as(NULL, 1)), WEIR_OK);
    ck_assert_int_eq(step(run_times(3)), WEIR_OK);
    ck_assert_int_eq(step(run_times(2)), WEIR_OK);
    int64_t n = 1;
    for (; n < 20 && strcmp(pipeline_of(&state, "t")->state, "TRAINING") == 0; n++) {
        ck_assert_int_eq(pipeline_of(&state, "t")->runs.training, n);
        ck_assert_int_eq(step(ended(WEIR_ION_EVENT_FINISHED)), WEIR_OK);
    }
    ck_assert_int_eq(n - 1, 5);
    for (int i = 0; i < 3; i++) { /* however often somebody asks */
        ck_assert_int_eq(step(run_times(100)), WEIR_OK);
        ck_assert_int_le(pipeline_of(&state, "t")->runs.runs_left, WEIR_ION_RUNS_MAX);
    }
}

END_TEST

START_TEST(an_ion_that_is_deleted_runs_and_promotes_nothing)
{
    ck_assert_int_eq(step(apply_as("sandbox", 1)), WEIR_OK);
    ck_assert_int_eq(step((struct weir_ion_event){.type = WEIR_ION_EVENT_DELETED}), WEIR_OK);
    ck_assert_int_eq(step(run_times(1)), WEIR_ERR_CONFLICT);
    ck_assert_int_eq(step((struct weir_ion_event){.type = WEIR_ION_EVENT_PROMOTED}),
                     WEIR_ERR_CONFLICT);
    ck_assert_str_eq(state.ion.mode, "sandbox");
}

END_TEST

START_TEST(a_row_ends_with_one_that_fails_or_is_cancelled)
{
    static const enum weir_ion_event_type ends[] = {WEIR_ION_EVENT_FAILED,
                                                    WEIR_ION_EVENT_CANCELLED};

    ck_assert_int_eq(step(apply_as("sandbox", 1)), WEIR_OK);
    for (size_t i = 0; i < WEIR_ARRAY_LEN(ends); i++) {
        ck_assert_int_eq(step(run_times(100)), WEIR_OK);
        ck_assert_int_eq(step(ended(ends[i])), WEIR_OK);
        ck_assert_str_eq(pipeline_of(&state, "t")->state, "IDLE");
        ck_assert_int_eq(pipeline_of(&state, "t")->runs.runs_left, 0);
    }
    ck_assert_int_eq(step(run_times(0)), WEIR_ERR_INVALID);
    ck_assert_int_eq(step(run_times(101)), WEIR_ERR_INVALID);
}

END_TEST

START_TEST(the_revision_that_was_tried_goes_on_in_production)
{
    struct weir_ion_event promoted = {.type = WEIR_ION_EVENT_PROMOTED, .actor = "eve"};
    ck_assert_int_eq(step(apply_as("sandbox", 1)), WEIR_OK);
    ck_assert_int_eq(step(model(&arena, "t", 1)), WEIR_OK);
    ck_assert_int_eq(step((struct weir_ion_event){
                         .type = WEIR_ION_EVENT_STARTED, .pipeline = "p", .job = "job-of-sandbox"}),
                     WEIR_OK);
    int64_t revision = state.ion.revision;
    const char *candidate = serving(&state, "t:p")->id;
    ck_assert_int_eq(step(promoted), WEIR_OK);
    ck_assert_str_eq(state.ion.mode, "production");
    ck_assert_int_eq(state.ion.revision, revision);
    ck_assert_str_eq(serving(&state, "t:p")->id, candidate);
    ck_assert_uint_eq(n_actions(&actions, WEIR_ION_ACTION_STOP_PREDICTION), 1);
    ck_assert_uint_eq(n_actions(&actions, WEIR_ION_ACTION_START_PREDICTION), 1);
    ck_assert_uint_eq(n_actions(&actions, WEIR_ION_ACTION_START_TRAINING), 0);
    ck_assert_str_eq(actions.items[0].actor, "eve");
    ck_assert_int_eq(step(promoted), WEIR_ERR_CONFLICT);
    ck_assert_uint_eq(actions.n, 0);
}

END_TEST

/* ---- decisions ------------------------------------------------------------------------------- */

static struct store_fixture fixture;

static weir_status put_ion(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct weir_ion ion = {.name = "x",
                           .project = "default",
                           .document = "{}",
                           .state = "ACTIVE",
                           .mode = context,
                           .revision = 1};
    if (strcmp(context, "sandbox") == 0) {
        WEIR_TRY(weir_txn_insert(txn, &weir_project_resource,
                                 &(struct weir_project){.name = "default"}, err));
    }
    return weir_txn_upsert(txn, &weir_ion_resource, &ion, err);
}

/** A decision of the only frame, and what was erased before it is stored. */
struct shipped {
    struct weir_decision decision;
    struct weir_decision_picture *erased;
    size_t n_erased;
    weir_status status;
};

static struct shipped made(const char *id, bool is_sandbox, int64_t pack)
{
    return (struct shipped){.decision = {.id = (char *)id,
                                         .ion = "x",
                                         .pipeline = "p",
                                         .camera = "c",
                                         .frame = 7,
                                         .time_ms = 1,
                                         .verdict = "grant",
                                         .is_sandbox = is_sandbox,
                                         .image = pack != 0 ? "5ha" : NULL,
                                         .pack = pack,
                                         .pack_offset = pack * 10,
                                         .pack_bytes = pack * 100}};
}

static weir_status put_decision(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct shipped *shipped = context;
    size_t n_stored;
    shipped->status = weir_decisions_store(txn, &shipped->decision, 1, shipped->erased,
                                           shipped->n_erased, &n_stored, err);
    return WEIR_OK;
}

static weir_status find_replaced(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct shipped *shipped = context;
    return weir_decisions_replaced(txn, &shipped->decision, 1, &arena, &shipped->erased,
                                   &shipped->n_erased, err);
}

static weir_status count(struct weir_txn *txn, void *context, struct weir_error *err)
{
    return weir_txn_query_int(
        txn, "SELECT count(*) * 100 + sum(is_sandbox) * 10 + (min(id) = 'd1') FROM decisions",
        WEIR_NO_BINDS, -1, context, err);
}

/** Decisions × 100 + tried ones × 10 + whether d1 is there, after this one. */
static int64_t stored(const char *id, bool is_sandbox)
{
    int64_t found;
    struct shipped shipped = made(id, is_sandbox, 0);
    fixture_write(&fixture, put_decision, &shipped);
    ck_assert_int_eq(shipped.status, WEIR_OK);
    fixture_read(&fixture, count, &found);
    return found;
}

/* Whatever the ION is by the time that it comes: the replica knows what it did. */
START_TEST(a_decision_says_whether_it_was_tried_and_one_with_an_effect_counts_more)
{
    fixture_make(&fixture, NULL);
    fixture_write(&fixture, put_ion, "sandbox");
    ck_assert_int_eq(stored("d1", true), 111);
    ck_assert_int_eq(stored("d2", true), 111); /* the same frame again */
    fixture_write(&fixture, put_ion, "production");
    ck_assert_int_eq(stored("d2", true), 111); /* late */
    ck_assert_int_eq(stored("d3", false), 100);
    ck_assert_int_eq(stored("d1", true), 100); /* later still */
    ck_assert_int_eq(stored("d4", false), 100);
    fixture_fini(&fixture);
}

END_TEST

START_TEST(a_late_decision_of_the_sandbox_stays_one_that_was_tried)
{
    fixture_make(&fixture, NULL);
    fixture_write(&fixture, put_ion, "sandbox");
    fixture_write(&fixture, put_ion, "production");
    ck_assert_int_eq(stored("d1", true), 111);
    ck_assert_int_eq(stored("d2", false), 100);
    fixture_fini(&fixture);
}

END_TEST

START_TEST(a_picture_of_what_was_tried_is_erased_before_its_row_goes)
{
    int64_t found;
    struct shipped tried = made("d1", true, 3), real = made("d2", false, 4);
    fixture_make(&fixture, NULL);
    fixture_write(&fixture, put_decision, &tried);
    fixture_read(&fixture, find_replaced, &tried);
    ck_assert_uint_eq(tried.n_erased, 0);
    fixture_write(&fixture, put_decision, &real);
    ck_assert_int_eq(real.status, WEIR_ERR_CONFLICT);
    fixture_read(&fixture, find_replaced, &real);
    ck_assert_uint_eq(real.n_erased, 1);
    ck_assert_str_eq(real.erased[0].id, "d1");
    ck_assert_int_eq(real.erased[0].pack, 3);
    ck_assert_int_eq(real.erased[0].offset, 30);
    ck_assert_int_eq(real.erased[0].bytes, 300);
    fixture_write(&fixture, put_decision, &real);
    ck_assert_int_eq(real.status, WEIR_OK);
    fixture_read(&fixture, count, &found);
    ck_assert_int_eq(found, 100);
    fixture_read(&fixture, find_replaced, &real);
    ck_assert_uint_eq(real.n_erased, 0);
    fixture_fini(&fixture);
}

END_TEST

int main(void)
{
    const TTest *const tests[] = {
        an_ion_keeps_the_mode_that_it_began_with,
        trainings_run_in_a_row_and_name_who_wanted_them,
        a_row_is_a_firing_of_the_manual_trigger_and_keeps_its_interval,
        a_row_that_is_asked_for_while_one_runs_comes_after_it,
        an_ion_that_is_deleted_runs_and_promotes_nothing,
        a_row_ends_with_one_that_fails_or_is_cancelled,
        the_revision_that_was_tried_goes_on_in_production,
        a_decision_says_whether_it_was_tried_and_one_with_an_effect_counts_more,
        a_late_decision_of_the_sandbox_stays_one_that_was_tried,
        a_picture_of_what_was_tried_is_erased_before_its_row_goes,
    };
    return weir_test_run(
        weir_test_suite_with("ion sandbox", set_up, tear_down, tests, WEIR_ARRAY_LEN(tests)));
}
