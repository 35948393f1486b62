#include "agent/node/disk_watch.h"

#include "base/file.h"
#include "base/macros.h"
#include "base/test_main.h"
#include "base/test_seed.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
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
    int64_t empty = disk_watch_measure(root).bytes;
    ck_assert_int_ge(empty, 0);
    ck_assert_int_eq(mkdir(in_root("a"), 0700), 0);
    put("a/big", 1 << 20);
    ck_assert_int_eq(symlink("/usr", in_root("link")), 0);
    int64_t bytes = disk_watch_measure(root).bytes;
    ck_assert_int_ge(bytes, empty + (1 << 20));
    ck_assert_int_lt(bytes, empty + (1 << 20) + 65536);
    ck_assert_int_eq(disk_watch_measure(in_root("nothing")).bytes, 0);
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
    ck_assert(disk_watch_measure(root).is_beyond);
    char text[256];
    struct disk_watch watch = {.dirs = {root}, .max_bytes = INT64_MAX};
    ck_assert(disk_watch_is_over(&watch, 0, text, sizeof text));
    ck_assert_ptr_nonnull(strstr(text, "deep"));
    ck_assert_int_eq(weir_dir_remove(root, NULL), WEIR_OK);
}

END_TEST

/* A child with files of random sizes in the folder: each has a name, or none and is open, or mapped, in one
 * or more processes. What is measured is what the file system says it has given out for all of them. */
struct holder {
    struct weir_rng rng;
    int64_t bytes, files, named_bytes, named_files; /* named: of this round, held by nobody */
};

static void hold_file(struct holder *holder, int i)
{
    char name[32];
    struct stat info;
    size_t len = 4096 * (1 + weir_rng_below(&holder->rng, 32));
    (void)snprintf(name, sizeof name, "f%d", i);
    put(name, len);
    int fd = open(in_root(name), O_RDWR);
    ck_assert_int_eq(fstat(fd, &info), 0);
    holder->bytes += (int64_t)info.st_blocks * 512;
    holder->files++;
    uint64_t how = weir_rng_below(&holder->rng, 4);
    if (how == 1 || how == 2) {
        ck_assert_ptr_ne(mmap(NULL, len, PROT_READ, MAP_SHARED, fd, 0), MAP_FAILED);
    }
    if (how == 2 || how == 0) { /* mapped alone, or a name alone */
        close(fd);
    } else if (weir_rng_below(&holder->rng, 2) == 0) {
        ck_assert_int_ge(dup(fd), 0);
    }
    if (how != 0) {
        ck_assert_int_eq(unlink(in_root(name)), 0);
    } else {
        holder->named_bytes += (int64_t)info.st_blocks * 512;
        holder->named_files++;
    }
}

static struct process_id holders[3];

static size_t holders_of(void *context, struct process_id *ids, size_t max)
{
    (void)context;
    (void)max;
    memcpy(ids, holders, sizeof holders);
    return WEIR_ARRAY_LEN(holders);
}

START_TEST(removed_files_that_are_held_count_once)
{
    struct holder holder = {.bytes = 0};
    char text[512] = "";
    (void)test_seed(&holder.rng);
    /* Not where the test's own library has a removed file open. */
    ck_assert_int_eq(setenv("TMPDIR", "/dev/shm", 1), 0);
    for (int round = 0; round < 4; round++) {
        int pipe_fds[2];
        char byte;
        ck_assert_int_eq(weir_dir_make_temporary("disk", root, NULL), WEIR_OK);
        ck_assert_int_eq(pipe(pipe_fds), 0);
        holder.named_bytes = holder.named_files = 0;
        for (int i = 0; i < 40; i++) {
            hold_file(&holder, i);
        }
        for (size_t i = 0; i < WEIR_ARRAY_LEN(holders); i++) {
            holders[i].pid = fork(); /* with the same files */
            if (holders[i].pid == 0) {
                close(pipe_fds[1]);
                _exit(read(pipe_fds[0], &byte, 1) == 0 ? 0 : 1);
            }
        }
        struct disk_watch watch = {.dirs = {root}, .max_bytes = INT64_MAX, .members = holders_of};
        ck_assert(!disk_watch_is_over(&watch, 1, text, sizeof text));
        ck_assert_int_eq(watch.bytes, holder.bytes);
        ck_assert_int_eq(watch.files, holder.files);
        watch.max_bytes = holder.bytes - 1;
        ck_assert(disk_watch_is_over(&watch, watch.next_ms, text, sizeof text));
        watch.max_bytes = INT64_MAX;
        watch.max_files = holder.files;
        ck_assert(!disk_watch_is_over(&watch, watch.next_ms, text, sizeof text));
        watch.max_files--;
        ck_assert(disk_watch_is_over(&watch, watch.next_ms, text, sizeof text));
        ck_assert_ptr_nonnull(strstr(text, "files_max"));
        close(pipe_fds[0]);
        close(pipe_fds[1]);
        for (size_t i = 0; i < WEIR_ARRAY_LEN(holders); i++) {
            ck_assert_int_eq(waitpid(holders[i].pid, NULL, 0), holders[i].pid);
        }
        ck_assert_int_eq(weir_dir_remove(root, NULL), WEIR_OK);
        holder.bytes -= holder.named_bytes; /* what is held is held in the next round, too */
        holder.files -= holder.named_files;
    }
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
               what_is_too_deep_to_be_seen_is_over, removed_files_that_are_held_count_once,
               it_measures_when_it_is_time_and_says_the_sum_of_all_folders)
