/* Jobs with sub-groups and domains of nodes: which part starts or ends first, and where, each
 * worked out by hand from the rule that its name says. */
#include "base/macros.h"
#include "base/test_main.h"
#include "sched/test/test_outcome.h"

#define TASKS_MAX  16
#define GROUPS_MAX 8
#define OUTSIDE    NULL
#define WAITS      (-1)

static const char *const levels[] = {"zone", "rack"};
static const struct weir_sched_topology tree = {"tree", levels, 2};

enum {
    ZONE,
    RACK,
    ANY = WEIR_SCHED_NONE,
};

struct fixture {
    struct test_cluster cluster;
    struct weir_sched_group groups[GROUPS_MAX];
    struct weir_sched_job *job;
    int32_t queue;
};

static void set_up(struct fixture *fixture)
{
    *fixture = (struct fixture){0};
    test_cluster_init(&fixture->cluster, 8, 1, 4, 4 * TASKS_MAX);
    fixture->cluster.snapshot.topologies = &tree;
    fixture->cluster.snapshot.n_topologies = 1;
    fixture->queue = test_queue(&fixture->cluster, -1, 100, 1, -1);
}

static void tear_down(struct fixture *fixture)
{
    test_cluster_fini(&fixture->cluster);
}

static void add_node(struct fixture *fixture, const char *zone, const char *rack, int n_devices)
{
    struct weir_sched_node *node = &fixture->cluster.nodes[test_node(&fixture->cluster, n_devices)];
    struct weir_sched_label *labels =
        WEIR_ARENA_ARRAY(&fixture->cluster.arena, 2, struct weir_sched_label);
    labels[0] = (struct weir_sched_label){"zone", zone};
    labels[1] = (struct weir_sched_label){"rack", rack};
    node->labels = labels;
    node->n_labels = zone == OUTSIDE ? 0 : 2;
}

/** A job whose tasks all must start, of no group yet. */
static void add_job(struct fixture *fixture, int n_tasks, int n_devices)
{
    fixture->job = test_job(&fixture->cluster, fixture->queue, 50, n_tasks, n_devices);
    fixture->job->groups = fixture->groups;
}

static int32_t add_group(struct fixture *fixture, int32_t parent, int min_member, int32_t required,
                         int32_t preferred)
{
    int32_t g = fixture->job->n_groups++;
    fixture->groups[g] = (struct weir_sched_group){
        .name = weir_arena_printf(&fixture->cluster.arena, "group-%d", (int)g),
        .parent = parent,
        .min_member = min_member,
        .topology = required < 0 && preferred < 0 ? WEIR_SCHED_NONE : 0,
        .required_level = required,
        .preferred_level = preferred};
    return g;
}

static struct weir_sched_task *task_at(struct fixture *fixture, int i)
{
    return &fixture->cluster.tasks[fixture->job->first_task + i];
}

/** The job's tasks from the i-th on belong to these groups; -1 ends the list. */
static void assign(struct fixture *fixture, const int32_t *groups)
{
    for (int i = 0; groups[i] >= 0; i++) {
        task_at(fixture, i)->group = groups[i];
    }
}

static void run_on(struct fixture *fixture, int i, int32_t node)
{
    task_at(fixture, i)->state = WEIR_SCHED_RUNNING;
    task_at(fixture, i)->node = node;
}

static struct outcome *plan_of(struct fixture *fixture, const char *name)
{
    struct weir_sched_profile profile;
    ck_assert_int_eq(weir_sched_profile_named(name, &profile, NULL), WEIR_OK);
    struct weir_sched_plan *plan = test_plan(&fixture->cluster, &profile);
    ck_assert_ptr_nonnull(plan);
    struct outcome *outcomes = outcomes_of(&fixture->cluster, plan);
    weir_sched_plan_destroy(plan);
    return outcomes;
}

/** Whether the first job's tasks will be on these nodes. */
static void expect(struct fixture *fixture, const char *profile, const int32_t *nodes)
{
    const struct outcome *outcomes = plan_of(fixture, profile);
    for (int32_t i = 0; i < fixture->cluster.jobs[0].n_tasks; i++) {
        ck_assert_msg(outcomes[i].future == nodes[i], "%s: task %d is on %d, not on %d", profile, i,
                      outcomes[i].future, nodes[i]);
    }
}

START_TEST(tasks_of_several_sizes_fill_a_rack_exactly)
{
    struct fixture fixture;
    set_up(&fixture);
    add_node(&fixture, "z", "a", 5);
    add_job(&fixture, 3, 1);
    add_group(&fixture, -1, 3, RACK, ANY);
    task_at(&fixture, 2)->demand.n_devices = 3;
    expect(&fixture, "default", (int32_t[]){0, 0, 0});
    tear_down(&fixture);
}

END_TEST

START_TEST(what_is_only_preferred_keeps_nothing_off_nodes_outside_the_topology)
{
    struct fixture fixture;
    set_up(&fixture);
    add_node(&fixture, "z", "a", 1);
    add_node(&fixture, OUTSIDE, OUTSIDE, 4);
    add_job(&fixture, 2, 1);
    add_group(&fixture, -1, 2, ANY, RACK);
    expect(&fixture, "default", (int32_t[]){0, 1});
    tear_down(&fixture);
}

END_TEST

START_TEST(a_group_too_large_for_a_domain_takes_those_with_most_room_first)
{
    struct fixture fixture;
    set_up(&fixture);
    add_node(&fixture, "y", "a", 3);
    add_node(&fixture, "y", "b", 2);
    add_node(&fixture, "z", "c", 4);
    add_job(&fixture, 6, 1);
    add_group(&fixture, -1, 6, ANY, RACK);
    expect(&fixture, "kai", (int32_t[]){2, 2, 2, 2, 0, 0});
    tear_down(&fixture);
}

END_TEST

START_TEST(a_preferred_level_may_be_wider_than_the_required_one)
{
    struct fixture fixture;
    set_up(&fixture);
    add_node(&fixture, "z", "a", 2);
    add_node(&fixture, "z", "b", 2);
    add_job(&fixture, 1, 1);
    add_group(&fixture, -1, 1, RACK, ZONE);
    expect(&fixture, "default", (int32_t[]){0});
    tear_down(&fixture);
}

END_TEST

START_TEST(what_a_job_still_needs_joins_the_domain_in_which_it_runs)
{
    struct fixture fixture;
    set_up(&fixture);
    add_node(&fixture, "z", "a", 4);
    add_node(&fixture, "z", "b", 1);
    add_job(&fixture, 2, 1);
    add_group(&fixture, -1, 1, RACK, ANY);
    run_on(&fixture, 0, 0);
    expect(&fixture, "kai", (int32_t[]){0, 0});
    fixture.groups[0].required_level = ANY;
    fixture.groups[0].preferred_level = RACK;
    expect(&fixture, "kai", (int32_t[]){0, 1});
    tear_down(&fixture);
}

END_TEST

START_TEST(of_equally_full_groups_the_first_grows)
{
    struct fixture fixture;
    set_up(&fixture);
    add_node(&fixture, "z", "a", 3);
    add_job(&fixture, 4, 1);
    add_group(&fixture, -1, WEIR_SCHED_UNLIMITED, ANY, ANY);
    add_group(&fixture, 0, 1, ANY, ANY);
    add_group(&fixture, 0, 1, ANY, ANY);
    assign(&fixture, (int32_t[]){1, 1, 2, 2, -1});
    expect(&fixture, "kai", (int32_t[]){0, 0, 0, WAITS});
    tear_down(&fixture);
}

END_TEST

START_TEST(inner_groups_are_as_full_as_children_of_theirs_have_their_minimum)
{
    struct fixture fixture;
    set_up(&fixture);
    add_node(&fixture, "z", "a", 5);
    add_job(&fixture, 6, 1);
    int32_t root = add_group(&fixture, -1, WEIR_SCHED_UNLIMITED, ANY, ANY);
    int32_t first = add_group(&fixture, root, WEIR_SCHED_UNLIMITED, ANY, ANY);
    int32_t second = add_group(&fixture, root, WEIR_SCHED_UNLIMITED, ANY, ANY);
    int32_t few = add_group(&fixture, first, 1, ANY, ANY);
    int32_t many = add_group(&fixture, second, 2, ANY, ANY);
    assign(&fixture, (int32_t[]){few, few, few, many, many, many, -1});
    expect(&fixture, "kai", (int32_t[]){0, 0, 0, 0, 0, WAITS});
    tear_down(&fixture);
}

END_TEST

/** Who asks for one device of a full node, with more priority. */
static void add_preemptor(struct fixture *fixture)
{
    test_job(&fixture->cluster, fixture->queue, 75, 1, 1);
}

START_TEST(of_equally_full_groups_the_last_shrinks)
{
    struct fixture fixture;
    set_up(&fixture);
    add_node(&fixture, "z", "a", 4);
    add_job(&fixture, 4, 1);
    add_group(&fixture, -1, WEIR_SCHED_UNLIMITED, ANY, ANY);
    add_group(&fixture, 0, 1, ANY, ANY);
    add_group(&fixture, 0, 1, ANY, ANY);
    assign(&fixture, (int32_t[]){1, 1, 2, 2, -1});
    for (int i = 0; i < 4; i++) {
        run_on(&fixture, i, 0);
    }
    add_preemptor(&fixture);
    expect(&fixture, "kai", (int32_t[]){0, 0, 0, WAITS});
    tear_down(&fixture);
}

END_TEST

START_TEST(a_broken_gang_gives_what_a_whole_part_of_it_can_spare)
{
    struct fixture fixture;
    set_up(&fixture);
    add_node(&fixture, "z", "a", 4);
    add_job(&fixture, 5, 1);
    add_group(&fixture, -1, WEIR_SCHED_UNLIMITED, ANY, ANY);
    add_group(&fixture, 0, 2, ANY, ANY);
    add_group(&fixture, 0, 2, ANY, ANY);
    assign(&fixture, (int32_t[]){1, 1, 1, 2, 2, -1});
    for (int i = 0; i < 4; i++) {
        run_on(&fixture, i, 0);
    }
    add_preemptor(&fixture);
    expect(&fixture, "kai", (int32_t[]){0, 0, WAITS, 0, WAITS});
    tear_down(&fixture);
}

END_TEST

START_TEST(a_gang_is_broken_while_a_member_of_it_is_leaving)
{
    struct fixture fixture;
    set_up(&fixture);
    add_node(&fixture, "z", "a", 2);
    add_job(&fixture, 2, 1);
    add_group(&fixture, -1, 2, ANY, ANY);
    run_on(&fixture, 0, 0);
    run_on(&fixture, 1, 0);
    fixture.job->stale_since_ms = TEST_NOW_MS - 100000;
    task_at(&fixture, 1)->state = WEIR_SCHED_RELEASING;
    expect(&fixture, "kai", (int32_t[]){WAITS, WAITS});
    tear_down(&fixture);
}

END_TEST

WEIR_TEST_MAIN("group", tasks_of_several_sizes_fill_a_rack_exactly,
               what_is_only_preferred_keeps_nothing_off_nodes_outside_the_topology,
               a_group_too_large_for_a_domain_takes_those_with_most_room_first,
               a_preferred_level_may_be_wider_than_the_required_one,
               what_a_job_still_needs_joins_the_domain_in_which_it_runs,
               of_equally_full_groups_the_first_grows,
               inner_groups_are_as_full_as_children_of_theirs_have_their_minimum,
               of_equally_full_groups_the_last_shrinks,
               a_broken_gang_gives_what_a_whole_part_of_it_can_spare,
               a_gang_is_broken_while_a_member_of_it_is_leaving)
