/* Random histories of a deployment: laws that hold after every step, and where it comes to rest. */
#include "base/rng.h"
#include "deploy/step_fixture.h"

#include <inttypes.h>

#define N_SEEDS   WEIR_TEST_TIMES(300, 40)
#define N_STEPS   150
#define N_VERSION 6
#define JOBS_MAX  64

/* What is outside of the deployment: a cluster that starts and loses jobs, versions of which some
 * cannot be loaded, requests. */
struct world {
    struct deploy_fixture f;
    struct weir_rng rng;
    bool is_bad[N_VERSION + 1];
    const char *starts[JOBS_MAX]; /* Replicas whose job is still to be made. */
    size_t n_starts;
    const char *stops[JOBS_MAX]; /* Whose job is told to end. */
    size_t n_stops;
    int64_t most;   /* replicas_max, or as many as there were when it was lowered. */
    int64_t n_load; /* Requests under way. */
    struct weir_shares live;
    int64_t revision;
};

#define REQUIRE(condition) ck_assert_msg(condition, "seed %d, step %d: " #condition, seed, i_step)

static struct weir_shares random_shares(struct world *world)
{
    int64_t a = 1 + (int64_t)weir_rng_below(&world->rng, N_VERSION);
    int64_t b = 1 + (int64_t)weir_rng_below(&world->rng, N_VERSION);
    int64_t ppm = 1 + (int64_t)weir_rng_below(&world->rng, WEIR_SHARES_PPM - 1);
    if (a == b) {
        return weir_shares_of(a);
    }
    return (struct weir_shares){
        .items = {{WEIR_MIN(a, b), ppm}, {WEIR_MAX(a, b), WEIR_SHARES_PPM - ppm}}, .n = 2};
}

static void apply_random(struct world *world)
{
    int64_t max = 1 + (int64_t)weir_rng_below(&world->rng, 5);
    int64_t min = (int64_t)weir_rng_below(&world->rng, (uint64_t)max + 1);
    struct weir_deploy_wanted wanted = wanted_of(random_shares(world), min, max);
    wanted.mirror = weir_rng_below(&world->rng, 3) == 0
                        ? 1 + (int64_t)weir_rng_below(&world->rng, N_VERSION)
                        : 0;
    world->most = WEIR_MAX(max, (int64_t)n_replicas(&world->f.state, true));
    deploy_apply(&world->f, wanted);
}

/* The replica reports all that it was told to load, ready, loading or failed as the world has it. */
static void report(struct world *world, const char *replica, bool is_done)
{
    json_t *versions = json_array();
    for (size_t i = 0; i < world->f.state.n_versions; i++) {
        int64_t version = world->f.state.versions[i].row.version;
        bool is_loading = !is_done && weir_rng_below(&world->rng, 3) == 0;
        if (!world->f.state.versions[i].is_gone) {
            json_array_append_new(versions,
                                  json_pack("{s:I,s:s}", "version", (json_int_t)version, "state",
                                            is_loading               ? "LOADING"
                                            : world->is_bad[version] ? "FAILED"
                                                                     : "READY"));
        }
    }
    deploy_report(&world->f, replica, weir_json_text(versions, &world->f.arena));
    json_decref(versions);
}

static const struct weir_deploy_replica *random_replica(struct world *world)
{
    size_t n = world->f.state.n_replicas;
    for (size_t tries = 0; n > 0 && tries < 8; tries++) {
        const struct weir_deploy_replica *replica =
            &world->f.state.replicas[weir_rng_below(&world->rng, n)];
        if (!replica->is_gone && replica->row.job != NULL) {
            return replica;
        }
    }
    return NULL;
}

/* Carry an outstanding start or stop out. */
static void carry_out(struct world *world, bool may_refuse)
{
    if (world->n_starts > 0) {
        const char *replica = world->starts[--world->n_starts];
        if (may_refuse && weir_rng_below(&world->rng, 4) == 0) {
            deploy_do(&world->f, (struct weir_deploy_event){.type = WEIR_DEPLOY_EVENT_REFUSED,
                                                            .replica = replica,
                                                            .note = "no room"});
        } else {
            deploy_started(&world->f, replica);
        }
    } else if (world->n_stops > 0) {
        deploy_ended(&world->f, world->stops[--world->n_stops], "stopped");
    }
}

static void tick(struct world *world, int64_t pass_ms)
{
    bool is_up = n_replicas(&world->f.state, false) > 0;
    deploy_tick(&world->f, pass_ms, is_up ? world->n_load : 0, is_up ? 0 : world->n_load);
}

static void happen(struct world *world)
{
    const struct weir_deploy_replica *replica = random_replica(world);
    switch (weir_rng_below(&world->rng, 8)) {
    case 0:
        apply_random(world);
        break;
    case 1:
    case 2:
        carry_out(world, true);
        break;
    case 3:
    case 4:
        if (replica != NULL) {
            report(world, replica->row.id, false);
        }
        break;
    case 5:
        if (replica != NULL && weir_rng_below(&world->rng, 2) == 0) {
            deploy_ended(&world->f, replica->row.id, "killed");
        } else if (replica != NULL) {
            deploy_do(&world->f, (struct weir_deploy_event){.type = WEIR_DEPLOY_EVENT_DOWN,
                                                            .replica = replica->row.id,
                                                            .note = "killed"});
        }
        break;
    case 6:
        world->n_load = (int64_t)weir_rng_below(&world->rng, 60);
        tick(world, (int64_t)weir_rng_below(&world->rng, 3000));
        break;
    default:
        /* Now and then the wall clock is set back. */
        tick(world, weir_rng_below(&world->rng, 20) == 0
                        ? -90000
                        : (int64_t)weir_rng_below(&world->rng, 30000));
    }
}

static void remember_actions(struct world *world, int seed, int i_step)
{
    for (size_t i = 0; i < world->f.actions.n; i++) {
        const struct weir_deploy_action *action = &world->f.actions.items[i];
        REQUIRE(world->n_starts < JOBS_MAX && world->n_stops < JOBS_MAX);
        if (action->type == WEIR_DEPLOY_ACTION_START) {
            world->starts[world->n_starts++] = action->replica;
        } else if (action->type == WEIR_DEPLOY_ACTION_STOP) {
            REQUIRE(action->job != NULL);
            for (size_t k = 0; k < world->n_stops; k++) {
                REQUIRE(strcmp(world->stops[k], action->replica) != 0); /* once is enough */
            }
            world->stops[world->n_stops++] = action->replica;
        }
    }
}

static int64_t share_of(const struct weir_shares *shares, int64_t version)
{
    for (size_t i = 0; i < shares->n; i++) {
        if (shares->items[i].version == version) {
            return shares->items[i].ppm;
        }
    }
    return 0;
}

static void check_laws(struct world *world, int seed, int i_step)
{
    const struct weir_deploy_state *state = &world->f.state;
    struct weir_shares live = weir_deploy_shares(state, true);
    int64_t n = (int64_t)n_replicas(state, true), sum = 0;
    REQUIRE(n <= world->most);
    world->most = WEIR_MAX(WEIR_MIN(world->most, n), state->deployment.replicas_max);
    for (size_t i = 0; i < live.n; i++) {
        sum += live.items[i].ppm;
        REQUIRE(!world->is_bad[live.items[i].version]);
        REQUIRE(share_of(&world->live, live.items[i].version) > 0 ||
                weir_deploy_n_ready(state, live.items[i].version) > 0);
    }
    REQUIRE(sum == 0 || sum == WEIR_SHARES_PPM);
    REQUIRE(world->live.n == 0 || live.n > 0); /* what served is never without a share again */
    REQUIRE(state->deployment.revision >= world->revision);
    REQUIRE(state->deployment.n_wanted >= state->deployment.replicas_min &&
            state->deployment.n_wanted <= state->deployment.replicas_max);
    world->live = live;
    world->revision = state->deployment.revision;
}

/* The same moment again: nothing is left to do. */
static void check_rest(struct world *world, int seed, int i_step)
{
    deploy_do(&world->f, (struct weir_deploy_event){.type = WEIR_DEPLOY_EVENT_TICK});
    REQUIRE(world->f.actions.n == 0);
    REQUIRE(!world->f.state.is_changed);
}

/* All works again and nobody asks: it comes to rest with what was asked for. */
static void check_end(struct world *world, int seed)
{
    int i_step = N_STEPS;
    const struct weir_deploy_state *state = &world->f.state;
    world->n_load = 0;
    for (int round = 0; round < 60; round++) {
        for (int i = 0; i < 20; i++) {
            carry_out(world, false);
            remember_actions(world, seed, i_step);
            check_laws(world, seed, i_step);
        }
        for (size_t i = 0; i < state->n_replicas; i++) {
            if (!state->replicas[i].is_gone && state->replicas[i].row.job != NULL) {
                report(world, state->replicas[i].row.id, true);
                remember_actions(world, seed, i_step);
                check_laws(world, seed, i_step);
            }
        }
        tick(world, 10000);
        remember_actions(world, seed, i_step);
        check_laws(world, seed, i_step);
    }
    struct weir_shares wanted = weir_deploy_shares(state, false);
    bool is_good = true;
    for (size_t i = 0; i < wanted.n; i++) {
        is_good = is_good && !world->is_bad[wanted.items[i].version];
    }
    REQUIRE((int64_t)n_replicas(state, false) == state->deployment.replicas_min);
    REQUIRE(!is_good || memcmp(&wanted, &world->live, sizeof wanted) == 0);
    REQUIRE(is_good || weir_deploy_problem(state) != NULL);
    const char *word = state->deployment.state;
    if (world->live.n == 0) {
        REQUIRE(strcmp(word, WEIR_DEPLOYMENT_FAILED) == 0);
    } else if (state->deployment.replicas_min == 0) {
        REQUIRE(strcmp(word, WEIR_DEPLOYMENT_IDLE) == 0);
    } else {
        REQUIRE(strcmp(word, WEIR_DEPLOYMENT_SERVING) == 0);
    }
}

START_TEST(random_histories_keep_the_laws_and_come_to_rest)
{
    int seed = _i;
    struct world *world = weir_xalloc(sizeof *world);
    memset(world, 0, sizeof *world);
    deploy_fixture_init(&world->f);
    weir_rng_init(&world->rng, (uint64_t)seed, 29);
    for (int i = 1; i <= N_VERSION; i++) {
        world->is_bad[i] = weir_rng_below(&world->rng, 3) == 0;
    }
    apply_random(world);
    remember_actions(world, seed, 0);
    for (int i_step = 0; i_step < N_STEPS; i_step++) {
        happen(world);
        remember_actions(world, seed, i_step);
        check_laws(world, seed, i_step);
        check_rest(world, seed, i_step);
    }
    check_end(world, seed);
    weir_arena_fini(&world->f.arena);
    free(world);
}

END_TEST

WEIR_TEST_LOOPS_MAIN("deploy_property", {random_histories_keep_the_laws_and_come_to_rest, N_SEEDS})
