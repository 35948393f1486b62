/** Rankings of thousands of nodes in parts, against looking at all of them. */
#include "sched/place/fgd_ranking.h"

#include "base/macros.h"
#include "base/rng.h"
#include "base/test_main.h"

#include <stdlib.h>

#define N_NODES 3000
#define N_PARTS 3

struct world {
    struct weir_rng rng;
    uint8_t parts[N_NODES];
    int64_t costs[N_NODES];
    struct fgd_layout layout;
    struct fgd_ranking ranking;
};

static void open_world(struct world *world, uint64_t seed)
{
    weir_rng_init(&world->rng, seed, 29);
    for (int32_t i = 0; i < N_NODES; i++) {
        world->parts[i] = (uint8_t)weir_rng_below(&world->rng, N_PARTS);
        world->costs[i] = FGD_RANKING_NONE;
    }
    ck_assert_int_eq(fgd_layout_init(&world->layout, N_NODES, world->parts, N_PARTS), WEIR_OK);
    ck_assert_int_eq(fgd_ranking_init(&world->ranking, &world->layout), WEIR_OK);
}

static void close_world(struct world *world)
{
    fgd_ranking_fini(&world->ranking);
    fgd_layout_fini(&world->layout);
}

static int32_t first_slowly(const struct world *world, uint32_t open)
{
    int32_t best = -1;
    for (int32_t i = 0; i < N_NODES; i++) {
        if ((open >> world->parts[i] & 1) != 0 && world->costs[i] != FGD_RANKING_NONE &&
            (best < 0 || world->costs[i] < world->costs[best])) {
            best = i;
        }
    }
    return best;
}

static void expect_first(const struct world *world, uint64_t seed)
{
    for (uint32_t open = 0; open < 1U << N_PARTS; open++) {
        ck_assert_msg(fgd_ranking_first(&world->ranking, open) == first_slowly(world, open),
                      "seed %d, parts %x: %d, slowly %d", (int)seed, open,
                      (int)fgd_ranking_first(&world->ranking, open),
                      (int)first_slowly(world, open));
    }
}

/** Few costs, so that many are equal. */
static int64_t draw_cost(struct world *world)
{
    return weir_rng_below(&world->rng, 4) == 0 ? FGD_RANKING_NONE
                                               : (int64_t)weir_rng_below(&world->rng, 40) - 5;
}

START_TEST(the_first_is_the_first_of_all_whatever_is_set)
{
    for (uint64_t seed = 1; seed <= 4; seed++) {
        struct world world;
        open_world(&world, seed);
        expect_first(&world, seed);
        for (int round = 0; round < 2000; round++) {
            int32_t node = (int32_t)weir_rng_below(&world.rng, N_NODES);
            int32_t first = fgd_ranking_first(&world.ranking, UINT32_MAX);
            node = round % 3 == 0 && first >= 0 ? first : node; /* The least goes, mostly. */
            world.costs[node] = draw_cost(&world);
            fgd_ranking_set(&world.ranking, node, world.costs[node]);
            ck_assert_int_eq(fgd_ranking_cost(&world.ranking, node), world.costs[node]);
            if (round % 20 == 0) {
                expect_first(&world, seed);
            }
        }
        close_world(&world);
    }
}

END_TEST

START_TEST(what_is_put_counts_when_it_is_settled)
{
    struct world world;
    open_world(&world, 7);
    fgd_ranking_set(&world.ranking, 5, -100);
    fgd_ranking_clear(&world.ranking);
    expect_first(&world, 7);
    for (int32_t i = 0; i < N_NODES; i++) {
        world.costs[i] = draw_cost(&world);
        fgd_ranking_put(&world.ranking, i, world.costs[i]);
    }
    fgd_ranking_sort(&world.ranking);
    expect_first(&world, 7);
    close_world(&world);
}

END_TEST

WEIR_TEST_MAIN("fgd_ranking", the_first_is_the_first_of_all_whatever_is_set,
               what_is_put_counts_when_it_is_settled)
