#include "agent/isolation.h"

#include "agent/process.h"
#include "base/clock.h"
#include "base/test_main.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* Texts of real machines: Debian 12 with systemd; a hybrid; a v1 container; a v2 container. */
static const char v2_mounts[] = "sysfs /sys sysfs rw 0 0\n"
                                "cgroup2 /sys/fs/cgroup cgroup2 rw,nosuid,nsdelegate 0 0\n";
static const char v2_cgroups[] = "0::/system.slice/weir.service\n";
static const char hybrid_mounts[] =
    "tmpfs /sys/fs/cgroup tmpfs rw 0 0\n"
    "cgroup /sys/fs/cgroup/cpu,cpuacct cgroup rw,relatime,cpu,cpuacct 0 0\n"
    "cgroup /sys/fs/cgroup/cpuset cgroup rw,relatime,cpuset 0 0\n"
    "cgroup /sys/fs/cgroup/memory cgroup rw,memory 0 0\n"
    "cgroup2 /sys/fs/cgroup/unified cgroup2 rw,relatime 0 0\n";
static const char hybrid_cgroups[] = "5:cpuset:/\n4:memory:/a/b\n3:cpu,cpuacct:/\n"
                                     "1:name=systemd:/x\n0::/\n";

START_TEST(a_process_finds_its_own_group_in_each_hierarchy)
{
    char dir[256];
    ck_assert(weir_isolation_own_dir(v2_mounts, v2_cgroups, "", dir, sizeof dir));
    ck_assert_str_eq(dir, "/sys/fs/cgroup/system.slice/weir.service");
    ck_assert(!weir_isolation_own_dir(v2_mounts, v2_cgroups, "cpu", dir, sizeof dir));
    ck_assert(weir_isolation_own_dir(hybrid_mounts, hybrid_cgroups, "cpu", dir, sizeof dir));
    ck_assert_str_eq(dir, "/sys/fs/cgroup/cpu,cpuacct");
    ck_assert(weir_isolation_own_dir(hybrid_mounts, hybrid_cgroups, "memory", dir, sizeof dir));
    ck_assert_str_eq(dir, "/sys/fs/cgroup/memory/a/b");
    ck_assert(weir_isolation_own_dir(hybrid_mounts, hybrid_cgroups, "", dir, sizeof dir));
    ck_assert_str_eq(dir, "/sys/fs/cgroup/unified");
    ck_assert(!weir_isolation_own_dir(hybrid_mounts, hybrid_cgroups, "set", dir, sizeof dir));
    ck_assert(!weir_isolation_own_dir("", "", "", dir, sizeof dir));
}

END_TEST

START_TEST(weights_become_nice_values)
{
    ck_assert_int_eq(weir_isolation_nice(100), 0);
    ck_assert_int_eq(weir_isolation_nice(80), 1); /* a nice level is a factor of 1.25 */
    ck_assert_int_eq(weir_isolation_nice(125), -1);
    ck_assert_int_eq(weir_isolation_nice(1), 19);
    ck_assert_int_eq(weir_isolation_nice(10000), -20);
}

END_TEST

static pid_t start_sleeper(void)
{
    pid_t pid = fork();
    if (pid == 0) {
        (void)pause();
        _exit(0);
    }
    ck_assert_int_gt(pid, 0);
    return pid;
}

static int64_t read_number(const char *dir, const char *name)
{
    char path[WEIR_GROUP_PATH_BYTES + 64];
    char text[64] = "";
    (void)snprintf(path, sizeof path, "%s/%s", dir, name);
    FILE *file = fopen(path, "re");
    if (file == NULL) {
        return -1;
    }
    (void)!fgets(text, sizeof text, file);
    (void)fclose(file);
    return strtoll(text, NULL, 10);
}

START_TEST(a_group_holds_limits_and_kills_its_members)
{
    struct weir_isolation isolation;
    struct weir_group group;
    char name[64];
    char text[256];
    weir_isolation_probe(&isolation);
    weir_isolation_describe(&isolation, text, sizeof text);
    printf("%s\n", text);
    (void)snprintf(name, sizeof name, "test.%d", (int)getpid());
    struct weir_limits limits = {.cpu_weight = 50, .memory_max_bytes = 64 << 20, .pids_max = 20};
    weir_group_create(&isolation, name, &limits, &group);
    if (group.n_dirs == 0) {
        printf("no control groups can be made here: not tested\n");
        return;
    }
    for (size_t i = 0; i < group.n_dirs; i++) {
        int64_t shares = read_number(group.dirs[i], "cpu.shares");
        int64_t limit = read_number(group.dirs[i], "memory.limit_in_bytes");
        ck_assert(shares == -1 || shares == 512);
        ck_assert(limit == -1 || limit == 64 << 20);
        int64_t pids_max = read_number(group.dirs[i], "pids.max");
        ck_assert(pids_max == -1 || pids_max == 20 || !group.has_pids_limit);
    }
    pid_t pids[3];
    pid_t members[8];
    for (int i = 0; i < 3; i++) {
        pids[i] = start_sleeper();
        ck_assert_int_eq(weir_group_add(&group, pids[i], NULL), WEIR_OK);
        ck_assert(weir_group_has(&group, pids[i]));
    }
    ck_assert(!weir_group_has(&group, getpid()));
    ck_assert_uint_eq(weir_group_members(&group, members, 8), 3);
    weir_group_kill(&group);
    for (int i = 0; i < 3; i++) {
        int status;
        ck_assert_int_eq(waitpid(pids[i], &status, 0), pids[i]);
        ck_assert_int_eq(WTERMSIG(status), SIGKILL);
    }
    ck_assert_uint_eq(weir_group_members(&group, members, 8), 0);
    weir_group_remove(&group);
    ck_assert_int_ne(access(group.dirs[0], F_OK), 0);
}

END_TEST

/* Sets the time of a folder of a control group back, where the kernel lets it. */
static bool make_old(const char *dir)
{
    struct timespec times[2] = {{.tv_sec = 1000}, {.tv_sec = 1000}};
    struct stat info;
    return utimensat(AT_FDCWD, dir, times, 0) == 0 && stat(dir, &info) == 0 &&
           info.st_mtim.tv_sec == 1000;
}

START_TEST(groups_that_nobody_watches_any_more_are_removed)
{
    struct weir_isolation isolation;
    struct weir_limits limits = {.cpu_weight = 50};
    struct weir_group old, young;
    char name[64];
    weir_isolation_probe(&isolation);
    (void)snprintf(name, sizeof name, "old.%d@1-2", (int)getpid());
    weir_group_create(&isolation, name, &limits, &old);
    (void)snprintf(name, sizeof name, "young.%d@1-2", (int)getpid());
    weir_group_create(&isolation, name, &limits, &young);
    bool is_old = old.n_dirs > 0;
    for (size_t i = 0; i < old.n_dirs; i++) {
        is_old = is_old && make_old(old.dirs[i]);
    }
    if (is_old) {
        weir_isolation_prepare();
    } else {
        printf("no control group can be made old here: not tested\n");
    }
    for (size_t i = 0; is_old && i < old.n_dirs; i++) {
        ck_assert_int_ne(access(old.dirs[i], F_OK), 0);
        ck_assert_int_eq(access(young.dirs[i], F_OK), 0);
    }
    weir_group_remove(&old);
    weir_group_remove(&young);
}

END_TEST

/* Of the folders that were made in the group that this process was put into. */
static bool has_any(const struct weir_isolation *isolation)
{
    const char *const dirs[] = {isolation->v2,      isolation->v1_cpu,   isolation->v1_memory,
                                isolation->v1_pids, isolation->v1_blkio, isolation->v1_devices};
    bool is_any = false;
    for (size_t i = 0; i < WEIR_ARRAY_LEN(dirs); i++) {
        bool is_inner = strstr(dirs[i], "/step.") != NULL;
        is_any = is_any || (is_inner && access(dirs[i], F_OK) == 0);
    }
    return is_any;
}

/* In a group of its own, as a step of somebody's cluster has one: 0 if all went as it should. */
static int live_in_group(const struct weir_group *group)
{
    struct weir_isolation isolation;
    if (weir_group_add(group, getpid(), NULL) != WEIR_OK) {
        return 1;
    }
    weir_isolation_probe(&isolation);
    pid_t other = start_sleeper();
    weir_isolation_remove(&isolation);
    if (!has_any(&isolation)) {
        return 2; /* the other may have its groups there */
    }
    (void)kill(other, SIGKILL);
    (void)waitpid(other, NULL, 0);
    weir_isolation_remove(&isolation);
    return has_any(&isolation) ? 3 : 0;
}

START_TEST(folders_of_groups_go_with_the_last_who_is_there)
{
    struct weir_isolation isolation;
    struct weir_group group;
    struct weir_limits limits = {.cpu_weight = 50};
    char name[64];
    int status;
    weir_isolation_probe(&isolation);
    (void)snprintf(name, sizeof name, "step.%d", (int)getpid());
    weir_group_create(&isolation, name, &limits, &group);
    if (group.n_dirs == 0) {
        printf("no control groups can be made here: not tested\n");
        return;
    }
    pid_t child = fork();
    if (child == 0) {
        _exit(live_in_group(&group));
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
    weir_group_remove(&group);
}

END_TEST

START_TEST(an_identity_does_not_match_another_process_with_the_same_pid)
{
    struct process_id id;
    pid_t pid = start_sleeper();
    ck_assert(process_identify(pid, &id));
    ck_assert(process_is_alive(&id));
    struct process_id stranger = {.pid = pid, .start_time = id.start_time - 1};
    ck_assert(!process_is_alive(&stranger));
    ck_assert(!process_signal(&stranger, SIGKILL));
    ck_assert(process_is_alive(&id));
    ck_assert(process_signal(&id, SIGKILL));
    int status;
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert(!process_is_alive(&id));
    ck_assert(!process_signal(&id, SIGKILL));
}

END_TEST

START_TEST(descendants_are_found_through_generations)
{
    int ready[2];
    ck_assert_int_eq(pipe(ready), 0);
    pid_t child = fork();
    if (child == 0) {
        if (fork() == 0) {
            (void)setsid(); /* leaving the session does not hide it */
            (void)!write(ready[1], "x", 1);
        }
        (void)pause();
        _exit(0);
    }
    char byte;
    ck_assert_int_eq(read(ready[0], &byte, 1), 1);
    struct process_id ids[16];
    size_t n = process_descendants(getpid(), ids, 16);
    ck_assert_uint_eq(n, 2);
    ck_assert_int_eq(ids[0].pid, child);
    for (size_t i = 0; i < n; i++) {
        ck_assert(process_signal(&ids[i], SIGKILL));
    }
    ck_assert_int_eq(waitpid(child, NULL, 0), child);
}

END_TEST

/* What a spinning process was given of a processor in a second of it. */
static double processor_time(const struct weir_group *group)
{
    int status;
    struct rusage usage;
    pid_t pid = fork();
    if (pid == 0) {
        int64_t end_ms = weir_mono_ms() + 1000;
        while (weir_mono_ms() < end_ms) {
        }
        _exit(0);
    }
    ck_assert_int_eq(weir_group_add(group, pid, NULL), WEIR_OK);
    ck_assert_int_eq(wait4(pid, &status, 0, &usage), pid);
    return (double)usage.ru_utime.tv_sec + (double)usage.ru_utime.tv_usec / 1e6 +
           (double)usage.ru_stime.tv_sec + (double)usage.ru_stime.tv_usec / 1e6;
}

START_TEST(time_of_the_processors_and_which_of_them_are_bounded)
{
    struct weir_isolation isolation;
    struct weir_group group;
    cpu_set_t set;
    weir_isolation_probe(&isolation);
    struct weir_limits limits = {.cpu_max_milli = 250, .cpuset = "0"};
    weir_group_create(&isolation, "bounds@test", &limits, &group);
    if (group.has_cpu_quota) {
        ck_assert_double_lt(processor_time(&group), 0.6);
    }
    if (group.has_cpuset) {
        pid_t pid = start_sleeper();
        ck_assert_int_eq(weir_group_add(&group, pid, NULL), WEIR_OK);
        ck_assert_int_eq(sched_getaffinity(pid, sizeof set, &set), 0);
        ck_assert_int_eq(CPU_COUNT(&set), 1);
        ck_assert(CPU_ISSET(0, &set));
        weir_group_kill(&group);
        ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
    }
    weir_group_remove(&group);
    for (size_t i = 0; i < group.n_dirs; i++) {
        ck_assert_int_ne(access(group.dirs[i], F_OK), 0);
    }
}

END_TEST

START_TEST(a_group_reads_no_device_but_those_it_was_given)
{
    static const char *const given[] = {"/dev/loop0"};
    struct weir_isolation isolation;
    struct weir_group group;
    int status;
    weir_isolation_probe(&isolation);
    struct weir_limits limits = {.devices = given, .n_devices = access(given[0], F_OK) == 0};
    weir_group_create(&isolation, "devices@test", &limits, &group);
    if (group.has_devices) {
        int go[2];
        char byte;
        ck_assert_int_eq(pipe(go), 0);
        pid_t pid = fork();
        if (pid == 0) {
            bool is_good = read(go[0], &byte, 1) == 1 && open("/dev/null", O_RDWR) >= 0 &&
                           open("/dev/kmsg", O_RDONLY) < 0 && open("/dev/loop1", O_RDONLY) < 0 &&
                           (limits.n_devices == 0 || open(given[0], O_RDONLY) >= 0);
            _exit(is_good ? 0 : 1);
        }
        ck_assert_int_eq(weir_group_add(&group, pid, NULL), WEIR_OK);
        ck_assert_int_eq(write(go[1], "x", 1), 1);
        ck_assert_int_eq(waitpid(pid, &status, 0), pid);
        ck_assert_int_eq(status, 0);
    }
    weir_group_remove(&group);
}

END_TEST

START_TEST(bytes_of_the_disk_are_bounded_where_there_is_one)
{
    unsigned major_number, minor_number;
    char text[256] = "", path[WEIR_GROUP_PATH_BYTES + 64];
    struct weir_isolation isolation;
    struct weir_group group;
    weir_isolation_probe(&isolation);
    struct weir_limits limits = {.io_max_bytes_s = 1 << 20, .io_path = "/"};
    weir_group_create(&isolation, "io@test", &limits, &group);
    if (group.has_io_limit) {
        ck_assert(weir_isolation_disk_of("/", &major_number, &minor_number));
        (void)snprintf(path, sizeof path, "%s/%s", group.dirs[group.n_dirs - 1],
                       isolation.v2_io ? "io.max" : "blkio.throttle.write_bps_device");
        FILE *file = fopen(path, "re");
        ck_assert_ptr_nonnull(file);
        ck_assert_ptr_nonnull(fgets(text, sizeof text, file));
        (void)fclose(file);
        ck_assert_ptr_nonnull(strstr(text, "1048576"));
    }
    weir_group_remove(&group);
    ck_assert(!weir_isolation_disk_of("/proc", &major_number, &minor_number));
}

END_TEST

WEIR_TEST_MAIN("agent isolation", time_of_the_processors_and_which_of_them_are_bounded,
               a_group_reads_no_device_but_those_it_was_given,
               bytes_of_the_disk_are_bounded_where_there_is_one,
               a_process_finds_its_own_group_in_each_hierarchy, weights_become_nice_values,
               a_group_holds_limits_and_kills_its_members,
               groups_that_nobody_watches_any_more_are_removed,
               folders_of_groups_go_with_the_last_who_is_there,
               an_identity_does_not_match_another_process_with_the_same_pid,
               descendants_are_found_through_generations)
