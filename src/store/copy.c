/* A copy of the database as it is at one moment, taken beside whoever works with it. */
#include "store/store.h"

#include "store/store_private.h"

#include "base/file.h"

static weir_status check_copy(const char *path, struct weir_error *err)
{
    struct connection connection;
    char verdict[WEIR_ERROR_MESSAGE_BYTES];
    WEIR_TRY(connection_open(path, 0, true, &connection, err));
    weir_status status = connection_check(&connection, NULL, NULL, verdict, err);
    connection_close(&connection);
    return status;
}

weir_status weir_store_copy(const char *path, const char *copy_path, struct weir_error *err)
{
    struct connection connection;
    WEIR_TRY(connection_find(path, err));
    if (weir_path_exists(copy_path)) {
        return weir_error_set(err, WEIR_ERR_EXISTS, "%s exists already", copy_path);
    }
    WEIR_TRY(connection_open(path, 0, true, &connection, err));
    weir_status status = connection.ops->copy(connection.db, copy_path, err);
    connection_close(&connection);
    return status == WEIR_OK ? check_copy(copy_path, err) : status;
}
