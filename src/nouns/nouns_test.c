/* Every table of the schema is described, once and truly: by the database itself. */
#include "nouns/nouns.h"

#include "store/row_scope.h"
#include "store/scope_map.h"
#include "store/stmt.h"
#include "store/store_fixture.h"

#include "base/test_main.h"

#include <check.h>
#include <string.h>

static struct store_fixture fixture;

static void set_up(void)
{
    fixture_init(&fixture);
    fixture_open(&fixture, (struct weir_store_config){.noun_at = weir_noun_at});
}

static void tear_down(void)
{
    fixture_fini(&fixture);
}

static const struct weir_noun *noun_of(const char *table)
{
    const struct weir_noun *noun;
    for (size_t i = 0; (noun = weir_noun_at(i)) != NULL; i++) {
        if (strcmp(noun->table, table) == 0) {
            return noun;
        }
    }
    return NULL;
}

struct asking {
    char *sql;
    char **texts;
    size_t n;
};

static weir_status texts_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct asking *asking = context;
    return weir_txn_query_texts(txn, asking->sql, WEIR_NO_BINDS, &fixture.arena, &asking->texts,
                                &asking->n, err);
}

static bool has_column(const char *table, const char *column)
{
    struct asking asking = {.sql = weir_arena_printf(&fixture.arena,
                                                     "SELECT name FROM pragma_table_info('%s')"
                                                     " WHERE name = '%s'",
                                                     table, column)};
    fixture_read(&fixture, texts_in, &asking);
    return asking.n == 1;
}

#define COLUMN(noun, column)                                                                       \
    ck_assert_msg((column) == NULL || has_column((noun)->table, column), "%s has no column %s",    \
                  (noun)->table, column)

START_TEST(every_table_is_described_once)
{
    struct asking asking = {.sql = "SELECT name FROM sqlite_master WHERE type = 'table' AND name"
                                   " NOT LIKE 'sqlite_%'"};
    const struct weir_noun *noun;
    size_t n = 0;
    fixture_read(&fixture, texts_in, &asking);
    for (size_t i = 0; i < asking.n; i++) {
        ck_assert_msg(noun_of(asking.texts[i]) != NULL,
                      "%s: describe it, and list it in its domain's nouns.def", asking.texts[i]);
    }
    while ((noun = weir_noun_at(n)) != NULL) {
        ck_assert_msg(noun_of(noun->table) == noun, "%s is described twice", noun->table);
        n++;
    }
    ck_assert_msg(n == asking.n, "%zu descriptions of %zu tables", n, asking.n);
}

END_TEST

START_TEST(a_table_has_a_rule_or_a_reason)
{
    const struct weir_noun *noun;
    for (size_t i = 0; (noun = weir_noun_at(i)) != NULL; i++) {
        ck_assert_msg((noun->rules[0] != NULL) != (noun->stays != NULL), "%s", noun->table);
    }
}

END_TEST

/* The table behind a row that is of another's, up to the one that names its project. */
static const struct weir_noun *owner_of(const struct weir_noun *noun)
{
    for (int depth = 0; noun != NULL && noun->of.table != NULL && depth < 8; depth++) {
        COLUMN(noun, noun->of.column);
        ck_assert_msg(has_column(noun->of.table, noun->of.key), "%s: no %s.%s", noun->table,
                      noun->of.table, noun->of.key);
        noun = noun_of(noun->of.table);
    }
    return noun;
}

START_TEST(rows_are_hidden_by_scopes_as_their_nouns_say)
{
    static const struct weir_row_scope nobody = {.is_all = false};
    const struct weir_noun *noun;
    for (size_t i = 0; (noun = weir_noun_at(i)) != NULL; i++) {
        const struct weir_noun *owner = owner_of(noun);
        struct asking asking = {
            .sql = weir_arena_printf(&fixture.arena,
                                     "SELECT name FROM sqlite_temp_master WHERE name = '%s'",
                                     noun->table)};
        COLUMN(noun, noun->project);
        COLUMN(noun, noun->subject.key);
        ck_assert_int_eq(weir_store_read_scoped(fixture.store, &nobody, texts_in, &asking, NULL),
                         WEIR_OK);
        ck_assert_msg(owner != NULL, "%s: what it is of is not described", noun->table);
        ck_assert_msg((owner->project != NULL) == (asking.n == 1), "%s: is it a project's?",
                      noun->table);
        ck_assert_msg(noun->project == NULL || noun->of.table == NULL, "%s has two owners",
                      noun->table);
    }
}

END_TEST

static weir_status in_project(struct weir_txn *txn, void *context, struct weir_error *err)
{
    const char *sql = context;
    int64_t n;
    return weir_txn_query_int(txn, sql, WEIR_BINDS(WEIR_BIND_TEXT("project", "p")), 0, &n, err);
}

START_TEST(rows_of_a_project_are_found_also_over_several_tables)
{
    const struct weir_noun *noun;
    for (size_t i = 0; (noun = weir_noun_at(i)) != NULL; i++) {
        const char *condition = weir_noun_in_project(noun, &fixture.arena);
        ck_assert_msg((condition != NULL) == (owner_of(noun)->project != NULL), "%s", noun->table);
        if (condition != NULL) {
            fixture_read(&fixture, in_project,
                         weir_arena_printf(&fixture.arena, "SELECT count(*) FROM %s WHERE %s",
                                           noun->table, condition));
        }
    }
}

END_TEST

static weir_status owners_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct asking *asking = context;
    const struct scope_map *map = txn->connection->map;
    (void)err;
    asking->n = map->n_owners - SCOPE_PROJECT - 1;
    asking->texts = WEIR_ARENA_ARRAY(&fixture.arena, asking->n, char *);
    for (size_t i = 0; i < asking->n; i++) {
        asking->texts[i] =
            weir_arena_strdup(&fixture.arena, map->owners[SCOPE_PROJECT + 1 + i].sql);
    }
    return WEIR_OK;
}

/* Asked of each row that is in no scope yet. */
START_TEST(whose_a_row_is_is_found_by_indexes)
{
    static const char *const few[] = {NULL};
    static const char schema[] = "main.";
    struct asking asking = {0};
    fixture_read(&fixture, owners_in, &asking);
    ck_assert_uint_ge(asking.n, 10);
    for (size_t i = 0; i < asking.n; i++) {
        char *at;
        while ((at = strstr(asking.texts[i], schema)) != NULL) { /* as a statement may say it */
            memmove(at, at + strlen(schema), strlen(at + strlen(schema)) + 1);
        }
        fixture_refuse_walks(&fixture, asking.texts[i], few);
    }
}

END_TEST

static void check_rule(const struct weir_noun *noun, const struct weir_retain_rule *rule)
{
    const struct weir_noun *other;
    ck_assert_msg(*rule->what != '\0' && *rule->rule != '\0' && rule->row_bytes > 0 &&
                      rule->limit.keep_ms > 0 && rule->limit.max_bytes > 0,
                  "%s", rule->name);
    ck_assert_msg(!rule->is_of_project || weir_noun_in_project(noun, &fixture.arena) != NULL, "%s",
                  rule->name);
    for (size_t i = 0; (other = weir_noun_at(i)) != NULL; i++) {
        for (size_t k = 0; k < WEIR_ARRAY_LEN(other->rules) && other->rules[k] != NULL; k++) {
            ck_assert_msg(other->rules[k] == rule ||
                              (other->rules[k]->place != rule->place &&
                               strcmp(other->rules[k]->name, rule->name) != 0),
                          "%s: a name and a place of its own", rule->name);
        }
    }
}

START_TEST(a_rule_has_a_name_and_a_place_of_its_own)
{
    const struct weir_noun *noun;
    for (size_t i = 0; (noun = weir_noun_at(i)) != NULL; i++) {
        for (size_t k = 0; k < WEIR_ARRAY_LEN(noun->rules) && noun->rules[k] != NULL; k++) {
            check_rule(noun, noun->rules[k]);
        }
    }
}

END_TEST

static void check_captured(const struct weir_noun *noun)
{
    const struct weir_captured *captured = noun->captured;
    const struct weir_noun *other;
    ck_assert_str_eq(captured->resource->plural, noun->table);
    COLUMN(noun, captured->by);
    COLUMN(noun, captured->time);
    COLUMN(noun, captured->ended);
    for (size_t i = 0; (other = weir_noun_at(i)) != NULL; i++) {
        ck_assert_msg(other->captured == NULL || other == noun ||
                          (other->captured->place != captured->place &&
                           strcmp(other->captured->name, captured->name) != 0),
                      "%s: a name and a place of its own", captured->name);
    }
}

START_TEST(what_is_taken_and_forgotten_are_columns)
{
    const struct weir_noun *noun;
    for (size_t i = 0; (noun = weir_noun_at(i)) != NULL; i++) {
        const struct weir_forgets *forgets = noun->forgets;
        ck_assert_msg(forgets == NULL || weir_noun_in_project(noun, &fixture.arena) != NULL, "%s",
                      noun->table);
        if (noun->captured != NULL) {
            check_captured(noun);
        }
        for (size_t k = 0; forgets != NULL && k < WEIR_ARRAY_LEN(forgets->renamed); k++) {
            COLUMN(noun, forgets->renamed[k]);
            COLUMN(noun, forgets->key);
            COLUMN(noun, forgets->frozen_rename);
            COLUMN(noun, forgets->goes);
            COLUMN(noun, forgets->frozen_goes);
            COLUMN(noun, forgets->picture);
        }
    }
}

END_TEST

WEIR_TEST_MAIN_WITH("nouns", set_up, tear_down, every_table_is_described_once,
                    a_table_has_a_rule_or_a_reason, rows_are_hidden_by_scopes_as_their_nouns_say,
                    rows_of_a_project_are_found_also_over_several_tables,
                    whose_a_row_is_is_found_by_indexes, a_rule_has_a_name_and_a_place_of_its_own,
                    what_is_taken_and_forgotten_are_columns)
