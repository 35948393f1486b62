#include "cli/data/dataset_put.h"

#include "base/file.h"
#include "base/test_main.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char root[WEIR_DIR_TEMPORARY_BYTES];
static struct weir_arena arena;

static void start(void)
{
    ck_assert_int_eq(weir_dir_make_temporary("put", root, NULL), WEIR_OK);
    weir_arena_init(&arena, 0);
}

static void stop(void)
{
    weir_arena_fini(&arena);
    ck_assert_int_eq(weir_dir_remove(root, NULL), WEIR_OK);
}

static const char *at(const char *name)
{
    return weir_arena_printf(&arena, "%s/%s", root, name);
}

static void write_at(const char *name, const char *text)
{
    const char *path = at(name);
    char *folder = weir_arena_strdup(&arena, path);
    *strrchr(folder, '/') = '\0';
    ck_assert_int_eq(weir_dir_make(folder, 0755, NULL), WEIR_OK);
    ck_assert_int_eq(weir_file_write(path, text, strlen(text), 0644, NULL), WEIR_OK);
}

START_TEST(one_file_that_cannot_be_sent_stops_no_folder)
{
    struct put_list list = {0};
    struct put_check check;
    struct weir_error err;
    write_at("a/1.pgm", "P5 2 2 255\n1234");
    write_at("a/empty.jpg", "");
    write_at("a/page.jpg", "<html>");
    write_at("a/Thumbs.db", "x");
    write_at("a/.DS_Store", "x");
    write_at("@eaDir/2.pgm", "x");
    write_at("b/large.png", "x");
    ck_assert_int_eq(truncate(at("b/large.png"), ((off_t)64 << 20) + 1), 0);
    ck_assert_int_eq(symlink("nowhere", at("b/link.png")), 0);
    ck_assert_int_eq(symlink("..", at("b/up")), 0);
    ck_assert_int_eq(mkfifo(at("b/pipe"), 0600), 0);
    ck_assert_int_eq(put_list_read(&list, root, NULL, &arena, &err), WEIR_OK);
    ck_assert_uint_eq(list.n, 6);
    ck_assert_uint_eq(list.n_folders, 1); /* a link to a folder */
    ck_assert_int_eq(put_list_check(&list, true, &arena, &check, &err), WEIR_OK);
    ck_assert_uint_eq(list.n, 2);
    ck_assert_str_eq(list.items[0].name, "1.pgm");
    ck_assert_str_eq(list.items[1].name, "page.jpg");
    ck_assert_uint_eq(check.n_left_out, 4);
    ck_assert_uint_eq(check.n_lost, 2); /* what is large, and what the link was to name */
    ck_assert_str_eq(check.left_out, "a/empty.jpg is empty, b/large.png is larger than 64 MiB, "
                                     "b/link.png is a link to nothing, b/pipe is no file");
    ck_assert_uint_eq(check.n_damaged, 1);
    ck_assert_ptr_nonnull(strstr(check.damaged, "a/page.jpg"));
}

END_TEST

START_TEST(a_folder_of_nothing_is_an_error)
{
    struct put_list list = {0};
    struct put_check check;
    struct weir_error err;
    write_at("a/1.png", "");
    write_at("a/2.png", "");
    ck_assert_int_eq(put_list_read(&list, root, NULL, &arena, &err), WEIR_OK);
    ck_assert_int_eq(put_list_check(&list, true, &arena, &check, &err), WEIR_ERR_INVALID);
    ck_assert_str_eq(err.message, "none of 2 files can be put: a/1.png is empty, a/2.png is empty");
}

END_TEST

int main(void)
{
    const TTest *tests[] = {one_file_that_cannot_be_sent_stops_no_folder,
                            a_folder_of_nothing_is_an_error};
    return weir_test_run(
        weir_test_suite_with("dataset put", start, stop, tests, WEIR_ARRAY_LEN(tests)));
}
