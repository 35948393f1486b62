/* What is asked of a cluster, whatever happens. */
#include "control/cluster/supply_fixture.h"
#include "job/task_device.h"

#include "base/rng.h"
#include "base/test_seed.h"

/* ---- the law --------------------------------------------------------------------------------- */

/*
 * Whatever happens, in whatever order, with devices and without: a cluster that is silent, that does what it is asked and does not say so, takes nodes
 * away, a server that starts again, jobs that are cancelled: nothing is asked for twice, nothing above what there is, of
 * a device no more than what of it was asked for is given, no job has a restart of it, none runs on what another's account
 * pays for, and none in a pod of another image than it wants; and when it calms down every job ends and every node is given
 * back.
 */
static size_t n_in_parts, n_in_images; /* Allocations, and tasks, that were seen. */
static char kept[40][64];
static const char *images[40]; /* What a kept job wants of its pods; "": nothing. */
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

/* Shares of one device, or some whole ones. */
static void want_some(struct weir_rng *rng, const char *job)
{
    bool is_share = weir_rng_below(rng, 3) > 0;
    int64_t milli = is_share ? 1 + (int64_t)weir_rng_below(rng, 999) : 1000;
    want_devices(job, 1 + (int64_t)weir_rng_below(rng, is_share ? 2 : 4), milli);
}

static void want_any_image(struct weir_rng *rng, size_t job)
{
    static const char *const known[] = {"", "", "a/b:1", "a/b:2"};
    images[job] = known[weir_rng_below(rng, WEIR_ARRAY_LEN(known))];
    if (images[job][0] != '\0') {
        want_image(kept[job], images[job]);
    }
}

static const char *image_of(const char *job)
{
    size_t i = 0;
    while (i < n_kept && strcmp(kept[i], job) != 0) {
        i++;
    }
    return i < n_kept && images[i] != NULL ? images[i] : "";
}

static weir_status count_given_back_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    return weir_txn_query_int(
        txn,
        "SELECT count(*) FROM tasks t JOIN nodes n ON n.name = t.node JOIN allocations a"
        " ON a.id = n.allocation WHERE a.state = 'releasing' AND t.state IN ('STARTING', "
        "'RUNNING')",
        NULL, 0, 0, context, err);
}

/* A person gives one back, and the engine is faster than its agents hear of it: nothing more comes there. */
static void give_back(const struct there *there)
{
    int64_t n_before, n_after;
    if (there == NULL || there->phase == WEIR_ALLOCATION_ENDED) {
        return;
    }
    fixture_write(&fixture.store, release_in, (void *)(uintptr_t)there->tag);
    fixture_read(&fixture.store, count_given_back_in, &n_before);
    for (int i = 0; i < 3; i++) {
        (void)round_of_engine();
    }
    fixture_read(&fixture.store, count_given_back_in, &n_after);
    ck_assert_int_le(n_after, n_before);
}

static void do_something(struct weir_rng *rng, char **jobs, size_t *n_jobs)
{
    size_t any = cluster.n > 0 ? weir_rng_below(rng, cluster.n) : 0;
    struct there *there = cluster.n > 0 ? &cluster.items[any] : NULL;
    switch (weir_rng_below(rng, 10)) {
    case 0:
    case 1:
        if (*n_jobs < 25) {
            const char *project = weir_rng_below(rng, 2) == 0 ? "vis-a" : "default";
            jobs[(*n_jobs)++] = keep(gang_of(&fixture, project, 1 + weir_rng_below(rng, 4),
                                             1 + (int64_t)weir_rng_below(rng, 16)));
            if (cluster.n_accelerators > 0 && weir_rng_below(rng, 3) > 0) {
                want_some(rng, jobs[*n_jobs - 1]);
            }
            want_any_image(rng, n_kept - 1);
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
        supply_line_end(&line);
        line = (struct supply_line){.config = &config, .cluster = "slurm-a"};
        break;
    case 8:
        give_back(there);
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

struct settling {
    const char *node;
    struct weir_attempt_name alive[200];
    size_t n;
};

static weir_status settle_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    const struct settling *settling = context;
    size_t n_freed;
    return weir_task_devices_settle(txn, settling->node, settling->alive, settling->n, &n_freed,
                                    err);
}

/* Agents say what has not ended: what else had devices there has none. */
static void settle(char **jobs, size_t n_jobs)
{
    for (size_t i = 0; i < cluster.n && cluster.n_accelerators > 0; i++) {
        bool runs = cluster.items[i].phase == WEIR_ALLOCATION_RUNNING;
        for (int64_t node = 0; runs && node < cluster.items[i].n_nodes; node++) {
            struct settling settling = {.node =
                                            weir_arena_printf(&fixture.store.arena, "%s-n%" PRId64,
                                                              cluster.items[i].tag, node)};
            for (size_t j = 0; j < n_jobs; j++) {
                struct weir_job_state state = job_state(&fixture, jobs[j]);
                for (size_t k = 0; k < state.n_tasks; k++) {
                    enum weir_task_phase phase = weir_task_phase_from_text(state.tasks[k].state);
                    bool is_alive = phase == WEIR_TASK_STARTING || phase == WEIR_TASK_RUNNING ||
                                    phase == WEIR_TASK_STOPPING;
                    if (is_alive && strcmp(state.tasks[k].node, settling.node) == 0) {
                        settling.alive[settling.n++] =
                            (struct weir_attempt_name){state.tasks[k].id, state.tasks[k].attempt};
                    }
                }
            }
            fixture_write(&fixture.store, settle_in, &settling);
        }
    }
}

static weir_status count_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    return weir_txn_query_int(
        txn,
        "SELECT count(*) FROM (SELECT d.node AS node, sum(d.milli) AS milli FROM task_devices d"
        " GROUP BY d.node, d.idx) AS given JOIN nodes n ON n.name = given.node WHERE given.milli >"
        " CASE WHEN n.device_milli > 0 THEN n.device_milli ELSE 1000 END",
        NULL, 0, 0, context, err);
}

/* No device is given beyond what there is of it; and what is asked for is a number of its parts. */
static void check_devices(void)
{
    int64_t n_exceeded;
    fixture_read(&fixture.store, count_in, &n_exceeded);
    ck_assert_int_eq(n_exceeded, 0);
    for (size_t i = 0; i < cluster.n; i++) {
        int64_t milli = cluster.items[i].accelerator_milli, parts = cluster.accelerator_parts;
        int64_t n = (milli * parts + 999) / 1000;
        ck_assert_int_le(cluster.items[i].n_accelerators, cluster.n_accelerators);
        ck_assert(milli == 0 || (cluster.items[i].n_accelerators == 1 && n > 0 && n < parts &&
                                 n * 1000 / parts == milli));
        n_in_parts += milli > 0;
    }
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
            bool is_placed = state.tasks[k].node != NULL && state.tasks[k].node[0] != '\0';
            const char *image = image_of(jobs[i]);
            ck_assert_str_eq(there != NULL ? there->image : is_placed ? "" : image, image);
            n_in_images += there != NULL && image[0] != '\0';
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
    cluster.n_accelerators = _i % 2 == 0 ? 4 : 0;
    cluster.accelerator_parts = 1 + (int64_t)weir_rng_below(&rng, 12);
    cluster.tells_devices = true;
    if (cluster.n_accelerators > 0) {
        jobs[n_jobs++] = keep(gang(&fixture, 1, 1));
        want_devices(jobs[0], 1, 300);
        look();
        (void)round_of_engine();
    }
    execute(&fixture, "INSERT INTO projects (name, created_ms) VALUES ('vis-a', 1)");
    for (int i = 0; i < 120; i++) {
        do_something(&rng, jobs, &n_jobs);
        keep_alive();
        line.check_due_ms = 0;
        look();
        (void)round_of_engine();
        play(&rng, jobs, n_jobs, 8);
        settle(jobs, n_jobs);
        check_invariants(jobs, n_jobs);
        check_devices();
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
        settle(jobs, n_jobs);
        check_devices();
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
    ck_assert(cluster.n_accelerators == 0 || cluster.accelerator_parts == 1 || n_in_parts > 0);
    ck_assert_uint_gt(n_in_images, 0);
}

END_TEST

int main(void)
{
    Suite *suite = suite_create("supply_property");
    TCase *random = tcase_create("random");
    tcase_set_timeout(random, 120);
    tcase_add_checked_fixture(random, set_up, tear_down);
    tcase_add_loop_test(random, nothing_is_asked_for_twice_or_lost_whatever_happens, 0,
                        WEIR_TEST_TIMES(5, 2));
    suite_add_tcase(suite, random);
    return weir_test_run(suite);
}
