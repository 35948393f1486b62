/* Tasks in sandboxes, started by the real supervisor. Needs root and mount namespaces. */
#include "agent/sandbox_enter.h"

#include "agent/agent.h"
#include "agent/sandbox/idmap.h"
#include "agent/supervise/launch.h"
#include "base/file.h"
#include "base/test_main.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static char root[WEIR_DIR_TEMPORARY_BYTES], self[512], text[1 << 16];

static const char *in_root(const char *name)
{
    static char paths[8][512];
    static size_t i;
    char *path = paths[i++ % WEIR_ARRAY_LEN(paths)];
    (void)snprintf(path, sizeof paths[0], "%s/%s", root, name);
    return path;
}

static void put(const char *name, const char *content)
{
    ck_assert_int_eq(weir_file_write(in_root(name), content, strlen(content), 0600, NULL), WEIR_OK);
}

static void make(const char *name)
{
    ck_assert_int_eq(weir_dir_make(in_root(name), 0700, NULL), WEIR_OK);
}

static void start(void)
{
    static const char *const folders[] = {"state/agent/tasks",
                                          "state/agent/jobs/a",
                                          "state/agent/jobs/b",
                                          "state/datasets/faces",
                                          "state/datasets/other",
                                          "state/demo",
                                          "share"};
    ck_assert_int_eq(weir_dir_make_temporary("sandbox", root, NULL), WEIR_OK);
    for (size_t i = 0; i < WEIR_ARRAY_LEN(folders); i++) {
        make(folders[i]);
    }
    put("state/admin.token", "secret\n");
    put("state/datasets/faces/ada", "ada\n");
    put("state/datasets/other/bob", "bob\n");
    put("share/frame", "frame\n");
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    ck_assert_int_gt(n, 0);
    self[n] = '\0';
}

static void stop(void)
{
    static const char *const shared[] = {"/dev/shm/weir-test-a", "/dev/shm/weir-test-b"};
    for (size_t i = 0; i < WEIR_ARRAY_LEN(shared); i++) {
        ck_assert(!weir_path_exists(shared[i]) || weir_dir_remove(shared[i], NULL) == WEIR_OK);
    }
    ck_assert_int_eq(weir_dir_remove(root, NULL), WEIR_OK);
}

/* A task of job "a" (user 74990) or "b" (74991); takes `more`. */
static const char *write_task(const char *name, const char *job, const char *script, json_t *more)
{
    static char dirs[2][512];
    char *dir = dirs[job[0] - 'a'], shm[64], job_dir[64];
    (void)snprintf(dir, sizeof dirs[0], "%s/state/agent/tasks/%s.1", root, name);
    (void)snprintf(shm, sizeof shm, "/dev/shm/weir-test-%s", job);
    (void)snprintf(job_dir, sizeof job_dir, "state/agent/jobs/%s", job);
    ck_assert_int_eq(weir_dir_make(dir, 0700, NULL), WEIR_OK);
    json_t *task =
        json_pack("{s:s,s:s,s:i,s:s,s:i,s:s,s:[s,s,s],s:s,s:[],s:[s,s],"
                  "s:{s:i,s:i,s:b,s:s,s:s,s:s}}",
                  "id", name, "job", job, "attempt", 1, "role", "command", "rank", 0, "desired",
                  "running", "argv", "/bin/bash", "-c", script, "state", in_root("state"), "paths",
                  "folders", "datasets/faces", "demo", "cell", "user",
                  job[0] == 'a' ? 74990 : 74991, "readers", 70000, "namespaces", 1, "agent_dir",
                  in_root("state/agent"), "job_dir", in_root(job_dir), "shm_dir", shm);
    json_t *shares = json_object_get(more, "shares");
    if (shares != NULL) {
        json_object_set(json_object_get(task, "cell"), "shares", shares);
    }
    json_object_update(task, more);
    json_decref(more);
    char *record = json_dumps(task, 0), path[TASK_PATH_BYTES];
    ck_assert_int_eq(
        weir_file_write(task_path(path, dir, "task.json"), record, strlen(record), 0600, NULL),
        WEIR_OK);
    free(record);
    json_decref(task);
    return dir;
}

static pid_t supervise(const char *dir)
{
    char *const argv[] = {self, "agent", "--supervise", (char *)dir, NULL};
    pid_t pid;
    ck_assert_int_eq(posix_spawn(&pid, self, NULL, NULL, argv, environ), 0);
    return pid;
}

static struct task_exit end_of(pid_t supervisor, const char *dir)
{
    struct task_exit record;
    char path[TASK_PATH_BYTES];
    int status;
    ck_assert_int_eq(waitpid(supervisor, &status, 0), supervisor);
    ck_assert_int_eq(task_exit_read(dir, &record, NULL), WEIR_OK);
    FILE *file = fopen(task_path(path, dir, "log"), "re");
    size_t n = file != NULL ? fread(text, 1, sizeof text - 1, file) : 0;
    text[n] = '\0';
    if (file != NULL) {
        (void)fclose(file);
    }
    return record;
}

static struct task_exit run(const char *job, const char *script, json_t *more)
{
    static int n;
    char name[32];
    (void)snprintf(name, sizeof name, "t%d", n++);
    const char *dir = write_task(name, job, script, more);
    return end_of(supervise(dir), dir);
}

static void runs_well(const char *job, const char *script, json_t *more)
{
    struct task_exit end = run(job, script, more);
    ck_assert_msg(end.exit_code == 0, "exit %d (%s): %s", end.exit_code, end.message, text);
}

static json_t *paths(const char *path, const char *access)
{
    return json_pack("{s:[{s:s,s:s}]}", "paths", "path", path, "access", access);
}

START_TEST(a_task_is_a_user_of_its_own_at_home_in_its_folder)
{
    runs_well("a",
              "set -e; [ $(id -u) = 74990 ]; [ $(id -g) = 74990 ]; echo x > file; "
              "[ $(id -un) = weir-task ]; grep -q ^root: /etc/passwd; "
              "if echo >> /etc/passwd; then exit 9; fi 2>/dev/null; "
              "[ $(stat -c %u file) = 74990 ]; [ $HOME = $PWD ]; [ -O . ]; "
              "echo t > /tmp/t; cmp /tmp/t /var/tmp/t; echo s > /dev/shm/s; "
              "test $(ls -d /proc/[0-9]* | wc -l) -lt 5; cp file ../../ && exit 1; exit 0",
              json_object());
    struct stat info;
    ck_assert_int_eq(stat(in_root("state/agent/jobs/a/tmp/t"), &info), 0);
    ck_assert_uint_eq(info.st_uid, 74990);
}

END_TEST

START_TEST(neither_the_state_folder_nor_another_job_is_in_reach)
{
    char script[2048];
    (void)snprintf(script, sizeof script,
                   "cd %s/state && ls -A && ls -A agent agent/tasks; cat admin.token; "
                   "touch x; touch agent/x; ls -A datasets; ls /root; cat /etc/shadow; "
                   "mount -t tmpfs x /tmp; echo end",
                   root);
    runs_well("a", script, json_object());
    ck_assert_ptr_null(strstr(text, "secret"));
    ck_assert_ptr_null(strstr(text, "root:"));
    ck_assert_int_ne(access(in_root("state/x"), F_OK), 0);
    ck_assert_int_ne(access(in_root("state/agent/x"), F_OK), 0);
    ck_assert_msg(strstr(text, "agent\nagent:\ntasks\n") != NULL, "%s", text);
    ck_assert_ptr_nonnull(strstr(text, "end\n"));
}

END_TEST

START_TEST(tasks_of_one_job_share_and_those_of_two_do_not)
{
    const char *dir = write_task(
        "server", "a", "echo hello > /dev/shm/x; echo $$ > /tmp/pid; sleep 1000", json_object());
    struct task_run running;
    pid_t supervisor = supervise(dir);
    while (access(in_root("state/agent/jobs/a/tmp/pid"), F_OK) != 0) {
        (void)usleep(1000);
    }
    runs_well(
        "a",
        "set -e; grep -q hello /dev/shm/x; kill -0 $(cat /tmp/pid); ls /proc/$(cat /tmp/pid)/fd",
        json_object());
    char script[1024];
    ck_assert_int_eq(task_run_read(dir, &running, NULL), WEIR_OK);
    (void)snprintf(script, sizeof script,
                   "ls /dev/shm/x /tmp/pid && exit 1; kill -0 %d && exit 2; cat /proc/%d/environ "
                   "&& exit 3; ls %s/state/agent/tasks/server.1 && exit 4; exit 0",
                   (int)running.process.pid, (int)running.process.pid, root);
    runs_well("b", script, json_object());
    ck_assert_int_eq(kill(supervisor, SIGTERM), 0);
    (void)end_of(supervisor, dir);
}

END_TEST

/* Of the job's init, or false. */
static bool read_init(const char *job, struct process_id *out)
{
    char name[64], line[64];
    size_t len = 0;
    int pid;
    (void)snprintf(name, sizeof name, "state/agent/jobs/%s/init", job);
    if (weir_file_read_into(in_root(name), line, sizeof line - 1, &len, NULL) != WEIR_OK) {
        return false;
    }
    line[len] = '\0';
    return sscanf(line, "%d", &pid) == 1 && process_identify((pid_t)pid, out);
}

START_TEST(a_job_has_processes_and_ipc_of_its_own_and_an_init_that_it_cannot_signal)
{
    char outside[64] = "", inside[64] = "";
    ck_assert_int_gt(readlink("/proc/self/ns/pid", outside, sizeof outside - 1), 0);
    int id = shmget(IPC_PRIVATE, 4096, IPC_CREAT | 0666);
    ck_assert_int_ge(id, 0);
    runs_well("a",
              "readlink /proc/self/ns/pid; ls -d /proc/1 && exit 1; kill -9 1 && exit 2; "
              "[ $(wc -l < /proc/sysvipc/shm) = 1 ] || exit 3; "
              "(sleep 0.01 &) ; sleep 0.1; ps -e >/dev/null 2>&1; exit 0",
              json_object());
    (void)shmctl(id, IPC_RMID, NULL);
    ck_assert_int_eq(sscanf(text, "%63s", inside), 1);
    ck_assert_ptr_eq(strstr(inside, "pid:["), inside);
    ck_assert_str_ne(inside, outside);
}

END_TEST

START_TEST(the_init_is_shared_by_the_tasks_of_a_job_and_ends_with_the_last)
{
    struct process_id init, later;
    const char *dir = write_task("first", "a", "touch /tmp/ready; sleep 1000", json_object());
    pid_t supervisor = supervise(dir);
    while (access(in_root("state/agent/jobs/a/tmp/ready"), F_OK) != 0) {
        (void)usleep(1000);
    }
    ck_assert(read_init("a", &init));
    runs_well("a", "true", json_object());
    ck_assert(process_is_alive(&init));
    ck_assert(read_init("a", &later));
    ck_assert_int_eq(init.pid, later.pid);
    ck_assert_int_eq(kill(supervisor, SIGTERM), 0);
    (void)end_of(supervisor, dir);
    ck_assert(process_wait(&init, 10000));
    runs_well("a", "true", json_object()); /* with a new one */
}

END_TEST

START_TEST(what_runs_on_without_a_supervisor_ends_with_the_init)
{
    struct task_run running;
    int status;
    const char *dir = write_task("left", "a",
                                 "(unset WEIR_TASK_KEY; setsid sleep 1000 & echo $! > /dev/null); "
                                 "touch /tmp/ready; sleep 1000",
                                 json_object());
    pid_t supervisor = supervise(dir);
    while (access(in_root("state/agent/jobs/a/tmp/ready"), F_OK) != 0) {
        (void)usleep(1000);
    }
    ck_assert_int_eq(task_run_read(dir, &running, NULL), WEIR_OK);
    ck_assert_int_eq(kill(supervisor, SIGKILL), 0);
    ck_assert_int_eq(waitpid(supervisor, &status, 0), supervisor);
    ck_assert(process_wait(&running.process, 10000));
    ck_assert_int_eq(task_exit_read(dir, &(struct task_exit){0}, NULL), WEIR_ERR_NOT_FOUND);
    struct task_exit end = end_of(supervise(dir), dir);
    ck_assert(end.is_lost);
}

END_TEST

START_TEST(a_task_has_the_devices_that_it_was_given_and_no_others)
{
    const char *script =
        "cd /dev; echo x > null; head -c 4 urandom > /dev/shm/x; [ -c zero ] || exit 1; "
        "ls kmsg mem kvm vda loop1 && exit 2; touch x && exit 3; mknod y c 1 3 && exit 4; "
        "[ -e loop0 ] && echo given; ls pts | grep -v ptmx && exit 5; exit 0";
    runs_well("a", script, json_pack("{s:[]}", "devices"));
    ck_assert_ptr_null(strstr(text, "given"));
    if (access("/dev/loop0", F_OK) == 0) {
        runs_well("a", script, json_pack("{s:[s,s]}", "devices", "/dev/loop0", "/dev/no/such"));
        ck_assert_ptr_nonnull(strstr(text, "given"));
    }
    struct task_exit end = run("a", "true", json_pack("{s:[s]}", "devices", "/dev/../etc"));
    ck_assert_msg(strstr(end.message, "$.devices[0]") != NULL, "%s", end.message);
}

END_TEST

START_TEST(a_task_over_its_bound_of_the_disk_is_killed_and_says_so)
{
    struct task_exit end = run(
        "a", "trap '' TERM; head -c 3000000 /dev/zero > /tmp/x; sync; while :; do sleep 1; done",
        json_pack("{s:i}", "disk_max_bytes", 1 << 20));
    ck_assert_int_eq(end.signal, SIGKILL);
    ck_assert_msg(strstr(end.message, "over its bound of 1048576") != NULL, "%s", end.message);
    ck_assert(!end.is_lost);
}

END_TEST

START_TEST(a_job_without_a_network_has_a_loopback_alone)
{
    runs_well("a",
              "[ $(tail -n +3 /proc/net/dev | wc -l) = 1 ] && grep -q lo: /proc/net/dev || exit 1; "
              "[ $(tail -n +2 /proc/net/route | wc -l) = 0 ] || exit 2; "
              "exec 3<>/dev/tcp/127.0.0.1/1; [ $? = 1 ]",
              json_pack("{s:s}", "network", "none"));
    ck_assert_msg(strstr(text, "Connection refused") != NULL, "%s", text);
    struct task_exit end = run("b", "true", json_pack("{s:s,s:n}", "network", "none", "cell"));
    ck_assert_msg(strstr(end.message, "not supported on this node") != NULL, "%s", end.message);
    end = run("b", "true", json_pack("{s:s}", "network", "all"));
    ck_assert_msg(strstr(end.message, "$.network") != NULL, "%s", end.message);
}

END_TEST

START_TEST(what_the_server_names_is_let_in_and_stays_roots_on_disk)
{
    char script[1024];
    (void)snprintf(script, sizeof script, "echo w > %s/state/checkpoints/a/f; umask", root);
    runs_well("a", script, paths(in_root("state/checkpoints/a"), "write"));
    struct stat info;
    ck_assert_int_eq(stat(in_root("state/checkpoints/a/f"), &info), 0);
    ck_assert_uint_eq(info.st_uid, 0);
    (void)snprintf(script, sizeof script,
                   "cd %s/state/datasets; cat faces/ada || exit 1; ls other && exit 2; touch "
                   "faces/x && exit 3; exit 0",
                   root);
    runs_well("a", script, paths(in_root("state/datasets/faces"), "read"));
}

END_TEST

/* Of Weir's own folder a task has what the server names in "folders", whatever its path is called and
 * whatever link it goes by; in a sandbox and without one. */
START_TEST(no_path_and_no_link_leads_to_what_the_server_did_not_name)
{
    static const char *const names[] = {"state/checkpoints/b", "/state/./datasets/other",
                                        "to-other", "to-state/datasets/other"};
    char bad[WEIR_ARRAY_LEN(names)][512];
    for (size_t i = 0; i < WEIR_ARRAY_LEN(names); i++) {
        (void)snprintf(bad[i], sizeof bad[i], "%s/%s", root, names[i]);
    }
    ck_assert_int_eq(symlink(in_root("state/datasets/other"), in_root("to-other")), 0);
    ck_assert_int_eq(symlink(in_root("state"), in_root("to-state")), 0);
    for (size_t i = 0; i < 2 * WEIR_ARRAY_LEN(bad); i++) {
        bool has_sandbox = i < WEIR_ARRAY_LEN(bad);
        json_t *more = paths(bad[i % WEIR_ARRAY_LEN(bad)], "read");
        if (!has_sandbox) {
            json_object_set_new(more, "cell", json_null());
        }
        struct task_exit end = run("a", "true", more);
        ck_assert_msg(end.exit_code == weir_status_exit(WEIR_ERR_DENIED) &&
                          strstr(end.message, "is not this job's") != NULL,
                      "%s: %lld %s", bad[i % WEIR_ARRAY_LEN(bad)], (long long)end.exit_code,
                      end.message);
    }
}

END_TEST

START_TEST(a_task_whose_server_named_no_folders_is_not_started_without_them)
{
    struct task_exit end = run("a", "true", json_pack("{s:n}", "paths"));
    ck_assert_int_eq(end.exit_code, 126);
    ck_assert_msg(strstr(end.message, "makes it anew when it starts") != NULL, "%s", end.message);
}

END_TEST

START_TEST(a_link_in_place_of_a_jobs_folder_leads_nowhere)
{
    make("state/checkpoints");
    ck_assert_int_eq(symlink(in_root("state"), in_root("state/checkpoints/a")), 0);
    struct task_exit end = run("a", "true", paths(in_root("state/checkpoints/a"), "write"));
    ck_assert_int_eq(end.exit_code, 126);
    ck_assert_msg(strstr(end.message, "cannot open") != NULL, "%s", end.message);
}

END_TEST

/* A second try may go well where the node's disk or memory was at fault, and not where the task asks for what it may not have. */
START_TEST(what_the_node_did_is_no_program_that_may_not_be_run)
{
    static const struct {
        weir_status status;
        int exit_code;
    } cases[] = {{WEIR_ERR_IO, 8}, {WEIR_ERR_NOSPACE, 8}, {WEIR_ERR_DENIED, 126}};

    for (size_t i = 0; i < WEIR_ARRAY_LEN(cases); i++) {
        struct task_exit record = {0};
        const struct launch_failure failure = {.status = cases[i].status, .message = "cannot"};
        launch_explain(&failure, ".", NULL, &record);
        ck_assert_int_eq(record.exit_code, cases[i].exit_code);
        ck_assert_str_eq(record.message, "cannot");
    }
}

END_TEST

START_TEST(a_path_out_of_reach_says_what_to_do_and_a_share_does_it)
{
    char script[512];
    const char *share = in_root("share");
    struct task_exit end = run("a", "true", paths(share, "write"));
    ck_assert_int_eq(end.exit_code, 126);
    char wanted[1024];
    (void)snprintf(wanted, sizeof wanted,
                   "the task's user 74990 cannot make and remove files in "
                   "%s: let every user do so, or start the agent with --share %s:rw",
                   share, share);
    ck_assert_str_eq(end.message, wanted);
    (void)snprintf(script, sizeof script, "rm %s/frame && echo d > %s/decision", share, share);
    json_t *more = paths(share, "write");
    json_object_set_new(more, "shares", json_pack("[{s:s,s:s}]", "path", share, "access", "write"));
    runs_well("a", script, more);
    struct stat info;
    ck_assert_int_ne(stat(in_root("share/frame"), &info), 0);
    ck_assert_int_eq(stat(in_root("share/decision"), &info), 0);
    ck_assert_uint_eq(info.st_uid, 0);
}

END_TEST

/* What is done where a file system has no id-mapped mounts. */
START_TEST(a_folder_can_be_handed_over_without_its_links)
{
    struct idmap own = {0, 74990, 0, 74990}, common = {0, 74990, 0, 70000};
    struct stat info;
    ck_assert_int_eq(symlink(in_root("share/frame"), in_root("state/demo/link")), 0);
    make("state/demo/deep");
    put("state/demo/deep/file", "x");
    int fd = open(in_root("state/demo"), O_PATH | O_CLOEXEC);
    ck_assert_int_eq(idmap_let_read(fd, &common), 0);
    ck_assert_int_eq(stat(in_root("state/demo/deep/file"), &info), 0);
    ck_assert_uint_eq(info.st_uid, 0);
    ck_assert_uint_eq(info.st_gid, 70000);
    ck_assert_uint_eq(info.st_mode & 0777, 0640);
    ck_assert_int_eq(idmap_give(fd, &own), 0);
    ck_assert_int_eq(stat(in_root("state/demo/deep"), &info), 0);
    ck_assert_uint_eq(info.st_uid, 74990);
    ck_assert_int_eq(stat(in_root("state/demo/deep/file"), &info), 0);
    ck_assert_uint_eq(info.st_uid, 74990);
    ck_assert_int_eq(stat(in_root("share/frame"), &info), 0);
    ck_assert_uint_eq(info.st_uid, 0);
    ck_assert_uint_eq(info.st_gid, 0);
    (void)close(fd);
}

END_TEST

START_TEST(a_folder_can_be_opened_to_a_group_that_writes_in_it)
{
    struct idmap shared = {0, 74990, 0, 70000};
    struct stat info;
    make("state/demo/frames");
    put("state/demo/frames/file", "x");
    put("outside", "x");
    ck_assert_int_eq(link(in_root("outside"), in_root("state/demo/frames/elsewhere")), 0);
    ck_assert_int_eq(symlink(in_root("share"), in_root("state/demo/link")), 0);
    int fd = open(in_root("state/demo"), O_PATH | O_CLOEXEC);
    ck_assert_int_eq(idmap_let_write(fd, &shared), 0);
    (void)close(fd);
    ck_assert_int_eq(stat(in_root("state/demo/frames"), &info), 0);
    ck_assert_uint_eq(info.st_uid, 0);
    ck_assert_uint_eq(info.st_gid, 70000);
    ck_assert_uint_eq(info.st_mode & 07777, 02770);
    ck_assert_int_eq(stat(in_root("state/demo/frames/file"), &info), 0);
    ck_assert_uint_eq(info.st_gid, 70000);
    ck_assert_uint_eq(info.st_mode & 07777, 0660);
    ck_assert_int_eq(stat(in_root("outside"), &info), 0); /* has a name that a task may have made */
    ck_assert_uint_eq(info.st_gid, 0);
    ck_assert_int_eq(stat(in_root("share"), &info), 0);
    ck_assert_uint_eq(info.st_gid, 0);
    put("state/demo/frames/later", "x");
    ck_assert_int_eq(stat(in_root("state/demo/frames/later"), &info), 0);
    ck_assert_uint_eq(info.st_gid, 70000);
}

END_TEST

int main(int argc, char **argv)
{
    if (argc == 4 && strcmp(argv[1], "agent") == 0) {
        return weir_agent_supervise(argv[3]);
    }
    struct sandbox_probe probe;
    sandbox_probe("/tmp", &probe);
    if (!probe.is_root || !probe.has_mounts || !probe.has_idmap || !probe.has_namespaces) {
        printf("not root, or no namespaces or id-mapped mounts here: not tested\n");
        return 77;
    }
    const TTest *const tests[] = {
        a_task_is_a_user_of_its_own_at_home_in_its_folder,
        neither_the_state_folder_nor_another_job_is_in_reach,
        tasks_of_one_job_share_and_those_of_two_do_not,
        a_job_has_processes_and_ipc_of_its_own_and_an_init_that_it_cannot_signal,
        the_init_is_shared_by_the_tasks_of_a_job_and_ends_with_the_last,
        what_runs_on_without_a_supervisor_ends_with_the_init,
        a_job_without_a_network_has_a_loopback_alone,
        a_task_has_the_devices_that_it_was_given_and_no_others,
        a_task_over_its_bound_of_the_disk_is_killed_and_says_so,
        what_the_server_names_is_let_in_and_stays_roots_on_disk,
        no_path_and_no_link_leads_to_what_the_server_did_not_name,
        a_task_whose_server_named_no_folders_is_not_started_without_them,
        a_link_in_place_of_a_jobs_folder_leads_nowhere,
        a_folder_can_be_handed_over_without_its_links,
        a_folder_can_be_opened_to_a_group_that_writes_in_it,
        a_path_out_of_reach_says_what_to_do_and_a_share_does_it,
        what_the_node_did_is_no_program_that_may_not_be_run};
    Suite *suite = suite_create("agent sandbox_enter");
    TCase *tcase = tcase_create("sandbox_enter");
    tcase_set_timeout(tcase, 60);
    tcase_add_checked_fixture(tcase, start, stop);
    for (size_t i = 0; i < WEIR_ARRAY_LEN(tests); i++) {
        tcase_add_test(tcase, tests[i]);
    }
    suite_add_tcase(suite, tcase);
    return weir_test_run(suite);
}
