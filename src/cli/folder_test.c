#include "cli/folder.h"

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

START_TEST(a_folder_is_read_with_all_below_it_but_what_is_no_text)
{
    struct folder folder;
    weir_arena_init(&arena, 0);
    ck_assert_int_eq(weir_dir_make_temporary("folder-test", root, &err), WEIR_OK);
    write_file("train.py", "print(1)\n", 9);
    write_file("lib/a.py", "x = 'é'\n", strlen("x = 'é'\n"));
    write_file("picture.png", "\x89PNG\0\1", 6);
    write_file(".git/config", "x", 1);
    write_file("__pycache__/a.pyc", "x", 1);
    write_file(".gitignore", "*.log\n", 6);
    write_file("run.log", "x", 1);
    ck_assert_int_eq(symlink("/etc/passwd", weir_arena_printf(&arena, "%s/link", root)), 0);
    ck_assert_int_eq(folder_read(root, &arena, &folder, &err), WEIR_OK);
    ck_assert_uint_eq(folder.n_files, 3);
    ck_assert_uint_eq(folder.n_left_out, 2);
    ck_assert_str_eq(json_string_value(json_object_get(folder.files, "train.py")), "print(1)\n");
    ck_assert_ptr_nonnull(json_object_get(folder.files, "lib/a.py"));
    ck_assert_ptr_nonnull(json_object_get(folder.files, ".gitignore"));
    ck_assert_ptr_null(json_object_get(folder.files, "run.log"));
    ck_assert_ptr_null(json_object_get(folder.files, "link"));
    json_decref(folder.files);
    ck_assert_int_eq(weir_dir_remove(root, &err), WEIR_OK);
    weir_arena_fini(&arena);
}

END_TEST

START_TEST(a_folder_beyond_the_bounds_is_refused_by_its_largest_files)
{
    struct folder folder;
    weir_arena_init(&arena, 0);
    ck_assert_int_eq(weir_dir_make_temporary("folder-test", root, &err), WEIR_OK);
    char *much = weir_arena_alloc(&arena, FOLDER_MAX_BYTES);
    memset(much, 'x', FOLDER_MAX_BYTES);
    write_file("big.csv", much, FOLDER_MAX_BYTES);
    write_file("a.py", "1", 1);
    ck_assert_int_eq(folder_read(root, &arena, &folder, &err), WEIR_ERR_LIMIT);
    ck_assert_ptr_nonnull(strstr(err.message, "the largest are big.csv (1024 KiB), a.py"));
    ck_assert_ptr_nonnull(strstr(err.message, "--dir"));
    ck_assert_int_eq(folder_read("/nonexistent", &arena, &folder, &err), WEIR_ERR_NOT_FOUND);
    ck_assert_int_eq(weir_dir_remove(root, &err), WEIR_OK);
    weir_arena_fini(&arena);
}

END_TEST

WEIR_TEST_LOOPS_MAIN("folder",
                     {a_line_of_gitignore_leaves_out_what_git_would, WEIR_ARRAY_LEN(cases)},
                     {a_folder_is_read_with_all_below_it_but_what_is_no_text, 0},
                     {a_folder_beyond_the_bounds_is_refused_by_its_largest_files, 0})
