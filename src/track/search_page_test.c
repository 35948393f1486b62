/* Pages of a search over numbered rows, one after another, compared with the rows as they were put in. */
#include "track/search_page.h"

#include "base/rng.h"
#include "store/store_fixture.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { N_ROWS = 50, N_WALKS = 60 };

struct item {
    int64_t number;
    char *text;
};

static struct store_fixture fixture;
static struct weir_rng rng;

static size_t below(size_t n)
{
    return (size_t)weir_rng_below(&rng, n);
}

/* Of each number: its text is as long as this. */
static size_t weight_of(int64_t number)
{
    return (size_t)(number * 7 % 11);
}

static void read_item(const struct weir_stmt *stmt, struct weir_arena *arena, void *out_item)
{
    *(struct item *)out_item =
        (struct item){.number = weir_stmt_int(stmt, 0), .text = weir_stmt_text(stmt, 1, arena)};
}

static size_t weigh_item(const void *item)
{
    return strlen(((const struct item *)item)->text);
}

static char *number_cursor(const struct weir_stmt *stmt, struct weir_arena *arena)
{
    return weir_arena_printf(arena, "%" PRId64, weir_stmt_int(stmt, 0));
}

static const struct weir_search_rows rows = {.name = "items",
                                             .item_bytes = sizeof(struct item),
                                             .n_columns = 2,
                                             .read = read_item,
                                             .weigh = weigh_item};
static const struct weir_search_rows rows_by_number = {
    .name = "items", .item_bytes = sizeof(struct item), .read = read_item, .cursor = number_cursor};

static weir_status populate(struct weir_txn *txn, void *context, struct weir_error *err)
{
    (void)context;
    WEIR_TRY(weir_txn_exec(txn, "CREATE TABLE numbered (n INTEGER PRIMARY KEY, t TEXT) STRICT",
                           WEIR_NO_BINDS, NULL, err));
    for (int64_t i = 0; i < N_ROWS; i++) {
        char text[16] = "";
        memset(text, 'x', weight_of(i));
        WEIR_TRY(weir_txn_exec(txn, "INSERT INTO numbered VALUES (:n, :t)",
                               WEIR_BINDS(WEIR_BIND_INT("n", i), WEIR_BIND_TEXT("t", text)), NULL,
                               err));
    }
    return WEIR_OK;
}

static void set_up(void)
{
    const char *text = getenv("WEIR_TEST_SEED");
    uint64_t seed = text != NULL ? strtoull(text, NULL, 10) : 7;
    printf("seed %" PRIu64 "\n", seed);
    weir_rng_init(&rng, seed, 0);
    fixture_make(&fixture, populate);
}

static void tear_down(void)
{
    fixture_fini(&fixture);
}

/* ---- one page -------------------------------------------------------------------------------- */

struct look {
    struct weir_search_page page;
    struct weir_arena *arena;
    weir_status status;
};

/* Greatest number first. */
static weir_status read_by_columns(struct look *look, struct weir_txn *txn,
                                   struct weir_search_sql *sql, struct weir_error *err)
{
    weir_search_columns_add(&look->page.columns, "n", true, WEIR_BIND_TYPE_INT);
    weir_search_sql_put(sql, "SELECT n, t");
    weir_search_sql_columns(sql, &look->page.columns);
    weir_search_sql_put(sql, " FROM numbered WHERE n >= 0");
    WEIR_TRY(weir_search_page_sql(&look->page, sql, err));
    return weir_search_page_read(&look->page, txn, sql, err);
}

/* Least number first. */
static weir_status read_by_number(struct look *look, struct weir_txn *txn,
                                  struct weir_search_sql *sql, struct weir_error *err)
{
    weir_search_sql_put(sql, "SELECT n, t FROM numbered WHERE n > ? ORDER BY n");
    weir_search_sql_bind(
        sql, WEIR_BIND_INT(NULL, look->page.cursor != NULL ? atoll(look->page.cursor) : -1));
    WEIR_TRY(weir_search_page_limit(&look->page, sql, err));
    return weir_search_page_read(&look->page, txn, sql, err);
}

static weir_status read_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct look *look = context;
    struct weir_search_sql sql;
    weir_search_sql_init(&sql, look->arena);
    weir_status status = look->page.rows == &rows ? read_by_columns(look, txn, &sql, err)
                                                  : read_by_number(look, txn, &sql, err);
    weir_search_sql_fini(&sql);
    return status;
}

static struct look look_at(const struct weir_search_rows *as, const char *cursor, size_t limit,
                           size_t max_bytes, struct weir_arena *arena)
{
    struct look look = {
        .page = {.rows = as, .cursor = cursor, .limit = limit, .max_bytes = max_bytes},
        .arena = arena};
    look.status = weir_store_read(fixture.store, read_in, &look, &fixture.err);
    return look;
}

/* How many of the rows from `first` on, in steps of `step`, a page has. */
static size_t n_expected(int64_t first, int64_t step, size_t limit, size_t max_bytes)
{
    size_t n = 0, bytes = 0;
    for (int64_t i = first; i >= 0 && i < N_ROWS && n < limit; i += step) {
        n++;
        bytes += weight_of(i);
        if (max_bytes > 0 && bytes > max_bytes) {
            break;
        }
    }
    return n;
}

/* All pages, one after another. */
static void walk(const struct weir_search_rows *as, int64_t first, int64_t step, size_t limit,
                 size_t max_bytes)
{
    const char *cursor = NULL;
    int64_t at = first;
    do {
        struct look look = look_at(as, cursor, limit, max_bytes, &fixture.arena);
        const struct item *items = look.page.items;
        size_t n = n_expected(at, step, limit, max_bytes);
        ck_assert_msg(look.status == WEIR_OK, "%s", fixture.err.message);
        ck_assert_uint_eq(look.page.n_items, n);
        for (size_t i = 0; i < n; i++, at += step) {
            ck_assert_int_eq(items[i].number, at);
            ck_assert_uint_eq(strlen(items[i].text), weight_of(at));
        }
        cursor = look.page.next;
        ck_assert_int_eq(cursor != NULL, at >= 0 && at < N_ROWS);
    } while (cursor != NULL);
}

START_TEST(pages_are_all_rows_once_and_in_order)
{
    walk(&rows, N_ROWS - 1, -1, N_ROWS, 0);
    walk(&rows, N_ROWS - 1, -1, N_ROWS - 1, 0);
    walk(&rows_by_number, 0, 1, N_ROWS, 0);
    for (int i = 0; i < N_WALKS; i++) {
        walk(&rows, N_ROWS - 1, -1, 1 + below(N_ROWS + 5), below(2) * below(90));
        walk(&rows_by_number, 0, 1, 1 + below(N_ROWS + 5), 0);
    }
}

END_TEST

START_TEST(no_row_makes_an_empty_page)
{
    struct look look = look_at(&rows_by_number, "1000", 5, 0, &fixture.arena);
    ck_assert_int_eq(look.status, WEIR_OK);
    ck_assert_ptr_null(look.page.items);
    ck_assert_uint_eq(look.page.n_items, 0);
    ck_assert_ptr_null(look.page.next);
}

END_TEST

START_TEST(what_cannot_be_read_is_refused)
{
    struct weir_arena small;
    struct look look = look_at(&rows, "nonsense", 5, 0, &fixture.arena);
    ck_assert_int_eq(look.status, WEIR_ERR_INVALID);
    ck_assert_ptr_nonnull(strstr(fixture.err.message, "Invalid page token"));
    weir_arena_init(&small, 1);
    look = look_at(&rows, NULL, 5, 0, &small);
    ck_assert_int_eq(look.status, WEIR_ERR_LIMIT);
    ck_assert_ptr_nonnull(strstr(fixture.err.message, "items"));
    weir_arena_fini(&small);
}

END_TEST

START_TEST(sql_that_is_too_long_is_refused)
{
    struct weir_search_page page = {.rows = &rows_by_number, .limit = 1};
    struct weir_search_sql sql;
    weir_search_sql_init(&sql, &fixture.arena);
    char *text = weir_arena_alloc(&fixture.arena, ((size_t)1 << 20) + 1);
    memset(text, ' ', (size_t)1 << 20);
    weir_search_sql_put(&sql, text);
    ck_assert_int_eq(weir_search_page_limit(&page, &sql, &fixture.err), WEIR_ERR_INVALID);
    ck_assert_ptr_nonnull(strstr(fixture.err.message, "too long"));
    weir_search_sql_fini(&sql);
}

END_TEST

WEIR_TEST_MAIN_WITH("search_page", set_up, tear_down, pages_are_all_rows_once_and_in_order,
                    no_row_makes_an_empty_page, what_cannot_be_read_is_refused,
                    sql_that_is_too_long_is_refused)
