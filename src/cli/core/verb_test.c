/* Verbs as rows: templates and lists say what their header says, and each row of each command is one that can be done. */
#include "cli/core/verb.h"

#include "api/routes.h"
#include "base/test_main.h"
#include "cli/core/noun.h"

#include <ctype.h>
#include <string.h>

struct test_options {
    struct cli_common common;
    char *note, *tags;
    int64_t times;
    bool force;
};

static const struct weir_option options[] = {
    CLI_COMMON_OPTIONS(test_options),
    WEIR_OPT(test_options, note, "the-note", 0, TEXT, NULL, 0, 0, "TEXT", ""),
    WEIR_OPT(test_options, tags, "tag", 0, LIST, NULL, 0, 0, "TAG", ""),
    WEIR_OPT(test_options, times, "times", 0, INT, "1", 0, 0, "N", ""),
    WEIR_OPT(test_options, force, "force", 0, BOOL, NULL, 0, 0, NULL, ""),
};

static const struct cli_command command = {.name = "test", CLI_OPTIONS(test_options, options)};
static struct weir_arena arena;
static struct test_options given;
static char *words[] = {"door", "a b/c", "7"};
static struct cli_call call;

static void set_up(void)
{
    weir_arena_init(&arena, 0);
    given = (struct test_options){.times = 1};
    call = (struct cli_call){.arena = &arena,
                             .command = &command,
                             .options = &given,
                             .common = &given.common,
                             .words = words,
                             .n_words = 3};
}

static void tear_down(void)
{
    weir_arena_fini(&arena);
}

START_TEST(a_template_is_filled_with_words_options_and_members)
{
    WEIR_AUTO(weir_json_auto_free)
    json_t *answer = json_pack("{s:s,s:{s:i},s:b,s:n,s:i}", "name", "train", "used", "cpus", 4,
                               "is_on", 1, "gone", "bytes", 1234567);
    given.note = "why";
    ck_assert_str_eq(cli_fill(&call, "{0}, {1}, {$}: {-the-note} {-times}", NULL, NULL),
                     "door, a b/c, 7: why 1");
    ck_assert_str_eq(
        cli_fill(&call, "{name} {used.cpus} {bytes:MB} {@} {@:short}", "0123456789", answer),
        "train 4 1.2 0123456789 23456789");
    ck_assert_str_eq(
        cli_fill(&call, "{is_on?on|off} {gone?on|off} {name=train?yes|no}", NULL, answer),
        "on off yes");
    ck_assert_str_eq(
        cli_fill(&call, "{name?, {name} has {used.cpus?{used.cpus} of it|none}}|", NULL, answer),
        ", train has 4 of it|");
    ck_assert_str_eq(cli_fill(&call, "{-force??force=1|}{-times=1?|s}{9}{8?a|b}", NULL, answer),
                     "b");
}

END_TEST

START_TEST(what_is_not_given_is_left_out_and_null_where_that_is_said)
{
    WEIR_AUTO(weir_json_auto_free) json_t *body = json_object(), *wanted = NULL;
    struct weir_error err;
    given.tags = "a\nb";
    ck_assert_int_eq(cli_members(&call,
                                 "name=0 -the-note? other=-the-note -tag -times -force by=@ n=#2 "
                                 "far=9 x=true y=false z=null noun='sweep'",
                                 "key", body, &err),
                     WEIR_OK);
    wanted = json_pack("{s:s,s:n,s:[s,s],s:i,s:b,s:s,s:i,s:b,s:b,s:n,s:s}", "name", "door",
                       "the_note", "tag", "a", "b", "times", 1, "force", 0, "by", "key", "n", 7,
                       "x", 1, "y", 0, "z", "noun", "sweep");
    ck_assert_msg(json_equal(body, wanted), "%s", weir_json_text(body, &arena));
}

END_TEST

START_TEST(a_text_that_is_no_utf8_is_refused_and_not_left_out)
{
    WEIR_AUTO(weir_json_auto_free) json_t *body = json_object();
    struct weir_error err;
    given.note = "\xff\xfe";
    ck_assert_int_eq(cli_members(&call, "-the-note", NULL, body, &err), WEIR_ERR_INVALID);
    ck_assert_str_eq(err.message, "the_note: it is no UTF-8 text");
    const struct cli_verb verb = {.call = "DELETE /api/v1/users/{-the-note}", .query = "-the-note"};
    ck_assert_str_eq(cli_verb_path(&call, &verb, NULL), "/api/v1/users/%FF%FE?the_note=%FF%FE");
}

END_TEST

START_TEST(a_path_is_encoded_and_its_query_has_what_was_given)
{
    const struct cli_verb verb = {.call = "GET /api/v1/ions/{1}/kpis?points=1",
                                  .query = "name=0 -the-note -force"};
    ck_assert_str_eq(cli_verb_path(&call, &verb, NULL),
                     "/api/v1/ions/a%20b%2Fc/kpis?points=1&name=door");
    given.force = true;
    given.note = "x&y";
    ck_assert_str_eq(cli_verb_path(&call, &verb, NULL),
                     "/api/v1/ions/a%20b%2Fc/kpis?points=1&name=door&the_note=x%26y&force=1");
}

END_TEST

/* ---- the rows that there are ------------------------------------------------------------------- */

static const struct cli_command *at;

static void check_source(const char *source, size_t len)
{
    char text[64];
    (void)snprintf(text, sizeof text, "%.*s", (int)len, source);
    if (text[0] == '-') {
        ck_assert_msg(weir_options_find(at->options, at->n_options, text + 1) != NULL,
                      "weir %s has no option %s", at->name, text);
    }
}

static void check_template(const char *text)
{
    while (text != NULL && (text = strchr(text, '{')) != NULL) {
        ck_assert_msg(strchr(text, '}') != NULL, "weir %s: %s", at->name, text);
        check_source(text + 1, strcspn(text + 1, "=?:}"));
        text++;
    }
}

static void check_members(const char *list)
{
    while (list != NULL && *list != '\0') {
        size_t len = strcspn(list, " "), name_len = strcspn(list, "= ?");
        bool is_named = list[name_len] == '=';
        ck_assert_msg(len > 0 && (is_named || list[0] == '-'), "weir %s: %s", at->name, list);
        const char *source = is_named ? list + name_len + 1 : list;
        check_source(source, strcspn(source, " ?"));
        list += len + (list[len] == ' ');
    }
}

/* Is a path one of this pattern of the API? What is in braces is any part. */
static bool fits(const char *path, const char *pattern)
{
    while (*path != '\0' && *path != '?' && *pattern != '\0') {
        if (*path == '{' || *pattern == '{') {
            path += strcspn(path, "/?");
            pattern += strcspn(pattern, "/");
        } else if (*path++ != *pattern++) {
            return false;
        }
    }
    return (*path == '\0' || *path == '?') && *pattern == '\0';
}

static void check_call(const char *text)
{
    size_t len = strcspn(text, " ");
    char path[256];
    (void)snprintf(path, sizeof path, "%s", text + len + 1);
    for (char *hole = path; (hole = strchr(hole, '{')) != NULL; hole++) {
        for (char *c = hole; *c != '}'; c++) {
            *c = *c == '?' || *c == '/' ? '_' : *c;
        }
    }
    const struct weir_route *route;
    for (size_t i = 0; (route = weir_route_at(api_routes, i)) != NULL; i++) {
        if (strlen(route->method) == len && strncmp(text, route->method, len) == 0 &&
            fits(path, route->pattern)) {
            return;
        }
    }
    ck_abort_msg("weir %s: the API has no %s", at->name, text);
}

START_TEST(each_row_of_each_command_names_what_there_is)
{
    size_t n = 0;
    for (size_t i = 0; i < cli_n_commands; i++) {
        at = cli_commands[i];
        ck_assert_msg((at->run == NULL) == (at->n_verbs > 0), "weir %s does nothing", at->name);
        for (size_t k = 0; k < at->n_verbs; k++) {
            const struct cli_verb *verb = &at->verbs[k];
            ck_assert_msg((verb->call != NULL) + (verb->lists != NULL) + (verb->run != NULL) == 1,
                          "weir %s, row %zu", at->name, k);
            ck_assert(verb->min_words <= verb->max_words && verb->max_words <= at->max_words);
            ck_assert(verb->of == NULL || cli_noun_find(verb->of) != NULL);
            ck_assert(verb->lists == NULL || cli_noun_find(verb->lists) != NULL);
            if (verb->call != NULL) {
                check_call(verb->call);
                n++;
            }
            check_template(verb->call);
            check_template(verb->say);
            check_template(verb->aside);
            check_members(verb->query);
            check_members(verb->body);
            check_members(verb->gives);
        }
    }
    ck_assert_uint_ge(n, 60);
}

END_TEST

WEIR_TEST_MAIN_WITH("cli_verb", set_up, tear_down,
                    a_template_is_filled_with_words_options_and_members,
                    what_is_not_given_is_left_out_and_null_where_that_is_said,
                    a_text_that_is_no_utf8_is_refused_and_not_left_out,
                    a_path_is_encoded_and_its_query_has_what_was_given,
                    each_row_of_each_command_names_what_there_is)
