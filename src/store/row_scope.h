/**
 * Row scope: which projects' rows a transaction sees and changes.
 *
 * A request of somebody who may not see all projects runs in a scope (weir_store_read_scoped,
 * weir_store_write_scoped), which is a member of its transaction. Whatever SQL runs in it, by store/table.h
 * or store/stmt.h: a read sees no row of another project, an UPDATE or DELETE touches none, and a row
 * that would come, or become, another project's is DENIED, with the whole transaction.
 * A transaction without a scope is the server's own and sees all.
 *
 * How: every table that belongs to projects is hidden behind a view of the same name; what a statement
 * changes is made to be the table, in a condition of the scope (store/scope_sql.h); and every row that is
 * changed is looked at. A statement that names a schema, to pass by the views, does not compile; nor does
 * INDEXED BY where rows are hidden: a view has no indexes of its own.
 *
 * Which project a row belongs to is what the store's nouns say (weir_store_config.noun_at, store/noun.h). A table of the
 * database that none of them describes is hidden from every scope, whole, and the test of all nouns fails.
 */
#ifndef WEIR_STORE_ROW_SCOPE_H
#define WEIR_STORE_ROW_SCOPE_H

#include "base/arena.h"
#include "store/stmt.h"
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

/** The scope that the transaction is in; NULL: it is the server's own and sees all. */
const struct weir_row_scope *weir_txn_scope(const struct weir_txn *txn);

/**
 * That the scope has a project: weir_txn_proven alone makes it, by a look at the scope, and it holds while the transaction
 * is in that scope. A statement that is opened with it reads tables themselves, past their views, where its text shows
 * that their rows are the project's (store/scope_proven.h): for the few reads of very many rows.
 */
struct weir_proven {
    const char *const
        *project; /**< In the scope. NULL: the scope does not have it, or there is none. */
};

struct weir_proven weir_txn_proven(const struct weir_txn *txn, const char *project);

/**
 * As weir_stmt_open, of a SELECT whose parameter :project the store binds, whatever the binds say; a bind by place counts it.
 * @return INTERNAL also if the scope does not have the project, or the text no such parameter.
 */
weir_status weir_stmt_open_proven(struct weir_txn *txn, struct weir_proven proven, const char *sql,
                                  const struct weir_bind *binds, size_t n_binds,
                                  struct weir_stmt **out, struct weir_error *err) WEIR_MUST_CHECK;

/**
 * Run `fn` in the same transaction with another scope; with NULL it sees all. An act has consequences beyond
 * its caller's projects (an alias moves a deployment of another one that follows it): those are worked out
 * with NULL, and nothing of what is seen is told. What nobody in particular asked for sees no more than
 * a scope of its own. The scope is borrowed while fn runs.
 * @return What fn returned; INTERNAL for a scope in a read that has none.
 */
weir_status weir_txn_as(struct weir_txn *txn, const struct weir_row_scope *scope, weir_txn_fn fn,
                        void *context, struct weir_error *err) WEIR_MUST_CHECK;

/** weir_txn_query_texts and weir_txn_query_int as the server: what they find may be anybody's, and what is made of it
 *  must not tell whose. */
weir_status weir_txn_query_texts_of_all(struct weir_txn *txn, const char *sql,
                                        const struct weir_bind *binds, size_t n_binds,
                                        struct weir_arena *arena, char ***out, size_t *out_n,
                                        struct weir_error *err) WEIR_MUST_CHECK;
weir_status weir_txn_query_int_of_all(struct weir_txn *txn, const char *sql,
                                      const struct weir_bind *binds, size_t n_binds,
                                      int64_t fallback, int64_t *out,
                                      struct weir_error *err) WEIR_MUST_CHECK;

/** weir_store_read, weir_store_write and weir_store_try in a scope, which is borrowed while they run; NULL or
 *  is_all: in none. */
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
