#include "base/file.h"

#include "base/test_main.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[64];
static struct weir_arena arena;
static struct weir_error err;

static const char *path_of(const char *name)
{
    return weir_arena_printf(&arena, "%s/%s", folder, name);
}

static void setup(void)
{
    weir_arena_init(&arena, 0);
    (void)snprintf(folder, sizeof folder, "/tmp/weir-file-test-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
}

static void teardown(void)
{
    ck_assert_int_eq(weir_dir_remove(folder, &err), WEIR_OK);
    ck_assert(!weir_path_exists(folder));
    weir_arena_fini(&arena);
}

START_TEST(what_was_written_is_read_back_and_hashes_as_published)
{
    setup();
    ck_assert_int_eq(weir_file_write_atomic(path_of("a"), "abc", 3, 0640, &err), WEIR_OK);
    char *data;
    size_t len;
    ck_assert_int_eq(weir_file_read(path_of("a"), 3, &arena, &data, &len, &err), WEIR_OK);
    ck_assert_uint_eq(len, 3);
    ck_assert_str_eq(data, "abc");
    char own[4] = "????";
    ck_assert_int_eq(weir_file_read_into(path_of("a"), own, 3, &len, &err), WEIR_OK);
    ck_assert_uint_eq(len, 3);
    ck_assert_mem_eq(own, "abc?", 4);
    struct stat st;
    ck_assert_int_eq(stat(path_of("a"), &st), 0);
    ck_assert_uint_eq(st.st_mode & 0777, 0640);
    /* FIPS 180-2, appendix B.1 */
    char hash[WEIR_SHA256_TEXT_BYTES];
    uint64_t size;
    ck_assert_int_eq(weir_file_sha256(path_of("a"), hash, &size, &err), WEIR_OK);
    ck_assert_str_eq(hash, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    ck_assert_uint_eq(size, 3);
    teardown();
}

END_TEST

START_TEST(errors_name_the_path_and_the_limit)
{
    setup();
    char *data;
    size_t len;
    ck_assert_int_eq(weir_file_read(path_of("none"), 9, &arena, &data, &len, &err),
                     WEIR_ERR_NOT_FOUND);
    ck_assert_ptr_nonnull(strstr(err.message, "/none"));
    ck_assert_int_eq(weir_file_write_atomic(path_of("big"), "12345", 5, 0600, &err), WEIR_OK);
    ck_assert_int_eq(weir_file_read(path_of("big"), 4, &arena, &data, &len, &err), WEIR_ERR_LIMIT);
    ck_assert_int_eq(weir_file_read(folder, 4, &arena, &data, &len, &err), WEIR_ERR_INVALID);
    char own[4];
    ck_assert_int_eq(weir_file_read_into(path_of("big"), own, 4, &len, &err), WEIR_ERR_LIMIT);
    ck_assert_int_eq(weir_file_read_into(path_of("none"), own, 4, &len, &err), WEIR_ERR_NOT_FOUND);
    ck_assert_ptr_nonnull(strstr(err.message, "/none"));
    ck_assert_int_eq(weir_dir_make(path_of("big/below"), 0755, &err), WEIR_ERR_NOT_FOUND);
    ck_assert_int_eq(weir_dir_make(path_of("big"), 0755, &err), WEIR_ERR_EXISTS);
    ck_assert_int_eq(weir_dir_make(path_of("x/y/z"), 0755, &err), WEIR_OK);
    ck_assert_int_eq(weir_dir_make(path_of("x/y/z"), 0755, &err), WEIR_OK);
    teardown();
}

END_TEST

START_TEST(a_file_made_anew_holds_what_was_written_last)
{
    setup();
    char own[8];
    size_t len;
    ck_assert_int_eq(weir_file_write(path_of("a"), "first", 5, 0600, &err), WEIR_OK);
    ck_assert_int_eq(weir_file_write(path_of("a"), "2nd", 3, 0600, &err), WEIR_OK);
    ck_assert_int_eq(weir_file_read_into(path_of("a"), own, sizeof own, &len, &err), WEIR_OK);
    ck_assert_uint_eq(len, 3);
    ck_assert_mem_eq(own, "2nd", 3);
    ck_assert_int_eq(weir_file_write(path_of("x/a"), "", 0, 0600, &err), WEIR_ERR_NOT_FOUND);
    ck_assert_ptr_nonnull(strstr(err.message, "x/a"));
    teardown();
}

END_TEST

/* The disk's end is played by the file size limit: write(2) fails with EFBIG. */
START_TEST(a_failed_write_leaves_the_old_file_and_no_other)
{
    setup();
    ck_assert_int_eq(weir_file_write_atomic(path_of("f"), "old", 3, 0600, &err), WEIR_OK);
    struct rlimit before, small = {.rlim_cur = 1000, .rlim_max = RLIM_INFINITY};
    ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &before), 0);
    small.rlim_max = before.rlim_max;
    (void)signal(SIGXFSZ, SIG_IGN);
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &small), 0);
    static char large[4096];
    weir_status status = weir_file_write_atomic(path_of("f"), large, sizeof large, 0600, &err);
    weir_status replaced = weir_file_replace(path_of("f"), large, sizeof large, 0600, &err);
    weir_status anew = weir_file_write(path_of("g"), large, sizeof large, 0600, &err);
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &before), 0);
    ck_assert_int_eq(status, WEIR_ERR_LIMIT);
    ck_assert_int_eq(replaced, WEIR_ERR_LIMIT);
    ck_assert_int_eq(anew, WEIR_ERR_LIMIT);
    char *data;
    ck_assert_int_eq(weir_file_read(path_of("f"), 10, &arena, &data, NULL, &err), WEIR_OK);
    ck_assert_str_eq(data, "old");
    ck_assert_int_eq(unlink(path_of("f")), 0);
    ck_assert_int_eq(rmdir(folder), 0); /* nothing else was left */
    ck_assert_int_eq(mkdir(folder, 0700), 0);
    teardown();
}

END_TEST

START_TEST(a_lock_is_held_by_one_and_freed_by_close)
{
    setup();
    int first, second;
    ck_assert_int_eq(weir_file_lock(path_of("lock"), &first, &err), WEIR_OK);
    ck_assert_int_eq(weir_file_lock(path_of("lock"), &second, &err), WEIR_ERR_CONFLICT);
    (void)close(first);
    ck_assert_int_eq(weir_file_lock(path_of("lock"), &second, &err), WEIR_OK);
    (void)close(second);
    teardown();
}

END_TEST

static void *close_it(void *fd)
{
    (void)close(*(int *)fd);
    return NULL;
}

START_TEST(a_lock_that_is_given_up_in_a_moment_is_waited_for)
{
    setup();
    pthread_t thread;
    int first, second;
    ck_assert_int_eq(weir_file_lock(path_of("lock"), &first, &err), WEIR_OK);
    ck_assert_int_eq(pthread_create(&thread, NULL, close_it, &first), 0);
    ck_assert_int_eq(weir_file_lock_after(path_of("lock"), &second, &err), WEIR_OK);
    (void)pthread_join(thread, NULL);
    (void)close(second);
    teardown();
}

END_TEST

START_TEST(a_temporary_folder_is_made_where_the_environment_says)
{
    char made[WEIR_DIR_TEMPORARY_BYTES] = "kept", again[WEIR_DIR_TEMPORARY_BYTES];
    struct stat st;
    setup();
    ck_assert_int_eq(setenv("TMPDIR", folder, 1), 0);
    ck_assert_int_eq(weir_dir_make_temporary("x", made, &err), WEIR_OK);
    ck_assert_int_eq(weir_dir_make_temporary("x", again, &err), WEIR_OK);
    ck_assert_str_ne(made, again);
    ck_assert_int_eq(strncmp(made, path_of("weir-x-"), strlen(path_of("weir-x-"))), 0);
    ck_assert_int_eq(stat(made, &st), 0);
    ck_assert_uint_eq(st.st_mode, S_IFDIR | 0700);
    ck_assert_int_eq(rmdir(made), 0);

    ck_assert_int_eq(setenv("TMPDIR", path_of("missing"), 1), 0);
    ck_assert_int_eq(weir_dir_make_temporary("x", made, &err), WEIR_ERR_NOT_FOUND);
    ck_assert_ptr_nonnull(strstr(err.message, path_of("missing")));
    char *longest = weir_arena_alloc(&arena, 400);
    memset(longest, 'a', 399);
    ck_assert_int_eq(setenv("TMPDIR", longest, 1), 0);
    ck_assert_int_eq(weir_dir_make_temporary("x", made, &err), WEIR_ERR_LIMIT);

    ck_assert_int_eq(setenv("TMPDIR", "", 1), 0);
    ck_assert_int_eq(weir_dir_make_temporary("file-test", made, &err), WEIR_OK);
    ck_assert_int_eq(strncmp(made, "/tmp/weir-file-test-", 20), 0);
    ck_assert_int_eq(rmdir(made), 0);
    ck_assert_int_eq(unsetenv("TMPDIR"), 0);
    teardown();
}

END_TEST

START_TEST(removing_a_tree_does_not_follow_links)
{
    setup();
    ck_assert_int_eq(weir_dir_make(path_of("kept"), 0755, &err), WEIR_OK);
    ck_assert_int_eq(weir_file_write_atomic(path_of("kept/file"), "x", 1, 0600, &err), WEIR_OK);
    ck_assert_int_eq(weir_dir_make(path_of("gone"), 0755, &err), WEIR_OK);
    ck_assert_int_eq(symlink(path_of("kept"), path_of("gone/link")), 0);
    ck_assert_int_eq(weir_dir_remove(path_of("gone"), &err), WEIR_OK);
    ck_assert(weir_path_exists(path_of("kept/file")));
    ck_assert_int_eq(weir_dir_remove(path_of("gone"), &err), WEIR_OK);
    teardown();
}

END_TEST

START_TEST(a_disk_is_named_by_file_system)
{
    char one[WEIR_DISK_ID_BYTES], other[WEIR_DISK_ID_BYTES];
    setup();
    ck_assert_int_eq(weir_dir_make(path_of("below"), 0755, &err), WEIR_OK);
    ck_assert_str_ne(weir_disk_id(path_of("below"), one), "");
    ck_assert_str_eq(weir_disk_id(path_of("."), other), one);
    ck_assert_str_ne(weir_disk_id("/proc", other), one);
    ck_assert_str_eq(weir_disk_id(path_of("missing"), other), "");
    teardown();
}

END_TEST

WEIR_TEST_MAIN("file", what_was_written_is_read_back_and_hashes_as_published,
               errors_name_the_path_and_the_limit, a_file_made_anew_holds_what_was_written_last,
               a_failed_write_leaves_the_old_file_and_no_other,
               a_lock_is_held_by_one_and_freed_by_close,
               a_lock_that_is_given_up_in_a_moment_is_waited_for,
               a_temporary_folder_is_made_where_the_environment_says,
               removing_a_tree_does_not_follow_links, a_disk_is_named_by_file_system)
