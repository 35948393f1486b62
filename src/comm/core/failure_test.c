/* Ranks that die, freeze, leave or disagree: the others get an error that names them, in time. */
#include "comm/core/test_group.h"

#include "base/clock.h"
#include "base/test_main.h"
#include "comm/ps.h"

#include <dirent.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/wait.h>

enum { N_KINDS = 4 };

static const char *const transports[] = {"shm", "ucx", "auto", "tcp"};

/* Of the third kind are two hosts with several ranks: 0, 1 (of four) on one, 2, 3 on the other. */
static void init_group(struct test_group *group, int n_ranks, int kind)
{
    test_group_init(group, n_ranks, transports[kind]);
    group->n_hosts = kind == 2 ? 2 : 1;
}

/* Generous: the machine may be busy. What is measured is printed. */
enum { SOON_MS = 2000 };

/* Memory that the test and its ranks share. */
struct board {
    atomic_int rounds[WEIR_COMM_MAX_RANKS];
    atomic_ullong at_ns; /**< When the fault was made. */
    atomic_ullong noticed_ns[WEIR_COMM_MAX_RANKS];
    atomic_int flag;
    int victim;
    weir_status expected;
};

static struct board *board;

static void board_reset(int victim, weir_status expected)
{
    memset(board, 0, sizeof *board);
    board->victim = victim;
    board->expected = expected;
}

/* Wait until a condition on the board holds; the ranks' own alarm ends a hang. */
#define BOARD_WAIT(condition)                                                                      \
    while (!(condition)) {                                                                         \
        (void)poll(NULL, 0, 1);                                                                    \
    }

static void print_delays(const char *what, const struct test_group *group)
{
    for (int r = 0; r < group->size; r++) {
        unsigned long long noticed = atomic_load(&board->noticed_ns[r]);
        if (noticed != 0) {
            printf("%s, %s: rank %d after %.2f ms\n", what, group->transport, r,
                   (double)(noticed - atomic_load(&board->at_ns)) / 1e6);
        }
    }
}

static bool noticed_soon(const struct test_group *group, int extra_ms)
{
    for (int r = 0; r < group->size; r++) {
        unsigned long long noticed = atomic_load(&board->noticed_ns[r]);
        if (r != board->victim && noticed - atomic_load(&board->at_ns) >
                                      (unsigned long long)(SOON_MS + extra_ms) * 1000000) {
            return false;
        }
    }
    return true;
}

static weir_status take_gradient(void *context, const struct weir_ps_step *step, float *weights,
                                 const float *gradient_sum, size_t first_elem, size_t n_elems)
{
    (void)context;
    (void)step;
    (void)first_elem;
    memcpy(weights, gradient_sum, n_elems * sizeof *weights);
    return WEIR_OK;
}

/* A failed communicator: same status from every call, and the rank's name. */
static int check_failed(struct weir_comm *comm, weir_status status)
{
    float value = 0;
    int at_fault = -1;
    struct weir_error err;
    void *memory;
    char name[32];
    (void)snprintf(name, sizeof name, "rank %d", board->victim);
    RANK_CHECK(status == board->expected);
    RANK_CHECK(weir_comm_failure(comm, &at_fault, &err) == board->expected);
    RANK_CHECK(at_fault == board->victim);
    RANK_CHECK(err.status == board->expected && strstr(err.message, name) != NULL);
    RANK_CHECK(weir_comm_allreduce(comm, &value, 1, WEIR_COMM_F32) == board->expected);
    RANK_CHECK(weir_comm_broadcast(comm, &value, sizeof value, 0) == board->expected);
    RANK_CHECK(weir_comm_barrier(comm) == board->expected);
    RANK_CHECK(weir_comm_allreduce_post(comm, &value, 1) == board->expected);
    RANK_CHECK(weir_comm_wait_all(comm) == board->expected);
    RANK_CHECK(weir_comm_alloc(comm, 8, &memory) == board->expected);
    return 0;
}

/* Sum without end, until it fails as expected. */
static int sum_until_failure(struct weir_comm *comm, void *context)
{
    (void)context;

    enum { N = 300000 };

    int rank = weir_comm_rank(comm);
    float *buf = NULL;
    RANK_CHECK(weir_comm_alloc(comm, N * sizeof *buf, (void **)&buf) == WEIR_OK);
    weir_status status = WEIR_OK;
    while (status == WEIR_OK) {
        (void)atomic_fetch_add(&board->rounds[rank], 1);
        status = weir_comm_allreduce(comm, buf, N, WEIR_COMM_F32);
    }
    atomic_store(&board->noticed_ns[rank], weir_mono_ns());
    return check_failed(comm, status);
}

static void hurt_while_summing(struct test_group *group, int signal_number)
{
    test_group_start(group, sum_until_failure, NULL);
    BOARD_WAIT(atomic_load(&board->rounds[board->victim]) >= 20);
    atomic_store(&board->at_ns, weir_mono_ns());
    ck_assert_int_eq(kill(group->pids[board->victim], signal_number), 0);
}

START_TEST(a_killed_rank_is_named_to_all_others_at_once)
{
    struct test_group group;
    init_group(&group, 4, _i % N_KINDS);
    board_reset(_i < N_KINDS ? 2 : 3, WEIR_ERR_PEER); /* of a host's ranks the leader; another */
    hurt_while_summing(&group, SIGKILL);
    for (int r = 0; r < group.size; r++) {
        ck_assert_int_eq(test_group_wait(&group, r), r == board->victim ? 256 + SIGKILL : 0);
    }
    print_delays("killed", &group);
    ck_assert(noticed_soon(&group, 0));
    test_group_fini(&group);
}

END_TEST

/* Of calls that somebody does not come to. Healthy ranks have a quarter of it to answer who is
 * late: a busy machine may hold one up for longer than 250 ms. */
enum { DEADLINE_MS = 2000 };

START_TEST(a_frozen_rank_is_named_after_the_deadline)
{
    struct test_group group;
    init_group(&group, 3, _i);
    group.timeout_ms = DEADLINE_MS;
    board_reset(1, WEIR_ERR_TIMEOUT);
    hurt_while_summing(&group, SIGSTOP);
    ck_assert_int_eq(test_group_wait(&group, 0), 0);
    ck_assert_int_eq(test_group_wait(&group, 2), 0);
    ck_assert_int_eq(kill(group.pids[1], SIGKILL), 0);
    ck_assert_int_eq(test_group_wait(&group, 1), 256 + SIGKILL);
    print_delays("frozen, deadline 2000 ms", &group);
    ck_assert(noticed_soon(&group, group.timeout_ms));
    test_group_fini(&group);
}

END_TEST

static int check_fault(struct weir_comm *comm, weir_status status)
{
    int at_fault = -1;
    struct weir_error err;
    RANK_CHECK(status == board->expected);
    RANK_CHECK(weir_comm_failure(comm, &at_fault, &err) == board->expected);
    RANK_CHECK(at_fault == board->victim);
    return 0;
}

/* Worker 0 waits for the server, the server for worker 1, who does not come. */
static int serve_who_does_not_come(struct weir_comm *comm, void *context)
{
    struct weir_ps_config config = {.idle_timeout_ms = 60000};
    float value = 0;
    (void)context;
    if (weir_comm_rank(comm) == 2) {
        return check_fault(comm, weir_ps_serve(comm, &config, take_gradient, NULL));
    }
    RANK_CHECK(weir_ps_start(comm, &value, 1) == WEIR_OK);
    if (weir_comm_rank(comm) == board->victim) {
        atomic_store(&board->flag, 1);
        for (;;) {
            (void)pause();
        }
    }
    BOARD_WAIT(atomic_load(&board->flag) == 1);
    atomic_store(&board->at_ns, weir_mono_ns());
    weir_status status = weir_ps_push_pull(comm, &value, &value, 1, &(struct weir_ps_step){0});
    atomic_store(&board->noticed_ns[0], weir_mono_ns());
    return check_fault(comm, status);
}

START_TEST(who_is_late_is_named_not_who_waits_for_them)
{
    struct test_group group;
    init_group(&group, 3, _i);
    group.n_servers = 1;
    group.timeout_ms = DEADLINE_MS;
    board_reset(1, WEIR_ERR_TIMEOUT);
    test_group_start(&group, serve_who_does_not_come, NULL);
    ck_assert_int_eq(test_group_wait(&group, 0), 0);
    ck_assert_int_eq(test_group_wait(&group, 2), 0);
    ck_assert_int_eq(kill(group.pids[1], SIGKILL), 0);
    ck_assert_int_eq(test_group_wait(&group, 1), 256 + SIGKILL);
    print_delays("late, deadline 2000 ms", &group);
    test_group_fini(&group);
}

END_TEST

static int leave_early(struct weir_comm *comm, void *context)
{
    (void)context;
    int rank = weir_comm_rank(comm);
    RANK_CHECK(weir_comm_barrier(comm) == WEIR_OK);
    if (rank == board->victim) {
        atomic_store(&board->at_ns, weir_mono_ns());
        return 0;
    }
    weir_status status = weir_comm_barrier(comm);
    atomic_store(&board->noticed_ns[rank], weir_mono_ns());
    return check_failed(comm, status);
}

START_TEST(a_rank_that_leaves_is_named_to_those_who_wait_for_it)
{
    struct test_group group;
    init_group(&group, 3, _i);
    board_reset(0, WEIR_ERR_PEER);
    ck_assert_int_eq(test_group_run(&group, leave_early, NULL), 0);
    print_delays("left", &group);
    ck_assert(noticed_soon(&group, 0));
    test_group_fini(&group);
}

END_TEST

static int disagree(struct weir_comm *comm, void *context)
{
    (void)context;
    int64_t values[2] = {0, 0};
    weir_status status =
        weir_comm_allreduce(comm, values, weir_comm_rank(comm) == 1 ? 2 : 1, WEIR_COMM_I64);
    if (strcmp(weir_comm_transport(comm), "shm") == 0) {
        RANK_CHECK(status == WEIR_ERR_INVALID);
    } else {
        /* Who got the wrong size says so; the others hear that it gave up. */
        RANK_CHECK(status == WEIR_ERR_INVALID || status == WEIR_ERR_PEER);
    }
    return 0;
}

START_TEST(ranks_that_disagree_on_the_size_fail)
{
    struct test_group group;
    init_group(&group, 3, _i);
    ck_assert_int_eq(test_group_run(&group, disagree, NULL), 0);
    test_group_fini(&group);
}

END_TEST

static int fill_the_queue(struct weir_comm *comm, void *context)
{
    (void)context;
    static float values[WEIR_COMM_MAX_QUEUED];
    if (weir_comm_rank(comm) == 1) {
        BOARD_WAIT(atomic_load(&board->flag) != 0);
    }
    for (int i = 0; i < WEIR_COMM_MAX_QUEUED; i++) {
        values[i] = (float)i;
        RANK_CHECK(weir_comm_allreduce_post(comm, &values[i], 1) == WEIR_OK);
    }
    if (weir_comm_rank(comm) == 0) {
        float extra = 0;
        RANK_CHECK(weir_comm_allreduce_post(comm, &extra, 1) == WEIR_ERR_LIMIT);
        atomic_store(&board->flag, 1);
    }
    RANK_CHECK(weir_comm_wait_all(comm) == WEIR_OK);
    for (int i = 0; i < WEIR_COMM_MAX_QUEUED; i++) {
        RANK_CHECK(values[i] == 2 * (float)i);
    }
    return 0;
}

START_TEST(posting_never_waits_and_a_full_queue_says_so)
{
    struct test_group group;
    init_group(&group, 2, _i);
    board_reset(-1, WEIR_OK);
    ck_assert_int_eq(test_group_run(&group, fill_the_queue, NULL), 0);
    test_group_fini(&group);
}

END_TEST

static int destroy_with_queued(struct weir_comm *comm, void *context)
{
    (void)context;
    static float buf[100000];
    if (weir_comm_rank(comm) == 1) {
        /* Does not take part, but is there. */
        BOARD_WAIT(atomic_load(&board->flag) == 2);
        return 0;
    }
    RANK_CHECK(weir_comm_allreduce_post(comm, buf, 100000) == WEIR_OK);
    RANK_CHECK(weir_comm_allreduce_post(comm, buf, 100000) == WEIR_OK);
    atomic_store(&board->flag, 1);
    return 0; /* test_group destroys; the deadline is a minute away */
}

START_TEST(destroying_cancels_what_is_queued)
{
    struct test_group group;
    init_group(&group, 2, _i);
    board_reset(-1, WEIR_OK);
    test_group_start(&group, destroy_with_queued, NULL);
    BOARD_WAIT(atomic_load(&board->flag) == 1);
    uint64_t start_ns = weir_mono_ns();
    ck_assert_int_eq(test_group_wait(&group, 0), 0);
    ck_assert_uint_lt(weir_mono_ns() - start_ns, (SOON_MS + 2000) * UINT64_C(1000000));
    atomic_store(&board->flag, 2);
    ck_assert_int_eq(test_group_wait(&group, 1), 0);
    test_group_fini(&group);
}

END_TEST

static int count_files(const char *folder)
{
    DIR *dir = opendir(folder);
    int n = 0;
    ck_assert_ptr_nonnull(dir);
    for (struct dirent *entry = readdir(dir); entry != NULL; entry = readdir(dir)) {
        n += entry->d_name[0] != '.';
    }
    (void)closedir(dir);
    return n;
}

/* Mappings of a process that others can write too and that have a name in a file system: they
 * outlive it. What other programs have there does not count. */
static int count_named_shared_mappings(pid_t pid)
{
    char path[64], line[1024], perms[8], name[512];
    unsigned long inode;
    int n = 0;
    (void)snprintf(path, sizeof path, "/proc/%d/maps", (int)pid);
    FILE *maps = fopen(path, "re");
    ck_assert_ptr_nonnull(maps);
    while (fgets(line, sizeof line, maps) != NULL) {
        name[0] = '\0';
        if (sscanf(line, "%*s %7s %*s %*s %lu %511[^\n]", perms, &inode, name) >= 2) {
            n += perms[3] == 's' && inode != 0 && strstr(name, "(deleted)") == NULL;
        }
    }
    (void)fclose(maps);
    return n;
}

START_TEST(nothing_is_left_when_all_ranks_are_killed)
{
    struct test_group group;
    test_group_init(&group, 3, "shm");
    board_reset(0, WEIR_ERR_PEER);
    int n_named = 0;
    test_group_start(&group, sum_until_failure, NULL);
    BOARD_WAIT(atomic_load(&board->rounds[0]) >= 5);
    for (int r = 0; r < group.size; r++) {
        n_named += count_named_shared_mappings(group.pids[r]);
    }
    for (int r = 0; r < group.size; r++) {
        (void)kill(group.pids[r], SIGKILL);
    }
    for (int r = 0; r < group.size; r++) {
        (void)test_group_wait(&group, r);
    }
    ck_assert_int_eq(n_named, 0);
    ck_assert_int_eq(count_files(group.dir), 0);
    test_group_fini(&group);
}

END_TEST

int main(void)
{
    board = mmap(NULL, sizeof *board, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (board == MAP_FAILED) {
        return 1;
    }
    Suite *suite = suite_create("failure");
    TCase *tcase = tcase_create("failure");
    tcase_add_loop_test(tcase, a_killed_rank_is_named_to_all_others_at_once, 0, 2 * N_KINDS);
    tcase_add_loop_test(tcase, a_frozen_rank_is_named_after_the_deadline, 0, N_KINDS);
    tcase_add_loop_test(tcase, who_is_late_is_named_not_who_waits_for_them, 0, N_KINDS);
    tcase_add_loop_test(tcase, a_rank_that_leaves_is_named_to_those_who_wait_for_it, 0, N_KINDS);
    tcase_add_loop_test(tcase, ranks_that_disagree_on_the_size_fail, 0, N_KINDS);
    tcase_add_loop_test(tcase, posting_never_waits_and_a_full_queue_says_so, 0, N_KINDS);
    tcase_add_loop_test(tcase, destroying_cancels_what_is_queued, 0, N_KINDS);
    tcase_add_test(tcase, nothing_is_left_when_all_ranks_are_killed);
    suite_add_tcase(suite, tcase);
    return weir_test_run_here(suite);
}
