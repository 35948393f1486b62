/*
 * Groups that lose ranks and take in others. Each rank is a process; what a new group computes is
 * compared with the serial sum over the members it should have.
 */
#include "comm/elastic.h"

#include "base/file.h"
#include "base/test_main.h"
#include "comm/core/test_group.h"

#include <netinet/in.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { N = 4, N_ELEMS = 3001, SEED = 11, N_TRANSPORTS = 3 };

static const char *const transports[N_TRANSPORTS] = {"shm", "ucx", "tcp"};

static char dir[64];
static char url[128];
static const char *transport;
static int timeout_ms;
static pid_t pids[WEIR_COMM_MAX_RANKS];

static void setup(void)
{
    (void)snprintf(dir, sizeof dir, "/tmp/weir-elastic-test-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(dir));
    (void)snprintf(url, sizeof url, "file://%s", dir);
    transport = "shm";
    timeout_ms = 20000;
}

static void teardown(void)
{
    ck_assert_int_eq(weir_dir_remove(dir, NULL), WEIR_OK);
}

static struct weir_comm_config config_of(int rank)
{
    return (struct weir_comm_config){.rendezvous = url,
                                     .secret = "open sesame",
                                     .rank = rank,
                                     .size = N,
                                     .timeout_ms = timeout_ms,
                                     .join_timeout_ms = 20000,
                                     .transport = transport,
                                     .is_elastic = true};
}

/** What a process of the group does; its exit status, 0 if all is well. */
typedef int (*rank_fn)(struct weir_comm *comm, int member);

static void start(int member, rank_fn function, bool is_newcomer)
{
    (void)fflush(NULL);
    pids[member] = fork();
    if (pids[member] != 0) {
        return;
    }
    struct weir_comm *comm = NULL;
    struct weir_error err;
    const struct weir_comm_config config = config_of(member);
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)alarm(60);
    weir_status status =
        is_newcomer ? weir_comm_join(&config, &comm, &err) : weir_comm_create(&config, &comm, &err);
    if (status != WEIR_OK) {
        (void)fprintf(stderr, "member %d: %s\n", member, err.message);
        exit(status == WEIR_ERR_END ? 90 : status == WEIR_ERR_UNAUTH ? 91 : 2);
    }
    exit(function(comm, member));
}

static void start_all(rank_fn function)
{
    for (int r = 0; r < N; r++) {
        start(r, function, false);
    }
}

/** Exit status, or 256 + signal. */
static int end_of(int member)
{
    int status = 0;
    ck_assert_int_eq(waitpid(pids[member], &status, 0), pids[member]);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 256 + WTERMSIG(status);
}

/** The group has these members, in this order, and computes what they would. */
static int check_group(struct weir_comm *comm, const int members[], int n)
{
    float *values = NULL;
    RANK_CHECK(weir_comm_size(comm) == n);
    for (int r = 0; r < n; r++) {
        RANK_CHECK(weir_comm_member(comm, r) == members[r]);
    }
    RANK_CHECK(weir_comm_alloc(comm, N_ELEMS * sizeof *values, (void **)&values) == WEIR_OK);
    int own = weir_comm_member(comm, weir_comm_rank(comm));
    for (size_t i = 0; i < N_ELEMS; i++) {
        values[i] = test_value(SEED, own, i);
    }
    RANK_CHECK(weir_comm_allreduce_post(comm, values, N_ELEMS) == WEIR_OK);
    RANK_CHECK(weir_comm_wait_all(comm) == WEIR_OK);
    for (size_t i = 0; i < N_ELEMS; i++) {
        float sum = test_value(SEED, members[0], i);
        for (int r = 1; r < n; r++) {
            sum += test_value(SEED, members[r], i);
        }
        RANK_CHECK(test_is_same(values[i], sum));
    }
    return 0;
}

/** Steps until the group breaks, or somebody waits to join: then a new group. */
static int next_group(struct weir_comm **comm)
{
    struct weir_error err;
    for (;;) {
        int64_t n_waiting = weir_comm_n_waiting(*comm);
        weir_status status = weir_comm_allreduce(*comm, &n_waiting, 1, WEIR_COMM_I64);
        if (status != WEIR_OK || n_waiting > 0) {
            break;
        }
    }
    if (weir_comm_regroup(comm, &err) != WEIR_OK) {
        (void)fprintf(stderr, "regroup: %s\n", err.message);
        return 3;
    }
    return 0;
}

/** Not before all have the group: that they begin a step shows it. */
static void die_among_others(struct weir_comm *comm)
{
    int64_t n_waiting = 0;
    (void)!weir_comm_allreduce(comm, &n_waiting, 1, WEIR_COMM_I64);
    (void)raise(SIGKILL);
}

static int leave(struct weir_comm *comm, int result)
{
    weir_comm_destroy(comm);
    return result;
}

/* ---- losing --------------------------------------------------------------------------------- */

static int victims[2]; /**< -1: none. */

static int step_or_die(struct weir_comm *comm, int member)
{
    int left[N], n = 0;
    for (int m = 0; m < N; m++) {
        if (m != victims[0] && m != victims[1]) {
            left[n++] = m;
        }
    }
    if (member == victims[0] || member == victims[1]) {
        die_among_others(comm);
    }
    if (next_group(&comm) != 0) {
        return 3;
    }
    /* The second may have died only while the others met already. */
    if (weir_comm_size(comm) != n && next_group(&comm) != 0) {
        return 4;
    }
    return leave(comm, check_group(comm, left, n));
}

static void check_survivors(void)
{
    start_all(step_or_die);
    for (int m = 0; m < N; m++) {
        bool is_victim = m == victims[0] || m == victims[1];
        ck_assert_int_eq(end_of(m), is_victim ? 256 + SIGKILL : 0);
    }
}

START_TEST(whoever_dies_the_others_go_on)
{
    transport = transports[_i / N];
    victims[0] = _i % N;
    victims[1] = -1;
    check_survivors();
}

END_TEST

START_TEST(two_may_die_at_once_and_the_leader_be_one_of_them)
{
    victims[0] = _i;
    victims[1] = _i + 1;
    check_survivors();
}

END_TEST

static int until_alone(struct weir_comm *comm, int member)
{
    const int self[] = {member};
    while (weir_comm_size(comm) > 1) {
        if (weir_comm_member(comm, weir_comm_size(comm) - 1) == member) {
            die_among_others(comm);
        }
        if (next_group(&comm) != 0) {
            return 3;
        }
    }
    return leave(comm, check_group(comm, self, 1));
}

START_TEST(the_last_one_goes_on_alone)
{
    start_all(until_alone);
    for (int m = 0; m < N; m++) {
        ck_assert_int_eq(end_of(m), m == 0 ? 0 : 256 + SIGKILL);
    }
}

END_TEST

/* ---- coming --------------------------------------------------------------------------------- */

/** Lose one, take in another with its number. */
static int lose_and_gain(struct weir_comm *comm, int member)
{
    const int after_0[] = {1, 0, 2, 3}, as_before[] = {0, 1, 2, 3};
    if (member == victims[0]) {
        die_among_others(comm);
    }
    do { /* the newcomer may be there before the loss is noticed */
        if (next_group(&comm) != 0) {
            return 3;
        }
    } while (weir_comm_size(comm) < N);
    return leave(comm, check_group(comm, victims[0] == 0 ? after_0 : as_before, N));
}

static int be_new(struct weir_comm *comm, int member)
{
    const int after_0[] = {1, 0, 2, 3}, as_before[] = {0, 1, 2, 3};
    return leave(comm, check_group(comm, member == 0 ? after_0 : as_before, N));
}

START_TEST(a_newcomer_takes_the_place_of_the_lost)
{
    transport = transports[_i / N];
    victims[0] = _i % N;
    start_all(lose_and_gain);
    ck_assert_int_eq(end_of(victims[0]), 256 + SIGKILL);
    start(victims[0], be_new, true);
    for (int m = 0; m < N; m++) {
        ck_assert_int_eq(end_of(m), 0);
    }
}

END_TEST

static int grow(struct weir_comm *comm, int member)
{
    const int all[] = {0, 1, 2, 3, 7};
    (void)member;
    return next_group(&comm) != 0 ? 3 : leave(comm, check_group(comm, all, N + 1));
}

static int grown(struct weir_comm *comm, int member)
{
    const int all[] = {0, 1, 2, 3, 7};
    (void)member;
    return leave(comm, check_group(comm, all, N + 1));
}

START_TEST(a_group_grows_beyond_what_it_was)
{
    start_all(grow);
    start(7, grown, true);
    for (int m = 0; m < N; m++) {
        ck_assert_int_eq(end_of(m), 0);
    }
    ck_assert_int_eq(end_of(7), 0);
}

END_TEST

static int done_at_once(struct weir_comm *comm, int member)
{
    (void)member;
    return leave(comm, weir_comm_barrier(comm) == WEIR_OK ? 0 : 1);
}

START_TEST(a_group_that_has_done_its_work_sends_newcomers_away)
{
    start_all(done_at_once);
    for (int m = 0; m < N; m++) {
        ck_assert_int_eq(end_of(m), 0);
    }
    start(2, be_new, true);
    ck_assert_int_eq(end_of(2), 90);
}

END_TEST

/** Steps until somebody is taken in, who is not the one without the secret. */
START_TEST(who_does_not_know_the_secret_is_not_let_in_and_disturbs_nobody)
{
    start_all(grow);
    pids[9] = fork();
    if (pids[9] == 0) {
        struct weir_comm *comm = NULL;
        struct weir_comm_config config = config_of(9);
        config.secret = "open barley";
        exit(weir_comm_join(&config, &comm, NULL) == WEIR_ERR_UNAUTH ? 0 : 1);
    }
    ck_assert_int_eq(end_of(9), 0);
    start(7, grown, true);
    for (int m = 0; m < N; m++) {
        ck_assert_int_eq(end_of(m), 0);
    }
    ck_assert_int_eq(end_of(7), 0);
}

END_TEST

/* ---- what cannot go on, and what comes back ------------------------------------------------- */

static int without_leader(struct weir_comm *comm, int member)
{
    if (member == 0) {
        die_among_others(comm);
    }
    struct weir_error err;
    int64_t n_waiting = 0;
    while (weir_comm_allreduce(comm, &n_waiting, 1, WEIR_COMM_I64) == WEIR_OK) {
    }
    weir_status status = weir_comm_regroup(&comm, &err);
    return status == WEIR_ERR_PEER && strstr(err.message, "rank 0 is lost") != NULL ? 0 : 1;
}

static void listen_at_a_free_port(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)}};
    socklen_t len = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&address, len), 0);
    ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&address, &len), 0);
    (void)close(fd);
    (void)snprintf(url, sizeof url, "tcp://127.0.0.1:%d", ntohs(address.sin_port));
}

START_TEST(an_address_without_its_leader_is_the_end_and_says_so)
{
    listen_at_a_free_port();
    start_all(without_leader);
    for (int m = 1; m < N; m++) {
        ck_assert_int_eq(end_of(m), 0);
    }
    ck_assert_int_eq(end_of(0), 256 + SIGKILL);
}

END_TEST

START_TEST(at_an_address_others_may_go_and_come)
{
    listen_at_a_free_port();
    victims[0] = 2;
    start_all(lose_and_gain);
    ck_assert_int_eq(end_of(2), 256 + SIGKILL);
    start(2, be_new, true);
    for (int m = 0; m < N; m++) {
        ck_assert_int_eq(end_of(m), 0);
    }
}

END_TEST

static int freeze(struct weir_comm *comm, int member)
{
    const int all[] = {0, 1, 2, 3};
    if (member == 3) {
        (void)raise(SIGSTOP);
    }
    do {
        if (next_group(&comm) != 0) {
            return 3;
        }
        if (member == 0 && weir_comm_size(comm) == N - 1) {
            (void)kill(getppid(), SIGUSR1); /* the others do without it: let it run again */
        }
    } while (weir_comm_size(comm) < N);
    return leave(comm, check_group(comm, all, N));
}

START_TEST(one_that_was_frozen_is_done_without_and_comes_back)
{
    sigset_t set;
    int signal_number = 0;
    timeout_ms = 2000;
    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGUSR1);
    (void)sigprocmask(SIG_BLOCK, &set, NULL);
    start_all(freeze);
    ck_assert_int_eq(sigwait(&set, &signal_number), 0);
    ck_assert_int_eq(kill(pids[3], SIGCONT), 0);
    for (int m = 0; m < N; m++) {
        ck_assert_int_eq(end_of(m), 0);
    }
}

END_TEST

START_TEST(a_group_that_is_not_elastic_stays_as_it_is)
{
    struct weir_comm *comm = NULL;
    struct weir_error err;
    struct weir_comm_config config = config_of(0);
    config.size = 1;
    config.is_elastic = false;
    ck_assert_int_eq(weir_comm_create(&config, &comm, &err), WEIR_OK);
    ck_assert_int_eq(weir_comm_n_waiting(comm), 0);
    ck_assert_int_eq(weir_comm_member(comm, 0), 0);
    ck_assert_int_eq(weir_comm_regroup(&comm, &err), WEIR_ERR_INVALID);
    ck_assert_ptr_null(comm);
    config.is_elastic = true;
    config.size = 3;
    config.n_servers = 1;
    ck_assert_int_eq(weir_comm_create(&config, &comm, &err), WEIR_ERR_INVALID);
}

END_TEST

int main(void)
{
    Suite *suite = suite_create("elastic");
    TCase *tcase = tcase_create("elastic");
    tcase_set_timeout(tcase, 60);
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_loop_test(tcase, whoever_dies_the_others_go_on, 0, N_TRANSPORTS * N);
    tcase_add_loop_test(tcase, two_may_die_at_once_and_the_leader_be_one_of_them, 0, 3);
    tcase_add_test(tcase, the_last_one_goes_on_alone);
    tcase_add_loop_test(tcase, a_newcomer_takes_the_place_of_the_lost, 0, N_TRANSPORTS * N);
    tcase_add_test(tcase, a_group_grows_beyond_what_it_was);
    tcase_add_test(tcase, a_group_that_has_done_its_work_sends_newcomers_away);
    tcase_add_test(tcase, who_does_not_know_the_secret_is_not_let_in_and_disturbs_nobody);
    tcase_add_test(tcase, an_address_without_its_leader_is_the_end_and_says_so);
    tcase_add_test(tcase, at_an_address_others_may_go_and_come);
    tcase_add_test(tcase, one_that_was_frozen_is_done_without_and_comes_back);
    tcase_add_test(tcase, a_group_that_is_not_elastic_stays_as_it_is);
    suite_add_tcase(suite, tcase);
    return weir_test_run(suite);
}
