/* The bounds of what projects have on a node, whatever their tasks have put there. */
#include "agent/code/code_cache.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/test_main.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define DAY_S ((int64_t)24 * 3600)

static char root[WEIR_DIR_TEMPORARY_BYTES];
static struct weir_arena arena;
static struct weir_error err;
static struct code_cache cache;
static int64_t now_s;

static char *in(const char *dir, const char *name)
{
    return weir_arena_printf(&arena, "%s/%s", dir, name);
}

static const char *hash(int i)
{
    return weir_arena_printf(&arena, "%064d", i);
}

static void set_time(const char *path, int64_t time_s)
{
    const struct timespec times[2] = {{.tv_sec = time_s}, {.tv_sec = time_s}};
    ck_assert_int_eq(utimensat(AT_FDCWD, path, times, AT_SYMLINK_NOFOLLOW), 0);
}

/** A file of so many bytes, last used then. */
static void put(const char *path, size_t bytes, int64_t time_s)
{
    char *text = weir_arena_alloc(&arena, bytes + 1);
    memset(text, 'x', bytes);
    ck_assert_int_eq(weir_file_write(path, text, bytes, 0600, &err), WEIR_OK);
    set_time(path, time_s);
}

static void set_up(void)
{
    weir_arena_init(&arena, 0);
    ck_assert_int_eq(weir_dir_make_temporary("code-cache-test", root, &err), WEIR_OK);
    ck_assert_int_eq(code_cache_open(in(root, "tasks/t.1"), "vision", &arena, &cache, &err),
                     WEIR_OK);
    now_s = weir_time_ms() / 1000;
}

static void tear_down(void)
{
    ck_assert_int_eq(weir_dir_remove(root, &err), WEIR_OK);
    weir_arena_fini(&arena);
}

START_TEST(a_project_that_is_no_name_has_no_cache)
{
    struct code_cache other;
    static const char *const bad[] = {NULL, "", "..", "../x", "a/b", ".hidden"};
    for (size_t i = 0; i < WEIR_ARRAY_LEN(bad); i++) {
        ck_assert_int_eq(code_cache_open(in(root, "tasks/t.1"), bad[i], &arena, &other, &err),
                         WEIR_ERR_INVALID);
    }
}

END_TEST

/** An environment with its lock. */
static void add_python(int i, int64_t time_s)
{
    char *dir = in(cache.python_dir, hash(i));
    ck_assert_int_eq(weir_dir_make(in(dir, "bin"), 0700, &err), WEIR_OK);
    put(in(dir, "bin/python"), 10, time_s);
    set_time(dir, time_s);
    put(weir_arena_printf(&arena, "%s.lock", dir), 0, time_s);
}

static bool has_python(int i)
{
    return weir_path_exists(in(cache.python_dir, hash(i)));
}

START_TEST(of_environments_the_last_used_stay_and_those_in_use)
{
    for (int i = 0; i < CODE_CACHE_PYTHONS + 3; i++) {
        add_python(i, now_s - 1000 - i);
    }
    int last = CODE_CACHE_PYTHONS + 2;
    int fd = open(weir_arena_printf(&arena, "%s.lock", in(cache.python_dir, hash(last))),
                  O_RDWR | O_CLOEXEC);
    ck_assert_int_eq(flock(fd, LOCK_SH), 0);
    code_cache_sweep(&cache, now_s);
    ck_assert(has_python(0) && has_python(CODE_CACHE_PYTHONS - 1));
    ck_assert(!has_python(CODE_CACHE_PYTHONS) && !has_python(CODE_CACHE_PYTHONS + 1));
    ck_assert(has_python(last));
    close(fd);
}

END_TEST

START_TEST(what_tasks_have_put_there_goes_and_nothing_it_points_at)
{
    put(in(root, "precious"), 5, now_s);
    ck_assert_int_eq(symlink(in(root, "precious"), in(cache.python_dir, "link")), 0);
    ck_assert_int_eq(symlink(root, in(cache.python_dir, hash(1))), 0);
    ck_assert_int_eq(
        mkfifo(weir_arena_printf(&arena, "%s.lock", in(cache.python_dir, hash(2))), 0600), 0);
    ck_assert_int_eq(symlink(in(root, "precious"),
                             weir_arena_printf(&arena, "%s.lock", in(cache.python_dir, hash(3)))),
                     0);
    put(in(cache.python_dir, "junk"), 5, now_s - 2 * DAY_S);
    set_time(in(cache.python_dir, "link"), now_s - 2 * DAY_S);
    set_time(in(cache.python_dir, hash(1)), now_s - 2 * DAY_S);
    for (int i = 10; i < 10 + CODE_CACHE_PYTHONS; i++) {
        add_python(i, now_s + 10); /* the odd locks are the oldest */
    }
    code_cache_sweep(&cache, now_s);
    ck_assert(weir_path_exists(in(root, "precious")));
    ck_assert(weir_path_is_dir(cache.blobs_dir));
    ck_assert(!weir_path_exists(in(cache.python_dir, "junk")));
    struct stat info;
    ck_assert_int_ne(lstat(in(cache.python_dir, "link"), &info), 0);
    ck_assert_int_ne(lstat(in(cache.python_dir, hash(1)), &info), 0);
    ck_assert_int_ne(
        lstat(weir_arena_printf(&arena, "%s.lock", in(cache.python_dir, hash(3))), &info), 0);
}

END_TEST

START_TEST(a_project_without_jobs_goes_whole_and_others_are_looked_at)
{
    struct code_cache old, other;
    ck_assert_int_eq(code_cache_open(in(root, "tasks/t.1"), "old", &arena, &old, &err), WEIR_OK);
    ck_assert_int_eq(code_cache_open(in(root, "tasks/t.1"), "other", &arena, &other, &err),
                     WEIR_OK);
    set_time(in(old.dir, ".boot"), now_s - CODE_CACHE_KEPT_S - 10);
    put(in(other.blobs_dir, "half"), 5, now_s - 2 * DAY_S);
    put(in(other.blobs_dir, hash(1)), 5, now_s - 2 * DAY_S);
    code_cache_sweep(&cache, now_s);
    ck_assert(!weir_path_exists(old.dir));
    ck_assert(!weir_path_exists(in(other.blobs_dir, "half")));
    ck_assert(weir_path_exists(in(other.blobs_dir, hash(1))));
    put(in(other.blobs_dir, "half"), 5, now_s - 2 * DAY_S);
    code_cache_sweep(&cache, now_s + 5); /* not again so soon */
    ck_assert(weir_path_exists(in(other.blobs_dir, "half")));
    cache.fetched_bytes = CODE_CACHE_MUCH_BYTES;
    code_cache_sweep(&cache, now_s + 5);
    ck_assert(!weir_path_exists(in(other.blobs_dir, "half")));
}

END_TEST

START_TEST(files_of_another_boot_are_fetched_again)
{
    put(in(cache.blobs_dir, hash(1)), 5, now_s);
    ck_assert_int_eq(code_cache_open(in(root, "tasks/t.1"), "vision", &arena, &cache, &err),
                     WEIR_OK);
    ck_assert(weir_path_exists(in(cache.blobs_dir, hash(1))));
    put(in(cache.dir, ".boot"), 5, now_s);
    ck_assert_int_eq(code_cache_open(in(root, "tasks/t.1"), "vision", &arena, &cache, &err),
                     WEIR_OK);
    ck_assert(!weir_path_exists(in(cache.blobs_dir, hash(1))));
}

END_TEST

WEIR_TEST_MAIN_WITH("code cache", set_up, tear_down, a_project_that_is_no_name_has_no_cache,
                    of_environments_the_last_used_stay_and_those_in_use,
                    what_tasks_have_put_there_goes_and_nothing_it_points_at,
                    a_project_without_jobs_goes_whole_and_others_are_looked_at,
                    files_of_another_boot_are_fetched_again)
