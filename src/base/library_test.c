#include "base/library.h"

#include "base/kind.h"
#include "base/macros.h"
#include "base/test_main.h"

#include <string.h>

START_TEST(a_library_is_in_or_says_what_brings_it)
{
    struct weir_error err;
    for (size_t i = 0; i < weir_n_libraries; i++) {
        const struct weir_library *library = &weir_libraries[i];
        bool is_in = library->version != NULL;
        weir_status status = weir_library_need(library->name, "transport x", &err);
        ck_assert_int_eq(status, is_in ? WEIR_OK : WEIR_ERR_UNSUPPORTED);
        ck_assert_msg(is_in || library->doc != NULL, "%s may be missing and brings nothing",
                      library->name);
        ck_assert(is_in || (strstr(err.message, "transport x needs") != NULL &&
                            strstr(err.message, library->package) != NULL));
    }
    ck_assert_int_eq(weir_library_need("no such library", "a test", &err), WEIR_ERR_INTERNAL);
}

END_TEST

START_TEST(each_library_is_in_one_of_the_two_texts)
{
    struct weir_arena arena;
    weir_arena_init(&arena, 0);
    const char *in = weir_libraries_text(true, &arena), *out = weir_libraries_text(false, &arena);
    for (size_t i = 0; i < weir_n_libraries; i++) {
        const struct weir_library *library = &weir_libraries[i];
        const char *own =
            library->version != NULL
                ? weir_arena_printf(&arena, "%s %s", library->name, library->version)
                : weir_arena_printf(&arena, "%s (%s", library->name, library->package);
        ck_assert_ptr_nonnull(strstr(library->version != NULL ? in : out, own));
    }
    weir_arena_fini(&arena);
}

END_TEST

START_TEST(a_kind_is_refused_without_its_library)
{
    static const struct weir_kind kinds[] = {
        {.name = "with", .doc = "x", .library = "jansson"},
        {.name = "without", .doc = "x", .library = "no such library"},
    };
    static const struct weir_kind *const list[] = {&kinds[0], &kinds[1]};
    static const struct weir_registry registry = {
        .noun = "source", .plural = "sources", .doc = "x", .kinds = list, .n_kinds = 2};
    const struct weir_kind *kind;
    struct weir_error err;
    ck_assert_int_eq(weir_registry_find(&registry, "with", "$.source.kind", &kind, &err), WEIR_OK);
    ck_assert_int_ne(weir_registry_find(&registry, "without", "$.source.kind", &kind, &err),
                     WEIR_OK);
    ck_assert_ptr_nonnull(strstr(err.message, "$.source.kind: source without needs"));
}
END_TEST
WEIR_TEST_MAIN("library", a_library_is_in_or_says_what_brings_it,
               each_library_is_in_one_of_the_two_texts, a_kind_is_refused_without_its_library)
