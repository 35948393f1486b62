#include "store/space.h"

#include "store/store_private.h"

weir_status weir_txn_space(struct weir_txn *txn, struct weir_store_space *out,
                           struct weir_error *err)
{
    const struct connection *connection = txn->connection;
    return connection_end(connection, connection->ops->space(connection->db, out),
                          "measuring the database", err);
}

weir_status weir_txn_shrink(struct weir_txn *txn, int64_t n_pages, struct weir_error *err)
{
    const struct connection *connection = txn->connection;
    return connection_end(connection, connection->ops->shrink(connection->db, n_pages),
                          "shrinking the database", err);
}
