/* Folders that nobody has used for a while go, and no others. */
#include "agent/code/kept.h"

#include "base/arena.h"
#include "base/file.h"
#include "base/test_main.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define DAY_S 86400

static char root[WEIR_DIR_TEMPORARY_BYTES];
static struct weir_arena arena;
static struct weir_error err;

static char *at(const char *name)
{
    return weir_arena_printf(&arena, "%s/%s", root, name);
}

static void set_age(const char *path, time_t age_s)
{
    struct timespec times[2] = {{.tv_sec = time(NULL) - age_s}, {.tv_sec = time(NULL) - age_s}};
    ck_assert_int_eq(utimensat(AT_FDCWD, path, times, 0), 0);
}

/* A folder with a file in it, used by a process that has ended, or by this one; all of it `age_s` old. */
static void make(const char *name, bool is_used, time_t age_s, time_t written_s)
{
    char *path = at(name), *file = weir_arena_printf(&arena, "%s/outbox", path),
         *used = weir_arena_printf(&arena, "%s.used", path);
    ck_assert_int_eq(weir_dir_make(path, 0700, &err), WEIR_OK);
    ck_assert_int_eq(weir_file_write(file, "x", 1, 0600, &err), WEIR_OK);
    pid_t pid = is_used ? 0 : fork();
    if (pid == 0) {
        weir_status status = kept_use(path, &err);
        ck_assert_int_eq(status, WEIR_OK);
        if (!is_used) {
            _exit(0);
        }
    }
    ck_assert(is_used || waitpid(pid, NULL, 0) == pid);
    set_age(file, written_s);
    set_age(path, age_s);
    set_age(used, age_s);
}

START_TEST(what_nobody_has_used_for_a_while_goes)
{
    weir_arena_init(&arena, 0);
    ck_assert_int_eq(weir_dir_make_temporary("kept-test", root, &err), WEIR_OK);
    make("old", false, 31 * DAY_S, 31 * DAY_S);
    make("young", false, 29 * DAY_S, 29 * DAY_S);
    make("written", false, 31 * DAY_S, DAY_S);
    make("in-use", true, 31 * DAY_S, 31 * DAY_S);
    kept_sweep(root, (int64_t)30 * DAY_S);
    ck_assert(!weir_path_exists(at("old")));
    ck_assert(!weir_path_exists(at("old.used")));
    ck_assert(weir_path_exists(at("young")));
    ck_assert(weir_path_exists(at("written")));
    ck_assert(weir_path_exists(at("in-use")));
    kept_sweep("/nonexistent", 0);
    ck_assert_int_eq(weir_dir_remove(root, NULL), WEIR_OK);
    weir_arena_fini(&arena);
}

END_TEST

WEIR_TEST_MAIN("kept", what_nobody_has_used_for_a_while_goes)
