/* The scheduler, the supply line and a made-up cluster: what is asked for, what becomes of it, and what jobs have of it. */
#include "cluster/driver.h"
#include "control/cluster/supply_line.h"
#include "control/live.h"
#include "control/schedule/demand.h"
#include "control/schedule/queue_fixture.h"
#include "job/cluster.h"
#include "store/identity.h"
#include "store/stmt.h"

#include "base/rng.h"
#include "base/test_seed.h"

#include <inttypes.h>

#define THERE_MAX 4096

/* ---- a cluster ------------------------------------------------------------------------------- */

struct there {
    char tag[64];
    int64_t n_nodes, cpu_slots, n_accelerators, time_ms;
    enum weir_allocation_phase phase;
    enum weir_allocation_ending ending;
    char secret[64];
    bool has_joined;
    const char *payer;
};

/* As long as it is asked anything, its options are whole. */
struct fake {
    char *partition;
    const json_t *lines;
};

static struct {
    struct there items[THERE_MAX];
    size_t n;
    int n_requests;   /* Of which each made an allocation. */
    bool is_silent;   /* It answers nothing. */
    bool loses_words; /* What is asked of it is done, and the answer is lost. */
    const char *refuses, *lacks;
    int64_t cpu_slots, n_accelerators, max_nodes;
} cluster;

static struct there *find_there(const char *tag)
{
    for (size_t i = 0; i < cluster.n; i++) {
        if (strcmp(cluster.items[i].tag, tag) == 0) {
            return &cluster.items[i];
        }
    }
    return NULL;
}

static weir_status silence(struct weir_error *err)
{
    return weir_error_set(err, WEIR_ERR_UNAVAILABLE, "no answer");
}

static weir_status fake_check(const void *options, struct weir_arena *arena, const char **out,
                              struct weir_error *err)
{
    (void)options;
    (void)arena;
    *out = cluster.lacks;
    return cluster.is_silent ? silence(err) : WEIR_OK;
}

static weir_status fake_list(const void *options, struct weir_arena *arena,
                             struct weir_pool_offer **out, size_t *out_n, struct weir_error *err)
{
    (void)options;
    *out = WEIR_ARENA_ARRAY(arena, 1, struct weir_pool_offer);
    **out = (struct weir_pool_offer){.name = "main",
                                     .cpu_slots = cluster.cpu_slots,
                                     .memory_bytes = (int64_t)64 << 30,
                                     .n_accelerators = cluster.n_accelerators,
                                     .accelerator = cluster.n_accelerators > 0 ? "H200" : NULL,
                                     .max_nodes = cluster.max_nodes,
                                     .weight = 1};
    *out_n = 1;
    return cluster.is_silent ? silence(err) : WEIR_OK;
}

/* Queues that begin with "vis" have an account of their own. */
static const char *fake_payer(const void *options, const char *queue, struct weir_arena *arena)
{
    (void)options;
    (void)arena;
    return queue != NULL && strncmp(queue, "vis", 3) == 0 ? "vis" : "all";
}

static weir_status fake_request(const void *options, const struct weir_node_request *request,
                                struct weir_error *err)
{
    const struct fake *fake = options;
    ck_assert_str_eq(json_string_value(json_array_get(fake->lines, 0)), "--licenses=x:1");
    if (cluster.is_silent) {
        return silence(err);
    }
    if (cluster.refuses != NULL) {
        return weir_error_set(err, WEIR_ERR_INVALID, "%s", cluster.refuses);
    }
    if (find_there(request->tag) == NULL) {
        ck_assert_uint_lt(cluster.n, THERE_MAX);
        struct there *there = &cluster.items[cluster.n++];
        *there = (struct there){.n_nodes = request->n_nodes,
                                .cpu_slots = request->cpu_slots,
                                .n_accelerators = request->n_accelerators,
                                .time_ms = request->time_ms,
                                .payer = fake_payer(options, request->queue, NULL),
                                .phase = WEIR_ALLOCATION_PENDING};
        (void)snprintf(there->tag, sizeof there->tag, "%s", request->tag);
        (void)snprintf(there->secret, sizeof there->secret, "%s", request->agent.secret);
        cluster.n_requests++;
    }
    return cluster.loses_words ? silence(err) : WEIR_OK;
}

static weir_status fake_poll(const void *options, const char *const *tags, size_t n,
                             struct weir_arena *arena, struct weir_allocation_report *out,
                             struct weir_error *err)
{
    (void)options;
    (void)arena;
    for (size_t i = 0; i < n; i++) {
        const struct there *there = find_there(tags[i]);
        out[i] = there == NULL ? (struct weir_allocation_report){.phase = WEIR_ALLOCATION_UNKNOWN}
                               : (struct weir_allocation_report){.phase = there->phase,
                                                                 .ending = there->ending,
                                                                 .their_id = "4711",
                                                                 .said = "Priority"};
    }
    return cluster.is_silent ? silence(err) : WEIR_OK;
}

static weir_status fake_release(const void *options, const char *tag, struct weir_error *err)
{
    (void)options;
    struct there *there = find_there(tag);
    if (cluster.is_silent) {
        return silence(err);
    }
    if (there != NULL && there->phase != WEIR_ALLOCATION_ENDED) {
        there->phase = WEIR_ALLOCATION_ENDED;
        there->ending = WEIR_ENDING_CANCELLED;
    }
    return WEIR_OK;
}

static const struct weir_option fake_options[] = {
    WEIR_OPT_JSON(fake, lines, "lines", TEXTS, 0, NULL, 0, 0, "Lines"),
    WEIR_OPT_JSON(fake, partition, "partition", TEXT, 0, NULL, 0, 0, "Partition"),
};

static const struct weir_driver_ops fake_ops = {.payer = fake_payer,
                                                .check = fake_check,
                                                .list = fake_list,
                                                .request = fake_request,
                                                .poll = fake_poll,
                                                .release = fake_release};
static const struct weir_kind fake_kind = {
    .name = "fake", .doc = "Made up.", .ops = &fake_ops, WEIR_KIND_OPTIONS(fake, fake_options)};
static const struct weir_kind *const fake_kinds[] = {&fake_kind};
static const struct weir_registry fakes = {
    .noun = "driver", .plural = "drivers", .doc = "Made up.", .kinds = fake_kinds, .n_kinds = 1};

/* ---- the server ------------------------------------------------------------------------------ */

static struct scheduler_fixture fixture;
static struct supplier_config config;
static struct supply_line line;

static int64_t fixture_now(const struct weir_clock *clock)
{
    (void)clock;
    return fixture.now_ms;
}

static const struct weir_clock fixture_clock = {.now_ms = fixture_now};

static weir_status add_cluster_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    return weir_cluster_set(txn, context, err);
}

static void set_cluster(struct weir_cluster wanted)
{
    wanted.name = "slurm-a";
    wanted.driver = "fake";
    wanted.options = "{\"lines\": [\"--licenses=x:1\"]}";
    wanted.state = (char *)WEIR_CLUSTER_NEW;
    wanted.created_by = "ann";
    fixture_write(&fixture.store, add_cluster_in, &wanted);
}

static void set_up(void)
{
    memset(&cluster, 0, sizeof cluster);
    cluster.cpu_slots = 16;
    cluster.max_nodes = 4;
    scheduler_fixture_make(&fixture);
    fixture.drivers = &fakes;
    scheduler_restart(&fixture);
    config = (struct supplier_config){.store = fixture.store.store,
                                      .drivers = &fakes,
                                      .clock = &fixture_clock,
                                      .state_dir = "/s",
                                      .server_url = "http://h:1"};
    line = (struct supply_line){.config = &config, .cluster = "slurm-a"};
    set_cluster((struct weir_cluster){.idle_ms = 60000});
}

static void tear_down(void)
{
    scheduler_fixture_fini(&fixture);
}

static void look(void)
{
    struct weir_error err;
    weir_status status = supply_line_look(&line, &err);
    ck_assert_msg(status == WEIR_OK, "%s", err.message);
}

/* A round of the engine, a second later. */
static int32_t round_of_engine(void)
{
    struct weir_error err;
    int64_t next_ms;
    bool is_asked;
    fixture.now_ms += 1000;
    int32_t n = cycle(&fixture);
    weir_status status = scheduler_demand(fixture.scheduler, fixture.now_ms, fixture.since_ms,
                                          &next_ms, &is_asked, &err);
    ck_assert_msg(status == WEIR_OK, "%s", err.message);
    return n;
}

struct listing {
    struct weir_allocation *items;
    size_t n;
};

static weir_status list_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct listing *listing = context;
    return weir_allocation_list_open(txn, NULL, &fixture.store.arena, &listing->items, &listing->n,
                                     err);
}

static struct listing open_allocations(void)
{
    struct listing listing = {0};
    fixture_read(&fixture.store, list_in, &listing);
    return listing;
}

static int64_t n_alive(void)
{
    int64_t n = 0;
    for (size_t i = 0; i < cluster.n; i++) {
        n += cluster.items[i].phase != WEIR_ALLOCATION_ENDED;
    }
    return n;
}

/* It starts over there; its agents join, as they do with a token. */
static void start(struct there *there)
{
    there->phase = WEIR_ALLOCATION_RUNNING;
    for (int64_t i = 0; i < there->n_nodes; i++) {
        char name[96], sql[256];
        (void)snprintf(name, sizeof name, "%s-n%" PRId64, there->tag, i);
        heartbeat(&fixture, name, there->cpu_slots);
        (void)snprintf(sql, sizeof sql,
                       "UPDATE nodes SET cluster = 'slurm-a', allocation = '%s' WHERE name = '%s'",
                       there->tag, name);
        execute(&fixture, sql);
    }
    there->has_joined = true;
}

static void keep_alive(void)
{
    for (size_t i = 0; i < cluster.n; i++) {
        if (cluster.items[i].phase == WEIR_ALLOCATION_RUNNING) {
            start(&cluster.items[i]);
        }
    }
}

static const char *reason(const char *job)
{
    const char *text = job_state(&fixture, job).job.reason;
    return text != NULL ? text : "";
}

static void await_asked(size_t n)
{
    for (int i = 0; i < 5 && cluster.n < n; i++) {
        look();
        (void)round_of_engine();
    }
    look();
    ck_assert_uint_eq(cluster.n, n);
}

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

/* ---- the law --------------------------------------------------------------------------------- */

/*
 * Whatever happens, in whatever order: a cluster that is silent, that does what it is asked and does not say so, takes nodes
 * away, a server that starts again, jobs that are cancelled: nothing is asked for twice, nothing above what there is, no
 * job has a restart of it, and none runs on what another's account pays for; and when it calms down every job ends and every node is given back.
 */
static char kept[40][64];
static size_t n_kept;

/* An identifier that outlives what a round reads. */
static char *keep(const char *id)
{
    (void)snprintf(kept[n_kept], sizeof kept[0], "%s", id);
    return kept[n_kept++];
}

static void forget_round(void)
{
    weir_arena_fini(&fixture.store.arena);
    weir_arena_init(&fixture.store.arena, 0);
}

static void do_something(struct weir_rng *rng, char **jobs, size_t *n_jobs)
{
    size_t any = cluster.n > 0 ? weir_rng_below(rng, cluster.n) : 0;
    struct there *there = cluster.n > 0 ? &cluster.items[any] : NULL;
    switch (weir_rng_below(rng, 9)) {
    case 0:
    case 1:
        if (*n_jobs < 25) {
            const char *project = weir_rng_below(rng, 2) == 0 ? "vis-a" : "default";
            jobs[(*n_jobs)++] = keep(gang_of(&fixture, project, 1 + weir_rng_below(rng, 4),
                                             1 + (int64_t)weir_rng_below(rng, 16)));
        }
        break;
    case 2:
    case 3:
        if (there != NULL && there->phase == WEIR_ALLOCATION_PENDING) {
            start(there);
        }
        break;
    case 4:
        if (there != NULL && there->phase != WEIR_ALLOCATION_ENDED) {
            there->phase = WEIR_ALLOCATION_ENDED;
            there->ending = there->has_joined ? WEIR_ENDING_PREEMPTED : WEIR_ENDING_CANCELLED;
        }
        break;
    case 5:
        cluster.is_silent = weir_rng_below(rng, 2) == 0;
        break;
    case 6:
        cluster.loses_words = weir_rng_below(rng, 2) == 0;
        break;
    case 7:
        scheduler_restart(&fixture);
        line = (struct supply_line){.config = &config, .cluster = "slurm-a"};
        break;
    default:
        if (*n_jobs > 0) {
            size_t which = weir_rng_below(rng, *n_jobs);
            struct weir_job_state state = job_state(&fixture, jobs[which]);
            if (state.job.finished_ms == 0 && weir_rng_below(rng, 3) == 0) {
                cancel(&fixture, jobs[which]);
            }
        }
    }
}

/* What agents do on nodes that are there: start what should run, end what should stop; a job that has run ends now and then. */
static void play(struct weir_rng *rng, char **jobs, size_t n_jobs, uint32_t of)
{
    for (size_t i = 0; i < n_jobs; i++) {
        struct weir_job_state state = job_state(&fixture, jobs[i]);
        for (size_t k = 0; k < state.n_tasks; k++) {
            const char *phase = state.tasks[k].state;
            if (strcmp(phase, "STOPPING") == 0) {
                report(&fixture, jobs[i], k, WEIR_JOB_EVENT_TASK_EXITED, 75);
            } else if (strcmp(phase, "STARTING") == 0) {
                report(&fixture, jobs[i], k, WEIR_JOB_EVENT_TASK_RUNNING, 0);
            }
        }
        state = job_state(&fixture, jobs[i]);
        if (strcmp(state.job.state, "RUNNING") == 0 && weir_rng_below(rng, of) == 0) {
            end_all(&fixture, jobs[i]);
        }
    }
}

/* NULL: the node is none of the cluster's. */
static const struct there *there_of(const char *node)
{
    const struct there *found = NULL;
    for (size_t i = 0; node != NULL && i < cluster.n; i++) {
        size_t n = strlen(cluster.items[i].tag);
        bool is_of = strncmp(node, cluster.items[i].tag, n) == 0 && node[n] == '-';
        found = is_of ? &cluster.items[i] : found;
    }
    return found;
}

static void check_invariants(char **jobs, size_t n_jobs)
{
    ck_assert_int_eq(cluster.n_requests, (int64_t)cluster.n);
    for (size_t i = 0; i < n_jobs; i++) {
        struct weir_job_state state = job_state(&fixture, jobs[i]);
        ck_assert_int_eq(state.job.n_restarts, 0);
        ck_assert_str_ne(state.job.state, "FAILED");
        for (size_t k = 0; k < state.n_tasks; k++) { /* a gang is whole */
            const struct there *there = there_of(state.tasks[k].node);
            ck_assert_int_eq(state.tasks[k].attempt, state.tasks[0].attempt);
            ck_assert(there == NULL || /* nobody pays for others */
                      strcmp(there->payer, fake_payer(NULL, state.job.project, NULL)) == 0);
        }
    }
    for (size_t i = 0; i < cluster.n; i++) {
        ck_assert_int_le(cluster.items[i].n_nodes, cluster.max_nodes);
        ck_assert_int_le(cluster.items[i].cpu_slots, cluster.cpu_slots);
    }
}

START_TEST(nothing_is_asked_for_twice_or_lost_whatever_happens)
{
    static char *jobs[40];
    size_t n_jobs = 0;
    struct weir_rng rng;
    (void)test_seed(&rng);
    set_cluster((struct weir_cluster){.idle_ms = 10000});
    execute(&fixture, "INSERT INTO projects (name, created_ms) VALUES ('vis-a', 1)");
    for (int i = 0; i < 120; i++) {
        do_something(&rng, jobs, &n_jobs);
        keep_alive();
        line.check_due_ms = 0;
        look();
        (void)round_of_engine();
        play(&rng, jobs, n_jobs, 8);
        check_invariants(jobs, n_jobs);
        forget_round();
    }
    cluster.is_silent = cluster.loses_words = false;
    size_t n_over = 0;
    for (int i = 0; i < 2000 && (n_over < n_jobs || n_alive() > 0); i++) {
        for (size_t k = 0; k < cluster.n; k++) {
            if (cluster.items[k].phase == WEIR_ALLOCATION_PENDING) {
                start(&cluster.items[k]);
            }
        }
        keep_alive();
        line.check_due_ms = 0;
        look();
        (void)round_of_engine();
        play(&rng, jobs, n_jobs, 2);
        n_over = n_in_state(&fixture, jobs, n_jobs, "SUCCEEDED") +
                 n_in_state(&fixture, jobs, n_jobs, "CANCELLED");
        forget_round();
    }
    check_invariants(jobs, n_jobs);
    for (size_t i = 0; i < n_jobs && n_over < n_jobs; i++) {
        struct weir_job_state state = job_state(&fixture, jobs[i]);
        ck_assert_msg(state.job.finished_ms > 0, "%s is %s: %s", jobs[i], state.job.state,
                      reason(jobs[i]));
    }
    ck_assert_uint_eq(n_over, n_jobs);
    ck_assert_int_eq(n_alive(), 0);
    for (int i = 0; i < 3; i++) {
        look();
    }
    ck_assert_uint_eq(open_allocations().n, 0);
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
        an_idle_node_does_not_hold_up_a_gang_that_could_use_it,
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
    };
    Suite *suite = weir_test_suite_with("supply", set_up, tear_down, tests, WEIR_ARRAY_LEN(tests));
    TCase *random = tcase_create("random");
    tcase_set_timeout(random, 120);
    tcase_add_checked_fixture(random, set_up, tear_down);
    tcase_add_loop_test(random, nothing_is_asked_for_twice_or_lost_whatever_happens, 0,
                        WEIR_TEST_TIMES(5, 2));
    suite_add_tcase(suite, random);
    return weir_test_run(suite);
}
