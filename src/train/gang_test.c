/* Why a gang ended, worked out from how its ranks did. */
#include "train/gang.h"

#include "base/test_main.h"

#include <signal.h>
#include <string.h>

/* As waitpid has them on Linux. */
#define EXITED(status) ((status) << 8)
#define KILLED(number) (number)

static struct gang_exit rank_end(int rank, int wait_status, weir_status reported, const char *text)
{
    struct gang_exit exit = {.rank = rank, .role = "worker", .wait_status = wait_status};
    if (reported != WEIR_OK) {
        (void)weir_error_set(&exit.failure, reported, "%s", text);
    }
    return exit;
}

static struct gang_exit stopped(int rank)
{
    return rank_end(rank, EXITED(weir_status_exit(WEIR_ERR_CANCELLED)), WEIR_ERR_CANCELLED,
                    "stopped at step 8 of 18");
}

static struct gang_exit aborting(int rank)
{
    return rank_end(rank, EXITED(weir_status_exit(WEIR_ERR_CANCELLED)), WEIR_OK, "");
}

static struct gang_exit lost_another(int rank)
{
    return rank_end(rank, EXITED(weir_status_exit(WEIR_ERR_PEER)), WEIR_ERR_PEER,
                    "rank 1 left the group");
}

static struct gang_exit killed_by_us(int rank)
{
    struct gang_exit exit = rank_end(rank, KILLED(SIGKILL), WEIR_OK, "");
    exit.is_ours = true;
    return exit;
}

/** All orders of three ends have the same cause. */
static void check(const struct gang_exit ends[3], bool is_stopped, weir_status status,
                  const char *message, bool is_worth_restarting)
{
    static const int orders[6][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2},
                                     {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
    for (int i = 0; i < 6; i++) {
        struct gang_exit exits[3];
        struct gang_end end;
        for (int k = 0; k < 3; k++) {
            exits[k] = ends[orders[i][k]];
        }
        gang_root_cause(exits, 3, is_stopped, &end);
        ck_assert_int_eq(end.status, status);
        ck_assert_str_eq(end.err.message, message);
        ck_assert_int_eq(end.is_worth_restarting, is_worth_restarting);
        ck_assert_int_eq(end.is_stopped, is_stopped);
    }
}

START_TEST(a_stop_is_told_as_one_whoever_ends_first_and_however)
{
    const char *at_step = "stopped at step 8 of 18";
    check((struct gang_exit[3]){aborting(0), stopped(1), lost_another(2)}, true, WEIR_ERR_CANCELLED,
          at_step, false);
    check((struct gang_exit[3]){killed_by_us(0), stopped(1), aborting(2)}, true, WEIR_ERR_CANCELLED,
          at_step, false);
    check((struct gang_exit[3]){rank_end(0, KILLED(SIGSEGV), WEIR_OK, ""), stopped(1), stopped(2)},
          true, WEIR_ERR_CANCELLED, at_step, true);
    check((struct gang_exit[3]){aborting(0), lost_another(1), aborting(2)}, true,
          WEIR_ERR_CANCELLED, "stopped before its first step", false);
}

END_TEST

START_TEST(a_killed_rank_is_the_root_cause_whatever_the_others_report)
{
    check((struct gang_exit[3]){lost_another(0), rank_end(1, KILLED(SIGKILL), WEIR_OK, ""),
                                rank_end(2, EXITED(1), WEIR_ERR_IO, "disk full")},
          false, WEIR_ERR_PEER, "worker 1 was killed by signal 9 (Killed)", true);
    check((struct gang_exit[3]){lost_another(0), rank_end(1, EXITED(1), WEIR_ERR_IO, "disk full"),
                                killed_by_us(2)},
          false, WEIR_ERR_IO, "disk full", false);
    check((struct gang_exit[3]){killed_by_us(0), lost_another(1), rank_end(2, EXITED(3), 0, "")},
          false, WEIR_ERR_PEER, "rank 1 left the group", true);
}

END_TEST

START_TEST(a_rank_without_a_report_is_explained_by_its_exit)
{
    struct gang_end end;
    const struct gang_exit gone = rank_end(2, EXITED(3), WEIR_OK, ""), late = killed_by_us(1);
    gang_root_cause(&gone, 1, false, &end);
    ck_assert_str_eq(end.err.message, "worker 2 ended with exit status 3");
    ck_assert_int_eq(end.status, WEIR_ERR_INTERNAL);
    gang_root_cause(&late, 1, true, &end);
    ck_assert_str_eq(end.err.message, "worker 1 did not end in time, and was killed");
    gang_root_cause(NULL, 0, true, &end);
    ck_assert_int_eq(end.status, WEIR_OK);
    ck_assert_int_eq(end.rank, -1);
    ck_assert(end.is_stopped);
}

END_TEST

int main(void)
{
    const TTest *const tests[] = {a_stop_is_told_as_one_whoever_ends_first_and_however,
                                  a_killed_rank_is_the_root_cause_whatever_the_others_report,
                                  a_rank_without_a_report_is_explained_by_its_exit};
    return weir_test_run(weir_test_suite("gang", tests, WEIR_ARRAY_LEN(tests)));
}
