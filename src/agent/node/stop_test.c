#include "agent/supervise/supervise_fixture.h"

START_TEST(stop_asks_first)
{
    write_script("trap 'echo bye; exit 5' TERM; echo > ../ready; while :; do sleep 0.05; done",
                 with_isolation(_i));
    pid_t supervisor = supervise();
    await_file("ready");
    ck_assert_int_eq(task_stop_write(dir, 20000, NULL), WEIR_OK);
    struct task_exit end = end_of(supervisor);
    ck_assert_int_eq(end.exit_code, 5);
    ck_assert_str_eq(end.message, "stopped");
    ck_assert_ptr_nonnull(strstr(read_text("log"), "bye\n"));
}

END_TEST

/* It asks its helper for something while it saves. */
START_TEST(the_program_alone_is_asked)
{
    write_script("mkfifo a b; (while read x < a; do echo helped $x > b; done) & "
                 "trap 'echo saving > a; read y < b; echo $y; exit 5' TERM; "
                 "echo > ../ready; while :; do sleep 0.05; done",
                 with_isolation(_i));
    pid_t supervisor = supervise();
    await_file("ready");
    ck_assert_int_eq(task_stop_write(dir, 20000, NULL), WEIR_OK);
    struct task_exit end = end_of(supervisor);
    ck_assert_int_eq(end.exit_code, 5);
    ck_assert_str_eq(read_text("log"), "helped saving\n");
    ck_assert_uint_eq(count_processes(), 0);
}

END_TEST

START_TEST(every_process_is_asked_if_the_job_wants_it)
{
    json_t *more = with_isolation(_i);
    json_object_set_new(more, "kill_mode", json_string("control-group"));
    write_script(
        "trap 'while [ ! -e ../told ]; do sleep 0.05; done; exit 5' TERM; "
        "(trap 'echo > ../told; exit' TERM; echo > ../ready; while :; do sleep 0.05; done) & "
        "while :; do sleep 0.05; done",
        more);
    pid_t supervisor = supervise();
    await_file("ready");
    ck_assert_int_eq(task_stop_write(dir, 20000, NULL), WEIR_OK);
    ck_assert_int_eq(end_of(supervisor).exit_code, 5);
}

END_TEST

START_TEST(what_a_shell_leaves_when_it_dies_of_the_signal_has_the_rest_of_the_grace)
{
    write_script("sh -c 'trap \"sleep 0.05; echo saved; exit 0\" TERM; echo > ../ready; "
                 "while :; do sleep 0.05; done'; echo never",
                 with_isolation(_i));
    pid_t supervisor = supervise();
    await_file("ready");
    ck_assert_int_eq(task_stop_write(dir, 20000, NULL), WEIR_OK);
    struct task_exit end = end_of(supervisor);
    ck_assert_int_eq(end.signal, SIGTERM);
    ck_assert_str_eq(end.message, "stopped");
    ck_assert_ptr_nonnull(strstr(read_text("log"), "saved\n"));
    ck_assert_ptr_null(strstr(log_text, "never"));
}

END_TEST

START_TEST(what_a_shell_leaves_is_killed_after_the_grace)
{
    write_script(
        "sh -c 'trap \"\" TERM; echo > ../ready; while :; do sleep 0.05; done'; echo never",
        with_isolation(_i));
    pid_t supervisor = supervise();
    await_file("ready");
    ck_assert_int_eq(task_stop_write(dir, 300, NULL), WEIR_OK);
    struct task_exit end = end_of(supervisor);
    ck_assert_int_eq(end.signal, SIGTERM);
    ck_assert_str_eq(end.message, "stopped; killed after 300 ms of grace");
    ck_assert_uint_eq(count_processes(), 0);
}

END_TEST

START_TEST(stop_kills_grandchildren_that_ignore_it_after_the_grace)
{
    write_script("trap '' TERM; (setsid sh -c 'trap \"\" TERM; while :; do sleep 10; done' &) ; "
                 "(sh -c 'trap \"\" TERM; echo > ../ready; while :; do sleep 10; done' &) ; "
                 "while :; do sleep 10; done",
                 with_isolation(_i));
    pid_t supervisor = supervise();
    await_file("ready");
    ck_assert_uint_ge(count_processes(), 3);
    int64_t begin_ms = weir_mono_ms();
    ck_assert_int_eq(task_stop_write(dir, 300, NULL), WEIR_OK);
    struct task_exit end = end_of(supervisor);
    ck_assert_int_ge(weir_mono_ms() - begin_ms, 300);
    ck_assert_int_eq(end.signal, SIGKILL);
    ck_assert_str_eq(end.message, "stopped; killed after 300 ms of grace");
    ck_assert_uint_eq(count_processes(), 0);
}

END_TEST

START_TEST(a_task_stopped_before_its_start_never_runs)
{
    write_script("echo > ../ran", json_object());
    ck_assert_int_eq(task_stop_write(dir, 100, NULL), WEIR_OK);
    struct task_exit end = run();
    ck_assert_int_eq(end.signal, SIGTERM);
    ck_assert_ptr_nonnull(strstr(end.message, "before"));
    ck_assert(!task_has(dir, "ran"));
    ck_assert(!task_has(dir, "run.json"));
}

END_TEST

/* ---- to save ---------------------------------------------------------------------------------- */

static json_t *with_signal(int i, const char *name)
{
    json_t *more = with_isolation(i);
    json_object_set_new(more, "save_signal", json_string(name));
    return more;
}

START_TEST(one_that_is_asked_to_save_says_so_and_runs_on_until_it_is_stopped)
{
    write_script("echo > \"$WEIR_SAVED\"; " /* of an earlier time: it is no answer */
                 "trap 'echo saving; echo > \"$WEIR_SAVED\"' USR1; trap 'echo bye; exit 5' TERM; "
                 "echo > ../ready; while :; do sleep 0.05; done",
                 with_signal(_i, "USR1"));
    pid_t supervisor = supervise();
    await_file("ready");
    ck_assert_int_eq(task_save_write(dir, NULL), WEIR_OK);
    await_file(TASK_SAVED);
    ck_assert(!task_has(dir, "exit.json"));
    ck_assert_int_eq(task_stop_write(dir, 20000, NULL), WEIR_OK);
    struct task_exit end = end_of(supervisor);
    ck_assert_int_eq(end.exit_code, 5);
    ck_assert_str_eq(end.message, "stopped");
    ck_assert_str_eq(read_text("log"), "saving\nbye\n");
}

END_TEST

START_TEST(one_that_ends_when_it_is_asked_to_save_has_ended_by_itself)
{
    write_script("trap 'echo saving; exit 10' USR2; echo > ../ready; while :; do sleep 0.05; done",
                 with_signal(_i, "USR2"));
    pid_t supervisor = supervise();
    await_file("ready");
    ck_assert_int_eq(task_save_write(dir, NULL), WEIR_OK);
    struct task_exit end = end_of(supervisor);
    ck_assert_int_eq(end.exit_code, 10);
    ck_assert(!task_has(dir, TASK_SAVED));
    ck_assert_str_eq(read_text("log"), "saving\n");
}

END_TEST

START_TEST(what_a_shell_leaves_when_it_dies_of_the_request_saves_too)
{
    write_script("sh -c 'trap \"sleep 0.05; echo saved; exit 0\" USR1; echo > ../ready; "
                 "while :; do sleep 0.05; done'; echo never",
                 with_signal(_i, "USR1"));
    pid_t supervisor = supervise();
    await_file("ready");
    ck_assert_int_eq(task_save_write(dir, NULL), WEIR_OK);
    struct task_exit end = end_of(supervisor);
    ck_assert_int_eq(end.signal, SIGUSR1);
    ck_assert_ptr_nonnull(strstr(read_text("log"), "saved\n"));
    ck_assert_ptr_null(strstr(log_text, "never"));
}

END_TEST

START_TEST(one_without_a_signal_is_not_asked)
{
    write_script("trap 'exit 7' USR1; trap 'exit 5' TERM; echo > ../ready; "
                 "while :; do sleep 0.05; done",
                 with_isolation(_i));
    pid_t supervisor = supervise();
    await_file("ready");
    ck_assert_int_eq(task_save_write(dir, NULL), WEIR_OK);
    ck_assert_int_eq(task_stop_write(dir, 20000, NULL), WEIR_OK);
    ck_assert_int_eq(end_of(supervisor).exit_code, 5);
}

END_TEST

int main(int argc, char **argv)
{
    if (argc == 4 && strcmp(argv[1], "agent") == 0) {
        return weir_agent_supervise(argv[3]);
    }
    Suite *suite = suite_create("agent stop");
    TCase *tcase = tcase_create("stop");
    tcase_set_timeout(tcase, 60);
    tcase_add_checked_fixture(tcase, start, stop);
    tcase_add_loop_test(tcase, stop_asks_first, 0, 2);
    tcase_add_loop_test(tcase, the_program_alone_is_asked, 0, 2);
    tcase_add_loop_test(tcase, every_process_is_asked_if_the_job_wants_it, 0, 2);
    tcase_add_loop_test(
        tcase, what_a_shell_leaves_when_it_dies_of_the_signal_has_the_rest_of_the_grace, 0, 2);
    tcase_add_loop_test(tcase, what_a_shell_leaves_is_killed_after_the_grace, 0, 2);
    tcase_add_loop_test(tcase, stop_kills_grandchildren_that_ignore_it_after_the_grace, 0, 2);
    tcase_add_test(tcase, a_task_stopped_before_its_start_never_runs);
    tcase_add_loop_test(tcase, one_that_is_asked_to_save_says_so_and_runs_on_until_it_is_stopped, 0,
                        2);
    tcase_add_loop_test(tcase, one_that_ends_when_it_is_asked_to_save_has_ended_by_itself, 0, 2);
    tcase_add_loop_test(tcase, what_a_shell_leaves_when_it_dies_of_the_request_saves_too, 0, 2);
    tcase_add_loop_test(tcase, one_without_a_signal_is_not_asked, 0, 2);
    suite_add_tcase(suite, tcase);
    return weir_test_run(suite);
}
