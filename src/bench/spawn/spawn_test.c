/*
 * Ranks that are copies of this program. ssh and srun are scripts that go to no other host but drop
 * the environment, as another host would.
 */
#include "bench/spawn.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/test_main.h"
#include "comm/comm.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define INPUT_GRACE_MS 4000 /* spawn kills after 5 s: who is gone before ended by itself */

static char dir[64], old_path[4096];
static struct weir_error err;
static struct weir_arena arena;

/* ---- the ranks ------------------------------------------------------------------------------ */

static void write_note(const struct weir_spawn_rank *me, const char *folder, const char *argument)
{
    char path[256], text[1024], here[512];
    (void)snprintf(path, sizeof path, "%s/note-%d", folder, me->rank);
    int len = snprintf(text, sizeof text, "%d of %d, %d here, pid %d, in %s, told %s, arg %s, %s",
                       me->rank, me->size, me->n_here, (int)getpid(), getcwd(here, sizeof here),
                       getenv("TOLD"), argument, me->secret);
    (void)!weir_file_write(path, text, (size_t)len, 0600, NULL);
}

/** All meet, and know then that the others were here. */
static int sum_ranks(const struct weir_spawn_rank *me)
{
    struct weir_comm *comm = NULL;
    int64_t value = me->rank + 1;
    struct weir_error why = {0};
    weir_status status = weir_comm_create(&(struct weir_comm_config){.rendezvous = me->rendezvous,
                                                                     .secret = me->secret,
                                                                     .rank = me->rank,
                                                                     .size = me->size,
                                                                     .timeout_ms = 20000},
                                          &comm, &why);
    if (status == WEIR_OK) {
        status = weir_comm_allreduce(comm, &value, 1, WEIR_COMM_I64);
    }
    weir_comm_destroy(comm);
    (void)fprintf(stderr, "%s", why.message);
    return status == WEIR_OK && value == me->size * (me->size + 1) / 2 ? 0 : 1;
}

static int rank_main(char **argv)
{
    struct weir_spawn_rank me;
    struct weir_error why;
    const char *what = argv[1], *folder = argv[2], *text = argv[3];
    int who = (int)strtol(text, NULL, 10);
    if (weir_spawn_join(&me, &why) != WEIR_OK) {
        (void)fprintf(stderr, "%s\n", why.message);
        return 99;
    }
    if (strcmp(what, "sum") == 0) {
        return sum_ranks(&me);
    }
    if (strcmp(what, "note") == 0) {
        write_note(&me, folder, text);
        (void)fprintf(stderr, "first line\nsecond");
        return 0;
    }
    write_note(&me, folder, text);
    if (sum_ranks(&me) != 0) {
        return 98;
    }
    if (me.rank == who && strcmp(what, "fail") == 0) {
        (void)fprintf(stderr, "no luck today\n");
        return weir_status_exit(WEIR_ERR_UNSUPPORTED);
    }
    if (me.rank == who && strcmp(what, "die") == 0) {
        (void)raise(SIGKILL);
    }
    if (me.rank == who && strcmp(what, "stop") == 0) {
        (void)kill(getppid(), SIGTERM);
    }
    if (strcmp(what, "echo") == 0) {
        /* Rank 0 says that it lost a rank and ends; only then rank 1 says why. */
        char path[256], byte;
        (void)snprintf(path, sizeof path, "%s/fifo", folder);
        int fd = open(path, me.rank == 0 ? O_WRONLY : O_RDONLY);
        if (me.rank == 0) {
            return weir_status_exit(WEIR_ERR_PEER);
        }
        while (read(fd, &byte, 1) > 0) {
        }
        (void)fprintf(stderr, "the true cause\n");
        return weir_status_exit(WEIR_ERR_CORRUPT);
    }
    for (;;) {
        (void)pause();
    }
}

/* ---- the launcher --------------------------------------------------------------------------- */

static void write_script(const char *name, const char *text)
{
    char path[256];
    (void)snprintf(path, sizeof path, "%s/%s", dir, name);
    ck_assert_int_eq(weir_file_write(path, text, strlen(text), 0700, NULL), WEIR_OK);
}

static void set_up(void)
{
    char path[5000], script[512];
    weir_arena_init(&arena, 0);
    (void)snprintf(dir, sizeof dir, "/tmp/weir-spawn-test-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(dir));
    (void)snprintf(old_path, sizeof old_path, "%s", getenv("PATH"));
    (void)snprintf(path, sizeof path, "%s:%s", dir, old_path);
    (void)setenv("PATH", path, 1);
    (void)snprintf(script, sizeof script,
                   "#!/bin/sh\necho \"$@\" >>%s/calls\n[ \"$5\" != gone ] || exit 255\n"
                   "shift 5\ncd /\nexec env -i PATH=\"$PATH\" /bin/sh -c \"$1\"\n",
                   dir);
    write_script("ssh", script);
    (void)snprintf(script, sizeof script,
                   "#!/bin/sh\necho \"$@\" >>%s/calls\n"
                   "while [ \"$1\" != sh ]; do shift; done\nenv -i PATH=\"$PATH\" \"$@\"\n"
                   "code=$?\n[ $code = 0 ] || echo \"srun: error: task 0: exit code $code\" >&2\n"
                   "exit $code\n",
                   dir);
    write_script("srun", script);
}

static void tear_down(void)
{
    (void)setenv("PATH", old_path, 1);
    (void)unsetenv("SLURM_JOB_NODELIST");
    (void)unsetenv("SLURM_TASKS_PER_NODE");
    ck_assert_int_eq(weir_dir_remove(dir, NULL), WEIR_OK);
    weir_arena_fini(&arena);
}

static char *read_text(const char *name)
{
    /** GCC 12 takes what is in the arena for the variable, if it is a local one */
    static char *text;
    char path[256];
    (void)snprintf(path, sizeof path, "%s/%s", dir, name);
    weir_status status = weir_file_read(path, 1 << 20, &arena, &text, NULL, &err);
    ck_assert_msg(status == WEIR_OK, "%s", err.message);
    return text;
}

/** Run, with standard error in the file "stderr". */
static weir_status run(struct weir_spawn_config config, const char *what, const char *text)
{
    char path[128], what_copy[16], dir_copy[64], text_copy[64];
    (void)snprintf(what_copy, sizeof what_copy, "%s", what);
    (void)snprintf(dir_copy, sizeof dir_copy, "%s", dir);
    (void)snprintf(text_copy, sizeof text_copy, "%s", text);
    char name[] = "spawn_test", *argv[] = {name, what_copy, dir_copy, text_copy, NULL};
    const char *const env[] = {"TOLD=it's \"so\" \\ $HOME", NULL};
    config.argv = argv;
    config.env = env;
    (void)snprintf(path, sizeof path, "%s/stderr", dir);
    int kept = dup(STDERR_FILENO), fd = open(path, O_CREAT | O_TRUNC | O_RDWR | O_CLOEXEC, 0600);
    (void)dup2(fd, STDERR_FILENO);
    weir_status status = weir_spawn_run(&config, &err);
    (void)dup2(kept, STDERR_FILENO);
    (void)close(kept);
    (void)close(fd);
    return status;
}

static int pid_in_note(int rank)
{
    char name[32];
    int pid = 0;
    (void)snprintf(name, sizeof name, "note-%d", rank);
    const char *at = strstr(read_text(name), "pid ");
    ck_assert_int_eq(sscanf(at, "pid %d", &pid), 1);
    return pid;
}

static void assert_started_as(int rank, int size, int n_here)
{
    char name[32], expected[64], folder[512];
    (void)snprintf(name, sizeof name, "note-%d", rank);
    (void)snprintf(expected, sizeof expected, "%d of %d, %d here, ", rank, size, n_here);
    const char *note = read_text(name);
    ck_assert_msg(strncmp(note, expected, strlen(expected)) == 0, "%s", note);
    ck_assert_ptr_nonnull(strstr(note, "told it's \"so\" \\ $HOME, arg it's $5, "));
    ck_assert_ptr_nonnull(strstr(note, getcwd(folder, sizeof folder)));
    const char *secret = strrchr(note, ' ') + 1;
    ck_assert_uint_eq(strlen(secret), 64);
}

START_TEST(local_ranks_meet_and_add_up)
{
    weir_status status = run((struct weir_spawn_config){.n_ranks = 3}, "sum", "0");
    ck_assert_msg(status == WEIR_OK, "%s", err.message);
}

END_TEST

START_TEST(local_ranks_know_who_they_are)
{
    weir_status status = run((struct weir_spawn_config){.n_ranks = 2}, "note", "it's $5");
    ck_assert_msg(status == WEIR_OK, "%s", err.message);
    assert_started_as(0, 2, 2);
    assert_started_as(1, 2, 2);
}

END_TEST

START_TEST(what_ranks_write_to_standard_error_names_them)
{
    ck_assert_int_eq(run((struct weir_spawn_config){.n_ranks = 2}, "note", "x"), WEIR_OK);
    const char *text = read_text("stderr");
    static const char *const lines[] = {"rank 0: first line\n", "rank 0: second\n",
                                        "rank 1: first line\n", "rank 1: second\n"};
    size_t total = 0;
    for (size_t i = 0; i < WEIR_ARRAY_LEN(lines); i++) {
        ck_assert_msg(strstr(text, lines[i]) != NULL, "%s", text);
        total += strlen(lines[i]);
    }
    ck_assert_uint_eq(strlen(text), total);
}

END_TEST

START_TEST(ranks_over_ssh_get_their_environment_by_standard_input)
{
    char rendezvous[128];
    (void)snprintf(rendezvous, sizeof rendezvous, "file://%s", dir);
    const struct weir_spawn_config config = {.hosts = "a:2,b:1", .rendezvous = rendezvous};
    weir_status status = run(config, "note", "it's $5");
    ck_assert_msg(status == WEIR_OK, "%s", err.message);
    assert_started_as(0, 3, 2);
    assert_started_as(1, 3, 2);
    assert_started_as(2, 3, 1);
    const char *secret = strrchr(read_text("note-0"), ' ') + 1, *calls = read_text("calls");
    ck_assert_ptr_null(strstr(calls, secret));
    ck_assert_ptr_nonnull(strstr(calls, "BatchMode=yes a "));
    ck_assert_ptr_nonnull(strstr(calls, "BatchMode=yes b "));
    ck_assert_int_eq(run(config, "sum", "0"), WEIR_OK);
}

END_TEST

START_TEST(inside_an_allocation_srun_starts_the_ranks)
{
    char rendezvous[128];
    (void)snprintf(rendezvous, sizeof rendezvous, "file://%s", dir);
    (void)setenv("SLURM_JOB_NODELIST", "n[1-2]", 1);
    (void)setenv("SLURM_TASKS_PER_NODE", "1(x2)", 1);
    weir_status status =
        run((struct weir_spawn_config){.rendezvous = rendezvous}, "note", "it's $5");
    ck_assert_msg(status == WEIR_OK, "%s", err.message);
    assert_started_as(0, 2, 1);
    assert_started_as(1, 2, 1);
    ck_assert_ptr_nonnull(strstr(read_text("calls"), "--nodelist n2 "));
    status = run((struct weir_spawn_config){.rendezvous = rendezvous}, "fail", "1");
    ck_assert_int_eq(status, WEIR_ERR_UNSUPPORTED);
    ck_assert_str_eq(err.message, "rank 1 on n2: no luck today");
}

END_TEST

START_TEST(a_failing_rank_ends_the_others_and_is_named)
{
    char rendezvous[128];
    (void)snprintf(rendezvous, sizeof rendezvous, "file://%s", dir);
    const struct weir_spawn_config configs[] = {{.n_ranks = 3},
                                                {.hosts = "a,b,c", .rendezvous = rendezvous}};
    for (size_t i = 0; i < WEIR_ARRAY_LEN(configs); i++) {
        int64_t begin_ms = weir_mono_ms();
        ck_assert_int_eq(run(configs[i], "fail", "1"), WEIR_ERR_UNSUPPORTED);
        ck_assert_str_eq(err.message,
                         i == 0 ? "rank 1: no luck today" : "rank 1 on b: no luck today");
        ck_assert_int_lt(weir_mono_ms() - begin_ms, INPUT_GRACE_MS);
        ck_assert_int_eq(kill(pid_in_note(0), 0), -1);
        ck_assert_int_eq(kill(pid_in_note(2), 0), -1);
    }
}

END_TEST

START_TEST(a_killed_rank_is_named_with_the_signal)
{
    ck_assert_int_eq(run((struct weir_spawn_config){.n_ranks = 2}, "die", "1"), WEIR_ERR_PEER);
    ck_assert_str_eq(err.message, "rank 1 was killed by signal 9 (Killed)");
}

END_TEST

START_TEST(a_rank_that_only_lost_another_is_not_at_fault)
{
    char path[128];
    (void)snprintf(path, sizeof path, "%s/fifo", dir);
    ck_assert_int_eq(mkfifo(path, 0600), 0);
    ck_assert_int_eq(run((struct weir_spawn_config){.n_ranks = 2}, "echo", "0"), WEIR_ERR_CORRUPT);
    ck_assert_str_eq(err.message, "rank 1: the true cause");
}

END_TEST

START_TEST(a_signal_to_the_launcher_ends_all_ranks)
{
    ck_assert_int_eq(run((struct weir_spawn_config){.n_ranks = 2}, "stop", "1"),
                     WEIR_ERR_CANCELLED);
    ck_assert_int_eq(kill(pid_in_note(1), 0), -1);
}

END_TEST

START_TEST(what_cannot_start_ranks_is_said)
{
    ck_assert_int_eq(run((struct weir_spawn_config){.hosts = "gone"}, "note", "x"),
                     WEIR_ERR_UNAVAILABLE);
    ck_assert_str_eq(err.message, "rank 0 on gone ended with exit status 255");
    ck_assert_int_eq(run((struct weir_spawn_config){.by = "srun"}, "note", "x"), WEIR_ERR_INVALID);
    ck_assert_ptr_nonnull(strstr(err.message, "SLURM_JOB_NODELIST"));
    ck_assert_int_eq(run((struct weir_spawn_config){.by = "rsh"}, "note", "x"), WEIR_ERR_INVALID);
    ck_assert_int_eq(run((struct weir_spawn_config){.hosts = "a:1", .n_ranks = 2}, "note", "x"),
                     WEIR_ERR_INVALID);
    (void)setenv("PATH", "/nonexistent", 1);
    ck_assert_int_eq(run((struct weir_spawn_config){.hosts = "a,b"}, "note", "x"),
                     WEIR_ERR_NOT_FOUND);
    ck_assert_str_eq(err.message,
                     "ssh is not in PATH, and starts the ranks on other hosts; install "
                     "openssh-client");
}

END_TEST

int main(int argc, char **argv)
{
    const TTest *const tests[] = {local_ranks_meet_and_add_up,
                                  local_ranks_know_who_they_are,
                                  what_ranks_write_to_standard_error_names_them,
                                  ranks_over_ssh_get_their_environment_by_standard_input,
                                  inside_an_allocation_srun_starts_the_ranks,
                                  a_failing_rank_ends_the_others_and_is_named,
                                  a_killed_rank_is_named_with_the_signal,
                                  a_rank_that_only_lost_another_is_not_at_fault,
                                  a_signal_to_the_launcher_ends_all_ranks,
                                  what_cannot_start_ranks_is_said};
    if (weir_spawn_is_rank() && argc == 4) {
        return rank_main(argv);
    }
    return weir_test_run_here(
        weir_test_suite_with("spawn", set_up, tear_down, tests, WEIR_ARRAY_LEN(tests)));
}
