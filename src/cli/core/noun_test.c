/* What `weir get` shows follows from the record tables. */
#include "cli/core/noun.h"

#include "base/test_main.h"

#include <stdio.h>
#include <string.h>

static struct weir_arena arena;
static struct cli_call call = {.arena = &arena};

static void set_up(void)
{
    weir_arena_init(&arena, 0);
}

static void tear_down(void)
{
    weir_arena_fini(&arena);
}

static char *titles_of(const char *noun)
{
    size_t n;
    const struct cli_column *columns = cli_noun_columns(&call, cli_noun_find(noun), &n);
    char *text = weir_arena_strdup(&arena, "");
    for (size_t i = 0; i < n; i++) {
        text = weir_arena_printf(&arena, "%s%s%s", text, i > 0 ? "|" : "", columns[i].title);
    }
    return text;
}

START_TEST(columns_stand_in_the_order_of_the_record)
{
    ck_assert_str_eq(titles_of("jobs"), "ID|NAME|KIND|STATE|EXPECTED START|ATTEMPT|CREATED|REASON");
    ck_assert_str_eq(titles_of("users"), "NAME|KIND|ROLE|DISABLED|CREATED");
    ck_assert_str_eq(titles_of("events"), "TIME|KIND|SEVERITY|SUBJECT|MESSAGE");
}

END_TEST

START_TEST(the_time_of_what_happened_comes_first_and_sentences_last)
{
    ck_assert_str_eq(titles_of("decisions"),
                     "TIME|ION|CAMERA|FRAME|VERDICT|PERSON|LABEL|SCORE|THRESHOLD|MODEL VERSION|"
                     "LATENCY µs");
    ck_assert_str_eq(titles_of("policy-decisions"), "TIME|LINK|VERSION|POLICY|VERDICT|ACTOR|RULE");
}

END_TEST

START_TEST(what_answers_have_beside_the_record_comes_before_the_times)
{
    ck_assert_str_eq(
        titles_of("nodes"),
        "NAME|CPU SLOTS|MEMORY|ACCELERATORS|DISK FREE|DRAINING|STATE|CPUS USED|CPUS FREE|"
        "LAST SEEN|CLUSTER|ENDS|UNHEALTHY");
    ck_assert_str_eq(titles_of("runs"),
                     "ID|NAME|STATUS|MODEL|EPOCH|VALIDATION ACCURACY|ACCURACY|LOSS|BATCH ACCURACY|"
                     "BATCH LOSS|IMAGES PER SECOND|CREATED");
}

END_TEST

START_TEST(every_noun_names_members_of_its_record)
{
    for (size_t i = 0; i < cli_n_nouns; i++) {
        const struct cli_noun *noun = &cli_nouns[i];
        size_t n;
        (void)cli_noun_columns(&call, noun, &n);
        ck_assert_msg(n >= 2, "%s has %zu columns", noun->plural, n);
        ck_assert_msg(noun->key == NULL || weir_resource_field(noun->record, noun->key) != NULL,
                      "%s: no member %s", noun->plural, noun->key);
        for (const char *name = noun->filters; *name != '\0';) {
            size_t len = strcspn(name, " ");
            char *filter = weir_arena_memdup(&arena, name, len);
            bool searches = strcmp(filter, "filter") == 0 || strcmp(filter, "order") == 0 ||
                            strcmp(filter, "view") == 0; /* of the route (track/search.h) */
            searches = searches || (strcmp(noun->plural, "disagreements") == 0 &&
                                    strcmp(filter, "kind") != 0); /* of whom: of the route */
            ck_assert_msg(searches || strncmp(filter, "after", 5) == 0 ||
                              weir_resource_field(noun->record, filter) != NULL,
                          "%s: no member %s", noun->plural, filter);
            name += len + (name[len] == ' ');
        }
    }
}

END_TEST

WEIR_TEST_MAIN_WITH("noun", set_up, tear_down, columns_stand_in_the_order_of_the_record,
                    the_time_of_what_happened_comes_first_and_sentences_last,
                    what_answers_have_beside_the_record_comes_before_the_times,
                    every_noun_names_members_of_its_record)
