#include "agent/agent.h"

#include "agent/node/fake_server.h"
#include "agent/sandbox_enter.h"
#include "agent/task.h"
#include "base/file.h"
#include "base/log.h"
#include "base/rng.h"
#include "base/test_main.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

/* This program is also the agent and the supervisor: see main. */

extern char **environ;

static char root[64]; /* the agent's folder is root/agent; tasks write into root */
static char agent_dir[96];
static char library_dir[] = "/tmp/weir-agent-ort-XXXXXX"; /* nobody shares it, root is shared */
static char self[512];
static pid_t agent_pid;

static void start(void)
{
    strncpy(root, "/tmp/weir-agent-XXXXXX", sizeof root - 1);
    ck_assert_ptr_nonnull(mkdtemp(root));
    ck_assert_int_eq(chmod(root, 0777), 0); /* tasks have a user of their own, and write here */
    (void)snprintf(agent_dir, sizeof agent_dir, "%s/agent", root);
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    ck_assert_int_gt(n, 0);
    self[n] = '\0';
    fake_start();
}

static void start_agent(void)
{
    char *const argv[] = {self, "agent", "--run", agent_dir, fake.url, NULL};
    ck_assert_int_eq(posix_spawn(&agent_pid, self, NULL, NULL, argv, environ), 0);
}

static void kill_agent(int signal_number)
{
    if (agent_pid > 0) {
        int status;
        ck_assert_int_eq(kill(agent_pid, signal_number), 0);
        ck_assert_int_eq(waitpid(agent_pid, &status, 0), agent_pid);
        agent_pid = 0;
        if (signal_number != SIGKILL) { /* in good order, and a sanitizer found nothing */
            ck_assert_int_eq(status, 0);
        }
    }
}

static int count_folders(void)
{
    char path[128];
    int n = 0;
    (void)snprintf(path, sizeof path, "%s/tasks", agent_dir);
    DIR *dir = opendir(path);
    for (struct dirent *entry = dir != NULL ? readdir(dir) : NULL; entry != NULL;
         entry = readdir(dir)) {
        n += entry->d_name[0] != '.';
    }
    if (dir != NULL) {
        closedir(dir);
    }
    return n;
}

/* Processes of an attempt of this agent, whether its folder is still there or not. */
static size_t count_processes(const char *key)
{
    struct process_id ids[8];
    char dir[TASK_PATH_BYTES], mark[TASK_MARK_BYTES], marker[TASK_MARK_BYTES + 16];
    (void)snprintf(dir, sizeof dir, "%s/tasks/%s", agent_dir, key);
    (void)snprintf(marker, sizeof marker, "WEIR_TASK_KEY=%s", task_mark(mark, dir));
    return process_with_environment(marker, ids, 8);
}

static void stop(void)
{
    kill_agent(SIGTERM);
    fake_stop();
    /* Supervisors of a test that failed may still write here. */
    for (int i = 0; i < 100 && (weir_dir_remove(root, NULL) != WEIR_OK ||
                                weir_dir_remove(library_dir, NULL) != WEIR_OK);
         i++) {
        (void)usleep(10000);
    }
}

static const char *read_root(const char *name)
{
    static char text[65536];
    char path[TASK_PATH_BYTES];
    FILE *file = fopen(task_path(path, root, name), "re");
    size_t n = file != NULL ? fread(text, 1, sizeof text - 1, file) : 0;
    text[n] = '\0';
    if (file != NULL) {
        (void)fclose(file);
    }
    return text;
}

static bool has_root(const char *name)
{
    return task_has(root, name);
}

static const char *script(const char *format, ...) WEIR_PRINTF(1, 2);

/* A script with the test's folder as $D. */
static const char *script(const char *format, ...)
{
    static char text[2048];
    int n = snprintf(text, sizeof text, "D=%s; ", root);
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text + n, sizeof text - (size_t)n, format, args);
    va_end(args);
    return text;
}

START_TEST(a_listed_task_runs_and_its_end_and_log_are_told)
{
    start_agent();
    fake_await(fake.n_heartbeats > 0);
    struct fake_task *task =
        fake_add("t1", 1, script("echo hello; until [ -e $D/go ]; do sleep 0.02; done; exit 4"));
    fake_await(task->n_running > 0 && strstr(task->log.data, "hello\n") != NULL);
    ck_assert_int_eq(task->n_ends, 0);
    char path[TASK_PATH_BYTES];
    ck_assert_int_eq(weir_file_write_atomic(task_path(path, root, "go"), "", 0, 0600, NULL),
                     WEIR_OK);
    fake_await(task->n_ends > 0);
    ck_assert_int_eq(task->exit_code, 4);
    ck_assert_str_eq(task->state, "exited");
    ck_assert_str_eq(task->log.data, "hello\n");
    ck_assert_int_eq(count_folders(), 1); /* listed: kept */
    fake_unlist(task);
    fake_await(count_folders() == 0);
    ck_assert_int_eq(task->n_ends, 1);
}

END_TEST

START_TEST(a_heartbeat_tells_how_full_the_disk_of_the_agents_folder_is)
{
    struct statvfs disk;
    char id[WEIR_DISK_ID_BYTES];
    start_agent();
    fake_await(fake.n_heartbeats > 0);
    ck_assert_int_eq(statvfs(root, &disk), 0);
    pthread_mutex_lock(&fake.lock);
    json_int_t total = json_integer_value(json_object_get(fake.heartbeat, "disk_bytes"));
    json_int_t rest = json_integer_value(json_object_get(fake.heartbeat, "disk_free_bytes"));
    ck_assert_str_eq(json_string_value(json_object_get(fake.heartbeat, "disk_id")),
                     weir_disk_id(root, id));
    pthread_mutex_unlock(&fake.lock);
    ck_assert_int_eq(total, (json_int_t)(disk.f_blocks * disk.f_frsize));
    ck_assert_int_ge(rest, 0);
    ck_assert_int_le(rest, total);
}

END_TEST

START_TEST(a_task_is_told_how_this_node_reaches_the_server)
{
    char expected[2048], ca_path[TASK_PATH_BYTES];
    ck_assert_int_eq(weir_file_write_atomic(task_path(ca_path, root, "ca.pem"), "", 0, 0600, NULL),
                     WEIR_OK);
    ck_assert_int_eq(setenv("TEST_CA_FILE", ca_path, 1), 0);
    start_agent();
    ck_assert_int_eq(unsetenv("TEST_CA_FILE"), 0);
    struct fake_task *told = fake_add("t1", 1, "echo $WEIR_SERVER $WEIR_CA_FILE");
    fake_await(told->n_ends > 0);
    struct sandbox_probe sandbox;
    sandbox_probe(root, &sandbox); /* in a sandbox the file lies elsewhere */
    (void)snprintf(expected, sizeof expected, "%s %s%s\n", fake.url,
                   sandbox.has_mounts ? agent_dir : root,
                   sandbox.has_mounts ? "/given/ca.pem" : "/ca.pem");
    ck_assert_str_eq(told->log.data, expected);
    struct fake_task *own = fake_add_with("t2", 1, "echo $WEIR_SERVER",
                                          json_pack("{s:s}", "WEIR_SERVER", "http://own:1"));
    fake_await(own->n_ends > 0);
    ck_assert_str_eq(own->log.data, "http://own:1\n");
}

END_TEST

START_TEST(a_task_is_told_where_the_library_onnxruntime_lies_and_can_read_it)
{
    char expected[2048], path[TASK_PATH_BYTES];
    struct sandbox_probe sandbox;
    sandbox_probe(root, &sandbox);
    ck_assert_ptr_nonnull(mkdtemp(library_dir));
#ifdef __SANITIZE_THREAD__
    sandbox.has_idmap = false; /* no user namespaces: the sanitizer has a thread of its own */
#endif
    if (sandbox.is_root && !sandbox.has_idmap) {
        /* Its user cannot be made the file's owner: it must be readable for all, as libraries are. */
        ck_assert_int_eq(chmod(library_dir, 0755), 0);
    }
    (void)task_path(path, library_dir, "libonnxruntime.so.1");
    ck_assert_int_eq(weir_file_write_atomic(path, "library\n", 8, 0600, NULL), WEIR_OK);
    if (sandbox.is_root && !sandbox.has_idmap) {
        ck_assert_int_eq(chmod(path, 0644), 0);
    }
    ck_assert_int_eq(setenv("TEST_ONNXRUNTIME", path, 1), 0);
    start_agent();
    ck_assert_int_eq(unsetenv("TEST_ONNXRUNTIME"), 0);
    struct fake_task *told =
        fake_add("t1", 1, "echo $WEIR_ONNXRUNTIME; cat $WEIR_ONNXRUNTIME; rm -f $WEIR_ONNXRUNTIME");
    fake_await(told->n_ends > 0);
    (void)snprintf(expected, sizeof expected, "%s\nlibrary\n", path);
    ck_assert_msg(strncmp(told->log.data, expected, strlen(expected)) == 0, "%s", told->log.data);
    ck_assert(!sandbox.has_mounts || weir_path_exists(path));
}

END_TEST

static void put(const char *key, const char *name, const char *text)
{
    char path[TASK_PATH_BYTES];
    (void)snprintf(path, sizeof path, "%s/tasks/%s", agent_dir, key);
    ck_assert_int_eq(weir_dir_make(path, 0700, NULL), WEIR_OK);
    (void)snprintf(path, sizeof path, "%s/tasks/%s/%s", agent_dir, key, name);
    ck_assert_int_eq(weir_file_write(path, text, strlen(text), 0600, NULL), WEIR_OK);
}

/* What is not waited for until it is on the disk may be empty, or half, when the machine comes back. */
START_TEST(records_that_the_machines_end_has_spoiled_are_made_anew_and_nothing_starts_twice)
{
    put("fresh.1", "task.json", "");
    put("half.1", "task.json", "{\"id\":\"half");
    put("begun.1", "task.json", "");
    put("begun.1", "run.json", ""); /* that it is there is on the disk before the program begins */
    struct fake_task *fresh = fake_add("fresh", 1, "echo fresh"),
                     *half = fake_add("half", 1, "exit 3");
    struct fake_task *begun = fake_add("begun", 1, script("echo again > $D/again"));
    start_agent();
    fake_await(fresh->n_ends > 0 && half->n_ends > 0 && begun->n_ends > 0);
    ck_assert_str_eq(fresh->state, "exited");
    ck_assert_str_eq(fresh->log.data, "fresh\n");
    ck_assert_int_eq(half->exit_code, 3);
    ck_assert_str_eq(begun->state, "lost");
    ck_assert(!has_root("again"));
}

END_TEST

START_TEST(a_task_outlives_its_agent_and_its_end_is_told_by_the_next)
{
    start_agent();
    struct fake_task *task =
        fake_add("t1", 1,
                 script("echo begin; echo > $D/begun; until [ -e $D/go ]; do sleep 0.02; done; "
                        "echo end; echo > $D/ended; exit 6"));
    fake_await(has_root("begun"));
    kill_agent(SIGKILL);
    char path[TASK_PATH_BYTES];
    ck_assert_int_eq(weir_file_write_atomic(task_path(path, root, "go"), "", 0, 0600, NULL),
                     WEIR_OK);
    fake_await(has_root("ended"));
    start_agent();
    fake_await(task->n_ends > 0);
    ck_assert_int_eq(task->exit_code, 6);
    ck_assert_str_eq(task->log.data, "begin\nend\n");
}

END_TEST

START_TEST(the_agent_works_while_the_server_is_away)
{
    start_agent();
    struct fake_task *task = fake_add(
        "t1", 1, script("echo > $D/begun; until [ -e $D/go ]; do sleep 0.02; done; exit 8"));
    fake_await(has_root("begun"));
    fake.is_away = true;
    char path[TASK_PATH_BYTES];
    ck_assert_int_eq(weir_file_write_atomic(task_path(path, root, "go"), "", 0, 0600, NULL),
                     WEIR_OK);
    char record[TASK_PATH_BYTES];
    (void)snprintf(record, sizeof record, "agent/tasks/t1.1/exit.json");
    fake_await(has_root(record));
    ck_assert_int_eq(task->n_ends, 0);
    fake.is_away = false;
    fake_await(task->n_ends > 0);
    ck_assert_int_eq(task->exit_code, 8);
}

END_TEST

/* Or the server takes a job that was asked to save for one that is done. */
START_TEST(what_was_saved_while_the_server_was_away_is_told_before_the_end)
{
    char path[TASK_PATH_BYTES];
    start_agent();
    struct fake_task *task = fake_add(
        "t1", 1, script("echo > $D/begun; until [ -e $D/go ]; do sleep 0.02; done; exit 0"));
    fake_await(has_root("begun"));
    fake.is_away = true;
    ck_assert_int_eq(weir_file_write_atomic(task_path(path, root, "agent/tasks/t1.1/" TASK_SAVED),
                                            "", 0, 0600, NULL),
                     WEIR_OK);
    ck_assert_int_eq(weir_file_write_atomic(task_path(path, root, "go"), "", 0, 0600, NULL),
                     WEIR_OK);
    fake_await(has_root("agent/tasks/t1.1/exit.json"));
    kill_agent(SIGKILL); /* The next one knows what the folder says. */
    start_agent();
    fake.is_away = false;
    fake_await(task->n_ends > 0);
    ck_assert_int_ge(task->n_saved, 1);
    ck_assert(!task->is_saved_late);
}

END_TEST

START_TEST(a_task_that_should_stop_is_stopped_with_its_grandchildren)
{
    start_agent();
    struct fake_task *task = fake_add(
        "t1", 1,
        script("trap '' TERM; (setsid sh -c 'trap \"\" TERM; echo > %s/begun; while :; do sleep "
               "10; done' &); while :; do sleep 10; done",
               root));
    fake_await(has_root("begun"));
    fake_want_stopped(task);
    fake_await(task->n_ends > 0);
    ck_assert_int_eq(task->signal, SIGKILL);
    ck_assert_str_eq(task->message, "stopped; killed after 500 ms of grace");
    ck_assert_uint_eq(count_processes("t1.1"), 0);
}

END_TEST

START_TEST(a_task_that_is_no_longer_listed_is_stopped_and_forgotten)
{
    start_agent();
    struct fake_task *task = fake_add("t1", 1, script("echo > $D/begun; sleep 1000"));
    fake_await(has_root("begun"));
    fake_unlist(task);
    fake_await(task->n_ends > 0);
    ck_assert_int_eq(task->signal, SIGTERM);
    fake_await(count_folders() == 0);
}

END_TEST

START_TEST(the_next_attempt_waits_until_the_one_before_has_ended)
{
    start_agent();
    struct fake_task *first = fake_add(
        "t1", 1,
        script("trap 'sleep 0.3; echo first-ends >> $D/order; exit 0' TERM; echo > $D/begun; "
               "while :; do sleep 0.02; done"));
    fake_await(has_root("begun"));
    fake_unlist(first);
    struct fake_task *second = fake_add("t1", 2, script("echo second-begins >> $D/order"));
    fake_await(second->n_ends > 0);
    ck_assert_str_eq(read_root("order"), "first-ends\nsecond-begins\n");
    ck_assert_int_eq(first->n_ends, 1);
}

END_TEST

START_TEST(a_task_that_cannot_be_understood_is_reported_not_dropped)
{
    start_agent();
    struct fake_task *task = fake_add("t1", 1, "true");
    pthread_mutex_lock(&fake.lock);
    struct fake_task *bad = &fake.tasks[fake.n_tasks++];
    *bad = (struct fake_task){.id = "t2", .attempt = 1};
    weir_buf_init(&bad->log, 1000);
    bad->document =
        json_pack("{s:s, s:i, s:[], s:s}", "id", "t2", "attempt", 1, "argv", "desired", "running");
    fake_changed();
    fake_await(bad->n_ends > 0 && task->n_ends > 0);
    ck_assert_int_eq(bad->exit_code, 126);
    ck_assert_ptr_nonnull(strstr(bad->message, "$.argv"));
    ck_assert_int_eq(task->exit_code, 0);
}

END_TEST

START_TEST(an_exit_is_told_even_if_the_log_cannot_be)
{
    fake.is_log_broken = true;
    start_agent();
    struct fake_task *task = fake_add("t1", 1, "echo something; exit 2");
    fake_await(task->n_ends > 0);
    ck_assert_int_eq(task->exit_code, 2);
    fake.is_log_broken = false;
    fake_await(task->log.len > 0); /* it comes later, before the folder goes */
    fake_unlist(task);
    fake_await(count_folders() == 0);
    ck_assert_str_eq(task->log.data, "something\n");
}

END_TEST

START_TEST(a_log_of_many_chunks_arrives_whole)
{
    start_agent();
    struct fake_task *task = fake_add("t1", 1, "seq 1000000 1700000");
    fake_await(task->n_ends > 0);
    ck_assert_uint_eq(task->log.len, 700001 * 8);
    int n_wrong = 0; /* an assertion per line would take seconds */
    for (int i = 0; i <= 700000; i++) {
        n_wrong += strtol(task->log.data + (size_t)i * 8, NULL, 10) != 1000000 + i;
    }
    ck_assert_int_eq(n_wrong, 0);
}

END_TEST

START_TEST(a_second_agent_of_the_same_folder_is_refused)
{
    start_agent();
    fake_await(fake.n_heartbeats > 0);
    struct weir_error err = {0};
    struct weir_agent_config config = {
        .dir = agent_dir, .server = fake.url, .token = "weir_node", .node = "n1", .stop_fd = 0};
    ck_assert_int_eq(weir_agent_run(&config, &err), WEIR_ERR_CONFLICT);
    ck_assert_ptr_nonnull(strstr(err.message, agent_dir));
    config.node = "Not A Name";
    ck_assert_int_eq(weir_agent_run(&config, &err), WEIR_ERR_INVALID);
}

END_TEST

/* The server is started again on another port; who starts it writes the address down. */
START_TEST(an_agent_follows_its_server_to_another_address)
{
    start_agent();
    struct fake_task *task = fake_add("t1", 1, script("echo > $D/begun; sleep 1000"));
    fake_await(has_root("begun"));
    struct weir_http_server *old = fake.http;
    struct weir_error err = {0};
    struct weir_http_config config = {.listen = "127.0.0.1:0"};
    weir_http_server_stop(old, 100);
    ck_assert_int_eq(weir_http_server_start(&config, fake_handle, NULL, &fake.http, &err), WEIR_OK);
    char url[64];
    char path[TASK_PATH_BYTES];
    int n = snprintf(url, sizeof url, "http://127.0.0.1:%d", weir_http_server_port(fake.http));
    ck_assert_int_eq(weir_file_write_atomic(task_path(path, agent_dir, "server.url"), url,
                                            (size_t)n, 0600, NULL),
                     WEIR_OK);
    fake_want_stopped(task);
    fake_await(task->n_ends > 0);
    ck_assert_int_eq(task->signal, SIGTERM);
}

END_TEST

#define N_STORM 12

/* Each task says so when it runs, takes a moment, and ends with a status of its own. */
static void add_storm_tasks(struct fake_task **tasks)
{
    for (int i = 0; i < N_STORM; i++) {
        char id[16];
        (void)snprintf(id, sizeof id, "t%d", i);
        tasks[i] = fake_add(id, 1,
                            script("echo ran >> $D/%s; echo one; sleep 0.%02d; echo two; exit %d",
                                   id, i * 7, i + 1));
    }
}

static int count_runs(int i)
{
    char id[16];
    int n = 0;
    (void)snprintf(id, sizeof id, "t%d", i);
    for (const char *at = strstr(read_root(id), "ran"); at != NULL; at = strstr(at + 1, "ran")) {
        n++;
    }
    return n;
}

static void wait_a_moment(struct weir_rng *rng, uint64_t max_us)
{
    (void)usleep((useconds_t)weir_rng_below(rng, max_us));
}

static uint64_t storm_seed(int i)
{
    uint64_t seed;
    weir_random_bytes(&seed, sizeof seed);
    const char *fixed = getenv("WEIR_TEST_SEED");
    seed = fixed != NULL ? strtoull(fixed, NULL, 10) : seed;
    printf("storm %d: WEIR_TEST_SEED=%llu\n", i, (unsigned long long)seed);
    (void)fflush(stdout);
    return seed;
}

/* However often and whenever the agent is killed: each task runs once, and its end, told at least
 * once and never in two ways, is the right one. */
START_TEST(killed_at_any_moment_the_agent_runs_each_task_exactly_once)
{
    struct weir_rng rng;
    struct fake_task *tasks[N_STORM];
    weir_rng_init(&rng, storm_seed(_i), 0);
    start_agent();
    add_storm_tasks(tasks);
    for (int kills = 0; kills < 25; kills++) {
        wait_a_moment(&rng, 60000);
        kill_agent(SIGKILL);
        wait_a_moment(&rng, 10000);
        start_agent();
    }
    for (int i = 0; i < N_STORM; i++) {
        fake_await(tasks[i]->n_ends > 0);
    }
    int n_reports = 0;
    for (int i = 0; i < N_STORM; i++) {
        ck_assert_int_eq(count_runs(i), 1);
        ck_assert_str_eq(tasks[i]->state, "exited");
        ck_assert_int_eq(tasks[i]->exit_code, i + 1);
        ck_assert(!tasks[i]->has_contradiction);
        ck_assert_str_eq(tasks[i]->log.data, "one\ntwo\n");
        n_reports += tasks[i]->n_ends;
    }
    printf("%d tasks, 25 kills, %d reports of ends\n", N_STORM, n_reports);
    for (int i = 0; i < N_STORM; i++) {
        fake_unlist(tasks[i]);
    }
    fake_await(count_folders() == 0);
}

END_TEST

/* Kill a supervisor of this test: a process that runs `agent --supervise` on a folder of ours. */
static void kill_a_supervisor(struct weir_rng *rng)
{
    struct process_id ids[256];
    char marker[128];
    (void)snprintf(marker, sizeof marker, "WEIR_TEST_ROOT=%s", root);
    size_t n = process_with_environment(marker, ids, 256);
    size_t begin = n > 0 ? weir_rng_below(rng, n) : 0;
    for (size_t i = 0; i < n; i++) {
        const struct process_id *id = &ids[(begin + i) % n];
        char path[64];
        char line[256] = "";
        (void)snprintf(path, sizeof path, "/proc/%d/cmdline", (int)id->pid);
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        ssize_t len = fd >= 0 ? read(fd, line, sizeof line - 1) : 0;
        if (fd >= 0) {
            close(fd);
        }
        for (ssize_t at = 0; at < len; at++) {
            line[at] = line[at] == '\0' ? ' ' : line[at];
        }
        if (strstr(line, "--supervise") != NULL && process_signal(id, SIGKILL)) {
            return;
        }
    }
}

/* Supervisors are killed too: then a task may be lost, but never runs twice, and every one is
 * accounted for. */
START_TEST(killed_supervisors_lose_tasks_but_never_double_them)
{
    struct weir_rng rng;
    struct fake_task *tasks[N_STORM];
    ck_assert_int_eq(setenv("WEIR_TEST_ROOT", root, 1), 0);
    weir_rng_init(&rng, storm_seed(_i), 1);
    start_agent();
    add_storm_tasks(tasks);
    for (int kills = 0; kills < 20; kills++) {
        wait_a_moment(&rng, 50000);
        kill_a_supervisor(&rng);
        if (weir_rng_below(&rng, 3) == 0) {
            kill_agent(SIGKILL);
            start_agent();
        }
    }
    int n_lost = 0;
    for (int i = 0; i < N_STORM; i++) {
        fake_await(tasks[i]->n_ends > 0);
        bool is_lost = strcmp(tasks[i]->state, "lost") == 0;
        n_lost += is_lost;
        ck_assert(!tasks[i]->has_contradiction);
        ck_assert_int_le(count_runs(i), 1);
        /* A process that was forked and waits for the word to go looks like a supervisor too. Killed
         * before it is written down, it was never started, and that may pass. */
        int n_runs = count_runs(i), exit_code = tasks[i]->exit_code;
        ck_assert_msg(is_lost || tasks[i]->signal == SIGKILL ||
                          (n_runs == 1 && exit_code == i + 1) ||
                          (n_runs == 0 && exit_code == weir_status_exit(WEIR_ERR_IO)),
                      "task %d: %s, signal %d, exit code %d, ran %d times", i, tasks[i]->state,
                      tasks[i]->signal, exit_code, n_runs);
    }
    printf("%d tasks, 20 kills of supervisors: %d lost\n", N_STORM, n_lost);
    for (int i = 0; i < N_STORM; i++) {
        char key[16];
        (void)snprintf(key, sizeof key, "t%d.1", i);
        fake_await(count_processes(key) == 0);
    }
}

END_TEST

/* ---- in an allocation ------------------------------------------------------------------------- */

static void start_lent_agent(void)
{
    ck_assert_int_eq(setenv("TEST_ALLOCATION", "slurm-1", 1), 0);
    start_agent();
    ck_assert_int_eq(unsetenv("TEST_ALLOCATION"), 0);
}

/* As long as it takes: the end of the agent is waited for. */
/* When it has ended, all that it told has been noted: the test reads it. */
static void take_node_back(void)
{
    kill_agent(SIGTERM);
    pthread_mutex_lock(&fake.lock);
    pthread_mutex_unlock(&fake.lock);
}

START_TEST(an_agent_whose_node_is_taken_back_tells_it_before_what_ends_there)
{
    start_lent_agent();
    struct fake_task *deaf =
        fake_add("t1", 1, script("trap '' TERM; echo > $D/deaf; while :; do sleep 0.02; done"));
    struct fake_task *good = fake_add(
        "t2", 1,
        script("trap 'echo saved; exit 75' TERM; echo > $D/good; while :; do sleep 0.02; done"));
    fake_await(deaf->n_running > 0 && good->n_running > 0);
    while (!has_root("deaf") || !has_root("good")) {
        (void)usleep(1000);
    }
    take_node_back();
    ck_assert_int_eq(fake.n_left, 1);
    ck_assert_int_eq(deaf->n_ends, 1);
    ck_assert_int_eq(good->n_ends, 1);
    ck_assert(deaf->is_end_foreseen && good->is_end_foreseen);
    ck_assert_str_eq(good->state, "lost"); /* nobody wanted its end */
    ck_assert_str_eq(good->message, "stopped: its node was taken back by the cluster that lent it");
    ck_assert_str_eq(good->log.data, "saved\n");
    ck_assert_uint_eq(count_processes("t1.1"), 0);
    ck_assert_str_eq(json_string_value(json_object_get(fake.heartbeat, "leaving")),
                     "allocation slurm-1 has ended");
}

END_TEST

START_TEST(a_task_that_got_the_signal_first_has_not_failed)
{
    char path[TASK_PATH_BYTES];
    start_lent_agent();
    struct fake_task *task = fake_add(
        "t1", 1, script("trap 'exit 3' TERM; echo > $D/ready; while :; do sleep 0.02; done"));
    fake_await(task->n_running > 0);
    while (!has_root("ready")) {
        (void)usleep(1000);
    }
    ck_assert_int_eq(kill((pid_t)task->pid, SIGTERM), 0);
    while (!task_has(task_path(path, agent_dir, "tasks/t1.1"), "exit.json")) {
        (void)usleep(1000);
    }
    (void)usleep(50000); /* as its owner does: one after the other */
    take_node_back();
    ck_assert_int_eq(task->n_ends, 1);
    ck_assert_int_eq(task->exit_code, 3);
    ck_assert(task->is_end_foreseen);
}

END_TEST

START_TEST(without_its_server_it_goes_on_telling_until_its_time_is_over)
{
    char ends[32];
    (void)snprintf(ends, sizeof ends, "%lld", (long long)weir_time_ms() + 2500);
    ck_assert_int_eq(setenv("TEST_ENDS_MS", ends, 1), 0);
    start_lent_agent();
    ck_assert_int_eq(unsetenv("TEST_ENDS_MS"), 0);
    struct fake_task *task = fake_add("t1", 1, "trap '' TERM; while :; do sleep 0.02; done");
    fake_await(task->n_running > 0);
    fake.is_away = true;
    take_node_back();
    ck_assert_int_ge(weir_time_ms(), strtoll(ends, NULL, 10));
    ck_assert_int_eq(task->n_ends, 0);
    ck_assert_uint_eq(count_processes("t1.1"), 0);
    fake.is_away = false;
}

END_TEST

/* As after a restore from a backup. It waits for the agent, whom nobody has told to end. */
START_TEST(an_agent_that_its_server_does_not_know_ends_by_itself)
{
    start_lent_agent();
    struct fake_task *task = fake_add("t1", 1, "while :; do sleep 0.02; done");
    fake_await(task->n_running > 0);
    fake.is_other = true;
    kill_agent(0);
    ck_assert_uint_eq(count_processes("t1.1"), 0);
    fake.is_other = false;
}

END_TEST

static int run_agent(const char *dir, const char *server)
{
    struct weir_error err = {0};
    json_t *inventory =
        json_pack("{s:i, s:i, s:i}", "cpu_slots", 2, "memory_bytes", 1 << 30, "n_accelerators", 0);
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    (void)sigprocmask(SIG_BLOCK, &set, NULL);
    int stop_fd = signalfd(-1, &set, SFD_CLOEXEC);
    weir_log_set_level(WEIR_LOG_ERROR);
    char share[160]; /* the test's folder: tasks write into it */
    (void)snprintf(share, sizeof share, "%.*s:rw", (int)(strrchr(dir, '/') - dir), dir);
    struct weir_agent_config config = {.dir = dir,
                                       .shares = share,
                                       .server = server,
                                       .token = "weir_node",
                                       .ca_file = getenv("TEST_CA_FILE"),
                                       .onnxruntime = getenv("TEST_ONNXRUNTIME"),
                                       .node = "n1",
                                       .inventory = inventory,
                                       .heartbeat_ms = 200,
                                       .poll_wait_s = 1,
                                       .allocation = getenv("TEST_ALLOCATION"),
                                       .stop_fd = stop_fd};
    if (getenv("TEST_ENDS_MS") != NULL) {
        json_object_set_new(inventory, "ends_ms",
                            json_integer(strtoll(getenv("TEST_ENDS_MS"), NULL, 10)));
    }
    weir_status status = weir_agent_run(&config, &err);
    if (status != WEIR_OK) {
        (void)fprintf(stderr, "%s\n", err.message);
    }
    json_decref(inventory);
    return status == WEIR_OK ? 0 : 1;
}

int main(int argc, char **argv)
{
    if (argc == 4 && strcmp(argv[2], "--supervise") == 0) {
        return weir_agent_supervise(argv[3]);
    }
    if (argc == 5 && strcmp(argv[2], "--run") == 0) {
        return run_agent(argv[3], argv[4]);
    }
    Suite *suite = suite_create("agent");
    TCase *tcase = tcase_create("agent");
    tcase_set_timeout(tcase, 120);
    tcase_add_checked_fixture(tcase, start, stop);
    tcase_add_test(tcase, a_listed_task_runs_and_its_end_and_log_are_told);
    tcase_add_test(tcase, a_heartbeat_tells_how_full_the_disk_of_the_agents_folder_is);
    tcase_add_test(tcase, a_task_is_told_how_this_node_reaches_the_server);
    tcase_add_test(tcase, a_task_is_told_where_the_library_onnxruntime_lies_and_can_read_it);
    tcase_add_test(
        tcase, records_that_the_machines_end_has_spoiled_are_made_anew_and_nothing_starts_twice);
    tcase_add_test(tcase, a_task_outlives_its_agent_and_its_end_is_told_by_the_next);
    tcase_add_test(tcase, the_agent_works_while_the_server_is_away);
    tcase_add_test(tcase, what_was_saved_while_the_server_was_away_is_told_before_the_end);
    tcase_add_test(tcase, a_task_that_should_stop_is_stopped_with_its_grandchildren);
    tcase_add_test(tcase, a_task_that_is_no_longer_listed_is_stopped_and_forgotten);
    tcase_add_test(tcase, the_next_attempt_waits_until_the_one_before_has_ended);
    tcase_add_test(tcase, a_task_that_cannot_be_understood_is_reported_not_dropped);
    tcase_add_test(tcase, an_exit_is_told_even_if_the_log_cannot_be);
    tcase_add_test(tcase, a_log_of_many_chunks_arrives_whole);
    tcase_add_test(tcase, a_second_agent_of_the_same_folder_is_refused);
    tcase_add_test(tcase, an_agent_follows_its_server_to_another_address);
    tcase_add_test(tcase, an_agent_whose_node_is_taken_back_tells_it_before_what_ends_there);
    tcase_add_test(tcase, a_task_that_got_the_signal_first_has_not_failed);
    tcase_add_test(tcase, without_its_server_it_goes_on_telling_until_its_time_is_over);
    tcase_add_test(tcase, an_agent_that_its_server_does_not_know_ends_by_itself);
    tcase_add_loop_test(tcase, killed_at_any_moment_the_agent_runs_each_task_exactly_once, 0, 2);
    tcase_add_loop_test(tcase, killed_supervisors_lose_tasks_but_never_double_them, 0, 2);
    suite_add_tcase(suite, tcase);
    return weir_test_run(suite);
}
