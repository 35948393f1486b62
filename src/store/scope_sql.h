/**
 * A statement's text, made to hold to a scope (store/row_scope.h).
 *
 * Whoever writes SQL names tables as they are: what it reads is a view of the rows in scope by the same name.
 * A view cannot be changed, so the target of an INSERT, UPDATE or DELETE is made to be the table itself,
 * and the condition of an UPDATE or DELETE leaves out the rows that are out of scope:
 *
 *     UPDATE jobs SET state = :state WHERE id = :id OR array = :id
 *     UPDATE main.jobs SET state = :state WHERE (id = :id OR array = :id) AND (CONDITION)
 *
 * What an INSERT or UPDATE makes of a row is looked at when it is written.
 */
#ifndef WEIR_STORE_SCOPE_SQL_H
#define WEIR_STORE_SCOPE_SQL_H

#include "base/buf.h"
#include "base/status.h"

/**
 * The condition that holds for the rows of a table which are in scope, appended to `out`.
 * @param context  As scope_sql_write was given it.
 * @param name  What the statement calls the table, `len` bytes as they stand there.
 * @return false: the table's rows belong to no project, and nothing was appended.
 */
typedef bool (*scope_condition_fn)(const void *context, const char *table, const char *name,
                                   size_t len, struct weir_buf *out);

/** @return INTERNAL if `sql` names a schema (main.jobs, "main" . jobs, temp.jobs): that goes past the scope. */
weir_status scope_sql_check(const char *sql, struct weir_error *err) WEIR_MUST_CHECK;

/**
 * Append to `out` the statement that runs in place of `sql`.
 * @return INTERNAL as scope_sql_check.
 */
weir_status scope_sql_write(const char *sql, scope_condition_fn condition, const void *context,
                            struct weir_buf *out, struct weir_error *err) WEIR_MUST_CHECK;

#endif
