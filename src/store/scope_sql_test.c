/* What becomes of a statement's text, against what it should be; and that no way past the views compiles. */
#include "store/scope_sql.h"

#include "base/test_main.h"

#include <check.h>
#include <string.h>

/* Tables a and b belong to projects. */
static bool limit(const void *context, const char *table, const char *name, size_t len,
                  struct weir_buf *out)
{
    (void)context;
    bool is_known = strcmp(table, "a") == 0 || strcmp(table, "b") == 0;
    if (is_known) {
        weir_buf_printf(out, "seen(%.*s)", (int)len, name);
    }
    return is_known;
}

static const char *const cases[][2] = {
    {"SELECT * FROM a WHERE x = 'main.a'", NULL},
    {"SELECT * FROM a -- main.a\n WHERE /* main.a */ x = :main", NULL},
    {"VALUES (1)", NULL},
    {"INSERT INTO other SELECT * FROM a", NULL},
    {"UPDATE other SET x = 1", NULL},
    {"CREATE TABLE t (x TEXT)", NULL},
    {"", NULL},
    {"INSERT INTO a (x) VALUES (1) ON CONFLICT (x) DO UPDATE SET x = a.x + 1 WHERE a.x > 1",
     "INSERT INTO main.a (x) VALUES (1) ON CONFLICT (x) DO UPDATE SET x = a.x + 1 WHERE a.x > 1"},
    {"insert or ignore into \"a\" values (1)", "insert or ignore into main.\"a\" values (1)"},
    {"REPLACE INTO a VALUES (1)", "REPLACE INTO main.a VALUES (1)"},
    {"WITH a AS (SELECT 1 FROM b WHERE x = (1)) INSERT INTO b SELECT * FROM a",
     "WITH a AS (SELECT 1 FROM b WHERE x = (1)) INSERT INTO main.b SELECT * FROM a"},
    {"UPDATE a SET x = 1", "UPDATE main.a SET x = 1 WHERE seen(a)"},
    {"UPDATE OR REPLACE a AS t SET x = (SELECT y FROM b WHERE b.z = t.z) WHERE x = 1 OR y = 2",
     "UPDATE OR REPLACE main.a AS t SET x = (SELECT y FROM b WHERE b.z = t.z) WHERE ( x = 1 OR y = "
     "2) AND (seen(t))"},
    {"UPDATE a SET x = 1 FROM b WHERE b.x = a.x RETURNING x -- end",
     "UPDATE main.a SET x = 1 FROM b WHERE ( b.x = a.x) AND (seen(a)) RETURNING x -- end"},
    {"UPDATE [a] SET x = 1 WHERE x = 2 -- end\n",
     "UPDATE main.[a] SET x = 1 WHERE ( x = 2) AND (seen([a])) -- end\n"},
    {"DELETE FROM a;", "DELETE FROM main.a WHERE seen(a);"},
    {"DELETE FROM a WHERE x IN (SELECT x FROM b ORDER BY 1 LIMIT 3)",
     "DELETE FROM main.a WHERE ( x IN (SELECT x FROM b ORDER BY 1 LIMIT 3)) AND (seen(a))"},
    {"DELETE FROM a WHERE x = ';' OR x = ')'; ",
     "DELETE FROM main.a WHERE ( x = ';' OR x = ')') AND (seen(a)); "},
    {"DELETE FROM a WHERE x = 'it''s' LIMIT 1",
     "DELETE FROM main.a WHERE ( x = 'it''s') AND (seen(a)) LIMIT 1"},
};

START_TEST(a_statement_changes_the_table_in_its_scope)
{
    const char *sql = cases[_i][0], *expected = cases[_i][1] != NULL ? cases[_i][1] : sql;
    struct weir_buf out;
    struct weir_error err;
    weir_buf_init(&out, 4096);
    ck_assert_int_eq(scope_sql_write(sql, limit, NULL, &out, &err), WEIR_OK);
    ck_assert_str_eq(out.len > 0 ? out.data : "", expected);
    weir_buf_fini(&out);
}

END_TEST

static const char *const ways_past[] = {
    "SELECT * FROM main.a",
    "SELECT * FROM MAIN . a",
    "SELECT * FROM \"main\".a",
    "SELECT * FROM [main].[a]",
    "SELECT * FROM `Main`.a",
    "SELECT * FROM 'main'.a",
    "SELECT * FROM main/* */./* */a",
    "SELECT * FROM main -- x\n.a",
    "SELECT * FROM main \xEF\xBB\xBF.a",
    "SELECT * FROM temp.a",
    "SELECT 1 WHERE EXISTS (SELECT 1 FROM b JOIN main.a USING (x))",
    "INSERT INTO main.a VALUES (1)",
    "UPDATE main.a SET x = 1",
    "DELETE FROM main.a",
    "WITH c AS (SELECT * FROM main.a) SELECT * FROM c",
};

START_TEST(a_schema_is_not_named)
{
    struct weir_buf out;
    struct weir_error err;
    weir_buf_init(&out, 4096);
    ck_assert_msg(scope_sql_write(ways_past[_i], limit, NULL, &out, &err) == WEIR_ERR_INTERNAL,
                  "%s", ways_past[_i]);
    ck_assert_uint_eq(out.len, 0);
    weir_buf_fini(&out);
}

END_TEST

int main(void)
{
    Suite *suite = suite_create("scope_sql");
    TCase *tests = tcase_create("scope_sql");
    tcase_add_loop_test(tests, a_statement_changes_the_table_in_its_scope, 0,
                        WEIR_ARRAY_LEN(cases));
    tcase_add_loop_test(tests, a_schema_is_not_named, 0, WEIR_ARRAY_LEN(ways_past));
    suite_add_tcase(suite, tests);
    return weir_test_run(suite);
}
