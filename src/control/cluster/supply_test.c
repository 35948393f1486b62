/* What is asked of a cluster, what becomes of it, and what jobs have of it: case by case. */
#include "control/cluster/allocation_step.h"
#include "control/cluster/supply_fixture.h"
#include "control/live.h"
#include "control/schedule/demand.h"
#include "store/identity.h"
#include "store/stmt.h"

#include "base/rng.h"
#include "base/test_seed.h"

/* ---- cases ----------------------------------------------------------------------------------- */

START_TEST(what_has_no_place_here_is_asked_for_and_runs_there)
{
    char *job = gang(&fixture, 2, 4);
    await_asked(1);
    ck_assert_int_eq(cluster.items[0].n_nodes, 1); /* both fit one node */
    ck_assert_int_eq(cluster.items[0].cpu_slots, 8);
    (void)round_of_engine();
    fixture.now_ms += 6000; /* reasons are written again so often */
    (void)round_of_engine();
    (void)round_of_engine();
    ck_assert_msg(strstr(reason(job), "waits for a node of cluster slurm-a (4711 there: Priority)"),
                  "%s", reason(job));
    start(&cluster.items[0]);
    look();
    ck_assert_int_eq(round_of_engine(), 2);
    ck_assert_int_eq(cluster.n_requests, 1);
    run_all(&fixture, job);
    end_all(&fixture, job);
    for (int i = 0; i < 70; i++) {
        keep_alive();
        (void)round_of_engine();
        look();
    }
    ck_assert_int_eq(n_alive(), 0); /* given back: nothing ran for a minute */
    ck_assert_uint_eq(open_allocations().n, 0);
}

END_TEST

START_TEST(a_gang_is_asked_for_whole_and_larger_than_what_there_is_not_at_all)
{
    char *large = gang(&fixture, 5, 16);
    (void)gang(&fixture, 4, 16);
    await_asked(1);
    ck_assert_int_eq(cluster.items[0].n_nodes, 4);
    for (int i = 0; i < 8; i++) {
        (void)round_of_engine();
    }
    ck_assert_int_eq(cluster.n_requests, 1);
    ck_assert_msg(strstr(reason(large), "cluster slurm-a") != NULL, "%s", reason(large));
}

END_TEST

START_TEST(small_jobs_share_a_node)
{
    for (int i = 0; i < 20; i++) {
        (void)gang(&fixture, 1, 1);
    }
    await_asked(2);
    ck_assert_int_eq(cluster.items[0].cpu_slots + cluster.items[1].cpu_slots, 20);
}

END_TEST

START_TEST(tasks_that_are_alike_are_spread_evenly_over_the_nodes_that_are_asked_for)
{
    (void)gang(&fixture, 5, 4); /* 4 and 1 on two nodes of 16 */
    await_asked(1);
    ck_assert_int_eq(cluster.items[0].n_nodes, 2);
    ck_assert_int_eq(cluster.items[0].cpu_slots, 12);
    start(&cluster.items[0]);
    look();
    ck_assert_int_eq(round_of_engine(), 5);
}

END_TEST

START_TEST(a_node_that_has_not_told_of_its_devices_is_still_awaited)
{
    cluster.n_accelerators = 4;
    char *job = gang(&fixture, 1, 1);
    char sql[128];
    (void)snprintf(sql, sizeof sql,
                   "UPDATE tasks SET n_accelerators = 1, accelerator_milli = 1000 WHERE job = '%s'",
                   job);
    execute(&fixture, sql);
    scheduler_restart(&fixture);
    await_asked(1);
    ck_assert_int_eq(cluster.items[0].n_accelerators, 1);
    start(&cluster.items[0]);
    for (int i = 0; i < 10; i++) {
        keep_alive();
        look();
        ck_assert_int_eq(round_of_engine(), 0);
    }
    ck_assert_int_eq(cluster.n_requests, 1);
}

END_TEST

/* A job of so many tasks with n devices each, of each so many thousandths. */
static char *job_with(size_t n_tasks, int64_t n, int64_t milli)
{
    char *job = gang_of_millis(&fixture, n_tasks, 100);
    want_devices(job, n, milli);
    return job;
}

/* As few parts as hold what waits; where Slurm has none, or a whole device is needed, whole ones. */
START_TEST(a_share_of_a_device_is_asked_for_in_parts)
{
    static const struct {
        int64_t parts, n_tasks, n, milli, wants_devices, wants_milli;
    } rows[] = {{10, 1, 1, 250, 1, 300}, {10, 1, 1, 300, 1, 300}, {10, 1, 1, 1, 1, 100},
                {10, 1, 1, 901, 1, 0},   {10, 1, 1, 1000, 1, 0},  {3, 1, 1, 333, 1, 333},
                {3, 1, 1, 334, 1, 666},  {0, 1, 1, 250, 1, 0},    {1, 1, 1, 250, 1, 0},
                {10, 3, 1, 250, 1, 800}, {10, 4, 1, 250, 1, 0},   {10, 5, 1, 250, 2, 0},
                {10, 1, 2, 100, 2, 0},   {10, 1, 2, 1000, 2, 0},  {1000, 1, 1, 257, 1, 257},
                {2, 1, 1, 500, 1, 500},  {2, 1, 1, 501, 1, 0},    {7, 1, 1, 142, 1, 142},
                {7, 1, 1, 143, 1, 285},  {10, 3, 1, 600, 3, 0},   {10, 2, 2, 400, 2, 0}};

    cluster.n_accelerators = 4;
    cluster.accelerator_parts = rows[_i].parts;
    (void)job_with((size_t)rows[_i].n_tasks, rows[_i].n, rows[_i].milli);
    await_asked(1);
    ck_assert_int_eq(cluster.items[0].n_accelerators, rows[_i].wants_devices);
    ck_assert_int_eq(cluster.items[0].accelerator_milli, rows[_i].wants_milli);
}

END_TEST

#define N_PARTS 21

START_TEST(a_part_of_a_device_is_shared_and_never_exceeded)
{
    cluster.n_accelerators = 4;
    cluster.accelerator_parts = 10;
    cluster.tells_devices = true;
    char *first = job_with(1, 1, 250);
    await_asked(1);
    start(&cluster.items[0]);
    look();
    ck_assert_int_eq(round_of_engine(), 1);
    run_all(&fixture, first);
    (void)job_with(1, 1, 50); /* 250 and 50 are the 300 that were asked for */
    ck_assert_int_eq(round_of_engine(), 1);
    char *third = job_with(1, 1, 1);
    await_asked(2);
    ck_assert_int_eq(cluster.items[1].accelerator_milli, 100);
    ck_assert_ptr_null(job_state(&fixture, third).tasks[0].node);
}

END_TEST

START_TEST(an_idle_node_does_not_hold_up_a_gang_that_could_use_it)
{
    char *first = gang(&fixture, 1, 8);
    await_asked(1);
    start(&cluster.items[0]);
    look();
    ck_assert_int_eq(round_of_engine(), 1);
    run_all(&fixture, first);
    (void)gang(&fixture, 3, 8); /* two nodes; it could do with half of the first */
    await_asked(2);
    ck_assert_int_eq(cluster.items[1].n_nodes, 2);
    end_all(&fixture, first);
    for (int i = 0; i < 6; i++) {
        keep_alive();
        look();
        (void)round_of_engine();
    }
    look();
    ck_assert_int_eq(cluster.items[0].phase, WEIR_ALLOCATION_ENDED);
}

END_TEST

/* Its agents may hear of it later than a job could be started there, which would be begun twice then. */
START_TEST(nodes_that_are_given_back_get_nothing_more)
{
    char *job = gang(&fixture, 1, 16);
    await_asked(1);
    start(&cluster.items[0]);
    look();
    (void)round_of_engine();
    run_all(&fixture, job);
    end_all(&fixture, job);
    fixture_write(&fixture.store, release_in, cluster.items[0].tag);
    keep_alive();
    (void)gang(&fixture, 1, 16);
    ck_assert_int_eq(round_of_engine(), 0);
    keep_alive();
    await_asked(2);
}

END_TEST

/* A gang that needs two nodes cannot use the other one, and there may be no third. */
START_TEST(an_idle_allocation_that_lost_a_node_is_given_back_at_once)
{
    char *job = gang(&fixture, 2, 16);
    await_asked(1);
    start(&cluster.items[0]);
    look();
    (void)round_of_engine();
    run_all(&fixture, job);
    end_all(&fixture, job);
    for (int i = 0; i < 10; i++) {
        keep_alive();
        look();
        (void)round_of_engine();
    }
    ck_assert_int_eq(cluster.items[0].phase, WEIR_ALLOCATION_RUNNING);
    cluster.items[0].n_gone = 1;
    for (int i = 0; i < 4; i++) {
        keep_alive();
        look();
        (void)round_of_engine();
    }
    look();
    ck_assert_int_eq(cluster.items[0].phase, WEIR_ALLOCATION_ENDED);
}

END_TEST

START_TEST(what_runs_on_nodes_that_are_there_is_not_asked_for)
{
    heartbeat(&fixture, "own", 8);
    (void)gang(&fixture, 2, 4);
    for (int i = 0; i < 5; i++) {
        look();
        heartbeat(&fixture, "own", 8);
        (void)round_of_engine();
    }
    ck_assert_int_eq(cluster.n_requests, 0);
}

END_TEST

START_TEST(a_job_waits_as_long_as_the_cluster_says_before_nodes_are_asked_for)
{
    set_cluster((struct weir_cluster){.idle_ms = 60000, .after_ms = 20000});
    char *job = gang(&fixture, 1, 4);
    for (int i = 0; i < 15; i++) {
        look();
        (void)round_of_engine();
    }
    ck_assert_int_eq(cluster.n_requests, 0);
    ck_assert_msg(strstr(reason(job), "nodes of cluster slurm-a are asked for at") != NULL, "%s",
                  reason(job));
    await_asked(0);
    for (int i = 0; i < 10; i++) {
        (void)round_of_engine();
        look();
    }
    ck_assert_int_eq(cluster.n_requests, 1);
}

END_TEST

START_TEST(what_is_refused_is_said_and_asked_again_later_and_later)
{
    int n = 0;
    cluster.refuses = "partition: there is no partition \"gpu\"";
    char *job = gang(&fixture, 1, 4);
    for (int i = 0; i < 120; i++) {
        size_t before = open_allocations().n;
        (void)round_of_engine();
        n += open_allocations().n > before;
        look();
    }
    ck_assert_int_ge(n, 3);
    ck_assert_int_le(n, 5); /* after 10, 20, 40 … seconds */
    ck_assert_msg(strstr(reason(job), "there is no partition \"gpu\"; it is asked again at") !=
                      NULL,
                  "%s", reason(job));
    cluster.refuses = NULL;
    for (int i = 0; i < 120; i++) {
        (void)round_of_engine();
        look();
    }
    ck_assert_int_eq(cluster.n_requests, 1);
}

END_TEST

static void set_clusters_of(const char *job, const char *names)
{
    char sql[200];
    (void)snprintf(sql, sizeof sql,
                   "UPDATE jobs SET placement = '{\"clusters\": %s}' WHERE id = '%s'", names, job);
    execute(&fixture, sql);
    scheduler_restart(&fixture);
}

START_TEST(a_job_that_is_kept_away_from_a_cluster_is_not_asked_for)
{
    set_clusters_of(gang(&fixture, 1, 4), "[\"local\"]");
    for (int i = 0; i < 5; i++) {
        look();
        (void)round_of_engine();
    }
    ck_assert_int_eq(cluster.n_requests, 0);
}

END_TEST

START_TEST(a_cluster_is_reached_whatever_stands_before_it)
{
    char *job = gang(&fixture, 1, 4);
    set_clusters_of(job, "[\"b\", \"c\", \"d\", \"slurm-a\"]");
    await_asked(1);
}

END_TEST

struct what_if {
    struct control_change change;
    weir_status status;
    json_t *answer;
};

static weir_status what_if_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct what_if *asked = context;
    const struct control_live live = {fixture.now_ms, fixture.since_ms, NULL, &fakes};
    asked->status = control_what_if(txn, &live, &asked->change, &asked->answer, err);
    return WEIR_OK;
}

/* How many jobs start with n nodes more of a pool that do not now; -1: that cannot be asked. */
static json_int_t starts_with(const char *pool, int64_t n)
{
    struct what_if asked = {.change = {.like = pool, .n_nodes = n}};
    fixture_read(&fixture.store, what_if_in, &asked);
    if (asked.status != WEIR_OK) {
        return -1;
    }
    const json_t *before = json_object_get(asked.answer, "before"),
                 *after = json_object_get(asked.answer, "after");
    json_int_t more = json_integer_value(json_object_get(after, "starts")) -
                      json_integer_value(json_object_get(before, "starts"));
    json_decref(asked.answer);
    return more;
}

/* As many jobs as would start with all nodes of a pool start once what is asked for has come; more may, as parts of nodes add up there.
 * The jobs are alike: which of others fit beside one another changes with the order in which nodes come. */
START_TEST(what_if_promises_no_more_than_is_asked_for)
{
    static const int64_t millis[] = {0, 100, 250, 400, 1000};
    char *jobs[30];
    size_t n_jobs = 1, n_tasks = 1;
    struct weir_rng rng;
    (void)test_seed(&rng);
    n_jobs += weir_rng_below(&rng, WEIR_ARRAY_LEN(jobs));
    n_tasks += weir_rng_below(&rng, 4);
    int64_t cpus = 1 + (int64_t)weir_rng_below(&rng, 16);
    int64_t milli = millis[weir_rng_below(&rng, WEIR_ARRAY_LEN(millis))];
    cluster.n_accelerators = 4;
    cluster.accelerator_parts = 1 + (int64_t)weir_rng_below(&rng, 10);
    cluster.tells_devices = true;
    for (size_t i = 0; i < n_jobs; i++) {
        jobs[i] = gang(&fixture, n_tasks, cpus);
        want_devices(jobs[i], milli > 0, WEIR_MAX(milli, (int64_t)1));
    }
    look();
    (void)cycle(&fixture);
    int64_t wanted = starts_with("slurm-a/main", cluster.max_nodes), n_started = 0;
    for (int i = 0; i < 20; i++) {
        look();
        for (size_t k = 0; k < cluster.n; k++) {
            if (cluster.items[k].phase == WEIR_ALLOCATION_PENDING) {
                start(&cluster.items[k]);
            }
        }
        (void)round_of_engine();
    }
    for (size_t i = 0; i < n_jobs; i++) {
        n_started += job_state(&fixture, jobs[i]).tasks[0].node != NULL;
    }
    ck_assert_int_gt(wanted, 0);
    ck_assert_int_ge(n_started, wanted);
}

END_TEST

START_TEST(what_nodes_of_a_pool_would_change_can_be_asked)
{
    execute(&fixture, "INSERT INTO projects (name, created_ms) VALUES ('vis-a', 1)");
    char *first = gang(&fixture, 2, 12);
    fixture.now_ms += 1000;
    char *second = gang_of(&fixture, "vis-a", 1, 12);
    look();
    (void)cycle(&fixture);
    ck_assert_int_eq(starts_with("slurm-a/main", 1), 0); /* the gang does not fit one */
    ck_assert_int_eq(starts_with("slurm-a/main", 2), 1);
    ck_assert_int_eq(starts_with("slurm-a/main", 4), 1); /* for the other another account pays */
    ck_assert_int_eq(starts_with("slurm-a/main", 5), -1);
    ck_assert_int_eq(starts_with("slurm-a/none", 1), -1);
    set_clusters_of(first, "[\"local\"]");
    (void)cycle(&fixture);
    ck_assert_int_eq(starts_with("slurm-a/main", 4), 1); /* now it is the other's turn */
    set_clusters_of(second, "[\"local\"]");
    (void)cycle(&fixture);
    ck_assert_int_eq(starts_with("slurm-a/main", 4), 0);
    ck_assert_uint_eq(cluster.n, 0);
}

END_TEST

static weir_status put_queue_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    return weir_queue_set(txn, context, 1, err);
}

START_TEST(a_job_runs_on_no_cluster_that_its_queue_does_not_list)
{
    execute(&fixture, "INSERT INTO projects (name, created_ms) VALUES ('blue', 1)");
    struct weir_queue queue = {.name = "own",
                               .project = "blue",
                               .shares = "{\"cpus\": {\"guarantee\": 1}}",
                               .clusters = "[\"local\"]",
                               .overflow_after_ms = -1,
                               .min_run_ms = -1};
    fixture_write(&fixture.store, put_queue_in, &queue);
    char *job = gang_of(&fixture, "blue", 1, 4);
    set_clusters_of(job, "[\"slurm-a\"]");
    for (int i = 0; i < 12; i++) {
        look();
        (void)round_of_engine();
    }
    ck_assert_int_eq(cluster.n_requests, 0);
    ck_assert_msg(strstr(reason(job), "queue own does not let its jobs run there") != NULL, "%s",
                  reason(job));
    char *other = gang(&fixture, 1, 4); /* of a project without a queue */
    await_asked(1);
    start(&cluster.items[0]);
    look();
    cancel(&fixture, other);
    ck_assert_int_eq(round_of_engine(), 0); /* though a node is free there */
}

END_TEST

/* Account and QOS are an allocation's: what one pays for runs nothing of another's. */
START_TEST(an_allocation_has_one_payer_and_runs_nothing_of_anothers)
{
    execute(&fixture, "INSERT INTO projects (name, created_ms) VALUES ('vis-a', 1), ('vis-b', 1)");
    char *first = gang_of(&fixture, "vis-a", 1, 2), *like = gang_of(&fixture, "vis-b", 1, 2);
    char *other = gang(&fixture, 1, 2);
    await_asked(2);
    struct there *vis = &cluster.items[cluster.items[0].cpu_slots == 4 ? 0 : 1];
    struct there *rest = &cluster.items[vis == &cluster.items[0]];
    ck_assert_int_eq(vis->cpu_slots, 4); /* the two of one payer share it */
    ck_assert_int_eq(rest->cpu_slots, 2);
    start(vis);
    look();
    ck_assert_int_eq(round_of_engine(), 2);
    ck_assert_ptr_nonnull(strstr(places(&fixture, first), vis->tag));
    ck_assert_ptr_nonnull(strstr(places(&fixture, like), vis->tag));
    run_all(&fixture, first);
    end_all(&fixture, first); /* there is room, and it is not the other's */
    for (int i = 0; i < 3; i++) {
        keep_alive();
        look();
        ck_assert_int_eq(round_of_engine(), 0);
    }
    start(rest);
    look();
    ck_assert_int_eq(round_of_engine(), 1);
    ck_assert_ptr_nonnull(strstr(places(&fixture, other), rest->tag));
}

END_TEST

START_TEST(what_is_given_up_is_asked_for_elsewhere_or_said)
{
    char *job = gang(&fixture, 1, 4);
    look();
    look();
    (void)round_of_engine();
    ck_assert_uint_eq(open_allocations().n, 1);
    set_cluster((struct weir_cluster){.idle_ms = 60000, .is_draining = true});
    for (int i = 0; i < 20; i++) {
        (void)round_of_engine();
        look();
    }
    ck_assert_int_eq(cluster.n_requests, 0);
    ck_assert_uint_eq(open_allocations().n, 0);
    ck_assert_msg(strstr(reason(job), "it is being drained") != NULL, "%s", reason(job));
}

END_TEST

struct number {
    const char *sql;
    int64_t value;
};

static weir_status number_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct number *number = context;
    return weir_txn_query_int(txn, number->sql, WEIR_NO_BINDS, 0, &number->value, err);
}

/* As an agent does: its node is none before. */
static weir_status join_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    const struct there *there = context;
    const char *node = weir_arena_printf(&fixture.store.arena, "%s-n0", there->tag);
    return weir_node_join_take(txn, there->secret, node, fixture.now_ms, &fixture.store.arena, err);
}

static void join_with_its_secret(struct there *there)
{
    char name[96];
    fixture_write(&fixture.store, join_in, there);
    (void)snprintf(name, sizeof name, "%s-n0", there->tag);
    heartbeat(&fixture, name, there->cpu_slots);
}

static int64_t number_of(const char *sql)
{
    struct weir_arena *arena = &fixture.store.arena;
    struct number number = {.sql = weir_arena_strdup(arena, sql)};
    fixture_read(&fixture.store, number_in, &number);
    return number.value;
}

/* The planner knows when a node ends that joined after its cluster said so; and an allocation lasts for its job's limit. */
START_TEST(a_job_has_its_whole_time_on_a_node_that_ends)
{
    char *job = gang(&fixture, 1, 4), sql[120];
    (void)snprintf(sql, sizeof sql, "UPDATE jobs SET time_limit_ms = 600000 WHERE id = '%s'", job);
    execute(&fixture, sql);
    scheduler_restart(&fixture);
    await_asked(1);
    ck_assert_int_ge(cluster.items[0].time_ms, 600000 + OFFERS_SPARE_MS);
    cluster.items[0].phase = WEIR_ALLOCATION_RUNNING;
    look();
    execute(&fixture, "UPDATE allocations SET ends_ms = started_ms + 600000");
    join_with_its_secret(&cluster.items[0]);
    ck_assert_int_eq(number_of("SELECT max(ends_ms) FROM nodes"),
                     number_of("SELECT ends_ms FROM allocations"));
    ck_assert_int_eq(round_of_engine(), 1); /* a little later than it started */
}

END_TEST

/* Its agents cannot reach the server. */
START_TEST(nodes_that_never_join_are_given_up_and_asked_for_again_later_and_later)
{
    char *job = gang(&fixture, 1, 4);
    await_asked(1);
    cluster.items[0].phase = WEIR_ALLOCATION_RUNNING;
    for (int i = 0; i < DEMAND_JOIN_MS / 1000 - 60; i++) {
        look();
        (void)round_of_engine();
    }
    ck_assert_int_eq(n_alive(), 1);
    ck_assert_msg(strstr(reason(job), "agents have not all joined") != NULL, "%s", reason(job));
    for (int i = 0; i < 70 && n_alive() > 0; i++) {
        look();
        (void)round_of_engine();
    }
    ck_assert_int_eq(n_alive(), 0);
    for (int i = 0; i < 9; i++) {
        look();
        (void)round_of_engine();
    }
    ck_assert_int_eq(cluster.n_requests, 1);
    ck_assert_msg(strstr(reason(job), "not all of its nodes have joined") != NULL, "%s",
                  reason(job));
}

END_TEST

START_TEST(nodes_that_are_taken_away_cost_no_restart)
{
    char *job = gang(&fixture, 2, 16);
    await_asked(1);
    start(&cluster.items[0]);
    look();
    ck_assert_int_eq(round_of_engine(), 2);
    run_all(&fixture, job);
    cluster.items[0].phase = WEIR_ALLOCATION_ENDED;
    cluster.items[0].ending = WEIR_ENDING_PREEMPTED;
    look();
    struct weir_job_state state = job_state(&fixture, job);
    ck_assert_str_eq(state.job.state, "PENDING");
    ck_assert_int_eq(state.job.n_restarts, 0);
    ck_assert_int_eq(state.job.n_evictions, 1);
    await_asked(2); /* another is asked for */
    ck_assert_int_eq(cluster.items[1].n_nodes, 2);
}

END_TEST

START_TEST(what_nothing_waits_for_any_more_is_given_back)
{
    char *job = gang(&fixture, 1, 16);
    await_asked(1);
    cancel(&fixture, job);
    for (int i = 0; i < 20; i++) {
        (void)round_of_engine();
        look();
    }
    ck_assert_int_eq(n_alive(), 0);
    ck_assert_uint_eq(open_allocations().n, 0);
}

END_TEST

START_TEST(a_cluster_that_fell_silent_is_asked_again_soon)
{
    (void)gang(&fixture, 1, 16);
    await_asked(1);
    cluster.is_silent = true;
    look();
    ck_assert_int_le(line.check_due_ms, weir_mono_ms() + SUPPLY_CHECK_SOON_MS);
    int64_t heard_ms = number_of("SELECT heard_ms FROM clusters");
    ck_assert_int_gt(heard_ms, 0);
    for (int i = 0; i < 100; i++) { /* what it does not answer is no answer, however it is asked */
        fixture.now_ms += 1000;
        line.check_due_ms = 0;
        look();
    }
    ck_assert_int_eq(number_of("SELECT heard_ms FROM clusters"), heard_ms);
    cluster.is_silent = false;
    line.check_due_ms = 0;
    start(&cluster.items[0]);
    look();
    ck_assert_int_eq(round_of_engine(), 1);
    ck_assert_int_eq(cluster.n_requests, 1);
}

END_TEST

START_TEST(what_lacks_is_said_and_nothing_is_asked_for)
{
    cluster.lacks = "account: \"vis\" may not use partition gpu";
    char *job = gang(&fixture, 1, 4);
    for (int i = 0; i < 10; i++) {
        line.check_due_ms = 0;
        look();
        (void)round_of_engine();
    }
    ck_assert_int_eq(cluster.n_requests, 0);
    ck_assert_msg(strstr(reason(job), "cluster slurm-a is wrong: account: \"vis\"") != NULL, "%s",
                  reason(job));
}

END_TEST

START_TEST(a_job_that_wants_pods_of_its_own_has_them_and_nothing_else_runs_there)
{
    char *own = gang(&fixture, 1, 4), *plain;
    want_image(own, "a/b:1");
    await_asked(1);
    ck_assert_str_eq(cluster.items[0].image, "a/b:1");
    ck_assert_msg(strstr(open_allocations().items[0].pod, "\"a/b:1\"") != NULL, "%s",
                  open_allocations().items[0].pod);
    start(&cluster.items[0]);
    look();
    (void)round_of_engine();
    ck_assert_str_eq(job_state(&fixture, own).job.state, "STARTING");
    plain = gang(&fixture, 1, 4);
    await_asked(2);
    ck_assert_str_eq(cluster.items[1].image, "");
    ck_assert_str_eq(job_state(&fixture, plain).job.state, "PENDING");
}

END_TEST

START_TEST(what_holds_machines_in_vain_is_given_back_and_asked_for_again_later)
{
    char *job = gang(&fixture, 1, 4);
    await_asked(1);
    cluster.items[0].stuck_since_ms = fixture.now_ms;
    fixture.now_ms += ALLOCATION_STUCK_MS - 2000;
    look();
    (void)round_of_engine();
    ck_assert_int_eq(cluster.items[0].phase, WEIR_ALLOCATION_PENDING);
    fixture.now_ms += 2000;
    look();
    ck_assert_int_eq(cluster.items[0].phase, WEIR_ALLOCATION_ENDED);
    look();
    (void)round_of_engine();
    ck_assert_uint_eq(open_allocations().n, 0);
    fixture.now_ms += DEMAND_AGAIN_LEAST_MS;
    await_asked(2);
    ck_assert_str_eq(job_state(&fixture, job).job.state, "PENDING");
}

END_TEST

START_TEST(pods_are_asked_only_of_a_cluster_that_makes_some)
{
    fake_ops.makes_pods = false;
    heartbeat(&fixture, "own", 64);
    char *own = gang(&fixture, 1, 4);
    want_image(own, "a/b:1");
    for (int i = 0; i < 15; i++) {
        look();
        (void)round_of_engine();
    }
    ck_assert_int_eq(cluster.n_requests, 0);
    ck_assert_str_eq(job_state(&fixture, own).job.state, "PENDING");
    ck_assert_str_eq(reason(own), "no node is a pod as it wants one, {\"image\":\"a/b:1\"}; no "
                                  "cluster that it may run on makes pods: `weir get clusters`");
}

END_TEST

/* ---- what people there see ------------------------------------------------------------------- */

static void expect_shown(const char *job, const char *as)
{
    char text[256];
    (void)snprintf(text, sizeof text, "%s %s", job, as);
    for (size_t i = 0; i < cluster.n_shown; i++) {
        if (strcmp(cluster.shown[i], text) == 0) {
            return;
        }
    }
    ck_abort_msg("%s is not shown; the first of %zu: %s", text, cluster.n_shown,
                 cluster.n_shown > 0 ? cluster.shown[0] : "-");
}

START_TEST(jobs_of_a_cluster_are_shown_there_and_those_that_are_asked_after)
{
    set_queue(&fixture, "vis", "default", NULL, 4, "");
    char *job = gang(&fixture, 2, 4);
    await_asked(1);
    ck_assert_uint_eq(cluster.n_shown, 0); /* nobody there is to see jobs */
    cluster.has_place = true;
    look();
    expect_shown(job, "PENDING default vis nodes=0");
    start(&cluster.items[0]);
    look();
    (void)round_of_engine();
    run_all(&fixture, job);
    look();
    expect_shown(job, "RUNNING default vis nodes=1");
    ck_assert_uint_eq(cluster.n_shown, 1);
    end_all(&fixture, job);
    cluster.seen = job;
    look();
    expect_shown(job, "SUCCEEDED default vis nodes=0 ending over");
    cluster.seen = "00000000-0000-7000-8000-000000000000";
    look();
    expect_shown(cluster.seen, "none - - nodes=0");
}

END_TEST

START_TEST(a_job_that_a_person_there_deletes_is_cancelled_once)
{
    cluster.has_place = true;
    char *job = gang(&fixture, 1, 4), *other = gang_of(&fixture, "default", 1, 2);
    await_asked(1);
    start(&cluster.items[0]);
    look();
    (void)round_of_engine();
    run_all(&fixture, job);
    run_all(&fixture, other);
    cluster.deleted = job;
    for (int i = 0; i < 3; i++) { /* it is told until it is known there that the job ends */
        look();
        expect_shown(job, "STOPPING default default nodes=1 ending");
    }
    expect_shown(other, "RUNNING default default nodes=1");
    ck_assert_str_eq(reason(job), "cancelled by cluster/slurm-a");
    ck_assert_int_eq(number_of("SELECT count(*) FROM events WHERE topic = 'audit'"
                               " AND kind = 'jobs_cancel' AND actor = 'cluster/slurm-a'"),
                     1);
    ck_assert_int_eq(number_of("SELECT count(*) FROM events WHERE kind = 'job_cancel_asked'"
                               " AND actor = 'cluster/slurm-a'"),
                     1);
    end_all(&fixture, job);
    look();
    cluster.deleted = "00000000-0000-7000-8000-000000000000";
    look();
    ck_assert_str_eq(job_state(&fixture, job).job.state, "CANCELLED");
    ck_assert_str_eq(job_state(&fixture, other).job.state, "RUNNING");
    cluster.is_silent = true; /* harmless */
    look();
}

END_TEST

int main(void)
{
    const TTest *const tests[] = {
        what_has_no_place_here_is_asked_for_and_runs_there,
        a_gang_is_asked_for_whole_and_larger_than_what_there_is_not_at_all,
        small_jobs_share_a_node,
        tasks_that_are_alike_are_spread_evenly_over_the_nodes_that_are_asked_for,
        a_node_that_has_not_told_of_its_devices_is_still_awaited,
        a_part_of_a_device_is_shared_and_never_exceeded,
        an_idle_node_does_not_hold_up_a_gang_that_could_use_it,
        an_idle_allocation_that_lost_a_node_is_given_back_at_once,
        nodes_that_are_given_back_get_nothing_more,
        what_runs_on_nodes_that_are_there_is_not_asked_for,
        a_job_waits_as_long_as_the_cluster_says_before_nodes_are_asked_for,
        what_is_refused_is_said_and_asked_again_later_and_later,
        a_job_that_is_kept_away_from_a_cluster_is_not_asked_for,
        a_cluster_is_reached_whatever_stands_before_it,
        what_nodes_of_a_pool_would_change_can_be_asked,
        an_allocation_has_one_payer_and_runs_nothing_of_anothers,
        what_is_given_up_is_asked_for_elsewhere_or_said,
        nodes_that_never_join_are_given_up_and_asked_for_again_later_and_later,
        a_job_has_its_whole_time_on_a_node_that_ends,
        a_job_runs_on_no_cluster_that_its_queue_does_not_list,
        nodes_that_are_taken_away_cost_no_restart,
        what_nothing_waits_for_any_more_is_given_back,
        a_cluster_that_fell_silent_is_asked_again_soon,
        what_lacks_is_said_and_nothing_is_asked_for,
        a_job_that_wants_pods_of_its_own_has_them_and_nothing_else_runs_there,
        what_holds_machines_in_vain_is_given_back_and_asked_for_again_later,
        pods_are_asked_only_of_a_cluster_that_makes_some,
        jobs_of_a_cluster_are_shown_there_and_those_that_are_asked_after,
        a_job_that_a_person_there_deletes_is_cancelled_once,
    };
    Suite *suite = weir_test_suite_with("supply", set_up, tear_down, tests, WEIR_ARRAY_LEN(tests));
    TCase *parts = tcase_create("parts");
    tcase_set_timeout(parts, 120);
    tcase_add_checked_fixture(parts, set_up, tear_down);
    tcase_add_loop_test(parts, a_share_of_a_device_is_asked_for_in_parts, 0, N_PARTS);
    tcase_add_loop_test(parts, what_if_promises_no_more_than_is_asked_for, 0,
                        WEIR_TEST_TIMES(20, 5));
    suite_add_tcase(suite, parts);
    return weir_test_run(suite);
}
