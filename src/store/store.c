#include "store/store.h"

#include "store/scope_map.h"
#include "store/store_private.h"
#include "store/writer.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>

#define READERS_DEFAULT 4
#define READERS_MAX     64
#define SCOPED_READERS  2
#define QUEUE_DEFAULT   1024

/** Connections that are lent to reading threads. */
struct readers {
    pthread_mutex_t mutex; /**< Protects the two members below. */
    pthread_cond_t freed;  /**< One came back. */
    struct connection *free[READERS_MAX];
    size_t n_free;
    struct connection connections[READERS_MAX];
    size_t n;
};

/** Owned by whoever opened it. */
struct weir_store {
    struct live *live;
    struct writer *writer;
    struct pulse *pulse;   /**< Of all connections. */
    struct scope_map *map; /**< Of all connections. */
    struct readers readers, scoped_readers;
};

struct live *store_live(struct weir_store *store)
{
    return store->live;
}

/* Let statements see live values and, of a connection that serves scopes, rows of a scope alone. */
static weir_status set_up(const struct weir_store *store, struct connection *connection,
                          bool hides_rows, struct weir_error *err)
{
    if (hides_rows) {
        WEIR_TRY(connection->ops->hide(connection, err));
    }
    return connection_end(connection, connection->ops->add_functions(connection->db, store->live),
                          "setting up live values", err);
}

static void readers_init(struct readers *readers)
{
    pthread_mutex_init(&readers->mutex, NULL);
    pthread_cond_init(&readers->freed, NULL);
}

static weir_status readers_open(struct readers *readers, const char *path, size_t n,
                                bool hides_rows, const struct weir_store *store,
                                struct weir_error *err)
{
    while (readers->n < n) {
        struct connection *connection = &readers->connections[readers->n];
        WEIR_TRY(connection_open(path, 0, true, connection, err));
        connection->pulse = store->pulse;
        connection->map = store->map;
        readers->free[readers->n_free++] = connection;
        readers->n++;
        WEIR_TRY(set_up(store, connection, hides_rows, err));
    }
    return WEIR_OK;
}

static void readers_close(struct readers *readers)
{
    assert(readers->n_free == readers->n);
    for (size_t i = 0; i < readers->n; i++) {
        connection_close(&readers->connections[i]);
    }
    pthread_cond_destroy(&readers->freed);
    pthread_mutex_destroy(&readers->mutex);
}

static weir_status set_up_writer(struct weir_store *store, const struct weir_store_config *config,
                                 struct connection *writer, struct weir_error *err)
{
    size_t n_migrations;
    const struct migration *migrations = writer->ops->migrations(&n_migrations);
    WEIR_TRY(migrate(writer, migrations, n_migrations, err));
    WEIR_TRY(scope_map_create(writer, config->noun_at, &store->map, err));
    writer->map = store->map;
    return set_up(store, writer, true, err);
}

static weir_status open_connections(struct weir_store *store,
                                    const struct weir_store_config *config, struct weir_error *err)
{
    struct connection writer;
    WEIR_TRY(connection_open(config->path, config->max_bytes, false, &writer, err));
    pulse_compare_end(store->pulse, &writer);
    writer.pulse = store->pulse;
    weir_status status = set_up_writer(store, config, &writer, err);
    if (status != WEIR_OK) {
        connection_close(&writer);
        (void)weir_error_prefix(err, "database %s: ", config->path);
        return status;
    }
    /* The writer owns its connection from here on, also when starting it fails. */
    WEIR_TRY(writer_start(&writer, config->max_queue != 0 ? config->max_queue : QUEUE_DEFAULT,
                          &store->writer, err));
    size_t n_readers = config->n_readers != 0 ? config->n_readers : READERS_DEFAULT;
    WEIR_TRY(readers_open(&store->readers, config->path, WEIR_MIN(n_readers, (size_t)READERS_MAX),
                          false, store, err));
    return readers_open(&store->scoped_readers, config->path, SCOPED_READERS, true, store, err);
}

weir_status weir_store_open(const struct weir_store_config *config, struct weir_store **out,
                            struct weir_error *err)
{
    struct weir_store *store = calloc(1, sizeof(*store));
    if (store == NULL) {
        return weir_error_set(err, WEIR_ERR_NOMEM, "opening the database: out of memory");
    }
    readers_init(&store->readers);
    readers_init(&store->scoped_readers);
    store->pulse = pulse_create(config->path);
    store->live = live_create();
    weir_status status =
        store->pulse != NULL && store->live != NULL
            ? open_connections(store, config, err)
            : weir_error_set(err, WEIR_ERR_NOMEM, "opening the database: out of memory");
    if (status != WEIR_OK) {
        weir_store_close(store);
        return status;
    }
    *out = store;
    return WEIR_OK;
}

void weir_store_close(struct weir_store *store)
{
    if (store == NULL) {
        return;
    }
    pulse_stop(store->pulse);
    /* Readers first: the last connection to close folds the log back into the file. */
    readers_close(&store->readers);
    readers_close(&store->scoped_readers);
    writer_stop(store->writer);
    scope_map_destroy(store->map);
    pulse_destroy(store->pulse);
    live_destroy(store->live);
    free(store);
}

static weir_status refuse_nested(struct weir_error *err)
{
    return weir_error_set(err, WEIR_ERR_INTERNAL, "a transaction was begun inside another one");
}

static weir_status submit(struct weir_store *store, const struct weir_row_scope *scope,
                          weir_txn_fn fn, void *context, bool is_trial, struct weir_error *err)
{
    if (txn_is_running()) {
        return refuse_nested(err);
    }
    return writer_submit(store->writer, scope, fn, context, is_trial, err);
}

weir_status weir_store_write_scoped(struct weir_store *store, const struct weir_row_scope *scope,
                                    weir_txn_fn fn, void *context, struct weir_error *err)
{
    return submit(store, scope, fn, context, false, err);
}

weir_status weir_store_try_scoped(struct weir_store *store, const struct weir_row_scope *scope,
                                  weir_txn_fn fn, void *context, struct weir_error *err)
{
    return submit(store, scope, fn, context, true, err);
}

weir_status weir_store_write(struct weir_store *store, weir_txn_fn fn, void *context,
                             struct weir_error *err)
{
    return submit(store, NULL, fn, context, false, err);
}

weir_status weir_store_try(struct weir_store *store, weir_txn_fn fn, void *context,
                           struct weir_error *err)
{
    return submit(store, NULL, fn, context, true, err);
}

void weir_store_pulse(struct weir_store *store, struct weir_store_pulse *out)
{
    pulse_read(store->pulse, out);
}

weir_status weir_store_check_start(struct weir_store *store, struct weir_error *err)
{
    return pulse_check_start(store->pulse, err);
}

weir_status weir_store_probe(struct weir_store *store, struct weir_error *err)
{
    return pulse_is_due(store->pulse) ? weir_store_write(store, pulse_beat, NULL, err) : WEIR_OK;
}

static struct connection *readers_take(struct readers *readers)
{
    pthread_mutex_lock(&readers->mutex);
    while (readers->n_free == 0) {
        pthread_cond_wait(&readers->freed, &readers->mutex);
    }
    struct connection *connection = readers->free[--readers->n_free];
    pthread_mutex_unlock(&readers->mutex);
    return connection;
}

static void readers_give_back(struct readers *readers, struct connection *connection)
{
    pthread_mutex_lock(&readers->mutex);
    readers->free[readers->n_free++] = connection;
    pthread_cond_signal(&readers->freed);
    pthread_mutex_unlock(&readers->mutex);
}

weir_status weir_store_read_scoped(struct weir_store *store, const struct weir_row_scope *scope,
                                   weir_txn_fn fn, void *context, struct weir_error *err)
{
    bool sees_all = scope == NULL || scope->is_all;
    struct readers *readers = sees_all ? &store->readers : &store->scoped_readers;
    if (txn_is_running()) {
        return refuse_nested(err);
    }
    struct connection *connection = readers_take(readers);
    struct weir_txn txn = {.connection = connection, .scope = scope};
    weir_status status = connection_run(connection, DB_READ, err);
    if (status == WEIR_OK) {
        status = txn_run(&txn, fn, context, err);
        connection_rollback(connection);
    }
    readers_give_back(readers, connection);
    return status;
}

weir_status weir_store_read(struct weir_store *store, weir_txn_fn fn, void *context,
                            struct weir_error *err)
{
    return weir_store_read_scoped(store, NULL, fn, context, err);
}

weir_status weir_store_look(const char *path, weir_txn_fn fn, void *context, struct weir_error *err)
{
    struct connection connection;
    WEIR_TRY(connection_find(path, err));
    WEIR_TRY(connection_open(path, 0, true, &connection, err));
    struct weir_txn txn = {.connection = &connection};
    weir_status status = connection_run(&connection, DB_READ, err);
    if (status == WEIR_OK) {
        status = fn(&txn, context, err);
        connection_release_stmts(&connection);
        connection_rollback(&connection);
    }
    connection_close(&connection);
    return status;
}

uint64_t weir_store_change(struct weir_store *store)
{
    return writer_change(store->writer);
}

uint64_t weir_store_wait(struct weir_store *store, uint64_t after, int64_t timeout_ms)
{
    return writer_wait(store->writer, after, timeout_ms);
}

void weir_store_wake(struct weir_store *store)
{
    writer_wake(store->writer);
}

weir_status weir_store_watch(struct weir_store *store, weir_store_watch_fn fn, void *context,
                             int *out_watch, struct weir_error *err)
{
    return writer_watch(store->writer, fn, context, out_watch, err);
}

void weir_store_unwatch(struct weir_store *store, int watch)
{
    writer_unwatch(store->writer, watch);
}
