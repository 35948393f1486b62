#include "agent/shutdown.h"

#include "agent/agent.h"
#include "agent/task.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/test_main.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* This program is also the supervisor, and who holds a lock: see main. */

extern char **environ;

static char root[64], self[512];
static size_t left_seen[64], n_left_seen;

static void start(void)
{
    char tasks[128];
    strncpy(root, "/tmp/weir-shutdown-XXXXXX", sizeof root - 1);
    ck_assert_ptr_nonnull(mkdtemp(root));
    (void)snprintf(tasks, sizeof tasks, "%s/tasks", root);
    ck_assert_int_eq(weir_dir_make(tasks, 0700, NULL), WEIR_OK);
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    ck_assert_int_gt(n, 0);
    self[n] = '\0';
    n_left_seen = 0;
}

static void stop(void)
{
    ck_assert_int_eq(weir_dir_remove(root, NULL), WEIR_OK);
}

static pid_t spawn(const char *verb, const char *what, const char *path)
{
    char *const argv[] = {self, (char *)verb, (char *)what, (char *)path, NULL};
    pid_t pid;
    ck_assert_int_eq(posix_spawn(&pid, self, NULL, NULL, argv, environ), 0);
    return pid;
}

static void await(const char *dir, const char *name)
{
    int64_t give_up_ms = weir_mono_ms() + 20000;
    while (!task_has(dir, name)) {
        ck_assert_msg(weir_mono_ms() < give_up_ms, "no %s in %s", name, dir);
        (void)poll(NULL, 0, 1);
    }
}

/* The folder of task t<i>, whose program runs until it is killed, once it says "ready". */
static const char *make_task(int i, const char *script)
{
    static char dirs[8][128];
    char path[TASK_PATH_BYTES], id[8];
    (void)snprintf(id, sizeof id, "t%d", i);
    (void)snprintf(dirs[i], sizeof dirs[i], "%s/tasks/%s.1", root, id);
    ck_assert_int_eq(weir_dir_make(dirs[i], 0700, NULL), WEIR_OK);
    json_t *task = json_pack("{s:s, s:s, s:i, s:s, s:i, s:s, s:i, s:[s,s,s]}", "id", id, "job", "j",
                             "attempt", 1, "role", "command", "rank", 0, "desired", "running",
                             "stop_grace_ms", 60000, "argv", "/bin/sh", "-c", script);
    json_object_set_new(task, "env", json_pack("{s:s}", "WEIR_RUN", "r"));
    json_object_set_new(task, "files", json_pack("{s:s}", "token", "weir_t"));
    json_object_set_new(task, "surroundings", json_pack("{s:s}", "server", "http://127.0.0.1:1"));
    char *text = json_dumps(task, 0);
    ck_assert_int_eq(weir_file_write_atomic(task_path(path, dirs[i], "task.json"), text,
                                            strlen(text), 0600, NULL),
                     WEIR_OK);
    free(text);
    json_decref(task);
    return dirs[i];
}

static const char polite[] = "echo >../ready; while :; do sleep 0.05; done";
/* Ends when the first look has been told of. */
static const char patient[] = "trap 'until [ -e ../../../told ]; do sleep 0.05; done; trap - TERM; "
                              "kill $$' TERM; echo >../ready; while :; do sleep 0.05; done";
static const char deaf[] = "trap '' TERM; echo >../ready; while :; do sleep 0.05; done";

static size_t count_processes(const char *dir)
{
    struct process_id ids[64];
    char mark[TASK_MARK_BYTES], marker[TASK_MARK_BYTES + 16];
    (void)snprintf(marker, sizeof marker, "WEIR_TASK_KEY=%s", task_mark(mark, dir));
    return process_with_environment(marker, ids, 64);
}

static void note_left(void *context, size_t n_left)
{
    char told[128];
    (void)context;
    left_seen[n_left_seen++ % 64] = n_left;
    (void)snprintf(told, sizeof told, "%s/told", root);
    ck_assert_int_eq(weir_file_write_atomic(told, "", 0, 0600, NULL), WEIR_OK);
}

static size_t shut_down(int64_t patience_ms, enum weir_lock_end *out_agent)
{
    struct weir_agent_shutdown config = {
        .dir = root, .program = self, .patience_ms = patience_ms, .on_left = note_left};
    size_t n_tasks;
    struct weir_error err = {0};
    weir_status status = weir_agent_shutdown(&config, out_agent, &n_tasks, &err);
    ck_assert_msg(status == WEIR_OK, "%s", err.message);
    return n_tasks;
}

static struct task_exit end_of(const char *dir)
{
    struct task_exit record;
    ck_assert_int_eq(task_exit_read(dir, &record, NULL), WEIR_OK);
    ck_assert_uint_eq(count_processes(dir), 0);
    ck_assert(!task_is_supervised(dir));
    return record;
}

START_TEST(agent_and_tasks_end_and_what_nobody_wanted_to_end_is_lost)
{
    char lock[128];
    enum weir_lock_end agent;
    (void)snprintf(lock, sizeof lock, "%s/lock", root);
    const char *first = make_task(1, patient), *second = make_task(2, patient);
    pid_t holder = spawn("hold", "polite", lock);
    pid_t one = spawn("agent", "--supervise", first), two = spawn("agent", "--supervise", second);
    await(first, "ready");
    await(second, "ready");
    await(root, "holding");
    ck_assert_uint_eq(shut_down(20000, &agent), 2);
    ck_assert_int_eq(agent, WEIR_LOCK_ENDED);
    ck_assert_int_eq(waitpid(holder, NULL, 0), holder);
    ck_assert_int_eq(waitpid(one, NULL, 0), one);
    ck_assert_int_eq(waitpid(two, NULL, 0), two);
    struct task_exit end = end_of(first);
    ck_assert(end.is_lost);
    ck_assert_str_eq(end.message, "stopped with its agent");
    ck_assert(end_of(second).is_lost);
    ck_assert_uint_eq(left_seen[0], 2);
    ck_assert_uint_eq(left_seen[n_left_seen - 1], 0);
    /* Again: nothing is there to be ended, and no record changes. */
    ck_assert_uint_eq(shut_down(20000, &agent), 0);
    ck_assert_int_eq(agent, WEIR_LOCK_WAS_FREE);
    ck_assert_str_eq(end_of(first).message, "stopped with its agent");
}

END_TEST

START_TEST(a_task_whose_supervisor_was_killed_ends_too)
{
    enum weir_lock_end agent;
    const char *dir = make_task(1, deaf);
    pid_t supervisor = spawn("agent", "--supervise", dir);
    await(dir, "ready");
    ck_assert_int_eq(kill(supervisor, SIGKILL), 0);
    ck_assert_int_eq(waitpid(supervisor, NULL, 0), supervisor);
    ck_assert_uint_gt(count_processes(dir), 0);
    ck_assert_uint_eq(shut_down(20000, &agent), 1);
    ck_assert(end_of(dir).is_lost);
}

END_TEST

START_TEST(a_supervisor_that_does_not_answer_is_killed_and_its_task_ends)
{
    enum weir_lock_end agent;
    const char *dir = make_task(1, polite);
    pid_t supervisor = spawn("agent", "--supervise", dir);
    await(dir, "ready");
    ck_assert_int_eq(kill(supervisor, SIGSTOP), 0);
    ck_assert_uint_eq(shut_down(500, &agent), 1);
    ck_assert(end_of(dir).is_lost);
    ck_assert_int_eq(waitpid(supervisor, NULL, 0), supervisor);
}

END_TEST

START_TEST(a_long_grace_of_a_task_ends_with_our_patience)
{
    enum weir_lock_end agent;
    const char *dir = make_task(1, deaf);
    pid_t supervisor = spawn("agent", "--supervise", dir);
    await(dir, "ready");
    int64_t begin_ms = weir_mono_ms();
    ck_assert_uint_eq(shut_down(2500, &agent), 1);
    ck_assert_int_lt(weir_mono_ms() - begin_ms, 30000);
    struct task_exit end = end_of(dir);
    ck_assert_int_eq(end.signal, SIGKILL);
    ck_assert(end.is_lost);
    ck_assert_int_eq(waitpid(supervisor, NULL, 0), supervisor);
}

END_TEST

/* The server ends first (weir server stop --tasks): there is nobody to send to. */
START_TEST(output_that_cannot_be_sent_is_given_up_with_our_patience)
{
    static const char script[] =
        "mkdir output; echo x >output/x; trap 'exit 0' TERM; echo >../ready; "
        "while :; do sleep 0.05; done";
    enum weir_lock_end agent;
    const char *dir = make_task(1, script);
    pid_t supervisor = spawn("agent", "--supervise", dir);
    await(dir, "ready");
    int64_t begin_ms = weir_mono_ms();
    ck_assert_uint_eq(shut_down(10000, &agent), 1);
    int64_t took_ms = weir_mono_ms() - begin_ms;
    ck_assert_msg(took_ms < 10000, "it was killed: %lld ms", (long long)took_ms);
    ck_assert(end_of(dir).is_lost);
    ck_assert_int_eq(waitpid(supervisor, NULL, 0), supervisor);
}

END_TEST

/* What was forked with the lock holds it too, and is not who has to be ended. */
START_TEST(a_supervisor_that_does_not_answer_while_it_sends_is_killed)
{
    static const char script[] = "mkdir output; echo x >output/x; echo >../ready";
    enum weir_lock_end agent;
    const char *dir = make_task(1, script);
    pid_t supervisor = spawn("agent", "--supervise", dir);
    await(dir, "output.sent");
    ck_assert_int_eq(kill(supervisor, SIGSTOP), 0);
    int64_t begin_ms = weir_mono_ms();
    ck_assert_uint_eq(shut_down(500, &agent), 1);
    ck_assert_int_lt(weir_mono_ms() - begin_ms, 8000);
    ck_assert_int_eq(end_of(dir).exit_code, 0); /* it had ended, and well */
    ck_assert_int_eq(waitpid(supervisor, NULL, 0), supervisor);
}

END_TEST

START_TEST(a_task_not_begun_never_begins_and_an_ended_one_keeps_its_end)
{
    enum weir_lock_end agent;
    const char *fresh = make_task(1, "echo >../ran"), *done = make_task(2, "exit 3");
    pid_t supervisor = spawn("agent", "--supervise", done);
    ck_assert_int_eq(waitpid(supervisor, NULL, 0), supervisor);
    ck_assert_uint_eq(shut_down(20000, &agent), 1);
    ck_assert(end_of(fresh).is_lost);
    ck_assert(!task_has(fresh, "ran"));
    ck_assert(!end_of(done).is_lost);
    ck_assert_int_eq(end_of(done).exit_code, 3);
    ck_assert(!task_has(done, "stop"));
}

END_TEST

START_TEST(a_holder_that_ignores_the_request_is_killed)
{
    char lock[128];
    int fd;
    enum weir_lock_end how;
    (void)snprintf(lock, sizeof lock, "%s/lock", root);
    pid_t holder = spawn("hold", "deaf", lock);
    await(root, "holding");
    ck_assert_int_eq(weir_lock_take_over(lock, 200, &fd, &how, NULL), WEIR_OK);
    ck_assert_int_eq(how, WEIR_LOCK_KILLED);
    ck_assert_int_eq(weir_file_lock(lock, &(int){0}, NULL), WEIR_ERR_CONFLICT); /* ours now */
    int status;
    ck_assert_int_eq(waitpid(holder, &status, 0), holder);
    ck_assert_int_eq(WTERMSIG(status), SIGKILL);
    (void)close(fd);
}

END_TEST

START_TEST(who_has_the_file_open_does_not_hold_the_lock)
{
    char lock[128];
    struct process_id found;
    const char *path = lock;
    int fd;
    (void)snprintf(lock, sizeof lock, "%s/lock", root);
    int open_fd = open(lock, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    ck_assert_int_ge(open_fd, 0);
    weir_lock_holders(&path, 1, &found);
    ck_assert_int_eq(found.pid, 0);
    ck_assert_int_eq(weir_file_lock(lock, &fd, NULL), WEIR_OK);
    weir_lock_holders(&path, 1, &found);
    ck_assert_int_eq(found.pid, getpid());
    (void)close(fd);
    (void)close(open_fd);
    path = "/nowhere/at/all";
    weir_lock_holders(&path, 1, &found);
    ck_assert_int_eq(found.pid, 0);
}

END_TEST

START_TEST(a_process_is_described_for_people)
{
    struct process_id id;
    char text[PROCESS_TEXT_BYTES], expected[64];
    ck_assert(process_identify(getpid(), &id));
    ck_assert(process_describe(&id, text));
    (void)snprintf(expected, sizeof expected, "process %d (", (int)getpid());
    ck_assert_msg(strncmp(text, expected, strlen(expected)) == 0, "%s", text);
    ck_assert_msg(strstr(text, "), state R, begun ") != NULL, "%s", text);
    id.start_time++;
    ck_assert(!process_describe(&id, text)); /* another one of that number */
}

END_TEST

/* Stands in for an agent: holds the lock until it is told to end, or does not listen. */
static int hold(const char *manner, const char *lock)
{
    char ready[256];
    int fd;
    (void)signal(SIGTERM, strcmp(manner, "deaf") == 0 ? SIG_IGN : SIG_DFL);
    (void)snprintf(ready, sizeof ready, "%.*s/holding", (int)(strrchr(lock, '/') - lock), lock);
    if (weir_file_lock(lock, &fd, NULL) != WEIR_OK ||
        weir_file_write(ready, "", 0, 0600, NULL) != WEIR_OK) {
        return 1;
    }
    (void)poll(NULL, 0, 60000);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc == 4 && strcmp(argv[1], "agent") == 0) {
        return weir_agent_supervise(argv[3]);
    }
    if (argc == 4 && strcmp(argv[1], "hold") == 0) {
        return hold(argv[2], argv[3]);
    }
    Suite *suite = suite_create("agent shutdown");
    TCase *tcase = tcase_create("shutdown");
    tcase_set_timeout(tcase, 60);
    tcase_add_checked_fixture(tcase, start, stop);
    tcase_add_test(tcase, agent_and_tasks_end_and_what_nobody_wanted_to_end_is_lost);
    tcase_add_test(tcase, a_task_whose_supervisor_was_killed_ends_too);
    tcase_add_test(tcase, a_supervisor_that_does_not_answer_is_killed_and_its_task_ends);
    tcase_add_test(tcase, a_long_grace_of_a_task_ends_with_our_patience);
    tcase_add_test(tcase, output_that_cannot_be_sent_is_given_up_with_our_patience);
    tcase_add_test(tcase, a_supervisor_that_does_not_answer_while_it_sends_is_killed);
    tcase_add_test(tcase, a_task_not_begun_never_begins_and_an_ended_one_keeps_its_end);
    tcase_add_test(tcase, a_process_is_described_for_people);
    tcase_add_test(tcase, a_holder_that_ignores_the_request_is_killed);
    tcase_add_test(tcase, who_has_the_file_open_does_not_hold_the_lock);
    suite_add_tcase(suite, tcase);
    return weir_test_run(suite);
}
