/** Tests: a store in a folder of its own, and transactions in one line. */
#ifndef WEIR_STORE_STORE_FIXTURE_H
#define WEIR_STORE_STORE_FIXTURE_H

#include "base/file.h"
#include "base/test_main.h"
#include "store/stmt.h"
#include "store/store.h"
#include "store/store_template.h"

#include <sqlite3.h>
#include <stdio.h>

struct store_fixture {
    char dir[64]; /**< In memory, where it can be: a transaction waits for the disk. */
    char path[96];
    struct weir_store *store;
    struct weir_arena arena;
    struct weir_error err;
};

static inline void fixture_open(struct store_fixture *fixture, struct weir_store_config config)
{
    config.path = fixture->path;
    weir_status status = store_template_lay(config.path, &fixture->err);
    ck_assert_msg(status == WEIR_OK, "%s", fixture->err.message);
    status = weir_store_open(&config, &fixture->store, &fixture->err);
    ck_assert_msg(status == WEIR_OK, "%s", fixture->err.message);
}

static inline void fixture_init(struct store_fixture *fixture)
{
    *fixture = (struct store_fixture){.dir = "/dev/shm/weir-store-XXXXXX"};
    if (!weir_path_is_dir("/dev/shm")) {
        (void)snprintf(fixture->dir, sizeof(fixture->dir), "/tmp/weir-store-XXXXXX");
    }
    ck_assert_ptr_nonnull(mkdtemp(fixture->dir));
    (void)snprintf(fixture->path, sizeof(fixture->path), "%s/weir.db", fixture->dir);
    weir_arena_init(&fixture->arena, 0);
}

static inline void fixture_fini(struct store_fixture *fixture)
{
    weir_store_close(fixture->store);
    weir_arena_fini(&fixture->arena);
    ck_assert_int_eq(weir_dir_remove(fixture->dir, NULL), WEIR_OK);
}

/** The transaction must succeed. */
static inline void fixture_write(struct store_fixture *fixture, weir_txn_fn fn, void *context)
{
    weir_status status = weir_store_write(fixture->store, fn, context, &fixture->err);
    ck_assert_msg(status == WEIR_OK, "%s", fixture->err.message);
}

/** Change the schema beside the open store, whose own transactions see views of tables (store/row_scope.h). */
static inline void fixture_alter(struct store_fixture *fixture, const char *sql)
{
    sqlite3 *db = NULL;
    ck_assert_int_eq(sqlite3_open(fixture->path, &db), SQLITE_OK);
    ck_assert_msg(sqlite3_exec(db, sql, NULL, NULL, NULL) == SQLITE_OK, "%s", sqlite3_errmsg(db));
    sqlite3_close(db);
}

/** All of it: an open store that `populate` has filled; NULL: an empty one. */
static inline void fixture_make(struct store_fixture *fixture, weir_txn_fn populate)
{
    fixture_init(fixture);
    fixture_open(fixture, (struct weir_store_config){0});
    if (populate != NULL) {
        fixture_write(fixture, populate, NULL);
    }
}

static inline void fixture_read(struct store_fixture *fixture, weir_txn_fn fn, void *context)
{
    weir_status status = weir_store_read(fixture->store, fn, context, &fixture->err);
    ck_assert_msg(status == WEIR_OK, "%s", fixture->err.message);
}

/** A statement, and the lines of plans that may look at each row of a table: they have few. To the first NULL. */
struct fixture_plan {
    const char *sql;
    const char *const *few;
    struct weir_arena *arena;
};

static inline weir_status fixture_look_at_plan(struct weir_txn *txn, void *context,
                                               struct weir_error *err)
{
    const struct fixture_plan *plan = context;
    WEIR_AUTO(weir_stmt_auto_close) struct weir_stmt *stmt = NULL;
    bool has_row;
    WEIR_TRY(weir_stmt_open(txn, weir_arena_printf(plan->arena, "EXPLAIN QUERY PLAN %s", plan->sql),
                            WEIR_NO_BINDS, &stmt, err));
    WEIR_TRY(weir_stmt_step(stmt, &has_row, err));
    while (has_row) {
        const char *line = weir_stmt_text(stmt, 3, plan->arena);
        bool is_walk = strncmp(line, "SCAN ", 5) == 0 && line[5] != '(' &&
                       strstr(line, " USING ") == NULL && strstr(line, "CONSTANT") == NULL &&
                       strstr(line, "SUBQUERY") == NULL;
        for (size_t i = 0; plan->few[i] != NULL; i++) {
            is_walk = is_walk && strcmp(line, plan->few[i]) != 0;
        }
        ck_assert_msg(!is_walk, "%s: %s", line, plan->sql);
        WEIR_TRY(weir_stmt_step(stmt, &has_row, err));
    }
    return WEIR_OK;
}

/** The statement must look at each row of no table but of few, by no index. */
static inline void fixture_refuse_walks(struct store_fixture *fixture, const char *sql,
                                        const char *const *few)
{
    struct fixture_plan plan = {sql, few, &fixture->arena};
    fixture_read(fixture, fixture_look_at_plan, &plan);
}

/** A call inside a transaction function must succeed. */
#define MUST(call)                                                                                 \
    do {                                                                                           \
        weir_status must_status_ = (call);                                                         \
        ck_assert_msg(must_status_ == WEIR_OK, "%s: %s", weir_status_name(must_status_),           \
                      err != NULL ? err->message : "");                                            \
    } while (0)

#endif
