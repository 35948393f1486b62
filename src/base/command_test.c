#include "base/command.h"

#include "base/test_main.h"

#include <string.h>

struct ran {
    struct weir_arena arena;
    struct weir_command_answer answer;
    struct weir_error err;
    weir_status status;
};

static struct ran run_sh(const char *script, struct weir_command command)
{
    struct ran ran = {0};
    const char *const words[] = {"sh", "-c", script, NULL};
    command.words = words;
    command.timeout_ms = command.timeout_ms > 0 ? command.timeout_ms : 20000;
    weir_arena_init(&ran.arena, 0);
    ran.status = weir_command_run(&command, &ran.arena, &ran.answer, &ran.err);
    return ran;
}

START_TEST(both_streams_and_the_exit_status_come_back)
{
    const char *const env[] = {"A=1", "PATH=/usr/bin:/bin", NULL};
    struct ran ran = run_sh("cat; echo $A; echo wrong >&2; exit 3",
                            (struct weir_command){.input = "in ", .env = env});
    ck_assert_int_eq(ran.status, WEIR_OK);
    ck_assert_int_eq(ran.answer.exit_status, 3);
    ck_assert_str_eq(ran.answer.out, "in 1\n");
    ck_assert_str_eq(ran.answer.said, "wrong\n");
    weir_arena_fini(&ran.arena);
}

END_TEST

START_TEST(one_that_is_late_or_prints_too_much_is_killed)
{
    struct ran late = run_sh("echo begun; exec sleep 60", (struct weir_command){.timeout_ms = 300});
    struct ran full = run_sh("exec yes", (struct weir_command){.out_max_bytes = 4096});
    ck_assert_int_eq(late.status, WEIR_ERR_TIMEOUT);
    ck_assert_int_eq(full.status, WEIR_ERR_LIMIT);
    ck_assert_uint_eq(strlen(full.answer.out), 4096);
    weir_arena_fini(&late.arena);
    weir_arena_fini(&full.arena);
}

END_TEST

START_TEST(what_a_child_leaves_open_is_not_waited_for)
{
    struct ran ran = run_sh("sleep 60 & echo over", (struct weir_command){0});
    ck_assert_int_eq(ran.status, WEIR_OK);
    ck_assert_str_eq(ran.answer.out, "over\n");
    weir_arena_fini(&ran.arena);
}

END_TEST

START_TEST(one_that_is_not_there_is_an_error)
{
    const char *const words[] = {"/nowhere/at-all", NULL};
    const struct weir_command command = {.words = words, .timeout_ms = 1000};
    struct weir_arena arena;
    struct weir_command_answer answer;
    struct weir_error err;
    weir_arena_init(&arena, 0);
    ck_assert_int_eq(weir_command_run(&command, &arena, &answer, &err), WEIR_ERR_NOT_FOUND);
    weir_arena_fini(&arena);
}

END_TEST

WEIR_TEST_MAIN("command", both_streams_and_the_exit_status_come_back,
               one_that_is_late_or_prints_too_much_is_killed,
               what_a_child_leaves_open_is_not_waited_for, one_that_is_not_there_is_an_error)
