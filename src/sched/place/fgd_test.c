/*
 * Fragmentation against the paper's definition, written out here in double precision with plain
 * loops over tasks, not kinds; and laws that hold whatever the mix.
 */
#include "sched/place/fgd.h"

#include "base/macros.h"
#include "base/rng.h"
#include "base/test_main.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define N_CONSTRAINTS 3
#define N_CLASSES     4
#define KINDS         40
#define DEVICES       8
#define SEEDS         300

struct world {
    struct fgd_kind kinds[KINDS];
    int32_t n_kinds;
    struct fgd_class classes[N_CLASSES];
    bool allows[N_CLASSES][N_CONSTRAINTS];
    struct fgd_mix mix;
};

static int64_t below(struct weir_rng *rng, uint64_t n)
{
    return (int64_t)weir_rng_below(rng, n);
}

static void make_classes(struct world *world, struct weir_rng *rng)
{
    for (int c = 0; c < N_CLASSES; c++) {
        for (int i = 0; i < N_CONSTRAINTS; i++) {
            world->allows[c][i] = i == 0 || below(rng, 2) == 0;
        }
        world->classes[c] = (struct fgd_class){.device_memory_bytes = (c % 3) * 40000,
                                               .is_whole_only = c == 3,
                                               .allows = world->allows[c]};
    }
}

static void make_world(struct world *world, struct weir_rng *rng, bool is_whole, int32_t depth_pct)
{
    memset(world, 0, sizeof *world);
    make_classes(world, rng);
    world->n_kinds = 1 + (int32_t)below(rng, KINDS);
    for (int32_t i = 0; i < world->n_kinds; i++) {
        struct fgd_kind *kind = &world->kinds[i];
        *kind = (struct fgd_kind){.cpu_milli = below(rng, 5) * 4000,
                                  .memory_bytes = below(rng, 4) * 1000,
                                  .n_devices = 1 << below(rng, 4),
                                  .device_milli = 1000,
                                  .constraint = (int32_t)below(rng, N_CONSTRAINTS),
                                  .count = 1 + below(rng, 9)};
        int64_t choice = is_whole ? 2 : below(rng, 4);
        if (choice == 0) {
            kind->device_milli = 0;
            kind->device_memory_bytes = 1 + below(rng, 60000);
        } else if (choice == 1) {
            kind->device_milli = 100 + 50 * (int32_t)below(rng, 17);
            kind->n_devices = 1;
        }
    }
    ck_assert_int_eq(
        fgd_mix_init(&world->mix, world->kinds, world->n_kinds, world->classes, depth_pct), 0);
}

static void make_state(struct weir_rng *rng, bool is_whole, struct fgd_state *out, int32_t *pool)
{
    *out = (struct fgd_state){.class_ = (int32_t)below(rng, N_CLASSES),
                              .n_devices = (int32_t)below(rng, DEVICES + 1),
                              .cpu_milli = below(rng, 40) * 1000,
                              .memory_bytes = below(rng, 20) * 500,
                              .free = pool};
    for (int32_t d = 0; d < out->n_devices; d++) {
        int32_t left = below(rng, 2) == 0 ? 1000 : is_whole ? 0 : (int32_t)below(rng, 1001), i = d;
        for (; i > 0 && pool[i - 1] < left; i--) {
            pool[i] = pool[i - 1];
        }
        pool[i] = left;
    }
}

/** Share of a device that the task needs here, 0…1; above 1 if it cannot be. */
static double share_of(const struct fgd_class *class_, const struct fgd_kind *kind)
{
    double share = kind->device_milli / 1000.0;
    if (kind->device_milli == 0) {
        share = class_->device_memory_bytes == 0 ? 2
                                                 : ceil((double)kind->device_memory_bytes * 1000 /
                                                        (double)class_->device_memory_bytes) /
                                                       1000;
    }
    return class_->is_whole_only && share < 1 ? 2 : share;
}

/** F_n(M) of the paper: the mean over the tasks of what is free and no use to them, in devices. */
static double paper(const struct world *world, const struct fgd_state *state)
{
    double sum = 0, n = 0;
    for (int32_t i = 0; i < world->n_kinds; i++) {
        const struct fgd_kind *kind = &world->kinds[i];
        double share = share_of(&world->classes[state->class_], kind), too_small = 0, all = 0;
        int n_fit = 0;
        for (int32_t d = 0; d < state->n_devices; d++) {
            double left = state->free[d] / 1000.0;
            bool has_room = left + 1e-9 >= share;
            n_fit += has_room;
            all += left;
            too_small += has_room ? 0 : left;
        }
        bool is_possible = n_fit >= kind->n_devices && kind->cpu_milli <= state->cpu_milli &&
                           kind->memory_bytes <= state->memory_bytes &&
                           world->allows[state->class_][kind->constraint];
        sum += (double)kind->count * (is_possible ? too_small : all);
        n += (double)kind->count;
    }
    return sum / n;
}

static double in_devices(int64_t fragmentation)
{
    return (double)fragmentation / (double)FGD_WEIGHT_ONE / 1000;
}

static int64_t room_of(const struct fgd_state *state)
{
    int64_t room = 0;
    for (int32_t d = 0; d < state->n_devices; d++) {
        room += state->free[d];
    }
    return room;
}

START_TEST(fragmentation_is_the_papers)
{
    struct weir_rng rng;
    struct world world;
    int32_t pool[DEVICES];
    struct fgd_state state;
    for (int seed = 1; seed <= SEEDS; seed++) {
        weir_rng_init(&rng, (uint64_t)seed, 0);
        make_world(&world, &rng, false, 0);
        for (int i = 0; i < 50; i++) {
            make_state(&rng, false, &state, pool);
            double ours = in_devices(fgd_fragmentation(&world.mix, &state));
            double theirs = paper(&world, &state);
            ck_assert_msg(fabs(ours - theirs) < 1e-4, "seed %d: %f, by definition %f", seed, ours,
                          theirs);
        }
        fgd_mix_fini(&world.mix);
    }
}

END_TEST

/** What taking the devices makes of the state, by the definition; the least over all choices. */
static double least_after(const struct world *world, const struct fgd_state *state,
                          const struct fgd_kind *task)
{
    double least = INFINITY;
    int64_t need = (int64_t)lround(share_of(&world->classes[state->class_], task) * 1000);
    for (int32_t d = 0; d < state->n_devices; d++) {
        int32_t pool[DEVICES];
        struct fgd_state after = *state;
        after.free = memcpy(pool, state->free, (size_t)state->n_devices * sizeof *pool);
        after.cpu_milli -= task->cpu_milli;
        after.memory_bytes -= task->memory_bytes;
        if (pool[d] >= need) {
            pool[d] -= (int32_t)need;
            least = fmin(least, paper(world, &after)); /* Which does not ask for an order. */
        }
    }
    return least;
}

START_TEST(the_device_that_is_taken_is_the_one_that_fragments_least)
{
    struct weir_rng rng;
    struct world world;
    int32_t pool[DEVICES], free_of, n_taken = 0;
    struct fgd_state state;
    for (int seed = 1; seed <= SEEDS; seed++) {
        weir_rng_init(&rng, (uint64_t)seed, 1);
        make_world(&world, &rng, false, 0);
        for (int i = 0; i < 20; i++) {
            make_state(&rng, false, &state, pool);
            struct fgd_kind task = world.kinds[below(&rng, (uint64_t)world.n_kinds)];
            task.n_devices = 1;
            double least = least_after(&world, &state, &task);
            int64_t room = room_of(&state);
            int64_t need =
                fgd_need(&world.classes[state.class_], task.device_milli, task.device_memory_bytes);
            int64_t value =
                fgd_take(&world.mix, &state, task.cpu_milli, task.memory_bytes, 1, need, &free_of);
            if (value == INT64_MIN) {
                ck_assert_int_eq(room_of(&state), room);
                continue;
            }
            n_taken++;
            ck_assert_int_eq(room_of(&state), room - need);
            ck_assert_int_ge(free_of, need);
            for (int32_t d = 1; d < state.n_devices; d++) {
                ck_assert_int_ge(state.free[d - 1], state.free[d]);
            }
            double ours = in_devices(fgd_fragmentation(&world.mix, &state));
            ck_assert_msg(fabs(ours - least) < 1e-4, "seed %d: %f, least is %f", seed, ours, least);
        }
        fgd_mix_fini(&world.mix);
    }
    ck_assert_int_gt(n_taken, SEEDS);
}

END_TEST

START_TEST(several_devices_are_different_ones)
{
    struct weir_rng rng;
    struct world world;
    int32_t pool[DEVICES], before[DEVICES], free_of;
    struct fgd_state state;
    for (int seed = 1; seed <= SEEDS; seed++) {
        weir_rng_init(&rng, (uint64_t)seed, 2);
        make_world(&world, &rng, false, 0);
        make_state(&rng, false, &state, pool);
        memcpy(before, pool, sizeof before);
        int32_t n = 2 + (int32_t)below(&rng, 3);
        int64_t need = 1 + below(&rng, 400);
        int32_t n_fit = 0, n_whole = 0, n_whole_before = 0;
        if (fgd_take(&world.mix, &state, 0, 0, n, need, &free_of) != INT64_MIN) {
            int64_t taken = 0;
            for (int32_t d = 0; d < state.n_devices; d++) {
                taken += (int64_t)before[d] - pool[d];
                n_fit += before[d] >= need;
                n_whole_before += before[d] == 1000;
                n_whole += pool[d] == 1000;
                ck_assert_int_ge(pool[d], 0);
            }
            ck_assert_int_eq(taken, need * n);
            ck_assert_int_ge(n_fit, n);
            if (n_whole_before == n_fit) { /* All come from whole ones, then. */
                ck_assert_int_eq(n_whole, n_whole_before - n);
            }
        }
        fgd_mix_fini(&world.mix);
    }
}

END_TEST

START_TEST(fragmentation_lies_between_nothing_and_what_is_free)
{
    struct weir_rng rng;
    struct world world;
    int32_t pool[DEVICES];
    int64_t usable[KINDS];
    struct fgd_state state;
    for (int seed = 1; seed <= SEEDS; seed++) {
        weir_rng_init(&rng, (uint64_t)seed, 3);
        make_world(&world, &rng, false, (int32_t)below(&rng, 101));
        for (int32_t k = 0; k < world.mix.n_kinds; k++) {
            usable[k] = below(&rng, 100000);
        }
        fgd_weigh(&world.mix, usable, 100000);
        for (int i = 0; i < 50; i++) {
            make_state(&rng, false, &state, pool);
            int64_t fragmentation = fgd_fragmentation(&world.mix, &state);
            ck_assert_int_ge(fragmentation, 0);
            ck_assert_int_le(fragmentation, FGD_WEIGHT_ONE * room_of(&state));
        }
        fgd_mix_fini(&world.mix);
    }
}

END_TEST

START_TEST(a_mix_of_single_whole_devices_fragments_nothing_on_whole_ones)
{
    const bool allows[] = {true};
    const struct fgd_class class_ = {.allows = allows};
    const struct fgd_kind kind = {.n_devices = 1, .device_milli = 1000, .count = 7};
    struct fgd_mix mix;
    int32_t pool[] = {1000, 1000, 1000, 0};
    struct fgd_state state = {.n_devices = 4, .free = pool};
    ck_assert_int_eq(fgd_mix_init(&mix, &kind, 1, &class_, 0), WEIR_OK);
    ck_assert_int_eq(fgd_fragmentation(&mix, &state), 0);
    pool[2] = 999;
    ck_assert_int_eq(fgd_fragmentation(&mix, &state), 999 * FGD_WEIGHT_ONE);
    fgd_mix_fini(&mix);
}

END_TEST

START_TEST(cpus_for_one_task_do_not_make_eight_devices_usable)
{
    const bool allows[] = {true};
    const struct fgd_class class_ = {.allows = allows};
    const struct fgd_kind kind = {
        .n_devices = 1, .device_milli = 1000, .cpu_milli = 8000, .count = 1};
    struct fgd_mix mix;
    int32_t pool[] = {1000, 1000, 1000, 1000, 1000, 1000, 1000, 1000};
    struct fgd_state state = {.n_devices = 8, .free = pool, .cpu_milli = 16000};
    ck_assert_int_eq(fgd_mix_init(&mix, &kind, 1, &class_, 0), WEIR_OK);
    ck_assert_int_eq(fgd_fragmentation(&mix, &state), 0);
    fgd_mix_fini(&mix);
    ck_assert_int_eq(fgd_mix_init(&mix, &kind, 1, &class_, 100), WEIR_OK);
    ck_assert_int_eq(fgd_fragmentation(&mix, &state), 6000 * FGD_WEIGHT_ONE);
    fgd_mix_fini(&mix);
}

END_TEST

START_TEST(what_is_scarce_weighs_more)
{
    const bool allows[] = {true, true};
    const struct fgd_class class_ = {.allows = allows};
    const struct fgd_kind kinds[] = {
        {.n_devices = 1, .device_milli = 1000, .count = 1, .constraint = 0},
        {.n_devices = 1, .device_milli = 1000, .count = 1, .constraint = 1}};
    const int64_t room = 16000000, usable[] = {room, 1000000 - 20000};
    struct fgd_mix mix;
    ck_assert_int_eq(fgd_mix_init(&mix, kinds, 2, &class_, 0), WEIR_OK);
    ck_assert_int_eq(mix.weights[0], mix.weights[1]);
    fgd_weigh(&mix, usable, room);
    double ratio = (double)mix.weights[1] / (double)mix.weights[0];
    ck_assert_msg(fabs(ratio - 8) < 0.02, "16 times scarcer weighs 16^(3/4): %f", ratio);
    fgd_mix_fini(&mix);
}

END_TEST

START_TEST(a_mix_of_very_many_kinds_leaves_none_out)
{
    enum { N = 20000 };

    const bool allows[] = {true};
    const struct fgd_class class_ = {.allows = allows};
    struct fgd_kind *kinds = calloc(N, sizeof *kinds);
    ck_assert_ptr_nonnull(kinds);
    struct weir_rng rng;
    weir_rng_init(&rng, 5, 0);
    for (int i = 0; i < N; i++) {
        kinds[i] = (struct fgd_kind){.n_devices = i % 1000 == 0 ? 8 : 1,
                                     .device_milli = 1000,
                                     .cpu_milli = 1 + below(&rng, 1000000),
                                     .memory_bytes = 1 + below(&rng, 1000000000),
                                     .count = 1};
    }
    struct fgd_mix mix;
    ck_assert_int_eq(fgd_mix_init(&mix, kinds, N, &class_, FGD_DEPTH_PCT), WEIR_OK);
    int64_t count = 0, n_large = 0;
    for (int32_t i = 0; i < mix.n_kinds; i++) {
        count += mix.kinds[i].count;
        n_large += mix.kinds[i].n_devices == 8 ? mix.kinds[i].count : 0;
    }
    ck_assert_int_le(mix.n_kinds, FGD_KINDS_MAX);
    ck_assert_int_eq(count, N);
    ck_assert_int_eq(n_large, N / 1000);
    fgd_mix_fini(&mix);
    free(kinds);
}

END_TEST

START_TEST(the_cache_changes_no_value)
{
    struct weir_rng rng;
    struct world world;
    int32_t pool[DEVICES];
    struct fgd_state state;
    weir_rng_init(&rng, 8, 4);
    make_world(&world, &rng, false, FGD_DEPTH_PCT);
    int64_t *first = calloc(60000, sizeof *first);
    ck_assert_ptr_nonnull(first);
    for (int round = 0; round < 2; round++) { /* More states than it holds. */
        weir_rng_init(&rng, 8, 5);
        for (int i = 0; i < 60000; i++) {
            make_state(&rng, false, &state, pool);
            int64_t value = fgd_value(&world.mix, &state);
            ck_assert(round == 0 || first[i] == value);
            first[i] = value;
        }
    }
    free(first);
    fgd_mix_fini(&world.mix);
}

END_TEST

WEIR_TEST_MAIN("fgd", fragmentation_is_the_papers,
               the_device_that_is_taken_is_the_one_that_fragments_least,
               several_devices_are_different_ones,
               fragmentation_lies_between_nothing_and_what_is_free,
               a_mix_of_single_whole_devices_fragments_nothing_on_whole_ones,
               cpus_for_one_task_do_not_make_eight_devices_usable, what_is_scarce_weighs_more,
               a_mix_of_very_many_kinds_leaves_none_out, the_cache_changes_no_value)
