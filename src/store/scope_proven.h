/**
 * A statement's text, for a project that the transaction is known to see (weir_stmt_open_proven).
 *
 * A row is of the project if it says so, or if it is of a row that is. Where the text shows that, the table is read
 * itself, past its view; all else is read through views. Shown it is by the first condition of a WHERE or an ON,
 * which all others may only narrow (AND):
 *
 *     SELECT … FROM runs r LEFT JOIN latest_metrics m ON m.run = r.number AND m.key = 7 WHERE r.project = :project
 *         AND EXISTS (SELECT 1 FROM run_tags t WHERE t.run = r.number AND t.value = 'x')
 *
 * By which column a row says so, and of what it is, the nouns know (store/scope_map.h). A text that is not of
 * this simple form (WITH, commas or parentheses in FROM, RIGHT, FULL and NATURAL joins, USING, FILTER, DISTINCT, hints) is
 * read through views, whole.
 */
#ifndef WEIR_STORE_SCOPE_PROVEN_H
#define WEIR_STORE_SCOPE_PROVEN_H

#include "base/buf.h"
#include "store/scope_map.h"

/** What the store binds to the project. */
#define SCOPE_PROVEN_PARAMETER ":project"

/** Append to `out` the statement that runs in place of `sql`, a SELECT. @return INTERNAL if it names a schema. */
weir_status scope_proven_write(const struct scope_map *map, const char *sql, struct weir_buf *out,
                               struct weir_error *err) WEIR_MUST_CHECK;

#endif
