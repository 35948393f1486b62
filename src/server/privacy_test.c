#include "server/privacy.h"

#include "base/file.h"
#include "base/log.h"
#include "base/test_main.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char root[64], outside[64];

static void start(void)
{
    strncpy(root, "/tmp/weir-privacy-XXXXXX", sizeof root - 1);
    strncpy(outside, "/tmp/weir-outside-XXXXXX", sizeof outside - 1);
    ck_assert_ptr_nonnull(mkdtemp(root));
    ck_assert_ptr_nonnull(mkdtemp(outside));
}

static void stop(void)
{
    ck_assert_int_eq(weir_dir_remove(root, NULL), WEIR_OK);
    ck_assert_int_eq(weir_dir_remove(outside, NULL), WEIR_OK);
}

static const char *in(const char *dir, const char *name)
{
    static char paths[8][256];
    static size_t i;
    char *path = paths[i++ % 8];
    (void)snprintf(path, sizeof paths[0], "%s/%s", dir, name);
    return path;
}

static void make_file(const char *path, mode_t mode)
{
    ck_assert_int_eq(weir_file_write(path, "x", 1, 0600, NULL), WEIR_OK);
    ck_assert_int_eq(chmod(path, mode), 0);
}

static void make_folder(const char *path, mode_t mode)
{
    ck_assert_int_eq(mkdir(path, 0700), 0);
    ck_assert_int_eq(chmod(path, mode), 0);
}

static mode_t mode_of(const char *path)
{
    struct stat st;
    ck_assert_int_eq(lstat(path, &st), 0);
    return st.st_mode & 07777;
}

/* The thread has nothing to wait for: until the last file is closed, or too long. */
static void close_all(const char *last)
{
    struct privacy *privacy;
    ck_assert_int_eq(privacy_close_folder(root, NULL), WEIR_OK);
    ck_assert_int_eq(privacy_start(root, &privacy, NULL), WEIR_OK);
    for (int i = 0; i < 20000 && (mode_of(last) & 077) != 0; i++) {
        (void)poll(NULL, 0, 1);
    }
    privacy_stop(privacy);
}

START_TEST(others_lose_what_modes_grant_and_the_owner_keeps_it)
{
    ck_assert_int_eq(chmod(root, 0755), 0);
    make_folder(in(root, "blobs"), 0755);
    make_folder(in(root, "blobs/ab"), 0777);
    make_file(in(root, "blobs/ab/readonly"), 0444);
    make_file(in(root, "blobs/ab/program"), 0755);
    make_file(in(root, "blobs/ab/private"), 0600);
    close_all(in(root, "blobs/ab/readonly"));
    close_all(in(root, "blobs/ab/program"));
    ck_assert_int_eq(mode_of(root), 0700);
    ck_assert_int_eq(mode_of(in(root, "blobs")), 0700);
    ck_assert_int_eq(mode_of(in(root, "blobs/ab")), 0700);
    ck_assert_int_eq(mode_of(in(root, "blobs/ab/readonly")), 0400);
    ck_assert_int_eq(mode_of(in(root, "blobs/ab/program")), 0700);
    ck_assert_int_eq(mode_of(in(root, "blobs/ab/private")), 0600);
}

END_TEST

START_TEST(links_are_not_followed)
{
    make_file(in(outside, "theirs"), 0644);
    make_folder(in(outside, "folder"), 0755);
    ck_assert_int_eq(symlink(in(outside, "theirs"), in(root, "link")), 0);
    ck_assert_int_eq(symlink(in(outside, "folder"), in(root, "way")), 0);
    make_file(in(root, "open"), 0644);
    close_all(in(root, "open"));
    ck_assert_int_eq(mode_of(in(outside, "theirs")), 0644);
    ck_assert_int_eq(mode_of(in(outside, "folder")), 0755);
}

END_TEST

START_TEST(the_tmp_of_a_job_stays_open_within_its_closed_folder)
{
    make_folder(in(root, "agent"), 0755);
    make_folder(in(root, "agent/jobs"), 0755);
    make_folder(in(root, "agent/jobs/j"), 0700);
    make_folder(in(root, "agent/jobs/j/tmp"), 01777);
    make_file(in(root, "open"), 0644);
    close_all(in(root, "agent/jobs"));
    ck_assert_int_eq(mode_of(in(root, "agent/jobs")), 0700);
    ck_assert_int_eq(mode_of(in(root, "agent/jobs/j/tmp")), 01777);
}

END_TEST

START_TEST(a_group_that_was_given_access_keeps_it)
{
    if (geteuid() != 0) {
        return; /* only root can give a file to a group it is not in */
    }
    make_file(in(root, "shared"), 0644);
    ck_assert_int_eq(chown(in(root, "shared"), 0, 12345), 0);
    make_file(in(root, "zopen"), 0644);
    close_all(in(root, "zopen"));
    ck_assert_int_eq(mode_of(in(root, "shared")), 0640);
}

END_TEST

START_TEST(a_folder_that_is_not_there_says_so)
{
    struct weir_error err;
    ck_assert_int_eq(privacy_close_folder("/nowhere/at/all", &err), WEIR_ERR_NOT_FOUND);
    ck_assert_ptr_nonnull(strstr(err.message, "/nowhere/at/all"));
}

END_TEST

int main(void)
{
    Suite *suite = suite_create("server privacy");
    TCase *tcase = tcase_create("privacy");
    tcase_add_checked_fixture(tcase, start, stop);
    tcase_add_test(tcase, others_lose_what_modes_grant_and_the_owner_keeps_it);
    tcase_add_test(tcase, links_are_not_followed);
    tcase_add_test(tcase, the_tmp_of_a_job_stays_open_within_its_closed_folder);
    tcase_add_test(tcase, a_group_that_was_given_access_keeps_it);
    tcase_add_test(tcase, a_folder_that_is_not_there_says_so);
    suite_add_tcase(suite, tcase);
    return weir_test_run(suite);
}
