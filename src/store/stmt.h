/**
 * Statements: SQL for what record access (store/table.h) does not cover.
 *
 * SQL is a named constant beside the noun it serves; values are bound by name, never pasted in. A
 * statement is prepared once per connection and kept.
 *
 *     static const char sql_by_state[] = "SELECT id FROM jobs WHERE state = :state ORDER BY id";
 *
 *     struct weir_stmt *stmt;
 *     bool has_row;
 *     WEIR_TRY(weir_stmt_open(txn, sql_by_state, WEIR_BINDS(WEIR_BIND_TEXT("state", "RUNNING")),
 *                             &stmt, err));
 *     while ((status = weir_stmt_step(stmt, &has_row, err)) == WEIR_OK && has_row) {
 *         char *id = weir_stmt_text(stmt, 0, arena);
 *     }
 *     weir_stmt_close(stmt);
 *
 * Everything here belongs to the transaction function that opened it.
 */
#ifndef WEIR_STORE_STMT_H
#define WEIR_STORE_STMT_H

#include "base/arena.h"
#include "base/json.h"
#include "base/status.h"
#include "store/store.h"

struct weir_stmt;

enum weir_bind_type { WEIR_BIND_TYPE_TEXT, WEIR_BIND_TYPE_INT, WEIR_BIND_TYPE_F64 };

/** One value for the parameter `:name`; name NULL: for the parameter at the bind's own place (for many
 *  rows: no name is looked up). Text NULL and F64 NaN are SQL NULL. Borrowed until close. */
struct weir_bind {
    const char *name;
    enum weir_bind_type type;
    const char *text;
    int64_t i64;
    double f64;
};

#define WEIR_BIND_TEXT(n, v)                                                                       \
    ((struct weir_bind){.name = (n), .type = WEIR_BIND_TYPE_TEXT, .text = (v)})
#define WEIR_BIND_INT(n, v)                                                                        \
    ((struct weir_bind){.name = (n), .type = WEIR_BIND_TYPE_INT, .i64 = (v)})
#define WEIR_BIND_F64(n, v)                                                                        \
    ((struct weir_bind){.name = (n), .type = WEIR_BIND_TYPE_F64, .f64 = (v)})
#define WEIR_BIND_NULL(n) ((struct weir_bind){.name = (n), .type = WEIR_BIND_TYPE_TEXT})

/** Two arguments: the array and its length. */
#define WEIR_BINDS(...)                                                                            \
    (const struct weir_bind[]){__VA_ARGS__},                                                       \
        sizeof((const struct weir_bind[]){__VA_ARGS__}) / sizeof(struct weir_bind)
#define WEIR_NO_BINDS NULL, 0

/**
 * Prepare (or take from the cache) one statement and bind its parameters. Parameters without a bind
 * are NULL. `sql` is borrowed until the store closes if it is a constant; any text works.
 * @return INTERNAL if the SQL does not compile, has no such parameter, or names a table past the
 *         transaction's scope (store/row_scope.h).
 */
weir_status weir_stmt_open(struct weir_txn *txn, const char *sql, const struct weir_bind *binds,
                           size_t n_binds, struct weir_stmt **out,
                           struct weir_error *err) WEIR_MUST_CHECK;

/** Bind again and start over: for many rows through one statement. */
weir_status weir_stmt_rebind(struct weir_stmt *stmt, const struct weir_bind *binds, size_t n_binds,
                             struct weir_error *err) WEIR_MUST_CHECK;

/**
 * Go to the next row; *out_has_row is false after the last one.
 * @return EXISTS (a unique column has that value already), CONFLICT (a reference to something that
 *         is not there, or that is still referred to), INVALID (a missing value), DENIED (writing
 *         in a read transaction; or a row that is out of the scope: then the transaction comes to
 *         nothing, whatever follows), NOSPACE, IO, CORRUPT.
 */
weir_status weir_stmt_step(struct weir_stmt *stmt, bool *out_has_row,
                           struct weir_error *err) WEIR_MUST_CHECK;

/** Values of the current row; columns count from 0. Text is copied; NULL for SQL NULL. */
char *weir_stmt_text(const struct weir_stmt *stmt, int i_column, struct weir_arena *arena);
/** The same in place: it lives until the next step, and *out_len (may be NULL) is its length. */
const char *weir_stmt_peek(const struct weir_stmt *stmt, int i_column, size_t *out_len);
int64_t weir_stmt_int(const struct weir_stmt *stmt, int i_column);
double weir_stmt_f64(const struct weir_stmt *stmt, int i_column); /**< NaN for SQL NULL. */
bool weir_stmt_is_null(const struct weir_stmt *stmt, int i_column);

/** The JSON in a column, as a new reference; NULL for SQL NULL and for what is no JSON. */
json_t *weir_stmt_json(const struct weir_stmt *stmt, int i_column);

/** Give the statement back. NULL is accepted. */
void weir_stmt_close(struct weir_stmt *stmt);

/** For WEIR_AUTO(weir_stmt_auto_close). */
void weir_stmt_auto_close(struct weir_stmt **stmt);

/** Run a statement that gives no rows. *out_changes (may be NULL): rows inserted, changed or
 * deleted. */
weir_status weir_txn_exec(struct weir_txn *txn, const char *sql, const struct weir_bind *binds,
                          size_t n_binds, int64_t *out_changes,
                          struct weir_error *err) WEIR_MUST_CHECK;

/** The integer in the first column of the first row; `fallback` if there is no row or it is NULL.
 */
weir_status weir_txn_query_int(struct weir_txn *txn, const char *sql, const struct weir_bind *binds,
                               size_t n_binds, int64_t fallback, int64_t *out,
                               struct weir_error *err) WEIR_MUST_CHECK;

/** The text in the first column of all rows, in the arena; NULL where it is NULL. LIMIT if that is
 *  more than the arena may hold. */
weir_status weir_txn_query_texts(struct weir_txn *txn, const char *sql,
                                 const struct weir_bind *binds, size_t n_binds,
                                 struct weir_arena *arena, char ***out, size_t *out_n,
                                 struct weir_error *err) WEIR_MUST_CHECK;

/** The next value (1, 2, 3 …) of a named counter, never given twice, also after a delete. */
weir_status weir_txn_next(struct weir_txn *txn, const char *counter, int64_t *out,
                          struct weir_error *err) WEIR_MUST_CHECK;

#endif
