/* What a process uses, beside what the kernel tells its parent when it has ended. */
#include "agent/supervise/use.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/test_main.h"

#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define HELD_BYTES ((size_t)48 << 20)

static struct task_run run;
static pid_t child;

/* A child that holds memory, and works until it is killed. */
static void start_worker(void)
{
    child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        char *held = mmap(NULL, HELD_BYTES, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
        if (held == MAP_FAILED) {
            _exit(1);
        }
        for (volatile uint64_t i = 0;; i++) {
            held[(i * 4096) % HELD_BYTES] = 1;
        }
    }
    ck_assert(process_identify(child, &run.process));
}

static void kill_worker(struct rusage *out)
{
    int status;
    (void)kill(child, SIGKILL);
    ck_assert_int_eq(wait4(child, &status, 0, out), child);
}

START_TEST(without_a_group_the_processes_are_summed)
{
    struct use first, last = {0};
    struct rusage usage;
    run = (struct task_run){0};
    start_worker();
    ck_assert(use_read(&run, &first));
    while (last.cpu_us < first.cpu_us + 200000 || last.memory_bytes < (int64_t)HELD_BYTES) {
        ck_assert(use_read(&run, &last));
    }
    kill_worker(&usage);
    int64_t used_us = (int64_t)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000 +
                      usage.ru_utime.tv_usec + usage.ru_stime.tv_usec;
    int64_t most_bytes = usage.ru_maxrss * 1024;
    ck_assert_int_le(last.cpu_us, used_us + 20000); /* clock ticks are 10 ms */
    ck_assert_int_le(last.memory_bytes, most_bytes + ((int64_t)1 << 20));
    ck_assert(!use_read(&run, &last)); /* it is over */
}

END_TEST

static void write_file(const char *dir, const char *name, const char *text)
{
    char path[256];
    (void)snprintf(path, sizeof path, "%s/%s", dir, name);
    ck_assert_int_eq(weir_file_write(path, text, strlen(text), 0600, NULL), WEIR_OK);
}

/* Files as the kernel's documents show them (cgroup-v2.rst; cgroup-v1/cpuacct.rst, memory.rst). */
START_TEST(a_group_counts_for_all_that_is_in_it)
{
    char dir[] = "/tmp/weir-use-XXXXXX", *v1_cpu, *v1_memory;
    struct weir_arena arena;
    struct use use;
    weir_arena_init(&arena, 0);
    ck_assert_ptr_nonnull(mkdtemp(dir));
    run = (struct task_run){.group = {.n_dirs = 1}};
    ck_assert(process_identify(getpid(), &run.process));
    (void)snprintf(run.group.dirs[0], sizeof run.group.dirs[0], "%s", dir);
    write_file(dir, "cpu.stat", "usage_usec 7000123\nuser_usec 1\nsystem_usec 2\n");
    write_file(dir, "memory.current", "9000000\n");
    write_file(dir, "memory.stat", "anon 5\nactive_file 4\ninactive_file 2000000\nshmem 0\n");
    ck_assert(use_read(&run, &use));
    ck_assert_int_eq(use.cpu_us, 7000123);
    ck_assert_int_eq(use.memory_bytes, 7000000);
    v1_cpu = weir_arena_printf(&arena, "%s/cpu", dir);
    v1_memory = weir_arena_printf(&arena, "%s/memory", dir);
    ck_assert_int_eq(weir_dir_make(v1_cpu, 0700, NULL), WEIR_OK);
    ck_assert_int_eq(weir_dir_make(v1_memory, 0700, NULL), WEIR_OK);
    write_file(v1_cpu, "cpuacct.usage", "3000000000\n");
    write_file(v1_cpu, "cpu.stat", "nr_periods 0\nnr_throttled 0\n");
    write_file(v1_memory, "memory.usage_in_bytes", "4096\n");
    run.group.n_dirs = 2;
    (void)snprintf(run.group.dirs[0], sizeof run.group.dirs[0], "%s", v1_cpu);
    (void)snprintf(run.group.dirs[1], sizeof run.group.dirs[1], "%s", v1_memory);
    ck_assert(use_read(&run, &use));
    ck_assert_int_eq(use.cpu_us, 3000000);
    ck_assert_int_eq(use.memory_bytes, 4096);
    ck_assert_int_eq(weir_dir_remove(dir, NULL), WEIR_OK);
    weir_arena_fini(&arena);
}

END_TEST

START_TEST(cores_are_time_of_processors_by_time)
{
    const struct use before = {.cpu_us = 1000000}, now = {.cpu_us = 4000000};
    ck_assert_double_eq_tol(use_cores(&before, &now, 2000), 1.5, 1e-9);
    ck_assert_double_eq(use_cores(&before, &now, 0), 0);
    ck_assert_double_eq(use_cores(&now, &before, 2000), 0); /* another group of that name */
}

END_TEST

WEIR_TEST_MAIN("use", without_a_group_the_processes_are_summed,
               a_group_counts_for_all_that_is_in_it, cores_are_time_of_processors_by_time)
