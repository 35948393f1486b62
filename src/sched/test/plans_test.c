/*
 * Plans of before. Random clusters live through a few rounds of plans by each profile, and what each
 * plan says is compared with what the version before said, a digest a cluster, in
 * tests/corpus/plans/: of the profiles "default" and "kai", and of "default" without a reserve. A clean-up changes none of them. Where a change means to, look at
 * the plans that differ first: WEIR_PLANS_SHOW=SEED prints those of a cluster, here and in a
 * checkout of before; WEIR_PLANS_WRITE=1 then writes the digests.
 */
#include "base/macros.h"
#include "base/test_main.h"
#include "sched/test/test_digest.h"
#include "sched/test/test_full.h"
#include "sched/test/test_workload.h"

#include <inttypes.h>
#include <stdio.h>

#define N_SEEDS  400
#define N_ROUNDS 4
#define N_NAMED  20 /* Seeds that a failure names. */
#define STRIDE   WEIR_TEST_TIMES(1, 8)

static const struct {
    const char *corpus, *profile;
    bool has_no_reserve; /* Nothing is kept for the first of a queue that was not served. */
} profiles[] = {{"default", "default", false}, {"in-order", "default", true}, {"kai", "kai", true}};

static void show(const struct weir_sched_plan *plan, int seed, int round)
{
    fprintf(stderr, "seed %d, round %d:\n", seed, round);
    for (int32_t i = 0; i < plan->n_actions; i++) {
        const struct weir_sched_action *action = &plan->actions[i];
        fprintf(stderr, "  action %d: task %d, node %d, reason %d, by job %d\n", (int)action->kind,
                action->task, action->node, (int)action->reason, action->by_job);
    }
    for (int32_t i = 0; i < plan->n_waits; i++) {
        const struct weir_sched_wait *wait = &plan->waits[i];
        fprintf(stderr, "  job %d waits: code %d, starts at %" PRId64 " ms\n", wait->job,
                (int)wait->code, wait->expected_start_ms);
    }
}

/** Every second cluster has all that a snapshot can have. */
static uint64_t digest_of(const struct weir_sched_profile *profile, int seed)
{
    const char *shown = getenv("WEIR_PLANS_SHOW");
    bool is_shown = shown != NULL && strtol(shown, NULL, 10) == seed;
    struct test_cluster cluster;
    struct weir_rng rng;
    weir_rng_init(&rng, (uint64_t)seed, 23);
    test_cluster_random(&cluster, &rng, 8);
    test_workload_random(&cluster, &rng);
    if (seed % 2 == 1) {
        test_full_random(&cluster, &rng);
    }
    uint64_t digest = 1;
    for (int round = 0; round < N_ROUNDS; round++) {
        struct weir_sched_plan *plan = test_plan(&cluster, profile);
        ck_assert_ptr_nonnull(plan);
        if (is_shown) {
            show(plan, seed, round);
        }
        digest = test_digest_plan(digest, plan);
        test_workload_apply(&cluster, plan, &rng);
        weir_sched_plan_destroy(plan);
    }
    test_cluster_fini(&cluster);
    return digest;
}

static void open_corpus(const char *name, const char *mode, FILE **out)
{
    char path[512];
    snprintf(path, sizeof path, "%s/plans/%s.txt", WEIR_CORPUS, name);
    *out = fopen(path, mode);
    ck_assert_msg(*out != NULL, "cannot open %s", path);
}

static void write_corpus(const char *name, const struct weir_sched_profile *profile)
{
    FILE *file;
    open_corpus(name, "w", &file);
    for (int seed = 0; seed < N_SEEDS; seed++) {
        fprintf(file, "%d %016" PRIx64 "\n", seed, digest_of(profile, seed));
    }
    ck_assert_int_eq(fclose(file), 0);
}

/** @return How many clusters have other plans; each is named, up to N_NAMED. */
static int compare_corpus(const char *name, const struct weir_sched_profile *profile)
{
    FILE *file;
    char line[64];
    int n_seeds = 0, n_other = 0;
    open_corpus(name, "r", &file);
    while (fgets(line, sizeof line, file) != NULL) {
        char *end;
        int seed = (int)strtol(line, &end, 10);
        if (seed % STRIDE == 0 && strtoull(end, NULL, 16) != digest_of(profile, seed) &&
            n_other++ < N_NAMED) {
            fprintf(stderr, "profile %s, seed %d: the plans are others\n", name, seed);
        }
        n_seeds++;
    }
    ck_assert_int_eq(fclose(file), 0);
    ck_assert_int_eq(n_seeds, N_SEEDS);
    return n_other;
}

START_TEST(plans_are_those_of_the_version_before)
{
    struct weir_sched_profile profile;
    const char *corpus = profiles[_i].corpus;
    ck_assert_int_eq(weir_sched_profile_named(profiles[_i].profile, &profile, NULL), WEIR_OK);
    if (profiles[_i].has_no_reserve) {
        profile.reserve_after_ms = 0;
    }
    if (getenv("WEIR_PLANS_WRITE") != NULL) {
        write_corpus(corpus, &profile);
    }
    int n_other = compare_corpus(corpus, &profile);
    ck_assert_msg(n_other == 0, "profile %s: of %d clusters %d have other plans", corpus, N_SEEDS,
                  n_other);
}

END_TEST

/* CPUs of any size, counted in units of `unit`; some queues have a share of them. */
static void give_cpus(struct test_cluster *cluster, uint64_t seed, int64_t unit)
{
    struct weir_rng rng;
    weir_rng_init(&rng, seed, 29);
    for (int32_t i = 0; i < cluster->snapshot.n_nodes; i++) {
        cluster->nodes[i].cpu_milli = unit * (4 + (int64_t)weir_rng_below(&rng, 61));
    }
    for (int32_t t = 0; t < cluster->snapshot.n_tasks; t++) {
        cluster->tasks[t].demand.cpu_milli = unit * (int64_t)weir_rng_below(&rng, 17);
    }
    for (int32_t q = 0; q < cluster->snapshot.n_queues; q++) {
        struct weir_sched_share *share = &cluster->queues[q].shares[WEIR_SCHED_CPU];
        if (weir_rng_below(&rng, 2) == 0) {
            share->quota = unit * (int64_t)weir_rng_below(&rng, 64);
            share->limit = share->quota + unit * (int64_t)weir_rng_below(&rng, 64);
        }
    }
}

static void compare_plans(const struct weir_sched_plan *l, const struct weir_sched_plan *r)
{
    ck_assert_int_eq(l->n_actions, r->n_actions);
    ck_assert_int_eq(l->n_waits, r->n_waits);
    for (int32_t i = 0; i < l->n_actions; i++) {
        ck_assert_int_eq(l->actions[i].kind, r->actions[i].kind);
        ck_assert_int_eq(l->actions[i].task, r->actions[i].task);
        ck_assert_int_eq(l->actions[i].node, r->actions[i].node);
    }
    for (int32_t i = 0; i < l->n_waits; i++) {
        ck_assert_int_eq(l->waits[i].job, r->waits[i].job);
        ck_assert_int_eq(l->waits[i].code, r->waits[i].code);
        ck_assert_int_eq(l->waits[i].expected_start_ms, r->waits[i].expected_start_ms);
    }
}

/* CPUs are planned alike whether they are counted in ones or in thousandths: no rule knows the unit. Only
 * fgd does, which rounds kinds of tasks, and of equal nodes prefers the one with fewer whole CPUs. */
START_TEST(a_finer_count_of_cpus_changes_no_plan)
{
    struct weir_sched_profile profile;
    ck_assert_int_eq(weir_sched_profile_named(profiles[_i].profile, &profile, NULL), WEIR_OK);
    profile.placement = profile.placement_cpu = "binpack";
    for (int seed = 0; seed < WEIR_TEST_TIMES(80, 16); seed++) {
        struct test_cluster clusters[2];
        struct weir_rng rngs[2];
        for (int k = 0; k < 2; k++) {
            weir_rng_init(&rngs[k], (uint64_t)seed, 23);
            test_cluster_random(&clusters[k], &rngs[k], 8);
            test_workload_random(&clusters[k], &rngs[k]);
            give_cpus(&clusters[k], (uint64_t)seed, k == 0 ? 1 : 1000);
        }
        for (int round = 0; round < N_ROUNDS; round++) {
            struct weir_sched_plan *plans[2];
            for (int k = 0; k < 2; k++) {
                plans[k] = test_plan(&clusters[k], &profile);
                ck_assert_ptr_nonnull(plans[k]);
            }
            compare_plans(plans[0], plans[1]);
            for (int k = 0; k < 2; k++) {
                test_workload_apply(&clusters[k], plans[k], &rngs[k]);
                weir_sched_plan_destroy(plans[k]);
            }
        }
        test_cluster_fini(&clusters[0]);
        test_cluster_fini(&clusters[1]);
    }
}

END_TEST

WEIR_TEST_LOOPS_MAIN("plans", {a_finer_count_of_cpus_changes_no_plan, WEIR_ARRAY_LEN(profiles)},
                     {plans_are_those_of_the_version_before, WEIR_ARRAY_LEN(profiles)})
