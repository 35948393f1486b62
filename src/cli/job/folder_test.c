#include "cli/job/folder.h"

#include "base/file.h"
#include "base/test_main.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct {
    const char *lines, *path;
    bool is_dir, is_ignored;
} cases[] = {
    {"", "a.py", false, false},
    {"*.pyc\n", "deep/a.pyc", false, true},
    {"# a.py\n", "a.py", false, false},
    {"data/\n", "data", true, true},
    {"data/\n", "data", false, false},
    {"data\n", "sub/data", true, true},
    {"/data\n", "sub/data", true, false},
    {"/data\n", "data", true, true},
    {"sub/*.log\n", "sub/a.log", false, true},
    {"sub/*.log\n", "other/sub/a.log", false, false},
    {"**/cache\n", "a/b/cache", true, true},
    {"*.txt\n!keep.txt\n", "keep.txt", false, false},
    {"*.txt \r\n", "a.txt", false, true},
    {"a/**\n", "a/b/c", false, true},
    {"a/**\n", "a", true, false},
    {"a/**/c\n", "a/c", false, true},
    {"a/**/c\n", "a/x/y/c", false, true},
    {"a/**/c\n", "b/a/c", false, false},
    {"**/x/y\n", "p/q/x/y", false, true},
    {"\\!odd\n", "!odd", false, true},
    {"\\#odd\n", "#odd", false, true},
    {"a?[0-9].py\n", "ab7.py", false, true},
};

START_TEST(a_line_of_gitignore_leaves_out_what_git_would)
{
    ck_assert_msg(folder_is_ignored(cases[_i].lines, cases[_i].path, cases[_i].is_dir) ==
                      cases[_i].is_ignored,
                  "\"%s\" and %s", cases[_i].lines, cases[_i].path);
}

END_TEST

static char root[WEIR_DIR_TEMPORARY_BYTES];
static struct weir_arena arena;
static struct weir_error err;

static void write_file(const char *name, const void *bytes, size_t len)
{
    char *path = weir_arena_printf(&arena, "%s/%s", root, name);
    char *folder = weir_arena_strdup(&arena, path);
    *strrchr(folder, '/') = '\0';
    ck_assert_int_eq(weir_dir_make(folder, 0700, &err), WEIR_OK);
    ck_assert_int_eq(weir_file_write(path, bytes, len, 0600, &err), WEIR_OK);
}

/** The entry at a path; NULL: it is not taken along. */
static const struct weir_tree_entry *entry_at(const struct folder *folder, const char *path)
{
    for (size_t i = 0; i < folder->tree.n; i++) {
        if (strcmp(folder->tree.entries[i].path, path) == 0) {
            return &folder->tree.entries[i];
        }
    }
    return NULL;
}

static void link_to(const char *target, const char *name)
{
    ck_assert_int_eq(symlink(target, weir_arena_printf(&arena, "%s/%s", root, name)), 0);
}

static void begin(void)
{
    weir_arena_init(&arena, 0);
    ck_assert_int_eq(weir_dir_make_temporary("folder-test", root, &err), WEIR_OK);
}

static void end(void)
{
    ck_assert_int_eq(weir_dir_remove(root, &err), WEIR_OK);
    weir_arena_fini(&arena);
}

START_TEST(a_folder_is_read_with_all_below_it_that_a_job_can_take_along)
{
    struct folder folder;
    begin();
    write_file("train.py", "print(1)\n", 9);
    write_file("lib/a.py", "x = 1\n", 6);
    write_file("picture.png", "\x89PNG\0\1", 6);
    write_file("run.sh", "#!/bin/sh\n", 10);
    ck_assert_int_eq(chmod(weir_arena_printf(&arena, "%s/run.sh", root), 06755), 0);
    write_file(".git/config", "x", 1);
    write_file("__pycache__/a.pyc", "x", 1);
    write_file(".gitignore", "*.log\n", 6);
    write_file("run.log", "x", 1);
    write_file("token", "x", 1);
    write_file("output/old.txt", "x", 1);
    write_file("deep/state/weir.db", "x", 1);
    write_file("deep/state/admin.token", "x", 1);
    link_to("/etc/passwd", "out");
    link_to("../../x", "lib/up");
    link_to("../train.py", "lib/in");
    ck_assert_int_eq(mkfifo(weir_arena_printf(&arena, "%s/pipe", root), 0600), 0);
    ck_assert_int_eq(folder_read(root, &arena, &folder, &err), WEIR_OK);
    ck_assert_uint_eq(folder.tree.n, 6);
    ck_assert_uint_eq(folder.n_left_out, 6);
    ck_assert_ptr_null(entry_at(&folder, "deep/state/admin.token"));
    ck_assert_int_eq(entry_at(&folder, "picture.png")->bytes, 6);
    ck_assert_int_eq(entry_at(&folder, "run.sh")->kind, WEIR_TREE_PROGRAM);
    ck_assert_int_eq(entry_at(&folder, "train.py")->kind, WEIR_TREE_FILE);
    ck_assert_str_eq(entry_at(&folder, "lib/in")->target, "../train.py");
    ck_assert_ptr_nonnull(entry_at(&folder, ".gitignore"));
    ck_assert_ptr_null(entry_at(&folder, "run.log"));
    ck_assert_int_eq(folder_read("/nonexistent", &arena, &folder, &err), WEIR_ERR_NOT_FOUND);
    ck_assert_int_eq(
        folder_read(weir_arena_printf(&arena, "%s/deep/state", root), &arena, &folder, &err),
        WEIR_ERR_INVALID);
    end();
}

END_TEST

START_TEST(files_above_and_below_say_what_is_ignored_and_the_nearest_decides)
{
    struct folder folder;
    begin();
    write_file(".git/HEAD", "x", 1);
    write_file(".git/info/exclude", "private\n", 8);
    write_file(".gitignore", "*.bin\n/sub/data/\n", 17);
    write_file("sub/.gitignore", "!keep.bin\n/local\n", 17);
    write_file("sub/a.bin", "x", 1);
    write_file("sub/keep.bin", "x", 1);
    write_file("sub/data/x", "x", 1);
    write_file("sub/local", "x", 1);
    write_file("sub/deep/local", "x", 1);
    write_file("sub/private", "x", 1);
    write_file("sub/deep/.gitignore", "*.txt\n", 6);
    write_file("sub/deep/a.txt", "x", 1);
    write_file("sub/b.txt", "x", 1);
    ck_assert_int_eq(folder_read(weir_arena_printf(&arena, "%s/sub", root), &arena, &folder, &err),
                     WEIR_OK);
    static const char *const taken[] = {".gitignore", "b.txt", "deep/.gitignore", "deep/local",
                                        "keep.bin"};
    ck_assert_uint_eq(folder.tree.n, WEIR_ARRAY_LEN(taken));
    for (size_t i = 0; i < WEIR_ARRAY_LEN(taken); i++) {
        ck_assert_str_eq(folder.tree.entries[i].path, taken[i]);
    }
    end();
}

END_TEST

START_TEST(a_folder_beyond_the_bounds_is_refused_by_its_largest_files)
{
    struct folder folder;
    begin();
    write_file("big.csv", "1", 1);
    write_file("a.py", "1", 1);
    ck_assert_int_eq(truncate(weir_arena_printf(&arena, "%s/big.csv", root), 3LL << 30), 0);
    ck_assert_int_eq(folder_read(root, &arena, &folder, &err), WEIR_ERR_LIMIT);
    ck_assert_ptr_nonnull(strstr(err.message, "the largest are big.csv (3072 MiB), a.py"));
    ck_assert_ptr_nonnull(strstr(err.message, "--dir"));
    end();
}

END_TEST

WEIR_TEST_LOOPS_MAIN("folder",
                     {a_line_of_gitignore_leaves_out_what_git_would, WEIR_ARRAY_LEN(cases)},
                     {a_folder_is_read_with_all_below_it_that_a_job_can_take_along, 0},
                     {files_above_and_below_say_what_is_ignored_and_the_nearest_decides, 0},
                     {a_folder_beyond_the_bounds_is_refused_by_its_largest_files, 0})
