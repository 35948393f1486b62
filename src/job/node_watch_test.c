/* Whose silence it is: nodes that speak every few seconds, a server that is away, a network that is cut and nodes
 * that die, in random order, against who was really dead. The seed is printed when a law is broken. */
#include "job/node_watch.h"

#include "job/job.h"

#include "base/rng.h"
#include "base/test_main.h"

#include <check.h>

#define N_HISTORIES WEIR_TEST_TIMES(400, 40)
#define N_NODES_MAX 9
#define N_STEPS     3000 /* of STEP_MS */
#define STEP_MS     500

static struct weir_rng rng;

/* What really is. */
struct world {
    struct weir_node_watch watch;
    int64_t now_ms, cut_until_ms, calm_ms; /* calm: since then the server hears all that speak */
    int64_t heard_ms[N_NODES_MAX], next_ms[N_NODES_MAX], dead_ms[N_NODES_MAX];
    size_t n, n_dead;
};

static bool is_lost(const struct world *world, size_t i)
{
    const struct weir_node node = {.last_seen_ms = world->heard_ms[i]};
    return weir_node_is_lost(&node, world->now_ms, world->watch.since_ms, weir_node_lost_ms());
}

static void speak(struct world *world)
{
    for (size_t i = 0; i < world->n; i++) {
        if (world->dead_ms[i] == 0 && world->now_ms >= world->next_ms[i]) {
            bool is_heard = world->now_ms >= world->cut_until_ms;
            world->heard_ms[i] = is_heard ? world->now_ms : world->heard_ms[i];
            /* After a report that did not arrive the agent tries again, at the latest after 5 s. */
            world->next_ms[i] = world->now_ms + 4500 + (int64_t)weir_rng_below(&rng, 500);
        }
    }
}

static void something_happens(struct world *world)
{
    uint64_t what = weir_rng_below(&rng, 400);
    if (what == 0) {
        world->now_ms += 5000 + (int64_t)weir_rng_below(&rng, 120000); /* the server is away */
        weir_node_watch_pause(&world->watch, world->now_ms);
        world->calm_ms = WEIR_MAX(world->calm_ms, world->now_ms);
    } else if (what == 1) {
        world->cut_until_ms = world->now_ms + (int64_t)weir_rng_below(&rng, 200000);
        world->calm_ms = WEIR_MAX(world->calm_ms, world->cut_until_ms);
    } else if (what == 2) {
        int64_t by_ms = (int64_t)weir_rng_below(&rng, 172800000) - 86400000; /* the clock is set */
        int64_t *times[] = {&world->now_ms, &world->cut_until_ms, &world->calm_ms};
        for (size_t i = 0; i < WEIR_ARRAY_LEN(times); i++) {
            *times[i] += by_ms;
        }
        for (size_t i = 0; i < world->n; i++) {
            world->heard_ms[i] += by_ms;
            world->next_ms[i] += by_ms;
            world->dead_ms[i] += world->dead_ms[i] > 0 ? by_ms : 0;
        }
        weir_node_watch_move(&world->watch, by_ms);
    } else if (what == 3 && world->n_dead + 1 < world->n &&
               world->now_ms - world->calm_ms > 60000) {
        size_t i = (size_t)weir_rng_below(&rng, world->n);
        world->n_dead += world->dead_ms[i] == 0;
        world->dead_ms[i] = world->dead_ms[i] == 0 ? world->now_ms : world->dead_ms[i];
        world->calm_ms = world->now_ms;
    }
}

START_TEST(nobody_is_lost_who_speaks_and_who_died_alone_is)
{
    struct world world = {.now_ms = 1000000000000, .n = 2 + (size_t)(_i % (N_NODES_MAX - 1))};
    weir_rng_init(&rng, (uint64_t)_i, 0);
    for (size_t i = 0; i < world.n; i++) {
        world.heard_ms[i] = world.now_ms - (int64_t)weir_rng_below(&rng, 600000) * (int64_t)(i % 2);
        world.next_ms[i] = world.now_ms + (int64_t)weir_rng_below(&rng, 5000);
    }
    weir_node_watch_start(&world.watch, world.now_ms);
    for (int step = 0; step < N_STEPS; step++) {
        speak(&world);
        (void)weir_node_watch_look(&world.watch, world.heard_ms, world.n, world.now_ms);
        for (size_t i = 0; i < world.n; i++) {
            ck_assert_msg(world.dead_ms[i] > 0 || !is_lost(&world, i),
                          "seed %d, step %d: node %zu of %zu lives and is lost", _i, step, i,
                          world.n);
            /* Dead, and nothing else has happened for its full time and the hold of a cut. */
            bool is_due =
                world.dead_ms[i] > 0 && world.now_ms - WEIR_MAX(world.dead_ms[i], world.calm_ms) >
                                            WEIR_NODE_CUT_MS + 2 * weir_node_lost_ms();
            ck_assert_msg(!is_due || is_lost(&world, i), "seed %d, step %d: node %zu is dead", _i,
                          step, i);
        }
        something_happens(&world);
        world.now_ms += STEP_MS;
    }
}

END_TEST

/* Some fall silent at a time: until when no node is lost. */
START_TEST(more_than_half_at_once_is_the_server_and_less_is_the_nodes)
{
    static const struct {
        size_t n, n_silent;
        int64_t lost_ms; /* after the last word; 0: never while nobody else speaks */
    } rows[] = {{1, 1, 15000}, {2, 1, 15000}, {2, 2, 0},      {3, 1, 15000}, {3, 2, 310000},
                {3, 3, 0},     {4, 2, 15000}, {4, 3, 310000}, {9, 9, 0}};

    for (size_t row = 0; row < WEIR_ARRAY_LEN(rows); row++) {
        struct world world = {.now_ms = 1000000000000, .n = rows[row].n};
        weir_node_watch_start(&world.watch, world.now_ms - 60000);
        int64_t start_ms = world.now_ms, lost_ms = 0;
        for (; world.now_ms < start_ms + 1000000; world.now_ms += STEP_MS) {
            for (size_t i = 0; i < world.n; i++) {
                bool speaks = i >= rows[row].n_silent || world.now_ms == start_ms;
                world.heard_ms[i] = speaks ? world.now_ms : world.heard_ms[i];
            }
            (void)weir_node_watch_look(&world.watch, world.heard_ms, world.n, world.now_ms);
            if (lost_ms == 0 && is_lost(&world, 0)) {
                lost_ms = world.now_ms - start_ms;
            }
        }
        ck_assert_msg(lost_ms == rows[row].lost_ms, "%zu of %zu: %lld", rows[row].n_silent,
                      rows[row].n, (long long)lost_ms);
    }
}

END_TEST

int main(void)
{
    Suite *suite = suite_create("node_watch");
    TCase *tcase = tcase_create("node_watch");
    tcase_add_loop_test(tcase, nobody_is_lost_who_speaks_and_who_died_alone_is, 0, N_HISTORIES);
    tcase_add_test(tcase, more_than_half_at_once_is_the_server_and_less_is_the_nodes);
    suite_add_tcase(suite, tcase);
    return weir_test_run(suite);
}
