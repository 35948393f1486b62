#include "agent/task.h"

#include "base/file.h"
#include "base/test_main.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static struct weir_arena arena;
static struct weir_error err;
static struct task task;

static weir_status parse(const char *text)
{
    json_t *object = json_loads(text, 0, NULL);
    ck_assert_ptr_nonnull(object);
    weir_status status = task_from_json(object, &arena, &task, &err);
    json_decref(object);
    return status;
}

START_TEST(a_desired_task_is_read_whole)
{
    weir_arena_init(&arena, 0);
    ck_assert_int_eq(
        parse("{\"id\":\"0190-a\",\"job\":\"j\",\"attempt\":3,\"role\":\"worker\",\"rank\":2,"
              "\"argv\":[\"weir-worker\",\"train\"],\"env\":{\"A\":\"b c\"},"
              "\"files\":{\"spec.json\":\"{}\",\"sub/x\":\"y\"},\"cpu_weight\":50,"
              "\"memory_max_bytes\":1048576,\"desired\":\"running\",\"stop_grace_ms\":10}"),
        WEIR_OK);
    ck_assert_str_eq(task.id, "0190-a");
    ck_assert_int_eq(task.attempt, 3);
    ck_assert_str_eq(task.argv[1], "train");
    ck_assert_ptr_null(task.argv[2]);
    ck_assert_str_eq(task.env[0].value, "b c");
    ck_assert_uint_eq(task.n_files, 2);
    ck_assert_int_eq(task.limits.cpu_weight, 50);
    ck_assert_int_eq(task.limits.memory_max_bytes, 1 << 20);
    ck_assert_int_eq(task.stop_grace_ms, 10);
    ck_assert(task.is_wanted);
    ck_assert(task.is_isolated);
    weir_arena_fini(&arena);
}

END_TEST

#define HEAD "{\"id\":\"a\",\"attempt\":1,\"desired\":\"running\","

static const char *const bad_tasks[] = {
    "{}",
    "[]",
    "{\"id\":\"../x\",\"attempt\":1,\"desired\":\"running\",\"argv\":[\"x\"]}",
    "{\"id\":\"a.b\",\"attempt\":1,\"desired\":\"running\",\"argv\":[\"x\"]}",
    "{\"id\":\"a\",\"desired\":\"running\",\"argv\":[\"x\"]}",
    "{\"id\":\"a\",\"attempt\":-1,\"desired\":\"running\",\"argv\":[\"x\"]}",
    "{\"id\":\"a\",\"attempt\":1,\"desired\":\"maybe\",\"argv\":[\"x\"]}",
    HEAD "\"argv\":[]}",
    HEAD "\"argv\":[\"x\",1]}",
    HEAD "\"argv\":[\"\"]}",
    HEAD "\"argv\":\"x\"}",
    HEAD "\"argv\":[\"x\"],\"env\":[]}",
    HEAD "\"argv\":[\"x\"],\"env\":{\"A=B\":\"c\"}}",
    HEAD "\"argv\":[\"x\"],\"env\":{\"A\":1}}",
    HEAD "\"argv\":[\"x\"],\"files\":{\"/etc/x\":\"\"}}",
    HEAD "\"argv\":[\"x\"],\"files\":{\"a/../../x\":\"\"}}",
    HEAD "\"argv\":[\"x\"],\"files\":{\"..\":\"\"}}",
    HEAD "\"argv\":[\"x\"],\"files\":{\"a/\":\"\"}}",
    HEAD "\"argv\":[\"x\"],\"files\":{\"a//b\":\"\"}}",
    HEAD "\"argv\":[\"x\"],\"cpu_weight\":0}",
    HEAD "\"argv\":[\"x\"],\"cpu_weight\":\"1\"}",
    HEAD "\"argv\":[\"x\"],\"memory_max_bytes\":-1}",
    HEAD "\"argv\":[\"x\"],\"kill_mode\":\"process\"}",
    HEAD "\"argv\":[\"x\"],\"kill_mode\":1}",
};

START_TEST(a_task_that_cannot_be_understood_is_refused)
{
    weir_arena_init(&arena, 0);
    for (size_t i = 0; i < WEIR_ARRAY_LEN(bad_tasks); i++) {
        ck_assert_msg(parse(bad_tasks[i]) == WEIR_ERR_INVALID, "%s", bad_tasks[i]);
        ck_assert_ptr_nonnull(strstr(err.message, "task $."));
    }
    weir_arena_fini(&arena);
}

END_TEST

START_TEST(keys_name_folders_and_nothing_else)
{
    char id[TASK_ID_MAX_BYTES];
    int64_t attempt;
    ck_assert(task_key_parse("0190f3-ab.12", id, &attempt));
    ck_assert_str_eq(id, "0190f3-ab");
    ck_assert_int_eq(attempt, 12);
    static const char *const bad[] = {"",    ".",    "..",  "a",     "a.",          ".1",
                                      "a.x", "a.-1", "A.1", "a/b.1", "a.1234567890"};
    for (size_t i = 0; i < WEIR_ARRAY_LEN(bad); i++) {
        ck_assert_msg(!task_key_parse(bad[i], id, &attempt), "%s", bad[i]);
    }
}

END_TEST

START_TEST(a_mark_is_of_one_attempt_of_one_agent)
{
    char dir[] = "/tmp/weir-task-XXXXXX", path[64], expected[TASK_MARK_BYTES];
    char marks[4][TASK_MARK_BYTES];
    static const char *const attempts[] = {"a/t1.1", "a/t1.2", "b/t1.1", "a/t1.1"};
    struct stat of_agent;
    ck_assert_ptr_nonnull(mkdtemp(dir));
    for (size_t i = 0; i < WEIR_ARRAY_LEN(attempts); i++) {
        (void)snprintf(path, sizeof path, "%s/%s", dir, attempts[i]);
        ck_assert_int_eq(weir_dir_make(path, 0700, NULL), WEIR_OK);
        (void)task_mark(marks[i], path);
    }
    ck_assert_int_eq(stat(task_path((char[TASK_PATH_BYTES]){0}, dir, "a"), &of_agent), 0);
    (void)snprintf(expected, sizeof expected, "t1.1@%llx-%llx", (unsigned long long)of_agent.st_dev,
                   (unsigned long long)of_agent.st_ino);
    ck_assert_str_eq(marks[0], expected);
    ck_assert_str_ne(marks[1], marks[0]);
    ck_assert_str_ne(marks[2], marks[0]);
    ck_assert_str_eq(marks[3], marks[0]);
    ck_assert_int_eq(weir_dir_remove(dir, NULL), WEIR_OK);
}

END_TEST

START_TEST(records_come_back_as_they_were_written)
{
    char dir[] = "/tmp/weir-task-XXXXXX";
    ck_assert_ptr_nonnull(mkdtemp(dir));
    struct task_run run = {.process = {77, UINT64_C(1) << 40}, .boot_id = "b-1", .time_ms = 9};
    struct task_run run_back;
    run.group.n_dirs = 2;
    (void)snprintf(run.group.dirs[0], WEIR_GROUP_PATH_BYTES, "/sys/x");
    (void)snprintf(run.group.dirs[1], WEIR_GROUP_PATH_BYTES, "/sys/y");
    ck_assert_int_eq(task_run_write(dir, &run, NULL), WEIR_OK);
    ck_assert_int_eq(task_run_read(dir, &run_back, NULL), WEIR_OK);
    ck_assert_mem_eq(&run_back.process, &run.process, sizeof run.process);
    ck_assert_str_eq(run_back.boot_id, "b-1");
    ck_assert_uint_eq(run_back.group.n_dirs, 2);
    ck_assert_str_eq(run_back.group.dirs[1], "/sys/y");

    struct task_exit end = {.pid = 5,
                            .exit_code = -1,
                            .signal = 9,
                            .message = "why \"quoted\"",
                            .time_ms = 8,
                            .log_bytes = 7,
                            .max_rss_bytes = 6,
                            .cpu_ms = 5};
    struct task_exit end_back;
    ck_assert_int_eq(task_exit_write(dir, &end, NULL), WEIR_OK);
    ck_assert_int_eq(task_exit_read(dir, &end_back, NULL), WEIR_OK);
    ck_assert_str_eq(end_back.message, end.message);
    ck_assert_int_eq(end_back.signal, 9);
    ck_assert_int_eq(end_back.exit_code, -1);
    ck_assert(!end_back.is_lost);

    int64_t grace_ms = 0;
    ck_assert(!task_stop_read(dir, &grace_ms));
    ck_assert_int_eq(task_stop_write(dir, 1234, NULL), WEIR_OK);
    ck_assert(task_stop_read(dir, &grace_ms));
    ck_assert_int_eq(grace_ms, 1234);
    ck_assert_int_eq(weir_dir_remove(dir, NULL), WEIR_OK);
}

END_TEST

WEIR_TEST_MAIN("agent task", a_desired_task_is_read_whole,
               a_task_that_cannot_be_understood_is_refused, keys_name_folders_and_nothing_else,
               a_mark_is_of_one_attempt_of_one_agent, records_come_back_as_they_were_written)
