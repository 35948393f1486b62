#include "agent/node/contact.h"
#include "agent/supervise/supervise_fixture.h"

/* This program is also a task that wants memory: see main. */

START_TEST(exit_status_and_output_are_recorded)
{
    write_script("echo out; echo err >&2; exit 3", json_object());
    struct task_exit end = run();
    ck_assert_int_eq(end.exit_code, 3);
    ck_assert_int_eq(end.signal, 0);
    ck_assert(!end.is_lost);
    ck_assert_str_eq(end.message, "err"); /* its last words */
    ck_assert_str_eq(read_text("log"), "out\nerr\n");
    ck_assert_int_eq(end.log_bytes, 8);
    ck_assert_int_gt(end.max_rss_bytes, 100000);
    struct task_run begin;
    ck_assert_int_eq(task_run_read(dir, &begin, NULL), WEIR_OK);
    ck_assert_int_eq(begin.process.pid, end.pid);
}

END_TEST

START_TEST(a_signal_is_told_from_an_exit)
{
    write_script("kill -SEGV $$", json_object());
    struct task_exit end = run();
    ck_assert_int_eq(end.exit_code, -1);
    ck_assert_int_eq(end.signal, SIGSEGV);
    ck_assert_ptr_nonnull(strstr(end.message, "signal 11"));
}

END_TEST

START_TEST(what_cannot_be_started_ends_as_in_a_shell)
{
    write_task(json_pack("[s]", "weir-no-such-program"), json_object());
    struct task_exit end = run();
    ck_assert_int_eq(end.exit_code, 127);
    ck_assert_ptr_nonnull(strstr(end.message, "weir-no-such-program"));
    char path[TASK_PATH_BYTES];
    (void)unlink(task_path(path, dir, "exit.json"));
    (void)unlink(task_path(path, dir, "run.json"));
    write_task(json_pack("[s]", "/etc/passwd"), json_object());
    ck_assert_int_eq(run().exit_code, 126);
    (void)unlink(task_path(path, dir, "exit.json"));
    (void)unlink(task_path(path, dir, "run.json"));
    write_task(json_array(), json_object());
    end = run();
    ck_assert_int_eq(end.exit_code, 126);
    ck_assert_int_eq(end.pid, 0);
    ck_assert_ptr_nonnull(strstr(end.message, "$.argv"));
}

END_TEST

START_TEST(the_task_finds_its_files_folder_and_variables_but_no_secrets_of_the_agent)
{
    ck_assert_int_eq(setenv("WEIR_TOKEN", "secret", 1), 0);
    write_script("cat spec.json sub/x; pwd; env; stat -c %a spec.json; cat <&0; ls /proc/self/fd",
                 json_pack("{s:{s:s,s:s}, s:{s:s}}", "files", "spec.json", "{\"a\":1}", "sub/x",
                           "sub\n", "env", "MINE", "yes"));
    ck_assert_int_eq(run().exit_code, 0);
    const char *text = read_text("log");
    char pwd[256];
    (void)snprintf(pwd, sizeof pwd, "{\"a\":1}sub\n%s/work\n", dir);
    ck_assert_msg(strncmp(text, pwd, strlen(pwd)) == 0, "%s", text);
    ck_assert_ptr_nonnull(strstr(text, "MINE=yes\n"));
    ck_assert_ptr_nonnull(strstr(text, "WEIR_TASK=t1\n"));
    ck_assert_ptr_nonnull(strstr(text, "WEIR_TASK_KEY=t1.1@"));
    ck_assert_ptr_nonnull(strstr(text, "PATH="));
    ck_assert_ptr_null(strstr(text, "secret"));
    ck_assert_ptr_nonnull(strstr(text, "\nPYTHONUNBUFFERED=1\n"));
    /* No descriptor of the supervisor but 0, 1, 2 (3 is ls's own). */
    ck_assert_msg(strstr(text, "600\n0\n1\n2\n3\n") != NULL, "%s", text);
    ck_assert_ptr_null(strstr(text, "\n4\n"));
}

END_TEST

START_TEST(what_a_job_says_of_pythons_output_stands)
{
    write_script("env", json_pack("{s:{s:s}}", "env", "PYTHONUNBUFFERED", ""));
    ck_assert_int_eq(run().exit_code, 0);
    ck_assert_ptr_nonnull(strstr(read_text("log"), "PYTHONUNBUFFERED=\n"));
    ck_assert_ptr_null(strstr(log_text, "PYTHONUNBUFFERED=1"));
}

END_TEST

START_TEST(an_attempt_is_started_once_however_many_supervisors_come)
{
    write_script("echo once >> ../count; exit 7", json_object());
    pid_t supervisors[8];
    for (int i = 0; i < 8; i++) {
        supervisors[i] = supervise();
    }
    for (int i = 0; i < 8; i++) {
        ck_assert_int_eq(waitpid(supervisors[i], NULL, 0), supervisors[i]);
    }
    ck_assert_int_eq(run().exit_code, 7);
    ck_assert_str_eq(read_text("count"), "once\n");
}

END_TEST

START_TEST(a_task_whose_supervisor_was_killed_is_lost_and_leaves_nothing)
{
    write_script("setsid sh -c 'trap \"\" TERM; while :; do sleep 10; done' & "
                 "echo > ../ready; sleep 1000",
                 with_isolation(_i));
    pid_t supervisor = supervise();
    await_file("ready");
    struct task_run begin;
    ck_assert_int_eq(task_run_read(dir, &begin, NULL), WEIR_OK);
    ck_assert(process_is_alive(&begin.process));
    ck_assert_int_eq(kill(supervisor, SIGKILL), 0);
    ck_assert_int_eq(waitpid(supervisor, NULL, 0), supervisor);
    ck_assert(process_is_alive(&begin.process));
    struct task_exit end = run();
    ck_assert(end.is_lost);
    ck_assert_int_eq(end.exit_code, -1);
    ck_assert_ptr_nonnull(strstr(end.message, "supervisor"));
    int64_t give_up_ms = weir_mono_ms() + 10000;
    while (count_processes() > 0 && weir_mono_ms() < give_up_ms) {
        (void)usleep(1000);
    }
    ck_assert_uint_eq(count_processes(), 0);
    for (size_t i = 0; i < begin.group.n_dirs; i++) {
        ck_assert_int_ne(access(begin.group.dirs[i], F_OK), 0);
    }
}

END_TEST

/* What one of them does about its own attempt must not reach the other's. */
START_TEST(agents_of_one_host_may_have_attempts_of_the_same_name)
{
    static const char *const agents[] = {"agent", "other"};
    pid_t supervisors[2];
    struct task_run runs[2];
    for (int i = 0; i < 2; i++) {
        use_agent(agents[i]);
        write_script("echo > ../ready; until [ -e go ]; do sleep 0.02; done; exit 3",
                     with_isolation(_i));
        supervisors[i] = supervise();
        await_file("ready");
        ck_assert_int_eq(task_run_read(dir, &runs[i], NULL), WEIR_OK);
    }
    for (size_t i = 0; i < runs[0].group.n_dirs; i++) {
        ck_assert_str_ne(runs[0].group.dirs[i], runs[1].group.dirs[i]);
    }
    use_agent(agents[0]);
    ck_assert_int_eq(kill(supervisors[0], SIGKILL), 0);
    ck_assert_int_eq(waitpid(supervisors[0], NULL, 0), supervisors[0]);
    ck_assert(run().is_lost);
    int64_t give_up_ms =
        weir_mono_ms() + 10000; /* it was killed, and ends when it gets a processor */
    while (process_is_alive(&runs[0].process) && weir_mono_ms() < give_up_ms) {
        (void)usleep(1000);
    }
    ck_assert(!process_is_alive(&runs[0].process));
    use_agent(agents[1]);
    ck_assert(process_is_alive(&runs[1].process));
    ck_assert_uint_ge(count_processes(), 1);
    char path[TASK_PATH_BYTES];
    ck_assert_int_eq(weir_file_write(task_path(path, dir, "work/go"), "", 0, 0600, NULL), WEIR_OK);
    ck_assert_int_eq(end_of(supervisors[1]).exit_code, 3);
}

END_TEST

START_TEST(a_task_of_another_boot_is_lost_and_no_process_is_touched)
{
    write_script("exit 0", json_object());
    struct task_run run_record = {.boot_id = "another", .time_ms = 1};
    ck_assert(process_identify(getpid(), &run_record.process)); /* would be us */
    ck_assert_int_eq(task_run_write(dir, &run_record, NULL), WEIR_OK);
    struct task_exit end = run();
    ck_assert(end.is_lost);
    ck_assert_ptr_nonnull(strstr(end.message, "restarted"));
}

END_TEST

/* The agent that wrote the contact is dead, as far as the supervisor can tell. */
START_TEST(a_fenced_task_ends_on_a_node_that_does_not_reach_the_server)
{
    struct contact *contact;
    struct weir_error err;
    ck_assert_int_eq(contact_open(root, &contact, &err), WEIR_OK);
    contact_note(contact, weir_boot_ms() + 3600000); /* it does, for the time being */
    write_script("trap '' TERM; echo > ../ready; while :; do sleep 10; done",
                 json_pack("{s:i}", "fence_ms", 300));
    pid_t supervisor = supervise();
    await_file("ready");
    int64_t reached_ms = weir_boot_ms();
    contact_note(contact, reached_ms);
    struct task_exit end = end_of(supervisor);
    ck_assert_int_ge(weir_boot_ms() - reached_ms, 200);
    ck_assert(end.is_lost);
    ck_assert_int_eq(end.signal, SIGKILL);
    ck_assert_ptr_nonnull(
        strstr(end.message, "stopped itself: its node does not reach the server"));
    ck_assert_uint_eq(count_processes(), 0);
    contact_close(contact);
}

END_TEST

/* Nor where it has never been reached, or when the machine was started since. */
START_TEST(a_fenced_task_does_not_begin_on_a_node_that_does_not_reach_the_server)
{
    struct contact *contact = NULL;
    struct weir_error err;
    if (_i > 0) {
        ck_assert_int_eq(contact_open(root, &contact, &err), WEIR_OK);
        contact_note(contact, _i == 1 ? WEIR_MAX((int64_t)1, weir_boot_ms() - 200) : 0);
    }
    write_script("echo > ../ready", json_pack("{s:i}", "fence_ms", 300));
    struct task_exit end = end_of(supervise());
    ck_assert(end.is_lost);
    ck_assert_int_eq(end.pid, 0);
    ck_assert_ptr_nonnull(
        strstr(end.message, "stopped itself: its node does not reach the server"));
    contact_close(contact);
}

END_TEST

START_TEST(what_a_task_leaves_behind_ends_with_it)
{
    write_script("(setsid sleep 1000 &) ; sleep 1000 & exit 0", with_isolation(_i));
    ck_assert_int_eq(run().exit_code, 0);
    ck_assert_uint_eq(count_processes(), 0);
}

END_TEST

START_TEST(the_place_of_what_failed_is_held_and_its_end_is_its_own)
{
    bool is_stopped = _i % 2 == 1;
    write_script(_i < 2 ? "exit 3" : "exit 0",
                 json_pack("{s:i}", "hold_ms", is_stopped ? 3600000 : 20));
    int64_t begun_ms = weir_mono_ms();
    pid_t supervisor = supervise();
    if (_i < 2) {
        await_file(TASK_HELD);
        ck_assert_ptr_nonnull(strstr(read_text(TASK_HELD), "its program failed with exit 3"));
        ck_assert(!is_stopped || !task_has(dir, "exit.json"));
    }
    if (is_stopped) {
        ck_assert_int_eq(task_stop_write(dir, 1000, NULL), WEIR_OK);
    }
    struct task_exit end = end_of(supervisor);
    ck_assert_int_eq(end.exit_code, _i < 2 ? 3 : 0);
    ck_assert_int_eq(end.signal, 0);
    ck_assert(!end.is_lost);
    ck_assert(is_stopped || _i == 2 || weir_mono_ms() - begun_ms >= 20);
    ck_assert_int_eq(task_has(dir, TASK_HELD), _i < 2);
}

END_TEST

START_TEST(a_long_log_keeps_its_beginning_and_its_end)
{
    /* 200000 lines of 7 bytes: 1.4 MB into 256 KiB. */
    write_script("seq 100000 299999", json_pack("{s:i}", "log_max_bytes", 1 << 18));
    struct task_exit end = run();
    ck_assert_int_eq(end.exit_code, 0);
    ck_assert_int_eq(end.log_bytes, 1400000); /* with what is left out */
    const char *text = read_text("log");
    size_t len = strlen(text);
    ck_assert_uint_le(len, 1 << 18);
    ck_assert_uint_ge(len, 7 << 15);
    ck_assert_int_eq(strncmp(text, "100000\n100001\n", 14), 0);
    ck_assert_str_eq(text + len - 14, "299998\n299999\n");
}

END_TEST

START_TEST(a_task_over_its_memory_limit_ends_and_says_so)
{
    struct weir_isolation isolation;
    weir_isolation_probe(&isolation);
    json_t *more = with_isolation(_i);
    json_object_set_new(more, "memory_max_bytes", json_integer(64 << 20));
    write_task(json_pack("[s,s,s]", self, "allocate", "256"), more);
    struct task_exit end = run();
    if (_i == 0 && (isolation.v2_memory || isolation.v1_memory[0] != '\0')) {
        ck_assert_int_eq(end.signal, SIGKILL);
        ck_assert_str_eq(end.message, "killed: over its memory limit of 67108864 bytes");
    } else {
        ck_assert_int_ne(end.exit_code, 0); /* RLIMIT_DATA: malloc finds nothing */
    }
}

END_TEST

START_TEST(a_task_has_no_capabilities_and_gains_none)
{
    write_script("grep -E '^(Cap|NoNewPrivs)' /proc/self/status", with_isolation(_i));
    ck_assert_int_eq(run().exit_code, 0);
    const char *text = read_text("log");
    ck_assert_msg(strstr(text, "NoNewPrivs:\t1\n") != NULL, "%s", text);
    static const char *const sets[] = {"CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"};
    for (size_t i = 0; _i == 0 && geteuid() == 0 && i < WEIR_ARRAY_LEN(sets); i++) {
        char line[64];
        (void)snprintf(line, sizeof line, "%s:\t0000000000000000\n", sets[i]);
        ck_assert_msg(strstr(text, line) != NULL, "%s", text);
    }
}

END_TEST

START_TEST(a_task_over_its_limit_of_processes_is_refused_more_and_says_so)
{
    struct weir_isolation isolation;
    weir_isolation_probe(&isolation);
    if (!isolation.v2_pids && isolation.v1_pids[0] == '\0') {
        printf("no control group counts processes here: not tested\n");
        return;
    }
    write_script("i=0; while [ $i -lt 40 ]; do sleep 100 & i=$((i+1)); done; exit 0",
                 json_pack("{s:i}", "pids_max", 20));
    struct task_exit end = run();
    ck_assert_int_ne(end.exit_code, 0);
    ck_assert_msg(strstr(end.message, "its limit of 20 processes") != NULL, "%s", end.message);
}

END_TEST

/* What a task does when it is asked to stop makes no difference: nobody wanted its end. */
static const char *const last_acts[] = {"trap 'exit 6' TERM", "trap 'exit 0' TERM", "true"};

START_TEST(a_supervisor_that_is_told_to_end_stops_its_task_in_good_order_and_records_it_as_lost)
{
    char script[256];
    (void)snprintf(script, sizeof script, "%s; echo > ../ready; while :; do sleep 0.05; done",
                   last_acts[_i]);
    write_script(script, json_object());
    pid_t supervisor = supervise();
    await_file("ready");
    ck_assert_int_eq(kill(supervisor, SIGTERM), 0);
    struct task_exit end = end_of(supervisor);
    ck_assert_int_eq(end.exit_code, _i == 0 ? 6 : _i == 1 ? 0 : -1);
    ck_assert(end.is_lost);
    ck_assert_ptr_nonnull(strstr(end.message, "killed by the shutdown"));
}

END_TEST

/* The kernel signals the task first, which ends of it at once. */
START_TEST(a_task_that_ends_of_the_shutdown_before_its_supervisor_is_told_is_lost)
{
    write_script("echo > ../ready; while :; do sleep 0.05; done", json_object());
    pid_t supervisor = supervise();
    await_file("ready");
    struct task_run started;
    ck_assert_int_eq(task_run_read(dir, &started, NULL), WEIR_OK);
    ck_assert_int_eq(kill(started.process.pid, SIGTERM), 0);
    ck_assert_int_eq(kill(supervisor, SIGTERM), 0);
    struct task_exit end = end_of(supervisor);
    ck_assert_int_eq(end.signal, SIGTERM);
    ck_assert(end.is_lost);
}

END_TEST

/* The end was wanted before the machine shut down. */
START_TEST(a_task_that_is_being_stopped_is_not_lost_by_a_shutdown)
{
    struct weir_error err;
    write_script("trap 'echo > ../asked; while [ ! -e ../go ]; do sleep 0.02; done; exit 3' TERM;"
                 " echo > ../ready; while :; do sleep 0.02; done",
                 json_object());
    pid_t supervisor = supervise();
    await_file("ready");
    ck_assert_int_eq(task_stop_write(dir, 20000, &err), WEIR_OK);
    await_file("asked");
    ck_assert_int_eq(kill(supervisor, SIGTERM), 0);
    char path[TASK_PATH_BYTES];
    ck_assert_int_eq(weir_file_write(task_path(path, dir, "go"), "", 0, 0644, NULL), WEIR_OK);
    struct task_exit end = end_of(supervisor);
    ck_assert_int_eq(end.exit_code, 3);
    ck_assert(!end.is_lost);
}

END_TEST

static int allocate(size_t megabytes)
{
    for (size_t i = 0; i < megabytes; i++) {
        char *bytes = malloc(1 << 20);
        if (bytes == NULL) {
            return 9;
        }
        memset(bytes, (int)i + 1, 1 << 20);
        __asm__ volatile("" : : "r"(bytes) : "memory"); /* keep the writes */
    }
    return 0;
}

int main(int argc, char **argv)
{
    if (argc == 4 && strcmp(argv[1], "agent") == 0) {
        return weir_agent_supervise(argv[3]);
    }
    if (argc == 3 && strcmp(argv[1], "allocate") == 0) {
        return allocate((size_t)strtoul(argv[2], NULL, 10));
    }
    Suite *suite = suite_create("agent supervise");
    TCase *tcase = tcase_create("supervise");
    tcase_set_timeout(tcase, 60);
    tcase_add_checked_fixture(tcase, start, stop);
    tcase_add_test(tcase, exit_status_and_output_are_recorded);
    tcase_add_test(tcase, a_signal_is_told_from_an_exit);
    tcase_add_test(tcase, what_cannot_be_started_ends_as_in_a_shell);
    tcase_add_test(tcase,
                   the_task_finds_its_files_folder_and_variables_but_no_secrets_of_the_agent);
    tcase_add_test(tcase, what_a_job_says_of_pythons_output_stands);
    tcase_add_test(tcase, an_attempt_is_started_once_however_many_supervisors_come);
    tcase_add_loop_test(tcase, a_task_whose_supervisor_was_killed_is_lost_and_leaves_nothing, 0, 2);
    tcase_add_loop_test(tcase, agents_of_one_host_may_have_attempts_of_the_same_name, 0, 2);
    tcase_add_test(tcase, a_task_of_another_boot_is_lost_and_no_process_is_touched);
    tcase_add_test(tcase, a_fenced_task_ends_on_a_node_that_does_not_reach_the_server);
    tcase_add_loop_test(
        tcase, a_fenced_task_does_not_begin_on_a_node_that_does_not_reach_the_server, 0, 3);
    tcase_add_loop_test(tcase, what_a_task_leaves_behind_ends_with_it, 0, 2);
    tcase_add_loop_test(tcase, the_place_of_what_failed_is_held_and_its_end_is_its_own, 0, 3);
    tcase_add_test(tcase, a_long_log_keeps_its_beginning_and_its_end);
    tcase_add_loop_test(tcase, a_task_over_its_memory_limit_ends_and_says_so, 0, 2);
    tcase_add_loop_test(tcase, a_task_has_no_capabilities_and_gains_none, 0, 2);
    tcase_add_test(tcase, a_task_over_its_limit_of_processes_is_refused_more_and_says_so);
    tcase_add_loop_test(
        tcase, a_supervisor_that_is_told_to_end_stops_its_task_in_good_order_and_records_it_as_lost,
        0, sizeof last_acts / sizeof *last_acts);
    tcase_add_test(tcase, a_task_that_ends_of_the_shutdown_before_its_supervisor_is_told_is_lost);
    tcase_add_test(tcase, a_task_that_is_being_stopped_is_not_lost_by_a_shutdown);
    suite_add_tcase(suite, tcase);
    return weir_test_run(suite);
}
