#include "base/spawn.h"

#include "base/file.h"
#include "base/macros.h"
#include "base/test_main.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* What a shell script prints that is started so. */
static const char *printed(struct weir_spawn spawn, const char *script)
{
    static char text[4096];
    struct weir_error err;
    int fds[2];
    size_t len = 0;
    ssize_t n;
    pid_t pid;
    char *const argv[] = {"sh", "-c", (char *)script, NULL};
    ck_assert_int_eq(pipe2(fds, O_CLOEXEC), 0);
    spawn.argv = argv;
    spawn.out = fds[1];
    weir_status status = weir_spawn_start(&spawn, &pid, &err);
    ck_assert_msg(status == WEIR_OK, "%s", err.message);
    (void)close(fds[1]);
    while ((n = read(fds[0], text + len, sizeof text - 1 - len)) > 0) {
        len += (size_t)n;
    }
    text[len] = '\0';
    (void)close(fds[0]);
    ck_assert(spawn.place == WEIR_SPAWN_DETACHED || weir_spawn_wait(pid) == 0);
    return text;
}

START_TEST(nothing_of_ours_is_open_in_it)
{
    int first = open("/dev/null", O_RDONLY), far = dup2(first, 200);
    ck_assert_int_eq(far, 200);
    /* The shell's own look at the folder is 3. */
    for (int place = WEIR_SPAWN_HERE; place <= WEIR_SPAWN_DETACHED; place++) {
        ck_assert_str_eq(printed((struct weir_spawn){.place = (enum weir_spawn_place)place},
                                 "ls /proc/self/fd | tr '\\n' ' '"),
                         "0 1 2 3 ");
    }
    (void)close(first);
    (void)close(far);
}

END_TEST

START_TEST(signals_are_as_usual_but_for_what_nohup_wants)
{
    static const struct {
        enum weir_spawn_place place;
        bool ignores_hangup;
    } cases[] = {{WEIR_SPAWN_HERE, true},
                 {WEIR_SPAWN_GROUP, true},
                 {WEIR_SPAWN_SESSION, false},
                 {WEIR_SPAWN_DETACHED, false}};

    sigset_t blocked;
    (void)sigfillset(&blocked);
    ck_assert_int_eq(sigprocmask(SIG_BLOCK, &blocked, NULL), 0);
    (void)signal(SIGPIPE, SIG_IGN);
    (void)signal(SIGHUP, SIG_IGN);
    for (size_t i = 0; i < WEIR_ARRAY_LEN(cases); i++) {
        unsigned long long masked = 1, ignored = 1;
        const char *text = printed((struct weir_spawn){.place = cases[i].place},
                                   "grep -E 'SigBlk|SigIgn' /proc/self/status");
        ck_assert_int_eq(sscanf(text, "SigBlk: %llx SigIgn: %llx", &masked, &ignored), 2);
        ck_assert_uint_eq(masked, 0);
        ck_assert_uint_eq(ignored & 0x7fffffff, cases[i].ignores_hangup ? 1ULL << (SIGHUP - 1) : 0);
    }
    (void)signal(SIGPIPE, SIG_DFL);
    (void)signal(SIGHUP, SIG_DFL);
    (void)sigprocmask(SIG_UNBLOCK, &blocked, NULL);
}

END_TEST

START_TEST(it_stands_where_it_is_put)
{
    static const char script[] = "cut -d' ' -f4-6 /proc/self/stat"; /* parent, group, session */
    int parent, group, session;
    ck_assert_int_eq(sscanf(printed((struct weir_spawn){.place = WEIR_SPAWN_HERE}, script),
                            "%d %d %d", &parent, &group, &session),
                     3);
    ck_assert_int_eq(group, getpgrp());
    ck_assert_int_eq(session, getsid(0));
    (void)sscanf(printed((struct weir_spawn){.place = WEIR_SPAWN_GROUP}, script), "%d %d %d",
                 &parent, &group, &session);
    ck_assert_int_ne(group, getpgrp());
    ck_assert_int_eq(session, getsid(0));
    (void)sscanf(printed((struct weir_spawn){.place = WEIR_SPAWN_SESSION}, script), "%d %d %d",
                 &parent, &group, &session);
    ck_assert_int_eq(group, session);
    ck_assert_int_ne(session, getsid(0));
    pid_t self;
    (void)sscanf(printed((struct weir_spawn){.place = WEIR_SPAWN_DETACHED},
                         "echo $$; cut -d' ' -f4-6 /proc/$$/stat"),
                 "%d %d %d %d", &self, &parent, &group, &session);
    ck_assert_int_ne(parent, getpid());
    ck_assert_int_ne(session, getsid(0));
    ck_assert_int_ne(session, self);
}

END_TEST

START_TEST(what_cannot_be_executed_is_an_error_and_no_child)
{
    static const enum weir_spawn_place places[] = {WEIR_SPAWN_HERE, WEIR_SPAWN_DETACHED};

    char *const argv[] = {"no-such-program-anywhere", NULL};
    struct weir_error err;
    for (size_t i = 0; i < WEIR_ARRAY_LEN(places); i++) {
        pid_t pid = 7;
        const struct weir_spawn spawn = {.argv = argv, .place = places[i]};
        ck_assert_int_eq(weir_spawn_start(&spawn, &pid, &err), WEIR_ERR_NOT_FOUND);
        ck_assert_int_eq(pid, 0);
        ck_assert_ptr_nonnull(strstr(err.message, "no-such-program-anywhere"));
    }
    ck_assert_int_eq(weir_spawn_wait(getpid()), -1);
}

END_TEST

START_TEST(both_streams_go_to_a_log_and_ends_are_told_as_shells_do)
{
    char path[] = "/tmp/weir-spawn-XXXXXX", *text;
    char *const argv[] = {"sh", "-c", "echo a; echo b >&2; exit 3", NULL};
    char *const killed[] = {"sh", "-c", "kill -9 $$", NULL};
    struct weir_arena arena;
    struct weir_error err;
    pid_t pid;
    int fd = mkstemp(path);
    ck_assert_int_ge(fd, 0);
    (void)close(fd);
    weir_arena_init(&arena, 0);
    for (int i = 0; i < 2; i++) {
        const struct weir_spawn spawn = {.argv = argv, .log = path};
        ck_assert_int_eq(weir_spawn_start(&spawn, &pid, &err), WEIR_OK);
        ck_assert_int_eq(weir_spawn_wait(pid), 3);
    }
    ck_assert_int_eq(weir_file_read(path, 100, &arena, &text, NULL, &err), WEIR_OK);
    ck_assert_str_eq(text, "a\nb\na\nb\n");
    const struct weir_spawn spawn = {.argv = killed};
    ck_assert_int_eq(weir_spawn_start(&spawn, &pid, &err), WEIR_OK);
    ck_assert_int_eq(weir_spawn_wait(pid), 128 + SIGKILL);
    const struct weir_spawn nowhere = {.argv = argv, .log = "/no/such/folder/log"};
    ck_assert_int_ne(weir_spawn_start(&nowhere, &pid, &err), WEIR_OK);
    (void)unlink(path);
    weir_arena_fini(&arena);
}

END_TEST

WEIR_TEST_MAIN("spawn", nothing_of_ours_is_open_in_it,
               signals_are_as_usual_but_for_what_nohup_wants, it_stands_where_it_is_put,
               what_cannot_be_executed_is_an_error_and_no_child,
               both_streams_go_to_a_log_and_ends_are_told_as_shells_do)
