/* What documents say at the command line: words and where pages lie. */
#include "cli/core/document.h"

#include "base/test_main.h"

#include <stdlib.h>
#include <string.h>

static struct weir_arena arena; /* of the test that runs, each in a process of its own */

START_TEST(a_word_of_the_glossary_means_what_its_row_says)
{
    weir_arena_init(&arena, 0);
    ck_assert_str_eq(cli_document_meaning(&arena, "candidate"),
                     "candidate: a model version that a link may deploy");
    const char *sinks = cli_document_meaning(&arena, "sink");
    ck_assert_ptr_nonnull(sinks);
    ck_assert_ptr_nonnull(strstr(sinks, "where decisions go"));
    ck_assert_str_eq(cli_document_meaning(&arena, "source"), sinks);
    ck_assert_str_eq(cli_document_meaning(&arena, "Sources"), sinks);
    ck_assert_ptr_nonnull(cli_document_meaning(&arena, "ION"));
    ck_assert_str_eq(cli_document_meaning(&arena, "ions"), cli_document_meaning(&arena, "ION"));
    ck_assert_ptr_nonnull(cli_document_meaning(&arena, "false accept rate"));
    static const char *const unknown[] = {"",         "s",    "can",     "candidates!",
                                          "where",    "from", "term",    "|",
                                          "stranger", "sin",  "sink, s", "a model version"};
    for (size_t i = 0; i < WEIR_ARRAY_LEN(unknown); i++) {
        ck_assert_msg(cli_document_meaning(&arena, unknown[i]) == NULL, "%s", unknown[i]);
    }
    weir_arena_fini(&arena);
}

END_TEST

static const char *written(const char *text)
{
    char *bytes = NULL;
    size_t size = 0;
    FILE *file = open_memstream(&bytes, &size);
    cli_document_write(file, text);
    (void)fclose(file);
    char *kept = weir_arena_strdup(&arena, bytes);
    free(bytes);
    return kept;
}

START_TEST(a_page_is_named_so_that_it_can_be_opened)
{
    weir_arena_init(&arena, 0);
    const char *dir = cli_document_dir(&arena);
    ck_assert_ptr_nonnull(dir); /* the sources, beside which the test is built */
    const char *text = written("See docs/glossary.md, docs/howto/upgrade.md. (docs/security.md)\n");
    ck_assert_str_eq(
        text,
        weir_arena_printf(
            &arena, "See %s/docs/glossary.md, %s/docs/howto/upgrade.md. (%s/docs/security.md)\n",
            dir, dir, dir));
    static const char *const as_they_are[] = {"", "docs/", "my/docs/a.md", "docs/ and docs",
                                              "http://x/docs/howto/upgrade.md"};
    for (size_t i = 0; i < WEIR_ARRAY_LEN(as_they_are); i++) {
        ck_assert_str_eq(written(as_they_are[i]), as_they_are[i]);
    }
    weir_arena_fini(&arena);
}

END_TEST

WEIR_TEST_LOOPS_MAIN("document", {a_word_of_the_glossary_means_what_its_row_says, 0},
                     {a_page_is_named_so_that_it_can_be_opened, 0})
