#include "ion/ion.h"

#include "base/rng.h"
#include "ion/ion_fixture.h"
#include "ion/threshold.h"
#include "store/event.h"
#include "store/identity.h"
#include "store/store_fixture.h"
#include "store/table.h"
#include "track/track.h"

#include <inttypes.h>
#include <math.h>

static struct store_fixture fixture;

static weir_status populate(struct weir_txn *txn, void *context, struct weir_error *err)
{
    (void)context;
    return weir_txn_insert(txn, &weir_project_resource, &(struct weir_project){.name = "default"},
                           err);
}

static void set_up(void)
{
    fixture_make(&fixture, populate);
}

static void tear_down(void)
{
    fixture_fini(&fixture);
}

/** One event, as the server applies it. */
struct turn {
    struct weir_ion_event event;
    int64_t now_ms;
    bool fails; /**< The transaction fails at its very end. */
    weir_status status;
};

static weir_status take_turn(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct turn *turn = context;
    struct weir_ion_state state;
    struct weir_ion_actions actions = {0};
    const struct weir_ion_event *event = &turn->event;
    if (event->type == WEIR_ION_EVENT_MODEL) {
        struct weir_model_version version = {.id = (char *)event->models[0].model_version,
                                             .model = (char *)event->models[0].name,
                                             .blob = (char *)event->models[0].blob};
        MUST(weir_model_register(txn, &version, "default", turn->now_ms, &fixture.arena, &version,
                                 NULL, err));
    }
    weir_status status = weir_ion_load(txn, "x", &fixture.arena, &state, err);
    if (status == WEIR_ERR_NOT_FOUND) {
        weir_ion_state_new("x", &fixture.arena, &state);
    } else {
        WEIR_TRY(status);
    }
    turn->status = weir_ion_step(&state, event, turn->now_ms, &fixture.arena, &actions, err);
    if (turn->status == WEIR_OK) {
        MUST(weir_ion_save(txn, &state, &actions, turn->now_ms, err));
    }
    return turn->fails ? weir_error_set(err, WEIR_ERR_PEER, "the client is gone") : WEIR_OK;
}

/** Take the turn; perhaps fail a few times first. */
static void take(struct turn *turn, int n_failures)
{
    for (int i = 0; i < n_failures; i++) {
        turn->fails = true;
        ck_assert_int_eq(weir_store_write(fixture.store, take_turn, turn, &fixture.err),
                         WEIR_ERR_PEER);
    }
    turn->fails = false;
    fixture_write(&fixture, take_turn, turn);
}

static weir_status dump_stored(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct weir_ion_state state;
    MUST(weir_ion_load(txn, "x", &fixture.arena, &state, err));
    *(char **)context = dump_state(&state, &fixture.arena);
    return WEIR_OK;
}

static struct weir_ion_event history_event(struct weir_rng *rng, int64_t *n_models)
{
    struct weir_ion_event event = {
        .actor = "ann", .pipeline = "t", .training = 1 + (int64_t)weir_rng_below(rng, 4)};
    switch (weir_rng_below(rng, 9)) {
    case 0:
        return applied(&fixture.arena, weir_rng_below(rng, 2) == 0 ? "manual" : "always-update",
                       "{new_data: true}", 1 + (int)weir_rng_below(rng, 2));
    case 1:
    case 2:
        return model(&fixture.arena, "t", ++*n_models);
    case 3:
        event.type = WEIR_ION_EVENT_APPROVE;
        break;
    case 4:
        event.type = WEIR_ION_EVENT_ROLLBACK;
        break;
    case 5:
        event.type = WEIR_ION_EVENT_TRIGGER;
        break;
    case 6:
        event.type = WEIR_ION_EVENT_STARTED;
        event.job = "j";
        break;
    case 7:
        event.type = WEIR_ION_EVENT_FINISHED;
        break;
    default:
        event.type = weir_rng_below(rng, 4) == 0 ? WEIR_ION_EVENT_DELETED : WEIR_ION_EVENT_REJECT;
        break;
    }
    return event;
}

struct counts {
    int64_t n_promotions, n_served, n_started;
};

static weir_status count_rows(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct counts *counts = context;
    struct weir_query query = {WEIR_FILTERS(WEIR_FILTER_TEXT("verdict", EQ, "promote"))};
    int64_t n_rollbacks;
    MUST(weir_txn_count(txn, &weir_policy_decision_resource, &query, &counts->n_promotions, err));
    query = (struct weir_query){WEIR_FILTERS(WEIR_FILTER_TEXT("verdict", EQ, "rollback"))};
    MUST(weir_txn_count(txn, &weir_policy_decision_resource, &query, &n_rollbacks, err));
    query = (struct weir_query){WEIR_FILTERS(WEIR_FILTER_TEXT("kind", EQ, "start_training"))};
    MUST(weir_txn_count(txn, &weir_outbox_resource, &query, &counts->n_started, err));
    counts->n_promotions += n_rollbacks;
    struct weir_ion_state state;
    MUST(weir_ion_load(txn, "x", &fixture.arena, &state, err));
    counts->n_served = state.ion.n_served;
    int64_t training = 0;
    for (size_t i = 0; i < state.n_pipelines; i++) {
        training += state.pipelines[i].runs.training;
    }
    ck_assert_int_eq(counts->n_started, training);
    return WEIR_OK;
}

START_TEST(a_history_in_the_store_with_failures_equals_one_in_memory_without)
{
    uint64_t seed = 5;
    printf("seed %" PRIu64 "\n", seed);
    struct weir_rng rng;
    weir_rng_init(&rng, seed, 0);
    struct weir_ion_state memory;
    weir_ion_state_new("x", &fixture.arena, &memory);
    int64_t n_models = 0, now_ms = 1000;
    for (int i = 0; i < 120; i++) {
        now_ms += 1 + (int64_t)weir_rng_below(&rng, 100);
        struct turn turn = {.now_ms = now_ms};
        turn.event =
            i == 0 ? applied(&fixture.arena, "manual", "{}", 1) : history_event(&rng, &n_models);
        take(&turn, weir_rng_below(&rng, 3) == 0 ? 1 : 0);
        struct weir_ion_actions actions = {0};
        struct weir_error err;
        ck_assert_int_eq(
            weir_ion_step(&memory, &turn.event, now_ms, &fixture.arena, &actions, &err),
            turn.status);
        char *stored;
        fixture_read(&fixture, dump_stored, &stored);
        ck_assert_str_eq(stored, dump_state(&memory, &fixture.arena));
    }
    struct counts counts;
    fixture_read(&fixture, count_rows, &counts);
    ck_assert_int_eq(counts.n_promotions, counts.n_served);
    ck_assert_int_gt(counts.n_served, 5);
    ck_assert_int_gt(counts.n_started, 2);
}

END_TEST

static weir_status look_at_outbox(struct weir_txn *txn, void *context, struct weir_error *err)
{
    (void)context;
    struct weir_outbox *taken;
    size_t n;
    MUST(weir_outbox_take(txn, INT64_MAX / 2, 1, 10, &fixture.arena, &taken, &n, err));
    ck_assert_uint_eq(n, 1);
    ck_assert_str_eq(taken[0].kind, "start_training");
    json_t *payload = json_loads(taken[0].payload, 0, NULL);
    json_t *expected = json_pack("{s:s,s:s,s:i,s:n,s:s}", "ion", "x", "pipeline", "t", "training",
                                 1, "job", "cause", "by hand (ann)");
    ck_assert(json_equal(payload, expected));
    json_decref(payload);
    json_decref(expected);
    void *events;
    MUST(weir_txn_list(txn, &weir_event_resource, NULL, &fixture.arena, &events, &n, NULL, err));
    ck_assert_uint_eq(n, 2);
    ck_assert_str_eq(((struct weir_event *)events)[1].kind, "training_triggered");
    ck_assert_str_eq(((struct weir_event *)events)[1].subject, "ion/x");
    ck_assert_str_eq(((struct weir_event *)events)[1].actor, "ann");
    char **names;
    MUST(weir_ion_list_active(txn, &fixture.arena, &names, &n, err));
    ck_assert_uint_eq(n, 1);
    ck_assert_str_eq(names[0], "x");
    return WEIR_OK;
}

START_TEST(actions_are_in_the_outbox_and_the_event_log)
{
    struct turn turn = {.event = applied(&fixture.arena, "manual", "{}", 1), .now_ms = 1};
    take(&turn, 0);
    turn.event =
        (struct weir_ion_event){.type = WEIR_ION_EVENT_TRIGGER, .pipeline = "t", .actor = "ann"};
    take(&turn, 2);
    fixture_write(&fixture, look_at_outbox, NULL);
}

END_TEST

static weir_status set_members(struct weir_txn *txn, void *context, struct weir_error *err)
{
    (void)context;
    bool has_changed;
    struct weir_ion_state state;
    MUST(weir_ion_member_set(txn, "x", "zoe", "allow", "bob", 1, &has_changed, err));
    ck_assert(has_changed);
    MUST(weir_ion_member_set(txn, "x", "eve", "allow", "bob", 1, &has_changed, err));
    MUST(weir_ion_member_set(txn, "x", "eve", "allow", "bob", 2, &has_changed, err));
    ck_assert(!has_changed);
    MUST(weir_ion_member_set(txn, "x", "eve", "deny", "bob", 3, &has_changed, err));
    ck_assert(has_changed);
    MUST(weir_ion_member_set(txn, "x", "zoe", NULL, "bob", 4, &has_changed, err));
    ck_assert(has_changed);
    MUST(weir_ion_member_set(txn, "x", "zoe", NULL, "bob", 5, &has_changed, err));
    ck_assert(!has_changed);
    MUST(weir_ion_load(txn, "x", &fixture.arena, &state, err));
    ck_assert_int_eq(state.ion.list_revision, 4);
    ck_assert_uint_eq(state.n_members, 1);
    ck_assert_str_eq(state.members[0].person, "eve");
    ck_assert_str_eq(state.members[0].list, "deny");
    ck_assert_int_eq(weir_ion_member_set(txn, "none", "eve", "deny", "bob", 3, &has_changed, err),
                     WEIR_ERR_CONFLICT);
    return WEIR_OK;
}

START_TEST(a_person_is_on_one_list_and_changes_are_counted)
{
    struct turn turn = {.event = applied(&fixture.arena, "manual", "{}", 1), .now_ms = 1};
    take(&turn, 0);
    fixture_write(&fixture, set_members, NULL);
}

END_TEST

static weir_status report_thresholds(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct weir_ion_state state;
    bool is_new;
    (void)context;
    struct weir_threshold report = {.deployment_revision = 5,
                                    .replica = "r-0",
                                    .threshold = 0.75,
                                    .rule = "impostors",
                                    .scores = 800,
                                    .people = 200,
                                    .asked_rate = 0.01,
                                    .expected_rate = 0.01,
                                    .refused_share = NAN,
                                    .time_ms = 1};
    MUST(weir_threshold_store(txn, "x", "p", &report, &is_new, err));
    ck_assert(is_new);
    report.replica = "r-1";
    report.time_ms = 2;
    MUST(weir_threshold_store(txn, "x", "p", &report, &is_new, err));
    ck_assert(!is_new); /* Another replica says the same. */
    report.deployment_revision = 6;
    MUST(weir_threshold_store(txn, "x", "p", &report, &is_new, err));
    ck_assert(!is_new); /* Other lists, the same threshold. */
    report.deployment_revision = 4;
    report.threshold = 0.1;
    MUST(weir_threshold_store(txn, "x", "p", &report, &is_new, err));
    ck_assert(!is_new); /* One that is behind. */
    MUST(weir_ion_load(txn, "x", &fixture.arena, &state, err));
    const struct weir_threshold *stored = pipeline_of(&state, "p")->service.threshold;
    ck_assert_double_eq(stored->threshold, 0.75);
    ck_assert_int_eq(stored->people, 200);
    ck_assert(isnan(stored->refused_share));
    ck_assert_int_eq(weir_threshold_store(txn, "x", "t", &report, &is_new, err),
                     WEIR_ERR_NOT_FOUND);
    ck_assert_int_eq(weir_threshold_store(txn, "y", "p", &report, &is_new, err),
                     WEIR_ERR_NOT_FOUND);
    return WEIR_OK;
}

static weir_status damage_and_delete(struct weir_txn *txn, void *context, struct weir_error *err)
{
    (void)context;
    struct weir_ion_state state;
    struct weir_ion ion = {.name = "broken",
                           .project = "default",
                           .document = "{\"kind\":",
                           .state = "ACTIVE",
                           .mode = WEIR_ION_PRODUCTION,
                           .created_by = "ann"};
    char **names;
    size_t n;
    MUST(weir_txn_insert(txn, &weir_ion_resource, &ion, err));
    ck_assert_int_eq(weir_ion_load(txn, "broken", &fixture.arena, &state, err), WEIR_ERR_CORRUPT);
    ck_assert_ptr_nonnull(strstr(err->message, "\"broken\""));
    MUST(weir_ion_abandon(txn, "broken", 5, err));
    MUST(weir_ion_list_active(txn, &fixture.arena, &names, &n, err));
    ck_assert_uint_eq(n, 0);
    ck_assert_int_eq(weir_ion_abandon(txn, "broken", 6, err), WEIR_ERR_NOT_FOUND);
    return WEIR_OK;
}

START_TEST(a_damaged_document_is_named_and_its_ion_can_be_deleted)
{
    fixture_write(&fixture, damage_and_delete, NULL);
}

END_TEST

START_TEST(the_threshold_of_the_newest_deployment_is_kept)
{
    struct turn turn = {.event = applied(&fixture.arena, "manual", "{}", 1), .now_ms = 1};
    take(&turn, 0);
    fixture_write(&fixture, report_thresholds, NULL);
    turn.now_ms = 2;
    turn.event = (struct weir_ion_event){.type = WEIR_ION_EVENT_TICK};
    take(&turn, 0); /* A step keeps it. */
    char *text;
    fixture_write(&fixture, dump_stored, &text);
    ck_assert_ptr_nonnull(strstr(text, "\"rule\":\"impostors\""));
}

END_TEST

WEIR_TEST_MAIN_WITH("ion", set_up, tear_down,
                    a_damaged_document_is_named_and_its_ion_can_be_deleted,
                    a_history_in_the_store_with_failures_equals_one_in_memory_without,
                    actions_are_in_the_outbox_and_the_event_log,
                    a_person_is_on_one_list_and_changes_are_counted,
                    the_threshold_of_the_newest_deployment_is_kept)
