/**
 * Row scope: which projects' rows a transaction sees.
 *
 * A request of somebody who may not see all projects runs in a scope (weir_store_read_scoped,
 * weir_store_write_scoped). A read sees no row of another project, whatever SQL it runs: on the
 * connections for scoped reads every table that belongs to projects is hidden behind a view of the
 * same name. A write sees none through store/table.h, and inserts none: its own statements name rows
 * that were loaded there.
 *
 * Which project a row belongs to stands in one table (row_scope.c). A table of the database that
 * stands neither there nor among those of the platform fails the store's test.
 */
#ifndef WEIR_STORE_ROW_SCOPE_H
#define WEIR_STORE_ROW_SCOPE_H

#include "base/arena.h"
#include "store/store.h"

struct weir_row_scope {
    bool is_all;                 /**< Everything; the rest is not looked at. */
    const char *const *projects; /**< Names. */
    size_t n_projects;
};

/** Is a row of this project seen? NULL belongs to no project: then only if is_all. */
bool weir_row_scope_sees(const struct weir_row_scope *scope, const char *project);

/**
 * The project that what a subject names ("ion/door", "job/ID") belongs to; *out is NULL if it is of
 * none, or not there. In the arena.
 */
weir_status weir_subject_project(struct weir_txn *txn, const char *subject,
                                 struct weir_arena *arena, char **out,
                                 struct weir_error *err) WEIR_MUST_CHECK;

/**
 * See with other eyes for a while: in the transaction that this thread runs. An act has consequences beyond
 * its caller's projects (an alias moves a deployment of another one that follows it); those are worked out
 * with NULL, which sees all, and nothing of what is seen is told. What nobody in particular asked for sees
 * no more than a scope of its own. @return what was before, to be entered again.
 */
const struct weir_row_scope *weir_row_scope_enter(const struct weir_row_scope *scope);

/** weir_store_read, weir_store_write and weir_store_try in a scope, which is borrowed while they run.
 */
weir_status weir_store_read_scoped(struct weir_store *store, const struct weir_row_scope *scope,
                                   weir_txn_fn fn, void *context,
                                   struct weir_error *err) WEIR_MUST_CHECK;
weir_status weir_store_write_scoped(struct weir_store *store, const struct weir_row_scope *scope,
                                    weir_txn_fn fn, void *context,
                                    struct weir_error *err) WEIR_MUST_CHECK;
weir_status weir_store_try_scoped(struct weir_store *store, const struct weir_row_scope *scope,
                                  weir_txn_fn fn, void *context,
                                  struct weir_error *err) WEIR_MUST_CHECK;

#endif
