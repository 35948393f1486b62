/* Folders that tasks are shown: the operator's, and that of the library onnxruntime. */
#include "agent/node/agent_private.h"

#include "base/file.h"
#include "base/test_main.h"

#include <limits.h>
#include <stdlib.h>

static struct weir_error err;
static char root[PATH_MAX];

static void set_up(void)
{
    char made[] = "/tmp/weir-shares-XXXXXX";
    ck_assert_ptr_nonnull(mkdtemp(made));
    ck_assert_ptr_nonnull(realpath(made, root));
}

static void tear_down(void)
{
    ck_assert_int_eq(weir_dir_remove(root, NULL), WEIR_OK);
}

static char *folder(struct weir_arena *arena, const char *name)
{
    char *path = weir_arena_printf(arena, "%s/%s", root, name);
    ck_assert_int_eq(weir_dir_make(path, 0700, &err), WEIR_OK);
    return path;
}

/* All that an agent may be told to share, a task's sandbox takes. */
START_TEST(the_library_has_room_beside_all_others)
{
    struct weir_arena arena;
    struct weir_buf text;
    json_t *shares;
    weir_arena_init(&arena, 0);
    weir_buf_init(&text, 1 << 20);
    for (int i = 0; i < SHARES_MAX; i++) {
        (void)weir_buf_printf(&text, "%s\n", folder(&arena, weir_arena_printf(&arena, "s%d", i)));
    }
    ck_assert_int_eq(shares_parse(text.data, &shares, &err), WEIR_OK);
    shares_add_library(shares, weir_arena_printf(&arena, "%s/lib.so", folder(&arena, "ort")));
    ck_assert_uint_eq(json_array_size(shares), SANDBOX_PATHS_MAX);
    json_decref(shares);
    (void)weir_buf_printf(&text, "%s\n", folder(&arena, "more"));
    ck_assert_int_eq(shares_parse(text.data, &shares, &err), WEIR_ERR_LIMIT);
    weir_buf_fini(&text);
    weir_arena_fini(&arena);
}

END_TEST

/* What may be written stays so, whether it is the library's folder, above it or below. */
START_TEST(the_library_takes_no_right_to_write_away)
{
    static const char *const shared[] = {"a/b", "a", "a/b/c"};
    static const size_t n_expected[] = {1, 1, 2};
    for (size_t i = 0; i < WEIR_ARRAY_LEN(shared); i++) {
        struct weir_arena arena;
        json_t *shares;
        weir_arena_init(&arena, 0);
        const char *library = weir_arena_printf(&arena, "%s/lib.so", folder(&arena, "a/b"));
        const char *text = weir_arena_printf(&arena, "%s:rw", folder(&arena, shared[i]));
        ck_assert_int_eq(shares_parse(text, &shares, &err), WEIR_OK);
        shares_add_library(shares, library);
        ck_assert_uint_eq(json_array_size(shares), n_expected[i]);
        const json_t *last = json_array_get(shares, n_expected[i] - 1);
        ck_assert_str_eq(json_string_value(json_object_get(last, "access")), "write");
        json_decref(shares);
        weir_arena_fini(&arena);
    }
}

END_TEST

int main(void)
{
    Suite *suite = suite_create("shares");
    TCase *tcase = tcase_create("shares");
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_test(tcase, the_library_has_room_beside_all_others);
    tcase_add_test(tcase, the_library_takes_no_right_to_write_away);
    suite_add_tcase(suite, tcase);
    return weir_test_run(suite);
}
