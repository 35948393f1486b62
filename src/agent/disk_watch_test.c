#include "agent/disk_watch.h"

#include "base/file.h"
#include "base/macros.h"
#include "base/test_main.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char root[WEIR_DIR_TEMPORARY_BYTES];

static const char *in_root(const char *name)
{
    static char path[512];
    (void)snprintf(path, sizeof path, "%s/%s", root, name);
    return path;
}

static void put(const char *name, size_t len)
{
    static char zeros[1 << 16];
    memset(zeros, 'x', sizeof zeros);
    int fd = open(in_root(name), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    for (size_t at = 0; at < len; at += sizeof zeros) {
        ck_assert_int_eq(write(fd, zeros, sizeof zeros), (ssize_t)sizeof zeros);
    }
    ck_assert_int_eq(fsync(fd), 0);
    (void)close(fd);
}

START_TEST(files_are_counted_wherever_they_lie_and_links_are_not_followed)
{
    ck_assert_int_eq(weir_dir_make_temporary("disk", root, NULL), WEIR_OK);
    int64_t empty = disk_watch_measure(root);
    ck_assert_int_ge(empty, 0);
    ck_assert_int_eq(mkdir(in_root("a"), 0700), 0);
    put("a/big", 1 << 20);
    ck_assert_int_eq(symlink("/usr", in_root("link")), 0);
    int64_t bytes = disk_watch_measure(root);
    ck_assert_int_ge(bytes, empty + (1 << 20));
    ck_assert_int_lt(bytes, empty + (1 << 20) + 65536);
    ck_assert_int_eq(disk_watch_measure(in_root("nothing")), 0);
    ck_assert_int_eq(weir_dir_remove(root, NULL), WEIR_OK);
}

END_TEST

START_TEST(what_is_too_deep_to_be_seen_is_over)
{
    ck_assert_int_eq(weir_dir_make_temporary("disk", root, NULL), WEIR_OK);
    int fd = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (int i = 0; i < DISK_WATCH_DEPTH_MAX + 2; i++) {
        ck_assert_int_eq(mkdirat(fd, "d", 0700), 0);
        int next = openat(fd, "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        (void)close(fd);
        fd = next;
    }
    (void)close(fd);
    ck_assert_int_eq(disk_watch_measure(root), -1);
    char text[256];
    struct disk_watch watch = {.dirs = {root}, .max_bytes = INT64_MAX};
    ck_assert(disk_watch_is_over(&watch, 0, text, sizeof text));
    ck_assert_ptr_nonnull(strstr(text, "deep"));
    ck_assert_int_eq(weir_dir_remove(root, NULL), WEIR_OK);
}

END_TEST

START_TEST(it_measures_when_it_is_time_and_says_the_sum_of_all_folders)
{
    char text[256] = "", one[512], other[512];
    ck_assert_int_eq(weir_dir_make_temporary("disk", root, NULL), WEIR_OK);
    ck_assert_int_eq(mkdir(in_root("a"), 0700), 0);
    ck_assert_int_eq(mkdir(in_root("b"), 0700), 0);
    (void)snprintf(one, sizeof one, "%s", in_root("a"));
    (void)snprintf(other, sizeof other, "%s", in_root("b"));
    put("a/x", 1 << 20);
    put("b/x", 1 << 20);
    struct disk_watch watch = {.dirs = {one, other}, .max_bytes = 3 << 20};
    ck_assert(!disk_watch_is_over(&watch, 1000, text, sizeof text));
    ck_assert_int_ge(watch.bytes, 2 << 20);
    ck_assert_int_ge(watch.next_ms, 1000 + DISK_WATCH_MS);
    put("b/x", 2 << 20);
    ck_assert(!disk_watch_is_over(&watch, watch.next_ms - 1, text, sizeof text));
    ck_assert(disk_watch_is_over(&watch, watch.next_ms, text, sizeof text));
    ck_assert_ptr_nonnull(strstr(text, "over its bound of 3145728"));
    watch.max_bytes = 0;
    ck_assert(!disk_watch_is_over(&watch, INT64_MAX, text, sizeof text));
    ck_assert_int_eq(weir_dir_remove(root, NULL), WEIR_OK);
}

END_TEST

WEIR_TEST_MAIN("agent disk watch", files_are_counted_wherever_they_lie_and_links_are_not_followed,
               what_is_too_deep_to_be_seen_is_over,
               it_measures_when_it_is_time_and_says_the_sum_of_all_folders)
