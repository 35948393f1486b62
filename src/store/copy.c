/* A copy of the database as it is at one moment, taken beside whoever works with it. */
#include "store/store.h"

#include "store/store_private.h"

#include "base/file.h"

#include <sqlite3.h>
#include <string.h>

/* "ok" is one row of that text; anything else is what is wrong, the first of it kept. */
static int take_verdict(void *context, int n_columns, char **values, char **names)
{
    char *verdict = context;
    (void)names;
    if (verdict[0] == '\0' && n_columns > 0 && values[0] != NULL) {
        (void)snprintf(verdict, WEIR_ERROR_MESSAGE_BYTES, "%s", values[0]);
    }
    return 0;
}

weir_status connection_check(struct connection *connection, char verdict[WEIR_ERROR_MESSAGE_BYTES],
                             struct weir_error *err)
{
    int code = sqlite3_exec(connection->db, "PRAGMA quick_check(1)", take_verdict, verdict, NULL);
    if (code != SQLITE_OK) {
        return connection_error(connection, code, "checking the database", err);
    }
    return strcmp(verdict, "ok") == 0
               ? WEIR_OK
               : weir_error_set(err, WEIR_ERR_CORRUPT, STORE_DAMAGED ": %.200s", verdict);
}

static weir_status check_copy(const char *path, struct weir_error *err)
{
    struct connection connection;
    char verdict[WEIR_ERROR_MESSAGE_BYTES] = "";
    WEIR_TRY(connection_open(path, 0, true, &connection, err));
    weir_status status = connection_check(&connection, verdict, err);
    connection_close(&connection);
    return status;
}

weir_status weir_store_copy(const char *path, const char *copy_path, struct weir_error *err)
{
    struct connection connection;
    if (!weir_path_exists(path)) {
        return weir_error_set(err, WEIR_ERR_NOT_FOUND, "there is no database %s", path);
    }
    if (weir_path_exists(copy_path)) {
        return weir_error_set(err, WEIR_ERR_EXISTS, "%s exists already", copy_path);
    }
    WEIR_TRY(connection_open(path, 0, true, &connection, err));
    char *sql = sqlite3_mprintf("VACUUM INTO %Q", copy_path);
    /* Nothing is written to the database itself, but SQLite counts the copy as writing. */
    weir_status status = connection_exec(&connection, "PRAGMA query_only = OFF", err);
    if (status == WEIR_OK && sql == NULL) {
        status = weir_error_set(err, WEIR_ERR_NOMEM, "no memory to copy the database");
    }
    if (status == WEIR_OK) {
        int code = sqlite3_exec(connection.db, sql, NULL, NULL, NULL);
        status = code == SQLITE_OK
                     ? WEIR_OK
                     : connection_error(&connection, code, "copying the database", err);
    }
    sqlite3_free(sql);
    connection_close(&connection);
    return status == WEIR_OK ? check_copy(copy_path, err) : status;
}
