#include "base/tree.h"

#include "base/test_main.h"

#include <string.h>

#define HEAD          "weir-tree 1\n"
#define HASH          "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
#define FILE_AT(path) "f\t" HASH "\t0\t" path "\n"

static struct weir_arena arena;
static struct weir_error err;

static weir_status parse(const char *text, struct weir_tree *out)
{
    return weir_tree_parse(text, strlen(text), &arena, out, &err);
}

static void set_up(void)
{
    weir_arena_init(&arena, 0);
}

static void tear_down(void)
{
    weir_arena_fini(&arena);
}

START_TEST(what_is_written_is_read_as_the_same)
{
    struct weir_tree_entry entries[] = {
        {.path = "train.py", .kind = WEIR_TREE_PROGRAM, .sha256 = HASH, .bytes = 12},
        {.path = "data/a b.bin", .kind = WEIR_TREE_FILE, .sha256 = HASH, .bytes = 3},
        {.path = "data/link", .kind = WEIR_TREE_LINK, .target = "../train.py"},
        {.path = "data-2", .kind = WEIR_TREE_FILE, .sha256 = HASH},
    };
    struct weir_tree tree = {.entries = entries, .n = 4}, read;
    struct weir_buf text;
    weir_buf_init(&text, WEIR_TREE_TEXT_MAX);
    ck_assert_int_eq(weir_tree_write(&tree, &text, &err), WEIR_OK);
    ck_assert_int_eq(tree.n_bytes, 15);
    ck_assert_int_eq(weir_tree_parse(text.data, text.len, &arena, &read, &err), WEIR_OK);
    ck_assert_uint_eq(read.n, 4);
    ck_assert_int_eq(read.n_bytes, 15);
    ck_assert_str_eq(read.entries[0].path, "data-2");
    ck_assert_str_eq(read.entries[1].path, "data/a b.bin");
    ck_assert_str_eq(read.entries[2].target, "../train.py");
    ck_assert_int_eq(read.entries[3].kind, WEIR_TREE_PROGRAM);
    weir_buf_fini(&text);
}

END_TEST

static const char *const hostile[] = {
    "",
    "weir-tree 2\n",
    HEAD "f\t" HASH "\t0\ta", /* no end */
    HEAD FILE_AT("../a"),
    HEAD FILE_AT("a/../../b"),
    HEAD FILE_AT("a/.."),
    HEAD FILE_AT("."),
    HEAD FILE_AT("a//b"),
    HEAD FILE_AT("/etc/passwd"),
    HEAD FILE_AT("a/"),
    HEAD FILE_AT(""),
    HEAD FILE_AT("a\001b"),
    HEAD FILE_AT("a\tb"),
    HEAD FILE_AT("token"),
    HEAD FILE_AT("output"),
    HEAD FILE_AT("output/x"),
    HEAD FILE_AT(".weir-requirements"),
    HEAD FILE_AT("a") FILE_AT("a"),
    HEAD FILE_AT("b") FILE_AT("a"),
    HEAD FILE_AT("a") FILE_AT("a-b") FILE_AT("a/b"), /* below a file */
    HEAD "l\tb\ta\n" FILE_AT("a/b"),                 /* through a link */
    HEAD "l\t/etc\ta\n",
    HEAD "l\t..\ta\n",
    HEAD "l\tb/../../c\ta\n",
    HEAD "l\tb/../c\ta\n", /* b may be a link */
    HEAD "l\t../../c\ta/b\n",
    HEAD "l\t\ta\n",
    HEAD "s\t" HASH "\t0\ta\n",
    HEAD "f\t" HASH "\t-1\ta\n",
    HEAD "f\t" HASH "\t01\ta\n",
    HEAD "f\t" HASH "\t99999999999999999999\ta\n",
    HEAD "f\t" HASH "\t4294967296\ta\n",
    HEAD "f\tE3B0C44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855\t0\ta\n",
    HEAD "f\tabc\t0\ta\n",
    HEAD "\n",
};

START_TEST(what_could_leave_the_folder_or_is_no_tree_is_refused)
{
    struct weir_tree tree;
    ck_assert_msg(parse(hostile[_i], &tree) == WEIR_ERR_INVALID, "%s", hostile[_i]);
    ck_assert_str_ne(err.message, "");
}

END_TEST

START_TEST(links_that_stay_inside_and_odd_names_are_let_through)
{
    struct weir_tree tree;
    ck_assert_int_eq(parse(HEAD FILE_AT("A") FILE_AT("a") "l\t../a\tb/c\n" FILE_AT("d/..e")
                               FILE_AT("outputs/x") FILE_AT("sub/token"),
                           &tree),
                     WEIR_OK);
    ck_assert_uint_eq(tree.n, 6);
    ck_assert_int_eq(parse(HEAD, &tree), WEIR_OK);
    ck_assert_uint_eq(tree.n, 0);
}

END_TEST

START_TEST(the_bounds_are_of_files_and_of_their_bytes)
{
    struct weir_tree tree;
    struct weir_buf text;
    weir_buf_init(&text, WEIR_TREE_TEXT_MAX);
    ck_assert_int_eq(weir_buf_puts(&text, HEAD), WEIR_OK);
    for (int i = 0; i < WEIR_TREE_FILES_MAX + 1; i++) {
        ck_assert_int_eq(weir_buf_printf(&text, "f\t" HASH "\t0\t%05d\n", i), WEIR_OK);
    }
    ck_assert_int_eq(weir_tree_parse(text.data, text.len, &arena, &tree, &err), WEIR_ERR_LIMIT);
    weir_buf_fini(&text);
    ck_assert_int_eq(parse(HEAD "f\t" HASH "\t2000000000\ta\nf\t" HASH "\t2000000000\tb\n", &tree),
                     WEIR_ERR_LIMIT);
}

END_TEST

int main(void)
{
    Suite *suite = suite_create("tree");
    TCase *tcase = tcase_create("tree");
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_test(tcase, what_is_written_is_read_as_the_same);
    tcase_add_loop_test(tcase, what_could_leave_the_folder_or_is_no_tree_is_refused, 0,
                        (int)WEIR_ARRAY_LEN(hostile));
    tcase_add_test(tcase, links_that_stay_inside_and_odd_names_are_let_through);
    tcase_add_test(tcase, the_bounds_are_of_files_and_of_their_bytes);
    suite_add_tcase(suite, tcase);
    return weir_test_run(suite);
}
