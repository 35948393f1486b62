/* Words of fields: those that the database allows, and a filter by any other is refused, route by route. */
#include "api/caller_fixture.h"

#include "api/core/word.h"
#include "api/routes.h"
#include "base/test_main.h"
#include "store/stmt.h"

#define MAX_WORDS 64

/* ---- the database --------------------------------------------------------------------------------- */

struct checked {
    const struct weir_resource *resource;
    const char *field;
    char words[2048]; /* of the CHECK; "": it has none */
};

/* The words in "CHECK (field IN ('a', 'b'))" of the table's text. */
static void read_check(struct checked *checked, const char *sql)
{
    char begin[128];
    (void)snprintf(begin, sizeof begin, "CHECK (%s IN (", checked->field);
    const char *at = strstr(sql, begin);
    size_t len = 0;
    checked->words[0] = '\0';
    for (at = at != NULL ? at + strlen(begin) : NULL; at != NULL && *at != ')';) {
        const char *word = strchr(at, '\''), *end = word != NULL ? strchr(word + 1, '\'') : NULL;
        ck_assert(end != NULL);
        len += (size_t)snprintf(checked->words + len, sizeof checked->words - len, "%s%.*s",
                                len > 0 ? " " : "", (int)(end - word - 1), word + 1);
        at = end + 1;
        at += strspn(at, ", \n");
    }
}

static weir_status look_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct checked *checked = context;
    struct weir_arena arena;
    char **texts;
    size_t n;
    weir_arena_init(&arena, 0);
    weir_status status = weir_txn_query_texts(
        txn, "SELECT sql FROM sqlite_master WHERE type = 'table' AND name = :name",
        WEIR_BINDS(WEIR_BIND_TEXT("name", checked->resource->plural)), &arena, &texts, &n, err);
    read_check(checked, status == WEIR_OK && n == 1 ? texts[0] : "");
    weir_arena_fini(&arena);
    return status;
}

static bool is_among(const char *words, const char *word, size_t len)
{
    for (const char *at = words; *at != '\0';) {
        size_t n = strcspn(at, " ");
        if (n == len && strncmp(at, word, n) == 0) {
            return true;
        }
        at += n + (at[n] == ' ');
    }
    return false;
}

static bool has_all_of(const char *words, const char *others)
{
    for (const char *at = others; *at != '\0';) {
        size_t n = strcspn(at, " ");
        if (!is_among(words, at, n)) {
            return false;
        }
        at += n + (at[n] == ' ');
    }
    return true;
}

/* ---- the routes ----------------------------------------------------------------------------------- */

static bool takes(const struct weir_route_param *query, const char *name)
{
    while (query->name != NULL && strcmp(query->name, name) != 0) {
        query++;
    }
    return query->name != NULL;
}

/* Calls fn for each text field of a route's answer that the route takes as a filter. */
static int each_filter(int (*fn)(const struct weir_route *route, const struct weir_field *field))
{
    int n = 0;
    const struct weir_route *route;
    for (size_t i = 0; (route = weir_route_at(api_routes, i)) != NULL; i++) {
        if (strcmp(route->method, "GET") != 0 || (route->flags & ROUTE_LIST) == 0 ||
            route->query == NULL || route->out == NULL) {
            continue;
        }
        for (size_t k = 0; k < route->out->n_fields; k++) {
            const struct weir_field *field = &route->out->fields[k];
            if (field->type == WEIR_FIELD_TYPE_TEXT && takes(route->query, field->name)) {
                n += fn(route, field);
            }
        }
    }
    return n;
}

static int compare_with_database(const struct weir_route *route, const struct weir_field *field)
{
    struct weir_error err = {0};
    struct weir_arena arena;
    struct checked checked = {.resource = route->out, .field = field->name};
    must(weir_store_read(callers.fixture.store, look_in, &checked, &err), &err);
    weir_arena_init(&arena, 0);
    const char *words = api_words_of(route->out, field->name, &arena);
    if (checked.words[0] != '\0') {
        ck_assert_msg(words != NULL, "%s: %s is one of %s, and anything is taken", route->pattern,
                      field->name, checked.words);
        ck_assert_msg(has_all_of(words, checked.words) && has_all_of(checked.words, words),
                      "%s: %s is one of %s, not of %s", route->pattern, field->name, checked.words,
                      words);
    }
    weir_arena_fini(&arena);
    return checked.words[0] != '\0';
}

START_TEST(words_are_those_that_the_database_allows)
{
    int n = each_filter(compare_with_database);
    printf("%d fields that are filtered by have a CHECK\n", n);
    ck_assert_int_ge(n, 8);
}

END_TEST

static int ask_for_words(const struct weir_route *route, const struct weir_field *field)
{
    struct weir_arena arena;
    weir_arena_init(&arena, 0);
    const char *words = api_words_of(route->out, field->name, &arena);
    bool is_plain = words != NULL && strchr(route->pattern, '{') == NULL;
    if (is_plain) {
        char word[64];
        (void)snprintf(word, sizeof word, "%.*s", (int)strcspn(words, " "), words);
        EXPECT(200, "GET %s?%s=%s", route->pattern, field->name, word);
        size_t len = strlen(word); /* any capitals */
        word[0] = (char)(word[0] >= 'a' && word[0] <= 'z' ? word[0] - 32 : word[0] + 32);
        EXPECT(200, "GET %s?%s=%s", route->pattern, field->name, word);
        (void)snprintf(word + len, sizeof word - len, "x");
        EXPECT(400, "GET %s?%s=%s", route->pattern, field->name, word);
        ck_assert_ptr_nonnull(strstr(said_text("error.message"), "is none of "));
        ck_assert_ptr_nonnull(strstr(said_text("error.message"), "; did you mean "));
        EXPECT(400, "GET %s?%s=", route->pattern, field->name);
    }
    weir_arena_fini(&arena);
    return is_plain;
}

START_TEST(a_filter_by_another_word_is_refused)
{
    int n = each_filter(ask_for_words);
    printf("%d filters take words only\n", n);
    ck_assert_int_ge(n, 12);
}

END_TEST

START_TEST(a_search_by_another_status_is_refused)
{
    EXPECT(200, "GET " API "/runs?filter=status%%20=%%20'running'");
    EXPECT(200, "GET " API "/runs?filter=not%%20status%%20in%%20('FAILED','KILLED')");
    EXPECT(400, "GET " API "/runs?filter=status%%20=%%20'RUNING'");
    ck_assert_ptr_nonnull(strstr(said_text("error.message"), "did you mean RUNNING?"));
    EXPECT(400, "GET " API "/runs?filter=status%%20!=%%20'DONE'%%20or%%20metrics.x%%20<%%201");
    EXPECT(400, "GET " API "/runs?filter=status%%20in%%20('FAILED','KILED')");
    EXPECT(200, "GET " API "/runs?filter=status%%20like%%20'RUN%%25'");
    EXPECT(200, "GET " API "/runs?filter=name%%20=%%20'RUNING'");
}

END_TEST

WEIR_TEST_MAIN_WITH("word", callers_open, callers_close, words_are_those_that_the_database_allows,
                    a_filter_by_another_word_is_refused, a_search_by_another_status_is_refused)
