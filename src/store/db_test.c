/* What store/db.h asks of a driver, of every one in the table: a driver that comes is run through the same. */
#include "store/db.h"

#include "base/file.h"
#include "base/kind_laws.h"
#include "base/rng.h"
#include "base/test_main.h"
#include "store/space.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define ROWS_MAX 64

static char dir[64], path[96];
static const struct db_ops *ops;
static struct db *writer, *reader;

static struct db *opened(bool is_reader)
{
    struct db_config config = {.path = path, .is_reader = is_reader};
    struct weir_error err;
    struct db *db;
    ck_assert_msg(ops->open(&config, &db, &err) == WEIR_OK, "%s", err.message);
    return db;
}

static void begin(const struct weir_kind *kind)
{
    (void)snprintf(dir, sizeof dir, "/tmp/db_test.XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(dir));
    (void)snprintf(path, sizeof path, "%s/db", dir);
    ops = kind->ops;
    writer = opened(false);
    reader = opened(true);
}

static void finish(void)
{
    ops->close(reader);
    ops->close(writer);
    ck_assert_int_eq(weir_dir_remove(dir, NULL), WEIR_OK);
}

static void must(struct db *db, const char *sql)
{
    ck_assert_msg(ops->exec(db, sql) == DB_OK, "%s: %s", sql, ops->message(db));
}

static struct db_stmt *prepared(struct db *db, const char *sql)
{
    struct db_stmt *stmt;
    ck_assert_msg(ops->prepare(db, sql, &stmt) == DB_OK, "%s: %s", sql, ops->message(db));
    return stmt;
}

static int64_t count(struct db *db)
{
    struct db_stmt *stmt = prepared(db, "SELECT count(*) FROM t");
    ck_assert_int_eq(ops->step(db, stmt), DB_ROW);
    int64_t n = ops->column_int(stmt, 0);
    ops->finalize(stmt);
    return n;
}

static enum db_end insert(const char *sql)
{
    struct db_stmt *stmt = prepared(writer, sql);
    enum db_end end = ops->step(writer, stmt);
    ops->finalize(stmt);
    return end;
}

/** A row as it should be. */
struct row {
    int64_t i64;
    double f64;
    char text[24];
    bool has_text;
};

static void make_row(struct weir_rng *rng, struct row *out)
{
    static const int64_t edges[] = {0, 1, -1, INT64_MAX, INT64_MIN, (int64_t)1 << 53};
    static const char *const texts[] = {"",  "a",       "A",  "z", "é", "\xf0\x9f\x98\x80",
                                        "%", "O'Brien", "a b"};
    out->i64 =
        weir_rng_below(rng, 2) == 0 ? edges[weir_rng_below(rng, 6)] : (int64_t)weir_rng_u64(rng);
    out->f64 = weir_rng_below(rng, 4) == 0 ? (double)NAN : ldexp(weir_rng_f64(rng) - 0.5, 40);
    out->has_text = weir_rng_below(rng, 5) != 0;
    (void)snprintf(out->text, sizeof out->text, "%s%" PRIu64, texts[weir_rng_below(rng, 9)],
                   (uint64_t)weir_rng_below(rng, 9));
}

static int by_bytes(const void *a, const void *b)
{
    const struct row *x = a, *y = b;
    if (!x->has_text || !y->has_text) {
        return (int)x->has_text - (int)y->has_text; /* NULL first */
    }
    return strcmp(x->text, y->text);
}

static void check_row(struct db_stmt *stmt, const struct row *row, bool is_sorted)
{
    size_t len;
    const char *text = ops->column_text(stmt, 2, &len);
    ck_assert_int_eq(ops->column_is_null(stmt, 2), !row->has_text);
    ck_assert(row->has_text ? strcmp(text, row->text) == 0 && len == strlen(row->text)
                            : text == NULL);
    if (!is_sorted) { /* rows of the same text may change places */
        ck_assert_int_eq(ops->column_int(stmt, 0), row->i64);
        double f64 = ops->column_f64(stmt, 1);
        ck_assert(isnan(row->f64) ? isnan(f64) && ops->column_is_null(stmt, 1) : f64 == row->f64);
    }
}

static void check_rows(struct db *db, const char *sql, const struct row *rows, size_t n,
                       bool sorted)
{
    struct db_stmt *stmt = prepared(db, sql);
    for (size_t i = 0; i < n; i++) {
        ck_assert_int_eq(ops->step(db, stmt), DB_ROW);
        check_row(stmt, &rows[i], sorted);
    }
    ck_assert_int_eq(ops->step(db, stmt), DB_OK);
    ops->finalize(stmt);
}

/* Values come back as they were given; a savepoint and a rollback undo what they should, and no more. */
/** What the table should hold. */
struct list {
    struct row rows[ROWS_MAX];
    size_t n;
};

static void add_row(struct db_stmt *stmt, struct weir_rng *rng, struct list *list)
{
    int64_t before = ops->n_changes(writer);
    struct row *row = &list->rows[list->n];
    make_row(rng, row);
    (void)ops->bind_int(writer, stmt, ops->find_param(stmt, ":n"), (int64_t)list->n);
    (void)ops->bind_int(writer, stmt, ops->find_param(stmt, ":i"), row->i64);
    (void)ops->bind_f64(writer, stmt, ops->find_param(stmt, ":f"), row->f64);
    if (row->has_text) {
        (void)ops->bind_text(writer, stmt, ops->find_param(stmt, ":x"), row->text);
    }
    ck_assert_int_eq(ops->step(writer, stmt), DB_OK);
    ops->reset(stmt); /* and what is not bound is NULL again */
    ck_assert_int_eq(ops->n_changed(writer), 1);
    ck_assert_int_eq(ops->n_changes(writer), before + 1);
    list->n++;
}

/* Some rows, the last of them behind a savepoint or not, of which a part or all is undone or not. */
static void play_round(struct db_stmt *stmt, struct weir_rng *rng, struct list *list)
{
    size_t n_before = list->n, n_saved = list->n;
    bool is_saved = false, is_undone = weir_rng_below(rng, 2) == 0;
    ck_assert_int_eq(ops->run(writer, DB_WRITE), DB_OK);
    for (uint64_t left = weir_rng_below(rng, 6); left > 0 && list->n < ROWS_MAX; left--) {
        if (!is_saved && weir_rng_below(rng, 3) == 0) {
            ck_assert_int_eq(ops->run(writer, DB_SAVE), DB_OK);
            is_saved = true;
            n_saved = list->n;
        }
        add_row(stmt, rng, list);
    }
    if (is_saved) {
        ck_assert_int_eq(ops->run(writer, is_undone ? DB_UNDO : DB_RELEASE), DB_OK);
        list->n = is_undone ? n_saved : list->n;
    }
    ck_assert_int_eq(count(reader), (int64_t)n_before); /* not yet */
    ck_assert(ops->is_in_transaction(writer));
    is_undone = weir_rng_below(rng, 4) == 0;
    ck_assert_int_eq(ops->run(writer, is_undone ? DB_ROLLBACK : DB_COMMIT), DB_OK);
    ck_assert(!ops->is_in_transaction(writer));
    list->n = is_undone ? n_before : list->n;
    ck_assert_int_eq(count(reader), (int64_t)list->n);
}

/* Values come back as they were given; a savepoint and a rollback undo what they should, and no more. */
START_TEST(rows_are_those_of_a_plain_list)
{
    const char *given = getenv("WEIR_TEST_SEED");
    uint64_t seed;
    struct weir_rng rng;
    struct list list = {.n = 0};
    weir_random_bytes(&seed, sizeof seed);
    seed = given != NULL ? strtoull(given, NULL, 10) : seed;
    printf("WEIR_TEST_SEED=%" PRIu64 "\n", seed);
    weir_rng_init(&rng, seed, 0);
    begin(db_kinds.kinds[_i]);
    must(writer, "CREATE TABLE t (n BIGINT PRIMARY KEY, i BIGINT, f DOUBLE PRECISION, x TEXT)");
    struct db_stmt *stmt = prepared(
        writer, "INSERT INTO t (n, f, i, x) VALUES (:n, :f, CASE WHEN :i = :i THEN :i END, :x)");
    ck_assert_int_eq(ops->find_param(stmt, ":none"), 0);
    for (int round = 0; round < 30; round++) {
        play_round(stmt, &rng, &list);
    }
    ops->finalize(stmt);
    check_rows(reader, "SELECT i, f, x FROM t ORDER BY n", list.rows, list.n, false);
    qsort(list.rows, list.n, sizeof *list.rows, by_bytes);
    check_rows(reader, "SELECT i, f, x FROM t ORDER BY x", list.rows, list.n, true);
    finish();
}

END_TEST

START_TEST(what_fails_ends_as_the_header_says)
{
    char verdict[WEIR_ERROR_MESSAGE_BYTES];
    struct weir_store_space space;
    struct db_stmt *stmt;
    bool has;
    begin(db_kinds.kinds[_i]);
    must(writer, "CREATE TABLE t (n BIGINT PRIMARY KEY, p BIGINT REFERENCES t (n), x TEXT NOT NULL,"
                 " CHECK (n < 100)); INSERT INTO t VALUES (1, NULL, 'Ab')");
    ck_assert_int_eq(insert("INSERT INTO t VALUES (1, NULL, 'x')"), DB_EXISTS);
    ck_assert_int_eq(insert("INSERT INTO t VALUES (2, 7, 'x')"), DB_REFERENCE);
    ck_assert_int_eq(insert("INSERT INTO t VALUES (2, NULL, NULL)"), DB_INVALID);
    ck_assert_int_eq(insert("INSERT INTO t VALUES (200, NULL, 'x')"), DB_INVALID);
    ck_assert_int_eq(ops->prepare(writer, "SELECT nothing FROM t", &stmt), DB_ERROR);
    ck_assert_int_ne(ops->message(writer)[0], '\0');
    ck_assert_int_eq(ops->exec(reader, "DELETE FROM t"), DB_READ_ONLY);
    ck_assert_int_eq(count(reader), 1);
    ck_assert(ops->has_table(reader, "t", &has) == DB_OK && has);
    ck_assert(ops->has_table(reader, "u", &has) == DB_OK && !has);
    ck_assert_int_eq(ops->space(reader, &space), DB_OK);
    ck_assert_int_gt(space.bytes, 0);
    ck_assert_int_eq(ops->check(reader, NULL, NULL, verdict), DB_OK);
    ck_assert_str_eq(verdict, "");
    /* LIKE looks at case. */
    must(writer, "DELETE FROM t WHERE x LIKE 'a%' OR x LIKE '%B'");
    ck_assert_int_eq(count(reader), 1);
    must(writer, "DELETE FROM t WHERE x LIKE '_b'");
    ck_assert_int_eq(count(reader), 0);
    finish();
}

END_TEST

START_TEST(a_second_writer_is_refused_while_the_first_is_open)
{
    begin(db_kinds.kinds[_i]);
    struct db_config config = {.path = path};
    struct weir_error err;
    struct db *second;
    ck_assert_int_eq(ops->open(&config, &second, &err), WEIR_ERR_CONFLICT);
    ck_assert_msg(strstr(err.message, path) != NULL, "%s", err.message);
    ops->close(writer);
    writer = opened(false);
    finish();
}

END_TEST

/* A hint is part of the statement for the database that it is for: one of an index that is not there is no SQL. */
START_TEST(sqlite_takes_its_hints)
{
    struct db_stmt *stmt;
    begin(weir_registry_get(&db_kinds, "sqlite"));
    must(writer, "CREATE TABLE t (n BIGINT); CREATE INDEX t_n ON t (n)");
    stmt = prepared(writer, "SELECT n FROM t /*+ INDEXED BY t_n */ WHERE n = 1");
    ops->finalize(stmt);
    ck_assert_int_eq(ops->prepare(writer, "SELECT n FROM t /*+ INDEXED BY none */", &stmt),
                     DB_ERROR);
    stmt = prepared(writer, "SELECT n FROM t /* INDEXED BY none */");
    ops->finalize(stmt);
    finish();
}

END_TEST

START_TEST(a_database_is_found_by_its_path)
{
    const struct db_ops *found;
    struct weir_error err;
    kind_laws_check(&db_kinds);
    ck_assert_int_eq(db_find("/state/weir.db", &found, &err), WEIR_OK);
    ck_assert_ptr_eq(found, weir_registry_get(&db_kinds, "sqlite")->ops);
    ck_assert_int_eq(db_find("nosuch://host/weir", &found, &err), WEIR_ERR_INVALID);
    ck_assert_msg(strstr(err.message, "nosuch") != NULL, "%s", err.message);
}

END_TEST

int main(void)
{
    Suite *suite = suite_create("db");
    TCase *tcase = tcase_create("db");
    int n = (int)db_kinds.n_kinds;
    tcase_add_loop_test(tcase, rows_are_those_of_a_plain_list, 0, n);
    tcase_add_loop_test(tcase, what_fails_ends_as_the_header_says, 0, n);
    tcase_add_loop_test(tcase, a_second_writer_is_refused_while_the_first_is_open, 0, n);
    tcase_add_test(tcase, sqlite_takes_its_hints);
    tcase_add_test(tcase, a_database_is_found_by_its_path);
    suite_add_tcase(suite, tcase);
    return weir_test_run(suite);
}
