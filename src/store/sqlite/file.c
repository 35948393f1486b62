/* What is done to the file as a whole. */
#include "store/sqlite/sqlite.h"

#include "store/space.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define AUTO_VACUUM_INCREMENTAL 2

/** Steps of SQLite's machine between two looks at whether to go on. */
#define STEPS_PER_LOOK 100000

/* ---- the check --------------------------------------------------------------------------------- */

/* "ok" is one row of that text; anything else is what is wrong, the first of it kept. */
static int take_verdict(void *context, int n_columns, char **values, char **names)
{
    char *verdict = context;
    (void)names;
    if (verdict[0] == '\0' && n_columns > 0 && values[0] != NULL && strcmp(values[0], "ok") != 0) {
        (void)snprintf(verdict, WEIR_ERROR_MESSAGE_BYTES, "%s", values[0]);
    }
    return 0;
}

struct look {
    bool (*is_over)(void *context);
    void *context;
};

static int look(void *context)
{
    const struct look *of = context;
    return of->is_over(of->context);
}

enum db_end sqlite_check(struct db *db, bool (*is_over)(void *context), void *context,
                         char verdict[WEIR_ERROR_MESSAGE_BYTES])
{
    struct look of = {is_over, context};
    verdict[0] = '\0';
    sqlite3_progress_handler(db->handle, STEPS_PER_LOOK, is_over != NULL ? look : NULL, &of);
    int code = sqlite3_exec(db->handle, "PRAGMA quick_check(1)", take_verdict, verdict, NULL);
    sqlite3_progress_handler(db->handle, 0, NULL, NULL);
    return sqlite_end(db, code);
}

/* ---- the copy ---------------------------------------------------------------------------------- */

weir_status sqlite_copy(struct db *db, const char *copy_path, struct weir_error *err)
{
    char *sql = sqlite3_mprintf("VACUUM INTO %Q", copy_path);
    if (sql == NULL) {
        return weir_error_set(err, WEIR_ERR_NOMEM, "no memory to copy the database");
    }
    /* Nothing is written to the database itself, but SQLite counts the copy as writing. */
    (void)sqlite3_exec(db->handle, "PRAGMA query_only = OFF", NULL, NULL, NULL);
    int code = sqlite3_exec(db->handle, sql, NULL, NULL, NULL);
    sqlite3_free(sql);
    return code == SQLITE_OK ? WEIR_OK : sqlite_fail(db, code, "copying the database", err);
}

/* ---- its size ---------------------------------------------------------------------------------- */

enum db_end sqlite_space(struct db *db, struct weir_store_space *out)
{
    static const char *const sql[] = {"PRAGMA page_count", "PRAGMA freelist_count",
                                      "PRAGMA page_size", "PRAGMA auto_vacuum"};
    int64_t n[4];
    enum db_end end = DB_OK;
    for (size_t i = 0; i < 4 && end == DB_OK; i++) {
        end = sqlite_query_int(db, sql[i], &n[i]);
    }
    if (end == DB_OK) {
        *out = (struct weir_store_space){.bytes = n[0] * n[2],
                                         .free_bytes = n[1] * n[2],
                                         .page_bytes = n[2],
                                         .can_shrink = n[3] == AUTO_VACUUM_INCREMENTAL};
    }
    return end;
}

enum db_end sqlite_shrink(struct db *db, int64_t n_pages)
{
    char sql[64]; /* a pragma takes no parameters; and it gives a row for each page */
    (void)snprintf(sql, sizeof sql, "PRAGMA incremental_vacuum(%" PRId64 ")", n_pages);
    return sqlite_end(db, sqlite3_exec(db->handle, sql, NULL, NULL, NULL));
}
