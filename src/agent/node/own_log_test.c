/* The agent's log has a bound, and only a file of that name is ever renamed. */
#include "agent/node/own_log.h"

#include "base/file.h"
#include "base/test_main.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char dir[WEIR_DIR_TEMPORARY_BYTES], log_path[WEIR_DIR_TEMPORARY_BYTES + 16];

static void start(void)
{
    ck_assert_int_eq(weir_dir_make_temporary("own-log", dir, NULL), WEIR_OK);
    (void)snprintf(log_path, sizeof log_path, "%s/agent.log", dir);
}

static void stop(void)
{
    ck_assert_int_eq(weir_dir_remove(dir, NULL), WEIR_OK);
}

static int64_t size_of(const char *suffix)
{
    char path[sizeof log_path + 8];
    struct stat info;
    (void)snprintf(path, sizeof path, "%s%s", log_path, suffix);
    return stat(path, &info) == 0 ? (int64_t)info.st_size : -1;
}

/* In a process whose standard error is `name`: n lines of 100 bytes, looked at after each. */
static void write_lines(const char *name, int n)
{
    pid_t pid = fork();
    if (pid == 0) {
        char line[101], path[sizeof log_path + 8];
        memset(line, 'x', 99);
        memcpy(line + 99, "\n", 2);
        (void)snprintf(path, sizeof path, "%s/%s", dir, name);
        int fd = open(path, O_WRONLY | O_CREAT | O_APPEND, 0600);
        (void)dup2(fd, STDERR_FILENO);
        for (int i = 0; i < n; i++) {
            if (write(STDERR_FILENO, line, 100) != 100) {
                _exit(1);
            }
            own_log_bound(log_path, 1000);
        }
        _exit(0);
    }
    int status;
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(status, 0);
}

START_TEST(a_log_that_is_full_becomes_an_older_one_and_the_oldest_goes)
{
    write_lines("agent.log", 7);
    ck_assert_int_eq(size_of(""), 700);
    ck_assert_int_eq(size_of(".1"), -1);
    write_lines("agent.log", 8);
    ck_assert_int_eq(size_of(""), 500);
    ck_assert_int_eq(size_of(".1"), 1000);
    write_lines("agent.log", 100);
    ck_assert_int_eq(size_of(""), 500);
    ck_assert_int_eq(size_of(".1"), 1000);
    ck_assert_int_eq(size_of(".3"), 1000);
    ck_assert_int_eq(size_of(".4"), -1);
}

END_TEST

START_TEST(a_log_of_another_name_is_left_alone)
{
    write_lines("journal", 30);
    ck_assert_int_eq(size_of(""), -1);
    ck_assert_int_eq(weir_file_write(log_path, "", 0, 0600, NULL), WEIR_OK);
    write_lines("journal", 30);
    ck_assert_int_eq(size_of(""), 0);
    ck_assert_int_eq(size_of(".1"), -1);
}

END_TEST

WEIR_TEST_MAIN_WITH("own log", start, stop,
                    a_log_that_is_full_becomes_an_older_one_and_the_oldest_goes,
                    a_log_of_another_name_is_left_alone)
