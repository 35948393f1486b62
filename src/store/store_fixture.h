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

/** A call inside a transaction function must succeed. */
#define MUST(call)                                                                                 \
    do {                                                                                           \
        weir_status must_status_ = (call);                                                         \
        ck_assert_msg(must_status_ == WEIR_OK, "%s: %s", weir_status_name(must_status_),           \
                      err != NULL ? err->message : "");                                            \
    } while (0)

#endif
