/* Random histories of an ION: rules that hold after every event, and replay. */
#include "ion/step/ion_rules.h"

#define N_STEPS    80
#define N_SEEDS    WEIR_TEST_TIMES(100, 30)
#define MOST_SEEDS 400

static weir_status play_one(struct weir_ion_state *state, const struct weir_ion_event *event,
                            int64_t now_ms, struct checks *checks, const char *text_before,
                            char **out_actions)
{
    struct keys *keys = &checks->keys;
    struct weir_ion_actions actions = {0};
    struct weir_error err = {0};
    struct weir_ion_state before = copy_state(state);
    weir_status status = weir_ion_step(state, event, now_ms, &arena, &actions, &err);
    *out_actions = dump_actions(&actions, &arena);
    if (status != WEIR_OK) {
        REQUIRE(actions.n == 0);
        REQUIRE(err.message[0] != '\0');
        REQUIRE(strcmp(text_before, dump_state(state, &arena)) == 0);
        return status;
    }
    check_candidates(&before, state, &actions);
    check_pipelines(&before, state, &actions);
    check_data_links(&before, state);
    check_runs(state, now_ms);
    check_decisions(&before, state, &actions, now_ms, &checks->history);
    if (event->type == WEIR_ION_EVENT_TICK) {
        check_nothing_is_forgotten(state, now_ms);
    }
    for (size_t i = 0; i < actions.n; i++) {
        const struct weir_ion_action *action = &actions.items[i];
        if (action->type == WEIR_ION_ACTION_START_TRAINING ||
            action->type == WEIR_ION_ACTION_START_PREDICTION ||
            action->type == WEIR_ION_ACTION_STOP_PREDICTION ||
            action->type == WEIR_ION_ACTION_START_EVALUATION ||
            action->type == WEIR_ION_ACTION_STOP_EVALUATION ||
            action->type == WEIR_ION_ACTION_SHIFT) {
            remember(keys, action->key);
        } else if (action->type == WEIR_ION_ACTION_DECIDED) {
            remember(keys, action->decision.id);
        } else if (action->type == WEIR_ION_ACTION_FIRED) {
            remember(keys, weir_arena_printf(&arena, "firing:%s", action->firing.id));
            check_firing(&action->firing);
        }
        if (action->type == WEIR_ION_ACTION_SHIFT) {
            carry_out(&checks->deployed, state, action);
        }
    }
    check_deployed(&checks->deployed, state);
    check_measuring(&checks->measuring, &before, state, event, &actions);
    if (is_idempotent(event->type)) {
        check_told_again(state, event, now_ms);
    }
    return WEIR_OK;
}

/** How often histories came to what they are there for. */
static int n_shadows, n_canaries, n_sandboxes, n_rows, n_pauses;
static int n_freezes, n_held, n_restarts, n_measured;
static int n_evaluating, n_compared;

static void count_states(const struct weir_ion_state *state)
{
    for (size_t i = 0; i < state->n_candidates; i++) {
        n_shadows += strcmp(state->candidates[i].state, "SHADOW") == 0;
        n_canaries += strcmp(state->candidates[i].state, "CANARY") == 0;
        n_compared += strcmp(state->candidates[i].state, "AB") == 0;
        n_evaluating += weir_policy_evaluation_of(state->candidates[i].evaluation)->job != NULL;
    }
    for (size_t i = 0; i < state->n_pipelines; i++) {
        const struct weir_ion_pipeline *pipeline = &state->pipelines[i];
        n_rows += pipeline->runs.runs_left > 0;
        n_freezes += strcmp(pipeline->state, "FREEZING") == 0;
        n_held += pipeline->runs.pending_cause != NULL && !is_running(pipeline);
        n_restarts += pipeline->restart_ms > 0;
        n_measured += pipeline->runs.measured_version > 0 && is_running(pipeline);
        n_pauses += pipeline->paused_by != NULL;
    }
    n_sandboxes += state->ion.mode != NULL && strcmp(state->ion.mode, "sandbox") == 0;
}

static void play(uint64_t seed, bool measures)
{
    struct world world = {.now_ms = 1000000, .measures = measures};
    weir_rng_init(&world.rng, seed, 0);
    struct weir_ion_state state, replayed;
    weir_ion_state_new("x", &arena, &state);
    weir_ion_state_new("x", &arena, &replayed);
    state.members = replayed.members = members;
    state.n_members = replayed.n_members = 2;
    struct weir_ion_event events[N_STEPS];
    struct weir_ion_state given[N_STEPS]; /**< Its reports are those that the event came with. */
    int64_t times[N_STEPS];
    char *texts[N_STEPS], *acts[N_STEPS];
    weir_status statuses[N_STEPS];
    struct checks *checks = WEIR_ARENA_NEW(&arena, struct checks);
    for (int i = 0; i < N_STEPS; i++) {
        world.now_ms += (int64_t)weir_rng_below(&world.rng, 3000000);
        events[i] = i == 0 ? random_apply(&world) : random_event(&world, &state);
        times[i] = world.now_ms;
        given[i] = state;
        statuses[i] = play_one(&state, &events[i], times[i], checks,
                               i > 0 ? texts[i - 1] : dump_state(&state, &arena), &acts[i]);
        texts[i] = dump_state(&state, &arena);
        count_states(&state);
    }
    for (int i = 0; i < N_STEPS; i++) {
        struct weir_ion_actions actions = {0};
        struct weir_error err;
        replayed.replicas = given[i].replicas;
        replayed.n_replicas = given[i].n_replicas;
        REQUIRE(weir_ion_step(&replayed, &events[i], times[i], &arena, &actions, &err) ==
                statuses[i]);
        REQUIRE(strcmp(dump_actions(&actions, &arena), acts[i]) == 0);
        REQUIRE(strcmp(dump_state(&replayed, &arena), texts[i]) == 0);
    }
}

/* With sanitizers fewer histories are played: then as many more as it takes to come to what is rare. */
static bool has_seen_the_rare(void)
{
    return n_compared > 20 && n_freezes > 5 && n_restarts > 5;
}

START_TEST(random_histories_keep_the_rules_and_replay_the_same)
{
    uint64_t seed = 1;
    while (seed <= N_SEEDS || (seed <= MOST_SEEDS && !has_seen_the_rare())) {
        weir_arena_init(&arena, 0);
        play(seed++, false);
        weir_arena_fini(&arena);
    }
    printf("seeds 1 to %d\n", (int)seed - 1);
    printf("%d shadows, %d canaries, %d compared, %d sandboxes, %d rows of trainings, %d pauses\n",
           n_shadows, n_canaries, n_compared, n_sandboxes, n_rows, n_pauses);
    ck_assert_int_gt(n_shadows, 20);
    ck_assert_int_gt(n_canaries, 20);
    ck_assert_int_gt(n_compared, 20);
    ck_assert_int_gt(n_sandboxes, 20);
    ck_assert_int_gt(n_rows, 20);
    ck_assert_int_gt(n_pauses, 20);
    printf("%d freezes, %d held, %d to start again, %d measured\n", n_freezes, n_held, n_restarts,
           n_measured);
    ck_assert_int_gt(n_freezes, 5);
    ck_assert_int_gt(n_held, 20);
    ck_assert_int_gt(n_restarts, 5);
    ck_assert_int_gt(n_measured, 20);
}

END_TEST

START_TEST(random_measurements_keep_the_rules_and_replay_the_same)
{
    uint64_t seed = 1001;
    while (seed <= 1000 + N_SEEDS / 2 || (seed <= 1000 + MOST_SEEDS && n_surely_better <= 2)) {
        weir_arena_init(&arena, 0);
        play(seed++, true);
        weir_arena_fini(&arena);
    }
    printf("seeds 1001 to %d\n", (int)seed - 1);
    printf("%d times measured, %d surely better\n", n_evaluating, n_surely_better);
    ck_assert_int_gt(n_evaluating, 100);
    ck_assert_int_gt(n_surely_better, 2);
}

END_TEST

/** The oracle of rollback: a stack of what served, without what was rolled back. */
struct stack {
    int64_t items[256];
    size_t n;
};

static void stack_remove(struct stack *stack, int64_t version)
{
    size_t n = 0;
    for (size_t i = 0; i < stack->n; i++) {
        if (stack->items[i] != version) {
            stack->items[n++] = stack->items[i];
        }
    }
    stack->n = n;
}

START_TEST(rollbacks_go_where_a_stack_of_served_versions_says)
{
    uint64_t seed = 99;
    printf("seed %" PRIu64 "\n", seed);
    struct weir_rng rng;
    weir_rng_init(&rng, seed, 0);
    for (int i_trial = 0; i_trial < 200; i_trial++) {
        weir_arena_init(&arena, 0);
        struct weir_ion_state state;
        struct weir_ion_actions actions = {0};
        struct stack stack = {.n = 0};
        bool was_served[64] = {false};
        int64_t newest = 0;
        weir_ion_state_new("x", &arena, &state);
        struct weir_ion_event event = applied(&arena, "always-update", "{}", 1);
        REQUIRE(weir_ion_step(&state, &event, 1, &arena, &actions, NULL) == WEIR_OK);
        for (int64_t i = 0; i < 40; i++) {
            weir_status expected = WEIR_OK;
            if (weir_rng_below(&rng, 2) == 0) {
                event = model(&arena, "t", ++newest);
                stack.items[stack.n++] = newest;
                was_served[newest] = true;
            } else {
                int64_t version = weir_rng_below(&rng, 3) == 0
                                      ? (int64_t)weir_rng_below(&rng, (uint64_t)newest + 2)
                                      : 0;
                event =
                    (struct weir_ion_event){.type = WEIR_ION_EVENT_ROLLBACK, .version = version};
                int64_t current = stack.n > 0 ? stack.items[stack.n - 1] : 0;
                if (current == 0 || version == current || (version == 0 && stack.n < 2)) {
                    expected = WEIR_ERR_CONFLICT;
                } else if (version != 0 && !was_served[version]) {
                    expected = WEIR_ERR_NOT_FOUND;
                } else {
                    stack.n--;
                    if (version != 0) {
                        stack_remove(&stack, version);
                        stack.items[stack.n++] = version;
                    }
                }
            }
            REQUIRE(weir_ion_step(&state, &event, 2 + i, &arena, &actions, NULL) == expected);
            const struct weir_ion_candidate *now = serving(&state, "t:p");
            REQUIRE((now != NULL ? now->version : 0) ==
                    (stack.n > 0 ? stack.items[stack.n - 1] : 0));
        }
        weir_arena_fini(&arena);
    }
}

END_TEST

WEIR_TEST_MAIN("ion_property", random_histories_keep_the_rules_and_replay_the_same,
               random_measurements_keep_the_rules_and_replay_the_same,
               rollbacks_go_where_a_stack_of_served_versions_says)
