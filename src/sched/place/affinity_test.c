/* Who may share a node with whom: on one node or two, each outcome from the rule in the name. */
#include "base/macros.h"
#include "base/test_main.h"
#include "sched/test/test_outcome.h"

#define WAITS (-1)

static const struct weir_sched_label app = {"app", "db"};
static struct weir_sched_label zones[] = {{"zone", "a"}, {"zone", "b"}};
static struct test_cluster cluster;
static int32_t queue;

static void set_up(void)
{
    test_cluster_init(&cluster, 2, 1, 4, 8);
    queue = test_queue(&cluster, -1, 100, 1, -1);
    for (size_t i = 0; i < WEIR_ARRAY_LEN(zones); i++) {
        struct weir_sched_node *node = &cluster.nodes[test_node(&cluster, 2)];
        node->labels = &zones[i];
        node->n_labels = 1;
    }
}

static void tear_down(void)
{
    test_cluster_fini(&cluster);
}

/** Tasks of one device with the label, with these wishes. */
static struct weir_sched_task *add(int n_tasks, const char *affinity, const char *anti_affinity)
{
    struct weir_sched_job *job = test_job(&cluster, queue, 50, n_tasks, 1);
    for (int32_t t = job->first_task; t < job->first_task + n_tasks; t++) {
        cluster.tasks[t].labels = cluster.tasks[t].affinity_labels = &app;
        cluster.tasks[t].n_labels = cluster.tasks[t].n_affinity_labels = 1;
        cluster.tasks[t].affinity_key = affinity;
        cluster.tasks[t].anti_affinity_key = anti_affinity;
    }
    return &cluster.tasks[job->first_task];
}

static void expect(const char *name, const int32_t *nodes, enum weir_sched_action_kind kind)
{
    struct weir_sched_profile profile;
    ck_assert_int_eq(weir_sched_profile_named(name, &profile, NULL), WEIR_OK);
    struct weir_sched_plan *plan = test_plan(&cluster, &profile);
    ck_assert_ptr_nonnull(plan);
    const struct outcome *outcomes = outcomes_of(&cluster, plan);
    for (int32_t t = 0; t < cluster.snapshot.n_tasks; t++) {
        ck_assert_int_eq(outcomes[t].future, nodes[t]);
    }
    for (int32_t i = 0; i < plan->n_actions; i++) {
        ck_assert_int_eq(plan->actions[i].kind, kind);
    }
    weir_sched_plan_destroy(plan);
}

static const char *const profiles[] = {"default", "kai"};

START_TEST(the_first_of_those_that_want_each_other_goes_anywhere)
{
    set_up();
    add(2, "zone", NULL);
    add(1, "zone", NULL)->n_labels = 0; /* One that wants them, but is not wanted. */
    expect(profiles[_i], (int32_t[]){0, 0, WAITS}, WEIR_SCHED_BIND);
    tear_down();
}

END_TEST

START_TEST(who_is_not_of_its_own_kind_waits_for_company)
{
    set_up();
    add(1, "zone", NULL)->n_labels = 0;
    expect(profiles[_i], (int32_t[]){WAITS}, WEIR_SCHED_BIND);
    tear_down();
}

END_TEST

START_TEST(nobody_comes_near_one_that_runs_and_keeps_away)
{
    set_up();
    struct weir_sched_task *runs = add(1, NULL, "zone");
    runs->state = WEIR_SCHED_RUNNING;
    runs->node = 0;
    add(1, NULL, NULL);
    add(1, NULL, NULL)->n_labels = 0; /* Of another kind. */
    expect(profiles[_i], (int32_t[]){0, 1, 0}, WEIR_SCHED_BIND);
    tear_down();
}

END_TEST

START_TEST(one_that_keeps_away_waits_until_the_other_has_left)
{
    set_up();
    cluster.snapshot.n_nodes = 1;
    struct weir_sched_task *leaves = add(1, NULL, NULL);
    leaves->state = WEIR_SCHED_RELEASING;
    leaves->node = 0;
    add(1, NULL, "zone");
    expect(profiles[_i], (int32_t[]){WAITS, 0}, WEIR_SCHED_PIPELINE);
    tear_down();
}

END_TEST

#define BOTH (int)WEIR_ARRAY_LEN(profiles)

WEIR_TEST_LOOPS_MAIN("affinity", {the_first_of_those_that_want_each_other_goes_anywhere, BOTH},
                     {who_is_not_of_its_own_kind_waits_for_company, BOTH},
                     {nobody_comes_near_one_that_runs_and_keeps_away, BOTH},
                     {one_that_keeps_away_waits_until_the_other_has_left, BOTH})
